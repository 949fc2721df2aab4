"""Whether a purchase may be headlined: the use that is known has to reach the break-even against renting.

Known are the need itself, what other teams' open requests ask for, and, beside a need that fills a fair part of the
purchase's life itself, what telemetry measured on the cards owned already. Use that is only taken for granted makes a
purchase look cheap and fills no server; a need of hours buys nothing, however busy other cards are.

The rent that owning is held against is the cheapest that does the same work, on whatever card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import DomainError
from core.messages import Message, msg
from core.money import Money
from planning.economics import defaults, exact
from planning.economics.break_even import BreakEvenLine, Rent, break_even_line
from planning.economics.ownership_case import OwnershipCase
from planning.economics.types import PaymentMode
from planning.study.search.costs import YEARS, case_of
from planning.study.search.holding import held, hours_there
from planning.study.search.pooled import share_of_rest
from planning.study.search.purchase_tax import kept_factor
from planning.study.search.ways import Mask

if TYPE_CHECKING:
    from planning.study.search.choice import World


@dataclass(frozen=True, slots=True)
class Backing:
    """How busy the servers of a purchase are known to be, and how busy they must be. Shares"""

    use: float
    least: float | None  # None: renting is cheaper at any utilisation
    told: float  # of `use` what may be shown
    own: float  # of `use` this need itself

    @property
    def lasting(self) -> bool:
        """Whether the need itself fills enough of the purchase's life that owning is a question at all."""
        return self.own >= least_own()

    @property
    def enough(self) -> bool:
        return self.lasting and self.least is not None and self.use >= self.least


class Backings:
    """The backing of each purchase of a world; break-evens are computed once for a server model and their number."""

    def __init__(self, world: World, meets: Mask) -> None:
        self.world = world
        self.rental = cheapest_rental(world, meets)
        self._lines: dict[tuple[int, int], tuple[OwnershipCase, BreakEvenLine]] = {}
        self._leases: dict[tuple[int, int, int], tuple[OwnershipCase, float]] = {}

    def of(self, i: int) -> Backing:
        """Of candidate `i`, which is a purchase."""
        world = self.world
        leased = world.candidates.lease[i] >= 0
        least = self._lease_break_even(i) if leased else self._break_even(i)
        return Backing(known_use(world, i), least, told_use(world, i), own_use(world, i))

    def headlined(self, i: int) -> bool:
        """Whether candidate `i` may be called the cheapest, the fastest or the safest."""
        return self.world.candidates.platform[i] < 0 or self.of(i).enough

    def doubt(self, i: int) -> Message | None:
        """Why candidate `i` may not; None where it may."""
        if self.headlined(i):
            return None
        found = self.of(i)
        if not found.lasting and found.least is not None and found.use >= found.least:
            return msg(
                "Not recommended for this need alone: of the time of what is bought it fills %(own)s %%, and below "
                "%(least)s %% owning is not a question that one need decides",
                own=round(100 * found.own, 1),
                least=round(100 * least_own()),
            )
        if self.world.candidates.lease[i] >= 0:
            return msg(
                "Not recommended: the cost counts on use by others that nobody measured. Known are %(use)s %% of "
                "the time of the lease; it pays from %(least)s %%",
                use=round(100 * found.told, 1),
                least="> 100" if found.least is None else round(100 * found.least),
            )
        if found.least is None:
            return msg(
                "Not recommended: before resale, buying this does not pay within %(years)s years, however busy it is",
                years=YEARS,
            )
        return msg(
            "Not recommended: the cost counts on use by others that nobody measured. Known are %(use)s %% of "
            "the servers' time over %(years)s years; buying pays from %(least)s %%",
            use=round(100 * found.told, 1),
            years=YEARS,
            least=round(100 * found.least),
        )

    def _break_even(self, i: int) -> float | None:
        c, snapshot = self.world.candidates, self.world.snapshot
        key = (int(c.platform[i]), int(c.instances[i]))
        if key not in self._lines:
            case = case_of(snapshot.platforms[key[0]], key[1], self.world.tax)
            line = break_even_line(case, defaults.value("risk.price_decline"), YEARS * 12)
            self._lines[key] = (case, line)
        case, line = self._lines[key]
        rent = rent_of(self.world, i, self.rental, case)
        if rent is None:  # nobody rents it out: the rule of thumb
            return defaults.value("advice.own_min_utilisation")
        return line.at(float(rent.per_card_hour.amount))

    def _lease_break_even(self, i: int) -> float | None:
        """Above it the lease, running included, costs less than renting the hours that are used. Share"""
        c, there = self.world.candidates, hours_there(self.world, i)
        key = (int(c.lease[i]), int(c.instances[i]), round(there))
        if key not in self._leases:
            found = held(self.world, i, card_hours=there)
            self._leases[key] = (found.case, float(found.life_cost.amount))
        case, life_cost = self._leases[key]
        rent = rent_of(self.world, i, self.rental, case)
        if rent is None:
            return defaults.value("advice.own_min_utilisation")
        least = life_cost / (there * float(rent.per_card_hour.amount))
        return least if least <= 1.0 else None


