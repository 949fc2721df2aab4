"""What an inference estimate says in words: what was assumed, traps, idle resources, and changes that would fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from core.messages import Message, msg, plural
from planning.estimators.inference_batching import Serving
from planning.estimators.inference_candidates import one_candidate
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_memory import cache_room, sequences_that_fit, weight_bytes
from planning.estimators.inference_tables import has_fast_link
from planning.estimators.inference_workload import (
    InferenceLayout,
    InferenceWorkload,
    replicas_message,
)
from planning.estimators.precision import compute_rate, sparse_rate_warnings, weight_format
from planning.estimators.types import Accelerator, Architecture, Saturation

if TYPE_CHECKING:
    from planning.estimators.inference import ReplicaPlan

GB = 1e9
IDLE_MEMORY = 0.5
IDLE_COMPUTE = 0.15
SMALL_BATCH = 8


def assumptions(
    plan: ReplicaPlan, accelerator: Accelerator, architecture: Architecture, replicas: int
) -> tuple[Message, ...]:
    """What was taken for granted, the cache's data type and the layout always among it."""
    w = plan.workload
    out = [
        *architecture.assumed,
        replicas_message(replicas, plan.layout.accelerators),
        msg(
            "The cache is kept in %(kv)s; %(engine)s takes that for %(weights)s weights unless told otherwise. "
            "The choice moves throughput by up to half.",
            kv=w.cache_dtype,
            engine=w.engine,
            weights=w.weights_dtype,
        ),
        msg(
            "TPOT is the time between tokens after the first one. Throughput counts output tokens only."
        )
        if w.output_tokens > 1.0
        else msg(
            "The answer is one token: there is no time per output token after the first, and no bound on it is held."
        ),
        msg(
            "Printed gigabytes of %(name)s are counted as its maker builds them; "
            "the capacity shown is what an engine can use.",
            name=accelerator.name,
        ),
    ]
    if w.output_tokens_p99 is None and w.latency_slo is not None and w.output_tokens > 1.0:
        out.append(
            msg(
                "No long output is given: the 99th percentile is taken as twice the mean, %(tokens)s tokens.",
                tokens=round(w.long_output),
            )
        )
    return tuple(out)


def warnings(
    plan: ReplicaPlan,
    accelerator: Accelerator,
    architecture: Architecture,
    saturation: Saturation,
    serving: Serving,
) -> tuple[Message, ...]:
    """Traps and idle resources, software before hardware."""
    w = plan.workload
    out: list[Message] = []
    batch = float(serving.batch[0])
    if w.batching == "none" or (batch < SMALL_BATCH and saturation.compute < IDLE_COMPUTE):
        out.append(
            plural(
                round(batch),
                msg(
                    "Compute is idle: one sequence of %(tokens)s tokens at a time. Batch more before buying more.",
                    tokens=round(w.input_tokens + w.output_tokens),
                ),
                msg(
                    "Compute is idle: %(batch)s sequences of %(tokens)s tokens at a time. "
                    "Batch more before buying more.",
                    batch=round(batch),
                    tokens=round(w.input_tokens + w.output_tokens),
                ),
            )
        )
    if saturation.memory < IDLE_MEMORY:
        asleep = (1.0 - saturation.memory) * accelerator.visible_bytes / GB
        out.append(
            msg(
                "%(idle)s of %(total)s GB asleep on each accelerator.",
                idle=round(asleep),
                total=round(accelerator.visible_bytes / GB),
            )
        )
    out += sparse_rate_warnings(accelerator, w.weights_dtype)
    if plan.layout.accelerators > 1 and not has_fast_link(accelerator):
        out.append(
            msg(
                "The %(count)s accelerators of a replica talk over PCIe: all-reduces take %(share)s %% of a step.",
                count=plan.layout.accelerators,
                share=round(100 * float(serving.decode.communication[0] / serving.decode.total[0])),
            )
        )
    dtype, _ = compute_rate(accelerator, w.weights_dtype)
    if weight_format(w.weights_dtype).quantized and dtype in ("fp16", "bf16"):
        out.append(
            msg(
                "%(name)s multiplies %(weights)s weights in %(dtype)s: memory is saved, compute is not.",
                name=accelerator.name,
                weights=w.weights_dtype,
                dtype=dtype,
            )
        )
    if not plan.meets:
        out.append(
            msg("No concurrency of this layout meets the latency bounds, even without waiting.")
        )
    return tuple(out)


