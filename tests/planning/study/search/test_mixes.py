"""A service paid as a mix, and the shape of its load."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from planning.economics import load_shape
from planning.economics.types import PaymentMode
from tests.planning.study.search import markets
from tests.planning.study.search.markets import HOURS, SERVE, TUNE, market, offer, plan, text

BUSY = {
    **SERVE, "model": "llama-3.1-70b", "requests_per_day": "2M", "peak_factor": 2.5, "load_shape": "office",
}  # fmt: skip


def mixes(result):
    return [p for p in result["plans"] if p["mode"] == "mixed"]


def test_a_swinging_service_is_cheapest_as_a_mix_and_the_saving_is_told():
    result = markets.study(BUSY, market(offer(price="24")))

    best = plan(result, "cheapest")
    assert best["mode"] == "mixed"
    funnel = best["funnel"]
    assert 0 < funnel["reserved_cards"] < funnel["peak_cards"]
    pure = {row["name"]: row for row in funnel["pure"]}
    for name in ("on_demand", "on_demand_fixed", "reserved"):
        paid = Decimal(pure[name]["cost"])
        assert pure[name]["saving"] == pytest.approx(float(1 - Decimal(best["cost"]) / paid))
        assert paid >= Decimal(best["cost"])
    alone = [p for p in result["plans"] if p["mode"] in ("on_demand", "reserved_1y", "reserved_3y")]
    assert alone
    assert all(Decimal(p["cost"]) > Decimal(best["cost"]) for p in alone)
    assert pure["spot"]["refused"] is not None


def test_the_lines_of_a_mix_add_up_to_its_cost():
    result = markets.study({**BUSY, "currency": "CNY"}, currency="CNY")

    for found in mixes(result):
        assert sum(Decimal(line["amount"]) for line in found["lines"]) == Decimal(found["cost"])
        assert Decimal(found["searched_cost"]) == Decimal(found["cost"])
    assert mixes(result)


def test_reserving_too_much_is_regretted_the_more_the_less_is_used():
    rows = markets.study(BUSY, market(offer(price="24")))["plans"]
    risk = next(p for p in rows if p["mode"] == "mixed")["funnel"]["over_reservation"]

    falling = [row for row in risk if row["demand_change"] <= 0]
    regrets = [Decimal(row["regret"]) for row in falling]
    assert regrets[0] == 0
    assert regrets == sorted(regrets)
    idle = [row["idle_share"] for row in falling]
    assert idle == sorted(idle)


def test_what_may_be_stopped_goes_to_spot():
    spot = offer(price="8", mode=PaymentMode.SPOT)
    without = markets.study(BUSY, market(offer(price="24"), spot))
    partly = markets.study({**BUSY, "stoppable_share": "60 %"}, market(offer(price="24"), spot))

    assert all(p["funnel"]["spot_card_hours"] == 0 for p in mixes(without))
    found = mixes(partly)[0]
    assert found["funnel"]["spot_card_hours"] > 0
    assert Decimal(found["cost"]) < Decimal(mixes(without)[0]["cost"])
    assert any("Spot carries" in text(note) for note in found["notes"])


def test_a_flat_load_is_no_mix():
    result = markets.study({**BUSY, "load_shape": "flat"}, market(offer(price="24")))

    assert mixes(result) == []


def test_a_load_that_was_not_told_is_assumed_and_said():
    result = markets.study({k: v for k, v in BUSY.items() if k != "load_shape"}, market(offer()))

    assert any("office hours are taken" in text(note) for note in mixes(result)[0]["notes"])


@pytest.mark.parametrize("data", [TUNE, HOURS])
def test_only_a_service_is_mixed(data):
    assert mixes(markets.study(data, market(offer()))) == []


@given(
    st.sampled_from(["office", "evening"]), st.floats(1.0, 6.0), st.floats(-0.1, 0.2),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_busiest_hour_is_as_busy_as_told(shape, peak, growth):
    week = load_shape.week(shape, peak)
    assert week.shape == (168,)
    assert week.max() == pytest.approx(1)
    assert 1 / week.mean() == pytest.approx(peak, rel=1e-6)

    year = load_shape.course(shape, peak, 8760, growth)
    assert year.max() == 1
    assert (year > 0).all()
    grown = np.argmax(year) > 8760 / 2
    assert grown == (growth > 0) or growth == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("load_shape", lambda: load_shape.week("weekly", 2)),
        ("peak_factor", lambda: load_shape.week("office", 0.5)),
        ("growth_per_month", lambda: load_shape.course("office", 2, 10, -1)),
        ("hours", lambda: load_shape.course("office", 2, 0)),
    ],
)
def test_a_load_that_cannot_be_is_refused_at_its_field(field, call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == field


def test_months_of_little_load_cost_less_and_begin_with_the_month_of_the_start():
    quiet = [0.3] * 6 + [1.0] * 6

    def cost(start, days, **told):
        asked = {**BUSY, "start": start, "duration_days": days, **told}
        return Decimal(mixes(markets.study(asked, market(offer(price="24"))))[0]["cost"])

    year, half = cost("2027-01-01", 365), cost("2027-07-01", 180)
    assert cost("2027-01-01", 365, load_months=quiet) < year
    assert cost("2027-07-01", 180, load_months=quiet) == half  # all of them busy months
    assert cost("2027-04-01", 180, load_months=quiet) < half
