"""How well the training estimator meets published measurements, by class of figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import DomainError
from planning.estimators.training_candidates import Candidates, stack
from planning.estimators.training_constants import TrainingConstants, training_constants
from planning.estimators.training_memory import memory_bounds, training_memory
from planning.estimators.training_rule import production_factor, rule_rate
from planning.estimators.training_time import training_time
from planning.estimators.training_truth import (
    SAMPLES_PER_EPOCH,
    Resolver,
    Row,
    TruthRow,
    UnreadableRow,
    is_suspect,
    throughput_target,
    truth_candidate,
    truth_row,
)

CLASSES = (
    "training_throughput",
    "training_throughput_blind",
    "training_throughput_macro",
    "training_gpu_hours",
    "training_memory",
)
Floats = NDArray[np.float64]


def score(
    rows: Sequence[Row],
    resolve_accelerator: Resolver,
    *,
    constants: TrainingConstants | None = None,
) -> dict[str, Any]:
    """Errors of every class of training figure over truth rows. [%]

    Rows with a non-empty `suspect` are skipped; those with `score_throughput` false are left out of throughput.
    A row that cannot be read counts as unpredicted, with its reason in `unpredicted`.

    Returns
    -------
    dict
        ``classes``: name → rows, unpredicted, median_ape, p90_ape, coverage (share inside P10 to P90);
        ``skipped``: reason → count; ``unpredicted``: reason → count.
    """
    constants = constants or training_constants()
    skipped: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    throughput, hours, memory = _Class(), _Class(), _Class()
    for row in rows:
        if is_suspect(row):
            skipped["suspect"] += 1
            continue
        measured = row.get("measured")
        measured = measured if isinstance(measured, dict) else {}
        rate = throughput_target(row)
        run_hours, held = measured.get("gpu_hours"), _memory_bytes(measured)
        if rate is None and not run_hours and held is None:
            skipped["no throughput, GPU-hours or memory"] += 1
            continue
        if rate is not None and not row.get("score_throughput", True):
            skipped["throughput not to be scored"] += 1
            rate = None
        try:
            truth = truth_row(row, resolve_accelerator)
            candidate = truth_candidate(truth)
        except (UnreadableRow, DomainError) as error:
            reasons[str(error)] += 1
            for value, group in ((rate, throughput), (run_hours, hours), (held, memory)):
                group.unpredicted += 1 if value else 0
            continue
        if rate is not None:
            throughput.add(truth, candidate, rate)
        if run_hours:
            if truth.tokens is None and not truth.sample_flops:
                hours.unpredicted += 1
                reasons["GPU-hours without a number of tokens"] += 1
            else:
                hours.add(truth, candidate, float(run_hours))
        if held is not None:
            memory.add(truth, candidate, held)
    classes = _throughput_classes(throughput, constants)
    classes["training_gpu_hours"] = _hours_class(hours, constants)
    classes["training_memory"] = _memory_class(memory, constants)
    return {"classes": classes, "skipped": dict(skipped), "unpredicted": dict(reasons)}


class _Class:
    """Rows of one class of figure, gathered to be predicted together."""

    def __init__(self) -> None:
        self.truths: list[TruthRow] = []
        self.candidates: list[dict[str, float]] = []
        self.measured: list[float] = []
        self.unpredicted = 0

    def add(self, truth: TruthRow, candidate: dict[str, float], measured: float) -> None:
        self.truths.append(truth)
        self.candidates.append(candidate)
        self.measured.append(measured)

    def columns(self) -> tuple[Candidates, Floats]:
        return stack(self.candidates), np.array(self.measured)


def throughput_band(c: Candidates, constants: TrainingConstants) -> tuple[Floats, Floats]:
    """Measured ÷ predicted at P10 and P90 for each candidate, framework and layout known. [1]"""
    dense, sparse = constants.residuals["throughput_dense"], constants.residuals["throughput_moe"]
    is_sparse = c.experts > 0
    return np.where(is_sparse, sparse[0], dense[0]), np.where(is_sparse, sparse[1], dense[1])


def _throughput_classes(group: _Class, constants: TrainingConstants) -> dict[str, dict[str, Any]]:
    names = CLASSES[:3]
    if not group.measured:
        return {name: _empty(group.unpredicted) for name in names}
    c, measured = group.columns()
    time = training_time(c, constants)
    predicted = time.tokens / time.total / c.accelerators
    low, high = throughput_band(c, constants)
    known = _result(predicted, measured, low, high, group.unpredicted)
    low_blind, high_blind = constants.residuals["throughput_blind"]
    ones = np.ones_like(measured)
    blind = _result(
        rule_rate(c, constants), measured, low_blind * ones, high_blind * ones, group.unpredicted
    )
    sources = np.array([truth.source for truth in group.truths])
    error = np.abs(predicted / measured - 1.0)
    medians = [float(np.median(error[sources == name])) for name in sorted(set(sources))]
    macro = known | {
        "median_ape": _percent(float(np.mean(medians))),
        "p90_ape": _percent(float(np.percentile(medians, 90))),
        "sources": len(medians),
    }
    return dict(zip(names, (known, blind, macro), strict=True))


def _hours_class(group: _Class, constants: TrainingConstants) -> dict[str, Any]:
    if not group.measured:
        return _empty(group.unpredicted)
    c, measured = group.columns()
    work = np.array([truth.tokens or 90 * SAMPLES_PER_EPOCH for truth in group.truths])
    predicted = work / rule_rate(c, constants) / 3600.0 * production_factor(c, constants)
    low, high = constants.residuals["gpu_hours"]
    ones = np.ones_like(measured)
    return _result(predicted, measured, low * ones, high * ones, group.unpredicted)


def _memory_class(group: _Class, constants: TrainingConstants) -> dict[str, Any]:
    if not group.measured:
        return _empty(group.unpredicted)
    c, measured = group.columns()
    memory = training_memory(c, constants)
    low, high = memory_bounds(memory, constants)
    predicted = memory.total
    return _result(predicted, measured, low / predicted, high / predicted, group.unpredicted)


def _memory_bytes(measured: Row) -> float | None:
    for name, unit in (("memory_gb_per_gpu", 1e9), ("memory_gib_per_gpu", 2.0**30)):
        value = measured.get(name)
        if isinstance(value, (int, float)) and value > 0:
            return float(value) * unit
    return None


def _result(
    predicted: Floats, measured: Floats, low: Floats, high: Floats, unpredicted: int
) -> dict[str, Any]:
    error = np.abs(predicted / measured - 1.0)
    inside = (measured >= predicted * low) & (measured <= predicted * high)
    return {
        "rows": len(measured) + unpredicted,
        "unpredicted": unpredicted,
        "median_ape": _percent(float(np.median(error))),
        "p90_ape": _percent(float(np.percentile(error, 90))),
        "coverage": _percent(float(np.mean(inside))),
    }


def _empty(unpredicted: int) -> dict[str, Any]:
    return {
        "rows": unpredicted,
        "unpredicted": unpredicted,
        "median_ape": None,
        "p90_ape": None,
        "coverage": None,
    }


def _percent(share: float) -> float:
    return round(100.0 * share, 2)
