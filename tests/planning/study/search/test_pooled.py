"""Open requests of other teams carry a purchase: as known use, after idle cards, and never beyond what there is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planning.study.request import parse_request
from planning.study.search.pooled import (
    OthersDemand,
    pooled_from_json,
    pooled_json,
    share_of_rest,
)
from planning.study.search.run import Setting, run_study
from tests.planning.study.search import markets
from tests.planning.study.search.markets import H100, HOURS, market, offer, text

# Eight cards for a tenth of three years
NEED = {**HOURS, "gpu_hours": 21_000, "accelerators": 8, "need_by": "2027-09-01"}
LIFE = 8 * 8760 * 3


def bought(pooled=None, use=None):
    snapshot = replace(market(offer(price="60"), platforms=[markets.platform()], slugs=(H100,)))
    setting = Setting("USD", 1, "US", use, pooled={} if pooled is None else {H100: pooled})
    result = run_study(parse_request(NEED), None, snapshot, setting)
    plan = next(p for p in [*result["plans"], *result["nearest"]] if p["mode"] == "colocated")
    return plan, result


def test_a_purchase_that_this_need_does_not_carry_is_carried_by_the_others():
    alone, before = bought()
    enough = OthersDemand(requests=3, alone=16, together=8, idle=4, card_hours=0.95 * LIFE, teams=3)
    shared, after = bought(enough)

    assert any("nobody measured" in text(doubt) for doubt in alone["doubts"])
    assert shared["doubts"] == []
    told = " ".join(text(note) for note in shared["notes"])
    assert "(3): 8 cards together at the peak, 16 each for itself" in told
    assert "4 free" in told
    assert after["risk"]["planned_utilisation"] == pytest.approx(1.0, abs=0.01)
    assert before["risk"]["pooled_utilisation"] == 0.0
    assert shared["amount"] == alone["amount"]


def test_little_demand_and_more_than_fits_are_counted_as_what_they_are():
    little = OthersDemand(1, 8, 8, 0, 0.1 * LIFE)
    assert any("nobody measured" in text(doubt) for doubt in bought(little)[0]["doubts"])
    assert share_of_rest(little, 8, LIFE) == pytest.approx(0.1)
    assert share_of_rest(replace(little, together=80), 8, LIFE) == pytest.approx(0.01)
    assert share_of_rest(replace(little, card_hours=9 * LIFE), 8, LIFE) == 1.0
    assert share_of_rest(None, 8, LIFE) == share_of_rest(little, 8, 0.0) == 0.0


def test_the_larger_of_measured_use_and_open_requests_counts_once():
    some = OthersDemand(1, 8, 8, 0, 0.3 * LIFE, teams=3)
    busy = bought(some, use=0.9)[1]["risk"]["planned_utilisation"]
    assert busy == bought(None, use=0.9)[1]["risk"]["planned_utilisation"]


def test_a_study_pins_it():
    rows = {H100: OthersDemand(2, 24, 16, 8, 1234.5)}
    assert pooled_from_json(pooled_json(rows)) == rows


@pytest.mark.parametrize("teams", [0, 1, 2])
def test_demand_of_few_teams_counts_and_no_figure_of_it_is_shown(teams):
    """Whoever reads the study: it is stored once, and its readers are the team that asked for it."""
    carried = OthersDemand(4, 16, 8, 4, 0.95 * LIFE, teams)
    plan, result = bought(carried)
    alone, plain = bought()

    assert plan["doubts"] == []
    told = " ".join(text(note) for note in plan["notes"])
    assert "Open requests of others want this accelerator too" in told
    assert "together at the peak" not in told
    assert result["risk"]["pooled_utilisation"] is None
    kept = {k: v for k, v in result["risk"].items() if k != "pooled_utilisation"}
    assert kept == {k: v for k, v in plain["risk"].items() if k != "pooled_utilisation"}

    short = replace(carried, card_hours=0.05 * LIFE)
    doubts = [text(doubt) for doubt in bought(short)[0]["doubts"]]
    assert doubts == [text(doubt) for doubt in alone["doubts"]]
