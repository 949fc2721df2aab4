"""What each quote costs over the years of service, by the engine's model of owning, and per unit of the work.

The purchase is the quote's own; spares, extended cover after its own warranty, housing, power, cooling, staff and
resale are as the engine counts them. What the quotes share is counted alike for all, so that a dearer quote is not made
dearer still: the same card sells for the same, whatever was paid for it. Whatever is assumed is told in words, and what
is missing makes a figure unknown, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from catalog.reference import accelerator_label
from catalog.selectors import accelerators_by_slug, platforms
from core.errors import InputError
from core.messages import Message, msg
from core.money import Money, money_json, total
from core.organisation import organisation, today
from planning.economics import checks, defaults, exact, unit_costs
from planning.economics.ownership import LINE_LABELS, Ownership, evaluate, used_hours_per_year
from planning.economics.ownership_case import default_case, default_fte
from planning.economics.types import HOURS_PER_YEAR, ServerPlatform
from planning.models import PlanChoice
from planning.selectors.owned_use import measured_utilisation
from planning.services.snapshots import corrected_costs
from planning.study.search.costs import SHELL, YEARS
from planning.study.workloads import ONLINE, TRAINING, Kind
from procurement.models import QuoteLine, RfqLine
from procurement.models.quotes import LineKind
from procurement.selectors.comparison import Comparison, Row

BESIDE = msg("Lines beside the accelerators, as quoted")
TAX = msg("Tax that is not reclaimed")
SIXTEEN_BIT = ("bf16", "fp16")
DAY = 86_400  # [s]
UNIT_STEP = Decimal("0.0001")  # a unit of work may cost less than the minor unit of the currency


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Cost of a unit of the work of one asked line; None where `told` says what is missing."""

    position: int
    amount: Money | None
    told: Message | None = None  # what it rests on, or why it is not known


@dataclass(frozen=True, slots=True)
class WholeCost:
    """One quote over `years` of service, in the base currency without tax that is reclaimed."""

    years: int
    total: Money | None
    lines: tuple[tuple[Message, Money], ...] = ()
    per_warranted_year: Money | None = None
    per_pflop_hour: tuple[UnitCost, ...] = ()
    per_million_tokens: tuple[UnitCost, ...] = ()
    assumptions: tuple[Message, ...] = ()
    unknown: Message | None = None  # why there is no total

    def frozen(self) -> dict[str, Any]:
        """To be kept: words as templates with their parameters, so that they can be read in either language later."""
        return self.to_json(None)

    def to_json(self, said: Any) -> dict[str, Any]:
        """Amounts as strings, words by `said`; None: as `Message.to_json`."""

        def told(message: Message) -> Any:
            return message.to_json() if said is None else message.render(said)

        def units(rows: Iterable[UnitCost]) -> list[dict[str, Any]]:
            return [
                {
                    "line": row.position,
                    "amount": money_json(row.amount),
                    "told": None if row.told is None else told(row.told),
                }
                for row in rows
            ]

        return {
            "years": self.years,
            "total": money_json(self.total),
            "lines": [
                {"label": told(label), "amount": money_json(amount)} for label, amount in self.lines
            ],
            "per_warranted_year": money_json(self.per_warranted_year),
            "per_pflop_hour": units(self.per_pflop_hour),
            "per_million_tokens": units(self.per_million_tokens),
            "assumptions": [told(one) for one in self.assumptions],
            "unknown": None if self.unknown is None else told(self.unknown),
        }


@dataclass(frozen=True, slots=True)
class _Known:
    """What is read once for all quotes."""

    base: str
    asked: tuple[RfqLine, ...]
    power_kw: Mapping[
        tuple[str, int], float
    ]  # of servers of the catalogue, by accelerator and count
    card_kw: Mapping[str, float]  # TDP, by accelerator
    lowest: Mapping[str, Decimal]  # price of one bought card in any quote, by accelerator
    utilisation: float | None  # measured
    tax_counts: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """The cards of one quote line that answers an asked line."""

    line: QuoteLine
    position: int
    price: Money  # of one item


class _Unknown(Exception):
    """A figure that cannot be had, and why."""

    def __init__(self, why: Message) -> None:
        super().__init__(why.render())
        self.why = why


