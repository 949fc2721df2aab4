"""How many accelerators a service or a batch job takes, and how it answers with them."""

from __future__ import annotations

import math
from dataclasses import replace

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.fleet import LARGEST_FLEET, FleetPlan, overloaded, plan_fleet
from planning.estimators.inference import estimate_inference
from planning.estimators.inference_workload import InferenceWorkload
from planning.estimators.precision import weight_format
from planning.estimators.types import (
    Accelerator,
    Band,
    Estimate,
    FleetAnswers,
    Grade,
    InfeasibleError,
    Step,
)
from planning.study.inference import in_our_words, to_inference, to_replica
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.workloads import Kind

HOUR = 3_600.0
LOWER = ("fp8", "int4")  # precisions tried beside the one asked for
OUT_OF_MEMORY = "out_of_memory"
# What is counted: input tokens are not in a rate.
_UNITS = {
    "throughput": "tokens/s",
    "throughput_per_accelerator": "tokens/s",
    "requests_per_second": "requests/s",
    "concurrency": "requests",
    "max_concurrency": "requests",
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
    return replace(found, figures=figures, warnings=(*found.warnings, *accuracy_warnings(request)))


def _service(request: StudyRequest, known: KnownModel, accelerator: Accelerator) -> Estimate:
    workload, layout, shape = to_inference(request), to_replica(request), known.architecture
    try:
        fleet = plan_fleet(workload, accelerator, shape, layout=layout)
        missed: tuple[Message, ...] = ()
    except InfeasibleError as error:
        missed = (error.message, *error.remedies)
        unbound = replace(workload, ttft_slo=None, tpot_slo=None, latency_slo=None)
        try:
            fleet = plan_fleet(unbound, accelerator, shape, layout=layout)
        except InfeasibleError:
            alone = estimate_inference(
                workload, accelerator, shape, accelerators=request.count, layout=layout
            )
            return replace(
                alone,
                warnings=alone.warnings
                if alone.fits == OUT_OF_MEMORY
                else (*missed, *alone.warnings),
            )
        workload = unbound
    count = request.count
    if count is not None and layout is None and not _can_form(count, fleet):
        fleet = next((other for other in fleet.others if _can_form(count, other)), fleet)
    found = estimate_inference(
        workload,
        accelerator,
        shape,
        accelerators=fleet.accelerators if count is None else count,
        layout=fleet.layout,
    )
    replicas = int(found.layout["replicas"])
    answers = fleet.answers if replicas == fleet.replicas else fleet.answers_with(replicas)
    notes = (*missed, *fleet.messages[1:])  # the first repeats the number
    if count is not None and count != fleet.accelerators:
        notes = (told_count_message(count, fleet.accelerators), *missed)
        if answers.planned.load >= 1.0:
            notes += (overloaded(answers.planned.load),)
    return replace(
        found,
        figures={**found.figures, **_latencies(found, answers, fleet.grade)},
        fleet=answers,
        warnings=(
            *notes,
            *_alternatives(request, workload, known, accelerator, fleet),
            *found.warnings,
        ),
        trace=(*found.trace, *fleet.trace),
    )


def _can_form(count: int, fleet: FleetPlan) -> bool:
    return count >= fleet.accelerators_per_replica


def window_notes(seconds: Band, window: float, count: int, needed: int) -> list[Message]:
    """Why a run of `seconds` may not end within its `window` [s] on the `count` accelerators told, of `needed`."""
    if seconds.p50 > window:
        return [told_count_message(count, needed)]
    if seconds.p90 > window:
        return [
            msg(
                "At the P90 the run takes %(hours)s h, longer than its window of %(window)s h.",
                hours=round(seconds.p90 / HOUR, 2),
                window=round(window / HOUR, 2),
            )
        ]
    return []


def told_count_message(count: int, needed: int) -> Message:
    """That the number told is not the one that the load takes."""
    if count < needed and count == 1:
        return msg(
            "One accelerator is fewer than the %(needed)s that this load takes.", needed=needed
        )
    if count < needed:
        return msg(
            "%(count)s accelerators are fewer than the %(needed)s that this load takes.",
            count=count,
            needed=needed,
        )
    if needed == 1:
        return msg(
            "%(count)s accelerators are more than the one that this load takes.", count=count
        )
    return msg(
        "%(count)s accelerators are more than the %(needed)s that this load takes.",
        count=count,
        needed=needed,
    )


def _latencies(found: Estimate, answers: FleetAnswers, grade: Grade) -> dict[str, Band]:
    """Latencies of the fleet by percentile: at the planned load, and (P90) at the load x (1 + model error)."""
    planned, off = answers.planned, answers.with_model_error
    figures = {"load": Band(planned.load, planned.load, off.load, "1", grade)}
    for name in ("ttft", "end_to_end"):
        alone = found.figures[name]
        for p, at in getattr(planned, name).items():
            worse = getattr(off, name)[p]
            figures[f"{name}_{p}"] = Band(
                at - alone.p50 + alone.p10, at, worse - alone.p50 + alone.p90, "s", grade
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


def accuracy_warnings(request: StudyRequest) -> tuple[Message, ...]:
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


def require_possible(replicas: int) -> None:
    """Raise InfeasibleError where no fleet that could be had does the work."""
    if replicas > LARGEST_FLEET:
        raise InfeasibleError(
            msg("More than %(limit)s replicas would be needed", limit=LARGEST_FLEET)
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
    require_possible(needed)
    count = needed * each if request.count is None else request.count
    found = estimate_inference(workload, accelerator, shape, accelerators=count, layout=layout)
    if found.fits == OUT_OF_MEMORY:  # more accelerators would hold it, these do not
        lacks = msg(
            "One replica takes %(each)s accelerators; %(count)s are given.", each=each, count=count
        )
        return replace(found, warnings=(lacks, *found.warnings))
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
    notes = window_notes(seconds, window, found.accelerators, needed * each)
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
