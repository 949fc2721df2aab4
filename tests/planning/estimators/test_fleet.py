import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from planning.estimators.fleet import plan_fleet
from planning.estimators.inference import estimate_inference
from planning.estimators.inference_workload import InferenceLayout, InferenceWorkload
from planning.estimators.queueing import Queue, erlang_c, highest_load
from planning.estimators.service_options import (
    LATENCY_CLASSES,
    ServiceOption,
    cards_for_calls,
    compare_options,
    tier_for,
)
from planning.estimators.types import InfeasibleError
from planning.reference import resolve_accelerator, resolve_architecture

H100 = resolve_accelerator("H100")
LLAMA_8B = resolve_architecture("Llama-3.1-8B")
LLAMA_70B = resolve_architecture("Llama-3.1-70B")
SERVICE = InferenceWorkload(
    1000, 300, weights_dtype="fp8", request_rate=20.0, peak_factor=3.0, ttft_slo=1.0
)


# Erlang's tables (probability of waiting): G. Gross et al., "Fundamentals of Queueing Theory", table and exercises.
@pytest.mark.parametrize(
    ("slots", "load", "waiting"),
    [(1, 0.5, 0.5), (2, 1.0, 1 / 3), (5, 4.0, 0.5541), (10, 8.0, 0.4092), (100, 90.0, 0.2170)],
)
def test_erlang_c_agrees_with_the_tables(slots, load, waiting):
    assert erlang_c(slots, load) == pytest.approx(waiting, abs=0.0015)


def test_a_full_queue_waits_without_end():
    assert Queue(8, 1.0, 8.0).wait(0.99) == math.inf
    assert erlang_c(8, 9.0) == 1.0
    assert erlang_c(100_000, 99_000.0) < 1.0


# Highest load at which p99 of the wait stays within half a service time, by slots.
@pytest.mark.parametrize(
    ("slots", "load"),
    [(1, 0.01), (4, 0.30), (8, 0.51), (16, 0.69), (32, 0.81), (64, 0.89), (128, 0.94)],
)
def test_few_slots_need_far_more_than_twenty_percent(slots, load):
    assert highest_load(slots, wait=0.5, percentile=0.99) == pytest.approx(load, abs=0.02)


@given(st.integers(1, 2000), st.floats(0.01, 0.99), st.floats(0.0, 3.0))
def test_more_slots_at_the_same_load_never_wait_longer(slots, load, variation):
    small = Queue(slots, 1.0, load * slots, variation, variation).wait(0.99)
    large = Queue(2 * slots, 1.0, load * 2 * slots, variation, variation).wait(0.99)
    assert large <= small + 1e-9


def test_a_fleet_spells_out_replicas_and_accelerators_per_replica():
    fleet = plan_fleet(SERVICE, H100, LLAMA_70B)
    assert fleet.accelerators == fleet.replicas * fleet.accelerators_per_replica
    assert fleet.replicas >= fleet.replicas_by_headroom > 0
    assert fleet.replicas_by_headroom >= fleet.replicas_by_division
    assert "replicas x" in str(fleet.messages[0])
    assert fleet.planned.load < 1 / 1.19
    assert fleet.planned.ttft["p99"] <= 1.0
    assert all(other.accelerators >= fleet.accelerators for other in fleet.others)


def test_a_service_at_a_low_load_answers_like_an_idle_replica_and_not_like_full_batches():
    rare = plan_fleet(replace(SERVICE, request_rate=1 / 86_400), H100, LLAMA_8B)
    alone = estimate_inference(replace(SERVICE, concurrency=1.0), H100, LLAMA_8B).figures
    answers = rare.answers

    for at in (answers.average, answers.planned):
        assert at.ttft["p99"] == pytest.approx(alone["ttft"].p50, rel=0.02)
        assert at.tpot == pytest.approx(alone["tpot"].p50, rel=0.02)
    assert answers.full.ttft["p50"] == pytest.approx(rare.ttft)
    assert answers.full.tpot == pytest.approx(rare.tpot)
    assert answers.full.tpot > 3 * alone["tpot"].p50
    assert answers.bandwidth < 1e-3
    assert answers.compute < 1e-3