def whole_costs(comparison: Comparison) -> dict[int, WholeCost]:
    """By quote. A constant number of queries, whatever the number of quotes and lines."""
    asked = tuple(
        comparison.rfq.lines.select_related("plan__study", "plan__revision__request").order_by(
            "position"
        )
    )
    parts = {row.quote.pk: _parts(row, comparison.currency, asked) for row in comparison.rows}
    slugs = {part.line.accelerator_slug for rows in parts.values() for part in rows}
    known = _known(comparison, asked, parts.values(), slugs)
    with defaults.corrected(corrected_costs()):
        return {
            row.quote.pk: _whole_cost(row, parts[row.quote.pk], known) for row in comparison.rows
        }


def distinct(told: Iterable[Message]) -> tuple[Message, ...]:
    """Each message once, in order."""
    found: list[Message] = []
    for one in told:
        if one not in found:
            found.append(one)
    return tuple(found)


def lowest(comparison: Comparison, costs: Mapping[int, WholeCost]) -> Row | None:
    """The complete quote with the lowest whole cost; None while it is not known of each complete one."""
    complete = [row for row in comparison.rows if row.is_complete]
    found = [(cost.amount, row) for row in complete if (cost := costs[row.quote.pk].total)]
    if not found or len(found) != len(complete):
        return None
    return min(found, key=lambda pair: (pair[0], pair[1].quote.pk))[1]


# --- what is read ----------------------------------------------------------------------------------------------------


def _parts(row: Row, base: str, asked: Iterable[RfqLine]) -> list[_Part]:
    """The answering lines, priced in the base currency; none without a rate."""
    positions = {line.pk: line.position for line in asked}
    rate = Decimal(1) if row.quote.currency == base else row.rate and row.rate.rate
    if rate is None:
        return []
    found = []
    for line in row.answering:
        if line.rfq_line_id is None or not line.accelerators:
            continue
        price = Money(line.unit_price * rate, base)
        found.append(_Part(line, positions[line.rfq_line_id], price))
    return found


def _known(
    comparison: Comparison,
    asked: tuple[RfqLine, ...],
    quotes: Iterable[list[_Part]],
    slugs: set[str],
) -> _Known:
    cards, org = accelerators_by_slug(slugs), organisation()
    lowest: dict[str, Decimal] = {}
    for rows in quotes:
        for part in rows:
            if part.line.kind == LineKind.CLOUD:  # rent is no price of a card
                continue
            price = part.price.amount / part.line.accelerators_per_item
            slug = part.line.accelerator_slug
            lowest[slug] = min(price, lowest.get(slug, price))
    return _Known(
        base=comparison.currency,
        asked=asked,
        power_kw={
            (row.accelerator.slug, row.accelerator_count): row.current.max_power / 1000
            for row in platforms().filter(accelerator__slug__in=slugs).order_by("-slug")
            if row.current is not None and row.current.max_power
        },
        card_kw={
            slug: row.current.figures["tdp"] / 1000
            for slug, row in cards.items()
            if row.current is not None and row.current.figures.get("tdp")
        },
        lowest=lowest,
        utilisation=measured_utilisation(today(org)),
        tax_counts=not org.purchase_tax_reclaimed,
    )


# --- one quote -------------------------------------------------------------------------------------------------------


def _whole_cost(row: Row, parts: list[_Part], known: _Known) -> WholeCost:
    told: list[Message] = []
    try:
        if row.net is None or row.tax is None:
            raise _Unknown(
                msg("There is no exchange rate from %(currency)s", currency=row.quote.currency)
            )
        if any(part.line.kind == LineKind.CLOUD for part in parts):
            raise _Unknown(msg("It rents capacity: there is nothing to own"))
        if not parts:
            raise _Unknown(msg("No line answers what is asked for"))
        owned = _owned(row, parts, known, told)
        goods = total((found.found.amount("servers") for found in owned), known.base)
        # What is charged besides the cards, and the tax where it is not reclaimed; all at the order.
        beside = row.net - goods + (row.tax if known.tax_counts else Money(Decimal(0), known.base))
    except _Unknown as error:
        return WholeCost(YEARS, None, unknown=error.why)
    except InputError as error:
        return WholeCost(YEARS, None, unknown=error.message)
    cost = total((one.found.total for one in owned), known.base) + beside
    told += _common(owned, known)
    units = [_units(line, owned, beside, row, known) for line in known.asked]
    return WholeCost(
        years=YEARS,
        total=cost.rounded(),
        lines=_lines(row, owned, beside, known),
        per_warranted_year=_per_warranted_year(row, owned, beside),
        per_pflop_hour=tuple(pflop for pflop, _tokens in units),
        per_million_tokens=tuple(tokens for _pflop, tokens in units),
        assumptions=distinct(told),
    )


