"""Every precision, layout and concurrency of a service on every accelerator, and the fleet that each takes.

All concurrencies of all layouts are served at once. Of one accelerator and precision the layout with the fewest
accelerators is kept and the one that answers first: any other costs more than the first and answers later than the
second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.fleet import replicas_for_wait
from planning.estimators.inference import LEVELS
from planning.estimators.inference_bands import grade_of, measured_over_estimated
from planning.estimators.inference_batching import Serving, serve
from planning.estimators.inference_candidates import (
    Candidates,
    candidates,
    engine_index,
    kv_index,
    weights_index,
)
from planning.estimators.inference_constants import Constants, published_constants
from planning.estimators.inference_memory import (
    kv_sequence_bytes,
    reserve_bytes,
    weight_bytes,
)
from planning.estimators.inference_workload import (
    InferenceLayout,
    default_layouts,
    within_a_server,
)
from planning.estimators.precision import WEIGHT_FORMATS, compute_rate, default_kv_dtype
from planning.estimators.queueing import Queue
from planning.estimators.types import Accelerator, Architecture
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.search.ways import Exclusion, Floats, Found, columns
from planning.study.workloads import ONLINE, SAMPLE_INFERENCE, Kind

CHUNK = 16_384
HEADROOM = 0.2  # over the forecast peak
USUAL_DAYS = 365  # a service whose duration was not told
MONTH_DAYS = 365 / 12
SURE = 1.005  # beyond the P90, so that no rounding misses it
RESUME_HOURS = 10 / 3600  # of an offline run: it notes which items are done
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
SCALES = (1, 2, 4)  # replicas of an offline run, as multiples of the fewest


def inference_ways(
    request: StudyRequest, known: KnownModel, accelerators: tuple[Accelerator, ...]
) -> Found:
    """Ways to serve `request`, and the accelerators that cannot.

    Raises
    ------
    InputError
        If the model takes fewer tokens than the request has.
    """
    k = published_constants()
    architecture = known.architecture
    _check_context(request, architecture)
    found = Found(columns([]), 0, constants_version=k.version)
    engine = str(request.options.get("engine", "vllm"))
    layouts = default_layouts(architecture)
    combos: list[tuple[int, str, InferenceLayout]] = []
    for index, accelerator in enumerate(accelerators):
        usable = [dtype for dtype in precisions(request) if _has_rate(accelerator, dtype)]
        if not usable:
            found.refused.append(
                Exclusion(
                    "accelerator", accelerator.slug,
                    msg("%(name)s has no unit for any precision that may be served", name=accelerator.name),
                    msg("An accuracy-loss limit that allows another precision"), "precision",
                )
            )  # fmt: skip
        combos += [(index, dtype, layout) for dtype in usable for layout in layouts]
    if not combos:
        return found
    base = _candidates(request, architecture, accelerators, combos, engine)
    free = _serve(base, k)
    found.evaluated += len(combos)
    concurrency = np.where(free.fits, free.batch, 1.0)
    strain = _strain(request, free)
    if "concurrency" not in request.options:
        found.evaluated += _relax(request, base, k, free.fits & (strain > 1.0), concurrency, strain)
        free = _serve(_with(base, concurrency), k)
    rows = _rows(request, architecture, accelerators, combos, base, free, concurrency, strain, k)
    if request.kind == Kind.ONLINE_INFERENCE and "concurrency" not in request.options:
        rows += _sure_rows(
            request, architecture, accelerators, combos, base, free, concurrency, strain, k, found
        )
    _refuse(request, accelerators, combos, base, free, strain, k, found)
    found.ways = columns(rows)
    found.notes += service_notes(request)
    return found


def _sure_rows(
    request: StudyRequest,
    architecture: Architecture,
    accelerators: Sequence[Accelerator],
    combos: Sequence[tuple[int, str, InferenceLayout]],
    base: Candidates,
    free: Serving,
    concurrency: Floats,
    strain: Floats,
    k: Constants,
    found: Found,
) -> list[Mapping[str, object]]:
    """The same at fewer requests in flight, so that the latency is held at the P90 of the estimate too."""
    known: dict[tuple[int, str], float] = {}
    for index, dtype, _layout in combos:
        if (index, dtype) not in known:
            low, _high = _residuals(request, architecture, accelerators[index], dtype, k)
            known[index, dtype] = SURE / low
    margins = np.array([known[index, dtype] for index, dtype, _layout in combos])
    missing = free.fits & (strain <= 1.0) & (strain * margins > 1.0)
    if not missing.any():
        return []
    at, held = concurrency.copy(), strain.copy()
    found.evaluated += _relax(request, base, k, missing, at, held, margins)
    rows = np.flatnonzero(missing & (held * margins <= 1.0))
    if not rows.size:
        return []
    part = base.take(rows)
    found_rows = _rows(
        request, architecture, accelerators, [combos[int(i)] for i in rows], _with(part, at[rows]),
        _serve(_with(part, at[rows]), k), at[rows], held[rows], k, margins=margins[rows],
    )  # fmt: skip
    return [{**row, "spared": True} for row in found_rows]


def precisions(request: StudyRequest) -> list[str]:
    """The precision as served today, and the lower ones that the accuracy-loss limit leaves open."""
    today = str(request.workload["weight_precision"])
    limit = request.constraints.accuracy_loss_limit
    lower = [
        dtype
        for dtype, kind in WEIGHT_FORMATS.items()
        if kind.quantized
        and not kind.published_only
        and kind.bytes < WEIGHT_FORMATS[today].bytes
        and limit is not None
        and limit > 0
    ]
    return [today, *lower]


def accuracy_loss(dtype: str, today: str) -> float:
    """The loss against today's precision, at the high end of what was published. Share"""
    if dtype == today:
        return 0.0
    return WEIGHT_FORMATS[dtype].accuracy_loss[1] / 100.0


