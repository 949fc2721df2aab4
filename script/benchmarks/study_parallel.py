"""Twenty studies at once on two worker processes, against the same studies one after the other in one process."""

from __future__ import annotations

import multiprocessing
import os
import time
from datetime import date
from functools import cache
from typing import Any

from planning import reference
from planning.services.snapshots import shipped_snapshot
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search.run import Setting, run_study
from planning.study.search.snapshot import Snapshot

ON = date(2026, 11, 30)
STUDIES, WORKERS = 20, 2
BAR = 1.2  # times the sequential time divided by the workers
REQUESTS = (
    {"kind": "finetuning", "model": "llama-3.1-8b", "tokens": "2B", "duration_days": 14, "interruptible": True,
     "checkpoint_seconds": 1800},
    {"kind": "pretraining", "model": "llama-3.1-8b", "tokens": "300B", "duration_days": 45, "interruptible": True,
     "checkpoint_seconds": 1800},
    {"kind": "online_inference", "model": "llama-3.1-70b", "requests_per_day": "1M", "input_tokens": 800,
     "output_tokens": 200, "latency_class": "chat", "accuracy_loss_limit": 0.02, "duration_days": 365},
    {"kind": "gpu_hours", "gpu_hours": 200_000, "accelerators": 32},
)  # fmt: skip


@cache
def _market() -> Snapshot:
    return shipped_snapshot(ON)


def _study(number: int) -> tuple[int, float]:
    """One study as a worker runs it; returns the process and the seconds of a core that it took."""
    start = time.process_time()
    request = parse_request(REQUESTS[number % len(REQUESTS)])
    known = None if request.model is None else known_model(request.model, reference.resolve_model)
    run_study(request, known, _market(), Setting("CNY", number), snapshot_hash="benchmark")
    return os.getpid(), time.process_time() - start


def _warm(_number: int) -> None:
    for number in range(len(REQUESTS)):
        _study(number)


def study_parallel_ratio() -> dict[str, Any]:
    """Wall time of 20 studies on two worker processes, divided by the sequential time over two. 1 is perfect."""
    _warm(0)
    start = time.perf_counter()
    core = sum(_study(number)[1] for number in range(STUDIES))
    alone = time.perf_counter() - start
    context = multiprocessing.get_context("fork")  # as the worker's own pool does
    with context.Pool(WORKERS) as pool:
        pool.map(_warm, range(WORKERS), chunksize=1)
        start = time.perf_counter()
        spent = pool.map(_study, range(STUDIES), chunksize=1)
        together = time.perf_counter() - start
    ratio = together / (alone / WORKERS)
    by_process: dict[int, float] = {}
    for process, seconds in spent:
        by_process[process] = by_process.get(process, 0.0) + seconds
    busiest = max(by_process.values())
    return {
        "value": ratio, "unit": "1", "baseline": BAR, "ratio": BAR / ratio,
        "baseline_is": "1.2 times the sequential time divided by two",
        "note": f"{STUDIES} studies: {alone:.2f} s one after the other, {together:.2f} s on {WORKERS} processes; "
        f"of cores {core:.2f} s and at most {busiest:.2f} s a process, {busiest / (core / WORKERS):.2f} times half",
    }  # fmt: skip


BENCHMARKS = {"study_parallel_ratio": study_parallel_ratio}
