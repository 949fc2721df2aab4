"""How many accelerators a training job takes: the number told, or the smallest power of two that does it."""

from __future__ import annotations

import math
from dataclasses import replace

from core.errors import InputError
from core.messages import Message, msg, plural
from planning.estimators.training import estimate_training
from planning.estimators.training_workload import Layout, TrainingWorkload
from planning.estimators.types import Accelerator, Estimate, InfeasibleError
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.training import in_our_words, to_cluster, to_layout, to_training, told_count
from planning.study.workloads import Kind

DAY = 86_400.0
MOST = 16_384  # accelerators tried when the number is open
STATES = ("weights", "gradients", "optimizer")


def size_training(request: StudyRequest, known: KnownModel, accelerator: Accelerator) -> Estimate:
    """The training estimate at the number told, else at the smallest power of two that fits and is in time.

    Raises
    ------
    InputError
        Naming the field, the value and the limit.
    InfeasibleError
        If no split over any number tried is legal.
    """
    job = to_training(request, known)
    count = told_count(request)
    if count is not None:
        return _with(_estimate(request, job, known, accelerator, count), _notes(request))
    found, note = _smallest(request, job, known, accelerator)
    return _with(found, (*_notes(request), note))


def _estimate(
    request: StudyRequest,
    job: TrainingWorkload,
    known: KnownModel,
    accelerator: Accelerator,
    count: int,
) -> Estimate:
    layout = to_layout(request, count)
    try:
        return _on(request, job, known, accelerator, count, layout)
    except InputError as error:
        raise in_our_words(error) from error


def _on(
    request: StudyRequest,
    job: TrainingWorkload,
    known: KnownModel,
    accelerator: Accelerator,
    count: int,
    layout: Layout | None,
) -> Estimate:
    if request.kind == Kind.SAMPLES:
        layout = layout or Layout(data=count)
        if job.global_batch is None:
            job = replace(job, global_batch=(job.micro_batch or 1) * layout.data)
    return estimate_training(
        job,
        accelerator,
        known.architecture,
        accelerators=count,
        layout=layout,
        cluster=to_cluster(request),
    )


def _smallest(
    request: StudyRequest, job: TrainingWorkload, known: KnownModel, accelerator: Accelerator
) -> tuple[Estimate, Message]:
    limit = (
        None
        if request.constraints.duration_days is None
        else request.constraints.duration_days * DAY
    )
    told = request.options
    replica = math.prod(
        int(told.get(name, 1))
        for name in ("tensor_parallel", "pipeline_parallel", "context_parallel")
    )
    count, tried, illegal = replica, None, None
    while count <= MOST:
        try:
            found = _estimate(request, job, known, accelerator, count)
        except InfeasibleError as error:
            illegal = error
            count *= 2
            continue
        tried = found
        if found.fits == "out_of_memory":
            count = max(
                count * 2,
                replica * _power_of_two(_states(found) * count / replica / found.capacity_bytes),
            )
            continue
        seconds = found.figures["training_time"].p50
        if limit is None:
            return found, msg("The number of accelerators is the smallest power of two that fits.")
        if seconds <= limit:
            days = round(limit / DAY)
            return found, plural(
                days,
                msg(
                    "The number of accelerators is the smallest power of two that fits and ends within one day."
                ),
                msg(
                    "The number of accelerators is the smallest power of two that fits and ends within %(days)s days.",
                    days=days,
                ),
            )
        count = max(count * 2, replica * _power_of_two(count / replica * seconds / limit * 0.9))
    if tried is None:
        raise illegal or InfeasibleError(
            msg("No number of accelerators up to %(limit)s was legal.", limit=MOST)
        )
    return tried, msg(
        "No power of two up to %(limit)s accelerators fits and is in time; the last one tried is shown.",
        limit=MOST,
    )


def _states(found: Estimate) -> float:
    """States that can be shared out, were nothing shared yet. [B]"""
    if found.layout.get("sharding") != "none" and found.accelerators > 1:
        return 0.0
    return sum(part.value for part in found.memory if part.name in STATES)


def _power_of_two(least: float) -> int:
    """The smallest power of two that is at least `least`. [1]"""
    return 1 if least <= 1 else 1 << math.ceil(math.log2(least))


def _notes(request: StudyRequest) -> tuple[Message, ...]:
    if request.kind != Kind.SAMPLES:
        return ()
    return (
        msg(
            "Of a model told by FLOP per sample the activations are not known: memory counts weights, gradients and "
            "optimiser states, and grows with the batch."
        ),
    )


def _with(found: Estimate, notes: tuple[Message, ...]) -> Estimate:
    return replace(found, assumptions=(*notes, *found.assumptions))
