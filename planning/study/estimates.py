"""One request answered for every accelerator asked about: how many, what fits, how long, how sure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from core.errors import DomainError, InputError
from core.messages import Message, msg
from planning.estimators.types import Accelerator, Estimate, Saturation
from planning.study.gpu_hours import gpu_hours_estimate
from planning.study.inference_size import size_inference
from planning.study.model import FindModel, KnownModel, known_model
from planning.study.request import StudyRequest
from planning.study.sample_size import size_samples
from planning.study.training_size import size_training
from planning.study.workloads import BY_SAMPLE, INFERENCE, SAMPLE_INFERENCE, TRAINING

OUT_OF_MEMORY = "out_of_memory"
# What an estimate leaves to a study: told, but without effect on physics.
_FOR_STUDIES = (
    "need_by", "start", "region", "budget", "stage", "interruptible", "checkpoint_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Where accelerators and models are looked up. `find_…` raise InputError for what they do not know."""

    origin: str  # "database" or "shipped"
    accelerators: Callable[[], Mapping[str, Accelerator]]  # all that can be estimated on, by slug
    find_accelerators: Callable[[Sequence[str]], Sequence[Accelerator]]  # in the order of the names
    find_model: FindModel
    as_of: date | None = None  # the newest figure in it


@dataclass(frozen=True, slots=True)
class AcceleratorEstimate:
    """The estimate on one accelerator, with its count spelled out: replicas × accelerators per replica."""

    accelerator: Accelerator
    estimate: Estimate
    replicas: int
    per_replica: int
    saturation: Saturation | None  # None: the workload does not say what it does


@dataclass(frozen=True, slots=True)
class Refused:
    """An accelerator that could not be estimated on, and why."""

    accelerator: str
    reason: Message


@dataclass(frozen=True, slots=True)
class Answer:
    """Estimates, best first, and what was refused."""

    request: StudyRequest
    catalogue: str
    catalogue_as_of: date | None
    estimates: tuple[AcceleratorEstimate, ...]
    refused: tuple[Refused, ...]
    searched: bool  # no accelerator was named: all were compared
    notes: tuple[Message, ...] = ()

    @property
    def ranked_by(self) -> Message:
        return msg(
            "what fits first, then the fewest accelerator-hours, then the fewest accelerators, then the shortest answer"
        )


def estimate(request: StudyRequest, catalogue: Catalogue) -> Answer:
    """Estimate `request` on the accelerators it names, or on all of them.

    Named accelerators are answered in the order of their naming; a whole catalogue is ranked.

    Raises
    ------
    InputError, InfeasibleError
        If nothing could be estimated on any of them: the first reason.
    """
    known = model_for(request, catalogue.find_model)
    chosen = _chosen(request, catalogue)
    estimates: list[AcceleratorEstimate] = []
    refused: list[Refused] = []
    first: DomainError | None = None
    for accelerator in chosen:
        try:
            estimates.append(estimate_on(request, known, accelerator))
        except DomainError as error:
            first = first or error
            refused.append(Refused(accelerator.slug, error.message))
    if not estimates:
        raise first or InputError(
            "vendors",
            msg("No accelerator of the catalogue is made by %(value)s", value=", ".join(request.constraints.vendors)),
            value=", ".join(request.constraints.vendors),
        )  # fmt: skip
    searched = not request.accelerators
    if searched:
        estimates.sort(key=_rank)
    return Answer(
        request,
        catalogue.origin,
        catalogue.as_of,
        tuple(estimates),
        tuple(refused),
        searched,
        _notes(request),
    )


def model_for(request: StudyRequest, find: FindModel) -> KnownModel | None:
    """What is known of the model of `request`; None where none is asked.

    Raises
    ------
    InputError
        If the catalogue does not know it, or it does not work on tokens and the kind of workload does.
    """
    if request.model is None:
        return None
    known = known_model(request.model, find)
    if not known.on_tokens and request.kind not in BY_SAMPLE:
        raise InputError(
            "model",
            msg(
                "%(name)s has no transformer shape to estimate from; tell it by FLOP per sample",
                name=known.architecture.name,
            ),
            value=request.model.name,
            limit=", ".join(sorted(BY_SAMPLE)),
        )
    return known


def estimate_on(
    request: StudyRequest, known: KnownModel | None, accelerator: Accelerator
) -> AcceleratorEstimate:
    """The estimate of `request` on one accelerator. Raises InputError or InfeasibleError."""
    if known is None:
        hours = gpu_hours_estimate(request, accelerator)
        return AcceleratorEstimate(accelerator, hours, hours.accelerators, 1, None)
    if request.kind in INFERENCE:
        size = size_samples if request.kind in SAMPLE_INFERENCE else size_inference
        served = size(request, known, accelerator)
        fits = served.fits != OUT_OF_MEMORY
        return AcceleratorEstimate(
            accelerator,
            served,
            int(served.layout["replicas"]),
            int(served.layout["accelerators_per_replica"]),
            served.saturation if fits else None,
        )
    found = size_training(request, known, accelerator)
    per_replica = 1
    for axis in ("tensor", "pipeline", "context"):
        per_replica *= int(found.layout[axis])
    return AcceleratorEstimate(
        accelerator, found, found.accelerators // per_replica, per_replica, found.saturation
    )


def _chosen(request: StudyRequest, catalogue: Catalogue) -> list[Accelerator]:
    allowed = {name.casefold() for name in request.constraints.vendors}
    if request.accelerators:
        found = catalogue.find_accelerators(request.accelerators)
        named = list({accelerator.slug: accelerator for accelerator in found}.values())
        for accelerator in named:
            if allowed and accelerator.vendor.casefold() not in allowed:
                limit = ", ".join(request.constraints.vendors)
                raise InputError(
                    "accelerator",
                    msg("%(name)s is made by %(maker)s; allowed are: %(limit)s", name=accelerator.name,
                        maker=accelerator.vendor, limit=limit),
                    value=accelerator.slug,
                    limit=limit,
                )  # fmt: skip
        return named
    return [
        accelerator
        for accelerator in catalogue.accelerators().values()
        if not allowed or accelerator.vendor.casefold() in allowed
    ]


def _rank(found: AcceleratorEstimate) -> tuple[int, float, int, float]:
    figures = found.estimate.figures
    hours = figures.get("accelerator_hours")
    latency = figures.get("end_to_end")
    return (
        int(found.estimate.fits == OUT_OF_MEMORY),
        hours.p50 if hours else 0.0,
        found.estimate.accelerators,
        latency.p50 if latency else 0.0,
    )


def _notes(request: StudyRequest) -> tuple[Message, ...]:
    constraints = request.constraints
    told = [name for name in _FOR_STUDIES if getattr(constraints, name) not in (None, "", False)]
    if constraints.data_residence != "anywhere":
        told.append("data_residence")
    if request.workload.get("growth_per_month"):
        told.append("growth_per_month")
    if request.kind not in TRAINING:
        told += [] if constraints.duration_days is None else ["duration_days"]
    if not told:
        return ()
    return (msg("Not used by an estimate, only by a study: %(fields)s", fields=", ".join(told)),)
