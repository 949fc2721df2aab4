"""Spot capacity: expected and P90 wall time and cost of an interruptible run, in closed form and by simulation.

Reclaims are exponential and independent; a job stops when any of its instances is reclaimed. Interval, waste and the
expected time come from :mod:`planning.estimators.interruptions`; this module adds the distribution and the money.

A segment of work T and checkpoint C is repeated until it passes whole, so failures of one segment are geometric and
the time lost by each is an exponential cut off at T + C. The P90 inverts that mixture: negative-binomial counts, the
cut exponential for one loss, a normal sum for more. Announced reclaims (notice >= C) lose no work: they arrive
while the job holds instances and their count follows the generalised Poisson law of a busy period.

References
----------
J. T. Daly, FGCS 22(3), 2006. P. C. Consul and G. C. Jain, "A generalization of the Poisson distribution,"
Technometrics 15(4), 1973. AWS Spot Instance Advisor for monthly reclaim bands (2026-02-24).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, exact
from planning.economics.checks import Floats
from planning.economics.losses import Losses, busy_period_quantile
from planning.economics.types import HOURS_PER_MONTH, SECONDS_PER_HOUR
from planning.estimators import interruptions
from planning.estimators.types import InfeasibleError

_MOST_STRETCH = 50.0  # a run that takes this many times its work is called impossible


def refusal(*, checkpointable: bool, online: bool, may_stop: bool = True) -> Message | None:
    """Why spot is not for this workload; None when it is."""
    if online:
        return msg("Spot is refused: an online service may not vanish at a reclaim")
    if not may_stop:
        return msg("Spot is refused: the request says that the work may not be interrupted")
    if not checkpointable:
        return msg("Spot is refused: without checkpoints each reclaim throws all work away")
    return None


def require_eligible(*, checkpointable: bool, online: bool) -> None:
    """Raise :class:`~core.errors.InputError` with the reason when spot is refused."""
    reason = refusal(checkpointable=checkpointable, online=online)
    if reason is not None:
        raise InputError(
            "payment_mode", reason, value="spot", limit="offline work with checkpoints"
        )


def reclaim_mtbf_hours(reclaim_per_month: ArrayLike, instances: ArrayLike) -> Floats:
    """Mean time between reclaims of a job on `instances`, of which each is reclaimed with the given
    probability in a month; infinite at 0. [h]"""
    share = np.asarray(reclaim_per_month, dtype=np.float64)
    count = np.asarray(instances, dtype=np.float64)
    if not ((share >= 0) & (share < 1)).all():
        raise checks.refuse(
            "reclaim_per_month",
            float(share.flat[int(np.argmax(~((share >= 0) & (share < 1))))]),
            "0 <= x < 1",
        )
    if not (count >= 1).all():
        raise checks.refuse("instances", float(count.min()), ">= 1")
    rate = -np.log1p(-share) / HOURS_PER_MONTH * count
    with np.errstate(divide="ignore"):
        result: Floats = np.where(rate > 0, 1.0 / rate, np.inf)
    return result


@dataclass(frozen=True, slots=True)
class SpotRun:
    """An interruptible run. All times in hours."""

    work_hours: float  # undisturbed, without checkpoints
    reclaim_mtbf_hours: float  # of the whole job
    checkpoint_hours: float  # training stands still for one checkpoint
    restart_hours: float  # billed: load the checkpoint, warm up
    wait_hours: float = 0.0  # not billed: until there is capacity again
    interval_hours: float | None = None  # work between checkpoints; None: Daly's optimum
    notice_hours: float = 0.0
    hardware_mtbf_hours: float | None = None  # of the whole job; None: left out

    def __post_init__(self) -> None:
        checks.positive("work_hours", self.work_hours)
        checks.positive("reclaim_mtbf_hours", self.reclaim_mtbf_hours)
        checks.positive("checkpoint_hours", self.checkpoint_hours)
        for field in ("restart_hours", "wait_hours", "notice_hours"):
            checks.non_negative(field, getattr(self, field))
        if self.interval_hours is not None:
            checks.positive("interval_hours", self.interval_hours)
        if self.hardware_mtbf_hours is not None:
            checks.positive("hardware_mtbf_hours", self.hardware_mtbf_hours)

    @property
    def announced(self) -> bool:
        """True when the notice is long enough to save the work since the last checkpoint."""
        return self.notice_hours >= self.checkpoint_hours

    @property
    def blind_mtbf(self) -> float:
        """Mean time between interruptions that lose work; infinite when there is none. [h]"""
        hardware = 0.0 if self.hardware_mtbf_hours is None else 1.0 / self.hardware_mtbf_hours
        rate = hardware + (0.0 if self.announced else 1.0 / self.reclaim_mtbf_hours)
        return 1.0 / rate if rate else math.inf

    @property
    def interval(self) -> float:
        """Work between checkpoints: as given, else Daly's optimum for what strikes without notice. [h]"""
        if self.interval_hours is not None:
            return min(self.interval_hours, self.work_hours)
        if math.isinf(self.blind_mtbf):
            return self.work_hours
        return min(
            interruptions.daly_interval(
                self.checkpoint_hours * SECONDS_PER_HOUR, self.blind_mtbf * SECONDS_PER_HOUR
            )
            / SECONDS_PER_HOUR,
            self.work_hours,
        )

    @property
    def segments(self) -> tuple[int, float, float]:
        """Whole segments, their length with checkpoint, and the last one without. [1], [h], [h]"""
        whole = max(math.ceil(round(self.work_hours / self.interval, 9)) - 1, 0)
        return whole, self.interval + self.checkpoint_hours, self.work_hours - whole * self.interval


