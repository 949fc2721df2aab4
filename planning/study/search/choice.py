"""Which candidates meet the need, which of them nothing beats, and which are worth showing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

import numpy as np

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from planning.economics.site import envelope
from planning.economics.types import MODES, PaymentMode
from planning.estimators.types import Accelerator
from planning.study.request import StudyRequest
from planning.study.search import places
from planning.study.search.backing import Backings
from planning.study.search.costs import Candidates
from planning.study.search.data_costs import DataCosts
from planning.study.search.market import Market, lead_weeks, ready_on
from planning.study.search.mixes import Mix
from planning.study.search.pooled import OthersDemand
from planning.study.search.purchase_tax import PurchaseTax
from planning.study.search.snapshot import Platform, Room, Snapshot
from planning.study.search.ways import Floats, Ints, Mask, Ways

SHOWN = 24  # ranked plans, beside the frontier
ALIKE = 3  # plans of one accelerator and way of paying
FRONTIER = 24  # points that are kept
WITHOUT_BUDGET = 2.0  # times the cheapest: what "within budget" means when none was told
FASTER = 0.02  # less time than the cheapest: below it nothing is gained by paying more
WORTH = 0.10  # less time: below it more than twice the money buys nothing that is felt
TWICE = 2.0
OVERSIZE = 4  # bought servers hold at most so many times the cards that are needed
USUAL_SERVER = 8  # cards: one such server may be bought for less
REUSED = "reused"
MIXED = "mixed"


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """For each candidate and condition whether it holds. Columns of shape (n,)."""

    ends: Mask
    exact: Mask  # accuracy loss within the limit
    in_time: Mask
    ordered: Mask  # bought servers are there by the day they are needed
    exportable: Mask
    resident: Mask  # data that may not leave the country finds the cards in it
    housed: Mask  # the room that is to take bought servers can
    sized: Mask  # bought servers do not hold many times the cards that are needed
    affordable: Mask

    @property
    def meets(self) -> Mask:
        """All of them."""
        return (
            self.ends
            & self.exact
            & self.in_time
            & self.ordered
            & self.exportable
            & self.resident
            & self.housed
            & self.sized
            & self.affordable
        )


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Everything that the candidates' columns point into."""

    request: StudyRequest
    snapshot: Snapshot
    accelerators: tuple[Accelerator, ...]
    market: Market
    ways: Ways
    candidates: Candidates
    currency: str
    country: str
    budget: Money | None  # in `currency`
    price_factor: float = 1.0  # on everything that is rented: what if
    utilisation: float | None = None  # of bought cards beside the need; None: the usual one
    mixes: tuple[Mix, ...] = ()
    data: DataCosts | None = None  # of what is rented
    team_budgets: Mapping[str, Money] = field(
        default_factory=dict
    )  # cloud, purchase: what is left of each
    tax: PurchaseTax | None = None  # on what is bought or rented; None: not set
    pooled: Mapping[str, OthersDemand] = field(default_factory=dict)  # open requests of others

    def mode(self, i: int) -> str:
        """How candidate `i` is paid."""
        offer = int(self.candidates.offer[i])
        if offer >= 0:
            return str(self.market.offers[offer].mode)
        if self.candidates.mix[i] >= 0:
            return MIXED
        if self.candidates.platform[i] < 0:
            return REUSED
        if self.candidates.lease[i] >= 0:
            return str(PaymentMode.LEASED)
        own = self.candidates.room[i] >= 0
        return str(PaymentMode.OWNED if own else PaymentMode.COLOCATED)

    def accelerator(self, i: int) -> Accelerator:
        """The accelerator of candidate `i`."""
        return self.accelerators[int(self.ways.accelerator[self.candidates.way[i]])]

    def mode_codes(self) -> Ints:
        """Way of paying by number: those of MODES, then reuse, then mixes. Shape (n,)"""
        c = self.candidates
        owned, colocated = MODES.index(PaymentMode.OWNED), MODES.index(PaymentMode.COLOCATED)
        housed = np.where(c.room >= 0, owned, colocated)
        housed = np.where(c.lease >= 0, MODES.index(PaymentMode.LEASED), housed)
        codes = np.where(c.platform >= 0, housed, np.where(c.mix >= 0, len(MODES) + 1, len(MODES)))
        if self.market.table is not None:
            codes = np.where(c.offer >= 0, self.market.table.mode[c.offer], codes)
        return codes.astype(np.int64)


