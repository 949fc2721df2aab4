"""How many accelerators a service or a batch job takes, and how it answers with them."""

from __future__ import annotations

import math
from dataclasses import replace

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.fleet import FleetPlan, plan_fleet
from planning.estimators.inference import estimate_inference
from planning.estimators.inference_workload import InferenceWorkload
from planning.estimators.precision import weight_format
from planning.estimators.types import Accelerator, Band, Estimate, InfeasibleError, Step
from planning.study.inference import in_our_words, to_inference, to_replica
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.workloads import Kind

HOUR = 3_600.0
LOWER = ("fp8", "int4")  # precisions tried beside the one asked for
OUT_OF_MEMORY = "out_of_memory"
# What a rate counts: input tokens are not in it.
_UNITS = {
    "throughput": "tokens/s",
    "throughput_per_accelerator": "tokens/s",
    "requests_per_second": "requests/s",
}


def size_inference(request: StudyRequest, known: KnownModel, accelerator: Accelerator) -> Estimate:
    """The estimate of a service at the fleet its load takes, or of a batch job at the replicas its window takes.

    With a number of accelerators told, whole replicas are formed of them, and what the load needs is said.

    Raises
    ------
    InputError
        Naming the field, the value and the limit.
    """
    try:
        if request.kind == Kind.ONLINE_INFERENCE:
            found = _service(request, known, accelerator)
        else:
            found = _batch(request, known, accelerator)
    except InputError as error:
        raise in_our_words(error) from error
    figures = {
        name: replace(band, unit=_UNITS.get(name, band.unit))
        for name, band in found.figures.items()
    }
    return replace(found, figures=figures, warnings=(*found.warnings, *_accuracy(request)))


def _service(request: StudyRequest, known: KnownModel, accelerator: Accelerator) -> Estimate:
    workload, layout, shape = to_inference(request), to_replica(request), known.architecture
    try:
        fleet = plan_fleet(workload, accelerator, shape, layout=layout)
    except InfeasibleError as error:
        alone = estimate_inference(
            workload, accelerator, shape, accelerators=request.count, layout=layout
        )
        if alone.fits == OUT_OF_MEMORY:
            return alone
        return replace(alone, warnings=(error.message, *error.remedies, *alone.warnings))
    count = fleet.accelerators if request.count is None else request.count
    found = estimate_inference(
        workload, accelerator, shape, accelerators=count, layout=fleet.layout
    )
    notes = fleet.messages[1:]  # the first repeats the number
    if request.count is not None and request.count != fleet.accelerators:
        notes = (_told(request.count, fleet), *notes)
    return replace(
        found,
        figures={
            **found.figures,
            **(_latencies(request, found, fleet) if request.count is None else {}),
        },
        warnings=(
            *notes,
            *_alternatives(request, workload, known, accelerator, fleet),
            *found.warnings,
        ),
        trace=(*found.trace, *fleet.trace),
    )


def _told(count: int, fleet: FleetPlan) -> Message:
    needed = fleet.accelerators
    if count < needed:
        return msg(
            "%(count)s accelerators are fewer than the %(needed)s that this load takes.",
            count=count,
            needed=needed,
        )
    return msg(
        "%(count)s accelerators are more than the %(needed)s that this load takes.",
        count=count,
        needed=needed,
    )


def _latencies(request: StudyRequest, found: Estimate, fleet: FleetPlan) -> dict[str, Band]:
    """Latencies of the fleet at the percentile asked for: at the planned load, and (P90) with the model's error."""
    p = request.constraints.latency_percentile
    planned, off = fleet.planned, fleet.with_model_error
    figures = {"load": Band(planned.load, planned.load, off.load, "1", fleet.grade)}
    for name in ("ttft", "end_to_end"):
        alone = found.figures[name]
        at, worse = getattr(planned, name)[p], getattr(off, name)[p]
        figures[f"{name}_{p}"] = Band(
            at - alone.p50 + alone.p10, at, worse - alone.p50 + alone.p90, "s", fleet.grade
        )
    return figures


