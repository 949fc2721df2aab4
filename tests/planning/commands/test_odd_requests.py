"""Odd requests: each refusal names the field, the value and the limit; none is silent, none a NaN, none a traceback."""

from __future__ import annotations

import json

import pytest

from core.errors import DomainError
from planning.services.estimates import shipped_catalogue
from planning.study.answer_json import answer_json, error_json
from planning.study.estimates import estimate
from planning.study.request import parse_request

TRAIN = {
    "kind": "pretraining",
    "parameters": "7B",
    "tokens": "1T",
    "accelerator": "H100",
    "accelerators": 8,
}
SERVE = {"kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": "1M", "input_tokens": 500,
         "output_tokens": 200, "accelerator": "H100"}  # fmt: skip
BATCH = {"kind": "batch_inference", "model": "llama-3.1-8b", "items": "1M", "input_tokens": 500, "output_tokens": 200,
         "window_hours": 8, "accelerator": "H100"}  # fmt: skip
DRAW = {
    "kind": "online_samples",
    "model": "sdxl-base-1-0",
    "requests_per_day": "20k",
    "accelerator": "H100",
}
SHAPE = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}  # fmt: skip
SPARSE = {**SHAPE, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
OWN = {"kind": "pretraining", "tokens": "1T", "accelerator": "H100", "accelerators": 8}


SPELLED = {"name": "x", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336,
           "vocab": 128256}  # fmt: skip


def ask(request):
    return estimate(parse_request(json.loads(json.dumps(request))), shipped_catalogue())


REFUSED = [
    (TRAIN | {"tokens": 10**400}, "tokens"),
    (SERVE | {"headroom": 10**400}, "headroom"),
    (OWN | {"architecture": SPELLED | {"layers": 10**400}}, "architecture.layers"),
    (OWN | {"architecture": SPELLED | {"name": "x" * 500}}, "architecture.name"),
    (OWN | {"config": {**SHAPE, "rope_scaling": {"factor": float("nan")}}}, "config.rope_scaling.factor"),
    (OWN | {"config": {**SHAPE, "vocab_size": 10**400}}, "vocab_size"),
    (TRAIN | {"tokens": -5}, "tokens"),
    (TRAIN | {"tokens": "NaN"}, "tokens"),
    (TRAIN | {"tokens": "inf"}, "tokens"),
    (TRAIN | {"tokens": True}, "tokens"),
    (TRAIN | {"tokens": [1]}, "tokens"),
    (TRAIN | {"parameters": 0}, "parameters"),
    (TRAIN | {"parameters": "1e30"}, "parameters"),
    (TRAIN | {"sequence_length": 1.5}, "sequence_length"),
    (TRAIN | {"accelerators": 0}, "accelerators"),
    (TRAIN | {"tensor_parallel": 3}, "tensor_parallel"),
    (TRAIN | {"tensor_parallel": 3, "accelerators": 6}, "tensor_parallel"),
    (TRAIN | {"pipeline_parallel": 33}, "pipeline_parallel"),
    (TRAIN | {"expert_parallel": 4}, "expert_parallel"),
    (TRAIN | {"virtual_stages": 5}, "virtual_stages"),
    (TRAIN | {"mfu": 0.9}, "mfu"),
    (TRAIN | {"packing": 0}, "packing"),
    (TRAIN | {"micro_batch": 64, "global_batch": 63}, "global_batch"),
    (TRAIN | {"vendors": "AMD"}, "accelerator"),
    (OWN | {"config": {**SHAPE, "num_hidden_layers": 0}}, "num_hidden_layers"),
    (OWN | {"config": {**SHAPE, "num_hidden_layers": 1_000_000}}, "layers"),
    (OWN | {"config": {**SHAPE, "num_attention_heads": 33}}, "num_attention_heads"),
    (OWN | {"config": {**SHAPE, "num_key_value_heads": 7}}, "kv_heads"),
    (OWN | {"config": {**SHAPE, "vocab_size": -1}}, "vocab_size"),
    (OWN | {"config": {**SHAPE, "hidden_size": "big"}}, "hidden_size"),
    (OWN | {"config": {**SHAPE, "hidden_size": 1e9}}, "hidden"),
    (OWN | {"config": {**SHAPE, "sliding_window": -4}}, "sliding_window"),
    (OWN | {"config": {**SHAPE, "head_dim": 0}}, "head_dim"),
    (OWN | {"config": {**SHAPE, "max_position_embeddings": 100}}, "sequence_length"),
    (OWN | {"config": {**SPARSE, "num_experts_per_tok": 9}}, "moe.top_k"),
    (OWN | {"config": {**SPARSE, "num_local_experts": 0}}, "num_local_experts"),
    (SERVE | {"input_tokens": 0}, "input_tokens"),
    (SERVE | {"input_tokens": 200_000}, "input_tokens"),
    (SERVE | {"output_tokens_p99": 10}, "output_tokens_p99"),
    (SERVE | {"output_tokens_p99": 10_000_000}, "output_tokens_p99"),
    (SERVE | {"tensor_parallel": 5}, "tensor_parallel"),
    (SERVE | {"tensor_parallel": 2, "accelerators": 1}, "accelerators"),
    (SERVE | {"attention_data_parallel": 2}, "attention_data_parallel"),
    (SERVE | {"peak_factor": 0.5}, "peak_factor"),
    (SERVE | {"latency_seconds": 0}, "latency_seconds"),
    (SERVE | {"headroom": -1}, "headroom"),
    (SERVE | {"kv_precision": "int3"}, "kv_precision"),
    (SERVE | {"accuracy_loss_limit": 2}, "accuracy_loss_limit"),
    (BATCH | {"window_hours": 0}, "window_hours"),
    (BATCH | {"items": 0}, "items"),
    (DRAW | {"passes": 0}, "passes"),
    (DRAW | {"network": "rnn"}, "network"),
    (DRAW | {"flops_per_sample": 0}, "flops_per_sample"),
    (DRAW | {"flops_per_sample": 1e12, "input_tokens": 5}, "input_tokens"),
    (DRAW | {"largest_batch": 0}, "largest_batch"),
    (DRAW | {"kind": "online_inference", "input_tokens": 5, "output_tokens": 5}, "model"),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "field"), REFUSED)