@pytest.mark.parametrize("rate", [0.01, 1.0, 10.0, 40.0])
def test_what_is_in_flight_is_the_rate_times_the_stay(rate):
    fleet = plan_fleet(replace(SERVICE, request_rate=rate, peak_factor=1.0), H100, LLAMA_8B)
    at = fleet.answers.planned
    met = replace(SERVICE, concurrency=max(at.in_flight + 1.0, 1.0))
    served = estimate_inference(met, H100, LLAMA_8B, layout=fleet.layout).figures

    stay = served["ttft"].p50 + (SERVICE.output_tokens - 1) * served["tpot"].p50
    assert at.in_flight == pytest.approx(rate / fleet.replicas * stay, rel=0.05)
    assert at.tpot == pytest.approx(served["tpot"].p50, rel=0.05)


def test_latencies_grow_with_the_load_up_to_those_of_full_batches():
    layout = InferenceLayout(1)
    fleet = plan_fleet(replace(SERVICE, request_rate=40.0), H100, LLAMA_8B, layout=layout)
    found = [fleet.answers_with(n) for n in (1, fleet.replicas, 4 * fleet.replicas, 1000)]

    for name in ("average", "planned", "with_model_error"):
        times = [getattr(answers, name).tpot for answers in found]
        assert times == sorted(times, reverse=True)
        assert times[0] <= found[0].full.tpot
    for answers in found:
        rising = (answers.average, answers.planned, answers.with_model_error)
        assert [at.ttft["p99"] for at in rising] == sorted(at.ttft["p99"] for at in rising)
    assert found[0].planned.in_flight == fleet.concurrency  # overloaded: full


def test_an_answer_of_one_token_has_no_time_per_output_token():
    one = InferenceWorkload(500, 1, request_rate=5.0, tpot_slo=0.0005)
    assert "tpot" not in estimate_inference(one, H100, LLAMA_8B).figures
    answers = plan_fleet(one, H100, LLAMA_8B).answers
    assert answers.planned.tpot is None
    assert answers.planned.end_to_end == pytest.approx(answers.planned.ttft)


def test_twenty_percent_headroom_is_kept_at_the_peak():
    fleet = plan_fleet(SERVICE, H100, LLAMA_8B)
    assert fleet.peak_rate == 60.0
    assert fleet.headroom >= 0.2


def test_few_slots_make_the_latency_bound_decide_and_say_the_headroom_needed():
    speech = InferenceWorkload(
        500, 100, batching="none", request_rate=4.0, peak_factor=2.0, ttft_slo=0.2, engine="vllm"
    )
    fleet = plan_fleet(speech, H100, LLAMA_8B)
    assert fleet.binding == "latency"
    assert fleet.headroom > 0.2
    assert any("latency bound decides" in str(message) for message in fleet.messages)


def test_the_load_under_model_error_is_shown():
    fleet = plan_fleet(SERVICE, H100, LLAMA_8B)
    assert fleet.with_model_error.load == pytest.approx(
        fleet.planned.load * (1 + fleet.answers.model_error)
    )
    assert fleet.with_model_error.wait["p99"] >= fleet.planned.wait["p99"]


def test_long_outputs_lead_the_tail_of_whole_answers():
    short = plan_fleet(replace(SERVICE, output_tokens_p99=400), H100, LLAMA_8B)
    long = plan_fleet(replace(SERVICE, output_tokens_p99=1500), H100, LLAMA_8B)
    assert long.planned.end_to_end["p99"] > 2 * short.planned.end_to_end["p99"]


def test_a_tighter_bound_never_needs_fewer_replicas():
    layout = InferenceLayout(1)
    sizes = [
        plan_fleet(
            replace(SERVICE, batching="none", ttft_slo=slo, request_rate=2.0),
            H100,
            LLAMA_8B,
            layout=layout,
        ).replicas
        for slo in (5.0, 1.0, 0.3)
    ]
    assert sizes == sorted(sizes)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 500.0), st.floats(1.0, 5.0))
def test_more_requests_never_need_fewer_accelerators(rate, factor):
    layout = InferenceLayout(1)
    low = plan_fleet(replace(SERVICE, request_rate=rate), H100, LLAMA_8B, layout=layout)
    high = plan_fleet(replace(SERVICE, request_rate=rate * factor), H100, LLAMA_8B, layout=layout)
    assert high.replicas >= low.replicas