def least_own() -> float:
    """How much of a purchase's life a need fills itself before owning is a question for it. Share"""
    return defaults.value("advice.own_min_need")


def cheapest_rental(world: World, meets: Mask) -> int | None:
    """The rented candidate of least cost that meets the need; None without one."""
    c = world.candidates
    among = np.flatnonzero(meets & ((c.offer >= 0) | (c.mix >= 0)))
    return int(among[np.argmin(c.cost[among])]) if among.size else None


def own_use(world: World, i: int) -> float:
    """Of the servers of purchase `i` over their years: this need alone. Share"""
    return min(work_hours(world, i) / hours_there(world, i), 1.0)


def pooled_use(world: World, i: int) -> float:
    """Of what this need leaves of them: open requests of others. Share"""
    c = world.candidates
    server = world.snapshot.platforms[int(c.platform[i])].server
    rest = hours_there(world, i) * (1.0 - own_use(world, i))
    held_cards = int(c.instances[i]) * server.accelerators
    return share_of_rest(world.pooled.get(server.accelerator), held_cards, rest)


def known_use(world: World, i: int) -> float:
    """Of the servers of purchase `i` over their years: this need, and of the rest what was measured of others or what
    their open requests ask for, whichever is more. Share"""
    return _with_others(world, i, pooled_use(world, i))


def _with_others(world: World, i: int, pooled: float) -> float:
    own = own_use(world, i)
    return own + max(measured_use(world, i) or 0.0, pooled) * (1.0 - own)


def measured_use(world: World, i: int) -> float | None:
    """What telemetry measured, where it says something of purchase `i`: beside a need that lasts. Share"""
    return world.utilisation if own_use(world, i) >= least_own() else None


def told_use(world: World, i: int) -> float:
    """:func:`known_use` as far as it may be shown: demand of too few other teams is left out of it. Share"""
    return _with_others(world, i, pooled_use(world, i) if _told(world, i) else 0.0)


def told_pooled_use(world: World, i: int) -> float | None:
    """:func:`pooled_use` where it may be shown, else None. Share"""
    return pooled_use(world, i) if _told(world, i) else None


def _told(world: World, i: int) -> bool:
    pooled = world.pooled.get(world.accelerator(i).slug)
    return pooled is None or pooled.told


def work_hours(world: World, i: int) -> float:
    """Card-hours that candidate `i` takes for the need."""
    c = world.candidates
    return int(world.ways.cards[c.way[i]]) * float(c.hours[i])


def rent_of(world: World, i: int, rental: int | None, case: OwnershipCase) -> Rent | None:
    """Renting the work of one card-hour of purchase `i`: what the cheapest rental takes for the need, by card-hour of
    the purchase, or the same card on demand where that is less or nothing else is rented. Falls as prices fall; None
    where nothing is rented out in a currency that can be converted."""
    same = card_hour(world, world.accelerator(i).slug, PaymentMode.ON_DEMAND, case.currency)
    prices = [] if same is None else [same]
    if rental is not None:
        try:
            paid = world.snapshot.table.unit_price(
                Money(exact.to_decimal(float(world.candidates.cost[rental])), world.currency),
                case.currency,
            )
        except DomainError:
            pass
        else:
            each = paid.amount / exact.to_decimal(work_hours(world, i))
            prices.append(Money(each, case.currency))
    if not prices:
        return None
    least = min(prices, key=lambda price: price.amount)
    return Rent(least, defaults.value("risk.price_decline"))


def card_hour(world: World, slug: str, mode: PaymentMode, currency: str) -> Money | None:
    """The lowest price of one card for an hour, in `currency`, tax in it that is not reclaimed, at the rents that a
    what-if supposes; None when none is sold or no rate leads there."""
    factor = exact.to_decimal(kept_factor(world.tax) * world.price_factor)
    prices = []
    for row in world.market.by_accelerator.get(slug, np.empty(0, dtype=np.int64)):
        offer = world.market.offers[int(row)]
        if offer.mode is not mode:
            continue
        try:
            price = world.snapshot.table.unit_price(offer.price, currency)
        except DomainError:
            continue
        each = price.amount * factor / offer.accelerators
        prices.append(Money(each, currency))
    return min(prices, key=lambda price: price.amount) if prices else None
