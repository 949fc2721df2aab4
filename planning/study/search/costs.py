"""What each way costs by each offer, on bought servers and on idle ones: columns of candidates, in one currency.

Floats for the search; the plans that are shown are charged again in exact money (``plans.py``), and a test holds both
to the cent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import InputError
from core.money import Money, minor_digits
from planning.economics import defaults, exact
from planning.economics.billing import instances_needed
from planning.economics.exchange import RateTable
from planning.economics.ownership import LINE_LABELS, evaluate, order_lines
from planning.economics.ownership_case import Housing, OwnershipCase, default_case
from planning.economics.pricing import price_candidates, round_half_up
from planning.economics.spot import expected_hours, reclaim_mtbf_hours
from planning.economics.types import HOURS_PER_YEAR, MODES, CostLine, PaymentMode
from planning.estimators.types import Accelerator
from planning.study.request import StudyRequest
from planning.study.search.data_costs import DataCosts
from planning.study.search.market import Market
from planning.study.search.purchase_tax import TAX_LABEL, PurchaseTax
from planning.study.search.snapshot import Platform, Room, Snapshot, Unpriced
from planning.study.search.ways import Floats, Ints, Ways

YEARS = 3  # of service over which bought servers are counted
SHELL = 1.5  # a server's power over its cards' TDP, where no server is known [1]
SPOT = MODES.index(PaymentMode.SPOT)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """A way and how it is paid. Columns of shape (n,); exactly one of offer, platform, stock and mix is not -1."""

    way: Ints
    offer: Ints  # row of the market
    platform: Ints  # of the snapshot
    stock: Ints  # of the snapshot
    mix: Ints  # of the world's mixes
    room: (
        Ints  # of the snapshot, where bought or leased servers stand; -1: a colocation, or neither
    )
    lease: Ints  # of the snapshot, by which the servers of `platform` are had; -1: they are bought, or neither
    cost: Floats  # of the need; inf: it would never end
    amount: Floats  # to be paid for it: the cost, or for a purchase the capital and its tax
    hours: Floats  # billed, or held
    seconds: Floats  # time of the run, or latency [s]
    instances: Ints

    def __len__(self) -> int:
        return int(self.way.size)


def rented(
    request: StudyRequest,
    ways: Ways,
    accelerators: tuple[Accelerator, ...],
    market: Market,
    data: DataCosts | None = None,
) -> Candidates:
    """Every way by every offer of its accelerator, with what its data costs there."""
    table = market.table
    pairs_way: list[Ints] = []
    pairs_offer: list[Ints] = []
    order = np.argsort(ways.accelerator, kind="stable")
    ends = np.searchsorted(ways.accelerator[order], np.arange(len(accelerators) + 1))
    for index, accelerator in enumerate(accelerators):
        offers = market.by_accelerator.get(accelerator.slug)
        own = order[ends[index] : ends[index + 1]]
        if offers is None or not own.size:
            continue
        pairs_way.append(np.repeat(own, offers.size))
        pairs_offer.append(np.tile(offers, own.size))
    if table is None or not pairs_way:
        return none()
    way, offer = np.concatenate(pairs_way), np.concatenate(pairs_offer)
    holds = table.accelerators[offer] >= ways.linked[way]
    way, offer = way[holds], offer[holds]
    if not way.size:
        return none()
    cards = ways.cards[way]
    hours, seconds = ways.hours[way], ways.seconds[way]
    instances = instances_needed(cards, table.accelerators[offer])
    spot = table.mode[offer] == SPOT
    if spot.any():
        stretch = spot_stretch(request, ways, way[spot], offer[spot], market, instances[spot])
        hours, seconds = hours.copy(), seconds.copy()
        hours[spot] *= stretch
        seconds[spot] *= stretch
    finite = np.isfinite(hours)
    cost = np.full(way.size, np.inf)
    priced = price_candidates(
        table,
        offer[finite],
        cards[finite],
        hours[finite],
        starts=ways.starts[way][finite],
        span_hours=held_hours(ways, way, hours)[finite],
    )
    cost[finite] = priced.total
    if data is not None:
        cost[finite] += data.amounts(held_hours(ways, way, hours)[finite], offer[finite])
    nothing = np.full(way.size, -1, dtype=np.int64)
    return Candidates(
        way,
        offer,
        nothing,
        nothing,
        nothing,
        nothing,
        nothing,
        cost,
        cost,
        hours,
        seconds,
        instances,
    )


def taxed(hired: Candidates, tax: PurchaseTax | None, currency: str) -> Candidates:
    """What is rented with its tax: always in what is to be paid, in the cost where it is not reclaimed."""
    if tax is None or not len(hired):
        return hired
    due = round_half_up(hired.cost * tax.rent_rate, minor_digits(currency))
    paid = hired.cost + due
    return replace(hired, amount=paid, cost=hired.cost if tax.reclaimed else paid)


def held_hours(ways: Ways, way: Ints, hours: Floats) -> Floats:
    """From the first hour to the last of each candidate. [h]"""
    found: Floats = np.maximum(ways.span_hours[way], hours)
    return found


def spot_stretch(
    request: StudyRequest, ways: Ways, way: Ints, offer: Ints, market: Market, instances: Ints
) -> Floats:
    """Expected hours on spot over undisturbed hours; infinite where reclaims come faster than work. [1]"""
    share = np.array(
        [
            defaults.value("spot.reclaim_per_month") if o.reclaim_per_month is None else o.reclaim_per_month
            for o in market.offers
        ]
    )[offer]  # fmt: skip
    work = ways.work_hours[way]
    interval = request.constraints.checkpoint_seconds
    expected = expected_hours(
        work,
        mtbf_hours=reclaim_mtbf_hours(share, instances),
        checkpoint_hours=ways.checkpoint_hours[way],
        restart_hours=defaults.value("spot.restart_minutes") / 60,
        interval_hours=None if interval is None else np.minimum(interval / 3600.0, work),
    )
    result: Floats = expected / work
    return result


# ---- Owning ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owned:
    """Servers for a way: what they cost to come by, what they cost over their life, and the need's share of it."""

    case: OwnershipCase
    capital: Money
    life_cost: Money  # purchase to resale, at the utilisation that results
    resale: Money
    share: float  # of the life's card-hours that this need takes
    cost: Money  # the share of the life cost, in the case's currency
    life_hours: float  # card-hours of the life, those of repair left out


