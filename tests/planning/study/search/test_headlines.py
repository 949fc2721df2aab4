"""Which plan a study puts at the head: nothing whose cost or time rests on what nobody knows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from planning import reference, study_tables
from planning.study.model import known_model
from planning.study.request import parse_request
from planning.study.search.choice import worth_it
from planning.study.search.run import Setting, run_study
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, SERVE, market, offer, plan, text

SHORT = {
    "kind": "finetuning", "model": "llama-3.1-70b", "tokens": "20M", "duration_days": 30, "need_by": "2027-06-01",
    "stage": "midsize",
}  # fmt: skip
# Eight cards for a fifth of three years
LASTING = {
    "kind": "gpu_hours", "gpu_hours": 42_000, "accelerators": 8, "need_by": "2027-09-01", "stage": "midsize",
}  # fmt: skip
PRICES = market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,))


def told_on(snapshot, data=SHORT):
    request = parse_request(data)
    known = known_model(request.model, reference.resolve_model)
    return run_study(request, known, snapshot, Setting("USD", 1, "US"))


def told(data=SHORT, utilisation=None):
    request = parse_request(data)
    known = None if request.model is None else known_model(request.model, reference.resolve_model)
    return run_study(request, known, PRICES, Setting("USD", 1, "US", owned_utilisation=utilisation))


@pytest.fixture(scope="module")
def short():
    return told()


def test_a_purchase_for_a_job_of_hours_is_not_headlined_and_says_why(short):
    roles = {role: plan(short, role) for role in ("cheapest", "fastest", "safest")}
    assert {found["kind"] for found in roles.values()} == {"offer"}
    assert roles["cheapest"]["hours"] < 48

    bought = min(
        (p for p in short["plans"] if p["kind"] == "purchase"), key=lambda p: Decimal(p["cost"])
    )
    assert Decimal(bought["cost"]) < Decimal(roles["cheapest"]["cost"])
    assert "nobody measured" in text(bought["doubts"][0])
    rows = {row["plan"]["key"]: row for row in study_tables.plan_rows(short["plans"])}
    assert rows[bought["key"]]["doubts"] == [text(one) for one in bought["doubts"]]


def test_advice_and_risk_count_on_the_same_use(short):
    risk = short["risk"]
    assert risk["planned_utilisation"] < 0.01 < risk["break_even_utilisation"]
    assert risk["own_cheaper"] == 0.0
    advice = [text(one) for one in short["advice"]]
    assert any(one.startswith("Rent:") for one in advice)
    assert not any(one.startswith("Own:") for one in advice)


@pytest.mark.parametrize("stage", ["midsize", "large"])
def test_a_need_of_hours_is_never_told_to_own_however_busy_other_cards_are(stage):
    busy = told({**SHORT, "stage": stage}, utilisation=0.9)
    assert busy["risk"]["planned_utilisation"] < 0.01
    assert busy["risk"]["measured_utilisation"] is None
    assert busy["risk"]["own_cheaper"] == 0.0
    advice = [text(one) for one in busy["advice"]]
    assert any(one.startswith("Rent: this need runs") for one in advice)
    assert not any(one.startswith("Own:") for one in advice)
    assert all(plan(busy, role)["kind"] == "offer" for role in ("cheapest", "fastest", "safest"))
    buy = next(row for row in busy["comparison"] if row["side"] == "buy")
    assert any("Not recommended" in text(note) for note in buy["notes"])


def test_owning_is_held_against_the_cheapest_rental_that_does_the_work():
    """Not against the same card where a cheaper one does it."""
    both = replace(PRICES, offers=(offer(price="1600"), offer(markets.A100, price="40")))
    both = replace(both, accelerators=market(slugs=(H100, markets.A100)).accelerators)
    request = parse_request(SHORT)
    known = known_model(request.model, reference.resolve_model)
    result = run_study(request, known, both, Setting("USD", 1, "US"))
    risk = result["risk"]
    assert risk["rental"]["accelerator"].startswith("A100")
    rent = next(row for row in result["comparison"] if row["side"] == "rent")
    assert Decimal(risk["rent_per_card_hour"]) < 100 < 200
    assert rent["accelerator"] == risk["rental"]["accelerator"]


def test_a_unit_larger_than_the_need_is_said():
    rack = markets.platform(price="3000000")
    rack = replace(rack, server=replace(rack.server, accelerators=72))
    result = told_on(replace(PRICES, platforms=(rack,)))
    buy = next(row for row in result["comparison"] if row["side"] == "buy")
    told_units = [text(note) for note in buy["notes"] if "Smallest unit" in text(note)]
    assert told_units == [
        f"Smallest unit: 72 in one rack. 72 cards are bought, {buy['cards']} used by this need"
    ]
    assert f"{buy['cards']} used" in study_tables.risk(result)["title"]


def test_measured_use_that_reaches_the_break_even_carries_a_purchase():
    result = told(LASTING, utilisation=0.8)
    assert plan(result, "cheapest")["kind"] == "purchase"
    assert plan(result, "cheapest")["doubts"] == []
    assert result["risk"]["planned_utilisation"] > result["risk"]["break_even_utilisation"]
    assert result["risk"]["own_cheaper"] > 0.5


def test_where_nothing_is_rented_out_a_purchase_is_headlined_with_its_doubt():
    alone = replace(PRICES, offers=())
    result = markets.study(SHORT, alone)
    assert plan(result, "cheapest")["kind"] == "purchase"
    assert plan(result, "cheapest")["doubts"]


def test_cash_at_the_order_stands_on_the_card():
    card = study_tables.cards(told(LASTING, utilisation=0.8))[0]
    assert card.amount is not None
    assert card.amount != card.cost


def test_many_times_the_money_for_hardly_less_time_is_not_worth_it():
    cost = np.array([100.0, 190.0, 847.0, 847.0])
    seconds = np.array([0.489, 0.470, 0.447, 0.300])
    assert worth_it(cost, seconds).tolist() == [True, True, False, True]


def test_no_two_plans_look_the_same():
    result = markets.study({**SERVE, "model": "llama-3.1-70b"})
    seen = [
        (p["accelerator_slug"], p["mode"], p["provider"], p["region"], p["instance"], p["precision"], p["cost"])
        for p in result["plans"]
    ]  # fmt: skip
    assert len(seen) == len(set(seen)) > 5


def test_a_plan_that_may_miss_its_latency_says_so_and_is_not_the_safest():
    result = markets.study({**SERVE, "model": "llama-3.1-70b"})
    limit = result["limit_seconds"]
    missing = {p["key"] for p in result["plans"] if p["seconds"]["p90"] > limit}
    said = {
        p["key"] for p in result["plans"] if any("May miss" in text(one) for one in p["doubts"])
    }
    assert said == missing
    holding = [p for p in result["plans"] if not p["doubts"]]
    assert missing
    assert not holding or plan(result, "safest")["key"] not in missing


CHAT = {**SERVE, "model": "llama-3.1-70b", "requests_per_day": "200k"}


def test_safest_holds_what_is_asked_for_at_the_p90_and_badges_say_the_median():
    result = markets.study(CHAT)
    limit = result["limit_seconds"]
    safest = plan(result, "safest")
    assert safest["seconds"]["p90"] <= limit
    assert not any("May miss" in text(one) for one in safest["doubts"])
    sides = [row for row in result["comparison"] if row["key"]]
    keyed = study_tables.by_key(result)
    for row in sides:
        told_plan = keyed.get(row["key"])
        if told_plan is not None and told_plan["mode"] != "spot" and row["meets"]:
            assert row["meets_p90"] == (told_plan["seconds"]["p90"] <= limit)
    shown = [row for row in study_tables.comparison(result) if row.get("name")]
    assert [one["median_only"] for one in shown] == [
        row["meets"] and not row["meets_p90"] for row in sides
    ]


def test_where_nothing_holds_it_nothing_is_safest_and_the_nearest_is_named(monkeypatch):
    monkeypatch.setattr("planning.study.search.inference_ways._sure_rows", lambda *args: [])
    found = markets.study(CHAT, replace(PRICES, platforms=()))
    limit = found["limit_seconds"]
    assert found["plans"]
    assert all(one["seconds"]["p90"] > limit for one in found["plans"])
    assert [row["role"] for row in found["recommended"]] == ["cheapest", "fastest"]
    assert not any("safest" in one["roles"] for one in found["plans"])
    assert any("none holds what is asked for at the P90" in text(one) for one in found["notes"])
    assert any("comes nearest" in text(one) for one in found["notes"])
