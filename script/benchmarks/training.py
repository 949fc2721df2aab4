"""Benchmarks of the training estimator: accuracy on an unseen source, candidates and layouts a second."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from planning.estimators.architecture import architecture_from_count
from planning.estimators.layouts import SearchSpace, evaluate_candidates, search_layouts
from planning.estimators.training import estimate_training
from planning.estimators.training_candidates import candidate_row, stack
from planning.estimators.training_constants import training_constants
from planning.estimators.training_memory import training_memory
from planning.estimators.training_time import training_time
from planning.estimators.training_workload import Cluster, Layout, TrainingWorkload, resolve
from planning.estimators.types import Architecture
from planning.reference import resolve_accelerator

ROOT = Path(__file__).resolve().parents[2]
CALCULON_LAYOUTS_PER_SECOND = 8_112 / 25.6  # its search on two cores
UNSEEN_BAR = 20.0  # [%]
LLAMA_3_70B = Architecture(
    "Llama-3-70B", 80, 8192, 64, 8, 128, 28672, 128256, params_total=70553706496.0
)


def _base() -> tuple[dict[str, float], Any]:
    recipe = resolve(TrainingWorkload(framework="megatron"))
    row = candidate_row(
        recipe,
        resolve_accelerator("H100-80GB"),
        LLAMA_3_70B,
        Layout(data=8),
        Cluster(),
        micro_batch=1,
        global_batch=1024,
    )
    return row, recipe


def candidates_per_second() -> dict[str, Any]:
    """Candidates evaluated a second on one core; the baseline calls the same formulas once for each."""
    row, _ = _base()
    size, loop = 400_000, 300
    index = np.zeros(size, dtype=np.intp)
    columns = {
        "tensor": np.tile([1.0, 2.0, 4.0, 8.0], size // 4),
        "data": np.tile([64.0, 32.0, 16.0, 8.0], size // 4),
        "micro_batch": np.repeat([1.0, 2.0, 4.0, 8.0], size // 4),
    }
    start = time.perf_counter()
    evaluate_candidates([row], index, columns)
    rate = size / (time.perf_counter() - start)
    constants = training_constants()
    start = time.perf_counter()
    for i in range(loop):
        one = stack([row | {name: float(column[i]) for name, column in columns.items()}])
        training_memory(one, constants)
        training_time(one, constants)
    plain = loop / (time.perf_counter() - start)
    return {
        "value": rate,
        "unit": "candidates/s",
        "baseline": plain,
        "ratio": rate / plain,
        "baseline_is": "one call of the same formulas for each candidate, in this run",
    }


def layouts_per_second() -> dict[str, Any]:
    """Legal layouts of one model over many counts evaluated a second, whole searches timed."""
    row, recipe = _base()
    space = SearchSpace(
        recompute=("none", "selective", "full"), sharding=("none", "zero1", "zero3")
    )
    legal, start = 0, time.perf_counter()
    for count in (64, 128, 256, 512, 1024):
        found = search_layouts(row, recipe, count, space=space)
        legal += found.considered - found.illegal  # the others cost next to nothing
    rate = legal / (time.perf_counter() - start)
    return {
        "value": rate,
        "unit": "layouts/s",
        "baseline": CALCULON_LAYOUTS_PER_SECOND,
        "ratio": rate / CALCULON_LAYOUTS_PER_SECOND,
        "baseline_is": "calculon's published search: 8,112 layouts in 25.6 s on two cores",
    }


def training_estimate_ms() -> dict[str, Any]:
    """One whole training estimate with a layout search, trace and advice."""
    accelerator, architecture = resolve_accelerator("H100-80GB"), architecture_from_count(70e9)
    workload = TrainingWorkload(framework="megatron", tokens=1e12)
    runs = 20
    start = time.perf_counter()
    for _ in range(runs):
        estimate_training(workload, accelerator, architecture, accelerators=64)
    value = (time.perf_counter() - start) / runs * 1000.0
    return {"value": value, "unit": "ms", "baseline": 20.0, "ratio": 20.0 / value}


def training_throughput_unseen_source() -> dict[str, Any]:
    """Median error when each source is predicted by constants fitted without it.

    As recorded by the last fit; computed anew when TRAINING_TRUTH names a truth file.
    """
    fit = training_constants().sources
    if truth := os.environ.get("TRAINING_TRUTH"):
        command = [sys.executable, str(ROOT / "script" / "fit_training"), truth, "--check"]
        fit = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    value = 100.0 * fit["median_ape_unseen_source"]
    return {
        "value": value,
        "unit": "% median APE",
        "baseline": UNSEEN_BAR,
        "ratio": UNSEEN_BAR / value,
        "baseline_is": "the bar",
        "note": ", ".join(f"{k} {100 * v:.1f}" for k, v in fit["unseen_source"].items()),
    }


BENCHMARKS = {
    "training_candidates_per_second": candidates_per_second,
    "layouts_per_second": layouts_per_second,
    "training_estimate_ms": training_estimate_ms,
    "training_throughput_unseen_source": training_throughput_unseen_source,
}