def test_a_bound_that_no_load_meets_is_infeasible_and_says_by_how_much():
    with pytest.raises(InfeasibleError, match="factor") as raised:
        plan_fleet(replace(SERVICE, tpot_slo=0.0004), H100, LLAMA_70B)
    assert raised.value.remedies


def test_a_model_that_fits_nowhere_says_so_rather_than_relax_your_latency():
    tiny = replace(H100, slug="tiny", hbm_bytes=1e9)
    with pytest.raises(InfeasibleError, match="does not fit"):
        plan_fleet(SERVICE, tiny, LLAMA_70B)


def test_a_fleet_needs_a_request_rate():
    with pytest.raises(InputError) as raised:
        plan_fleet(replace(SERVICE, request_rate=None), H100, LLAMA_8B)
    assert raised.value.field == "request_rate"


OPTIONS = (
    ServiceOption("A flagship FP16", 80_000, Decimal(15_000), 0.180),
    ServiceOption("B mid INT8", 60_000, Decimal(6_000), 0.320, 0.7),
    ServiceOption("C mid INT8 with batching", 100_000, Decimal(6_000), 0.280, 0.7),
)


def test_the_service_case_of_a_million_calls_a_day():
    costs = compare_options(OPTIONS, calls_per_day=1e6, latency=0.5, accuracy_loss=1.0)
    by_name = {cost.option.name[0]: cost for cost in costs}

    assert {name: cost.cards for name, cost in by_name.items()} == {"A": 13, "B": 17, "C": 10}
    assert by_name["A"].monthly_cost == 195_000
    assert by_name["B"].monthly_cost == 102_000
    assert by_name["C"].monthly_cost == 60_000
    assert costs[0].option.name.startswith("C")
    saving = 1 - by_name["C"].monthly_cost / by_name["A"].monthly_cost
    assert round(100 * saving) == 69


def test_the_service_case_with_headroom_takes_twelve_cards():
    costs = compare_options(OPTIONS, calls_per_day=1e6, latency=0.5, accuracy_loss=1.0)
    assert costs[0].cards_with_headroom == 12
    assert costs[0].monthly_cost_with_headroom == 72_000


def test_an_option_that_loses_too_much_accuracy_is_last_and_says_why():
    costs = compare_options(OPTIONS, calls_per_day=1e6, latency=0.3, accuracy_loss=0.5)
    assert costs[0].option.name.startswith("A")
    assert "accuracy" in str(next(c.reason for c in costs if c.option.name.startswith("C")))
    assert "bound" in str(next(c.reason for c in costs if c.option.name.startswith("B")))


@pytest.mark.parametrize(
    ("latency", "tier"), [(0.1, "fast"), (0.3, "fast"), (0.5, "balanced"), (5.0, "economy")]
)
def test_a_bound_names_the_cheapest_tier_that_meets_it(latency, tier):
    assert tier_for(latency).name == tier


def test_latency_classes_of_the_method():
    assert LATENCY_CLASSES == {
        "voice": 0.1,
        "image": 0.2,
        "video": 0.3,
        "chat": 0.5,
        "offline": 5.0,
    }


def test_cards_that_do_nothing_are_refused():
    with pytest.raises(InputError) as raised:
        cards_for_calls(1e6, 0)
    assert raised.value.field == "per_card"


def test_replicas_stay_within_a_server_where_one_holds_the_model():
    """More replicas do the same work; stages over servers are for what no server holds."""
    service = InferenceWorkload(
        1500, 300, request_rate=2.3, peak_factor=3.0, ttft_slo=0.5, percentile=0.95
    )
    shape = resolve_architecture("Qwen2.5-32B")
    for card in ("L40S", "H100"):
        fleet = plan_fleet(service, resolve_accelerator(card), shape)
        assert all(x.accelerators_per_replica <= 8 for x in (fleet, *fleet.others))
    small = replace(H100, slug="small", hbm_bytes=12e9)
    over = plan_fleet(replace(SERVICE, weights_dtype="fp16", ttft_slo=None), small, LLAMA_70B)
    assert over.accelerators_per_replica > 8
