"""Interruptions and checkpoints: how often to save, and how much longer a job takes because it is stopped.

Failures are taken as independent and exponential in time. Times are in seconds, rates per second. Economics uses the
same functions for spot reclaims; nothing here knows prices.

References
----------
J. W. Young, "A first order approximation to the optimum checkpoint interval," CACM 17(9), 1974.
J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps," FGCS 22(3), 2006.
Failure rates of 8-GPU nodes: 2.3 and 6.5 per 1,000 node-days (A. Kokolis et al., "Revisiting reliability in large-scale
machine learning research clusters," 2024), 3.8 (unplanned stops of the Llama 3 405B run, 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.errors import InputError, require_at_least
from core.messages import msg
from planning.estimators.types import InfeasibleError, Step

DAY = 86_400.0  # [s]
HOUR = 3_600.0  # [s]
NODE_FAILURES_PER_1000_DAYS = (2.3, 3.8, 6.5)  # low, usual, high; 8-GPU nodes, grown-up clusters
CHECKPOINT_BYTES_PER_PARAMETER = 14.0  # BF16 weights + FP32 master, momentum and variance
RESTART_SECONDS = 600.0  # automated restart: 5 to 15 minutes; by hand: hours
_LARGEST_EXPONENT = 20.0  # a segment that passes once in 500 million attempts never does


def node_mtbf(failures_per_1000_days: float = NODE_FAILURES_PER_1000_DAYS[1]) -> float:
    """Mean time between failures of one node. [s]"""
    _require_positive("failures_per_1000_days", failures_per_1000_days)
    return 1000.0 * DAY / failures_per_1000_days


def job_mtbf(nodes: int, node_mtbf_s: float, *, reclaims_per_node_second: float = 0.0) -> float:
    """Mean time between interruptions of a job that stops whenever any of its nodes stops. [s]

    1/M = n * (1/node MTBF + reclaim rate).
    """
    require_at_least("nodes", nodes, 1)
    _require_positive("node_mtbf", node_mtbf_s)
    require_at_least("reclaims_per_node_second", reclaims_per_node_second, 0.0)
    return 1.0 / (nodes * (1.0 / node_mtbf_s + reclaims_per_node_second))


def young_interval(checkpoint_s: float, mtbf_s: float) -> float:
    """Young's optimum time between checkpoints, sqrt(2 C M). Good for C much below M. [s]"""
    require_at_least("checkpoint_s", checkpoint_s, 0.0)
    _require_positive("mtbf_s", mtbf_s)
    return math.sqrt(2.0 * checkpoint_s * mtbf_s)


def daly_interval(checkpoint_s: float, mtbf_s: float) -> float:
    """Daly's higher-order optimum of the work between checkpoints; the MTBF itself once C >= 2 M. [s]"""
    require_at_least("checkpoint_s", checkpoint_s, 0.0)
    _require_positive("mtbf_s", mtbf_s)
    if checkpoint_s >= 2.0 * mtbf_s:
        return mtbf_s
    ratio = checkpoint_s / (2.0 * mtbf_s)
    series = 1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0
    return math.sqrt(2.0 * checkpoint_s * mtbf_s) * series - checkpoint_s


def waste_share(interval_s: float, checkpoint_s: float, mtbf_s: float, restart_s: float) -> float:
    """First-order share of time lost, C/T + T/(2M) + D/M. Trust it below about 0.2. [1]"""
    _require_positive("interval_s", interval_s)
    require_at_least("checkpoint_s", checkpoint_s, 0.0)
    _require_positive("mtbf_s", mtbf_s)
    require_at_least("restart_s", restart_s, 0.0)
    return checkpoint_s / interval_s + interval_s / (2.0 * mtbf_s) + restart_s / mtbf_s


