"""From a request to what the inference estimator takes: the workload and the layout of one replica."""

from __future__ import annotations

from typing import Any

from core.errors import InputError
from core.messages import msg
from planning.estimators.inference_workload import InferenceLayout, InferenceWorkload
from planning.study.options import SERVING_LAYOUT
from planning.study.request import StudyRequest
from planning.study.workloads import TOKEN_INFERENCE, Kind

DAY = 86_400.0
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_SERVING = {
    "kv_precision": "kv_dtype",
    "engine": "engine",
    "concurrency": "concurrency",
    "output_tokens_p99": "output_tokens_p99",
    "headroom": "headroom",
}
# The estimator's names, where a refusal must name the request's field.
_FIELDS = {told: ours for ours, told in _SERVING.items()} | {
    "weights_dtype": "weight_precision",
    "ttft_slo": "latency_seconds",
    "latency_slo": "latency_seconds",
    "tpot_slo": "tpot_seconds",
    "request_rate": "requests_per_day",
}


def to_inference(request: StudyRequest) -> InferenceWorkload:
    """The service or batch job that `request` asks for. A batch job has no request rate and no latency bounds.

    Raises
    ------
    InputError
        If the request is for something else.
    """
    if request.kind not in TOKEN_INFERENCE:
        raise InputError(
            "kind",
            msg("%(value)s is not an inference workload", value=str(request.kind)),
            value=str(request.kind),
            limit=", ".join(sorted(TOKEN_INFERENCE)),
        )
    told, limits = request.workload, request.constraints
    values: dict[str, Any] = {
        "input_tokens": float(told["input_tokens"]),
        "output_tokens": float(told["output_tokens"]),
        "weights_dtype": told["weight_precision"],
    }
    values |= {
        ours: request.options[name] for name, ours in _SERVING.items() if name in request.options
    }
    if request.kind == Kind.ONLINE_INFERENCE:
        bound = "ttft_slo" if limits.latency_metric == "ttft" else "latency_slo"
        values |= {
            "request_rate": told["requests_per_day"] / DAY,
            "peak_factor": told["peak_factor"],
            bound: limits.latency_seconds,
            "tpot_slo": limits.tpot_seconds,
            "percentile": PERCENTILES[limits.latency_percentile],
        }
    return InferenceWorkload(**values)


def to_replica(request: StudyRequest) -> InferenceLayout | None:
    """The layout of one replica that was told; None when none was told, so that it is searched."""
    told = {f.name: request.options[f.name] for f in SERVING_LAYOUT if f.name in request.options}
    return InferenceLayout(**told) if told else None


def in_our_words(error: InputError) -> InputError:
    """A refusal of the estimator with the request's name of the field."""
    field = _FIELDS.get(error.field)
    if field is None:
        return error
    return InputError(field, error.message, value=error.value, limit=error.limit)
