from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.money import Money
from planning.economics import spot
from planning.economics.spot import SpotRun
from planning.estimators import interruptions
from planning.estimators.types import InfeasibleError


def cny(amount: str) -> Money:
    return Money(Decimal(amount), "CNY")


def test_the_5b_case_72_h_on_demand_85_h_on_spot_and_52_percent_saved():
    """Two reclaims in 85 h, 15 min each to resume; the 13 h between fit a checkpoint each 8 h that takes 30 min."""
    run = SpotRun(
        72, reclaim_mtbf_hours=42.5, checkpoint_hours=0.5, restart_hours=0.25, interval_hours=8
    )
    cost = spot.compare_with_on_demand(
        run, spot_price=cny("68.24"), on_demand_price=cny("166.6667")
    )
    assert cost.times.expected_wall == pytest.approx(85, abs=0.5)
    assert cost.times.reclaims == pytest.approx(2, abs=0.05)
    assert cost.on_demand_cost == cny("12000.00")
    assert float(cost.expected_cost.amount) == pytest.approx(5800, rel=0.01)
    assert cost.saving == pytest.approx(0.52, abs=0.005)
    assert cost.p90_cost.amount > cost.expected_cost.amount


def test_the_5b_case_with_the_best_interval_is_faster_still():
    given_interval = SpotRun(72, 42.5, 0.5, 0.25, interval_hours=8)
    best = SpotRun(72, 42.5, 0.5, 0.25)
    assert best.interval == pytest.approx(interruptions.daly_interval(1800, 42.5 * 3600) / 3600)
    assert spot.closed_form(best).expected_wall < spot.closed_form(given_interval).expected_wall


RUNS = [
    SpotRun(72, 42.5, 0.5, 0.25, interval_hours=8),
    SpotRun(72, 42.5, 0.05, 0.25),
    SpotRun(500, 20.0, 0.1, 0.25, wait_hours=0.5),
    SpotRun(20, 300.0, 0.1, 0.2),
    SpotRun(10, 5.0, 0.5, 0.5, interval_hours=10),
    SpotRun(2000, 8.0, 0.1, 0.25, wait_hours=0.2, interval_hours=1.3),
    SpotRun(72, 20.0, 0.02, 0.25, notice_hours=1 / 30),
    SpotRun(300, 6.0, 0.03, 0.5, wait_hours=1.0, notice_hours=1 / 30, hardware_mtbf_hours=900.0),
    SpotRun(300, 30.0, 0.1, 0.25, hardware_mtbf_hours=400.0),
]


@pytest.mark.parametrize("run", RUNS)
def test_closed_form_and_simulation_agree_within_2_percent(run):
    formula = spot.closed_form(run)
    sample = spot.simulate(run, seed=20261130, paths=20_000)
    for figure in ("expected_wall", "p90_wall", "expected_billed", "p90_billed"):
        assert getattr(formula, figure) == pytest.approx(getattr(sample, figure), rel=0.02), figure
    assert formula.reclaims == pytest.approx(sample.reclaims, rel=0.04)
    assert formula.interval == sample.interval


def test_the_same_seed_gives_the_same_simulation():
    assert spot.simulate(RUNS[0], seed=1, paths=500) == spot.simulate(RUNS[0], seed=1, paths=500)
    assert spot.simulate(RUNS[0], seed=1, paths=500) != spot.simulate(RUNS[0], seed=2, paths=500)


def test_notice_long_enough_for_a_checkpoint_saves_the_lost_work():
    blind = spot.closed_form(SpotRun(72, 10.0, 0.03, 0.25, interval_hours=4))
    warned = spot.closed_form(SpotRun(72, 10.0, 0.03, 0.25, interval_hours=4, notice_hours=0.05))
    assert warned.expected_wall < blind.expected_wall


