"""How the load of a service swings over the week: usual shapes, sharpened until the busiest hour is as busy as told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planning.economics import checks
from planning.economics.checks import Floats
from planning.economics.types import (
    FLAT_DAY,
    FLAT_WEEK,
    HOURS_PER_MONTH,
    OFFICE_DAY,
    OFFICE_WEEK,
)

HOURS_PER_WEEK = 168
EVENING_DAY = (
    0.45, 0.3, 0.2, 0.15, 0.12, 0.12, 0.15, 0.25, 0.35, 0.4, 0.45, 0.5,
    0.6, 0.55, 0.5, 0.5, 0.55, 0.6, 0.7, 0.85, 1.0, 1.0, 0.9, 0.7,
)  # fmt: skip
EVENING_WEEK = (0.85, 0.85, 0.85, 0.85, 0.95, 1.0, 1.0)
SHAPES = {
    "office": (OFFICE_DAY, OFFICE_WEEK),
    "evening": (EVENING_DAY, EVENING_WEEK),
    "flat": (FLAT_DAY, FLAT_WEEK),
}
SHARPEST = 40.0  # exponent: from there on only the busiest hours of a shape are left


def week(shape: str, peak_factor: float) -> Floats:
    """Load of each hour of a week over that of its busiest hour, Monday 0:00 first. Shape (168,)

    A usual shape s becomes s^g, with g such that the busiest hour is `peak_factor` times the mean. Where the shape
    cannot be that sharp (a flat one, or a peak shorter than an hour), it is as sharp as it can be: hours are scaled.
    """
    if shape not in SHAPES:
        raise checks.refuse("load_shape", shape, ", ".join(SHAPES))
    if not 1 <= peak_factor < np.inf:
        raise checks.refuse("peak_factor", peak_factor, ">= 1")
    day, days = SHAPES[shape]
    usual = (np.asarray(days)[:, None] * np.asarray(day)).ravel()
    usual = usual / usual.max()
    low, high = 0.0, SHARPEST
    for _ in range(60):
        middle = (low + high) / 2
        if 1.0 / np.mean(usual**middle) < peak_factor:
            low = middle
        else:
            high = middle
    found: Floats = usual**low
    return found


def season(load: Floats, months: Sequence[float], first_month: int) -> Floats:
    """`load` by the hour, weighed by the loads of the year's months (January first), over the largest of all.

    The course begins with `first_month`; a month is a twelfth of a year. Shape of `load`
    """
    if len(months) != 12 or not min(months) >= 0 or not 0 < max(months) < np.inf:
        raise checks.refuse("load_months", len(months), "12")
    hour = np.arange(load.size)
    month = (first_month - 1 + (hour / HOURS_PER_MONTH).astype(int)) % 12
    weighed = load * np.asarray(months, dtype=float)[month]
    if not weighed.any():  # shorter than the months without load
        return load
    found: Floats = weighed / weighed.max()
    return found


def course(shape: str, peak_factor: float, hours: int, growth_per_month: float = 0.0) -> Floats:
    """Load of each hour over the largest of all, growth in. Shape (hours,)"""
    checks.positive("hours", hours)
    if growth_per_month <= -1:
        raise checks.refuse("growth_per_month", growth_per_month, "> -1")
    hour = np.arange(hours)
    load = week(shape, peak_factor)[hour % HOURS_PER_WEEK]
    load = load * (1.0 + growth_per_month) ** (hour / HOURS_PER_MONTH)
    found: Floats = load / load.max()
    return found
