"""How much faster or slower this organisation's machines are than published, by accelerator and class of work.

An outcome says measured ÷ estimated, where the estimate rests on the published efficiencies. Its logarithm is taken as
the organisation's offset, plus the cell's own, plus noise. Four beliefs are weighed by how well each explains the data:
nothing differs, the organisation differs as a whole, single cells differ, or both. The first has most of the weight
before any data, so that few or unremarkable outcomes change little. Normal on the logarithm; closed form.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Cell = tuple[str, str]  # accelerator, class of work

P90 = 1.2815515655446004  # of the standard normal
OUTLIER = 4.0  # robust deviations from the cell's median
DRIFT = 3.0  # standard errors between the last third and the rest
LEAST_FOR_DRIFT = 12
NOISE = 0.08  # spread of repeated runs of one job, before any were seen (log)
NOISE_WEIGHT = 6.0  # outcomes that belief is worth
SPREAD = (
    0.20  # how far a cell's true efficiency may lie from the published one (log, one deviation)
)
BELIEFS = {  # (weight before data, share of SPREAD² that is common, share that is the cell's own)
    "as published": (0.8, 0.0, 0.0),
    "all differ alike": (0.06, 1.0, 0.0),
    "cells differ": (0.06, 0.0, 1.0),
    "both": (0.08, 0.5, 0.5),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured figure against its estimate; `ratio` is of speeds: measured ÷ published. [1]"""

    key: int
    accelerator: str
    work: str
    ratio: float
    order: float = 0.0  # any number that grows with time


