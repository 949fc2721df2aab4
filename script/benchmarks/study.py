"""Benchmarks of the study: candidates a second, seconds for one request over the whole catalogue, growth and memory."""

from __future__ import annotations

import time
import tracemalloc
from dataclasses import replace
from datetime import date
from typing import Any

from planning import reference
from planning.economics import exact
from planning.services.snapshots import shipped_snapshot
from planning.study.estimates import estimate_on
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search.run import Setting, run_study
from planning.study.search.snapshot import Snapshot

ON = date(2026, 11, 30)
BAR = 2.0  # [s]
REQUESTS = {
    "fine-tuning": {"kind": "finetuning", "model": "llama-3.1-8b", "tokens": "2B", "duration_days": 14,
                    "interruptible": True, "checkpoint_seconds": 1800},
    "pre-training": {"kind": "pretraining", "model": "llama-3.1-8b", "tokens": "300B", "duration_days": 45,
                     "interruptible": True, "checkpoint_seconds": 1800},
    "service": {"kind": "online_inference", "model": "llama-3.1-70b", "requests_per_day": "1M", "input_tokens": 800,
                "output_tokens": 200, "latency_class": "chat", "accuracy_loss_limit": 0.02, "duration_days": 365},
}  # fmt: skip


def _run(name: str, snapshot: Snapshot) -> tuple[float, dict[str, Any]]:
    request = parse_request(REQUESTS[name])
    known = None if request.model is None else known_model(request.model, reference.resolve_model)
    start = time.process_time()
    result = run_study(request, known, snapshot, Setting("CNY", 1), snapshot_hash="benchmark")
    return time.process_time() - start, result


def _larger(snapshot: Snapshot, times: int) -> Snapshot:
    """The catalogue `times` over: each accelerator again under another name, with all of its offers."""
    accelerators, offers = [], []
    for copy in range(times):
        accelerators += [replace(a, slug=f"{a.slug}~{copy}") for a in snapshot.accelerators]
        offers += [replace(o, accelerator=f"{o.accelerator}~{copy}") for o in snapshot.offers]
    return replace(
        snapshot, accelerators=tuple(accelerators), offers=tuple(offers), platforms=(), unpriced=(), export_notes=None
    )  # fmt: skip


def study_candidates() -> dict[str, Any]:
    """Candidates a second of one core; the baseline estimates and charges them one by one."""
    snapshot = shipped_snapshot(ON)
    _run("fine-tuning", snapshot)
    seconds, result = min((_run("pre-training", snapshot) for _ in range(3)), key=lambda r: r[0])
    candidates = result["counts"]["candidates"]
    request = parse_request(REQUESTS["pre-training"])
    known = known_model(request.model, reference.resolve_model) if request.model else None
    card = reference.resolve_accelerator("H100")
    offer = next(o for o in snapshot.offers if o.accelerator == card.slug)
    told = {"tensor_parallel": 4, "pipeline_parallel": 1, "data_parallel": 16}
    one = replace(request, options={**request.options, **told})
    start, loops = time.process_time(), 60
    for _ in range(loops):
        found = estimate_on(one, known, card)
        hours = found.estimate.figures["training_time"].p50 / 3600
        exact.charge(offer, accelerators=64, hours=hours)
    baseline = loops / (time.process_time() - start)
    value = candidates / seconds
    return {
        "value": value, "unit": "candidates/s", "baseline": baseline, "ratio": value / baseline,
        "baseline_is": "one estimate and one exact charge at a time",
        "note": f"{candidates:,} candidates of one pre-training request in {seconds:.2f} s of one core",
    }  # fmt: skip


def study_seconds() -> dict[str, Any]:
    """Seconds of one core for the slowest of three requests over the whole catalogue, against the bar of 2 s."""
    snapshot = shipped_snapshot(ON)
    _run("fine-tuning", snapshot)
    times = {name: min(_run(name, snapshot)[0] for _ in range(3)) for name in REQUESTS}
    slowest = max(times.values())
    counts = {name: _run(name, snapshot)[1]["counts"] for name in REQUESTS}
    growth = []
    for size in (1, 4, 16):
        seconds, result = _run("service", _larger(snapshot, size))
        growth.append(f"{size}x {result['counts']['candidates']:,} in {seconds:.2f} s")
    tracemalloc.start()
    _run("pre-training", snapshot)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    each = ", ".join(
        f"{name} {seconds:.2f} s for {counts[name]['candidates']:,}"
        for name, seconds in times.items()
    )
    size = f"{len(snapshot.accelerators)} accelerators, {len(snapshot.offers)} offers"
    return {
        "value": slowest, "unit": "s", "baseline": BAR, "ratio": BAR / slowest,
        "baseline_is": "2 s of one core for at least 100,000 candidates",
        "note": f"{size}: {each}; growth {'; '.join(growth)}; peak {peak:.0f} MB",
    }  # fmt: skip


BENCHMARKS = {"study_candidates": study_candidates, "study_seconds": study_seconds}
