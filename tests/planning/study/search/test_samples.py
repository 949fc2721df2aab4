"""Studies of inference by FLOP per sample: sized, priced, excluded with the reason, and the same as the estimate."""

from __future__ import annotations

import pytest

from core.errors import InputError
from planning import reference
from planning.study.estimates import estimate_on, model_for
from planning.study.request import parse_request
from tests.planning.study.search import markets
from tests.planning.study.search.markets import A100, H100, L40S, market, offer, plan, reasons, text

DRAW = {
    "kind": "online_samples", "model": "sdxl-base-1-0", "requests_per_day": "200k", "latency_seconds": 8,
    "duration_days": 365,
}  # fmt: skip
LABEL = {
    "kind": "batch_samples",
    "model": "vit-l-16",
    "items": "300M",
    "window_hours": 8,
    "interruptible": True,
}
PAIR = (H100, L40S)


def draw(**changes):
    return markets.study(
        {**DRAW, **changes}, market(offer(price="24"), offer(L40S, "8"), slugs=PAIR)
    )


def test_a_service_is_sized_in_time_and_priced():
    result = draw()
    cheapest = plan(result, "cheapest")

    assert result["axis"] == "latency"
    assert cheapest["seconds"]["p50"] <= 8
    assert cheapest["layout"]["accelerators_per_replica"] == 1
    assert cheapest["cards"] == cheapest["layout"]["replicas"]
    assert any("one accelerator serves whole samples" in text(n).lower() for n in result["notes"])


def test_a_plan_has_the_latency_and_the_number_that_the_estimate_tells():
    request = parse_request(DRAW)
    known = model_for(request, reference.resolve_model)
    for found in draw()["plans"]:
        told = estimate_on(request, known, reference.accelerators()[found["accelerator_slug"]])
        assert told.estimate.accelerators == found["cards"]
        assert told.estimate.figures["end_to_end_p95"].p50 == pytest.approx(found["seconds"]["p50"])


def test_a_lower_precision_is_tried_where_accuracy_may_be_lost():
    assert {p["precision"] for p in draw()["plans"]} == {"fp16"}
    found = {p["precision"] for p in draw(accuracy_loss_limit="3 %")["plans"]}
    assert found - {"fp16"}


def test_growth_sizes_for_the_end_of_the_term():
    assert plan(draw(growth_per_month=0.1), "cheapest")["cards"] > plan(draw(), "cheapest")["cards"]


def test_a_bound_that_no_card_meets_is_nearest_and_says_what_would_be():
    result = draw(latency_seconds=0.05)

    assert not result["plans"]
    assert result["nearest"]


def test_an_offline_run_ends_within_its_window_and_may_use_spot():
    result = markets.study(LABEL, market(offer(price="24"), offer(A100, "12")))
    cheapest = plan(result, "cheapest")

    assert result["axis"] == "time"
    assert cheapest["seconds"]["p50"] <= 8 * 3600
    assert {p["cards"] for p in result["plans"]}


def test_a_model_that_fits_on_no_card_is_excluded_with_what_it_lacks():
    big = {**DRAW, "parameters": "60B", "flops_per_sample": 1e14, "network": "transformer"}
    big.pop("model")
    result = markets.study(big, market(offer(L40S, "8"), slugs=(L40S,)))
    [lost] = reasons(result, accelerator=L40S, code="memory")

    assert "Out of memory" in text(lost["reason"])
    assert "GB less on each" in text(lost["change"])


def test_the_work_of_one_sample_must_be_known():
    told = {**DRAW, "parameters": "1B"}
    told.pop("model")
    with pytest.raises(InputError) as raised:
        markets.study(told, market(offer()))
    assert raised.value.field == "flops_per_sample"