@dataclass(frozen=True, slots=True)
class _Owned:
    """One answering line, owned."""

    part: _Part
    found: Ownership

    @property
    def cards(self) -> int:
        return self.found.case.accelerators

    @property
    def used_hours(self) -> float:
        return used_hours_per_year(self.found.case) * self.found.case.years


def _owned(row: Row, parts: list[_Part], known: _Known, told: list[Message]) -> list[_Owned]:
    cards = sum(part.line.accelerators for part in parts)
    found = []
    for part in parts:
        line, price = part.line, part.price
        each, slug = line.accelerators_per_item, line.accelerator_slug
        server = ServerPlatform(
            f"{slug}:{each}",
            line.description,
            slug,
            each,
            price,
            _power(slug, each, known, told),
            1,
        )
        case = default_case(server, int(line.quantity), years=YEARS)
        own = price.amount / each
        resale = known.lowest[slug] / own if own else Decimal(1)
        case = replace(
            case,
            network_share=0.0,  # as quoted, in the lines beside
            storage_share=0.0,
            fte=default_fte(cards) * line.accelerators / cards,
            warranty_months=row.months,
            lead_weeks=row.quote.lead_time_days / 7,
            residual=tuple(share * float(resale) for share in case.residual),
            vat_rate=0.0,  # as quoted: beside the cards
            utilisation=case.utilisation if known.utilisation is None else known.utilisation,
        )
        checks.positive("utilisation", case.utilisation)
        found.append(_Owned(part, evaluate(case)))
    return found


def _power(slug: str, each: int, known: _Known, told: list[Message]) -> float:
    """Highest draw of one item. [kW]"""
    server = known.power_kw.get((slug, each))
    if server is not None:
        return server
    name = accelerator_label(slug)
    card = known.card_kw.get(slug)
    if card is None:
        raise _Unknown(msg("The power of %(accelerator)s is not known", accelerator=name))
    told.append(
        msg("Power of a server with %(n)s × %(accelerator)s: %(share)s times that of its cards", n=each,
            accelerator=name, share=SHELL)
    )  # fmt: skip
    return card * each * SHELL


def _common(owned: list[_Owned], known: _Known) -> list[Message]:
    """What is assumed alike for every quote."""
    case = owned[0].found.case
    use = round(case.utilisation * 100)
    return [
        msg("Cards work %(use)s %% of the time, as measured in the last quarter", use=use)
        if known.utilisation is not None
        else msg("Cards work %(use)s %% of the time, which is usual: nothing was measured", use=use),
        msg("Housed in a colocation at %(price)s for a kW and month, electricity at %(tariff)s a kWh, PUE %(pue)s",
            price=str(case.housing.per_kw_month or "–"), tariff=str(case.tariff[0]), pue=case.pue),
        msg("After the quote's own warranty, cover is bought at %(share)s %% of the price a year",
            share=round(case.warranty_rate * 100, 1)),
        msg("%(share)s %% spares; %(fte)s people for operations", share=round(case.spares_ratio * 100, 1),
            fte=round(sum(one.found.case.fte for one in owned), 2)),
        msg("Sold after %(years)s years for what the lowest offer of the same card leaves, whatever was paid",
            years=case.years),
        msg("Network, storage and software count as quoted; what no quote says is not in it"),
    ]  # fmt: skip


def _lines(
    row: Row, owned: list[_Owned], beside: Money, known: _Known
) -> tuple[tuple[Message, Money], ...]:
    sums: dict[str, Money] = {}
    for one in owned:
        for line in one.found.lines:
            sums[line.name] = sums[line.name] + line.sum if line.name in sums else line.sum
    rows = [(LINE_LABELS[name], amount) for name, amount in sums.items()]
    tax = row.tax if known.tax_counts and row.tax is not None else Money(Decimal(0), known.base)
    more = ((BESIDE, beside - tax), (TAX, tax))
    rows[1:1] = [(label, amount) for label, amount in more if amount.amount]
    return tuple(rows)


def _per_warranted_year(row: Row, owned: list[_Owned], beside: Money) -> Money:
    """What a year costs as long as the warranty runs: purchase and spares over its years, and running."""
    capital = total((one.found.capital for one in owned), beside.currency) + beside
    names = ("housing", "power", "cooling", "staff", "software", "insurance")
    running = total((one.found.amount(name) for one in owned for name in names), beside.currency)
    yearly = Money(running.amount / YEARS, running.currency)
    return unit_costs.per_useful_year(capital, row.months / 12, yearly_costs=yearly)


# --- per unit of the work --------------------------------------------------------------------------------------------


