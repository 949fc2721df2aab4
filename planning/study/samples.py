"""From a request to what the estimate by FLOP per sample takes: the work of one sample, and the service."""

from __future__ import annotations

from core.errors import InputError
from core.messages import msg
from planning.estimators.architecture import total_parameters
from planning.estimators.sample_fleet import SampleService
from planning.estimators.samples import SampleWorkload, encoder_flops
from planning.study.inference import DAY, PERCENTILES
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.workloads import ONLINE, SAMPLE_INFERENCE

USUAL_STEPS = (
    40.0  # of a diffusion model that no catalogue knows: 20 steps with and without guidance
)
# The estimator's names, where a refusal must name the request's field.
_FIELDS = {
    "flops": "flops_per_sample",
    "params": "parameters",
    "weights_dtype": "weight_precision",
    "request_rate": "requests_per_day",
    "latency_slo": "latency_seconds",
    "percentile": "latency_percentile",
}


def to_samples(request: StudyRequest, known: KnownModel) -> SampleWorkload:
    """The work of one sample that `request` asks for: FLOP as told, of the catalogue's model, or by tokens.

    Raises
    ------
    InputError
        If the request is for something else, or the FLOP of a sample are neither told nor known.
    """
    if request.kind not in SAMPLE_INFERENCE:
        raise InputError(
            "kind",
            msg("%(value)s is not inference by FLOP per sample", value=str(request.kind)),
            value=str(request.kind),
            limit=", ".join(sorted(SAMPLE_INFERENCE)),
        )
    told = request.workload
    network = told.get("network") or known.network
    passes = float(told.get("passes") or known.usual_passes)
    if "passes" not in told and network == "diffusion" and network != known.network:
        passes = USUAL_STEPS
    return SampleWorkload(
        flops=_flops(request, known, passes),
        params=total_parameters(known.architecture),
        dtype=told["weight_precision"],
        network=network,
        passes=passes,
        equal_passes=known.equal_passes,
        activation_bytes=told.get("sample_bytes"),
    )


def _flops(request: StudyRequest, known: KnownModel, passes: float) -> float:
    told, tokens = request.workload.get("flops_per_sample"), request.workload.get("input_tokens")
    if told is not None and tokens is not None:
        raise InputError(
            "input_tokens",
            msg("Give only one of: FLOP per sample, tokens per sample"),
            value=tokens,
            limit="1",
        )
    if told is not None:
        return float(told)
    if tokens is None and known.forward_flops is not None:
        # where passes are alike the catalogue holds one; else the whole sample
        return known.forward_flops * (passes if known.equal_passes else 1.0)
    if tokens is not None and known.on_tokens:
        limit = known.architecture.max_context
        if limit is not None and tokens > limit:
            raise InputError(
                "input_tokens",
                msg(
                    "input and output together are %(value)s tokens; %(model)s takes at most %(limit)s",
                    value=tokens,
                    model=known.architecture.name,
                    limit=limit,
                ),
                value=tokens,
                limit=limit,
            )
        return encoder_flops(known.architecture, float(tokens))
    raise InputError(
        "flops_per_sample",
        msg("Tell the FLOP of one sample, or of a text model the tokens per sample: the catalogue does not know them"),
    )  # fmt: skip


def to_service(request: StudyRequest) -> SampleService | None:
    """What the service must stand; None for a batch job."""
    if request.kind not in ONLINE:
        return None
    told, limits = request.workload, request.constraints
    return SampleService(
        request_rate=told["requests_per_day"] / DAY,
        peak_factor=told["peak_factor"],
        latency_slo=limits.latency_seconds,
        percentile=PERCENTILES[limits.latency_percentile],
        headroom=request.options.get("headroom", SampleService(1.0).headroom),
    )


def in_our_words(error: InputError) -> InputError:
    """A refusal of the estimator with the request's name of the field."""
    field = _FIELDS.get(error.field)
    return (
        error
        if field is None
        else InputError(field, error.message, value=error.value, limit=error.limit)
    )