def test_out_of_range_input_names_the_field_the_value_and_the_limit(request_, field):
    with pytest.raises(DomainError) as raised:
        ask(request_)
    error = error_json(raised.value)["error"]

    assert error["field"] == field
    assert error["value"] not in (None, "")
    assert error["limit"] not in (None, "")


ANSWERED = [
    TRAIN | {"accelerators": 7},
    TRAIN | {"global_batch": 3},
    TRAIN | {"data_bandwidth": 1000},
    SERVE | {"concurrency": 1_000_000},
    SERVE | {"accelerators": 1, "requests_per_day": "100M"},
    SERVE | {"latency_seconds": 0.001},
    SERVE | {"requests_per_day": 1e12},
    BATCH | {"items": 1},
    DRAW | {"flops_per_sample": 1e18},
    DRAW | {"sample_bytes": 1e13},
    DRAW | {"latency_seconds": 0.001},
    DRAW | {"largest_batch": 65_536},
]


@pytest.mark.parametrize("request_", ANSWERED)
def test_an_extreme_request_is_answered_with_numbers_and_a_word_of_warning(request_):
    answer = answer_json(ask(request_))
    json.dumps(answer, allow_nan=False)
    [found] = answer["estimates"]

    for band in found["figures"].values():
        assert band["p10"] is None or band["p10"] >= 0
        assert band["p50"] is None or band["p10"] is None or band["p50"] >= band["p10"]
    assert found["fits"] != "out_of_memory" or found["remedies"]


@pytest.mark.parametrize(
    "request_", [DRAW | {"requests_per_day": 1e12}, BATCH | {"items": 1e12, "window_hours": 0.01}]
)
def test_a_fleet_that_nobody_could_have_is_refused(request_):
    with pytest.raises(DomainError, match="More than 1000000 replicas"):
        ask(request_)
