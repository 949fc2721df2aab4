import json

import pytest

from planning.telemetry_formats.prometheus import (
    Answer,
    Exposition,
    api_series,
    exposition,
    is_blank,
)
from tests.procurement.evidence.samples import content, read

MONTH = "21_prometheus_query_range_gpu_util_31d.json"


@pytest.mark.parametrize(
    "value", [9223372036854775792, 9223372036854775794, 2147483632, 140737488355328.0]
)
def test_blanks_of_dcgm_are_no_numbers(value):
    assert is_blank(float(value))
    (sample,) = exposition([(1, f'DCGM_FI_DEV_MEMORY_TEMP{{gpu="0"}} {value}')], Exposition())
    assert (sample.value, sample.blank) == (None, True)


def test_escapes_exemplars_and_bad_lines():
    facts = Exposition()
    lines = [
        'a{x="q\\"\\\\\\n"} 1',
        'b_total{y="1"} 2 # {trace="t"} 0.5 1.0',
        "this is no sample",
        "# EOF",
        "c NaN",
    ]
    found = list(exposition(enumerate(lines, 1), facts))
    assert [(s.name, s.value) for s in found] == [("a", 1.0), ("b_total", 2.0), ("c", None)]
    assert found[0].labels["x"] == 'q"\\\n'
    assert (facts.bad_lines, facts.end_of_file, facts.openmetrics) == ([3], True, True)


def test_series_are_read_as_a_stream_of_any_pieces():
    data = content(MONTH)
    pieces = (data[i : i + 777] for i in range(0, len(data), 777))
    answer = Answer()
    series = list(api_series(pieces, answer))
    assert (len(series), answer.status, answer.result_type, answer.whole) == (
        4,
        "success",
        "matrix",
        True,
    )
    assert sum(value is None for s in series for _, value in s.points) == 2


@pytest.mark.parametrize(
    ("document", "review"),
    [
        ({"status": "error", "errorType": "timeout", "error": "query timed out"}, "inconclusive"),
        (
            {
                "status": "success",
                "data": {
                    "resultType": "vector",
                    "result": [{"metric": {"gpu": "0"}, "value": [1767225600, "41.9"]}],
                },
            },
            "inconclusive",
        ),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, "inconclusive"),
        (
            {"status": "success", "data": {"resultType": "scalar", "result": [1767225600, "0.5"]}},
            "inconclusive",
        ),
    ],
)
def test_what_shows_no_period_is_inconclusive(document, review):
    assert read(MONTH, json.dumps(document).encode()).review_verdict == review


def month(change):
    document = json.loads(content(MONTH))
    change(document)
    return read(MONTH, json.dumps(document).encode())


def test_a_ratio_is_scaled_and_a_busy_fleet_is_ok():
    def ratio(document):
        for series in document["data"]["result"]:
            series["metric"]["__name__"] = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
            series["values"] = [[t, "0.5"] for t, _ in series["values"]]

    evidence = month(ratio)
    assert (evidence.review_verdict, evidence.metrics["mean_util_pct_fleet"]) == ("ok", 50.0)


def test_a_card_without_samples_is_missing_not_idle():
    evidence = month(lambda d: d["data"]["result"].append({"metric": {"gpu": "9"}, "values": []}))
    assert evidence.review_verdict == "inconclusive"
    assert evidence.metrics["mean_util_pct_fleet"] == pytest.approx(22.22, abs=0.01)


def test_partial_answers_and_other_metrics_are_inconclusive():
    def partial(document):
        document["warnings"] = ["PromQL: partial response"]

    def memory(document):
        for series in document["data"]["result"]:
            series["metric"]["__name__"] = "DCGM_FI_DEV_FB_USED"

    assert month(partial).review_verdict == "inconclusive"
    assert month(memory).review_verdict == "inconclusive"