def days_of(request: StudyRequest) -> int:
    """How long the service runs: as told, else a year. [d]"""
    return request.constraints.duration_days or USUAL_DAYS


def peak_rate(request: StudyRequest) -> float:
    """Requests in the busiest second at the end of the term, growth in. [1/s]"""
    load = request.workload
    months = days_of(request) / MONTH_DAYS
    grown = (1.0 + float(load["growth_per_month"])) ** months
    mean = float(load["requests_per_day"]) / 86_400.0
    return mean * float(load["peak_factor"]) * max(float(grown), 1.0)


def _check_context(request: StudyRequest, architecture: Architecture) -> None:
    total = int(request.workload["input_tokens"]) + int(request.workload["output_tokens"])
    limit = architecture.max_context
    if limit is not None and total > limit:
        raise InputError(
            "input_tokens",
            msg(
                "input and output together are %(value)s tokens; %(model)s takes at most %(limit)s",
                value=total,
                model=architecture.name,
                limit=limit,
            ),
            value=total,
            limit=limit,
        )


def _has_rate(accelerator: Accelerator, dtype: str) -> bool:
    try:
        compute_rate(accelerator, dtype)
    except InputError:
        return False
    return True


def _candidates(
    request: StudyRequest,
    architecture: Architecture,
    accelerators: Sequence[Accelerator],
    combos: Sequence[tuple[int, str, InferenceLayout]],
    engine: str,
) -> Candidates:
    n = len(combos)
    told = request.options.get("kv_precision")

    def column(name: str) -> Floats:
        return np.array([float(getattr(layout, name)) for _i, _d, layout in combos])

    batch = request.kind == Kind.BATCH_INFERENCE
    concurrency = request.options.get("concurrency")
    return candidates(
        [architecture],
        accelerators,
        model=np.zeros(n, dtype=np.int64),
        accelerator=np.array([index for index, _d, _l in combos], dtype=np.int64),
        weights=np.array([weights_index(dtype) for _i, dtype, _l in combos], dtype=np.int64),
        kv=np.array(
            [kv_index(str(told or default_kv_dtype(dtype, engine))) for _i, dtype, _l in combos],
            dtype=np.int64,
        ),
        engine=np.full(n, engine_index(engine), dtype=np.int64),
        tensor_parallel=column("tensor_parallel"),
        pipeline_parallel=column("pipeline_parallel"),
        attention_data_parallel=column("attention_data_parallel"),
        expert_parallel=column("expert_parallel"),
        input_tokens=np.full(n, float(request.workload["input_tokens"])),
        output_tokens=np.full(n, float(request.workload["output_tokens"])),
        concurrency=np.inf if concurrency is None else float(concurrency),
        requests=float(request.workload["items"]) if batch else np.inf,
    )