def remedies(
    plan: ReplicaPlan,
    accelerator: Accelerator,
    architecture: Architecture,
    k: Constants,
    *,
    lacking: float,
) -> tuple[Message, ...]:
    """What one accelerator lacks, then the three cheapest changes that would each make the workload fit."""
    w, layout = plan.workload, plan.layout
    c = plan.candidate
    first = msg(
        "Out of memory: %(lacking)s GB are missing on each accelerator "
        "(weights %(weights)s GB, room for the cache %(room)s GB).",
        lacking=round(max(lacking, 0.0) / GB, 1),
        weights=round(float(weight_bytes(c)[0]) / GB, 1),
        room=round(max(float(cache_room(c, k)[0]), 0.0) / GB, 1),
    )
    out = [first]
    helped: set[str] = set()
    for kind, message, workload, shape in _changes(w, layout, architecture):
        if kind in helped:  # the mildest change of a kind is enough
            continue
        one = one_candidate(workload, accelerator, architecture, shape)
        if sequences_that_fit(one, k)[0] >= (workload.concurrency or 1.0):
            out.append(message)
            helped.add(kind)
        if len(out) == 4:
            break
    if len(out) == 1:
        out.append(
            msg("None of the usual changes is enough: take an accelerator with more memory.")
        )
    return tuple(out)


_Change = tuple[str, Message, InferenceWorkload, InferenceLayout]


def _changes(
    w: InferenceWorkload, layout: InferenceLayout, architecture: Architecture
) -> list[_Change]:
    """(kind, sentence, workload, layout), cheapest first: settings, then precision with its accuracy cost, then more
    accelerators; within a kind the mildest first."""
    out: list[_Change] = []
    if w.cache_dtype in ("fp16", "bf16"):
        out.append(
            (
                "cache",
                msg("Keep the cache in FP8: half its size."),
                replace(w, kv_dtype="fp8"),
                layout,
            )
        )
    if w.concurrency is not None:
        for divisor in (2, 4, 8, 16, 64):
            fewer = int(w.concurrency / divisor)
            if fewer >= 1:
                now = round(w.concurrency)
                text = plural(
                    fewer,
                    msg("Keep one request in flight instead of %(now)s.", now=now),
                    msg(
                        "Keep %(count)s requests in flight instead of %(now)s.",
                        count=fewer,
                        now=now,
                    ),
                )
                out.append(("concurrency", text, replace(w, concurrency=float(fewer)), layout))
    for divisor in (2, 4):
        shorter = w.input_tokens / divisor
        if shorter >= 1024:
            text = msg("Shorten the input to %(tokens)s tokens.", tokens=round(shorter))
            out.append(("input", text, replace(w, input_tokens=shorter), layout))
    for dtype in ("fp8", "int8", "int4"):
        if weight_format(dtype).bytes < 0.9 * weight_format(w.weights_dtype).bytes:
            low, high = weight_format(dtype).accuracy_loss
            text = msg(
                "Store the weights in %(dtype)s: %(low)s to %(high)s %% of accuracy (MMLU) lost.",
                dtype=dtype.upper(),
                low=low,
                high=high,
            )
            kind = "4-bit weights" if dtype == "int4" else "8-bit weights"
            out.append((kind, text, replace(w, weights_dtype=dtype), layout))
    for factor in (2, 4, 8, 16):
        shape = _wider(layout, factor, architecture)
        if shape is not None:
            text = msg(
                "Take %(count)s accelerators per replica "
                "(tensor parallel %(tensor)s, pipeline parallel %(pipeline)s).",
                count=shape.accelerators,
                tensor=shape.tensor_parallel,
                pipeline=shape.pipeline_parallel,
            )
            out.append(("accelerators", text, w, shape))
    return out


def _wider(
    layout: InferenceLayout, factor: int, architecture: Architecture
) -> InferenceLayout | None:
    tensor = layout.tensor_parallel * factor
    if tensor <= 8 and architecture.heads % tensor == 0:
        return replace(layout, tensor_parallel=tensor)
    pipeline = layout.pipeline_parallel * factor
    return replace(layout, pipeline_parallel=pipeline) if pipeline <= architecture.layers else None