def owned_cost(
    snapshot: Snapshot,
    platform: Platform,
    servers: int,
    card_hours: float,
    utilisation: float | None = None,
    room: Room | None = None,
    tax: PurchaseTax | None = None,
) -> Owned:
    """What `card_hours` on `servers` bought for them cost, other work using them for the usual share of the rest; in
    `room`, or in a colocation.

    share = H / (H + u (A - H)), A the card-hours of the life and u the usual utilisation: a need that lasts as long as
    the servers pays for all of them, a short one for what it takes of the hours that are used at all.
    """
    case = case_of(platform, servers, tax)
    if room is not None:
        case = housed(case, room, snapshot.table)
    life = case.accelerators * HOURS_PER_YEAR * case.years * case.availability
    used = min(card_hours, life)
    beside = defaults.value("utilisation.owned") if utilisation is None else utilisation
    busy = used + beside * (life - used)
    found = evaluate(replace(case, utilisation=min(round(busy / life, 4), 1.0)))
    share = used / busy
    cost = Money(found.total.amount * exact.to_decimal(share), case.currency).rounded()
    return Owned(found.case, found.capital, found.total, found.resale, share, cost, life)


def case_of(platform: Platform, servers: int, tax: PurchaseTax | None) -> OwnershipCase:
    """Owning so many of the servers, at their price before tax, taxed as the organisation is."""
    return _case(platform, servers, tax, defaults.stamp())


@lru_cache(maxsize=4096)
def _case(
    platform: Platform, servers: int, tax: PurchaseTax | None, _defaults: str
) -> OwnershipCase:
    server = platform.server
    if tax is not None and platform.tax_included:
        net = Money(server.price.amount / (1 + exact.to_decimal(tax.rate)), server.price.currency)
        server = replace(server, price=net)
    return replace(
        default_case(server, servers, years=YEARS),
        vat_rate=0.0 if tax is None else tax.rate,
        vat_reclaimed=tax is None or tax.reclaimed,
    )