def judge(world: World) -> Verdicts:
    """Every condition on every candidate."""
    c, ways, limits = world.candidates, world.ways, world.request.constraints
    n = len(c)
    exact = np.ones(n, dtype=bool)
    if limits.accuracy_loss_limit is not None:
        exact = ways.accuracy_loss[c.way] <= limits.accuracy_loss_limit + 1e-12
    ordered, exportable, resident, housed, sized = (np.ones(n, dtype=bool) for _ in range(5))
    bound = limits.data_residence == "country"
    notes = world.snapshot.export_notes or {}
    for number, platform in enumerate(world.snapshot.platforms):
        own = c.platform == number
        if not own.any():
            continue
        accelerator = next(a for a in world.accelerators if a.slug == platform.server.accelerator)
        late = (
            limits.need_by is not None and ready_on(accelerator, world.snapshot.on) > limits.need_by
        )
        ordered[own] = not late
        bought_cards = c.instances[own] * platform.server.accelerators
        sized[own] = bought_cards <= np.maximum(OVERSIZE * ways.cards[c.way[own]], USUAL_SERVER)
        note = notes.get(accelerator.slug, "")
        exportable[own] = not places.barred(note, world.country)
        for place, room in enumerate(world.snapshot.rooms):
            there = own & (c.room == place)
            exportable[there] = not places.barred(note, room.country or world.country)
            resident[there] = not bound or room.country in ("", world.country)
            housed[there] = c.instances[there] <= servers_that_fit(room, platform)
    for number, stock in enumerate(world.snapshot.stock):
        resident[c.stock == number] = not bound or stock.country in ("", world.country)
    affordable = np.ones(n, dtype=bool)
    if world.budget is not None:
        affordable = c.amount <= float(world.budget.amount)
    ends = np.isfinite(c.cost)
    return Verdicts(
        ends,
        exact,
        ends & (c.seconds <= ways.limit[c.way]),
        ordered,
        exportable,
        resident,
        housed,
        sized,
        affordable,
    )


def servers_that_fit(room: Room, platform: Platform) -> int:
    """Servers of the model that `room` carries; none where that cannot be told (the weight is not known)."""
    try:
        return envelope(room.site, platform.server).servers
    except InputError:
        return 0


def undominated(cost: Floats, seconds: Floats, loss: Floats) -> Mask:
    """Where nothing is at least as good in all three and better in one. Shape (n,)

    Sorted by cost, an entry survives when it is faster than all cheaper ones of no greater loss. O(n log n) for each
    distinct loss.
    """
    n = cost.size
    keep = np.zeros(n, dtype=bool)
    for level in np.unique(loss):
        among = np.flatnonzero(loss <= level)
        order = among[np.lexsort((loss[among], seconds[among], cost[among]))]
        fastest = np.minimum.accumulate(seconds[order])
        first = np.concatenate(([True], seconds[order][1:] < fastest[:-1]))
        keep[order[first & (loss[order] == level)]] = True
    return keep


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """Indexes into the candidates."""

    verdicts: Verdicts
    ranked: Ints  # worth showing, cheapest first
    frontier: Ints  # undominated, cheapest first
    cheapest: int | None
    fastest: int | None
    backings: Backings


def choose(world: World) -> Choice:
    """What meets the need, ranked by cost; the frontier; the cheapest and the fastest within budget."""
    verdicts = judge(world)
    c = world.candidates
    good = np.flatnonzero(verdicts.meets)
    backings = Backings(world, verdicts.meets)
    if not good.size:
        nothing = np.empty(0, dtype=np.int64)
        return Choice(verdicts, nothing, nothing, None, None, backings)
    spared = world.ways.spared[
        c.way[good]
    ]  # at the same cost the way that uses its cards comes first
    order = good[np.lexsort((c.seconds[good], spared, c.cost[good]))]
    cheapest = _first_backed(order, backings, int(order[0]))
    # what idle cards cost says nothing of what one would pay for speed
    paid = order[(c.stock[order] < 0) & (c.cost[order] >= c.cost[cheapest])]
    least = float(c.cost[paid[0] if paid.size else cheapest])
    most = math.inf if world.budget is not None else WITHOUT_BUDGET * least
    near = good[c.cost[good] <= most]
    if world.budget is None:
        paid_for = near[within_team_budget(world)[near]]
        near = paid_for if paid_for.size else near
    near = near[worth_it(c.cost[near], c.seconds[near])]
    fastest = _first_backed(near[np.lexsort((c.cost[near], c.seconds[near]))], backings, cheapest)
    if c.seconds[fastest] > (1 - FASTER) * c.seconds[cheapest]:
        fastest = cheapest
    loss = world.ways.accuracy_loss[c.way]
    best = undominated(c.cost[good], c.seconds[good], loss[good])
    frontier = _thinned(good[best], c)
    sure = order[sure_to_hold(world)[order]]
    surest = [] if not sure.size else [_first_backed(sure, backings, int(sure[0]))]
    fixed = list(dict.fromkeys([cheapest, fastest, *surest, *map(int, frontier)]))
    ranked = np.array(_told_apart(world, fixed, _ranked(world, order)), dtype=np.int64)
    ranked = ranked[np.lexsort((c.seconds[ranked], c.cost[ranked]))]
    return Choice(verdicts, ranked, frontier, cheapest, fastest, backings)