@dataclass(frozen=True, slots=True)
class SpotTimes:
    """Hours of a run. `wall` from start to finish, `billed` while instances are held."""

    interval: float
    reclaims: float  # expected
    expected_wall: float
    p90_wall: float
    expected_billed: float
    p90_billed: float


def closed_form(run: SpotRun) -> SpotTimes:
    """Expected and P90 hours of `run`.

    With a notice, losses to hardware enter the P90 at their mean.

    Raises
    ------
    InfeasibleError
        If the run is interrupted faster than it advances.
    """
    if run.announced:
        return _announced(run)
    whole, length, last = run.segments
    mtbf = run.blind_mtbf
    _require_advance(max(length if whole else 0.0, last), mtbf)
    lost = whole * math.expm1(length / mtbf) + math.expm1(last / mtbf)
    recovery = run.restart_hours + run.wait_hours
    wall = mtbf * lost + recovery * lost
    if wall > _MOST_STRETCH * run.work_hours:
        raise _impossible(run)
    mixture = Losses(whole, length, last, mtbf)
    return SpotTimes(
        interval=run.interval,
        reclaims=lost,
        expected_wall=wall,
        p90_wall=mixture.quantile(0.9, recovery),
        expected_billed=wall - lost * run.wait_hours,
        p90_billed=mixture.quantile(0.9, run.restart_hours),
    )


def expected_hours(
    work_hours: ArrayLike,
    *,
    mtbf_hours: ArrayLike,
    checkpoint_hours: ArrayLike,
    restart_hours: ArrayLike,
    interval_hours: ArrayLike | None = None,
) -> Floats:
    """Expected wall hours of many runs, reclaims without notice; for the search. [h], broadcast shape

    The formula of :func:`closed_form`; an infinite MTBF leaves work and checkpoints, and runs that would never end
    are infinite, which no search picks.
    """
    work, mtbf, save, restart = (
        np.asarray(x, dtype=np.float64)
        for x in (work_hours, mtbf_hours, checkpoint_hours, restart_hours)
    )
    for field, values in (("work_hours", work), ("mtbf_hours", mtbf), ("checkpoint_hours", save)):
        if not (values > 0).all():
            raise checks.refuse(field, float(values.min()), "> 0")
    if not (restart >= 0).all():
        raise checks.refuse("restart_hours", float(restart.min()), ">= 0")
    interval = np.minimum(
        daly_interval(save, mtbf) if interval_hours is None else np.asarray(interval_hours, float),
        work,
    )
    whole = np.maximum(np.ceil(np.round(work / interval, 9)) - 1, 0)
    last = work - whole * interval
    calm = np.isinf(mtbf)
    finite = np.where(calm, 1.0, mtbf)
    with np.errstate(over="ignore", invalid="ignore"):
        lost = whole * np.expm1((interval + save) / finite) + np.expm1(last / finite)
        stormy = (finite + restart) * lost
    undisturbed = work + whole * save
    result: Floats = np.where(calm, undisturbed, stormy)
    result = np.where(result > _MOST_STRETCH * work, np.inf, result)
    return result


def daly_interval(checkpoint_hours: ArrayLike, mtbf_hours: ArrayLike) -> Floats:
    """Daly's optimum of the work between checkpoints for arrays; infinite when nothing interrupts. [h]"""
    save = np.asarray(checkpoint_hours, dtype=np.float64)
    mtbf = np.asarray(mtbf_hours, dtype=np.float64)
    ratio = save / (2 * mtbf)
    series = 1 + np.sqrt(ratio) / 3 + ratio / 9
    optimum = np.sqrt(2 * save * mtbf) * series - save
    result: Floats = np.where(save >= 2 * mtbf, mtbf, optimum)
    return result


# ---- Simulation --------------------------------------------------------------------------------------------------


