"""Units survive: from what people write to SI, through the estimate, to JSON and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.services.estimates import shipped_catalogue
from planning.study.answer_json import answer_json
from planning.study.estimates import estimate
from planning.study.fields import parse_number
from planning.study.request import parse_request, request_json

SUFFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "%": 0.01}
UNITS = {
    "run_time": "s", "tpot": "s", "ttft": "s", "end_to_end": "s", "throughput": "tokens/s", "accelerator_hours": "h",
    "throughput_per_accelerator": "tokens/s", "requests_per_second": "requests/s", "concurrency": "requests",
}  # fmt: skip


@given(st.floats(0.001, 999.0), st.sampled_from(sorted(SUFFIXES)))
def test_a_number_with_a_suffix_is_the_number_in_si(value, suffix):
    assert parse_number("x", f"{value!r}{suffix}") == pytest.approx(value * SUFFIXES[suffix])


@settings(max_examples=15, deadline=None)
@given(
    st.integers(10_000, 10**9), st.integers(50, 2000), st.integers(1, 1000), st.floats(1.0, 48.0)
)
def test_rates_times_and_hours_of_a_batch_job_agree_in_their_units(items, inputs, outputs, window):
    told = {
        "kind": "batch_inference", "model": "llama-3.1-8b", "items": items, "input_tokens": inputs,
        "output_tokens": outputs, "window_hours": window, "accelerator": "H100",
    }  # fmt: skip
    request = parse_request(told)
    assert parse_request(request_json(request)) == request
    [found] = answer_json(estimate(request, shipped_catalogue()))["estimates"]
    figures = found["figures"]

    for name, unit in UNITS.items():
        if name != "tpot" or outputs > 1:  # of one token there is none
            assert figures[name]["unit"] == unit
    assert ("tpot" in figures) == (outputs > 1)
    seconds, rate = figures["run_time"]["p50"], figures["throughput"]["p50"]
    assert seconds * rate == pytest.approx(items * outputs)
    assert figures["accelerator_hours"]["p50"] * 3600 == pytest.approx(
        seconds * found["accelerators"]["total"]
    )
    assert figures["requests_per_second"]["p50"] * outputs == pytest.approx(rate)
    parts = sum(part["bytes"] for part in found["memory"]["parts"])
    assert parts == pytest.approx(found["memory"]["total"]["p50"])