@given(
    work=st.floats(1, 1000),
    mtbf=st.floats(2, 5000),
    save=st.floats(0.005, 0.5),
    restart=st.floats(0, 1),
)
@settings(max_examples=60)
def test_arrays_give_what_the_estimator_gives(work, mtbf, save, restart):
    vector = spot.expected_hours(
        [work, work], mtbf_hours=mtbf, checkpoint_hours=save, restart_hours=restart
    )
    interval = min(interruptions.daly_interval(save, mtbf), work)
    one = interruptions.expected_wall_time(work, interval, save, mtbf, restart)
    assert vector[0] == vector[1] == pytest.approx(one, rel=1e-9)


@given(mtbf=st.floats(3, 1000), factor=st.floats(1.01, 5))
@settings(max_examples=60)
def test_more_reclaims_never_shorten_a_run(mtbf, factor):
    calm = spot.closed_form(SpotRun(100, mtbf * factor, 0.1, 0.25, interval_hours=3))
    rough = spot.closed_form(SpotRun(100, mtbf, 0.1, 0.25, interval_hours=3))
    assert calm.expected_wall <= rough.expected_wall
    assert calm.p90_wall <= rough.p90_wall * 1.0001
    assert 100 <= rough.expected_billed <= rough.expected_wall


def test_without_reclaims_only_checkpoints_are_added():
    hours = spot.expected_hours(
        10.0, mtbf_hours=np.inf, checkpoint_hours=0.1, restart_hours=1.0, interval_hours=2.5
    )
    assert float(hours) == pytest.approx(10.3)


def test_reclaim_bands_become_a_rate():
    assert float(spot.reclaim_mtbf_hours(0.10, 1)) == pytest.approx(730 / 0.10536, rel=1e-4)
    assert float(spot.reclaim_mtbf_hours(0.10, 8)) == pytest.approx(730 / 0.10536 / 8, rel=1e-4)
    assert np.isinf(spot.reclaim_mtbf_hours(0.0, 8))


@pytest.mark.parametrize(
    ("checkpointable", "online", "word"),
    [(False, False, "checkpoints"), (True, True, "online"), (False, True, "online")],
)
def test_spot_is_refused_with_the_reason(checkpointable, online, word):
    with pytest.raises(InputError) as error:
        spot.require_eligible(checkpointable=checkpointable, online=online)
    assert word in str(error.value)
    assert error.value.field == "payment_mode"


def test_work_that_may_not_be_interrupted_is_told_so_and_not_that_it_lacks_checkpoints():
    reason = str(spot.refusal(checkpointable=True, online=False, may_stop=False))
    assert "may not be interrupted" in reason
    assert "checkpoint" not in reason


def test_interruptible_work_with_checkpoints_is_not_refused():
    assert spot.refusal(checkpointable=True, online=False) is None


def test_a_run_that_cannot_finish_says_so():
    with pytest.raises(InfeasibleError, match="cannot finish"):
        spot.closed_form(SpotRun(100, 1.0, 0.1, 0.25, interval_hours=50))
    with pytest.raises(InfeasibleError, match="cannot finish"):
        spot.closed_form(SpotRun(100, 0.2, 0.02, 0.3, notice_hours=0.02))
    impossible = spot.expected_hours(
        100.0, mtbf_hours=1.0, checkpoint_hours=0.1, restart_hours=0.2, interval_hours=50.0
    )
    assert np.isinf(impossible)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"work_hours": 0}, "work_hours"),
        ({"reclaim_mtbf_hours": -1}, "reclaim_mtbf_hours"),
        ({"restart_hours": float("nan")}, "restart_hours"),
        ({"interval_hours": 0}, "interval_hours"),
    ],
)
def test_bad_runs_are_refused(change, field):
    good = {
        "work_hours": 10,
        "reclaim_mtbf_hours": 10,
        "checkpoint_hours": 0.1,
        "restart_hours": 0.1,
    }
    with pytest.raises(InputError) as error:
        SpotRun(**{**good, **change})
    assert error.value.field == field
