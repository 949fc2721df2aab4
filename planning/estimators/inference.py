"""The inference estimate: memory, step time, latency, throughput and concurrency of one replica, with bands and trace.

Fleets for a request rate are sized in :mod:`fleet`; many candidates at once in :mod:`inference_candidates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.errors import InputError
from core.messages import Message, msg, plural
from planning.estimators.inference_advice import assumptions, remedies, warnings
from planning.estimators.inference_bands import band, grade_of
from planning.estimators.inference_batching import Serving, serve, static_batch
from planning.estimators.inference_candidates import (
    Candidates,
    layout_columns,
    one_candidate,
    stacked,
)
from planning.estimators.inference_constants import Constants, published_constants
from planning.estimators.inference_memory import (
    cache_room,
    kv_sequence_bytes,
    reserve_bytes,
    weight_bytes,
)
from planning.estimators.inference_tables import Floats
from planning.estimators.inference_trace import trace
from planning.estimators.inference_workload import (
    InferenceLayout,
    InferenceWorkload,
    check_layout,
    checked,
    default_layouts,
    within_a_server,
)
from planning.estimators.precision import weight_format
from planning.estimators.types import (
    Accelerator,
    Architecture,
    Band,
    Estimate,
    Grade,
    InfeasibleError,
    Part,
    Saturation,
)

RESERVE_SPREAD = 0.4  # of activations and engine reserve, how far P10 and P90 lie
WEIGHT_SPREAD = 0.02
NEAR_BEST = 0.8  # of the best throughput per accelerator, good enough to prefer fewer accelerators per replica
LEVELS = 48  # concurrencies tried per layout


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """One layout with a concurrency that meets the latency bounds, and what it does."""

    workload: InferenceWorkload
    layout: InferenceLayout
    candidate: Candidates  # one row
    serving: Serving  # one row
    concurrency: float
    strain: float  # largest ratio of a latency, without waiting, to its bound

    @property
    def meets(self) -> bool:
        return self.strain <= 1.0

    @property
    def throughput_per_accelerator(self) -> float:
        """Output tokens per second and accelerator. [1/s]"""
        return float(self.serving.throughput[0]) / self.layout.accelerators

    @property
    def fits(self) -> bool:
        """Whether weights and the cache of every request in flight are held; an engine would let the others wait."""
        return bool(self.serving.fits[0]) and float(self.serving.capacity[0]) >= self.concurrency


def estimate_inference(
    request: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    *,
    accelerators: int | None = None,
    layout: InferenceLayout | None = None,
    constants: Constants | None = None,
) -> Estimate:
    """Memory per accelerator, TTFT, TPOT, end-to-end time, throughput and concurrency of a replica, or of all of them.

    Without a `layout` the one with the fewest accelerators that fits and meets the latency bounds is taken. With
    `accelerators`, whole replicas are formed of them. A workload that does not fit is not an error: `fits` says
    "out_of_memory", `remedies` first says what is lacking and then the three cheapest changes that would make it fit.

    Raises
    ------
    InputError
        Naming the field, the value and the limit.
    """
    k = constants or published_constants()
    workload = checked(request, accelerator, architecture)
    plan = plan_replica(workload, accelerator, architecture, k, layout=layout, most=accelerators)
    per_replica = plan.layout.accelerators
    if accelerators is not None and accelerators < per_replica:
        text = msg(
            "accelerators is %(value)s; one replica needs at least %(limit)s",
            value=accelerators,
            limit=per_replica,
        )
        raise InputError("accelerators", text, value=accelerators, limit=per_replica)
    replicas = 1 if accelerators is None else accelerators // per_replica
    return _estimate(plan, accelerator, architecture, k, replicas)


def require_fit(estimate: Estimate) -> Estimate:
    """The same estimate when it fits.

    Raises
    ------
    InfeasibleError
        Saying how many bytes one accelerator lacks and what would make it fit.
    """
    if estimate.fits != "out_of_memory":
        return estimate
    lacking = estimate.memory_bytes.p50 - estimate.capacity_bytes
    raise InfeasibleError(
        estimate.remedies[0], shortfall_bytes=lacking, remedies=estimate.remedies[1:]
    )


def plan_replica(
    workload: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    k: Constants,
    *,
    layout: InferenceLayout | None = None,
    most: int | None = None,
) -> ReplicaPlan:
    """The layout and concurrency to run.

    Each layout runs at the highest concurrency that meets the latency bounds. Of the layouts that fit and meet them,
    the one with the fewest accelerators is taken whose throughput per accelerator is near the best.
    """
    found = _layouts_tried(workload, accelerator, architecture, k, layout=layout, most=most)
    sizes = np.array([x.accelerators for x in found.layouts], dtype=np.float64)
    able = found.fits & found.worth
    meeting = able & (found.strain <= 1.0)
    if meeting.any():
        each = np.where(meeting, found.serving.throughput / sizes, 0.0)
        near = np.flatnonzero(each >= NEAR_BEST * each.max())
        return found.plan(int(min(near, key=lambda i: (sizes[i], -each[i]))))
    if able.any():
        return found.plan(int(np.argmin(np.where(able, found.strain, np.inf))))
    return found.plan(len(found.layouts) - 1)


def replica_plans(
    workload: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    k: Constants,
    *,
    layout: InferenceLayout | None = None,
    most: int | None = None,
) -> list[ReplicaPlan]:
    """One plan per layout, fewest accelerators first."""
    found = _layouts_tried(workload, accelerator, architecture, k, layout=layout, most=most)
    return [found.plan(int(i)) for i in np.flatnonzero(found.worth)]


@dataclass(frozen=True, slots=True)
class _LayoutsTried:
    """Every layout at its highest concurrency that meets the bounds, one row each."""

    workload: InferenceWorkload
    layouts: Sequence[InferenceLayout]
    candidates: Candidates
    serving: Serving
    concurrency: Floats
    strain: Floats

    @property
    def fits(self) -> np.ndarray:
        return self.serving.fits & (self.serving.capacity >= self.concurrency)

    @property
    def worth(self) -> np.ndarray:
        """Which layouts are worth having at all."""
        return within_a_server(self.layouts, self.fits)

    def plan(self, i: int) -> ReplicaPlan:
        return ReplicaPlan(
            workload=self.workload,
            layout=self.layouts[i],
            candidate=self.candidates.row(i),
            serving=self.serving.row(i),
            concurrency=float(self.concurrency[i]),
            strain=float(self.strain[i]),
        )


def _layouts_tried(
    workload: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    k: Constants,
    *,
    layout: InferenceLayout | None,
    most: int | None,
) -> _LayoutsTried:
    if layout is not None:
        layouts: Sequence[InferenceLayout] = (check_layout(layout, architecture),)
    else:
        layouts = default_layouts(architecture)
        layouts = [x for x in layouts if most is None or x.accelerators <= most] or layouts[:1]
    base = one_candidate(workload, accelerator, architecture, layouts[0])
    columns = layout_columns(layouts)
    wide = stacked(base, np.full(len(layouts), float(base.concurrency[0])), **columns)
    run = static_batch if workload.batching == "static" else serve
    free = run(wide, k)
    chosen = np.where(free.fits, free.batch, workload.concurrency or 1.0)
    strain = _strain(workload, free)
    searched = workload.concurrency is None and workload.batching == "continuous"
    strained = np.flatnonzero(free.fits & (strain > 1.0)) if searched else np.empty(0, dtype=int)
    if strained.size:
        levels = np.stack([np.floor(np.geomspace(1.0, chosen[i], LEVELS)) for i in strained])
        rows = np.repeat(strained, LEVELS)
        narrow = {name: column[rows] for name, column in columns.items()}
        ratio = _strain(workload, serve(stacked(base, levels.ravel(), **narrow), k))
        good = np.where(ratio.reshape(levels.shape) <= 1.0, levels, 1.0)
        chosen[strained] = good.max(axis=1)
        wide = stacked(
            base,
            np.where(np.isin(np.arange(len(layouts)), strained), chosen, wide.concurrency),
            **columns,
        )
        free = run(wide, k)
        strain = _strain(workload, free)
    asked = np.full(len(layouts), float(workload.concurrency or 1.0))
    return _LayoutsTried(
        workload=workload,
        layouts=layouts,
        candidates=wide,
        serving=free,
        concurrency=chosen if workload.concurrency is None else asked,
        strain=np.where(free.fits, strain, np.inf),
    )


def _strain(workload: InferenceWorkload, s: Serving) -> Floats:
    """Largest ratio of a latency to its bound, shape (n,). Without bounds 0."""
    ratio = np.zeros_like(s.tpot)
    if workload.tpot_slo is not None and workload.output_tokens > 1.0:
        ratio = np.maximum(ratio, s.tpot / workload.tpot_slo)
    if workload.ttft_slo is not None:
        ratio = np.maximum(ratio, s.ttft / workload.ttft_slo)
    if workload.latency_slo is not None:
        whole = s.ttft + (workload.bounded_output - 1.0) * s.tpot
        ratio = np.maximum(ratio, whole / workload.latency_slo)
    return ratio


def _estimate(
    plan: ReplicaPlan,
    accelerator: Accelerator,
    architecture: Architecture,
    k: Constants,
    replicas: int,
) -> Estimate:
    workload, s = plan.workload, plan.serving
    sparse = architecture.moe is not None
    context = workload.input_tokens + workload.output_tokens
    grade = grade_of(
        k,
        architecture,
        accelerator,
        weights=workload.weights_dtype,
        engine=workload.engine,
        context=context,
    )
    parts = memory_parts(plan, k)
    used, capacity = sum(part.value for part in parts), float(plan.candidate.card.memory[0])
    spread = RESERVE_SPREAD * parts[2].value
    memory = Band(used - spread, used, used + spread + WEIGHT_SPREAD * parts[0].value, "B", grade)
    figures: dict[str, Band] = {}
    fits = "out_of_memory"
    if plan.fits:
        figures = _figures(plan, k, sparse=sparse, grade=grade, replicas=replicas)
        most = figures["max_concurrency"]
        asked = workload.concurrency if workload.concurrency is not None else most.p50 / 2.0
        fits = "tight" if most.p10 < max(asked, 1.0) else "fits"
    layout: dict[str, int | str] = {
        "replicas": replicas,
        "accelerators_per_replica": plan.layout.accelerators,
        "tensor_parallel": plan.layout.tensor_parallel,
        "pipeline_parallel": plan.layout.pipeline_parallel,
        "attention_data_parallel": plan.layout.attention_data_parallel,
        "expert_parallel": plan.layout.expert_parallel,
        "weights_dtype": workload.weights_dtype,
        "kv_dtype": workload.cache_dtype,
        "engine": workload.engine,
        "batching": workload.batching,
    }
    saturation = _saturation(plan, used / capacity) if plan.fits else Saturation(0.0, 1.0, 0.0)
    return Estimate(
        kind="inference",
        accelerator=accelerator.slug,
        accelerators=replicas * plan.layout.accelerators,
        memory=parts,
        memory_bytes=memory,
        capacity_bytes=capacity,
        fits=fits,
        figures=figures,
        saturation=saturation,
        layout=layout,
        warnings=warnings(plan, accelerator, architecture, saturation, s) if plan.fits else (),
        assumptions=assumptions(plan, accelerator, architecture, replicas),
        remedies=()
        if plan.fits
        else remedies(plan, accelerator, architecture, k, lacking=used - capacity),
        trace=trace(plan, accelerator, architecture, k),
        constants_version=k.version,
    )


def memory_parts(plan: ReplicaPlan, k: Constants) -> tuple[Part, ...]:
    """The memory bar of the fullest accelerator. [B]"""
    c = plan.candidate
    sequences = plan.concurrency / plan.layout.attention_data_parallel
    whole = c.input_tokens + c.output_tokens
    reserved = float(reserve_bytes(c, k)[0])
    return (
        Part("weights", float(weight_bytes(c)[0])),
        Part(
            "kv_cache",
            float(kv_sequence_bytes(c, whole)[0]) * sequences,
            plural(
                round(sequences),
                msg(
                    "One sequence with input and output reserved in full, %(dtype)s",
                    dtype=plan.workload.cache_dtype,
                ),
                msg(
                    "%(sequences)s sequences with input and output reserved in full, %(dtype)s",
                    sequences=round(sequences),
                    dtype=plan.workload.cache_dtype,
                ),
            ),
        ),
        Part("overhead", reserved, msg("Activations of the largest step, logits, graphs, engine.")),
    )


def _figures(
    plan: ReplicaPlan, k: Constants, *, sparse: bool, grade: Grade, replicas: int
) -> dict[str, Band]:
    s = plan.serving
    bounded = plan.workload.concurrency is not None
    kind = "tpot" if bounded else "throughput"

    def spread(value: float, unit: str, name: str) -> Band:
        return band(value, unit, k, name, sparse=sparse, grade=grade)

    rate, ttft, tpot = float(s.throughput[0]), float(s.ttft[0]), float(s.tpot[0])
    first, between = spread(ttft, "s", "ttft"), spread(tpot, "s", "tpot")
    rest = plan.workload.output_tokens - 1.0
    after_first = {} if rest <= 0.0 else {"tpot": between}  # of one token there is none
    throughput = spread(rate * replicas, "1/s", "concurrency" if kind == "tpot" else "throughput")
    each = 1.0 / (replicas * plan.layout.accelerators)
    room = max(float(cache_room(plan.candidate, k)[0]), 0.0)
    per_sequence = float(
        kv_sequence_bytes(
            plan.candidate, plan.candidate.input_tokens + plan.candidate.output_tokens
        )[0]
    )
    reserved = RESERVE_SPREAD * float(reserve_bytes(plan.candidate, k)[0])
    ranks = plan.layout.attention_data_parallel
    capacity = float(s.capacity[0])
    low = max(room - reserved, 0.0) / max(per_sequence, 1.0) * ranks
    high = (room + reserved) / max(per_sequence, 1.0) * ranks
    return {
        "ttft": first,
        **after_first,
        "end_to_end": Band(
            first.p10 + rest * between.p10,
            float(s.end_to_end[0]),
            first.p90 + rest * between.p90,
            "s",
            grade,
        ),
        "throughput": throughput,
        "throughput_per_accelerator": Band(
            throughput.p10 * each, throughput.p50 * each, throughput.p90 * each, "1/s", grade
        ),
        "requests_per_second": Band(
            throughput.p10 / plan.workload.output_tokens,
            throughput.p50 / plan.workload.output_tokens,
            throughput.p90 / plan.workload.output_tokens,
            "1/s",
            grade,
        ),
        "concurrency": Band(plan.concurrency, plan.concurrency, plan.concurrency, "1", grade),
        "max_concurrency": Band(
            np.floor(min(low, capacity)),
            np.floor(capacity),
            np.floor(max(high, capacity)),
            "1",
            grade,
        ),
    }


def _saturation(plan: ReplicaPlan, memory: float) -> Saturation:
    """Shares of peak FLOP/s, of memory and of bandwidth that a mean step uses."""
    c, s = plan.candidate, plan.serving
    share = float(s.mixed_share[0])
    step = (1 - share) * float(s.decode.total[0]) + share * float(s.mixed.total[0])
    flops = (1 - share) * float(s.decode.flops[0]) + share * float(s.mixed.flops[0])
    moved = (1 - share) * float(s.decode.bytes[0]) + share * float(s.mixed.bytes[0])
    peak = float(c.card.rate[0, c.weights[0]])
    return Saturation(
        compute=min(flops / (peak * step), 1.0),
        memory=min(memory, 1.0),
        bandwidth=min(moved / (float(c.card.bandwidth[0]) * step), 1.0),
    )


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another precision or batching of the same workload, with what it costs in accuracy."""

    weights_dtype: str
    kv_dtype: str
    batching: str
    estimate: Estimate
    speedup: (
        float | None
    )  # throughput per accelerator against the asked one; None when one of them does not fit
    accuracy_loss: tuple[float, float]  # MMLU points, low and high [%]
    note: Message | None = None