def _with(base: Candidates, concurrency: Floats) -> Candidates:
    return replace(base, concurrency=concurrency)


def _serve(c: Candidates, k: Constants) -> Serving:
    """Served in parts that stay in cache."""
    n = int(c.concurrency.shape[0])
    if n <= CHUNK:
        return serve(c, k)
    parts = [serve(c.take(np.arange(at, min(at + CHUNK, n))), k) for at in range(0, n, CHUNK)]

    def joined(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts])

    first = parts[0]
    return Serving(
        decode=first.decode,
        mixed=first.mixed,
        **{name: joined(name) for name in Serving.__slots__ if name not in ("decode", "mixed")},
    )


def _strain(request: StudyRequest, s: Serving) -> Floats:
    """Largest ratio of a latency to its bound; nothing asked is no strain. Shape (n,)"""
    limits = request.constraints
    ratio = np.zeros_like(s.tpot)
    if limits.latency_seconds is not None:
        ratio = _latency(request, s) / limits.latency_seconds
    if limits.tpot_seconds is not None and float(request.workload["output_tokens"]) > 1.0:
        ratio = np.maximum(ratio, s.tpot / limits.tpot_seconds)
    return ratio


def _latency(request: StudyRequest, s: Serving) -> Floats:
    """What the latency target is for. [s]"""
    return s.end_to_end if request.constraints.latency_metric == "end_to_end" else s.ttft


def _relax(
    request: StudyRequest,
    base: Candidates,
    k: Constants,
    strained: np.ndarray[tuple[int], np.dtype[np.bool_]],
    concurrency: Floats,
    strain: Floats,
    margins: Floats | None = None,
) -> int:
    """Lower the concurrency of what is too slow to the highest level that is in time (by `margins`, where given), in
    place. Returns how many candidates were tried."""
    rows = np.flatnonzero(strained)
    if not rows.size:
        return 0
    block = CHUNK // LEVELS  # so that what is computed at once stays in cache
    for part in (rows[at : at + block] for at in range(0, rows.size, block)):
        levels = np.floor(np.geomspace(np.ones(part.size), concurrency[part], LEVELS, axis=1))
        wide = _with(base.take(np.repeat(part, LEVELS)), levels.ravel())
        ratio = _strain(request, serve(wide, k)).reshape(levels.shape)
        good = ratio * (1.0 if margins is None else margins[part, None]) <= 1.0
        best = np.where(good, levels, 0.0).argmax(axis=1)
        best = np.where(good.any(axis=1), best, 0)
        at = np.arange(part.size)
        concurrency[part], strain[part] = levels[at, best], ratio[at, best]
    return int(rows.size) * LEVELS