def _units(
    line: RfqLine, owned: list[_Owned], beside: Money, row: Row, known: _Known
) -> tuple[UnitCost, UnitCost]:
    """Of one asked line: a PFLOP-hour that does work, and a million tokens of its request's workload."""
    mine = [one for one in owned if one.part.position == line.position]
    slugs = {one.part.line.accelerator_slug for one in mine}
    try:
        if not mine:
            raise _Unknown(msg("No line answers what is asked for"))
        if len(slugs) > 1:
            raise _Unknown(msg("Its cards are of several kinds: the study knows no such mix"))
        plan = _plan(line.plan, slugs.pop(), mine)
    except _Unknown as error:
        nothing = UnitCost(line.position, None, error.why)
        return nothing, nothing
    cards = sum(one.cards for one in mine)
    share = Decimal(cards) / sum(one.cards for one in owned)
    cost = total((one.found.total for one in mine), known.base) + beside * share
    hour = Money(cost.amount / exact.to_decimal(sum(one.used_hours for one in mine)), known.base)
    return (
        _told(line, lambda: _pflop_hour(plan, hour)),
        _told(line, lambda: _million_tokens(line, plan, hour, cost)),
    )


def _told(line: RfqLine, find: Any) -> UnitCost:
    try:
        amount, told = find()
    except _Unknown as error:
        return UnitCost(line.position, None, error.why)
    except InputError as error:
        return UnitCost(line.position, None, error.message)
    return UnitCost(line.position, Money(amount.amount.quantize(UNIT_STEP), amount.currency), told)


def _plan(choice: PlanChoice, slug: str, mine: list[_Owned]) -> Mapping[str, Any]:
    """The study's plan on the offered card: the one that was chosen, else the one with the nearest number of cards."""
    study = choice.study
    plans = [] if study is None or study.result is None else study.result.get("plans", [])
    same = [plan for plan in plans if plan["accelerator_slug"] == slug and plan.get("seconds")]
    if not same:
        name = accelerator_label(slug)
        raise _Unknown(
            msg("The request's study estimates no plan on %(accelerator)s", accelerator=name)
        )
    cards = sum(one.cards for one in mine)
    found: Mapping[str, Any] = min(
        same,
        key=lambda plan: (
            plan["key"] != choice.plan_key,
            not plan.get("estimate"),
            abs(plan["cards"] - cards),
            plan["key"],
        ),
    )
    return found


def _pflop_hour(plan: Mapping[str, Any], hour: Money) -> tuple[Money, Message]:
    estimate = plan.get("estimate") or {}
    figure = (estimate.get("figures") or {}).get("mfu")
    share = figure["p50"] if figure else (estimate.get("saturation") or {}).get("compute")
    peaks = (estimate.get("accelerator") or {}).get("peak_flops") or {}
    names = SIXTEEN_BIT if figure else (plan.get("precision"), *SIXTEEN_BIT)
    name = next((one for one in names if peaks.get(one)), None)
    if not share or name is None:
        raise _Unknown(msg("The request's study tells no share of the peak that this work reaches"))
    told = msg("At %(share)s %% of the peak in %(precision)s, as in the study",
               share=round(share * 100, 1), precision=str(name).upper())  # fmt: skip
    return unit_costs.per_pflop_hour(hour, peaks[name], share), told


def _million_tokens(
    line: RfqLine, plan: Mapping[str, Any], hour: Money, cost: Money
) -> tuple[Money, Message]:
    workload, kind = line.plan.revision.workload, line.plan.revision.request.kind
    if kind in ONLINE and "input_tokens" in workload:
        each = workload["input_tokens"] + workload["output_tokens"]
        rate = workload["requests_per_day"] * each / DAY
        price = Money(cost.amount / (YEARS * HOURS_PER_YEAR), cost.currency)
        told = msg(
            "All servers of the line for %(rate)s tokens/s, the mean of the day", rate=round(rate)
        )
        return unit_costs.per_million_tokens(price, rate), told
    if kind in TRAINING and workload.get("tokens"):
        tokens = float(workload["tokens"])
    elif kind == Kind.BATCH_INFERENCE:
        tokens = float(workload["items"]) * (workload["input_tokens"] + workload["output_tokens"])
    else:
        raise _Unknown(msg("The request's work counts no tokens"))
    hours = plan["cards"] * plan["seconds"]["p50"] / 3600
    told = msg("%(hours)s card-hours for the run, as in the study", hours=round(hours))
    run = unit_costs.training_cost(hour * plan["cards"], hours / plan["cards"])
    return Money(run.amount * 1_000_000 / exact.to_decimal(tokens), run.currency), told
