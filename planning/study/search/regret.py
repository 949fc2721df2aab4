"""How sure the cost of a plan is, and which plan is regretted least: seeded scenarios over the plans worth showing.

Each scenario draws how far the estimate of speed is off, how much longer or shorter the need is, spot's price and
reclaims, and how busy bought cards are beside this need. All plans meet the same scenarios.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import require_at_least
from planning.economics import defaults
from planning.economics.billing import committed_seconds
from planning.economics.risk import Range
from planning.economics.spot import expected_hours, reclaim_mtbf_hours
from planning.economics.types import SECONDS_PER_HOUR, PaymentMode
from planning.study.search.choice import World
from planning.study.search.costs import SPOT
from planning.study.search.holding import held
from planning.study.search.mixes import scaled_cost
from planning.study.search.purchase_tax import kept_factor
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


def may_miss(world: World, i: int, spread: Regrets, row: int) -> bool:
    """Whether candidate `i` holds the time or latency asked for at the middle of its band and not at the P90."""
    return float(spread.seconds[row, 2]) > float(world.ways.limit[world.candidates.way[i]])


def regrets(world: World, plans: Ints, *, seed: int, paths: int = PATHS) -> Regrets:
    """Scenarios of `plans`. Memory grows with plans × paths."""
    require_at_least("paths", paths, 100)
    c, ways = world.candidates, world.ways
    rng = np.random.default_rng(seed)
    # stratified: the same spread with fewer paths
    draws = (
        rng.permuted(np.tile(np.arange(paths), (5, 1)), axis=1) + rng.random((5, paths))
    ) / paths
    # how far off an estimate is differs from accelerator to accelerator, and is the same for all plans of one
    speeds = {
        int(index): rng.permuted(draws[0]) for index in np.unique(ways.accelerator[c.way[plans]])
    }
    need = NEED.quantile(draws[1])
    spot_price = SPOT_PRICE.quantile(draws[2])
    reclaim = _range("spot.reclaim_per_month").quantile(draws[3])
    others = np.clip(_others(world.utilisation).quantile(draws[4]), 0.01, 1.0)

    cost = np.empty((plans.size, paths))
    seconds = np.empty((plans.size, paths))
    for row, i in enumerate(plans):
        way = int(c.way[i])
        low, high = float(ways.time_low[way]), float(ways.time_high[way])
        slow = Range(low, 1.0, high).quantile(speeds[int(ways.accelerator[way])])
        hours = c.hours[i] * slow * need
        seconds[row] = c.seconds[i] * slow
        if c.offer[i] >= 0:
            cost[row], stretch = _rented(world, int(i), slow * need, spot_price, reclaim)
            seconds[row] *= stretch
        elif c.mix[i] >= 0:
            cost[row] = scaled_cost(world.mixes[int(c.mix[i])], slow * need) * kept_factor(
                world.tax
            )
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
    known = defaults.known(name)
    return Range(known.low, known.value, known.high)


def _others(measured: float | None) -> Range:
    """How busy bought cards are beside the need: around what was measured; without that, perhaps not at all. Share"""
    if measured is not None:
        return Range(NEED.p10 * measured, measured, min(NEED.p90 * measured, 1.0))
    usual = _range("utilisation.owned")
    return Range(0.0, usual.p50, usual.p90)


def _rented(
    world: World, i: int, stretched: Floats, spot_price: Floats, reclaim: Floats
) -> tuple[Floats, Floats]:
    """Cost in each scenario, and how much longer spot takes than planned. [1]

    `stretched`: the need over the planned one. A commitment is paid in full, and what goes beyond it is rented on
    demand (at its own price where the place sells nothing on demand); the rest is in proportion.
    """
    table = world.market.table
    if table is None:
        raise ValueError("a rented plan without offers")
    c = world.candidates
    offer, planned = int(c.offer[i]), float(c.cost[i])
    months = int(table.commitment_months[offer])
    if months:
        held = max(
            float(committed_seconds(float(c.hours[i]), months)) / SECONDS_PER_HOUR,
            float(c.hours[i]),
        )
        beyond = np.maximum(c.hours[i] * stretched - held, 0.0)
        more = beyond * float(c.instances[i]) * _beyond_price(world, offer)
        return planned + more * kept_factor(world.tax), np.ones_like(stretched)
    if table.mode[offer] != SPOT:
        return planned * stretched, np.ones_like(stretched)
    found = _spot_hours(world, i, reclaim)
    usual = world.market.offers[offer].reclaim_per_month
    share = defaults.value("spot.reclaim_per_month") if usual is None else usual
    expected = float(_spot_hours(world, i, np.array([share]))[0])
    # a run that would never end is moved to on demand by whoever watches it: three times as long is the worst
    longer = np.minimum(np.where(np.isfinite(found), found / expected, 3.0), 3.0)
    return planned * stretched * longer * spot_price, longer


def _beyond_price(world: World, offer: int) -> float:
    """On demand at the same place, else the offer's own price. [currency per instance-hour]"""
    table, mine = world.market.table, world.market.offers[offer]
    if table is None:
        raise ValueError("a rented plan without offers")
    for row in world.market.by_accelerator[mine.accelerator]:
        other = world.market.offers[int(row)]
        if other.place == mine.place and other.mode is PaymentMode.ON_DEMAND:
            return float(table.price[int(row)])
    return float(table.price[offer])


def _spot_hours(world: World, i: int, reclaim: Floats) -> Floats:
    """Expected hours of candidate `i` at each share of reclaims in a month. [h]"""
    c, ways = world.candidates, world.ways
    way = int(c.way[i])
    work = float(ways.work_hours[way])
    interval = world.request.constraints.checkpoint_seconds
    return expected_hours(
        work,
        mtbf_hours=reclaim_mtbf_hours(np.clip(reclaim, 0.0, 0.99), int(c.instances[i])),
        checkpoint_hours=float(ways.checkpoint_hours[way]),
        restart_hours=defaults.value("spot.restart_minutes") / 60,
        interval_hours=None if interval is None else min(interval / 3600.0, work),
    )


def _bought(world: World, i: int, hours: Floats, others: Floats) -> Floats:
    """The need's share of the servers' life cost; what they cannot carry is rented at the same cost an hour."""
    c = world.candidates
    cards = int(world.ways.cards[c.way[i]])
    planned = held(world, i)
    life = planned.life_hours
    wanted = cards * hours
    used = np.minimum(wanted, life)
    whole = float(c.cost[i]) / planned.share if planned.share else 0.0
    cost: Floats = whole * used / (used + others * (life - used)) * np.maximum(wanted / life, 1.0)
    return cost
