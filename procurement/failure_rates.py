"""How often units fail, with what a small number of them can and cannot show. Pure.

References
----------
E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22, 1927: the interval of a
share. F. Garwood, Fiducial limits for the Poisson distribution, Biometrika 28, 1936: the exact interval of a count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

Z95 = 1.959963984540054  # two-sided 95 % [1]
PLANNED_PER_YEAR = 0.10  # the planning assumption: one in ten a year [1/a]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def holds(self, other: float) -> bool:
        return self.low <= other <= self.high


def share_interval(failed: int, units: int) -> Interval | None:
    """Share of units that failed [1], by Wilson; None for no unit."""
    if units <= 0 or not 0 <= failed <= units:
        return None
    share, z2 = failed / units, Z95 * Z95
    middle = (share + z2 / (2 * units)) / (1 + z2 / units)
    half = (
        Z95 * math.sqrt(share * (1 - share) / units + z2 / (4 * units * units)) / (1 + z2 / units)
    )
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def rate_interval(failures: int, unit_years: float) -> Interval | None:
    """Failures per unit and year [1/a], by Garwood; None without time in service."""
    if unit_years <= 0 or failures < 0:
        return None
    low = 0.0 if failures == 0 else _mean_for(failures - 1, 0.975)
    high = _mean_for(failures, 0.025)
    return Interval(failures / unit_years, low / unit_years, high / unit_years)


def _mean_for(count: int, probability: float) -> float:
    """The Poisson mean at which at most `count` events have `probability`, by bisection."""
    low, high = 0.0, count + 20.0 + 10.0 * math.sqrt(count + 1.0)
    for _ in range(80):
        middle = (low + high) / 2
        if _at_most(count, middle) > probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_most(count: int, mean: float) -> float:
    if mean <= 0:
        return 1.0
    terms = [i * math.log(mean) - mean - math.lgamma(i + 1) for i in range(count + 1)]
    top = max(terms)
    return math.exp(top) * sum(math.exp(term - top) for term in terms)


@dataclass(frozen=True, slots=True)
class TurnAround:
    """Days from filing to resolution: of those resolved, and how long the open ones have waited."""

    resolved: int
    median_days: float | None
    slowest_days: float | None
    open: int
    longest_open_days: float | None


def turn_around(resolved_days: list[float], open_days: list[float]) -> TurnAround:
    return TurnAround(
        resolved=len(resolved_days),
        median_days=median(resolved_days) if resolved_days else None,
        slowest_days=max(resolved_days, default=None),
        open=len(open_days),
        longest_open_days=max(open_days, default=None),
    )