def paid_at_order(snapshot: Snapshot, case: OwnershipCase, currency: str) -> tuple[CostLine, ...]:
    """What the order of a purchase comes to in the study's currency, tax as a line of its own; each line is rounded."""
    lines = (
        CostLine(name, TAX_LABEL if name == "vat" else LINE_LABELS[name], amount)
        for name, money in order_lines(case).items()
        if (amount := snapshot.table.unit_price(money, currency).rounded()).amount
    )
    return tuple(lines)


def housed(case: OwnershipCase, room: Room, table: RateTable) -> OwnershipCase:
    """The case in an own room: its charge, tariff and PUE where they are stated. Raises InputError without a rate."""
    changes: dict[str, Any] = {}
    if room.charge is not None:
        charge = table.unit_price(room.charge, case.currency)
        changes["housing"] = Housing(per_kw_month=charge)
    if room.tariff is not None:
        changes["tariff"] = (table.unit_price(room.tariff, case.currency),)
    if room.pue is not None:
        changes["pue"] = room.pue
    return replace(case, **changes)


def room_of(snapshot: Snapshot, c: Candidates, i: int) -> Room | None:
    """The own room in which the servers of candidate `i` would stand."""
    return snapshot.rooms[int(c.room[i])] if c.room[i] >= 0 else None


def bought(
    ways: Ways,
    accelerators: tuple[Accelerator, ...],
    snapshot: Snapshot,
    currency: str,
    *,
    utilisation: float | None = None,
    tax: PurchaseTax | None = None,
) -> tuple[Candidates, list[Unpriced]]:
    """Every way on servers that are bought for it, in a colocation and in each own room; servers whose currency has no
    rate or no defaults are named."""
    amounts: dict[tuple[int, int], float] = {}  # of an order, by server model and their number

    def price(one: Holding, room: Room | None, way: int, servers: int) -> Prices:
        platform = snapshot.platforms[one.platform]
        used = int(ways.cards[way]) * float(ways.hours[way])
        found = owned_cost(snapshot, platform, servers, used, utilisation, room, tax)
        cost = snapshot.table.unit_price(found.cost, currency).rounded()
        if (one.platform, servers) not in amounts:
            paid = paid_at_order(snapshot, found.case, currency)
            amounts[one.platform, servers] = float(sum(line.amount.amount for line in paid))
        return float(cost.amount), amounts[one.platform, servers]

    return holdings(
        ways,
        accelerators,
        snapshot,
        [Holding(p.server.name, number) for number, p in enumerate(snapshot.platforms)],
        price,
    )


@dataclass(frozen=True, slots=True)
class Holding:
    """A server model, and the lease by which it is had (-1: it is bought)."""

    name: str
    platform: int  # of the snapshot
    lease: int = -1


Prices = tuple[float, float] | None  # cost and amount in the study's currency; None: no such way


