"""Owning: every yearly cash flow from the order to the sale, its present value, and what a card-hour really costs.

The quotation is what the vendor asks for the servers. Network and storage are shares of cluster capex (servers =
capex x (1 - shares)). Money moves at the order (year 0) and at the end of each year; the residual comes in at the end
of the last one. Years are of service: they begin when the servers work, and the weeks from order to acceptance are
paid for as capital (see `waiting_years`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from core.messages import Message, msg
from core.money import Money, total
from planning.economics import checks, exact
from planning.economics.depreciation import book_shares
from planning.economics.ownership_case import OwnershipCase
from planning.economics.power import energy_by_hour, racks_needed
from planning.economics.types import HOURS_PER_YEAR

LINE_LABELS: dict[str, Message] = {
    "servers": msg("Servers (the quotation)"),
    "network": msg("Network"),
    "storage": msg("Storage"),
    "spares": msg("Spares"),
    "duty": msg("Import duty"),
    "vat": msg("VAT that cannot be reclaimed"),
    "room": msg("Machine room: cooling, racks, power feed"),
    "housing": msg("Racks and colocation"),
    "power": msg("Power of the servers"),
    "cooling": msg("Power of cooling and losses"),
    "staff": msg("Operations staff"),
    "repairs": msg("Repairs outside warranty"),
    "warranty": msg("Warranty and support"),
    "software": msg("Software licences"),
    "insurance": msg("Insurance"),
    "residual": msg("Resale at the end"),
    "income_tax": msg("Income tax saved by costs and depreciation"),
}
CAPITAL_LINES = ("servers", "network", "storage", "spares", "duty", "vat", "room")


@dataclass(frozen=True, slots=True)
class FlowLine:
    """One line of the cash flow: what is paid (+) or received (-) in year 0, 1, ... N, each rounded."""

    name: str
    label: Message
    yearly: tuple[Money, ...]

    @property
    def sum(self) -> Money:
        """Over all years."""
        return total(self.yearly, self.yearly[0].currency)


@dataclass(frozen=True, slots=True)
class Ownership:
    """What owning costs. All sums are of rounded lines."""

    case: OwnershipCase
    lines: tuple[FlowLine, ...]
    yearly: tuple[Money, ...]  # net outflow in year 0, 1, ... N
    total: Money  # after resale
    capital: Money
    resale: Money
    present_value: Money  # of all outflows, discounted to the order
    book_value: tuple[Money, ...]  # at the end of year 0, 1, ... N
    uplift_gross: float  # all costs before resale over the quotation, - 1
    uplift_net: float  # all costs after resale over the quotation, - 1
    per_accelerator_hour: Money  # total over used card-hours, unrounded
    levelised_per_hour: Money  # present value over discounted used card-hours, unrounded

    def amount(self, name: str) -> Money:
        """Sum over the years of the line `name`; zero when there is none."""
        return total((line.sum for line in self.lines if line.name == name), self.case.currency)


def evaluate(case: OwnershipCase) -> Ownership:
    """Cash flow, present value, uplift and cost per card-hour of `case`.

    Raises
    ------
    InputError
        If the residual curve is shorter than the years, or the utilisation is 0 (there is no hour to divide by).
    """
    checks.positive("utilisation", case.utilisation)
    capital = capital_lines(case)
    flows = [_once(case, name, amount) for name, amount in capital.items()]
    flows += [_each_year(case, name, amounts) for name, amounts in running_costs(case).items()]
    flows.append(_residual_line(case))
    if case.income_tax_rate:
        flows.append(_income_tax_line(case, flows))
    lines = tuple(flow for flow in flows if any(money.amount for money in flow.yearly))
    yearly = tuple(
        total((line.yearly[year] for line in lines), case.currency)
        for year in range(case.years + 1)
    )
    whole = total(yearly, case.currency)
    resale = total((-line.sum for line in lines if line.name == "residual"), case.currency)
    quotation = capital["servers"].amount
    present = _present_value(case, yearly)
    hours = exact.to_decimal(used_hours_per_year(case))
    factor = _discount_factors(case)
    discounted = hours * sum(factor[1:], Decimal(0))
    return Ownership(
        case=case,
        lines=lines,
        yearly=yearly,
        total=whole,
        capital=total(capital.values(), case.currency),
        resale=resale,
        present_value=present.rounded(),
        book_value=_book_values(case),
        uplift_gross=float((whole.amount + resale.amount) / quotation) - 1
        if quotation
        else math.inf,
        uplift_net=float(whole.amount / quotation) - 1 if quotation else math.inf,
        per_accelerator_hour=Money(whole.amount / (hours * case.years), case.currency),
        levelised_per_hour=Money(present.amount / discounted, case.currency),
    )


def used_hours_per_year(case: OwnershipCase) -> float:
    """Card-hours that do work in a year of service: cards x 8,760 x availability x utilisation. [h]"""
    return case.accelerators * HOURS_PER_YEAR * case.availability * case.utilisation


def cost_by_utilisation(
    case: OwnershipCase,
    utilisations: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
) -> tuple[tuple[float, Money], ...]:
    """Cost of a used card-hour at each utilisation, power following the load. Unrounded."""
    return tuple(
        (share, evaluate(replace(case, utilisation=share)).per_accelerator_hour)
        for share in utilisations
    )


# ---- Lines -------------------------------------------------------------------------------------------------------


def capital_lines(case: OwnershipCase) -> dict[str, Money]:
    """What is paid at the order, by line, rounded."""
    servers = (case.server.price * case.servers).rounded()
    net = Decimal(1) - exact.to_decimal(case.network_share) - exact.to_decimal(case.storage_share)
    cluster = Money(servers.amount / net, case.currency)
    lines = {
        "servers": servers,
        "network": exact.times(cluster, case.network_share),
        "storage": exact.times(cluster, case.storage_share),
        "spares": exact.times(servers, case.spares_ratio),
    }
    goods = total(lines.values(), case.currency)
    lines["duty"] = exact.times(goods, case.duty_rate)
    unreclaimed = 0.0 if case.vat_reclaimed else case.vat_rate
    lines["vat"] = exact.times(_taxed(lines, case.currency), unreclaimed)
    if case.housing.room_per_kw is not None:
        lines["room"] = exact.times(
            case.housing.room_per_kw, case.servers * case.server.max_power_kw
        )
    return lines


def order_lines(case: OwnershipCase) -> dict[str, Money]:
    """What is paid at the order, by line, rounded: tax that is reclaimed later is a line of it and of no cost."""
    lines = capital_lines(case)
    if case.vat_reclaimed:
        lines["vat"] = exact.times(_taxed(lines, case.currency), case.vat_rate)
    return lines


def _taxed(lines: Mapping[str, Money], currency: str) -> Money:
    """The goods and their duty, on which tax is paid."""
    names = ("servers", "network", "storage", "spares", "duty")
    return total((lines[name] for name in names), currency)


def running_costs(case: OwnershipCase) -> dict[str, list[Money]]:
    """What is paid in years 1 to N of service, by line, rounded. A utilisation of 0 is allowed."""
    zero = Money(Decimal(0), case.currency)
    server_price = case.server.price * case.servers
    power = _power_per_year(case)
    loss = exact.times(power, case.pue - 1)
    if case.housing.includes_power:
        power = loss = zero
    card_price = exact.times(case.server.price, 1 / case.server.accelerators)
    repairs = exact.times(card_price, case.repairs_per_year * case.accelerators)
    software = case.software_per_accelerator_year
    every_year = {
        "housing": _housing_per_year(case),
        "power": power.rounded(),
        "cooling": loss,
        "staff": exact.times(case.staff_per_fte_year, case.fte),
        "software": zero if software is None else (software * case.accelerators).rounded(),
        "insurance": exact.times(server_price, case.insurance_rate),
    }
    lines = {name: [amount] * case.years for name, amount in every_year.items()}
    extension = exact.times(server_price, case.warranty_rate)
    after = [uncovered(case.warranty_months, year) for year in range(1, case.years + 1)]
    nothing = [zero] * case.years
    lines["warranty"] = (
        [(extension * share).rounded() for share in after] if case.extended_warranty else nothing
    )
    lines["repairs"] = (
        nothing if case.extended_warranty else [(repairs * share).rounded() for share in after]
    )
    return lines


def uncovered(months: int, year: int) -> Decimal:
    """Share of the service year (from 1) that lies after a warranty of so many months. [1]"""
    return Decimal(12 - min(max(months - 12 * (year - 1), 0), 12)) / 12


def _housing_per_year(case: OwnershipCase) -> Money:
    kw = case.servers * case.server.max_power_kw
    cost = Money(Decimal(0), case.currency)
    if case.housing.per_kw_month is not None:
        cost = cost + exact.times(case.housing.per_kw_month, kw * 12)
    if case.housing.per_rack_year is not None and case.housing.kw_per_rack is not None:
        cost = cost + (
            case.housing.per_rack_year
            * racks_needed(case.server, case.servers, case.housing.kw_per_rack)
        )
    return cost.rounded()


def _power_per_year(case: OwnershipCase) -> Money:
    energy = energy_by_hour(
        case.server,
        case.servers,
        utilisation=case.utilisation,
        day_load=case.day_load,
        load_share=case.load_share,
        idle_share=case.idle_share,
    )
    if len(case.tariff) == 1:
        return exact.times(case.tariff[0], float(energy.sum()))
    parts = [
        price * exact.to_decimal(float(kwh)) for price, kwh in zip(case.tariff, energy, strict=True)
    ]
    return total(parts, case.currency).rounded()


def _residual_line(case: OwnershipCase) -> FlowLine:
    if len(case.residual) < case.years:
        raise checks.refuse(
            "residual", f"{len(case.residual)} years", f"a value for year {case.years}"
        )
    price = (case.server.price * case.servers).rounded()
    return _at(case, "residual", case.years, -exact.times(price, case.residual[case.years - 1]))


def _income_tax_line(case: OwnershipCase, flows: Sequence[FlowLine]) -> FlowLine:
    """Tax saved on running costs, depreciation and the loss (or gain) of the sale over book value."""
    rate = exact.to_decimal(case.income_tax_rate)
    book = _book_values(case)
    saved = [Money(Decimal(0), case.currency)]
    for year in range(1, case.years + 1):
        running = total(
            (f.yearly[year] for f in flows if f.name not in (*CAPITAL_LINES, "residual")),
            case.currency,
        )
        deductible = running + book[year - 1] - book[year]
        if year == case.years:
            sale = total((-f.yearly[year] for f in flows if f.name == "residual"), case.currency)
            deductible = deductible + book[year] - sale
        saved.append(-(deductible * rate).rounded())
    return FlowLine("income_tax", LINE_LABELS["income_tax"], tuple(saved))


def _book_values(case: OwnershipCase) -> tuple[Money, ...]:
    capital = total(capital_lines(case).values(), case.currency)
    shares = book_shares(case.depreciation, case.depreciation_years, case.years)
    return tuple(exact.times(capital, share) for share in shares)


# ---- Discounting -------------------------------------------------------------------------------------------------


def _discount_factors(case: OwnershipCase) -> list[Decimal]:
    """Of year 0, 1, ... N of service, the wait before them included."""
    base = 1 + case.discount_rate
    return [Decimal(1)] + [
        exact.to_decimal(base ** -(case.waiting_years + year)) for year in range(1, case.years + 1)
    ]


def _present_value(case: OwnershipCase, yearly: Sequence[Money]) -> Money:
    factors = _discount_factors(case)
    parts = (money * factor for money, factor in zip(yearly, factors, strict=True))
    return total(parts, case.currency)


def _once(case: OwnershipCase, name: str, amount: Money) -> FlowLine:
    return _at(case, name, 0, amount)


def _at(case: OwnershipCase, name: str, year: int, amount: Money) -> FlowLine:
    zero = Money(Decimal(0), case.currency)
    yearly = [zero] * (case.years + 1)
    yearly[year] = amount
    return FlowLine(name, LINE_LABELS[name], tuple(yearly))


def _each_year(case: OwnershipCase, name: str, amounts: Sequence[Money]) -> FlowLine:
    zero = Money(Decimal(0), case.currency)
    return FlowLine(name, LINE_LABELS[name], (zero, *amounts))
