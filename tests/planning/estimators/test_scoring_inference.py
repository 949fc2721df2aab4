"""What scoring does with rows: classes, skips, odd values."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from planning.estimators.inference_truth import UnreadableRow, engine_family, read_case
from planning.estimators.scoring_inference import CLASSES, score
from planning.reference import resolve_accelerator, resolve_architecture

ROWS = json.loads(
    (Path(__file__).parents[2] / "data" / "published_inference.json").read_text(encoding="utf-8")
)


def scored(rows):
    return score(rows, resolve_accelerator, resolve_architecture)


def test_suspect_rows_are_skipped_and_counted():
    row = deepcopy(ROWS[0]) | {"suspect": ["prefix cache suspected"]}
    result = scored([row, ROWS[1]])
    assert result["skipped"] == {"suspect": 1}
    assert sum(found["rows"] for found in result["classes"].values()) == 1


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("hardware", "gpu"), "Abacus 9000", "unknown accelerator"),
        (("hardware",), None, "unknown accelerator"),
        (("precision", "weights"), "fp3", "unknown precision: fp3"),
    ],
)
def test_rows_that_cannot_be_read_are_counted_with_the_reason(path, value, reason):
    row = deepcopy(ROWS[0])
    target = row
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    result = scored([row])
    assert result["unpredicted"] == {reason: 1}
    assert sum(found["unpredicted"] for found in result["classes"].values()) == 1


@pytest.mark.parametrize(
    "arch",
    [
        None,
        {},
        {"layers": 0, "hidden": 64},
        {"layers": 32, "hidden": 4096, "heads": 31, "kv_heads": 7},
    ],
)
def test_an_unknown_model_without_a_usable_shape_is_unpredicted(arch):
    row = deepcopy(ROWS[0]) | {"model": "Nobody", "arch": arch}
    assert sum(scored([row])["unpredicted"].values()) == 1


def test_an_unknown_model_with_a_shape_is_answered():
    row = deepcopy(ROWS[0]) | {"model": "Nobody-70B"}
    assert scored([row])["unpredicted"] == {}


def test_rows_of_any_kind_never_crash():
    odd = [{}, {"row_class": "llm-throughput"}, {"measured": {"ttft_ms": "fast"}}, "row", None, 7]
    result = scored(odd)
    assert sum(result["skipped"].values()) == len(odd)


@pytest.mark.parametrize(
    ("name", "version", "family"),
    [
        ("TensorRT-LLM", "0.14", "tensorrt-llm"),
        ("TensorRT-LLM", "0.19", "tensorrt-llm-torch"),
        ("TensorRT-LLM", "1.0.0rc3", "tensorrt-llm-torch"),
        ("TensorRT-LLM", "", "tensorrt-llm-torch"),
        ("vLLM", "0.12.0", "vllm"),
        ("SGLang", "0.5.9", "sglang"),
        ("llama.cpp", "b2000", "other"),
    ],
)
def test_engines_fall_into_families(name, version, family):
    assert engine_family({"name": name, "version": version}) == family


def test_unknown_cache_types_take_the_engines_choice():
    row = deepcopy(next(r for r in ROWS if r["engine"]["name"] == "vLLM"))
    row["precision"] = {"weights": "fp8", "kv": "unknown"}
    row["id"] = "plain"
    assert read_case(row, resolve_accelerator, resolve_architecture).kv == "fp16"


def test_a_missing_accelerator_is_an_unreadable_row():
    with pytest.raises(UnreadableRow, match="accelerator"):
        read_case({"model": "Llama-3.1-8B"}, resolve_accelerator, resolve_architecture)


@pytest.mark.parametrize("value", ["many", -3, float("nan"), [], True])
@pytest.mark.parametrize(
    "path",
    [("hardware", "count"), ("hardware", "tp"), ("workload", "concurrency"), ("arch", "layers")],
)
@pytest.mark.parametrize(
    "kind", ["llm-throughput", "llm-static-batch", "non-llm", "mlperf-llm", "new-kind"]
)
def test_odd_values_in_any_field_never_crash(path, value, kind):
    row = deepcopy(ROWS[0]) | {"row_class": kind, "model": "Nobody-70B"}
    row["measured"]["requests_per_s"] = 5.0
    row[path[0]][path[1]] = value
    result = scored([row])
    assert set(result["classes"]) == set(CLASSES)
