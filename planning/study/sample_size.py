"""How many accelerators inference by FLOP per sample takes, and how it answers with them."""

from __future__ import annotations

import math
from dataclasses import replace

from core.errors import DomainError, InputError
from core.messages import Message, msg
from planning.estimators.precision import compute_rate, weight_format
from planning.estimators.sample_fleet import SampleService
from planning.estimators.sample_service import estimate_samples
from planning.estimators.samples import SampleWorkload
from planning.estimators.types import Accelerator, Band, Estimate, InfeasibleError, Step
from planning.study.inference_size import (
    HOUR,
    OUT_OF_MEMORY,
    accuracy_warnings,
    require_possible,
    told_count_message,
    window_notes,
)
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.samples import in_our_words, to_samples, to_service

LOWER = ("fp8", "int8")  # precisions tried beside the one asked for
UNIT = "samples/s"


def size_samples(request: StudyRequest, known: KnownModel, accelerator: Accelerator) -> Estimate:
    """The estimate of a service at the fleet its load takes, or of a batch job at what its window takes.

    With a number of accelerators told that many are taken, and what the load needs is said.

    Raises
    ------
    InputError
        Naming the field, the value and the limit.
    """
    try:
        workload, service = to_samples(request, known), to_service(request)
        if service is None:
            found = _batch(request, workload, accelerator)
        else:
            found = _service(request, workload, service, accelerator)
    except InputError as error:
        raise in_our_words(error) from error
    figures = {
        name: replace(band, unit=UNIT if band.unit == "1/s" else band.unit)
        for name, band in found.figures.items()
    }
    return replace(found, figures=figures, warnings=(*found.warnings, *accuracy_warnings(request)))


def _service(
    request: StudyRequest,
    workload: SampleWorkload,
    service: SampleService,
    accelerator: Accelerator,
) -> Estimate:
    most = request.options.get("largest_batch")
    try:
        needed = estimate_samples(workload, accelerator, service=service, largest_batch=most)
    except InfeasibleError as error:
        unbound = replace(service, latency_slo=None)
        found = estimate_samples(
            workload, accelerator, service=unbound, accelerators=request.count, largest_batch=most
        )
        return replace(found, warnings=(error.message, *found.warnings))
    if needed.fits == OUT_OF_MEMORY:
        return needed
    notes = (
        *_alternatives(request, workload, service, accelerator, needed.accelerators),
        *_without_batches(workload, service, accelerator, needed),
    )
    if request.count is None or request.count == needed.accelerators:
        return replace(needed, warnings=(*notes, *needed.warnings))
    found = estimate_samples(
        workload, accelerator, service=service, accelerators=request.count, largest_batch=most
    )
    said = told_count_message(request.count, needed.accelerators)
    return replace(found, warnings=(said, *notes, *found.warnings))


def _alternatives(
    request: StudyRequest,
    workload: SampleWorkload,
    service: SampleService,
    accelerator: Accelerator,
    count: int,
) -> tuple[Message, ...]:
    """Software first: the gentlest lower precision that saves accelerators, as far as the accuracy limit allows it."""
    limit = request.constraints.accuracy_loss_limit
    for dtype in LOWER if count > 1 else ():
        form = weight_format(dtype)
        low, high = form.accuracy_loss
        if form.bytes >= weight_format(workload.dtype).bytes:
            continue
        if limit is not None and high > 100.0 * limit:
            continue
        try:
            if compute_rate(accelerator, dtype)[0] != dtype:
                continue
            other = estimate_samples(
                replace(workload, dtype=dtype),
                accelerator,
                service=service,
                largest_batch=request.options.get("largest_batch"),
            )
        except DomainError:
            continue
        if other.figures and other.accelerators < count:
            text = msg(
                "Software first: %(dtype)s weights would take %(fewer)s instead of %(count)s accelerators, and "
                "cost %(low)s to %(high)s %% of accuracy (MMLU).",
                dtype=dtype.upper(),
                fewer=other.accelerators,
                count=count,
                low=low,
                high=high,
            )
            return (text,)
    return ()


def _without_batches(
    workload: SampleWorkload,
    service: SampleService,
    accelerator: Accelerator,
    found: Estimate,
) -> tuple[Message, ...]:
    """What dynamic batching saves."""
    if found.layout["batch"] == 1:
        return ()
    try:
        single = estimate_samples(workload, accelerator, service=service, largest_batch=1)
    except InfeasibleError:
        return ()
    if single.accelerators <= found.accelerators:
        return ()
    return (
        msg(
            "Counted with dynamic batching, up to %(batch)s samples at a time; one at a time it would take "
            "%(count)s accelerators.",
            batch=found.layout["batch"],
            count=single.accelerators,
        ),
    )


def _batch(request: StudyRequest, workload: SampleWorkload, accelerator: Accelerator) -> Estimate:
    most = request.options.get("largest_batch")
    one = estimate_samples(workload, accelerator, largest_batch=most)
    if one.fits == OUT_OF_MEMORY:
        return one
    window = float(request.workload["window_hours"]) * HOUR
    items = float(request.workload["items"])
    needed = max(math.ceil(round(items / (one.figures["throughput"].p50 * window), 9)), 1)
    require_possible(needed)
    count = request.count or needed
    found = estimate_samples(workload, accelerator, accelerators=count, largest_batch=most)
    rate = found.figures["throughput"]
    seconds = Band(items / rate.p90, items / rate.p50, items / rate.p10, "s", rate.grade)
    hours = count / HOUR
    work = Band(seconds.p10 * hours, seconds.p50 * hours, seconds.p90 * hours, "h", rate.grade)
    notes = window_notes(seconds, window, count, needed)
    steps = (
        Step("run_time", "items / throughput", {"items": items, "throughput": rate.p50}, seconds.p50, "s"),
        Step("accelerator_hours", "n t / 3600", {"n": count, "t": seconds.p50}, work.p50, "h"),
    )  # fmt: skip
    return replace(
        found,
        figures={"run_time": seconds, "accelerator_hours": work, **found.figures},
        warnings=(*notes, *found.warnings),
        trace=(*found.trace, *steps),
    )
