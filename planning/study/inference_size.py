"""How many accelerators a service or a batch job takes, and how it answers with them."""

from __future__ import annotations

import math
from dataclasses import replace

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.fleet import (
    LARGEST_FLEET,
    FleetPlan,
    operating_trace,
    overloaded,
    plan_fleet,
)
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
    Latencies,
    Step,
)
from planning.study.inference import in_our_words, to_inference, to_replica
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.workloads import Kind

HOUR = 3_600.0
LOWER = ("fp8", "int4")  # precisions tried beside the one asked for
UNFIT = 4  # times the accelerators of the work itself: above it a card is not for the latency asked
OUT_OF_MEMORY = "out_of_memory"
MOSTLY_IDLE = 0.1  # of the load that a fleet bears, below which a smaller one is spoken of
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
    # the first repeats the number
    notes = (*missed, *_latency_cost(workload, accelerator, known, fleet), *fleet.messages[1:])
    if count is not None and count != fleet.accelerators:
        notes = (told_count_message(count, fleet.accelerators), *missed)
        if answers.planned.load >= 1.0:
            notes += (overloaded(answers.planned.load),)
    if found.figures:
        found = at_its_load(found, answers, fleet)
    return replace(
        found,
        fleet=answers,
        warnings=(
            *notes,
            *_mostly_idle(answers),
            *_alternatives(request, workload, known, accelerator, fleet),
            *found.warnings,
        ),
        trace=(*found.trace, *fleet.trace, *operating_trace(answers)),
    )


def _latency_cost(
    workload: InferenceWorkload, accelerator: Accelerator, known: KnownModel, fleet: FleetPlan
) -> tuple[Message, ...]:
    """That a card is not for a latency that only many times the cards of the work itself can hold."""
    unbound = replace(workload, ttft_slo=None, tpot_slo=None, latency_slo=None)
    if unbound == workload or fleet.accelerators < UNFIT:
        return ()
    try:
        free = plan_fleet(unbound, accelerator, known.architecture)
    except InfeasibleError:
        return ()
    if fleet.accelerators < UNFIT * free.accelerators:
        return ()
    return (
        msg(
            "Not for this latency: to hold it %(name)s answers %(few)s requests at once per replica and takes "
            "%(many)s accelerators, where the work itself takes %(free)s. The first token comes after %(ms)s ms.",
            name=accelerator.name,
            few=round(fleet.concurrency),
            many=fleet.accelerators,
            free=free.accelerators,
            ms=round(1e3 * fleet.ttft),
        ),
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


def at_its_load(found: Estimate, answers: FleetAnswers, fleet: FleetPlan) -> Estimate:
    """The estimate of full batches with the latencies and saturations of the load that the service bears.

    `ttft`, `tpot` and `end_to_end` are means at the peak, beside them those at the mean load of the day and of full
    batches; by percentile: at the peak, and (P90) at the load x (1 + model error).
    """
    planned, off, grade = answers.planned, answers.with_model_error, fleet.grade
    first = _spread(found.figures["ttft"])
    between = _spread(found.figures["tpot"]) if "tpot" in found.figures else (1.0, 1.0)
    output = fleet.workload.output_tokens
    figures = dict(found.figures)
    loads = {"_average": answers.average, "": planned, "_full": answers.full}
    for suffix, at in loads.items():
        if at is None or at.in_flight is None:
            continue
        ttft = at.ttft["p50"]
        rest = (output - 1.0) * (at.tpot or 0.0)
        figures[f"ttft{suffix}"] = _band(ttft, first, grade)
        if at.tpot is not None:
            figures[f"tpot{suffix}"] = _band(at.tpot, between, grade)
        low, high = (
            ttft * a + rest * b if ttft < math.inf else math.inf
            for a, b in zip(first, between, strict=True)
        )
        figures[f"end_to_end{suffix}"] = Band(low, ttft + rest, high, "s", grade)
        if suffix != "_full":
            flying = at.in_flight
            figures[f"in_flight{suffix}"] = Band(flying, flying, flying, "requests", grade)
    figures["load"] = Band(planned.load, planned.load, off.load, "1", grade)
    for p, wait in planned.wait.items():
        early = _answer_band(planned, p, wait, first[0], between[0])
        late = _answer_band(off, p, off.wait[p], first[1], between[1])
        figures[f"ttft_{p}"] = Band(early[0], planned.ttft[p], late[0], "s", grade)
        figures[f"end_to_end_{p}"] = Band(early[1], planned.end_to_end[p], late[1], "s", grade)
    saturation = found.saturation
    if answers.compute is not None and answers.bandwidth is not None:
        saturation = replace(
            saturation,
            compute=min(answers.compute, 1.0),
            bandwidth=min(answers.bandwidth, 1.0),
        )
    return replace(found, figures=figures, saturation=saturation)


def _spread(band: Band) -> tuple[float, float]:
    """P10 and P90 as shares of P50."""
    return band.p10 / band.p50, band.p90 / band.p50


def _band(value: float, spread: tuple[float, float], grade: Grade) -> Band:
    return Band(value * spread[0], value, value * spread[1], "s", grade)


def _answer_band(
    at: Latencies, p: str, wait: float, first: float, between: float
) -> tuple[float, float]:
    """First token and whole answer, a replica's parts taken `first` and `between` times, the wait as it is. [s]"""
    if wait == math.inf:
        return math.inf, math.inf
    ttft = wait + (at.ttft[p] - wait) * first
    return ttft, ttft + (at.end_to_end[p] - at.ttft[p]) * between


def _mostly_idle(answers: FleetAnswers) -> tuple[Message, ...]:
    """That the smallest fleet is much more than the load asks for."""
    planned, full = answers.planned, answers.full
    if planned.load >= MOSTLY_IDLE or full is None or full.in_flight is None:
        return ()
    return (
        msg(
            "The peak asks for no more than %(load)s %% of what this fleet can do, which is %(most)s requests at a "
            "time in a replica. A smaller card, or one that other services share, does this load.",
            load=math.ceil(1000.0 * planned.load) / 10.0,
            most=round(full.in_flight),
        ),
    )


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
