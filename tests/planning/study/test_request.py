"""Requests: read, refused by name, and written back without loss."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from planning.estimators.architecture import architecture_from_count
from planning.estimators.training_workload import Layout
from planning.study.fields import WorkloadErrors
from planning.study.inference import to_inference
from planning.study.model import KnownModel
from planning.study.request import SCHEMA, parse_request, request_json
from planning.study.training import to_layout, to_training, told_count
from planning.study.workloads import FIELDS
from planning.study.workloads import Kind as Code
from planning.workloads import Kind

PRETRAINING = {"kind": "pretraining", "parameters": "7B", "tokens": "1T"}
ONLINE = {
    "kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": 1e6, "input_tokens": 500,
    "output_tokens": 200,
}  # fmt: skip

BATCH = {
    "kind": "batch_inference",
    "items": 1e6,
    "window_hours": 10,
    "input_tokens": 500,
    "output_tokens": 200,
}
LLAMA_CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128_256,
}  # fmt: skip


def refused(data):
    with pytest.raises(InputError) as caught:
        parse_request(data)
    return caught.value


def test_numbers_are_read_as_people_write_them():
    request = parse_request(
        PRETRAINING | {"accelerator": "A100, H100", "accelerators": "8", "mfu": "50 %",
                       "budget": "1,000,000.10", "currency": "CNY", "need_by": "2027-03-31"}
    )  # fmt: skip

    assert request.workload["tokens"] == 1e12
    assert request.model.architecture.params_total == 7e9
    assert request.accelerators == ("A100", "H100")
    assert request.count == 8
    assert request.options["mfu"] == 0.5
    assert request.constraints.budget == Decimal("1000000.10")
    assert request.constraints.need_by == date(2027, 3, 31)


def test_a_typo_is_refused_with_the_nearest_field():
    error = refused(PRETRAINING | {"sequence_lenght": 8192})

    assert error.field == "sequence_lenght"
    assert error.limit == "sequence_length"
    assert "did you mean sequence_length" in str(error)


def test_a_field_of_another_kind_is_refused():
    error = refused(PRETRAINING | {"latency_seconds": 0.5})

    assert error.field == "latency_seconds"
    assert "not asked for this kind" in str(error)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "training"}, "kind"),
        ({"kind": None}, "kind"),
        ({"schema": "headroom/estimate-9"}, "schema"),
        ({"tokens": -5}, "tokens"),
        ({"tokens": "NaN"}, "tokens"),
        ({"tokens": None}, "tokens"),
        ({"sequence_length": 0}, "sequence_length"),
        ({"sequence_length": 10.5}, "sequence_length"),
        ({"mfu": 0.9}, "mfu"),
        ({"accelerators": 0}, "accelerators"),
        ({"budget": "5", "currency": ""}, "currency"),
        ({"budget": "-5", "currency": "CNY"}, "budget"),
        ({"budget": "sNaN", "currency": "CNY"}, "budget"),
        ({"need_by": "soon"}, "need_by"),
        ({"need_by": "2027-01-01", "start": "2027-02-01"}, "start"),
        ({"flash_attention": "maybe"}, "flash_attention"),
        ({"accelerator": 5}, "accelerator"),
        ({"sharding": "zero9"}, "sharding"),
        ({"model": "llama-3.1-8b"}, "parameters"),
        ({"parameters": None}, "model"),
    ],
)
def test_bad_values_name_their_field(change, field):
    assert refused(PRETRAINING | change).field == field


def test_all_errors_are_told_at_once():
    with pytest.raises(WorkloadErrors) as caught:
        parse_request(PRETRAINING | {"tokens": 0, "optimizer": "adam", "what": 1})

    assert {error.field for error in caught.value.errors} == {"tokens", "optimizer", "what"}


def test_something_that_is_no_object_is_refused():
    assert refused([1]).field == "request"


def test_an_inline_shape_is_read_and_checked():
    shape = {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "ffn": 14336,
        "vocab": 128256,
    }
    data = {"kind": "finetuning", "tokens": 1e9, "architecture": shape}

    assert parse_request(data).model.architecture.kv_heads == 8
    assert refused(data | {"architecture": shape | {"heads": 30}}).field == "architecture.kv_heads"
    assert refused(data | {"architecture": shape | {"layres": 30}}).limit == "layers"
    assert (
        refused(data | {"architecture": shape | {"layers": "many"}}).field == "architecture.layers"
    )
    assert (
        refused(data | {"architecture": shape | {"moe": {"experts": 8}}}).field
        == "architecture.moe.top_k"
    )
    assert refused(data | {"architecture": 5}).field == "architecture"
    assert refused(data | {"architecture": shape, "parameters": "7B"}).field == "parameters"


def test_a_latency_class_stands_for_its_bound():
    request = parse_request(ONLINE | {"latency_class": "chat"})

    assert request.constraints.latency_seconds == 0.5
    assert request.constraints.latency_percentile == "p95"


@pytest.mark.parametrize(
    "data",
    [
        PRETRAINING | {"accelerator": ["H100"], "tensor_parallel": 8, "data_parallel": 2, "interruptible": True},
        ONLINE | {"accuracy_loss_limit": "1 %", "kv_precision": "fp8", "latency_seconds": 0.3, "stage": "startup"},
        {"kind": "gpu_hours", "gpu_hours": 5000, "accelerators": 8, "accelerator": "h100", "memory_bytes": "40G"},
        {"kind": "samples", "model": "resnet-50", "samples": 1e8},
        {"kind": "lora", "method": "qlora", "tokens": 1e8, "config": {
            "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008,
            "vocab_size": 32000}},
    ],
)  # fmt: skip
def test_a_request_survives_being_written_and_read(data):
    request = parse_request(data)
    written = request_json(request)

    assert written["schema"] == SCHEMA
    assert parse_request(written) == request
    assert request_json(parse_request(written)) == written


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(FIELDS)),
    st.dictionaries(
        st.text(max_size=12) | st.sampled_from(["tokens", "model", "accelerators", "config"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
        | st.lists(st.integers(), max_size=2) | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        max_size=5,
    ),
)  # fmt: skip
def test_any_json_is_answered_or_refused_by_name(kind, data):
    try:
        read = parse_request({**data, "kind": kind})
    except (InputError, WorkloadErrors):
        return  # refused: any other exception fails the test
    assert parse_request(request_json(read)) == read


def test_the_kinds_of_the_form_are_the_kinds_of_the_request():
    assert Kind.values == list(Code)
    assert set(FIELDS) == set(Code)


def test_the_training_job_carries_what_was_told():
    request = parse_request(
        PRETRAINING | {"framework": "megatron", "micro_batch": 2, "global_batch": 512}
    )
    job = to_training(request, KnownModel(request.model.architecture))

    assert (job.method, job.tokens, job.micro_batch, job.global_batch) == ("pretrain", 1e12, 2, 512)
    assert job.recompute is None  # open: the search chooses


def test_other_models_take_their_work_from_the_catalogue():
    request = parse_request({"kind": "samples", "model": "resnet-50", "samples": 1e8})
    shape = architecture_from_count(25.6e6)

    assert to_training(request, KnownModel(shape, 8.2e9)).flops_per_sample == pytest.approx(24.6e9)
    with pytest.raises(InputError, match="flops_per_sample"):
        to_training(request, KnownModel(shape))


def test_a_layout_must_multiply_to_the_count():
    request = parse_request(PRETRAINING | {"tensor_parallel": 8, "pipeline_parallel": 2})

    assert to_layout(request, 64) == Layout(tensor=8, pipeline=2, data=4)
    with pytest.raises(InputError) as caught:
        to_layout(request, 24)
    assert caught.value.field == "tensor_parallel"
    assert told_count(request) is None
    assert to_layout(parse_request(PRETRAINING), 64) is None


def test_a_whole_layout_tells_the_count():
    assert told_count(parse_request(PRETRAINING | {"tensor_parallel": 8, "data_parallel": 4})) == 32


FP8_CACHE = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False}


@pytest.mark.parametrize(
    ("quantized", "told", "kept"),
    [
        # compressed-tensors; ModelOpt by bits and by name; a scheme that is stated to be none
        ({"kv_cache_scheme": FP8_CACHE}, {}, "fp8"),
        ({"kv_cache_quant_algo": "FP8"}, {}, "fp8"),
        ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, {}, "int8"),
        ({"kv_cache_scheme": {"num_bits": 4, "type": "float"}}, {}, "fp4"),
        ({"kv_cache_scheme": None}, {}, None),
        ({"kv_cache_quant_algo": "auto"}, {}, None),
        # what a person tells counts; other weights than the checkpoint's do not bring its cache
        ({"kv_cache_scheme": FP8_CACHE}, {"kv_precision": "fp16"}, "fp16"),
        ({"kv_cache_scheme": FP8_CACHE}, {"weight_precision": "fp16"}, None),
    ],
)
def test_the_cache_that_a_checkpoint_states_is_taken_and_said(quantized, told, kept):
    config = LLAMA_CONFIG | {"quantization_config": {"quant_method": "fp8"} | quantized}
    request = parse_request(BATCH | {"config": config} | told)

    assert request.options.get("kv_precision") == kept
    said = any("KV cache is in" in str(note) for note in request.model.architecture.assumed)
    assert said == (kept is not None and "kv_precision" not in told)
    assert to_inference(request).kv_dtype == kept
    again = parse_request(request_json(request))
    assert again.options.get("kv_precision") == kept


@pytest.mark.parametrize(
    "quantized",
    [
        {"kv_cache_scheme": {"num_bits": 3, "type": "int"}},
        {"kv_cache_scheme": {"num_bits": True, "type": "float"}},
        {"kv_cache_scheme": {"type": "float"}},
        {"kv_cache_quant_algo": "ternary"},
    ],
)
def test_a_cache_of_no_known_type_is_refused_by_name_unless_one_is_told(quantized):
    config = LLAMA_CONFIG | {"quantization_config": {"quant_method": "fp8"} | quantized}
    with pytest.raises(InputError) as refused:
        parse_request(BATCH | {"config": config})
    assert refused.value.field == "kv_precision"
    assert parse_request(BATCH | {"config": config, "kv_precision": "fp8"})
