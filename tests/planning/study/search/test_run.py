"""The study end to end over markets whose answer can be told by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from planning import reference
from planning.economics.types import PaymentMode
from planning.study.estimates import estimate_on
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search import places
from planning.study.search.choice import undominated
from planning.study.search.snapshot import content_hash, snapshot_from_json
from tests.planning.study.search import markets
from tests.planning.study.search.markets import (
    A100,
    H100,
    HOURS,
    SERVE,
    TUNE,
    market,
    offer,
    plan,
    reasons,
    text,
)


def test_gpu_hours_cost_hours_times_price():
    result = markets.study(HOURS, market(offer(price="24"), offer(A100, "12")))

    cheapest = plan(result, "cheapest")
    assert cheapest["accelerator_slug"] == A100
    assert Decimal(cheapest["cost"]) == 100 * 12  # 800 GPU hours on 8 cards of one instance
    assert cheapest["amount"] == cheapest["cost"]
    assert sum(Decimal(line["amount"]) for line in cheapest["lines"]) == Decimal(cheapest["cost"])


def test_a_plan_has_the_time_that_the_estimate_command_tells():
    result = markets.study({**TUNE, "vendors": ["NVIDIA"]})
    request = parse_request(TUNE)
    known = known_model(request.model, reference.resolve_model)

    for found in result["plans"][:6]:
        if found["mode"] == "spot" or found["kind"] == "stock":
            continue
        asked = replace(request, accelerators=(found["accelerator_slug"],), count=found["cards"])
        told = estimate_on(asked, known, reference.accelerators()[found["accelerator_slug"]])
        assert found["seconds"]["p50"] == pytest.approx(
            told.estimate.figures["wall_time"].p50, rel=1e-9
        )
        assert found["memory_bytes"] == pytest.approx(told.estimate.memory_bytes.p50, rel=1e-9)


@pytest.mark.parametrize("data", [TUNE, SERVE, HOURS])
def test_vector_search_and_exact_money_agree_to_the_cent(data):
    result = markets.study({**data, "currency": "CNY"}, currency="CNY")

    assert len(result["plans"]) > 5
    points = {point["key"]: point for point in result["frontier"]}
    for found in result["plans"]:
        assert Decimal(found["searched_cost"]) == Decimal(found["cost"]), found["key"]
        assert Decimal(found["amount"]).as_tuple().exponent >= -2
    assert all(
        points[key]["cost"] == p["cost"] for p in result["plans"] if (key := p["key"]) in points
    )


def test_the_same_inputs_give_the_same_result():
    first = markets.study(TUNE, seed=5)
    second = markets.study(TUNE, seed=5)
    other = markets.study(TUNE, seed=6)

    assert content_hash(first) == content_hash(second)
    assert first["plans"][0]["cost_spread"] != other["plans"][0]["cost_spread"]
    assert first["plans"][0]["cost"] == other["plans"][0]["cost"]


def test_spot_needs_checkpoints_and_is_never_for_a_service():
    spot = offer(price="6", mode=PaymentMode.SPOT)
    without = markets.study(TUNE, market(offer(), spot))
    with_them = markets.study(
        {**TUNE, "interruptible": True, "checkpoint_seconds": 1800}, market(offer(), spot)
    )
    service = markets.study(SERVE, market(offer(), spot))

    assert plan(with_them, "cheapest")["mode"] == "spot"
    assert (
        plan(with_them, "cheapest")["seconds"]["p50"]
        > plan(with_them, "fastest")["seconds"]["p50"] / 16
    )
    for result in (without, service):
        assert all(p["mode"] != "spot" for p in result["plans"])
        assert reasons(result, mode="spot", code="spot")
    assert reasons(without, mode="spot")[0]["change"] is not None
    assert reasons(service, mode="spot")[0]["change"] is None


def test_data_that_may_not_leave_rules_the_cloud_out():
    snapshot = market(offer(), platforms=[markets.platform()])
    result = markets.study(
        {**TUNE, "data_residence": "organisation", "need_by": "2027-06-01"}, snapshot
    )

    assert {p["kind"] for p in result["plans"]} == {"purchase"}
    assert {r["code"] for r in reasons(result, subject="offer")} == {"residence"}
    assert "Data may not leave" in text(result["comparison"][1]["missing"])


def test_a_country_and_a_region_keep_the_others_out():
    here, there = offer(price="30", region="cn-beijing", provider="aliyun"), offer(price="10")
    stays = markets.study({**TUNE, "data_residence": "country"}, market(here, there), country="CN")
    asked = markets.study({**TUNE, "region": "us"}, market(here, there))

    assert {p["region"] for p in stays["plans"]} == {"cn-beijing"}
    assert {p["region"] for p in asked["plans"]} == {"us-east-1"}
    assert text(reasons(asked, region="cn-beijing")[0]["change"]) == "Allow cn-beijing"


def test_a_purchase_that_comes_too_late_says_by_when_it_would_do():
    snapshot = market(offer(price="300"), platforms=[markets.platform()])
    result = markets.study({**TUNE, "need_by": "2026-12-10"}, snapshot)

    lost = reasons(result, subject="purchase")[0]
    assert lost["code"] == "lead_time"
    assert text(lost["change"]).startswith("Need it by 2027-")
    later = markets.study({**TUNE, "need_by": "2027-06-01"}, snapshot)
    assert any(p["kind"] == "purchase" for p in later["plans"])


def test_export_control_stops_a_purchase_and_not_a_rent_abroad():
    note = {H100: "ECCN 3A090.a: licence needed for China and other destinations"}
    snapshot = market(offer(), platforms=[markets.platform()], notes=note)
    request = {**TUNE, "need_by": "2027-06-01"}

    barred = markets.study(request, snapshot, country="CN")
    free = markets.study(request, snapshot, country="US")

    assert reasons(barred, subject="purchase", code="export")
    assert any(p["kind"] == "offer" for p in barred["plans"])
    assert not reasons(free, code="export")


def test_makers_outside_the_list_are_named():
    result = markets.study({**TUNE, "vendors": ["AMD"]})
    assert {p["vendor"] for p in result["plans"]} == {"AMD"}
    assert reasons(result, accelerator=H100, code="vendor")


def test_a_budget_shuts_out_what_is_above_it_and_says_how_much_it_would_take():
    free = markets.study(TUNE, market(offer(price="24")))
    cost = Decimal(plan(free, "cheapest")["cost"])

    tight = markets.study(
        {**TUNE, "budget": str(cost - 1), "currency": "USD"}, market(offer(price="24"))
    )

    assert tight["plans"] == []
    assert tight["recommended"] == []
    assert tight["nearest"]
    assert f"{cost:,}" in text(reasons(tight, code="budget", mode="on_demand")[0]["change"])
    enough = markets.study(
        {**TUNE, "budget": str(cost), "currency": "USD"}, market(offer(price="24"))
    )
    assert plan(enough, "cheapest")["cost"] == str(cost)


def test_a_deadline_that_none_meets_tells_the_days_it_would_take():
    data = {
        "kind": "pretraining",
        "parameters": "7B",
        "tokens": "1T",
        "duration_days": 1,
        "accelerators": 8,
    }
    result = markets.study(data, market(offer()))

    assert result["plans"] == []
    lost = reasons(result, code="time")[0]
    days = int(text(lost["change"]).split()[1])
    again = markets.study({**data, "duration_days": days}, market(offer()))
    assert again["plans"]


def test_memory_that_is_missing_is_told_in_gigabytes():
    data = {"kind": "finetuning", "parameters": "70B", "tokens": "1B", "accelerators": 1}
    result = markets.study(data, market(offer(), slugs=(H100,)))

    assert "Out of memory" in text(reasons(result, accelerator=H100, code="memory")[0]["reason"])
    assert "GB less" in text(reasons(result, code="memory")[0]["change"])


def test_an_instance_with_too_few_cards_cannot_hold_linked_work():
    single = offer(price="2", accelerators=1, instance="1x")
    result = markets.study({**TUNE, "accelerators": 8}, market(offer(), single))

    assert {p["instance"] for p in result["plans"]} == {f"8x-{H100}"}
    assert reasons(result, instance="1x", code="link")


def test_dearer_offers_name_the_price_that_would_win():
    dear, cheap = offer(price="36", provider="dear"), offer(price="24", provider="cheap")
    result = markets.study(HOURS, market(dear, cheap))

    lost = reasons(result, provider="dear", mode="on_demand")[0]
    limit = Decimal(text(lost["change"]).split()[5])
    won = markets.study(
        HOURS,
        market(replace(dear, price=replace(dear.price, amount=limit - Decimal("0.01"))), cheap),
    )
    assert plan(won, "cheapest")["provider"] == "dear" or limit <= Decimal(24)


def test_every_offer_is_a_plan_or_has_a_reason():
    snapshot = markets.shipped()
    result = markets.study(TUNE, snapshot)

    shown = {
        (p["provider"], p["region"], p["instance"], p["accelerator_slug"], p["mode"])
        for p in result["plans"]
    }
    named = {
        (r["provider"], r["region"], r["instance"], r["accelerator"], r["mode"])
        for r in result["exclusions"] if r["subject"] == "offer"
    }  # fmt: skip
    out = {r["accelerator"] for r in result["exclusions"] if r["subject"] == "accelerator"}
    missing = [
        o for o in snapshot.offers
        if (*o.place, o.accelerator, str(o.mode)) not in shown | named and o.accelerator not in out
    ]  # fmt: skip
    assert missing == []
    assert all(r["reason"]["template"] for r in result["exclusions"])
    priced = {o.accelerator for o in snapshot.offers} | {
        p.server.accelerator for p in snapshot.platforms
    }
    assert {a.slug for a in snapshot.accelerators} <= priced | out


def test_what_cannot_be_priced_is_named():
    yen = replace(offer(provider="abroad"), price=replace(offer().price, currency="JPY"))
    result = markets.study(HOURS, market(offer(), yen))

    assert any("JPY" in row["subject"] for row in result["unpriced"])
    assert reasons(result, provider="abroad", code="rate")
    modes = {r["mode"] for r in reasons(result, code="unsold")}
    assert {"subscription", "colocated", "leased", "owned", "reused"} <= modes
    assert all(r["change"] is not None for r in reasons(result, code="unsold"))


def test_idle_cards_come_before_everything_that_costs_more():
    snapshot = market(offer(), platforms=[markets.platform()], stock=[markets.idle(8)])
    result = markets.study({**TUNE, "need_by": "2027-06-01"}, snapshot)

    assert plan(result, "cheapest")["mode"] == "reused"
    sides = {side["side"]: side for side in result["comparison"]}
    costs = [Decimal(sides[name]["cost"]) for name in ("reuse", "rent", "buy")]
    assert costs == sorted(costs)
    assert all(side["inputs"] for side in sides.values())
    few = markets.study(TUNE, market(offer(), stock=[markets.idle(1)]))
    assert all(p["cards"] == 1 for p in few["plans"] if p["mode"] == "reused")


def test_a_purchase_is_paid_in_full_and_the_need_bears_its_share():
    result = markets.study(
        {**TUNE, "need_by": "2027-06-01"}, market(platforms=[markets.platform()])
    )

    bought = plan(result, "cheapest")
    assert bought["spend_kind"] == "purchase"
    assert Decimal(bought["amount"]) > 320_000 * bought["servers"]
    assert Decimal(bought["cost"]) < Decimal(bought["amount"]) / 10
    cash = [Decimal(paid) for paid in bought["cash"]]
    assert cash[0] == Decimal(bought["amount"])
    assert cash == sorted(cash)
    assert len(cash) == 37


def test_a_reserved_term_is_paid_whether_used_or_not():
    result = markets.study(HOURS, market(offer(price="24")))

    year = next(p for p in result["plans"] if p["mode"] == "reserved_1y")
    assert Decimal(year["cost"]) == (Decimal("24") * Decimal("0.68") * 8760).quantize(
        Decimal("0.01")
    )
    assert {line["name"] for line in year["lines"]} == {"usage", "commitment_unused"}


def test_lower_precision_needs_leave_and_takes_fewer_cards():
    strict = markets.study({**SERVE, "model": "llama-3.1-70b"}, market(offer()))
    loose = markets.study(
        {**SERVE, "model": "llama-3.1-70b", "accuracy_loss_limit": 0.02}, market(offer())
    )

    assert {p["accuracy_loss"] for p in strict["plans"]} == {0.0}
    assert plan(loose, "cheapest")["accuracy_loss"] > 0
    assert plan(loose, "cheapest")["cards"] < plan(strict, "cheapest")["cards"]


def test_a_latency_that_no_card_meets_is_told_in_milliseconds():
    data = {k: v for k, v in SERVE.items() if k != "latency_class"}
    result = markets.study(
        {**data, "latency_seconds": 0.002, "latency_metric": "end_to_end"}, market(offer())
    )

    assert result["plans"] == []
    assert "ms" in text(reasons(result, code="time")[0]["change"])


def test_progress_may_stop_it_at_any_stage():
    class Stopped(Exception):
        pass

    for stop in range(1, 7):
        seen = []

        def progress(percent, _stage, *, seen=seen, stop=stop):
            seen.append(percent)
            if len(seen) == stop:
                raise Stopped

        with pytest.raises(Stopped):
            markets.study(TUNE, market(offer()), progress=progress)
        assert len(seen) == stop


def test_the_request_itself_out_of_range_is_an_error():
    with pytest.raises(InputError) as caught:
        markets.study({**SERVE, "input_tokens": 200_000})
    assert caught.value.field == "input_tokens"


def test_a_snapshot_is_the_same_after_storage():
    snapshot = replace(markets.shipped(), stock=(markets.idle(),))
    again = snapshot_from_json(snapshot.to_json())
    assert again == snapshot
    assert again.hash() == snapshot.hash()
    assert replace(snapshot, stock=()).hash() != snapshot.hash()


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([0.0, 0.01, 0.02])),
        min_size=1, max_size=40,
    )
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_frontier_is_what_nothing_beats(points):
    cost, seconds, loss = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    kept = undominated(cost, seconds, loss)

    def beats(a, b):
        no_worse = all(x <= y for x, y in zip(points[a], points[b], strict=True))
        return no_worse and points[a] != points[b]

    for i in range(len(points)):
        beaten = any(beats(j, i) for j in range(len(points)))
        if kept[i]:
            assert not beaten
        elif not beaten:  # of equals one is kept
            assert any(kept[j] and points[j] == points[i] for j in range(len(points)))


@pytest.mark.parametrize(
    ("region", "country"),
    [
        ("cn-north-1", "CN"), ("us-east-1", "US"), ("eastus", "US"), ("ap-northeast-1", "JP"), ("europe-west4", "NL"),
        ("eu-central-1", "DE"), ("southeastasia", "SG"), ("FIN-03", "FI"), ("asia-southeast1", "SG"),
    ],
)  # fmt: skip
def test_regions_tell_their_country(region, country):
    assert places.country_of(region) == country
    assert places.matches(region, country.lower())
    assert places.matches(region, region[:4])


def test_every_region_of_the_shipped_catalogue_is_placed():
    unknown = {o.region for o in markets.shipped().offers if places.country_of(o.region) is None}
    assert not unknown


def test_more_money_or_time_never_makes_the_cheapest_dearer():
    snapshot = market(offer(price="24"), offer(A100, "12"))
    costs = [
        Decimal(plan(markets.study({**TUNE, "duration_days": days}, snapshot), "cheapest")["cost"])
        for days in (2, 7, 30)
    ]
    assert costs == sorted(costs, reverse=True)


BATCH = {
    "kind": "batch_inference", "model": "llama-3.1-8b", "items": "100k", "input_tokens": 500, "output_tokens": 150,
    "window_hours": 8,
}  # fmt: skip


@pytest.mark.parametrize("data", [HOURS, BATCH])
def test_work_without_a_latency_is_not_told_to_check_it(data):
    result = markets.study(data, market(offer()))

    assert not any("latency" in text(one) for one in result["software_first"])


def test_the_day_it_is_needed_is_when_capacity_must_be_there_not_when_work_ends():
    soon = markets.study({**HOURS, "gpu_hours": 100_000, "need_by": "2026-12-01"}, market(offer()))

    assert {p["mode"] for p in soon["plans"]} >= {"on_demand"}
    assert plan(soon, "cheapest")["seconds"]["p50"] > 86_400 * 30
    assert not reasons(soon, code="time")
