"""Money of a term by fiscal quarter: how many days fall into each, and exact shares of an amount. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

from core.money import Money, minor_unit
from core.quarters import Quarter


def days_by_quarter(first: date, last: date, current: Quarter) -> list[tuple[Quarter, int]]:
    """Days of [first, last], both included, in each quarter. Days before `current` count in it: theirs are over.

    Raises ValueError when the term ends before it starts.
    """
    if last < first:
        raise ValueError(f"the term ends on {last}, before it starts on {first}")
    start = max(Quarter.of(first, current.start_month), current)
    found: list[tuple[Quarter, int]] = []
    quarter = start
    while True:
        begin = first if quarter == start else quarter.start
        end = min(last, quarter.end - timedelta(days=1))
        found.append((quarter, (end - begin).days + 1))
        if quarter.end > last:
            return found
        quarter = quarter.next()


def split(money: Money, weights: Sequence[int | Decimal]) -> list[Money]:
    """Parts in proportion to `weights` at the currency's minor unit that sum to the rounded amount exactly.

    What rounding down leaves goes, a unit each, to the largest remainders; of equal ones to the earlier part.
    """
    whole = money.rounded()
    unit = minor_unit(money.currency)
    units = int(abs(whole.amount) / unit)
    total = sum(Fraction(weight) for weight in weights)
    if not weights or total <= 0:
        raise ValueError("shares need a weight above 0")
    exact = [units * Fraction(weight) / total for weight in weights]
    parts = [int(share) for share in exact]
    order = sorted(range(len(parts)), key=lambda at: (parts[at] - exact[at], at))
    for at in order[: units - sum(parts)]:
        parts[at] += 1
    sign = -1 if whole.amount < 0 else 1
    return [Money(sign * part * unit, money.currency) for part in parts]
