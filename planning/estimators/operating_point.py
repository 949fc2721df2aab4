"""Where a replica settles under a load: what is in flight there, and how a request is answered.

At a rate r a request stays S(b) in a replica that works on b requests, itself included. By Little's law r S(b) others
are in flight when it arrives (arrivals of a Poisson process see the mean), so that b = 1 + r S(b): the batch sets the
step, the step sets the stay, the stay sets the batch. Full batches are met at the capacity alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from planning.estimators.inference_batching import Serving, serve
from planning.estimators.inference_candidates import Candidates
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_tables import Floats, Ints

LEVELS = 24  # batches at which a replica is computed, between which the figures are straight lines


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A replica at a rate."""

    rate: float  # requests of one replica [1/s]
    in_flight: float  # mean [1]
    batch: float  # that a request meets, itself included [1]
    busy: float  # share of time in which a step runs [1]


@dataclass(frozen=True, slots=True)
class ServiceCurve:
    """What one replica does with each batch. Columns of shape (LEVELS,), or of one level where batches are fixed."""

    batch: Floats  # 1 to the highest that memory and latency bounds allow [1]
    stay: Floats  # from admission to the last token [s]
    ttft: Floats  # [s]
    tpot: Floats  # [s]
    compute: Floats  # share of peak FLOP/s in a mean step [1]
    bandwidth: Floats  # share of peak bandwidth in a mean step [1]

    def settle(self, rate: float) -> OperatingPoint:
        """Where b = 1 + rate x stay(b); the highest batch where there is no such b. `rate`: of one replica. [1/s]"""
        most = float(self.batch[-1])
        short = self.batch - 1.0 - rate * self.stay  # below 0: more are in flight than b - 1
        enough = np.flatnonzero(short >= 0.0)
        if not enough.size:
            flying = min(rate * float(self.stay[-1]), most)
            return OperatingPoint(rate, flying, most, 1.0 - float(np.exp(-flying)))
        i = int(enough[0])
        if i == 0:  # no arrivals at all
            return OperatingPoint(rate, 0.0, float(self.batch[0]), 0.0)
        share = -short[i - 1] / (short[i] - short[i - 1])
        batch = float(self.batch[i - 1] + share * (self.batch[i] - self.batch[i - 1]))
        return OperatingPoint(rate, batch - 1.0, batch, 1.0 - float(np.exp(1.0 - batch)))

    def batch_at(self, point: OperatingPoint, percentile: float) -> float:
        """Batch that a share `percentile` of the requests stays below: a number in flight strays by its root. [1]"""
        if percentile <= 0.5:
            return point.batch
        spread = NormalDist().inv_cdf(percentile) * math.sqrt(point.in_flight)
        return min(point.batch + spread, float(self.batch[-1]))

    def at(self, column: Floats, batch: float) -> float:
        """One of the columns at a batch between the levels."""
        return float(np.interp(batch, self.batch, column))


def service_curve(
    c: Candidates, k: Constants, *, most: float, fixed: Serving | None = None
) -> ServiceCurve:
    """The curve of a batch of one candidate up to `most` requests in flight; one level where `fixed` is all it does."""
    if fixed is not None:
        return _curve(c, fixed, np.array([most]))
    levels = np.unique(np.geomspace(1.0, max(most, 1.0), LEVELS))
    index: Ints = np.zeros(levels.size, dtype=np.int64)
    return _curve(c, serve(replace(c.take(index), concurrency=levels), k), levels)


def _curve(c: Candidates, s: Serving, levels: Floats) -> ServiceCurve:
    output = float(c.output_tokens[0])
    share = s.mixed_share
    step = (1 - share) * s.decode.total + share * s.mixed.total
    flops = (1 - share) * s.decode.flops + share * s.mixed.flops
    moved = (1 - share) * s.decode.bytes + share * s.mixed.bytes
    # a stay never shrinks as the batch grows; the running maximum takes out what rounding does
    stay = np.maximum(levels * output / s.throughput, s.end_to_end)
    return ServiceCurve(
        batch=levels,
        stay=np.maximum.accumulate(stay),
        ttft=np.maximum.accumulate(s.ttft),
        tpot=np.maximum.accumulate(s.tpot),
        compute=np.minimum(flops / (float(c.card.rate[0, c.weights[0]]) * step), 1.0),
        bandwidth=np.minimum(moved / (float(c.card.bandwidth[0]) * step), 1.0),
    )
