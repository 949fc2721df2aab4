"""Servers leased by quotation: a monthly rate over whole terms, a deposit that comes back, a price to keep them.

The lessor's servers stand, are powered and are run as bought ones are; network and storage beside them are bought.
Nothing is sold at the end; keeping them at the quoted price is told beside their worth by then, and is in no cost.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np

from core.messages import Message, msg
from core.money import Money, total
from planning.economics import defaults, exact
from planning.economics.ownership import LINE_LABELS, capital_lines, running_costs
from planning.economics.ownership_case import OwnershipCase
from planning.economics.types import HOURS_PER_MONTH, CostLine
from planning.estimators.types import Accelerator
from planning.study.search.costs import (
    Candidates,
    Holding,
    Owned,
    Prices,
    case_of,
    holdings,
    housed,
)
from planning.study.search.purchase_tax import TAX_LABEL, PurchaseTax
from planning.study.search.snapshot import Lease, Platform, Room, Snapshot, Unpriced
from planning.study.search.ways import Ways

BESIDE = ("network", "storage")  # capital that a lease of servers does not bring


def terms_of(lease: Lease, span_hours: float) -> int:
    """How many terms, one after the other, hold the servers for `span_hours`."""
    return max(math.ceil(round(span_hours / (lease.months * HOURS_PER_MONTH), 9)), 1)


def leased_cost(
    snapshot: Snapshot,
    lease: Lease,
    platform: Platform,
    servers: int,
    card_hours: float,
    span_hours: float,
    utilisation: float | None = None,
    room: Room | None = None,
    tax: PurchaseTax | None = None,
) -> Owned:
    """What `card_hours` on `servers` leased for them cost: the need's share of the whole terms, others using the rest.

    The share is that of bought servers, over the months of the lease. Raises InputError without an exchange rate.
    """
    case = case_of(platform, servers, tax)
    if room is not None:
        case = housed(case, room, snapshot.table)
    months = lease.months * terms_of(lease, span_hours)
    life = case.accelerators * HOURS_PER_MONTH * months * case.availability
    used = min(card_hours, life)
    beside = defaults.value("utilisation.owned") if utilisation is None else utilisation
    busy = used + beside * (life - used)
    case = replace(case, utilisation=min(round(busy / life, 4), 1.0), years=math.ceil(months / 12))
    lines = lease_lines(snapshot, lease, case, months)
    kept = tuple(
        name for name in lines if name != "deposit" and (name != "vat" or not case.vat_reclaimed)
    )
    paid = total((lines[name] for name in kept), case.currency)
    whole = paid + _running(case, months)
    share = used / busy
    cost = Money(whole.amount * exact.to_decimal(share), case.currency).rounded()
    zero = Money(Decimal(0), case.currency)
    return Owned(case, paid, whole, zero, share, cost, life)


def lease_lines(
    snapshot: Snapshot, lease: Lease, case: OwnershipCase, months: int
) -> dict[str, Money]:
    """What is agreed to with the lessor, and bought beside, in the case's currency; each line rounded."""

    def here(money: Money) -> Money:
        return snapshot.table.unit_price(money, case.currency)

    capital = capital_lines(case)
    lines = {"lease": (here(lease.monthly) * (months * case.servers)).rounded()}
    lines |= {name: capital[name] for name in BESIDE}
    taxed = total(lines.values(), case.currency)
    if lease.deposit is not None:
        lines["deposit"] = (here(lease.deposit) * case.servers).rounded()
    lines["vat"] = exact.times(taxed, case.vat_rate)
    return lines


_LABELS = {
    **LINE_LABELS,
    "lease": msg("Lease, all months"),
    "deposit": msg("Deposit, returned at the end"),
    "vat": TAX_LABEL,
}


def lease_order(
    snapshot: Snapshot, lease: Lease, case: OwnershipCase, months: int, currency: str
) -> tuple[CostLine, ...]:
    """The same in the study's currency, as the lines of what is to be approved."""
    return tuple(
        CostLine(name, _LABELS[name], amount)
        for name, money in lease_lines(snapshot, lease, case, months).items()
        if (amount := snapshot.table.unit_price(money, currency).rounded()).amount
    )


def _running(case: OwnershipCase, months: int) -> Money:
    """Housing, power, staff and the rest over the months: whole years, and of the last its part."""
    whole, rest = divmod(months, 12)
    amount = Decimal(0)
    for yearly in running_costs(case).values():
        amount += sum((money.amount for money in yearly[:whole]), Decimal(0))
        if rest:
            amount += yearly[whole].amount * rest / 12
    return Money(amount, case.currency).rounded()


def leased(
    ways: Ways,
    accelerators: tuple[Accelerator, ...],
    snapshot: Snapshot,
    currency: str,
    *,
    utilisation: float | None = None,
    tax: PurchaseTax | None = None,
) -> tuple[Candidates, list[Unpriced]]:
    """Every way on servers that are leased for it, in a colocation and in each own room; what has no rate is named."""
    numbers = {platform.server.slug: number for number, platform in enumerate(snapshot.platforms)}
    amounts: dict[tuple[int, int, int], float] = {}  # of an order, by lease, servers and months

    def price(one: Holding, room: Room | None, way: int, servers: int) -> Prices:
        lease, hours = snapshot.leases[one.lease], float(ways.hours[way])
        span = max(float(ways.span_hours[way]), hours)
        if not math.isfinite(span):
            return None
        platform, used = snapshot.platforms[one.platform], int(ways.cards[way]) * hours
        found = leased_cost(snapshot, lease, platform, servers, used, span, utilisation, room, tax)
        cost = snapshot.table.unit_price(found.cost, currency).rounded()
        key = (one.lease, servers, lease.months * terms_of(lease, span))
        if key not in amounts:
            order = lease_order(snapshot, lease, found.case, key[2], currency)
            amounts[key] = float(sum(line.amount.amount for line in order))
        return float(cost.amount), amounts[key]

    among = [
        Holding(f"{lease.lessor} · {snapshot.platforms[number].server.name}", number, index)
        for index, lease in enumerate(snapshot.leases)
        if (number := numbers.get(lease.platform)) is not None
    ]
    return holdings(ways, accelerators, snapshot, among, price)


def lease_notes(
    snapshot: Snapshot, lease: Lease, case: OwnershipCase, months: int, share: float, currency: str
) -> list[Message]:
    """What the lease binds to, what of it this need carries, and whether keeping the servers would pay."""

    def here(money: Money) -> str:
        return snapshot.table.unit_price(money, currency).rounded().about()

    found = [
        msg(
            "Leased of %(lessor)s for %(months)s months: %(servers)s × %(rate)s a month, before tax",
            lessor=lease.lessor, months=months, servers=case.servers, rate=here(lease.monthly),
        ),
        msg("This need carries %(share)s %% of the lease; others are taken to use the rest",
            share=round(100 * share, 1)),
    ]  # fmt: skip
    if lease.deposit is None:
        found.append(msg("No deposit is quoted"))
    if lease.buyout is None:
        found.append(msg("No price to keep the servers is quoted"))
        return found
    years = months / 12
    curve = defaults.curve("residual.h100")
    left = float(np.interp(years, range(len(curve) + 1), (1.0, *curve)))
    worth = case.server.price * exact.to_decimal(round(left, 4))
    found.append(
        msg(
            "They may be kept for %(buyout)s each at the end; by then one is usually worth %(worth)s",
            buyout=here(lease.buyout), worth=here(worth),
        )
    )  # fmt: skip
    return found
