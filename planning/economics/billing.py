"""Billing: units, minimum terms, commitments, tiers and price periods. Whole seconds, so that every border agrees."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InputError
from core.messages import msg
from core.money import Money
from planning.economics import checks
from planning.economics.types import SECONDS_PER_HOUR, SECONDS_PER_MONTH, PricePeriod

Ints = NDArray[np.int64]


def billed_seconds(
    hours: ArrayLike, unit_seconds: ArrayLike, minimum_seconds: ArrayLike = 0, starts: ArrayLike = 1
) -> Ints:
    """Billed time of `starts` equal runs that last `hours` together. [s], broadcast shape

    Each run is rounded up to the unit and is at least the minimum. A run is taken to the microsecond first, so that
    72 h computed in floating point is not billed as 73.
    """
    count = np.asarray(starts, dtype=np.float64)
    unit = np.asarray(unit_seconds, dtype=np.float64)
    each = np.round(np.asarray(hours, dtype=np.float64) * SECONDS_PER_HOUR / count, 6)
    rounded = np.ceil(np.round(each / unit, 9)) * unit
    result: Ints = (np.maximum(rounded, minimum_seconds) * count).astype(np.int64)
    return result


def committed_seconds(span_hours: ArrayLike, commitment_months: ArrayLike) -> Ints:
    """Time paid under a commitment that is renewed until it covers `span_hours`; 0 without a commitment. [s]"""
    term = np.asarray(commitment_months, dtype=np.int64) * SECONDS_PER_MONTH
    span = np.round(np.asarray(span_hours, dtype=np.float64) * SECONDS_PER_HOUR, 6)
    terms = np.maximum(np.ceil(np.round(span / np.maximum(term, 1), 9)), 1)
    result: Ints = terms.astype(np.int64) * term
    return result


def terms_needed(span_hours: ArrayLike, commitment_months: ArrayLike) -> Ints:
    """How many terms of the commitment cover `span_hours`; 1 without a commitment. [1]"""
    months = np.asarray(commitment_months, dtype=np.int64)
    term = np.maximum(months * SECONDS_PER_MONTH, 1)
    result: Ints = np.where(months > 0, committed_seconds(span_hours, months) // term, 1)
    return result


def instances_needed(accelerators: ArrayLike, per_instance: ArrayLike) -> Ints:
    """Whole instances that hold `accelerators`. [1]"""
    result: Ints = -(
        -np.asarray(accelerators, dtype=np.int64) // np.asarray(per_instance, np.int64)
    )
    return result


def check_periods(periods: Sequence[PricePeriod]) -> tuple[PricePeriod, ...]:
    """`periods` in order of time. Refused: two that overlap, one that ends before it starts, a negative price."""
    ordered = tuple(sorted(periods, key=lambda period: period.start))
    for index, period in enumerate(ordered):
        checks.price(f"price_periods[{index}].price", period.price)
        if period.end is not None and period.end <= period.start:
            raise checks.refuse(f"price_periods[{index}].end", period.end, f"after {period.start}")
    for before, after in pairwise(ordered):
        if before.end is None or before.end > after.start:
            raise InputError(
                "price_periods",
                msg(
                    "Two price periods overlap: one ends %(end)s, the next starts %(start)s",
                    end=str(before.end or "never"),
                    start=str(after.start),
                ),
                value=(before.end, after.start),
                limit="no overlap",
            )
    return ordered


def price_on(periods: Sequence[PricePeriod], day: date) -> Money:
    """The price in force on `day`; refused when no period covers it."""
    for period in check_periods(periods):
        if period.start <= day and (period.end is None or day < period.end):
            return period.price
    raise InputError(
        "price_periods",
        msg("No price is in force on %(day)s", day=str(day)),
        value=day,
        limit="a period",
    )


def tiered_amount(
    quantity: Decimal,
    tiers: Sequence[tuple[Decimal | None, Decimal]],
    *,
    free: Decimal = Decimal(0),
) -> Decimal:
    """What `quantity` costs when each tier (size, unit price) is used up before the next; size None: no end.

    The first `free` units cost nothing and count in no tier. Exact, not rounded.

    Raises
    ------
    InputError
        If the quantity is negative or larger than all tiers.
    """
    checks.non_negative("quantity", quantity)
    left = max(quantity - free, Decimal(0))
    amount = Decimal(0)
    for size, unit_price in tiers:
        checks.non_negative("tier price", unit_price)
        part = left if size is None else min(left, size)
        amount += part * unit_price
        left -= part
    if left > 0:
        raise checks.refuse("quantity", quantity, "within the price tiers")
    return amount