def _alternatives(
    request: StudyRequest,
    workload: InferenceWorkload,
    known: KnownModel,
    accelerator: Accelerator,
    fleet: FleetPlan,
) -> tuple[Message, ...]:
    """Software first: the gentlest lower precision that saves accelerators, as far as the accuracy limit allows it."""
    limit = request.constraints.accuracy_loss_limit
    asked = weight_format(workload.weights_dtype).bytes
    for dtype in LOWER if fleet.accelerators > 1 else ():
        low, high = weight_format(dtype).accuracy_loss
        if weight_format(dtype).bytes >= asked or (limit is not None and high > 100.0 * limit):
            continue
        lower = replace(workload, weights_dtype=dtype, kv_dtype=request.options.get("kv_precision"))
        try:
            other = plan_fleet(lower, accelerator, known.architecture)
        except InfeasibleError:
            continue
        if other.accelerators < fleet.accelerators:
            text = msg(
                "Software first: %(dtype)s weights would take %(fewer)s instead of %(count)s accelerators, and "
                "cost %(low)s to %(high)s %% of accuracy (MMLU).",
                dtype=dtype.upper(),
                fewer=other.accelerators,
                count=fleet.accelerators,
                low=low,
                high=high,
            )
            return (text,)
    return ()


def _accuracy(request: StudyRequest) -> tuple[Message, ...]:
    """A warning when the weights as served may lose more accuracy than is allowed."""
    limit = request.constraints.accuracy_loss_limit
    dtype = request.workload["weight_precision"]
    low, high = weight_format(dtype).accuracy_loss
    if limit is None or high <= 100.0 * limit:
        return ()
    return (
        msg(
            "%(dtype)s weights lose %(low)s to %(high)s %% of accuracy (MMLU); the limit is %(limit)s %%.",
            dtype=dtype.upper(),
            low=low,
            high=high,
            limit=round(100.0 * limit, 2),
        ),
    )


def _batch(request: StudyRequest, known: KnownModel, accelerator: Accelerator) -> Estimate:
    workload, layout, shape = to_inference(request), to_replica(request), known.architecture
    one = estimate_inference(workload, accelerator, shape, layout=layout)
    if one.fits == OUT_OF_MEMORY:
        return one
    window = float(request.workload["window_hours"]) * HOUR
    tokens = float(request.workload["items"]) * workload.output_tokens
    each, rate = one.accelerators, one.figures["throughput"].p50
    needed = max(math.ceil(round(tokens / (rate * window), 9)), 1)
    count = needed * each if request.count is None else request.count
    found = estimate_inference(workload, accelerator, shape, accelerators=count, layout=layout)
    rate_of_all = found.figures["throughput"]
    seconds = Band(
        tokens / rate_of_all.p90,
        tokens / rate_of_all.p50,
        tokens / rate_of_all.p10,
        "s",
        rate_of_all.grade,
    )
    hours = found.accelerators / HOUR
    work = Band(seconds.p10 * hours, seconds.p50 * hours, seconds.p90 * hours, "h", seconds.grade)
    notes = []
    if seconds.p50 > window:
        notes.append(
            msg("%(count)s accelerators are fewer than the %(needed)s that this load takes.", count=found.accelerators,
                needed=needed * each)
        )  # fmt: skip
    elif seconds.p90 > window:
        notes.append(
            msg(
                "At the P90 the run takes %(hours)s h, longer than its window of %(window)s h.",
                hours=round(seconds.p90 / HOUR, 2),
                window=round(window / HOUR, 2),
            )
        )
    steps = (
        Step("run_time", "items x O / throughput", {"items x O": tokens, "throughput": rate_of_all.p50},
             seconds.p50, "s"),
        Step("accelerator_hours", "n t / 3600", {"n": found.accelerators, "t": seconds.p50}, work.p50, "h"),
    )  # fmt: skip
    return replace(
        found,
        figures={"run_time": seconds, "accelerator_hours": work, **found.figures},
        warnings=(*notes, *found.warnings),
        trace=(*found.trace, *steps),
    )
