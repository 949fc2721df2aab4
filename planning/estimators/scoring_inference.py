"""How well the inference estimator meets published measurements, by class of figure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planning.estimators.inference_bands import measured_over_estimated
from planning.estimators.inference_batching import serve, static_batch
from planning.estimators.inference_constants import Constants, published_constants
from planning.estimators.inference_truth import (
    Case,
    ResolveAccelerator,
    ResolveArchitecture,
    Row,
    UnreadableRow,
    as_candidates,
    is_static,
    read_case,
)
from planning.estimators.sample_truth import read_sample_case
from planning.estimators.samples import samples_per_second

CLASSES = (
    "inference_throughput_dense",
    "inference_throughput_moe",
    "inference_throughput_at_concurrency",
    "inference_tpot",
    "inference_ttft",
    "inference_other",
)
_THROUGHPUT, _CONCURRENCY = "llm-throughput", "llm-latency-at-concurrency"


@dataclass(slots=True)
class _Class:
    """Measured and estimated figures of one class. Times in s, rates in 1/s."""

    measured: list[float] = field(default_factory=list)
    estimated: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    unpredicted: int = 0

    def add(self, measured: float, estimated: float, spread: tuple[float, float]) -> None:
        if not np.isfinite(estimated) or estimated <= 0:
            self.unpredicted += 1
            return
        self.measured.append(measured)
        self.estimated.append(estimated)
        self.low.append(estimated * spread[0])
        self.high.append(estimated * spread[1])

    def result(self) -> dict[str, float | int | None]:
        rows = len(self.measured)
        if not rows:
            nothing = {"median_ape": None, "p90_ape": None, "coverage": None}
            return {"rows": 0, "unpredicted": self.unpredicted, **nothing}
        measured, estimated = np.array(self.measured), np.array(self.estimated)
        error = np.abs(estimated / measured - 1.0)
        inside = (measured >= np.array(self.low)) & (measured <= np.array(self.high))
        return {
            "rows": rows,
            "unpredicted": self.unpredicted,
            "median_ape": round(100 * float(np.median(error)), 2),
            "p90_ape": round(100 * float(np.percentile(error, 90)), 2),
            "coverage": round(100 * float(np.mean(inside)), 1),
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one row: what was measured, what is estimated, how far the class strays."""

    name: str
    kind: str  # "throughput", "tpot", "ttft", "other"
    sparse: bool
    measured: float
    estimated: float
    row: Row
    case: Case | None = None


def score(
    rows: Sequence[Row],
    resolve_accelerator: ResolveAccelerator,
    resolve_architecture: ResolveArchitecture,
    *,
    constants: Constants | None = None,
) -> dict[str, Any]:
    """Errors of every class of inference figure over truth rows. [%]

    Rows with a non-empty `suspect` or without any measured figure are skipped; a row that cannot be read counts as
    unpredicted in its classes, with its reason in ``unpredicted``.

    Returns
    -------
    dict
        ``classes``: name -> rows, unpredicted, median_ape, p90_ape, coverage (share inside P10 to P90);
        ``skipped``: reason -> count; ``unpredicted``: reason -> count.
    """
    constants = constants or published_constants()
    classes = {name: _Class() for name in CLASSES}
    usable, skipped = _usable(rows)
    figures, reasons = figures_of(usable, resolve_accelerator, resolve_architecture, constants)
    for figure in figures:
        spread = measured_over_estimated(constants, figure.kind, sparse=figure.sparse)
        classes[figure.name].add(figure.measured, figure.estimated, spread)
    for row, _ in reasons:
        for name in _classes_of(row):
            classes[name].unpredicted += 1
    return {
        "classes": {name: group.result() for name, group in classes.items()},
        "skipped": dict(skipped),
        "unpredicted": dict(Counter(reason for _, reason in reasons)),
    }


