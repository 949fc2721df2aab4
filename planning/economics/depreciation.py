"""Depreciation in the books, and the check of the residual curve in the market. Shares of the price. [1]"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from planning.economics import checks


class Depreciation(StrEnum):
    """How the book value falls."""

    STRAIGHT = "straight"
    DECLINING = "declining"  # double declining balance, straight once that is more


def book_shares(method: Depreciation, life: int, years: int) -> tuple[float, ...]:
    """Share of the price left in the books at the end of year 0, 1, ... `years`. [1]"""
    shares = [1.0]
    for year in range(1, years + 1):
        left = life - year + 1
        if left <= 0:
            shares.append(0.0)
            continue
        straight = shares[-1] / left
        taken = (
            straight
            if method is Depreciation.STRAIGHT
            else max(min(2 / life, 1.0) * shares[-1], straight)
        )
        shares.append(max(shares[-1] - taken, 0.0))
    return tuple(shares)


def check_residual(residual: Sequence[float]) -> None:
    """Refuse a residual curve with a value outside 0..1 or one above the year before."""
    values = checks.series("residual", residual, upper=1.0)
    rising = np.flatnonzero(np.diff(values) > 0)
    if rising.size:
        year = int(rising[0]) + 2
        raise checks.refuse(
            f"residual[{year - 1}]", float(values[year - 1]), "not above the year before"
        )
