"""Benchmarks of the inference estimator: candidates a second, one interactive estimate, memory over many calls."""

from __future__ import annotations

import gc
import time
import tracemalloc
from typing import Any

import numpy as np

from planning.estimators.inference import estimate_inference
from planning.estimators.inference_batching import serve
from planning.estimators.inference_candidates import candidates
from planning.estimators.inference_constants import published_constants
from planning.estimators.inference_workload import InferenceWorkload
from planning.reference import (
    accelerators,
    architectures,
    resolve_accelerator,
    resolve_architecture,
)

CHUNK = 16_384  # rows that stay in the processor's cache


def _columns(n: int) -> dict[str, Any]:
    """Candidates over every model, card, precision, engine, layout and concurrency."""
    draw = np.random.default_rng(0)
    return {
        "model": draw.integers(0, len(architectures()), n),
        "accelerator": draw.integers(0, len(accelerators()), n),
        "weights": draw.integers(0, 7, n),
        "kv": draw.integers(0, 2, n),
        "engine": draw.integers(0, 5, n),
        "tensor_parallel": 2.0 ** draw.integers(0, 4, n),
        "input_tokens": draw.integers(10, 8000, n).astype(float),
        "output_tokens": draw.integers(10, 2000, n).astype(float),
        "concurrency": 2.0 ** draw.integers(0, 9, n),
    }


def candidates_per_second() -> dict[str, Any]:
    """Model x card x layout x precision x batch evaluated a second on one core."""
    size, loop = 20 * CHUNK, 200
    shapes, cards = list(architectures().values()), list(accelerators().values())
    k, columns = published_constants(), _columns(size)
    start = time.process_time()
    for i in range(0, size, CHUNK):
        part = {name: column[i : i + CHUNK] for name, column in columns.items()}
        serve(candidates(shapes, cards, **part), k)
    rate = size / (time.process_time() - start)
    ready = candidates(shapes, cards, **{name: column[:loop] for name, column in columns.items()})
    rows = [ready.row(i) for i in range(loop)]
    start = time.process_time()
    for row in rows:
        serve(row, k)
    plain = loop / (time.process_time() - start)
    return {
        "value": rate,
        "unit": "candidates/s",
        "baseline": plain,
        "ratio": rate / plain,
        "baseline_is": "a Python loop over the same formulas, one candidate at a time, in this run",
    }


def estimate_ms() -> dict[str, Any]:
    """One interactive estimate: layout search, latency bound, bands, trace and advice."""
    card, shape = resolve_accelerator("H100"), resolve_architecture("Llama-3.1-70B")
    runs = 100
    estimate_inference(InferenceWorkload(1000, 300, tpot_slo=0.03), card, shape)
    start = time.perf_counter()
    for i in range(runs):
        workload = InferenceWorkload(1000 + i, 300, weights_dtype="fp8", tpot_slo=0.03)
        estimate_inference(workload, card, shape)
    value = (time.perf_counter() - start) / runs * 1000.0
    return {
        "value": value,
        "unit": "ms",
        "baseline": 20.0,
        "ratio": 20.0 / value,
        "baseline_is": "the bar",
    }


def estimate_growth_bytes() -> dict[str, Any]:
    """Memory that 10,000 estimates leave behind, after the first hundred."""
    card, shape = resolve_accelerator("H100"), resolve_architecture("Llama-3.1-8B")

    def run(times: int) -> int:
        for i in range(times):
            estimate_inference(InferenceWorkload(1000, 300, concurrency=1.0 + i % 50), card, shape)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = run(100)
    value = float(run(10_000) - before)
    tracemalloc.stop()
    bar = 1e6
    return {
        "value": value,
        "unit": "B",
        "baseline": bar,
        "ratio": bar / max(value, 1.0),
        "baseline_is": "the bar",
    }


BENCHMARKS = {
    "candidates_per_second": candidates_per_second,
    "estimate_ms": estimate_ms,
    "estimate_growth_bytes": estimate_growth_bytes,
}