def expected_wall_time(
    work_s: float, interval_s: float, checkpoint_s: float, mtbf_s: float, restart_s: float
) -> float:
    """Expected time from start to finish under exponential failures. [s]

    Each segment of `interval_s` work and one checkpoint is repeated until it passes whole:
    E = (M + D) * (exp((T + C) / M) - 1). The last segment is shorter and needs no checkpoint.

    Raises
    ------
    InfeasibleError
        If a segment is so long against the MTBF that the job would never end.
    """
    require_at_least("work_s", work_s, 0.0)
    _require_positive("interval_s", interval_s)
    require_at_least("checkpoint_s", checkpoint_s, 0.0)
    _require_positive("mtbf_s", mtbf_s)
    require_at_least("restart_s", restart_s, 0.0)
    whole = max(math.ceil(work_s / interval_s) - 1, 0)
    last = work_s - whole * interval_s
    longest = (min(interval_s, work_s) + (checkpoint_s if whole else 0.0)) / mtbf_s
    if longest > _LARGEST_EXPONENT:
        raise InfeasibleError(
            msg(
                "The job cannot finish: it works %(interval)s s between checkpoints but is interrupted "
                "every %(mtbf)s s.",
                interval=round(interval_s),
                mtbf=round(mtbf_s),
            )
        )
    segment = math.expm1((interval_s + checkpoint_s) / mtbf_s) if whole else 0.0
    return (mtbf_s + restart_s) * (whole * segment + math.expm1(last / mtbf_s))


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """How a job is protected, and what the interruptions cost it. Times in seconds."""

    mtbf: float  # of the whole job, all causes
    interval: float  # work between two checkpoints
    checkpoint: float  # time that training stands still for one checkpoint
    restart: float
    work: float
    wall: float  # expected, with interruptions
    interruptions: float  # expected count
    trace: tuple[Step, ...]

    @property
    def overhead(self) -> float:
        """Expected wall time ÷ undisturbed work. [1]"""
        return self.wall / self.work


def plan_checkpoints(
    *,
    work_s: float,
    nodes: int,
    checkpoint_s: float,
    restart_s: float = RESTART_SECONDS,
    node_mtbf_s: float | None = None,
    reclaims_per_node_second: float = 0.0,
    reclaim_notice_s: float = 0.0,
) -> CheckpointPlan:
    """The best checkpoint interval (Daly) and the expected wall time.

    Where a reclaim is announced at least one checkpoint ahead, the work since the last checkpoint is saved: such a
    reclaim costs a checkpoint and a restart, but no lost work, and does not shorten the interval.

    Raises
    ------
    InputError
        On a negative time or rate, or no node.
    InfeasibleError
        If interruptions come faster than the job recovers.
    """
    _require_positive("work_s", work_s)
    require_at_least("reclaim_notice_s", reclaim_notice_s, 0.0)
    hardware = node_mtbf() if node_mtbf_s is None else node_mtbf_s
    mtbf = job_mtbf(nodes, hardware, reclaims_per_node_second=reclaims_per_node_second)
    announced = reclaims_per_node_second > 0.0 and reclaim_notice_s >= checkpoint_s
    blind_mtbf = job_mtbf(nodes, hardware) if announced else mtbf
    interval = min(daly_interval(checkpoint_s, blind_mtbf), work_s)
    if interval <= 0.0:  # a checkpoint that costs nothing can be taken at any time: once a minute
        interval = min(60.0, work_s)
    wall = expected_wall_time(work_s, interval, checkpoint_s, blind_mtbf, restart_s)
    if announced:
        lost = nodes * reclaims_per_node_second * (checkpoint_s + restart_s)
        if lost >= 1.0:
            raise InfeasibleError(
                msg(
                    "The job cannot finish: reclaims come every %(mtbf)s s and each costs %(cost)s s.",
                    mtbf=round(1.0 / (nodes * reclaims_per_node_second)),
                    cost=round(checkpoint_s + restart_s),
                )
            )
        wall /= 1.0 - lost
    trace = (
        Step(
            "job_mtbf",
            "1 / (n * (1/M_node + r))",
            {"n": nodes, "M_node": hardware, "r": reclaims_per_node_second},
            mtbf,
            "s",
        ),
        Step(
            "checkpoint_interval",
            "sqrt(2 C M) * (1 + sqrt(C/2M)/3 + C/(18 M)) - C",
            {"C": checkpoint_s, "M": blind_mtbf},
            interval,
            "s",
        ),
        Step(
            "expected_wall_time",
            "(M + D) * (exp((T + C)/M) - 1) * segments"
            + (" / (1 - n r (C + D))" if announced else ""),
            {"M": blind_mtbf, "D": restart_s, "T": interval, "C": checkpoint_s, "work": work_s},
            wall,
            "s",
        ),
    )
    return CheckpointPlan(mtbf, interval, checkpoint_s, restart_s, work_s, wall, wall / mtbf, trace)


def checkpoint_seconds(
    parameters: float, bytes_per_second: float, *, bytes_per_parameter: float | None = None
) -> float:
    """Time to write one full checkpoint to storage. [s]"""
    _require_positive("parameters", parameters)
    _require_positive("bytes_per_second", bytes_per_second)
    size = CHECKPOINT_BYTES_PER_PARAMETER if bytes_per_parameter is None else bytes_per_parameter
    return parameters * size / bytes_per_second


def _require_positive(field: str, value: float) -> None:
    if not (0.0 < value < math.inf):
        raise InputError(
            field,
            msg("%(field)s is %(value)s; it must be above 0 and finite", field=field, value=value),
            value=value,
            limit=0.0,
        )