def _usable(rows: Iterable[Row]) -> tuple[list[Row], Counter[str]]:
    usable: list[Row] = []
    skipped: Counter[str] = Counter()
    for row in rows:
        if not isinstance(row, Mapping):
            skipped["not a row"] += 1
        elif row.get("suspect"):
            skipped["suspect"] += 1
        elif not _classes_of(row):
            skipped["no measured figure of a known kind"] += 1
        else:
            usable.append(row)
    return usable, skipped


def measured(row: Row, name: str) -> float | None:
    """A positive measured figure of the row, else None."""
    values = row.get("measured")
    value = values.get(name) if isinstance(values, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < np.inf:
        return None
    return float(value)


def _classes_of(row: Row) -> list[str]:
    """The classes that a row's measured figures belong to."""
    kind = row.get("row_class")
    rate = measured(row, "output_tokens_per_s")
    if kind == _THROUGHPUT:
        arch = row.get("arch")
        sparse = isinstance(arch, Mapping) and bool(arch.get("moe"))
        return [] if rate is None else [f"inference_throughput_{'moe' if sparse else 'dense'}"]
    if kind == _CONCURRENCY:
        rate = rate or measured(row, "output_tokens_per_s_derived")
        names = {"throughput_at_concurrency": rate, "tpot": measured(row, "tpot_ms")}
        names["ttft"] = measured(row, "ttft_ms")
        return [f"inference_{name}" for name, value in names.items() if value is not None]
    others = (rate, measured(row, "ttft_ms"), measured(row, "requests_per_s"))
    return ["inference_other"] if any(value is not None for value in others) else []


def figures_of(
    rows: Sequence[Row],
    resolve_accelerator: ResolveAccelerator,
    resolve_architecture: ResolveArchitecture,
    constants: Constants,
) -> tuple[list[Figure], list[tuple[Row, str]]]:
    """Every measured figure with its estimate, and the rows that could not be read with the reason."""
    reasons: list[tuple[Row, str]] = []
    figures: list[Figure] = []
    batches: dict[bool, list[tuple[Row, Case]]] = defaultdict(list)
    for row in rows:
        try:
            if row.get("row_class") == "non-llm":
                sample = read_sample_case(row, resolve_accelerator)
                estimate = samples_per_second(sample.workload, sample.accelerator, constants)
                rate = measured(row, "requests_per_s")
                if rate is not None:
                    total = estimate * sample.accelerators
                    figures.append(Figure("inference_other", "samples", False, rate, total, row))
                continue
            read = read_case(row, resolve_accelerator, resolve_architecture)
        except UnreadableRow as error:
            reasons.append((row, str(error)))
            continue
        batches[is_static(row)].append((row, read))
    for static, pairs in batches.items():
        c = as_candidates([case for _, case in pairs])
        served = (static_batch if static else serve)(c, constants, ran=True)
        for i, (row, case) in enumerate(pairs):
            total = float(served.throughput[i]) * case.replicas * case.share_of_offline
            figures += _figures(row, case, total, float(served.tpot[i]), float(served.ttft[i]))
    return figures, reasons


def _figures(row: Row, case: Case, rate: float, tpot: float, ttft: float) -> list[Figure]:
    sparse = case.architecture.moe is not None
    kind = row.get("row_class")
    out: list[Figure] = []

    def add(name: str, group: str, value: float | None, estimate: float) -> None:
        if value is not None:
            out.append(Figure(f"inference_{name}", group, sparse, value, estimate, row, case))

    tokens = measured(row, "output_tokens_per_s")
    first = measured(row, "ttft_ms")
    if kind == _THROUGHPUT:
        add(f"throughput_{'moe' if sparse else 'dense'}", "throughput", tokens, rate)
    elif kind == _CONCURRENCY:
        tokens = tokens or measured(row, "output_tokens_per_s_derived")
        between = measured(row, "tpot_ms")
        add("throughput_at_concurrency", "concurrency", tokens, rate)
        add("tpot", "tpot", None if between is None else between / 1e3, tpot)
        add("ttft", "ttft", None if first is None else first / 1e3, ttft)
    elif tokens is not None:
        add("other", "other", tokens, rate)
    elif first is not None:
        add("other", "other", first / 1e3, ttft)
    return out