def _rows(
    request: StudyRequest,
    architecture: Architecture,
    accelerators: Sequence[Accelerator],
    combos: Sequence[tuple[int, str, InferenceLayout]],
    base: Candidates,
    s: Serving,
    concurrency: Floats,
    strain: Floats,
    k: Constants,
    margins: Floats | None = None,
) -> list[Mapping[str, object]]:
    """Rows of the table of ways; with `margins` those only that hold the latency by as much."""
    per_replica = s.throughput / base.output_tokens  # requests a second
    each = base.accelerators
    with np.errstate(invalid="ignore", divide="ignore"):
        replicas = _replicas(request, per_replica)
    cards = replicas * each
    latency = _latency(request, s)
    groups: dict[tuple[int, str], list[int]] = {}
    for i, (index, dtype, _layout) in enumerate(combos):
        if s.fits[i] and math.isfinite(cards[i]):
            groups.setdefault((index, dtype), []).append(i)
    memory = _memory(base, s)
    rows: list[Mapping[str, object]] = []
    online = request.kind == Kind.ONLINE_INFERENCE
    for (index, dtype), tried in groups.items():
        kept = within_a_server([combos[i][2] for i in tried], np.ones(len(tried), dtype=bool))
        members = [i for i, one in zip(tried, kept, strict=True) if one]
        good = [i for i in members if strain[i] <= 1.0] or [min(members, key=lambda i: strain[i])]
        fewest = min(good, key=lambda i: (cards[i], latency[i]))
        quickest = min(good, key=lambda i: (latency[i], cards[i]))
        spread = _residuals(request, architecture, accelerators[index], dtype, k)
        for i in dict.fromkeys((fewest, quickest) if online and margins is None else (fewest,)):
            count, answer = int(replicas[i]), float(latency[i])
            if online and strain[i] <= 1.0:
                count, answer = _with_queue(
                    request, count, int(concurrency[i]), float(per_replica[i]), answer,
                    margin=1.0 if margins is None else float(margins[i]),
                )  # fmt: skip
            for scale in (1,) if online or request.count else SCALES:
                rows.append(
                    _row(
                        request, index, dtype, combos[i][2], replicas=count * scale,
                        each=int(each[i]), latency=answer, rate=float(per_replica[i]),
                        concurrency=float(concurrency[i]), memory=float(memory[i]), spread=spread,
                        meets=bool(strain[i] <= 1.0),
                    )
                )  # fmt: skip
    return rows


def _with_queue(
    request: StudyRequest,
    replicas: int,
    concurrency: int,
    per_replica: float,
    latency: float,
    *,
    margin: float = 1.0,
) -> tuple[int, float]:
    """Replicas whose queue leaves the latency target at its percentile, and the latency with the wait. [1], [s]"""
    slots, rate = max(concurrency, 1), peak_rate(request)
    service = slots / per_replica
    percentile = PERCENTILES[request.constraints.latency_percentile]
    target = request.constraints.latency_seconds
    if target is not None:
        by_wait = replicas_for_wait(
            slots, service, rate, budget=target / margin - latency, percentile=percentile
        )
        replicas = max(replicas, by_wait)
    wait = Queue(replicas * slots, service, rate).wait(percentile)
    return replicas, latency + wait


def _replicas(request: StudyRequest, per_replica: Floats) -> Floats:
    """Replicas of the service at its peak with headroom, or of the offline run within its window. [1]"""
    if request.kind == Kind.ONLINE_INFERENCE:
        needed = peak_rate(request) * (1.0 + HEADROOM)
    else:
        needed = float(request.workload["items"]) / (
            float(request.workload["window_hours"]) * 3600.0
        )
    result: Floats = np.maximum(np.ceil(np.round(needed / per_replica, 9)), 1.0)
    return result


def _memory(c: Candidates, s: Serving) -> Floats:
    """Bytes in use on the fullest accelerator. [B], shape (n,)"""
    k = published_constants()
    sequences = np.minimum(np.where(np.isnan(s.batch), 1.0, s.batch), np.maximum(s.capacity, 1.0))
    cache = kv_sequence_bytes(c, c.input_tokens + c.output_tokens) * sequences
    return weight_bytes(c) + cache / c.attention_data_parallel + reserve_bytes(c, k)


def _residuals(
    request: StudyRequest,
    architecture: Architecture,
    accelerator: Accelerator,
    dtype: str,
    k: Constants,
) -> tuple[float, float]:
    """P10 and P90 of measured over estimated throughput. [1]"""
    grade = grade_of(
        k,
        architecture,
        accelerator,
        weights=dtype,
        engine=str(request.options.get("engine", "vllm")),
        context=float(request.workload["input_tokens"]) + float(request.workload["output_tokens"]),
    )
    return measured_over_estimated(
        k, "throughput", sparse=architecture.moe is not None, grade=grade
    )


