"""From a request to what the training estimator takes: the workload, the layout, the cluster."""

from __future__ import annotations

from typing import Any

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.training_workload import Cluster, Layout, TrainingWorkload
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.workloads import TRAINING, Kind

METHODS = {
    Kind.PRETRAINING: "pretrain",
    Kind.FINETUNING: "full",
    Kind.PREFERENCE: "dpo",
    Kind.SAMPLES: "full",
}
BACKWARD = 3.0  # forward and backward of one sample, in forward passes
SAMPLES_A_PASS = 64  # of other models than transformers, when no batch was told
_SPLITS = {
    "tensor_parallel": "tensor",
    "pipeline_parallel": "pipeline",
    "context_parallel": "context",
}
_RECIPE = (
    "framework", "micro_batch", "sharding", "offload", "pure_16bit", "gradient_bytes", "chunked_loss",
    "flash_attention", "sequence_parallel", "fused_kernels", "packing", "mfu", "data_bandwidth", "bytes_per_sample",
    "storage_bandwidth", "lora_targets", "double_quantization", "optimizer", "recompute",
)  # fmt: skip


# The estimator's names of a layout's parts, where a refusal must name the request's field.
_FIELDS = {field: told for told, field in _SPLITS.items()} | {
    "data": "data_parallel",
    "expert": "expert_parallel",
}


def in_our_words(error: InputError) -> InputError:
    """A refusal of the estimator with the request's name of the field."""
    field = _FIELDS.get(error.field)
    if field is None:
        return error
    params = {**error.message.params, "field": field}
    message = (
        Message(error.message.template, params)
        if "field" in error.message.params
        else error.message
    )
    return InputError(field, message, value=error.value, limit=error.limit)


def to_training(request: StudyRequest, known: KnownModel) -> TrainingWorkload:
    """The training job that `request` asks for. What was not told stays open for the estimator to fill and say.

    Raises
    ------
    InputError
        If the request is for something else, or the FLOP of a sample are neither told nor known.
    """
    if request.kind not in TRAINING:
        raise InputError(
            "kind",
            msg("%(value)s is not a training workload", value=str(request.kind)),
            value=str(request.kind),
            limit=", ".join(sorted(TRAINING)),
        )
    told = dict(request.workload) | dict(request.options)
    values: dict[str, Any] = {name: told[name] for name in _RECIPE if name in told}
    values |= {
        "method": METHODS.get(request.kind) or told["method"],
        "precision": told["precision"],
        "global_batch": told.get("global_batch"),
        "lora_rank": told.get("lora_rank"),
    }
    if request.kind != Kind.SAMPLES:
        values |= {"tokens": told["tokens"], "sequence_length": told["sequence_length"]}
        return TrainingWorkload(**values)
    work = told.get("flops_per_sample")
    if work is None and known.forward_flops is not None:
        work = BACKWARD * known.forward_flops
    if work is None:
        raise InputError(
            "flops_per_sample",
            msg("%(field)s is missing, and the catalogue does not know it", field="flops_per_sample"),
        )  # fmt: skip
    micro = told.get("micro_batch") or SAMPLES_A_PASS
    if "micro_batch" not in told and told.get("global_batch") is not None:
        micro = min(micro, max(told["global_batch"] // (request.count or 1), 1))
    # a sample has no tokens: its activations are unknown, which `assumptions` of the study say
    values |= {
        "samples": told["samples"],
        "flops_per_sample": work,
        "sequence_length": 1,
        "recompute": told.get("recompute", "none"),
        "micro_batch": micro,
    }
    return TrainingWorkload(**values)


def to_layout(request: StudyRequest, accelerators: int) -> Layout | None:
    """The split that was told, over `accelerators`; None when none was told, so that it is searched.

    Raises
    ------
    InputError
        If the split does not multiply to `accelerators`.
    """
    told = request.options
    names = (*_SPLITS, "data_parallel", "expert_parallel", "virtual_stages")
    if not any(name in told for name in names):
        return None
    split = {field: int(told.get(name, 1)) for name, field in _SPLITS.items()}
    replica = split["tensor"] * split["pipeline"] * split["context"]
    data = int(told.get("data_parallel", max(accelerators // replica, 1)))
    if replica * data != accelerators:
        raise InputError(
            "data_parallel" if "data_parallel" in told else next(n for n in names if n in told),
            msg(
                "the layout uses %(used)s accelerators (tensor x pipeline x data x context); %(count)s are given",
                used=replica * data,
                count=accelerators,
            ),
            value=replica * data,
            limit=accelerators,
        )
    return Layout(
        **split,
        data=data,
        expert=int(told.get("expert_parallel", 1)),
        virtual_stages=int(told.get("virtual_stages", 1)),
    )


def told_count(request: StudyRequest) -> int | None:
    """The number of accelerators that the request tells, outright or by a whole layout; None when it is open."""
    if request.count is not None:
        return request.count
    if "data_parallel" not in request.options:
        return None
    count = int(request.options["data_parallel"])
    for name in _SPLITS:
        count *= int(request.options.get(name, 1))
    return count


def to_cluster(request: StudyRequest) -> Cluster:
    """What connects the accelerators, as far as it was told."""
    told = request.options
    return Cluster(
        accelerators_per_node=told.get("accelerators_per_node", Cluster().accelerators_per_node),
        network_bandwidth=told.get("network_bandwidth"),
        commodity=told.get("commodity"),
    )
