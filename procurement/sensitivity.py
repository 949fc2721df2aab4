"""How much a ranking hangs on its weights. Pure: standard library and numpy.

A total is the sum of scores [0–100] times weights [per cent]. Two questions: how far one weight may move, the others
keeping their proportions, before another row wins; and what share of all weightings each row would win.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

STEP = 5  # points between two weightings that are tried
HUNDRED = 100.0
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class WeightRange:
    """The weights [0–100] of one criterion at which the winner stays first, ties included."""

    criterion: str
    weight: int
    low: float
    high: float

    @property
    def is_free(self) -> bool:
        """Whatever this weight is, the winner stays."""
        return self.low <= 0 and self.high >= HUNDRED


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Ranges in the order of the criteria, and shares of all weightings won [1] in the order of the rows."""

    ranges: tuple[WeightRange, ...]
    wins: tuple[float, ...]
    weightings: int
    step: int = STEP


def sensitivity(
    scores: Sequence[Mapping[str, float]], weights: Mapping[str, int], winner: int
) -> Sensitivity | None:
    """Of rows with `scores` by criterion, `winner` (an index) being first at `weights` (they sum to 100).

    None for fewer than two rows or criteria: nothing can change. Criteria without a weight are tried too in the shares
    of weightings. Raises KeyError when a row lacks a score.
    """
    names = sorted(scores[0]) if scores else []
    if len(scores) < 2 or len(names) < 2:
        return None
    table = np.array([[float(row[name]) for name in names] for row in scores])
    given = np.array([float(weights.get(name, 0)) for name in names])
    ranges = tuple(
        _range(table, given, names.index(name), winner, name)
        for name in sorted(weights, key=lambda name: (-weights[name], name))
    )
    tried = weightings(len(names), STEP)
    totals = tried @ table.T
    best = totals >= totals.max(axis=1, keepdims=True) - TIE
    wins = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    return Sensitivity(ranges, tuple(float(share) for share in wins), len(tried))


def _range(
    table: NDArray[np.float64], given: NDArray[np.float64], index: int, winner: int, name: str
) -> WeightRange:
    """Totals are linear in one weight: each rival gives one bound."""
    others = np.delete(given, index)
    rest = np.delete(table, index, axis=1)
    proportions = (
        others / others.sum() if others.sum() > 0 else np.full(len(others), 1 / len(others))
    )
    base = rest @ proportions  # the total at a weight of 0
    # Ahead of a rival while gap0 + w/100 * slope >= 0.
    gaps = base[winner] - base
    slopes = (table[winner, index] - table[:, index]) - gaps
    low, high = 0.0, HUNDRED
    for rival in range(len(table)):
        if rival == winner or abs(slopes[rival]) < TIE:
            continue
        bound = -gaps[rival] / slopes[rival] * HUNDRED
        if slopes[rival] > 0:
            low = max(low, bound)
        else:
            high = min(high, bound)
    # The weight as given is inside: rounding of scores must not say otherwise.
    at = float(given[index])
    return WeightRange(name, round(at), min(max(low, 0.0), at), max(min(high, HUNDRED), at))


@lru_cache(maxsize=8)
def weightings(n: int, step: int) -> NDArray[np.float64]:
    """Every way to split 100 points over `n` criteria in steps: an even sample of all weightings, always the same."""
    units = 100 // step
    rows = []
    for bars in combinations(range(units + n - 1), n - 1):
        edges = (-1, *bars, units + n - 1)
        rows.append([edges[i + 1] - edges[i] - 1 for i in range(n)])
    found = np.array(rows, dtype=float) * step
    found.flags.writeable = False
    return found
