import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

DATA = Path(__file__).parents[1] / "data" / "published_inference.json"


def run(*args):
    out = StringIO()
    call_command("score_estimators", *map(str, args), stdout=out)
    return out.getvalue()


def test_scores_as_json():
    result = json.loads(run(DATA, "--json"))
    assert set(result) >= {"classes", "skipped"}
    dense = result["classes"]["inference_throughput_dense"]
    assert set(dense) == {"rows", "unpredicted", "median_ape", "p90_ape", "coverage"}
    assert dense["rows"] > 0


def test_scores_as_a_table():
    text = run(DATA)
    assert "inference_tpot" in text
    assert "coverage" in text


def test_training_and_inference_rows_may_be_mixed(tmp_path):
    rows = json.loads(DATA.read_text(encoding="utf-8"))[:2]
    training = {"id": "x", "gpu": "H100", "measured": {"tokens_per_s_per_gpu": 1000}}
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps({"rows": [*rows, training, 5]}))
    result = json.loads(run(path, "--json"))
    assert "training_throughput" in result["classes"]
    assert result["skipped"]["not a row"] == 1


@pytest.mark.parametrize("content", ["{", '{"a": 1}', '"text"'])
def test_what_is_no_truth_file_is_refused(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(CommandError):
        run(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(CommandError, match="cannot be read"):
        run(tmp_path / "none.json")
