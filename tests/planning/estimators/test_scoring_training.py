"""Scoring against published rows: classes, skips, tolerance of what is missing."""

import pytest

from planning.estimators.scoring_training import CLASSES, score

from .training_cases import A100

ROW = {
    "id": "mpt-30b",
    "kind": "throughput",
    "model": "mpt-30b",
    "arch": {
        "params_total": 29975214080, "layers": 48, "hidden": 7168, "heads": 56, "ffn": 28672,
        "vocab": 50368, "gated_mlp": False, "seq_len": 2048,
    },
    "hardware": {"gpu": "A100-80GB", "count": 8},
    "parallelism": {"dp": 8, "sharding": "fsdp", "micro_batch": 3, "global_batch": 504, "recompute": "full"},
    "measured": {"tokens_per_s_per_gpu": 916.0},
    "source_family": "llmfoundry",
    "score_throughput": True,
    "suspect": [],
}  # fmt: skip


def known(name):
    return A100 if name == "A100-80GB" else None


def test_a_published_row_is_predicted_and_scored_in_three_classes():
    result = score([ROW], known)
    assert set(result["classes"]) == set(CLASSES)
    for name in CLASSES[:3]:
        assert result["classes"][name]["rows"] == 1
        assert result["classes"][name]["unpredicted"] == 0
    assert result["classes"]["training_throughput"]["median_ape"] < 20
    assert result["classes"]["training_memory"]["median_ape"] is None


def test_suspect_rows_are_skipped_and_counted():
    result = score([ROW | {"suspect": ["unclear"]}], known)
    assert result["skipped"] == {"suspect": 1}
    assert result["classes"]["training_throughput"]["rows"] == 0


def test_a_row_with_an_unknown_accelerator_counts_as_unpredicted():
    result = score([ROW | {"hardware": {"gpu": "Z9"}}], known)
    assert result["classes"]["training_throughput"]["unpredicted"] == 1
    assert result["unpredicted"] == {"unknown accelerator": 1}


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"measured": None, "arch": None},
        ROW | {"arch": {}},
        ROW | {"arch": {"params_total": 7e9}},
        ROW | {"parallelism": None, "hardware": {"gpu": "A100-80GB"}},
        ROW | {"parallelism": {"tp": 2, "precision": "nvfp4"}, "extra": object()},
        ROW | {"measured": {"gpu_hours": 1000.0}, "tokens": None},
    ],
)
def test_missing_or_odd_fields_never_break_the_score(row):
    result = score([row], known)
    for figures in result["classes"].values():
        assert figures["rows"] >= figures["unpredicted"] >= 0


def test_the_macro_average_weighs_sources_alike():
    wrong = ROW | {"source_family": "torchtitan", "measured": {"tokens_per_s_per_gpu": 1832.0}}
    result = score([ROW, ROW, ROW, wrong], known)["classes"]
    assert result["training_throughput_macro"]["median_ape"] > 20
    assert result["training_throughput"]["median_ape"] < 20
