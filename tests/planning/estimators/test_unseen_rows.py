"""Truth rows that nobody has seen: other names, missing fields, unknown engines. All of a known size are answered."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from planning.estimators.architecture import count_from_name
from planning.estimators.precision import usual_dtype
from planning.estimators.scoring_inference import score as score_inference
from planning.estimators.scoring_training import score as score_training
from planning.reference import resolve_accelerator, resolve_architecture

ROWS = json.loads(
    (Path(__file__).parents[2] / "data" / "published_inference.json").read_text("utf-8")
)
TRAINED = {
    "id": "unseen", "kind": "throughput", "model": "mystery-13b", "tokens": None, "source_family": "unseen",
    "arch": {"params_total": 13e9, "params_active": 13e9, "layers": 40, "hidden": 5120, "heads": 40, "kv_heads": 40,
             "ffn": 13824, "vocab": 32000, "gated_mlp": True, "seq_len": 4096},
    "hardware": {"gpu": "H100-80GB", "count": 64},
    "parallelism": {"tp": 2, "pp": 1, "dp": 32, "sharding": "zero1", "micro_batch": 1, "global_batch": 512,
                    "recompute": "selective", "precision": "bf16", "optimizer": "adamw", "method": "full"},
    "measured": {"tokens_per_s_per_gpu": 4000.0, "memory_gb_per_gpu": 60.0}, "score_throughput": True, "suspect": [],
}  # fmt: skip
GONE = object()


def changed(row, path, value):
    row = copy.deepcopy(row)
    inner = row
    for key in path[:-1]:
        inner = inner.get(key)
        if not isinstance(inner, dict):
            return row
    if value is GONE:
        inner.pop(path[-1], None)
    else:
        inner[path[-1]] = value
    return row


def unpredicted(result):
    return {
        name: found["unpredicted"]
        for name, found in result["classes"].items()
        if found["unpredicted"]
    }


SERVED = [
    (("engine",), {"name": "lmdeploy", "version": "9.9"}), (("engine",), None), (("engine",), GONE),
    (("engine",), "vLLM"), (("precision",), GONE), (("precision", "kv"), None), (("precision", "kv"), "fp8_e5m2"),
    (("precision", "weights"), "FP8"), (("precision", "weights"), "fp8_e4m3"), (("precision", "weights"), "NVFP4"),
    (("precision", "weights"), "mxfp4"), (("precision", "weights"), "int4-awq"), (("precision", "weights"), "w8a8"),
    (("precision", "weights"), "bfloat16"), (("hardware", "tp"), None), (("hardware", "count"), "8"),
    (("hardware", "count"), GONE), (("workload", "concurrency"), GONE), (("workload", "attention_dp"), None),
    (("arch", "heads"), None), (("arch", "vocab"), None), (("arch", "ffn"), None), (("arch", "gated"), GONE),
    (("row_note",), "a field that nobody knows"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), SERVED)
def test_an_inference_row_with_odd_or_missing_fields_is_answered(path, value):
    result = score_inference(
        [changed(row, path, value) for row in ROWS], resolve_accelerator, resolve_architecture
    )
    assert not unpredicted(result), result["unpredicted"]


CARDS = (
    "NVIDIA H100 80GB HBM3", "H100-SXM5-80GB", "h100", "H100 NVL", "H100-PCIe", "H200-141GB", "NVIDIA A100-SXM4-80GB",
    "A100 SXM 40GB", "L40S-48GB", "B200-SXM-180GB", "GB300", "GB200-NVL72", "RTX5090", "RTX PRO 6000 Blackwell",
    "MI325X", "MI300X-192GB", "MI355X", "H20", "H800", "V100", "T4", "L4-24GB", "Gaudi3", "TPU v5p", "Ascend 910B",
)  # fmt: skip


@pytest.mark.parametrize("name", CARDS)
def test_a_card_is_known_by_its_usual_names_and_answered(name):
    card = resolve_accelerator(name)
    size = next(
        (
            int(w[:-2])
            for w in name.replace("-", " ").split()
            if w.endswith("GB") and w[:-2].isdigit()
        ),
        None,
    )
    assert size is None or card.hbm_bytes / 1e9 == pytest.approx(size, rel=0.1)
    served = [changed(row, ("hardware", "gpu"), name) for row in ROWS]
    assert not unpredicted(score_inference(served, resolve_accelerator, resolve_architecture))
    for precision in ("bf16", "fp8", "nvfp4", "fp32"):
        row = changed(
            changed(TRAINED, ("hardware", "gpu"), name), ("parallelism", "precision"), precision
        )
        assert not unpredicted(score_training([row], resolve_accelerator))


@pytest.mark.parametrize(
    "arch",
    [
        {"params_total": 13e9},
        {"params_total": 30e9, "params_active": 3e9},
        {"params_total": 13e9, "layers": None, "hidden": None},
        {"params_total": 47e9, "layers": 32, "hidden": 4096, "heads": 32, "moe": {"experts": 8, "top_k": 2}},
        {"params_total": 600e9, "layers": 61, "hidden": 7168, "heads": 128, "mla": True,
         "moe": {"experts": 256, "top_k": 8}},
    ],
)  # fmt: skip
def test_an_unknown_model_of_a_known_size_is_answered(arch):
    row = next(row for row in ROWS if row["row_class"] == "llm-throughput")
    result = score_inference(
        [{**row, "model": "mystery", "arch": arch}], resolve_accelerator, resolve_architecture
    )
    assert not unpredicted(result), result["unpredicted"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("source_family",), "a lab"), (("parallelism", "sharding"), "hsdp"), (("parallelism", "recompute"), "2nd"),
        (("parallelism", "optimizer"), "muon"), (("parallelism", "method"), "dora"), (("parallelism",), GONE),
        (("parallelism",), None), (("parallelism", "dp"), None), (("parallelism", "micro_batch"), None),
        (("parallelism", "tp"), 3), (("arch", "layers"), None), (("arch", "hidden"), None), (("arch", "seq_len"), None),
        (("arch",), None), (("hardware", "count"), None), (("hardware", "interconnect"), GONE),
    ],
)  # fmt: skip
def test_a_training_row_with_odd_or_missing_fields_is_answered(path, value):
    result = score_training([changed(TRAINED, path, value)], resolve_accelerator)
    assert not unpredicted(result), result["unpredicted"]


@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("Falcon-180B", 180e9, None), ("qwen3-30b-a3b", 30e9, 3e9), ("gpt-oss-120b", 120e9, None),
        ("SmolLM2-360M", 360e6, None), ("Qwen3.5-397B-A17B", 397e9, 17e9),
    ],
)  # fmt: skip
def test_a_size_is_read_from_the_name(name, total, active):
    assert count_from_name(name) == (total, active)


def test_of_eight_experts_the_shared_part_is_counted_once():
    total, active = count_from_name("Mixtral-8x7B")
    assert total == pytest.approx(46.7e9, rel=0.03)
    assert active == pytest.approx(12.9e9, rel=0.05)


@pytest.mark.parametrize("name", ["mystery", "Kimi-K2.5", "v3.1", "h100"])
def test_a_name_without_a_size_gives_none(name):
    assert count_from_name(name) is None


@pytest.mark.parametrize("name", ["quantum", "", "x16"])
def test_a_data_type_nobody_uses_is_unknown(name):
    assert usual_dtype(name) is None
