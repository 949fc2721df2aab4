"""The estimate command: golden cases, refusals, its schema, and that it needs no database."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import jsonschema
import pytest
from django.core.management import call_command

from catalog.models import Accelerator
from catalog.services.loading import load_reference
from catalog.services.revisions import ACCELERATOR, correct
from core.roles import Role
from planning.study.schema import estimate_schema

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "docs" / "schemas" / "examples").glob("*.json"))
SEVEN = {"kind": "pretraining", "parameters": "7B", "tokens": "1T", "accelerator": "A100"}


@pytest.fixture
def run(db, monkeypatch, capsys):
    """`run(request)` → (exit code, what was printed)."""

    def call(request, *arguments):
        text = request if isinstance(request, str) else json.dumps(request)
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        code = 0
        try:
            call_command("estimate", *arguments)
        except SystemExit as stop:
            code = stop.code
        return code, capsys.readouterr().out

    return call


@pytest.fixture
def answer(run):
    """`answer(request)` → the answer, checked against the published schema."""

    def call(request, *arguments):
        code, text = run(request, "--json", *arguments)
        assert code == 0, text
        body = json.loads(text)
        jsonschema.validate(body, estimate_schema())
        return body

    return call


def states(estimate):
    return sum(
        part["bytes"]
        for part in estimate["memory"]["parts"]
        if part["name"] in ("weights", "gradients", "optimizer")
    )


def test_seven_billion_parameters_take_112_gb_before_activations(answer):
    [estimate] = answer(SEVEN | {"accelerators": 1})["estimates"]

    assert states(estimate) == pytest.approx(112e9)
    assert estimate["fits"] == "out_of_memory"
    assert "GB are lacking" in estimate["remedies"][0]
    assert len(estimate["remedies"]) == 4
    assert any("112 GB before activations" in text for text in estimate["warnings"])


def test_one_a100_at_half_its_peak_takes_eight_and_a_half_years(answer):
    [estimate] = answer(SEVEN | {"accelerators": 1, "mfu": 0.5})["estimates"]

    assert estimate["figures"]["training_flops"]["p50"] == pytest.approx(4.2e22)
    assert estimate["figures"]["training_time"]["p50"] / 31_557_600 == pytest.approx(8.5, abs=0.05)
    assert any("4.4 years" in text for text in estimate["warnings"])


def test_the_smallest_count_that_fits_is_found(answer):
    [estimate] = answer(SEVEN)["estimates"]

    assert estimate["fits"] != "out_of_memory"
    assert estimate["accelerators"]["total"] == 2


def test_a_duration_raises_the_count(answer):
    [estimate] = answer(SEVEN | {"duration_days": 30, "accelerator": "H100"})["estimates"]
    total = estimate["accelerators"]["total"]
    [half] = answer(SEVEN | {"accelerator": "H100", "accelerators": total // 2})["estimates"]

    assert estimate["figures"]["training_time"]["p50"] <= 30 * 86_400
    assert half["figures"]["training_time"]["p50"] > 30 * 86_400


def test_accelerators_are_replicas_times_accelerators_per_replica(answer):
    [estimate] = answer(SEVEN | {"tensor_parallel": 8, "data_parallel": 4, "accelerator": "H100"})[
        "estimates"
    ]

    assert estimate["accelerators"] == {"total": 32, "replicas": 4, "per_replica": 8}


def test_several_accelerators_are_answered_in_their_order(answer):
    body = answer(SEVEN | {"accelerator": ["H100", "A100", "K80"], "accelerators": 8})

    assert [e["accelerator"]["name"] for e in body["estimates"]] == [
        "H100 SXM5 80GB",
        "A100 SXM4 80GB",
    ]
    assert "bf16" in body["refused"][0]["reason"]


def test_without_an_accelerator_the_best_few_of_the_catalogue_are_shown(answer):
    body = answer(
        {"kind": "pretraining", "parameters": "7B", "tokens": "1T", "accelerators": 8},
        "--limit",
        "3",
    )

    hours = [e["figures"]["accelerator_hours"]["p50"] for e in body["estimates"]]
    assert len(hours) == 3
    assert hours == sorted(hours)
    assert all(e["fits"] != "out_of_memory" for e in body["estimates"])
    assert body["compared"] > 70


def test_every_figure_has_a_band_and_a_grade(answer):
    [estimate] = answer(SEVEN | {"accelerators": 64, "framework": "megatron"})["estimates"]

    step = estimate["figures"]["step_time"]
    assert step["p10"] < step["p50"] < step["p90"]
    assert step["grade"] == "published"
    assert estimate["constants_version"]
    assert {line["name"] for line in estimate["trace"]} >= {"memory", "step_time", "training_flops"}


SERVICE = {
    "kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": "5M", "input_tokens": 1000,
    "output_tokens": 300, "accelerator": "H100",
}  # fmt: skip


def test_a_service_is_a_fleet_of_replicas_with_headroom(answer):
    [estimate] = answer(SERVICE | {"latency_class": "chat", "latency_percentile": "p99"})[
        "estimates"
    ]

    count, figures = estimate["accelerators"], estimate["figures"]
    assert count["total"] == count["replicas"] * count["per_replica"]
    assert figures["load"]["p50"] <= 1 / 1.2 + 1e-6
    assert figures["ttft_p99"]["p50"] <= 0.5
    assert figures["end_to_end_p99"]["p50"] > figures["end_to_end"]["p50"]
    assert {line["name"] for line in estimate["trace"]} >= {
        "TPOT",
        "replicas by headroom",
        "probability of waiting",
    }


def test_twice_the_load_takes_more_accelerators(answer):
    few, many = (
        answer(SERVICE | {"requests_per_day": rate})["estimates"][0]["accelerators"]["total"]
        for rate in ("20M", "40M")
    )

    assert few < many <= 2 * few + 1


def test_too_few_accelerators_for_the_load_are_named(answer):
    [estimate] = answer(SERVICE | {"requests_per_day": "50M", "accelerators": 2})["estimates"]

    assert estimate["accelerators"]["total"] == 2
    assert estimate["warnings"][0].startswith("2 accelerators are fewer than the")


def test_lower_precision_is_offered_before_more_hardware_within_the_accuracy_limit(answer):
    [free] = answer(SERVICE | {"requests_per_day": "50M"})["estimates"]
    [strict] = answer(SERVICE | {"requests_per_day": "50M", "accuracy_loss_limit": "0.05 %"})[
        "estimates"
    ]

    assert any(text.startswith("Software first: FP8 weights") for text in free["warnings"])
    assert not any(text.startswith("Software first: FP8 weights") for text in strict["warnings"])


def test_a_latency_that_no_load_meets_is_said_so(answer):
    [estimate] = answer(SERVICE | {"latency_seconds": 0.002})["estimates"]

    assert "meets the latency bounds, even idle" in estimate["warnings"][0]


def test_weights_that_do_not_fit_lack_gigabytes(answer):
    [estimate] = answer(SERVICE | {"model": "deepseek-v3", "tensor_parallel": 1})["estimates"]

    assert estimate["fits"] == "out_of_memory"
    assert "GB" in estimate["remedies"][0]
    assert len(estimate["remedies"]) > 1
    assert estimate["saturation"] is None


def test_seven_billion_parameters_at_16_bit_with_4096_tokens_take_14_to_20_gb(answer):
    [estimate] = answer(
        SERVICE
        | {"model": "llama-2-7b", "input_tokens": 3840, "output_tokens": 256, "concurrency": 1}
    )["estimates"]

    parts = {part["name"]: part["bytes"] for part in estimate["memory"]["parts"]}
    assert 14e9 < parts["weights"] + parts["kv_cache"] < 20e9


def test_a_batch_job_ends_within_its_window(answer):
    job = SERVICE | {"kind": "batch_inference", "items": "20M", "window_hours": 4}
    del job["requests_per_day"]
    [estimate] = answer(job)["estimates"]

    time = estimate["figures"]["run_time"]
    assert time["p10"] < time["p50"] <= 4 * 3600 + 1
    hours = estimate["figures"]["accelerator_hours"]["p50"]
    assert hours == pytest.approx(estimate["accelerators"]["total"] * time["p50"] / 3600)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_documented_examples_are_valid_and_answered(path, answer):
    request = json.loads(path.read_text(encoding="utf-8"))

    jsonschema.validate(request, estimate_schema())
    assert answer(request)["estimates"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"kind": "pretraining", "parameters": "7B", "tokens": -1}, "tokens"),
        (SEVEN | {"layers": 0}, "layers"),
        (SEVEN | {"accelerator": "H1000"}, "accelerator"),
        (SEVEN | {"parameters": "", "model": "llama-9"}, "model"),
        (SEVEN | {"accelerators": 12, "tensor_parallel": 8}, "tensor_parallel"),
        (SEVEN | {"accelerators": 8, "tensor_parallel": 5, "data_parallel": 1}, "data_parallel"),
        ({"kind": "finetuning", "model": "bert-base", "tokens": 1e9, "accelerator": "A100"}, "sequence_length"),
        (SERVICE | {"input_tokens": 200_000}, "input_tokens"),
        (SERVICE | {"kv_precision": "fp64"}, "kv_precision"),
        (SERVICE | {"tensor_parallel": 3}, "tensor_parallel"),
        (SERVICE | {"peak_factor": 500}, "peak_factor"),
        ("not json", "request"),
        ("[]", "request"),
    ],
)  # fmt: skip
def test_refusals_name_the_field_and_exit_with_2(request_, field, run):
    code, text = run(request_, "--json")

    body = json.loads(text)
    jsonschema.validate(body, estimate_schema())
    assert code == 2
    assert body["error"]["field"] == field
    assert body["error"]["message"]


def test_the_table_says_the_same(run):
    code, text = run(SEVEN | {"accelerators": 1, "mfu": 0.5})

    assert code == 0
    for line in (
        "A100 SXM4 80GB",
        "Does not fit",
        "84.0 GB",
        "k N D",
        "shipped reference catalogue",
    ):
        assert line in text


def test_corrected_rows_of_the_database_are_used(answer, make_user):
    load_reference()
    row = Accelerator.objects.get(slug="nvidia-a100-sxm4-80gb")
    correct(
        ACCELERATOR, pk=row.pk, by=make_user(Role.PROCUREMENT), changes={"hbm_bytes": 79e9}, reason="measured",
        source="nvidia-smi", source_url="", as_of=date(2026, 11, 1), confidence="read",
    )  # fmt: skip

    body = answer(SEVEN | {"accelerators": 8})

    assert body["catalogue"]["origin"] == "database"
    assert body["estimates"][0]["accelerator"]["hbm_bytes"] == 79e9
    assert body["estimates"][0]["memory"]["capacity_bytes"] == pytest.approx(79 * 2**30 * 0.995)


def test_a_clone_without_a_database_can_estimate(tmp_path):
    environment = os.environ | {
        "DATABASE_URL": f"sqlite:///{tmp_path}/none.sqlite3",
        "EMBEDDED": "1",
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "estimate", "--json"],
        input=json.dumps(SEVEN | {"accelerators": 8}), capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip

    assert json.loads(done.stdout)["catalogue"]["origin"] == "shipped"


def test_the_published_schema_is_the_one_in_force():
    published = json.loads(
        (ROOT / "docs" / "schemas" / "estimate-1.json").read_text(encoding="utf-8")
    )

    assert published == json.loads(json.dumps(estimate_schema())), "run script/schemas"


SERVE = {"kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": "2M", "input_tokens": 600,
         "output_tokens": 150, "latency_class": "chat", "accelerator": "H100"}  # fmt: skip


def test_latencies_stand_at_both_loads_whether_the_number_is_told_or_computed(answer):
    [computed] = answer(SERVE)["estimates"]
    total = computed["accelerators"]["total"]
    [told] = answer(SERVE | {"accelerators": total + 2})["estimates"]

    for estimate in (computed, told):
        fleet = estimate["fleet"]
        assert set(fleet["planned"]["ttft"]) == {"p50", "p95", "p99"}
        assert fleet["with_model_error"]["load"] == pytest.approx(
            fleet["planned"]["load"] * (1 + fleet["model_error"])
        )
        for p in ("p50", "p95", "p99"):
            assert estimate["figures"][f"ttft_{p}"]["p50"] == fleet["planned"]["ttft"][p]
            assert f"end_to_end_{p}" in estimate["figures"]
    assert told["fleet"]["planned"]["load"] < computed["fleet"]["planned"]["load"]


def test_latencies_of_a_service_are_told_at_average_at_peak_and_at_full_capacity(answer, run):
    rare = SERVE | {"requests_per_day": 1, "peak_factor": 2}
    [estimate] = answer(rare)["estimates"]

    figures, fleet = estimate["figures"], estimate["fleet"]
    assert figures["ttft"]["p50"] < figures["ttft_full"]["p50"] / 3
    assert (
        figures["tpot_average"]["p50"] <= figures["tpot"]["p50"] < figures["tpot_full"]["p50"] / 3
    )
    assert figures["in_flight"]["p50"] < 0.01 < 50 < figures["concurrency"]["p50"]
    assert (
        fleet["average"]["load"]
        < fleet["planned"]["load"]
        < fleet["full"]["load"]
        == pytest.approx(1)
    )
    assert estimate["saturation"]["bandwidth"] < 0.01
    assert all(
        0 < band["p10"] <= band["p50"] <= band["p90"]
        for band in figures.values()
        if band["unit"] == "s"
    )
    assert any("% of what this fleet can do" in text for text in estimate["warnings"])
    text = run(rare)[1]
    for named in ("average load", "peak load", "full capacity"):
        assert f"Time per output token, {named}" in text


def test_a_bound_that_cannot_be_met_still_shows_what_the_fleet_does(answer):
    [estimate] = answer(SERVE | {"latency_class": "", "latency_seconds": 0.001})["estimates"]

    assert "meets the latency bounds" in estimate["warnings"][0]
    assert estimate["fleet"]["planned"]["ttft"]["p95"] > 0.001


def test_one_replica_is_spoken_of_in_the_singular(answer):
    [estimate] = answer(SERVE | {"requests_per_day": "10k"})["estimates"]

    assert "1 replica x 1 accelerator per replica = 1 accelerator." in estimate["assumptions"]


def test_a_picture_model_is_served_by_flop_per_sample_and_by_nothing_else(answer, run):
    told = {"model": "sdxl-base-1-0", "requests_per_day": "20k", "accelerator": "H100"}
    [estimate] = answer(told | {"kind": "online_samples", "latency_seconds": 15})["estimates"]

    assert estimate["figures"]["end_to_end_p95"]["p50"] <= 15
    assert estimate["figures"]["throughput"]["unit"] == "samples/s"
    code, text = run(
        told | {"kind": "online_inference", "input_tokens": 5, "output_tokens": 5}, "--json"
    )
    assert code == 2
    assert json.loads(text)["error"]["field"] == "model"


def test_a_text_encoder_takes_its_flop_from_its_tokens(answer, run):
    told = {"kind": "batch_samples", "model": "bert-large", "items": "10M", "window_hours": 1,
            "accelerator": "A100"}  # fmt: skip
    [short] = answer(told | {"input_tokens": 128})["estimates"]
    [long] = answer(told | {"input_tokens": 512})["estimates"]

    assert short["figures"]["run_time"]["p50"] < long["figures"]["run_time"]["p50"]
    code, text = run(told | {"input_tokens": 513}, "--json")
    error = json.loads(text)["error"]
    assert (code, error["field"], error["value"], error["limit"]) == (2, "input_tokens", 513, 512)
    code, text = run(told, "--json")
    assert json.loads(text)["error"]["field"] == "flops_per_sample"


def test_a_latent_cache_is_split_by_requests_where_that_serves_more(answer):
    told = {"kind": "batch_inference", "model": "deepseek-v3", "weight_precision": "fp8", "items": "1M",
            "input_tokens": 1000, "output_tokens": 1000, "window_hours": 24, "accelerator": "H200",
            "accelerators": 8}  # fmt: skip
    [free] = answer(told)["estimates"]
    [tensor] = answer(told | {"tensor_parallel": 8})["estimates"]

    assert free["layout"]["attention_data_parallel"] == 8
    assert free["figures"]["throughput"]["p50"] > 1.5 * tensor["figures"]["throughput"]["p50"]
    assert (
        free["figures"]["max_concurrency"]["p50"] > 3 * tensor["figures"]["max_concurrency"]["p50"]
    )


def test_accelerators_too_few_for_one_replica_are_an_answer_not_a_crash(answer):
    told = {"kind": "batch_inference", "model": "deepseek-v3", "weight_precision": "fp8", "items": "1M",
            "input_tokens": 1000, "output_tokens": 1000, "window_hours": 24, "accelerator": "H100",
            "accelerators": 8}  # fmt: skip
    [estimate] = answer(told)["estimates"]

    assert estimate["fits"] == "out_of_memory"
    assert "GB are missing" in estimate["remedies"][0]
    assert estimate["warnings"][0] == "One replica takes 16 accelerators; 8 are given."


def test_images_a_pass_default_to_a_full_batch_on_every_accelerator(answer):
    # NVIDIA DeepLearningExamples, ResNet-50 v1.5, DGX A100, mixed precision: about 2,500 images/s on each GPU
    told = {
        "kind": "samples",
        "model": "resnet-50",
        "samples": "115M",
        "precision": "fp16",
        "accelerator": "A100",
    }
    [estimate] = answer(told | {"accelerators": 8})["estimates"]

    assert estimate["layout"]["global_batch"] == 512
    assert estimate["figures"]["throughput_per_accelerator"]["p50"] == pytest.approx(2500, rel=0.2)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "request"),
        ("[" * 100_000, "request"),
        ('{"kind": "pretraining", "tokens": 1e999}', "tokens"),
        ('{"kind": "pretraining", "tokens": 1, "tokens": 2}', "tokens"),
        ('{"kind": "pretraining", "model": "\\ud800"}', "model"),
    ],
)
def test_a_text_that_no_answer_can_hold_is_refused_by_its_field(run, text, field):
    code, out = run(text, "--json")
    assert code == 2
    assert json.loads(out)["error"]["field"] == field


def test_a_job_that_is_stopped_before_it_can_save_says_so_in_finite_words(run):
    code, out = run({"kind": "pretraining", "model": "kimi-k2", "tokens": "1T", "accelerator": "T4", "accelerators": 64,
                     "storage_bandwidth": 32768})  # fmt: skip
    assert code == 0
    assert "T4" in out


def test_a_reader_that_leaves_early_gets_no_traceback():
    command = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "estimate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "DATABASE_URL": "sqlite:////nowhere/at/all.sqlite3"},
    )
    command.stdout.close()  # before anything is asked: all of the answer meets a closed pipe
    command.stdin.write(json.dumps(SEVEN | {"accelerators": 8}).encode())
    command.stdin.close()

    assert command.stderr.read() == b""
    assert command.wait() == 128 + 13