@dataclass(frozen=True, slots=True)
class Factor:
    """What to multiply an efficiency by, and P10 and P90 of measured ÷ (estimated × factor). [1]"""

    factor: float
    low: float
    high: float
    outcomes: int

    def to_json(self) -> dict[str, float]:
        return {
            "factor": self.factor,
            "low": self.low,
            "high": self.high,
            "outcomes": self.outcomes,
        }


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors by cell, one for cells without outcomes, and what looks wrong in the data."""

    cells: Mapping[Cell, Factor]
    elsewhere: Factor
    noise: float  # spread of repeated runs (log)
    beliefs: Mapping[str, float] = field(default_factory=dict)  # weight after the data
    outliers: tuple[int, ...] = ()  # keys left out
    drifting: tuple[Cell, ...] = ()


def calibrate(outcomes: Iterable[Outcome], *, spread: float = SPREAD) -> Calibration:
    """Factors from all outcomes. Ratios must be above zero.

    Raises
    ------
    ValueError
        For a ratio that is not a positive number.
    """
    groups: dict[Cell, list[Outcome]] = defaultdict(list)
    for one in sorted(outcomes, key=lambda one: one.key):  # sums do not depend on the order
        if not one.ratio > 0 or not np.isfinite(one.ratio):
            raise ValueError(f"ratio of {one.key} is {one.ratio}")
        groups[one.accelerator, one.work].append(one)
    kept, outliers = _without_outliers(groups)
    noise = _noise(kept.values())
    names = [name for name in sorted(kept) if kept[name]]
    logs = {name: np.log([one.ratio for one in kept[name]]) for name in names}
    counts = np.array([len(logs[name]) for name in names], dtype=float)
    means = np.array([logs[name].mean() for name in names])
    mean, variance, common, common_variance, weights = _averaged(means, counts, noise, spread)
    cells = {
        name: _factor(mean[i], variance[i], noise, int(counts[i])) for i, name in enumerate(names)
    }
    drifting = tuple(
        name for name in names if _drifts([one for one in sorted(kept[name], key=lambda o: o.order)], noise)
    )  # fmt: skip
    return Calibration(
        cells, _factor(common, common_variance, noise, 0), noise, weights, tuple(outliers), drifting
    )


def _without_outliers(
    groups: Mapping[Cell, Sequence[Outcome]],
) -> tuple[dict[Cell, list[Outcome]], list[int]]:
    kept: dict[Cell, list[Outcome]] = {}
    outliers: list[int] = []
    for name, rows in groups.items():
        logs = np.log([one.ratio for one in rows])
        middle = np.median(logs)
        # A deviation from few rows is not trusted below the usual noise; two rows cannot tell which is wrong.
        scale = max(1.4826 * float(np.median(np.abs(logs - middle))), NOISE)
        wrong = (
            np.abs(logs - middle) > OUTLIER * scale if len(rows) > 2 else np.zeros(len(rows), bool)
        )
        kept[name] = [one for one, out in zip(rows, wrong, strict=True) if not out]
        outliers += [one.key for one, out in zip(rows, wrong, strict=True) if out]
    return kept, sorted(outliers)


def _noise(groups: Iterable[Sequence[Outcome]]) -> float:
    """Spread within cells, drawn towards NOISE while there are few outcomes."""
    squares, freedom = NOISE_WEIGHT * NOISE**2, NOISE_WEIGHT
    for rows in groups:
        if len(rows) > 1:
            logs = np.log([one.ratio for one in rows])
            squares += float(((logs - logs.mean()) ** 2).sum())
            freedom += len(rows) - 1
    return float(np.sqrt(squares / freedom))


def _averaged(
    means: Floats, counts: Floats, noise: float, spread: float
) -> tuple[Floats, Floats, float, float, dict[str, float]]:
    """Posterior mean and variance of each cell's offset and of a cell without data, averaged over the beliefs."""
    size = len(means)
    scores, found = [], []
    for weight, common, own in BELIEFS.values():
        prior = spread**2 * (common * np.ones((size, size)) + own * np.eye(size))
        total = prior + np.diag(noise**2 / counts) if size else prior
        new = spread**2 * common * np.ones(size)  # covariance of a cell without data with these
        if size:
            solved = np.linalg.solve(total, means)
            _sign, logdet = np.linalg.slogdet(total)
            score = -0.5 * (float(means @ solved) + float(logdet))
            mean = prior @ solved
            variance = np.diag(prior - prior @ np.linalg.solve(total, prior))
            other = float(new @ solved)
            other_variance = spread**2 * (common + own) - float(new @ np.linalg.solve(total, new))
        else:
            score, mean, variance = 0.0, np.zeros(0), np.zeros(0)
            other, other_variance = 0.0, spread**2 * (common + own)
        scores.append(np.log(weight) + score)
        found.append((mean, variance, other, other_variance))
    share = np.exp(np.array(scores) - max(scores))
    share /= share.sum()
    mean = sum((w * f[0] for w, f in zip(share, found, strict=True)), np.zeros(size))
    variance = sum(
        (w * (f[1] + (f[0] - mean) ** 2) for w, f in zip(share, found, strict=True)), np.zeros(size)
    )
    common_mean = float(sum(w * f[2] for w, f in zip(share, found, strict=True)))
    common_variance = float(
        sum(w * (f[3] + (f[2] - common_mean) ** 2) for w, f in zip(share, found, strict=True))
    )
    beliefs = {name: float(w) for name, w in zip(BELIEFS, share, strict=True)}
    return mean, variance, common_mean, common_variance, beliefs


def _factor(mean: float, variance: float, noise: float, outcomes: int) -> Factor:
    deviation = float(np.sqrt(max(variance, 0.0) + noise**2))
    return Factor(
        float(np.exp(mean)),
        float(np.exp(-P90 * deviation)),
        float(np.exp(P90 * deviation)),
        outcomes,
    )


def _drifts(rows: Sequence[Outcome], noise: float) -> bool:
    if len(rows) < LEAST_FOR_DRIFT:
        return False
    logs = np.log([one.ratio for one in rows])
    cut = len(rows) - len(rows) // 3
    early, late = logs[:cut], logs[cut:]
    error = noise * float(np.sqrt(1 / len(early) + 1 / len(late)))
    return abs(float(late.mean() - early.mean())) > DRIFT * error
