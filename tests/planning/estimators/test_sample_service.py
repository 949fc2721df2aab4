import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from planning.estimators.inference_constants import published_constants
from planning.estimators.sample_fleet import SampleService, plan_sample_fleet, sample_answers
from planning.estimators.sample_service import (
    BATCHES,
    batches_that_fit,
    estimate_samples,
    sample_memory,
)
from planning.estimators.samples import SampleWorkload
from planning.estimators.types import Grade, InfeasibleError
from planning.reference import resolve_accelerator

K = published_constants()
H100, L4, T4 = (resolve_accelerator(name) for name in ("H100", "L4", "T4"))
SDXL = SampleWorkload(2.4e14, 2.6e9, "fp16", "diffusion", passes=40.0)
RESNET = SampleWorkload(8.2e9, 25.6e6, "int8", "convolution")
SERVICE = SampleService(request_rate=2.0, peak_factor=3.0, latency_slo=10.0, percentile=0.95)


def test_a_service_spells_out_its_fleet_and_its_latencies_at_two_loads():
    found = estimate_samples(SDXL, H100, service=SERVICE)

    assert found.accelerators == found.layout["replicas"]
    assert found.fleet is not None
    assert found.fleet.planned.end_to_end["p95"] <= 10.0
    assert found.fleet.planned.load <= 1 / 1.2
    assert found.fleet.with_model_error.load == pytest.approx(
        found.fleet.planned.load * (1 + found.fleet.model_error)
    )
    for p in ("p50", "p95", "p99"):
        assert found.figures[f"end_to_end_{p}"].p50 == found.fleet.planned.end_to_end[p]
        assert found.figures[f"end_to_end_{p}"].p90 == found.fleet.with_model_error.end_to_end[p]
    assert found.fleet.planned.ttft == {}


def test_one_slot_takes_far_more_headroom_than_the_rule():
    tight = replace(SERVICE, request_rate=0.5, peak_factor=1.0, latency_slo=1.5)
    found = estimate_samples(SDXL, H100, service=tight)

    assert found.layout["batch"] == 1
    assert found.fleet is not None
    assert found.fleet.planned.load < 0.7
    assert any("latency bound decides" in str(text) for text in found.warnings)


def test_a_loose_bound_allows_batches_and_fewer_accelerators():
    rate = replace(SERVICE, request_rate=30_000.0)
    loose = plan_sample_fleet(RESNET, T4, replace(rate, latency_slo=0.2), K, BATCHES)
    tight = plan_sample_fleet(RESNET, T4, replace(rate, latency_slo=0.002), K, BATCHES)

    assert loose.workload.batch > tight.workload.batch
    assert loose.replicas < tight.replicas


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 1000.0), st.floats(1.0, 5.0))
def test_more_requests_never_take_fewer_accelerators(rate, factor):
    sizes = [
        plan_sample_fleet(SDXL, H100, replace(SERVICE, request_rate=r), K, (1, 2, 4)).replicas
        for r in (rate, rate * factor)
    ]
    assert sizes[1] >= sizes[0]


@settings(max_examples=30, deadline=None)
@given(st.floats(1.05, 60.0), st.floats(1.0, 5.0))
def test_a_tighter_bound_never_takes_fewer_accelerators(bound, factor):
    sizes = [
        plan_sample_fleet(SDXL, H100, replace(SERVICE, latency_slo=b), K, (1, 2, 4)).replicas
        for b in (bound, bound * factor)
    ]
    assert sizes[0] >= sizes[1]


def test_a_bound_below_one_pass_is_infeasible_and_names_both_times():
    with pytest.raises(InfeasibleError, match="even without waiting; the bound is 100"):
        estimate_samples(SDXL, H100, service=replace(SERVICE, latency_slo=0.1))


def test_fewer_accelerators_than_the_load_takes_are_overloaded():
    needed = estimate_samples(SDXL, H100, service=SERVICE).accelerators
    found = estimate_samples(SDXL, H100, service=SERVICE, accelerators=1)

    assert needed > 1
    assert found.fleet is not None
    assert found.fleet.planned.end_to_end["p95"] == math.inf
    assert any("overloaded at the peak" in str(text) for text in found.warnings)


def test_memory_grows_with_the_batch_and_never_goes_past_the_card():
    batches = batches_that_fit(SDXL, L4)
    totals = [sample_memory(replace(SDXL, batch=float(b)))[1] for b in BATCHES]

    assert all(a.p50 < b.p50 for a, b in pairwise(totals))
    assert batches
    assert all(sample_memory(replace(SDXL, batch=float(b)))[1].p90 <= L4.hbm_bytes for b in batches)


def test_what_does_not_fit_says_what_is_lacking_and_what_would_help():
    large = replace(SDXL, params=12e9)
    found = estimate_samples(large, L4, service=SERVICE)

    assert found.fits == "out_of_memory"
    assert not found.figures
    texts = [str(text) for text in found.remedies]
    assert "GB are lacking" in texts[0]
    assert any("Store the weights in FP8" in text for text in texts)
    assert any("at least" in text for text in texts)


def test_a_p90_beyond_the_card_is_tight_and_says_by_how_much():
    edge = replace(SDXL, params=8.0e9, activation_bytes=6e9)
    found = estimate_samples(edge, L4)

    assert found.fits == "tight"
    assert "Tight: at the P90" in str(found.warnings[0])


def test_few_measured_rows_are_an_extrapolation():
    assert estimate_samples(SDXL, H100).figures["throughput"].grade is Grade.EXTRAPOLATED


def test_the_tail_of_resnet_on_a_t4_is_near_the_mlperf_server_run():
    # MLPerf inference, closed, 8 x T4 TRT, resnet50, server: 44,500.92 queries/s, p50 5.80 ms, p99 9.31 ms
    service = SampleService(44_500.92, latency_slo=0.015, percentile=0.99, headroom=0.0)
    fleet = plan_sample_fleet(RESNET, T4, service, K, (16,), replicas=8)
    found = sample_answers(fleet, service, 0.0).planned

    assert found.load == pytest.approx(0.9, abs=0.1)
    assert found.end_to_end["p50"] == pytest.approx(0.0058, rel=0.5)
    assert found.end_to_end["p99"] == pytest.approx(0.0093, rel=0.5)


@pytest.mark.parametrize(
    ("field", "value"),
    [("request_rate", 0.0), ("peak_factor", 0.5), ("headroom", -0.1), ("latency_slo", 0.0),
     ("percentile", 1.0), ("percentile", math.nan)],
)  # fmt: skip
def test_an_impossible_service_is_refused(field, value):
    with pytest.raises(InputError) as raised:
        estimate_samples(SDXL, H100, service=replace(SERVICE, **{field: value}))
    assert raised.value.field == field