def alternatives(
    request: InferenceWorkload,
    accelerator: Accelerator,
    architecture: Architecture,
    *,
    layout: InferenceLayout | None = None,
    constants: Constants | None = None,
) -> tuple[Alternative, ...]:
    """Quantised and batched variants of a workload, best throughput per accelerator first. No factor is flat: each is
    estimated in full, so that what memory allows is part of the answer."""
    base = estimate_inference(
        request, accelerator, architecture, layout=layout, constants=constants
    )
    out = []
    for dtype in ("fp16", "fp8", "int8", "int4", "fp4"):
        for batching in ("none", "continuous"):
            variant = replace(request, weights_dtype=dtype, kv_dtype=None, batching=batching)
            if batching == "continuous" and request.batching == "none":
                variant = replace(variant, concurrency=None)
            if variant == replace(request, kv_dtype=None):
                continue
            found = estimate_inference(
                variant, accelerator, architecture, layout=layout, constants=constants
            )
            speedup = None
            if found.figures and base.figures:
                name = "throughput_per_accelerator"
                speedup = found.figures[name].p50 / base.figures[name].p50
            note = None
            busy = found.figures.get("concurrency")
            if dtype == "int4" and busy is not None and busy.p50 >= 16:
                note = msg(
                    "Four-bit weights are multiplied in 16 bits: they help at a batch of 4 or less, "
                    "little at 16 and more."
                )
            out.append(
                Alternative(
                    weights_dtype=dtype,
                    kv_dtype=str(found.layout["kv_dtype"]),
                    batching=batching,
                    estimate=found,
                    speedup=speedup,
                    accuracy_loss=weight_format(dtype).accuracy_loss,
                    note=note,
                )
            )
    return tuple(sorted(out, key=lambda a: -(a.speedup or 0.0)))
