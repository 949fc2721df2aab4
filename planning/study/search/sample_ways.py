"""Every precision and batch of a model told by FLOP per sample on every accelerator, and the number that each takes.

One accelerator serves whole samples: a model that does not fit on one is excluded with what it lacks. Layouts over
several accelerators, cache precisions and engines are those of language models and are not searched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from core.errors import InputError
from core.messages import msg
from planning.estimators.inference_bands import measured_over_estimated, sample_grade
from planning.estimators.inference_constants import Constants, published_constants
from planning.estimators.precision import compute_rate
from planning.estimators.sample_fleet import (
    SampleService,
    plan_sample_fleet,
    sample_answers,
)
from planning.estimators.sample_service import BATCHES, batches_that_fit, sample_memory
from planning.estimators.samples import SampleWorkload, sample_time
from planning.estimators.types import Accelerator, InfeasibleError
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.samples import in_our_words, to_samples, to_service
from planning.study.search.inference_ways import (
    SCALES,
    accuracy_loss,
    days_of,
    peak_rate,
    precisions,
    service_notes,
    term_of,
)
from planning.study.search.ways import Exclusion, Found, columns


def sample_ways(
    request: StudyRequest, known: KnownModel, accelerators: tuple[Accelerator, ...]
) -> Found:
    """Ways to serve `request`, and the accelerators that cannot.

    Raises
    ------
    InputError
        If the work of one sample is not known.
    """
    k = published_constants()
    try:
        workload = to_samples(request, known)
    except InputError as error:
        raise in_our_words(error) from error
    found = Found(columns([]), 0, constants_version=k.version)
    rows: list[Mapping[str, object]] = []
    for index, accelerator in enumerate(accelerators):
        usable = [dtype for dtype in precisions(request) if _native(accelerator, dtype, request)]
        if not usable:
            found.refused.append(
                Exclusion(
                    "accelerator", accelerator.slug,
                    msg("%(name)s has no unit for any precision that may be served", name=accelerator.name),
                    msg("An accuracy-loss limit that allows another precision"), "precision",
                )
            )  # fmt: skip
        own = []
        for dtype in usable:
            found.evaluated += len(BATCHES)
            own += _rows(request, replace(workload, dtype=dtype), index, accelerator, k)
        if usable and not own:
            found.refused.append(_too_large(replace(workload, dtype=usable[-1]), accelerator))
        rows += own
    found.ways = columns(rows)
    found.notes += service_notes(request)
    found.notes.append(
        msg(
            "One accelerator serves whole samples: splits over several, cache precisions and engines are those of "
            "language models and are left out"
        )
    )
    return found


def as_served(request: StudyRequest, dtype: str, layout: Mapping[str, int | str]) -> StudyRequest:
    """The request with the precision and the batch that a way took."""
    workload = {**request.workload, "weight_precision": dtype}
    return replace(
        request,
        workload=workload,
        options={**request.options, "largest_batch": int(layout["batch"])},
    )


def _native(accelerator: Accelerator, dtype: str, request: StudyRequest) -> bool:
    """Whether the card multiplies in `dtype`; a lower precision without units of its own saves no time here."""
    try:
        runs, _rate = compute_rate(accelerator, dtype)
    except InputError:
        return False
    return runs == dtype or dtype == request.workload["weight_precision"]


def _rows(
    request: StudyRequest,
    workload: SampleWorkload,
    index: int,
    accelerator: Accelerator,
    k: Constants,
) -> list[Mapping[str, object]]:
    batches = batches_that_fit(workload, accelerator, request.options.get("largest_batch"))
    if not batches:
        return []
    grade = sample_grade(k, accelerator, workload.network)
    low, high = measured_over_estimated(k, "samples", sparse=False, grade=grade)
    common: dict[str, object] = {
        "accelerator": index,
        "linked": 1,
        "time_low": 1.0 / high,
        "time_high": 1.0 / low,
        "accuracy_loss": accuracy_loss(workload.dtype, str(request.workload["weight_precision"])),
        "precision": workload.dtype,
    }
    service = to_service(request)
    if service is not None:
        grown = replace(service, request_rate=peak_rate(request) / service.peak_factor)
        return [common | _online(request, workload, accelerator, grown, batches, k)]
    chosen = replace(workload, batch=float(batches[-1]))
    rate = chosen.batch / sample_time(chosen, accelerator, k).total
    window = float(request.workload["window_hours"])
    items = float(request.workload["items"])
    least = max(math.ceil(round(items / (rate * window * 3600.0), 9)), 1)
    return [
        common | term_of(request, items / (rate * cards) / 3600.0) | _layout(chosen, cards)
        for cards in (least * scale for scale in ((1,) if request.count else SCALES))
    ]


def _online(
    request: StudyRequest,
    workload: SampleWorkload,
    accelerator: Accelerator,
    service: SampleService,
    batches: tuple[int, ...],
    k: Constants,
) -> dict[str, object]:
    meets = True
    try:
        fleet = plan_sample_fleet(workload, accelerator, service, k, batches)
    except InfeasibleError:
        meets = False
        free = replace(service, latency_slo=None)
        fleet = plan_sample_fleet(workload, accelerator, free, k, batches[:1])
    percentile = f"p{round(100 * service.percentile)}"
    latency = sample_answers(fleet, service, 0.0).planned.end_to_end[percentile]
    days = days_of(request)
    limit = request.constraints.latency_seconds or math.inf
    return _layout(fleet.workload, fleet.replicas) | {
        "span_hours": days * 24.0,
        "work_hours": days * 24.0,
        "hours": days * 24.0,
        "starts": 1,
        "seconds": latency if meets else max(latency, float(np.nextafter(limit, math.inf))),
        "checkpoint_hours": math.nan,
        "within": meets,
        "limit": limit,
    }


def _layout(workload: SampleWorkload, cards: int) -> dict[str, object]:
    return {
        "cards": cards,
        "memory_bytes": sample_memory(workload)[1].p50,
        "layout": {
            "replicas": cards,
            "accelerators_per_replica": 1,
            "batch": int(workload.batch),
        },
    }


def _too_large(workload: SampleWorkload, accelerator: Accelerator) -> Exclusion:
    need = sample_memory(replace(workload, batch=1.0))[1].p50
    return Exclusion(
        "accelerator",
        accelerator.slug,
        msg(
            "Out of memory: one request needs %(need)s GB on each accelerator, %(have)s GB are usable",
            need=round(need / 1e9, 1),
            have=round(accelerator.visible_bytes / 1e9, 1),
        ),
        msg(
            "%(lack)s GB less on each: a lower precision, or smaller samples",
            lack=round((need - accelerator.visible_bytes) / 1e9, 1),
        ),
        "memory",
    )
