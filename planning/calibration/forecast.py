"""How many cards will be busy: level, damped trend and the week's shape, with intervals from its back-test. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WEEK = 7
LEAST = 4 * WEEK  # days before anything is forecast
DAMPING = 0.985  # of the trend, a day
RECENT = 8 * WEEK  # days that the trend is read from
Z90 = 1.2815515655446004


@dataclass(frozen=True, slots=True)
class Forecast:
    """Means over the days ahead, and how such a forecast would have done before. Cards; error is a share."""

    mean: float
    low: float  # P10
    high: float  # P90
    peak: float  # highest day of the mean forecast
    days: Floats  # day by day
    error: (
        float | None
    )  # mean |forecast - actual| ÷ actual over the back-tests; None: nothing to test on
    tests: int


def forecast(busy: Floats, ahead: int) -> Forecast | None:
    """Forecast the next `ahead` days from daily means `busy` (NaN: no samples). None: fewer than LEAST known days.

    The interval is that of the mean over the days ahead: back-test errors where there are at least three, else the
    spread of the days around the fit.
    """
    known = np.flatnonzero(~np.isnan(busy))
    if len(known) < LEAST:
        return None
    days = _run(busy, ahead)
    errors, shares = _back_test(busy, ahead)
    mean = float(days.mean())
    if len(errors) >= 3:
        spread = float(np.sqrt(np.mean(np.square(errors))))
    else:
        fitted = _fit(busy)
        rest = busy[known] - fitted[known]
        spread = float(rest.std()) * float(np.sqrt(max(ahead / WEEK, 1.0))) / 2 + 0.05 * mean
    return Forecast(
        mean, max(mean - Z90 * spread, 0.0), mean + Z90 * spread, float(days.max()), days,
        float(np.mean(shares)) if shares else None, len(errors),
    )  # fmt: skip


def _shape(busy: Floats) -> tuple[Floats, float, float]:
    """(what each day of the week adds, level of the last day, trend a day)."""
    last = busy[-RECENT:]
    at = np.arange(len(last), dtype=float)
    known = ~np.isnan(last)
    slope, level = np.polyfit(at[known], last[known], 1)
    rest = last - (level + slope * at)
    season = np.zeros(WEEK)
    for day in range(WEEK):
        same = rest[(at % WEEK == day) & known]
        season[day] = same.mean() if len(same) else 0.0
    season -= season.mean()
    # The trend counts as far as it stands out from the noise.
    noise = float((rest[known] - season[(at[known] % WEEK).astype(int)]).std())
    error = noise / (float(at[known].std()) * np.sqrt(known.sum()) + 1e-9)
    trust = slope**2 / (slope**2 + 4 * error**2 + 1e-18)
    middle = float(at[known].mean())
    level_now = float(last[known].mean() + trust * slope * (at[-1] - middle))
    return season, level_now, float(trust * slope)


def _run(busy: Floats, ahead: int) -> Floats:
    season, level, slope = _shape(busy)
    steps = np.arange(1, ahead + 1, dtype=float)
    trend = slope * np.cumsum(DAMPING**steps)
    first = len(busy[-RECENT:])
    days: Floats = level + trend + season[((first - 1 + steps) % WEEK).astype(int)]
    return np.maximum(days, 0.0)


def _fit(busy: Floats) -> Floats:
    season, level, slope = _shape(busy)
    count = len(busy[-RECENT:])
    at = np.arange(count, dtype=float)
    tail = level - slope * (count - 1 - at) + season[(at % WEEK).astype(int)]
    fitted = np.full(len(busy), np.nan)
    fitted[-count:] = tail
    return np.where(np.isnan(fitted), busy, fitted)


def _back_test(busy: Floats, ahead: int) -> tuple[list[float], list[float]]:
    """Errors of the mean over `ahead` days (or what there is), from each week at which a forecast was possible."""
    errors, shares = [], []
    for cut in range(LEAST, len(busy) - WEEK, WEEK):
        past, future = busy[:cut], busy[cut : cut + ahead]
        if (~np.isnan(past)).sum() < LEAST or np.isnan(future).all():
            continue
        told = _run(past, len(future))
        there = ~np.isnan(future)
        actual = float(future[there].mean())
        errors.append(float(told[there].mean()) - actual)
        if actual > 0:
            shares.append(abs(errors[-1]) / actual)
    return errors, shares
