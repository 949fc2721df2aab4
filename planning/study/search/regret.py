"""How sure the cost of a plan is, and which plan is regretted least: seeded scenarios over the plans worth showing.

Each scenario draws how far the estimate of speed is off, how much longer or shorter the need is, spot's price and reclaims,
and how busy bought cards are beside this need. All plans meet the same scenarios. Rented plans are billed by the same
arithmetic as the search, so that a commitment is paid whether it is used or not, and renewed when the need outlasts it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import require_at_least
from planning.economics import defaults
from planning.economics.pricing import price_candidates
from planning.economics.risk import Range
from planning.economics.spot import expected_hours, reclaim_mtbf_hours
from planning.economics.types import HOURS_PER_YEAR
from planning.study.search.choice import World
from planning.study.search.costs import SPOT, YEARS, owned_cost
from planning.study.search.ways import Floats, Ints

PATHS = 1_000
NEED = Range(0.7, 1.0, 1.5)  # the need against the plan: chosen
SPOT_PRICE = Range(0.8, 1.0, 1.6)  # spot's price against today's: chosen


@dataclass(frozen=True, slots=True, eq=False)
class Regrets:
    """Of each plan, shape (k,): P10, P50, P90 of cost and time, and regret against the best of the plans shown."""

    cost: Floats  # shape (k, 3)
    seconds: Floats  # shape (k, 3)
    mean: Floats
    p90: Floats
    paths: int
    seed: int

    @property
    def safest(self) -> int:
        """The plan whose regret is smallest in nine scenarios of ten."""
        return int(np.lexsort((self.mean, self.p90))[0])


def regrets(world: World, plans: Ints, *, seed: int, paths: int = PATHS) -> Regrets:
    """Scenarios of `plans`. Memory grows with plans × paths."""
    require_at_least("paths", paths, 100)
    rng = np.random.default_rng(seed)
    # stratified: the same spread with fewer paths
    draws = (
        rng.permuted(np.tile(np.arange(paths), (5, 1)), axis=1) + rng.random((5, paths))
    ) / paths
    need = NEED.quantile(draws[1])
    spot_price = SPOT_PRICE.quantile(draws[2])
    reclaim = _range("spot.reclaim_per_month").quantile(draws[3])
    others = np.clip(_range("utilisation.owned").quantile(draws[4]), 0.01, 1.0)

    c, ways = world.candidates, world.ways
    cost = np.empty((plans.size, paths))
    seconds = np.empty((plans.size, paths))
    for row, i in enumerate(plans):
        way = int(c.way[i])
        low, high = float(ways.time_low[way]), float(ways.time_high[way])
        slow = Range(low, 1.0, high).quantile(draws[0])
        hours = c.hours[i] * slow * need
        seconds[row] = c.seconds[i] * slow
        if c.offer[i] >= 0:
            cost[row], stretch = _rented(world, int(i), hours, spot_price, reclaim)
            seconds[row] *= stretch
        elif c.platform[i] >= 0:
            cost[row] = _bought(world, int(i), hours, others)
        else:
            cost[row] = c.cost[i] * slow * need
    regret = cost - cost.min(axis=0)
    shares = [0.1, 0.5, 0.9]
    return Regrets(
        np.quantile(cost, shares, axis=1).T,
        np.quantile(seconds, shares, axis=1).T,
        regret.mean(axis=1),
        np.quantile(regret, 0.9, axis=1),
        paths,
        seed,
    )


def _range(name: str) -> Range:
    known = defaults.DEFAULTS[name]
    return Range(known.low, known.value, known.high)


def _rented(
    world: World, i: int, hours: Floats, spot_price: Floats, reclaim: Floats
) -> tuple[Floats, Floats]:
    """Cost in each scenario, and how much longer spot takes than planned. [1]"""
    table = world.market.table
    if table is None:
        raise ValueError("a rented plan without offers")
    c, ways = world.candidates, world.ways
    offer, way = int(c.offer[i]), int(c.way[i])
    stretch = np.ones_like(hours)
    price = np.ones_like(hours)
    if table.mode[offer] == SPOT:
        work = float(ways.work_hours[way])
        interval = world.request.constraints.checkpoint_seconds

        def expected(share: Floats) -> Floats:
            return expected_hours(
                work,
                mtbf_hours=reclaim_mtbf_hours(np.clip(share, 0.0, 0.99), int(c.instances[i])),
                checkpoint_hours=float(ways.checkpoint_hours[way]),
                restart_hours=defaults.value("spot.restart_minutes") / 60,
                interval_hours=None if interval is None else min(interval / 3600.0, work),
            )

        usual = world.market.offers[offer].reclaim_per_month
        planned = float(
            expected(
                np.array([defaults.value("spot.reclaim_per_month") if usual is None else usual])
            )[0]
        )
        found = expected(reclaim)
        # a run that would never end is moved to on demand by whoever watches it: three times as long is the worst
        stretch = np.minimum(np.where(np.isfinite(found), found / planned, 3.0), 3.0)
        price = spot_price
    held = hours * stretch
    span = np.maximum(held, ways.span_hours[way] * hours / c.hours[i])
    priced = price_candidates(
        table, offer, int(ways.cards[way]), held, starts=int(ways.starts[way]), span_hours=span
    )
    return priced.total * price, stretch


def _bought(world: World, i: int, hours: Floats, others: Floats) -> Floats:
    """The need's share of the servers' life cost; what they cannot carry is rented at the same cost an hour."""
    c = world.candidates
    platform = world.snapshot.platforms[int(c.platform[i])]
    cards = int(world.ways.cards[c.way[i]])
    planned = owned_cost(platform, int(c.instances[i]), cards * float(c.hours[i]))
    life = planned.case.accelerators * HOURS_PER_YEAR * YEARS * planned.case.availability
    wanted = cards * hours
    used = np.minimum(wanted, life)
    whole = float(c.cost[i]) / planned.share if planned.share else 0.0
    cost: Floats = whole * used / (used + others * (life - used)) * np.maximum(wanted / life, 1.0)
    return cost
