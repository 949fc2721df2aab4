"""Distribution of the hours that reclaims cost a run: the arithmetic behind the P90 of :mod:`spot`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special, stats

from planning.economics.checks import Floats

_TAIL = 1e-9


class Losses:
    """Distribution of the hours of a run whose segments are repeated until they pass."""

    def __init__(self, whole: int, length: float, last: float, mtbf: float) -> None:
        self.base = whole * length + last
        counts = [_failures(whole, length / mtbf), _failures(1, last / mtbf)]
        first, second = (np.arange(len(weights)) for weights in counts)
        weight = np.outer(*counts).ravel()
        keep = weight > 1e-12
        self.weight = weight[keep] / weight[keep].sum()
        self.first = np.repeat(first, len(second))[keep]
        self.second = np.tile(second, len(first))[keep]
        self.length, self.last, self.mtbf = length, last, mtbf
        (mean1, var1), (mean2, var2) = _cut_exponential(length, mtbf), _cut_exponential(last, mtbf)
        self.mean = self.first * mean1 + self.second * mean2
        self.deviation = np.sqrt(self.first * var1 + self.second * var2)

    def cdf(self, hours: float, recovery: float) -> float:
        """Share of runs that take at most `hours`, each interruption costing `recovery` besides lost work."""
        count = self.first + self.second
        loss = hours - self.base - count * recovery
        several = special.ndtr(
            (loss - self.mean) / np.where(self.deviation > 0, self.deviation, 1.0)
        )
        bound = np.where(self.first == 1, self.length, self.last)
        single = np.clip(
            np.expm1(-np.clip(loss, 0, bound) / self.mtbf) / np.expm1(-bound / self.mtbf), 0, 1
        )
        share = np.where(count == 0, loss >= 0, np.where(count == 1, single, several))
        return float(self.weight @ share)

    def quantile(self, share: float, recovery: float) -> float:
        """Hours within which `share` of the runs end."""
        count = self.first + self.second
        high = (
            float(np.max(self.base + count * recovery + self.mean + 8 * self.deviation))
            + self.length
        )
        return _bisect(lambda hours: self.cdf(hours, recovery) - share, self.base, high)


def _failures(segments: int, ratio: float) -> Floats:
    """Probabilities of 0, 1, 2 ... failures before all `segments` of length `ratio` x MTBF have passed."""
    if segments == 0:
        return np.ones(1)
    passes = math.exp(-ratio)
    most = int(stats.nbinom.ppf(1 - _TAIL, segments, passes))
    weights: Floats = stats.nbinom.pmf(np.arange(most + 1), segments, passes)
    return weights


def _cut_exponential(bound: float, mean: float) -> tuple[float, float]:
    """Mean and variance of an exponential with `mean`, given that it is below `bound`."""
    ratio = bound / mean
    if ratio < 1e-3:  # nearly uniform; the closed form cancels here
        return bound / 2, bound * bound / 12
    if ratio > 500:
        return mean, mean * mean
    grown = math.expm1(ratio)
    return mean - bound / grown, mean * mean - bound * bound * math.exp(ratio) / grown**2


def busy_period_quantile(share: float, mean: float, branching: float) -> int:
    """Quantile of the generalised Poisson count with P(n) = m (m + n b)^(n-1) e^-(m + n b) / n!."""
    expected = mean / (1 - branching)
    spread = math.sqrt(mean / (1 - branching) ** 3)
    n = np.arange(int(expected + 12 * spread) + 20)
    log = np.log(mean) + (n - 1) * np.log(mean + n * branching) - (mean + n * branching)
    reached = np.cumsum(np.exp(log - special.gammaln(n + 1.0)))
    return int(np.searchsorted(reached, share))


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Smallest point in (`low`, `high`] at which a rising step function is not negative, to 1e-6 relative."""
    if function(low) >= 0:
        return low
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if function(middle) >= 0:
            high = middle
        else:
            low = middle
    return high
