"""Whether a purchase may be headlined: the use that is known has to reach the break-even against renting.

Known are the need itself, what telemetry measured on the cards owned already, and what other teams' open requests ask
for. Use that is only taken for granted
makes a purchase look cheap and fills no server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import DomainError
from core.messages import Message, msg
from core.money import Money
from planning.economics import defaults, exact
from planning.economics.break_even import Rent, break_even_utilisation
from planning.economics.ownership_case import OwnershipCase
from planning.economics.types import PaymentMode
from planning.study.search.costs import YEARS, case_of
from planning.study.search.holding import held, hours_there
from planning.study.search.pooled import share_of_rest
from planning.study.search.purchase_tax import kept_factor

if TYPE_CHECKING:
    from planning.study.search.choice import World


@dataclass(frozen=True, slots=True)
class Backing:
    """How busy the servers of a purchase are known to be, and how busy they must be. Shares"""

    use: float
    least: float | None  # None: renting is cheaper at any utilisation
    told: float  # of `use` what may be shown

    @property
    def enough(self) -> bool:
        return self.least is not None and self.use >= self.least


class Backings:
    """The backing of each purchase of a world; break-evens are computed once for a server model and their number."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._least: dict[tuple[int, int, int], float | None] = {}

    def of(self, i: int) -> Backing:
        """Of candidate `i`, which is a purchase."""
        c = self.world.candidates
        key = (int(c.platform[i]), int(c.instances[i]), int(c.lease[i]))
        if key not in self._least:
            self._least[key] = (
                self._lease_break_even(i) if c.lease[i] >= 0 else self._break_even(*key[:2])
            )
        return Backing(known_use(self.world, i), self._least[key], told_use(self.world, i))

    def headlined(self, i: int) -> bool:
        """Whether candidate `i` may be called the cheapest, the fastest or the safest."""
        return self.world.candidates.platform[i] < 0 or self.of(i).enough

    def doubt(self, i: int) -> Message | None:
        """Why candidate `i` may not; None where it may."""
        if self.headlined(i):
            return None
        found = self.of(i)
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

    def _break_even(self, platform: int, servers: int) -> float | None:
        server = self.world.snapshot.platforms[platform].server
        case = case_of(self.world.snapshot.platforms[platform], servers, self.world.tax)
        rent = rent_of(self.world, server.accelerator, case)
        if rent is None:  # nobody rents it out: the rule of thumb
            return defaults.value("advice.own_min_utilisation")
        return break_even_utilisation(case, rent, YEARS * 12)

    def _lease_break_even(self, i: int) -> float | None:
        """Above it the lease, running included, costs less than renting the hours that are used. Share"""
        there = hours_there(self.world, i)
        found = held(self.world, i, card_hours=there)
        rent = rent_of(self.world, found.case.server.accelerator, found.case)
        if rent is None:
            return defaults.value("advice.own_min_utilisation")
        least = float(found.life_cost.amount) / (there * float(rent.per_card_hour.amount))
        return least if least <= 1.0 else None


def own_use(world: World, i: int) -> float:
    """Of the servers of purchase `i` over their years: this need alone. Share"""
    c = world.candidates
    return min(int(world.ways.cards[c.way[i]]) * float(c.hours[i]) / hours_there(world, i), 1.0)


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
    return own + max(world.utilisation or 0.0, pooled) * (1.0 - own)


def told_use(world: World, i: int) -> float:
    """:func:`known_use` as far as it may be shown: demand of too few other teams is left out of it. Share"""
    return _with_others(world, i, pooled_use(world, i) if _told(world, i) else 0.0)


def told_pooled_use(world: World, i: int) -> float | None:
    """:func:`pooled_use` where it may be shown, else None. Share"""
    return pooled_use(world, i) if _told(world, i) else None


def _told(world: World, i: int) -> bool:
    pooled = world.pooled.get(world.accelerator(i).slug)
    return pooled is None or pooled.told


def rent_of(world: World, slug: str, case: OwnershipCase) -> Rent | None:
    """On demand, falling as prices fall; None where it is not rented out in a currency that can be converted."""
    hourly = card_hour(world, slug, PaymentMode.ON_DEMAND, case.currency)
    return None if hourly is None else Rent(hourly, defaults.value("risk.price_decline"))


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
