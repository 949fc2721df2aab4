"""Cost defaults that the organisation corrected reach the study, are told, and leave other studies alone."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from planning.economics import defaults
from planning.study.search.compare import market_changes, outdates
from planning.study.search.snapshot import snapshot_from_json
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, HOURS, market, offer

BUY = {**HOURS, "gpu_hours": 160_000, "accelerators": 32, "need_by": "2027-09-01"}
PUE = replace(
    defaults.known("pue.colocation"), value=1.2, low=1.1, source="our meter", as_of="2026-10-01"
)
RESIDUAL = replace(defaults.known_curve("residual.h100"), value=(0.5, 0.3, 0.1, 0.05, 0.02))


def bought(*costs):
    snapshot = replace(
        market(offer(price="80"), platforms=[markets.platform()], slugs=(H100,)), costs=costs
    )
    result = markets.study(BUY, snapshot)
    plan = next(p for p in [*result["plans"], *result["nearest"]] if p["mode"] == "colocated")
    return plan, result


def test_a_corrected_pue_and_residual_change_what_owning_costs_and_are_told():
    before, usual = bought()
    better, corrected = bought(PUE)
    worse, _both = bought(PUE, RESIDUAL)

    assert Decimal(better["cost"]) < Decimal(before["cost"]) < Decimal(worse["cost"])
    assert better["amount"] == before["amount"]
    told = corrected["costs"][0]
    assert (told["name"], told["value"], told["shipped"]) == ("pue.colocation", 1.2, 1.45)
    assert (told["source"], usual["costs"]) == ("our meter", [])
    assert usual["constants"]["economics"] == defaults.VERSION
    assert corrected["constants"]["economics"].startswith(f"{defaults.VERSION}+1.")
    assert bought()[0]["cost"] == before["cost"]  # nothing of it is left behind


def test_the_snapshot_keeps_them_and_a_correction_outdates_a_study():
    plain = market(offer())
    changed = replace(plain, costs=(PUE, RESIDUAL))

    assert snapshot_from_json(changed.to_json()) == changed
    moved = market_changes(plain.to_json(), changed.to_json())
    assert moved["costs_changed"] == 2
    assert outdates(moved, "USD")
    assert not outdates(market_changes(changed.to_json(), changed.to_json()), "USD")


def test_a_correction_holds_within_and_an_unknown_name_changes_nothing():
    with defaults.corrected([PUE, replace(PUE, name="no.such")]):
        assert defaults.value("pue.colocation") == 1.2
        assert defaults.curve("residual.h100") == defaults.CURVES["residual.h100"].value
    assert defaults.value("pue.colocation") == 1.45
    assert defaults.stamp() == defaults.VERSION