def sure_to_hold(world: World) -> Mask:
    """Whether the time or latency asked for is held at the P90 of the estimate too. Shape (n,)"""
    c, ways = world.candidates, world.ways
    found: Mask = c.seconds * ways.time_high[c.way] <= ways.limit[c.way]
    return found


def _first_backed(order: Ints, backings: Backings, otherwise: int) -> int:
    """The first that may be headlined; `otherwise` where none may."""
    return next((int(i) for i in order if backings.headlined(int(i))), otherwise)


def worth_it(cost: Floats, seconds: Floats) -> Mask:
    """Where nothing that costs less than half takes hardly longer. Shape (n,)"""
    order = np.argsort(cost, kind="stable")
    quickest = np.minimum.accumulate(seconds[order])
    cheaper = np.searchsorted(cost[order], cost / TWICE, side="left")
    rival = np.where(cheaper > 0, quickest[cheaper - 1], np.inf)
    found: Mask = seconds <= (1 - WORTH) * rival
    return found


def _told_apart(world: World, fixed: list[int], others: list[int]) -> list[int]:
    """`fixed`, and of the others one for each card, payment, place, precision and cost: the quickest, then the one of
    fewest cards."""
    kept = {_looks(world, i): i for i in fixed}
    for i in others:
        rival = kept.setdefault(_looks(world, i), i)
        if rival not in fixed and _rank(world, i) < _rank(world, rival):
            kept[_looks(world, i)] = i
    return list(dict.fromkeys([*fixed, *kept.values()]))


def _looks(world: World, i: int) -> tuple[object, ...]:
    """What a reader tells plans of the same cost apart by."""
    c, way = world.candidates, int(world.candidates.way[i])
    place: tuple[object, ...] = (int(c.platform[i]), int(c.stock[i]), int(c.room[i]))
    if c.offer[i] >= 0:
        place = world.market.offers[int(c.offer[i])].place
    elif c.mix[i] >= 0:
        place = world.mixes[int(c.mix[i])].base.place
    return (
        int(world.ways.accelerator[way]), world.mode(i), place, world.ways.precision[way],
        round(float(c.cost[i]), 2),
    )  # fmt: skip


def _rank(world: World, i: int) -> tuple[float, int]:
    """Quickest first, then fewest cards."""
    c = world.candidates
    return float(c.seconds[i]), int(world.ways.cards[c.way[i]])


def within_team_budget(world: World) -> Mask:
    """Whether the team's budget for that kind of spend has what is to be paid; unknown counts as yes. Shape (n,)

    An approver may go beyond a budget, so this rules nothing out.
    """
    c = world.candidates
    found = np.ones(len(c), dtype=bool)
    purchase = c.platform >= 0
    for kind, among in (("purchase", purchase), ("cloud", ~purchase)):
        left = world.team_budgets.get(kind)
        if left is not None:
            found[among] = c.amount[among] <= float(left.amount)
    return found


def _thinned(frontier: Ints, c: Candidates) -> Ints:
    """The frontier by cost, evenly thinned to what a chart can label; both ends stay."""
    ordered = frontier[np.argsort(c.cost[frontier], kind="stable")]
    if ordered.size <= FRONTIER:
        return ordered
    kept = np.unique(np.linspace(0, ordered.size - 1, FRONTIER).round().astype(np.int64))
    return ordered[kept]


def _ranked(world: World, order: Ints) -> list[int]:
    """The cheapest, no more than a few of one accelerator and way of paying, and one of each way and payment."""
    c, codes = world.candidates, world.mode_codes()
    accelerator = world.ways.accelerator[c.way]
    seen: set[tuple[int, int]] = set()
    alike: dict[tuple[int, int], int] = {}
    shown: list[int] = []
    for i in order:
        one, kind = (int(c.way[i]), int(codes[i])), (int(accelerator[i]), int(codes[i]))
        if one in seen or alike.get(kind, 0) >= ALIKE:
            continue
        seen.add(one)
        alike[kind] = alike.get(kind, 0) + 1
        shown.append(int(i))
        if len(shown) == SHOWN:
            break
    return shown


def timing(accelerator: Accelerator, on: date) -> Message:
    """How long buying takes, in words."""
    return msg(
        "Ordered today, %(name)s works on %(day)s (%(weeks)s weeks to deliver, then acceptance)",
        name=accelerator.name,
        day=ready_on(accelerator, on).isoformat(),
        weeks=round(lead_weeks(accelerator, on)),
    )