def holdings(
    ways: Ways,
    accelerators: tuple[Accelerator, ...],
    snapshot: Snapshot,
    among: Sequence[Holding],
    price: Callable[[Holding, Room | None, int, int], Prices],
) -> tuple[Candidates, list[Unpriced]]:
    """Every way on each of `among`, in a colocation and in each own room, at `price(holding, room, way, servers)`.

    What cannot be priced (InputError) is named and takes nothing else with it: a room without a rate leaves the other
    rooms, a lease the other leases.
    """
    rows: list[tuple[int, int, int, int, int, float, float]] = []
    unpriced: dict[tuple[str, str], Unpriced] = {}
    slugs = [accelerator.slug for accelerator in accelerators]
    for one in among:
        server = snapshot.platforms[one.platform].server
        if server.accelerator not in slugs:
            continue
        own: Ints = np.flatnonzero(ways.accelerator == slugs.index(server.accelerator))
        own = own[ways.linked[own] <= server.accelerators]
        for place, room in enumerate((None, *snapshot.rooms), start=-1):
            for way in map(int, own):
                servers = -(-int(ways.cards[way]) // server.accelerators)
                try:
                    found = price(one, room, way, servers)
                except InputError as error:
                    name = one.name if room is None else f"{one.name} · {room.site.name}"
                    unpriced.setdefault(
                        (one.name, str(error.message)), Unpriced(name, error.message)
                    )
                    continue
                if found is not None:
                    rows.append((way, one.platform, place, one.lease, servers, *found))
    if not rows:
        return none(), list(unpriced.values())

    def whole(column: int) -> Ints:
        return np.array([row[column] for row in rows], dtype=np.int64)

    taken = whole(0)
    nothing = np.full(taken.size, -1, dtype=np.int64)
    candidates = Candidates(
        way=taken, offer=nothing, platform=whole(1), stock=nothing, mix=nothing, room=whole(2), lease=whole(3),
        cost=np.array([row[5] for row in rows]), amount=np.array([row[6] for row in rows]),
        hours=ways.hours[taken], seconds=ways.seconds[taken], instances=whole(4),
    )  # fmt: skip
    return candidates, list(unpriced.values())


# ---- Reuse -------------------------------------------------------------------------------------------------------


def idle_hour_cost(accelerator: Accelerator, currency: str, snapshot: Snapshot) -> Money | None:
    """Power and cooling of one owned card for an hour under load: the rest is paid whether it works or not.

    None where the card's power is not published, or no rate leads to the currency.
    """
    if accelerator.tdp is None:
        return None
    code = "CNY" if currency == "CNY" else "USD"
    servers = {
        p.server.accelerator: p.server.max_power_kw / p.server.accelerators
        for p in snapshot.platforms
    }
    watts = servers.get(accelerator.slug, accelerator.tdp * SHELL / 1000) * defaults.value(
        "power.load_share"
    )
    pue = defaults.value("pue.china" if code == "CNY" else "pue.colocation")
    tariff = Money(exact.to_decimal(defaults.value(f"tariff.{code.lower()}_per_kwh")), code)
    try:
        return snapshot.table.unit_price(tariff * exact.to_decimal(watts * pue), currency)
    except InputError:
        return None


def reused(
    ways: Ways, accelerators: tuple[Accelerator, ...], snapshot: Snapshot, currency: str
) -> Candidates:
    """Every way on cards that are owned already and free."""
    rows: list[tuple[int, int, float]] = []
    for number, stock in enumerate(snapshot.stock):
        for index, accelerator in enumerate(accelerators):
            if accelerator.slug != stock.accelerator:
                continue
            hourly = idle_hour_cost(accelerator, currency, snapshot)
            if hourly is None:
                continue
            able = (ways.accelerator == index) & (ways.cards <= stock.free)
            rows += [
                (int(i), number, float(reuse_cost(hourly, ways, int(i)).amount))
                for i in np.flatnonzero(able)
            ]
    if not rows:
        return none()
    way = np.array([row[0] for row in rows], dtype=np.int64)
    nothing = np.full(way.size, -1, dtype=np.int64)
    cost = np.array([row[2] for row in rows])
    stock_index = np.array([row[1] for row in rows], dtype=np.int64)
    return Candidates(
        way, nothing, nothing, stock_index, nothing, nothing, nothing, cost, cost, ways.hours[way], ways.seconds[way],
        ways.cards[way],
    )  # fmt: skip


def reuse_cost(hourly: Money, ways: Ways, way: int) -> Money:
    """Power of a way on owned cards, rounded once."""
    return exact.times(hourly, float(ways.cards[way]) * float(ways.hours[way]))


def join(parts: list[Candidates]) -> Candidates:
    """All candidates in one table."""
    return Candidates(
        **{name: np.concatenate([getattr(p, name) for p in parts]) for name in Candidates.__slots__}
    )


def none() -> Candidates:
    """No candidate."""
    whole, real = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
    return Candidates(
        whole, whole, whole, whole, whole, whole, whole, real, real, real, real, whole
    )