def simulate(run: SpotRun, *, seed: int, paths: int = 20_000) -> SpotTimes:
    """The same hours by following `paths` runs from interruption to interruption; the closed form's witness."""
    checks.positive("paths", paths)
    _require_advance(0.0, run.blind_mtbf)
    rng = np.random.default_rng(seed)
    wall, billed, hits = np.zeros(paths), np.zeros(paths), np.zeros(paths)
    whole, length, last = run.segments
    left = np.full(paths, whole)
    running = np.ones(paths, dtype=bool)
    recovery = run.restart_hours + run.wait_hours
    limit = 1000 * _MOST_STRETCH * run.work_hours
    while running.any():
        count = int(running.sum())
        gap = (
            rng.exponential(run.blind_mtbf, count)
            if math.isfinite(run.blind_mtbf)
            else np.full(count, np.inf)
        )
        finish = left[running] * length + last
        done = gap >= finish
        spent = np.where(done, finish, gap)
        saved = np.minimum(spent // length if length else 0, left[running])
        wall[running] += spent + np.where(done, 0.0, recovery)
        billed[running] += spent + np.where(done, 0.0, run.restart_hours)
        hits[running] += ~done
        left[running] -= np.where(done, 0, saved).astype(np.int64)
        running[np.flatnonzero(running)[done]] = False
        if wall.max() > limit:
            raise _impossible(run)
    if run.announced:
        _add_announced(run, rng, wall, billed, hits)
    return SpotTimes(
        interval=run.interval,
        reclaims=float(hits.mean()),
        expected_wall=float(wall.mean()),
        p90_wall=float(np.quantile(wall, 0.9)),
        expected_billed=float(billed.mean()),
        p90_billed=float(np.quantile(billed, 0.9)),
    )


def _add_announced(
    run: SpotRun, rng: np.random.Generator, wall: Floats, billed: Floats, hits: Floats
) -> None:
    """Reclaims with notice, generation by generation: those that strike while the last ones are made good."""
    exposed = billed.copy()
    cost = run.checkpoint_hours + run.restart_hours
    if cost >= run.reclaim_mtbf_hours:
        raise _impossible(run)
    while True:
        struck = rng.poisson(exposed / run.reclaim_mtbf_hours)
        if not struck.any():
            return
        hits += struck
        billed += struck * cost
        wall += struck * (cost + run.wait_hours)
        exposed = np.asarray(struck * cost, dtype=np.float64)


# ---- Money -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpotCost:
    """A run on spot against the same run on demand."""

    times: SpotTimes
    expected_cost: Money
    p90_cost: Money
    on_demand_hours: float
    on_demand_cost: Money
    saving: float  # expected, share of on demand; negative: spot is dearer


def compare_with_on_demand(
    run: SpotRun,
    *,
    spot_price: Money,
    on_demand_price: Money,
    on_demand_hours: float | None = None,
    times: SpotTimes | None = None,
) -> SpotCost:
    """Cost of `run` at `spot_price` an hour (all instances) and on demand. Raises as :func:`closed_form`."""
    checks.price("spot_price", spot_price)
    checks.positive("on_demand_price", on_demand_price.amount)
    checks.same_currency("spot_price", spot_price, on_demand_price)
    found = closed_form(run) if times is None else times
    hours = run.work_hours if on_demand_hours is None else on_demand_hours
    checks.positive("on_demand_hours", hours)
    expected = exact.times(spot_price, found.expected_billed)
    reference = exact.times(on_demand_price, hours)
    saving = 1 - found.expected_billed * float(spot_price.amount / on_demand_price.amount) / hours
    return SpotCost(
        found, expected, exact.times(spot_price, found.p90_billed), hours, reference, saving
    )


def _announced(run: SpotRun) -> SpotTimes:
    whole, length, last = run.segments
    mtbf = run.blind_mtbf
    hits, wall = 0.0, whole * length + last
    if math.isfinite(mtbf):
        _require_advance(max(length if whole else 0.0, last), mtbf)
        hits = whole * math.expm1(length / mtbf) + math.expm1(last / mtbf)
        wall = hits * (mtbf + run.restart_hours + run.wait_hours)
    held = wall - hits * run.wait_hours
    each = run.checkpoint_hours + run.restart_hours
    rate = 1.0 / run.reclaim_mtbf_hours
    if rate * each >= 1:
        raise _impossible(run)
    reclaims = rate * held / (1 - rate * each)
    if wall + reclaims * (each + run.wait_hours) > _MOST_STRETCH * run.work_hours:
        raise _impossible(run)
    p90 = busy_period_quantile(0.9, rate * held, rate * each)
    return SpotTimes(
        interval=run.interval,
        reclaims=hits + reclaims,
        expected_wall=wall + reclaims * (each + run.wait_hours),
        p90_wall=wall + p90 * (each + run.wait_hours),
        expected_billed=held + reclaims * each,
        p90_billed=held + p90 * each,
    )


def _require_advance(length: float, mtbf: float) -> None:
    if length / mtbf > 20.0:  # one segment in half a billion would pass
        raise InfeasibleError(
            msg(
                "The job cannot finish: %(length)s h pass between checkpoints but it is interrupted every %(mtbf)s h",
                length=round(length, 2),
                mtbf=round(mtbf, 2),
            )
        )


def _impossible(run: SpotRun) -> InfeasibleError:
    return InfeasibleError(
        msg(
            "The job cannot finish on spot: with an interruption every %(mtbf)s h it would take more than "
            "%(times)s times its work",
            mtbf=round(run.reclaim_mtbf_hours, 2),
            times=_MOST_STRETCH,
        )
    )
