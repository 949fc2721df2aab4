"""The bid ladder: what each ceiling price would have bought over a real price history.

At or below the ceiling the job runs, above it the job is out. Leaving costs the work since the last checkpoint (or
one checkpoint, with notice enough); coming back costs a restart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from core.messages import Message
from core.money import Money
from planning.economics import checks, defaults, exact
from planning.economics.checks import Floats
from planning.economics.price_history import PriceHistory
from planning.economics.spot import refusal, require_eligible

DEFAULT_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, slots=True)
class BidJob:
    """What has to be done. All times in hours."""

    work_hours: float
    checkpoint_hours: float
    interval_hours: float
    restart_hours: float
    notice_hours: float = 0.0
    checkpointable: bool = True
    online: bool = False

    def __post_init__(self) -> None:
        checks.positive("work_hours", self.work_hours)
        checks.positive("interval_hours", self.interval_hours)
        for field in ("checkpoint_hours", "restart_hours", "notice_hours"):
            checks.non_negative(field, getattr(self, field))

    @property
    def refused(self) -> Message | None:
        """Why this job may not bid at all; None when it may."""
        return refusal(checkpointable=self.checkpointable, online=self.online)


@dataclass(frozen=True, slots=True)
class BidOutcome:
    """One rung: the job at one ceiling."""

    ceiling: Money  # per hour
    share_of_on_demand: float
    hours_bought: float
    mean_price: Money | None  # per hour bought, unrounded; None: nothing was bought
    cost: Money
    interruptions: int
    work_done: float  # [h]
    finish: datetime | None  # None: not within the history
    saving: float | None  # against on demand without a stop; None: not finished


def ladder(
    prices: PriceHistory, job: BidJob, on_demand: Money, shares: Sequence[float] = DEFAULT_SHARES
) -> tuple[BidOutcome, ...]:
    """The job over `prices` at each ceiling, given as a share of the on-demand price an hour.

    Raises
    ------
    InputError
        If the job may not run on spot, on a share not above 0, or if `on_demand` is in another currency.
    """
    require_eligible(checkpointable=job.checkpointable, online=job.online)
    checks.positive("on_demand", on_demand.amount)
    if on_demand.currency != prices.currency:
        raise checks.refuse("on_demand", on_demand.currency, prices.currency)
    for share in shares:
        checks.positive("shares", share)
    return tuple(_rung(prices, job, on_demand, share) for share in sorted(shares))


def suggested_ceiling(on_demand: Money) -> Money:
    """The usual ceiling: 60 % of the on-demand price, unrounded."""
    checks.price("on_demand", on_demand)
    return on_demand * exact.to_decimal(defaults.value("spot.bid_share"))


def _rung(prices: PriceHistory, job: BidJob, on_demand: Money, share: float) -> BidOutcome:
    ceiling = on_demand * exact.to_decimal(share)
    edges = prices.edges
    paid = np.concatenate(([0.0], np.cumsum(prices.price * np.diff(edges))))
    done = hours = cost = 0.0
    stops = 0
    finish: float | None = None
    for low, high in _windows(prices, float(ceiling.amount)):
        restart = job.restart_hours if stops else 0.0
        need = restart + _time_for(job, job.work_hours - done)
        end = min(high, low + need)
        hours += end - low
        cost += float(np.interp(end, edges, paid) - np.interp(low, edges, paid))
        if need <= high - low:
            finish, done = end, job.work_hours
            break
        done += _progress(job, high - low - restart)
        stops += high < prices.end_hour
    money = exact.times(Money(exact.to_decimal(1.0), on_demand.currency), cost)
    bought = None
    if hours > 0:
        bought = Money(exact.to_decimal(cost / hours), on_demand.currency)
    saving = None if finish is None else 1 - cost / (float(on_demand.amount) * job.work_hours)
    moment = None if finish is None else prices.at(finish)
    return BidOutcome(ceiling, share, hours, bought, money, stops, done, moment, saving)


def _windows(prices: PriceHistory, ceiling: float) -> list[tuple[float, float]]:
    """Spans in which the price is at or below `ceiling`. [h]"""
    open_ = prices.price <= ceiling * (1 + 1e-12)
    change = np.diff(np.concatenate(([0], open_.astype(np.int8), [0])))
    edges: Floats = prices.edges
    starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
    return [(float(edges[a]), float(edges[b])) for a, b in zip(starts, ends, strict=True)]


def _time_for(job: BidJob, work: float) -> float:
    """Running time of `work` hours of work: a checkpoint after each interval but the last. [h]"""
    checkpoints = max(math.ceil(round(work / job.interval_hours, 9)) - 1, 0)
    return work + checkpoints * job.checkpoint_hours


def _progress(job: BidJob, time: float) -> float:
    """Work that survives the reclaim after `time` hours of running. [h]"""
    if time <= 0:
        return 0.0
    cycle = job.interval_hours + job.checkpoint_hours
    whole = math.floor(round(time / cycle, 9))
    saved = whole * job.interval_hours
    if job.notice_hours >= job.checkpoint_hours:  # the last checkpoint is written within the notice
        rest = time - whole * cycle
        saved += min(max(rest - job.checkpoint_hours, 0.0), job.interval_hours)
    return saved
