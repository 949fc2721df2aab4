"""Purchases in own rooms: what the room carries, the last day to order, the money, and what binds first."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from core.money import Money
from planning.economics.types import Site
from planning.study.request import parse_request
from planning.study.search.run import Setting, run_study
from planning.study.search.snapshot import Room, snapshot_from_json
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, HOURS, ON, market, offer, reasons, text

BUY = {**HOURS, "gpu_hours": 160_000, "accelerators": 32, "need_by": "2027-09-01"}


def room(**changes) -> Room:
    figures = {
        "name": "Hall 1", "power_kw": 200.0, "cooling_kw": 200.0, "racks": 20, "kw_per_rack": 20.0,
    }  # fmt: skip
    return Room(Site(**{**figures, **changes}))


def study(data=BUY, *rooms: Room, budgets=None, stage=None, currency="USD", stock=(), use=None):
    snapshot = replace(
        market(offer(price="80"), platforms=[markets.platform()], stock=stock, slugs=(H100,)),
        rooms=tuple(rooms),
    )
    request = parse_request(data)
    setting = Setting(currency, 1, "US", use, budgets or {}, stage)
    known = None
    return run_study(request, known, snapshot, setting)


def owned(result, mode="owned"):
    return next(p for p in [*result["plans"], *result["nearest"]] if p["mode"] == mode)


def test_without_a_room_a_purchase_stands_in_a_colocation_and_owning_is_named_as_missing():
    result = study()

    bought = owned(result, "colocated")
    assert bought["order"]["rooms"] == []
    assert any("colocation prices" in text(note) for note in bought["notes"])
    assert "room" in text(reasons(result, mode="owned", code="unsold")[0]["change"])


def test_a_room_that_carries_the_servers_makes_an_own_plan():
    result = study(BUY, room())

    plan = owned(result)
    assert plan["region"] == "Hall 1"
    assert plan["order"]["fits_site"] is True
    assert plan["order"]["rooms"][0]["servers"] >= plan["order"]["servers"] == 4
    assert any("usual colocation price is taken" in text(note) for note in plan["notes"])


@pytest.mark.parametrize(
    ("figures", "binds", "change"),
    [
        ({"used_power_kw": 180.0}, "power", "20.8 kW more power"),
        ({"used_cooling_kw": 180.0}, "cooling", "20.8 kW more cooling"),
        ({"used_racks": 18}, "rack_power", "10.2 kW and more for each"),
        ({"kw_per_rack": 8.0}, "rack_power", "10.2 kW and more for each"),
    ],
)
def test_a_room_too_small_is_named_with_what_it_lacks(figures, binds, change):
    result = study(BUY, room(**figures))

    lost = reasons(result, mode="owned", code="site")[0]
    assert "Hall 1 carries" in text(lost["reason"])
    assert change in text(lost["change"])
    assert lost["region"] == "Hall 1"
    colocated = owned(result, "colocated")
    assert colocated["order"]["rooms"][0]["binds"] == binds
    assert all(p["mode"] != "owned" for p in result["plans"])


def test_the_last_day_to_order_is_need_by_less_delivery_and_acceptance():
    order = owned(study(BUY, room()))["order"]

    days = order["lead_weeks"] * 7 + order["acceptance_days"]
    assert date.fromisoformat(order["last_order"]) == date(2027, 9, 1) - timedelta(days=days)
    assert date.fromisoformat(order["ready"]) == ON + timedelta(days=days)
    assert order["fits_date"] is True


def test_what_binds_first_is_date_then_the_least_of_room_and_budget():
    inside = {**BUY, "data_residence": "organisation"}
    late = study({**inside, "need_by": "2026-12-10"}, room())
    poor = study({**inside, "budget": "700000", "currency": "USD"}, room())
    tight = study(BUY, room(used_power_kw=150.0))

    assert owned(late)["order"]["binds"] == "date"
    assert owned(late)["order"]["fits_date"] is False
    assert owned(poor)["order"]["binds"] == "budget"
    assert owned(poor)["order"]["fits_budget"] is False
    assert owned(tight)["order"]["binds"] == "power"


def test_own_prices_of_a_room_count_and_are_converted():
    cheap = replace(
        room(), charge=Money(Decimal(70), "CNY"), tariff=Money(Decimal("0.35"), "CNY"), pue=1.1
    )
    usual, own = owned(study(BUY, room())), owned(study(BUY, cheap))

    assert Decimal(own["cost"]) < Decimal(usual["cost"])
    assert Decimal(own["amount"]) == Decimal(usual["amount"])
    assert Decimal(own["searched_cost"]) == Decimal(own["cost"])
    assert not any("not stated" in text(note) for note in own["notes"])


def test_a_room_whose_floor_has_a_limit_needs_the_weight():
    result = study(BUY, room(floor_kg_per_rack=1000.0))

    lost = reasons(result, mode="owned", code="site")[0]
    assert "weight" in text(lost["change"])


def test_a_snapshot_keeps_its_rooms():
    snapshot = replace(
        market(offer()), rooms=(replace(room(), pue=1.2, charge=Money(Decimal(900), "CNY")),)
    )

    assert snapshot_from_json(snapshot.to_json()) == snapshot


def test_a_team_budget_marks_and_does_not_rule_out():
    result = study(BUY, room(), budgets={"purchase": Decimal(100_000), "cloud": Decimal(10**9)})

    plan = owned(result)
    assert any("budget has left" in text(note) for note in plan["notes"])
    assert plan["order"]["fits_budget"] is False
    assert plan["order"]["binds"] == "budget"
    rented = next(p for p in result["plans"] if p["mode"] == "on_demand")
    assert not any("budget has left" in text(note) for note in rented["notes"])


def test_a_server_many_times_too_large_is_named_and_not_proposed():
    few = {**BUY, "accelerators": 1, "gpu_hours": 5_000}
    rack = replace(markets.platform(), server=replace(markets.platform().server, accelerators=72))
    snapshot = market(offer(price="80"), platforms=[rack], slugs=(H100,))
    result = run_study(parse_request(few), None, snapshot, Setting("USD", 1, "US"))

    assert all(p["kind"] != "purchase" for p in result["plans"])
    lost = reasons(result, subject="purchase", code="size")[0]
    assert text(lost["change"]) == "A need of at least 18 cards"


def test_the_stage_of_the_organisation_brings_advice_and_the_request_goes_before():
    none = study(BUY)
    firm = study(BUY, stage="midsize")
    student = study({**BUY, "stage": "student"}, stage="midsize")

    assert none["advice"] == []
    assert any("Rent" in text(one) or "Own" in text(one) for one in firm["advice"])
    assert any("student" in text(one) for one in student["advice"])


def test_idle_owned_cards_are_told_before_buying():
    result = study({**BUY, "stage": "startup"}, stock=[markets.idle(16)])

    assert any("16 owned cards are busy 0 %" in text(one) for one in result["advice"])
    assert any(
        "on bought cards" in text(n) or "take" in text(n)
        for n in owned(result, "colocated")["notes"]
    )


def test_measured_use_of_owned_cards_shares_the_cost_of_new_ones():
    little, much = study(BUY, use=0.2), study(BUY, use=0.9)

    assert Decimal(owned(little, "colocated")["cost"]) > Decimal(owned(much, "colocated")["cost"])


def test_data_that_may_not_leave_the_country_stays_in_rooms_of_the_country():
    bound = {**BUY, "data_residence": "country"}
    away = replace(room(name="Hall SG"), country="SG")
    here = replace(room(name="Hall US"), country="US")

    both = study(bound, away, here)
    assert owned(both)["region"] == "Hall US"
    refused = reasons(both, region="Hall SG", code="residence")[0]
    assert "SG" in text(refused["reason"])
    assert "US" in text(refused["change"])
    assert owned(study(bound, room()))["region"] == "Hall 1"  # where nothing is told: at home
    assert reasons(study(BUY, away, here), code="residence") == []


def test_free_cards_abroad_are_no_reuse_for_data_that_stays():
    bound = {**HOURS, "data_residence": "country"}
    here, away = markets.idle(), replace(markets.idle(), name="Hall SG", country="SG")

    assert {plan["mode"] for plan in study(bound, stock=[here])["plans"]} >= {"reused"}
    found = study(bound, stock=[away])
    assert "reused" not in {plan["mode"] for plan in found["plans"]}
    assert "SG" in text(reasons(found, mode="reused", code="residence")[0]["reason"])


def test_export_control_asks_where_the_room_stands():
    snapshot = replace(
        market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,), notes={H100: "banned"}),
        rooms=(replace(room(name="Hall CN"), country="CN"), room(name="Hall US")),
    )  # fmt: skip
    result = run_study(parse_request(BUY), None, snapshot, Setting("USD", 1, "US"))

    assert owned(result)["region"] == "Hall US"
    assert reasons(result, region="Hall CN")[0]["code"] == "export"


def test_a_country_that_is_not_told_changes_no_frozen_hash():
    told = replace(market(stock=[markets.idle()]), rooms=(replace(room(), country="SG"),))
    untold = replace(told, rooms=(room(),))

    assert snapshot_from_json(told.to_json()) == told
    assert snapshot_from_json(untold.to_json()) == untold
    assert "country" not in untold.to_json()["rooms"][0]
    assert len(untold.to_json()["stock"][0]) == 4