def _row(
    request: StudyRequest,
    index: int,
    dtype: str,
    layout: InferenceLayout,
    *,
    replicas: int,
    each: int,
    latency: float,
    rate: float,
    concurrency: float,
    memory: float,
    spread: tuple[float, float],
    meets: bool,
) -> dict[str, object]:
    days = days_of(request)
    low, high = spread
    shape: dict[str, int | str] = {
        "replicas": replicas,
        "accelerators_per_replica": each,
        "tensor_parallel": layout.tensor_parallel,
        "pipeline_parallel": layout.pipeline_parallel,
        "attention_data_parallel": layout.attention_data_parallel,
        "expert_parallel": layout.expert_parallel,
        "concurrency": int(concurrency),
    }
    common: dict[str, object] = {
        "accelerator": index,
        "cards": replicas * each,
        "linked": layout.tensor_parallel * layout.attention_data_parallel,
        "time_low": 1.0 / high,
        "time_high": 1.0 / low,
        "accuracy_loss": accuracy_loss(dtype, str(request.workload["weight_precision"])),
        "memory_bytes": memory,
        "precision": dtype,
        "layout": shape,
        "span_hours": days * 24.0,
    }
    if request.kind == Kind.ONLINE_INFERENCE:
        limit = request.constraints.latency_seconds or math.inf
        return common | {
            "work_hours": days * 24.0,
            "hours": days * 24.0,
            "starts": 1,
            "seconds": latency if meets else max(latency, np.nextafter(limit, math.inf)),
            "checkpoint_hours": math.nan,
            "within": meets,
            "limit": limit,
        }
    return common | term_of(request, float(request.workload["items"]) / (rate * replicas) / 3600.0)


def term_of(request: StudyRequest, run: float) -> dict[str, object]:
    """Hours, starts and limit of an offline job whose one run takes `run` hours, over the whole term."""
    days, window = days_of(request), float(request.workload["window_hours"])
    runs = max(round(float(request.workload["runs_per_month"]) * days / MONTH_DAYS), 1)
    return {
        "work_hours": run,
        "hours": run * runs,
        "span_hours": max(days * 24.0, run * runs),
        "starts": runs,
        "seconds": run * 3600.0,
        "checkpoint_hours": RESUME_HOURS if request.constraints.interruptible else math.nan,
        "within": run <= window,
        "limit": window * 3600.0,
    }


def _refuse(
    request: StudyRequest,
    accelerators: Sequence[Accelerator],
    combos: Sequence[tuple[int, str, InferenceLayout]],
    base: Candidates,
    s: Serving,
    strain: Floats,
    k: Constants,
    found: Found,
) -> None:
    """Accelerators on which the model fits in no layout."""
    members: dict[int, list[int]] = {}
    for i, (index, _dtype, _layout) in enumerate(combos):
        members.setdefault(index, []).append(i)
    need = weight_bytes(base) + reserve_bytes(base, k)
    need = need + kv_sequence_bytes(base, base.input_tokens + base.output_tokens)
    room = base.card.memory
    for index, own in members.items():
        if s.fits[own].any():
            continue
        least = own[int(np.argmin((need - room)[own]))]
        found.refused.append(
            Exclusion(
                "accelerator",
                accelerators[index].slug,
                msg(
                    "Out of memory: one request needs %(need)s GB on each accelerator, %(have)s GB are usable",
                    need=round(float(need[least]) / 1e9, 1),
                    have=round(float(room[least]) / 1e9, 1),
                ),
                msg(
                    "%(lack)s GB less on each: a lower precision, or a shorter context",
                    lack=round(float(need[least] - room[least]) / 1e9, 1),
                ),
                "memory",
            )
        )


def service_notes(request: StudyRequest) -> list[Message]:
    notes: list[Message] = []
    if request.constraints.duration_days is None:
        notes.append(
            msg("No duration was told: the service is counted for %(days)s days", days=USUAL_DAYS)
        )
    if request.kind in ONLINE:
        notes.append(
            msg(
                "Sized for %(rate)s requests in the busiest second, with %(headroom)s %% on top",
                rate=round(peak_rate(request), 2),
                headroom=round(HEADROOM * 100),
            )
        )
        if request.constraints.latency_seconds is None:
            notes.append(
                msg("No latency target was told: an answer may take as long as it does")
                if request.kind in SAMPLE_INFERENCE
                else msg("No latency target was told: the first token may take as long as it does")
            )
    if len(precisions(request)) == 1:
        notes.append(
            msg(
                "No accuracy loss was allowed: lower precisions, which take fewer accelerators, are left out"
            )
        )
    return notes
