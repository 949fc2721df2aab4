"""`manage.py study`: the same request as `estimate`, without a database."""

from __future__ import annotations

import io
import json
from pathlib import Path

import jsonschema
import pytest
from django.core.management import call_command

from planning.study.search.schema import study_schema

REQUEST = {
    "kind": "finetuning",
    "model": "llama-3.1-8b",
    "tokens": "2B",
    "duration_days": 14,
    "currency": "CNY",
}


def run(monkeypatch, data, *options) -> str:
    monkeypatch.setattr(
        "sys.stdin", io.StringIO(data if isinstance(data, str) else json.dumps(data))
    )
    out = io.StringIO()
    call_command("study", *options, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_it_prints_plans_frontier_and_exclusions_as_json(monkeypatch):
    body = json.loads(run(monkeypatch, REQUEST, "--json", "--seed", "3"))

    jsonschema.validate(body, study_schema())
    assert body["schema"] == "headroom/study-1"
    assert body["currency"] == "CNY"
    assert body["seed"] == 3
    assert body["catalogue"]["origin"] == "shipped"
    assert body["counts"]["candidates"] >= 100_000
    assert body["counts"]["accelerators"] >= 60
    assert body["counts"]["offers"] >= 300
    assert {row["key"] for row in body["frontier"]} <= {row["key"] for row in body["plans"]}
    assert all(isinstance(row["reason"], str) for row in body["exclusions"])


@pytest.mark.django_db
def test_it_prints_a_table(monkeypatch):
    text = run(monkeypatch, {**REQUEST, "vendors": "NVIDIA"})
    assert "Cheapest: " in text
    assert "candidates on" in text


@pytest.mark.django_db
def test_a_bad_request_is_an_error_at_its_field(monkeypatch, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, {**REQUEST, "budget": "-5"}, "--json")
    assert stopped.value.code == 2


@pytest.mark.django_db
def test_an_unknown_accelerator_is_named(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({**REQUEST, "accelerator": "H1000"})))
    with pytest.raises(SystemExit):
        call_command("study", "--json", stdout=out)
    assert "H1000" in json.loads(out.getvalue())["error"]["message"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "data",
    [
        {"kind": "online_inference", "model": "llama-3.1-8b", "requests_per_day": "200k", "input_tokens": 500,
         "output_tokens": 150, "latency_class": "chat", "duration_days": 180, "stage": "startup"},
        {"kind": "gpu_hours", "gpu_hours": 500, "accelerators": 8, "data_residence": "organisation"},
        {"kind": "batch_inference", "model": "llama-3.1-8b", "items": "1M", "input_tokens": 500,
         "output_tokens": 150, "window_hours": 0.01},
    ],
)  # fmt: skip
def test_every_result_follows_the_schema(monkeypatch, data):
    jsonschema.validate(json.loads(run(monkeypatch, data, "--json")), study_schema())


def test_the_schema_file_is_the_declared_one():
    path = Path(__file__).resolve().parents[3] / "docs" / "schemas" / "study-1.json"
    assert json.loads(path.read_text(encoding="utf-8")) == study_schema()


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["estimate", "study"])
@pytest.mark.parametrize("sample", ["training", "inference"])
def test_the_samples_of_the_readme_are_answered(monkeypatch, settings, command, sample):
    text = (settings.BASE_DIR / "docs" / "samples" / f"{sample}.json").read_text(encoding="utf-8")
    assert f"docs/samples/{sample}.json" in (settings.BASE_DIR / "README.md").read_text(
        encoding="utf-8"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    out = io.StringIO()
    call_command(command, stdout=out)
    assert (
        "fits" in out.getvalue().lower()
        if command == "estimate"
        else "Cheapest: " in out.getvalue()
    )
