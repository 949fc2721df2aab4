"""How many accelerators a service by FLOP per sample takes: each runs batches back to back, a queue stands before them.

A request joins a batch of up to `batch` samples and waits for the one that runs: its answer takes the wait for a free
place, the rest of the batch in progress, and its own batch. Batches of one sample wait in the queue alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.errors import require_at_least, require_between
from core.messages import msg
from planning.estimators.fleet import LARGEST_FLEET, PERCENTILES, replicas_for_wait
from planning.estimators.inference_constants import Constants
from planning.estimators.queueing import Queue
from planning.estimators.samples import SampleWorkload, sample_time
from planning.estimators.types import Accelerator, FleetAnswers, InfeasibleError, Latencies

SERVICE_VARIATION = 0.2  # of the time of a batch: the samples are alike


@dataclass(frozen=True, slots=True)
class SampleService:
    """What a service must stand.

    Parameters
    ----------
    request_rate : float
        Mean arrivals over the day, one sample each. [1/s]
    peak_factor : float
        Peak over mean. [1]
    latency_slo : float or None
        Bound on the answer at `percentile`. [s]
    percentile : float
        Where the bound holds, 0.5 to 0.999. [1]
    headroom : float
        Reserve over the forecast peak; 0.2 is the floor. [1]
    """

    request_rate: float
    peak_factor: float = 1.0
    latency_slo: float | None = None
    percentile: float = 0.95
    headroom: float = 0.2

    @property
    def peak(self) -> float:
        """Requests in the busiest second. [1/s]"""
        return self.request_rate * self.peak_factor


@dataclass(frozen=True, slots=True)
class SampleFleet:
    """Accelerators for a service, one replica each, and the batch that they run."""

    workload: SampleWorkload  # with the batch chosen
    replicas: int
    batch_time: float  # [s]
    by_division: int
    by_headroom: int
    by_latency: int | None  # None: no bound was given

    @property
    def binding(self) -> str:
        """What decided: "latency" or "headroom"."""
        return "latency" if (self.by_latency or 0) > self.by_headroom else "headroom"


def check_service(service: SampleService) -> SampleService:
    """The same service, or :class:`InputError` naming the field, the value and the limit."""
    require_at_least("request_rate", service.request_rate, 1e-9)
    require_at_least("peak_factor", service.peak_factor, 1.0)
    require_at_least("headroom", service.headroom, 0.0)
    if service.latency_slo is not None:
        require_at_least("latency_slo", service.latency_slo, 1e-6)
    require_between("percentile", service.percentile, 0.5, 0.999)
    return service


def plan_sample_fleet(
    workload: SampleWorkload,
    accelerator: Accelerator,
    service: SampleService,
    constants: Constants,
    batches: Sequence[int],
    *,
    replicas: int | None = None,
) -> SampleFleet:
    """The batch that takes the fewest accelerators in time, then answers first. With `replicas` told, the batch that
    suits that many.

    Raises
    ------
    InfeasibleError
        If no batch answers within the bound even without waiting.
    """
    check_service(service)
    found: list[SampleFleet] = []
    quickest = math.inf
    for batch in batches:
        one = replace(workload, batch=float(batch))
        time = sample_time(one, accelerator, constants).total
        alone = _alone(batch, time, service.percentile)
        quickest = min(quickest, alone)
        per_replica = batch / time
        division = _count(service.peak / per_replica)
        by_headroom = _count(service.peak * (1.0 + service.headroom) / per_replica)
        by_latency = None
        if service.latency_slo is not None:
            if alone > service.latency_slo:
                continue
            by_latency = replicas_for_wait(
                batch,
                time,
                service.peak,
                budget=service.latency_slo - alone,
                percentile=service.percentile,
                least=division,
                service_variation=SERVICE_VARIATION,
            )
        needed = max(by_headroom, by_latency or 1)
        if needed <= LARGEST_FLEET:
            found.append(SampleFleet(one, needed, time, division, by_headroom, by_latency))
    if not found:
        if service.latency_slo is None or quickest <= service.latency_slo:
            raise InfeasibleError(
                msg("More than %(limit)s replicas would be needed", limit=LARGEST_FLEET)
            )
        raise InfeasibleError(
            msg(
                "%(name)s takes %(ms)s ms for one sample even without waiting; the bound is %(limit)s ms",
                name=accelerator.name,
                ms=round(1e3 * quickest, 1),
                limit=round(1e3 * service.latency_slo, 1),
            )
        )
    if replicas is None:
        return min(found, key=lambda f: (f.replicas, f.batch_time))
    enough = [f for f in found if f.replicas <= replicas]
    best = (
        min(enough, key=lambda f: f.batch_time) if enough else min(found, key=lambda f: f.replicas)
    )
    return replace(best, replicas=replicas)


def sample_answers(fleet: SampleFleet, service: SampleService, model_error: float) -> FleetAnswers:
    """How `fleet` answers at the planned load, and when every batch takes `model_error` longer."""
    planned, stressed = (
        _latencies(fleet, service, fleet.batch_time * factor) for factor in (1.0, 1.0 + model_error)
    )
    return FleetAnswers(planned, stressed, model_error)


def _latencies(fleet: SampleFleet, service: SampleService, time: float) -> Latencies:
    batch = int(fleet.workload.batch)
    queue = Queue(fleet.replicas * batch, time, service.peak, service_variation=SERVICE_VARIATION)
    wait = {f"p{round(100 * p)}": queue.wait(p) for p in PERCENTILES}
    whole = {
        name: wait[name] + _alone(batch, time, p) for name, p in zip(wait, PERCENTILES, strict=True)
    }
    return Latencies(queue.load, wait, {}, whole)


def _alone(batch: int, time: float, percentile: float) -> float:
    """An answer where a place is free: its own batch, and of the one that runs what is left. [s]"""
    return time * (1.0 + percentile) if batch > 1 else time


def _count(accelerators: float) -> int:
    return max(math.ceil(round(accelerators, 9)), 1)
