"""Checkpoint intervals and expected wall time against published formulas, simulation and laws."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from planning.estimators.interruptions import (
    DAY,
    checkpoint_seconds,
    daly_interval,
    expected_wall_time,
    job_mtbf,
    node_mtbf,
    plan_checkpoints,
    waste_share,
    young_interval,
)
from planning.estimators.types import InfeasibleError


def test_published_failure_rates_give_days_between_failures():
    # 2,048 nodes at 3.8 per 1,000 node-days stop about every three hours, as the Llama 3 405B run did
    # (419 unplanned stops in 54 days on 16,384 GPUs).
    assert job_mtbf(2048, node_mtbf(3.8)) / 3600 == pytest.approx(54 * 24 / 419, rel=0.01)


def test_young_interval_is_the_square_root_of_twice_cost_times_mtbf():
    assert young_interval(300, 6 * 3600) == pytest.approx(math.sqrt(2 * 300 * 21_600))


def test_daly_is_shorter_than_young_by_about_the_checkpoint():
    young, daly = young_interval(60, DAY), daly_interval(60, DAY)
    assert young - 60 < daly < young


def test_daly_gives_the_mtbf_once_a_checkpoint_takes_twice_as_long():
    assert daly_interval(200, 100) == 100


@given(checkpoint=st.floats(10, 300), mtbf=st.floats(3 * 3600, 30 * DAY))
def test_daly_interval_is_near_the_minimum_of_the_exact_expectation(checkpoint, mtbf):
    work = 4000 * daly_interval(checkpoint, mtbf)
    best = daly_interval(checkpoint, mtbf)
    at_best = expected_wall_time(work, best, checkpoint, mtbf, 600)
    for factor in (0.5, 2.0):
        assert at_best <= expected_wall_time(work, best * factor, checkpoint, mtbf, 600)


def test_expected_wall_time_agrees_with_a_simulation():
    rng = random.Random(7)
    work, interval, checkpoint, mtbf, restart = 100_000.0, 5_000.0, 300.0, 20_000.0, 900.0
    total, runs = 0.0, 4000
    for _ in range(runs):
        done, clock = 0.0, 0.0
        while done < work:
            step = min(interval, work - done)
            need = step + (checkpoint if done + step < work else 0.0)
            failure = rng.expovariate(1 / mtbf)
            if failure < need:
                clock += failure + restart
            else:
                clock += need
                done += step
        total += clock
    expected = expected_wall_time(work, interval, checkpoint, mtbf, restart)
    assert total / runs == pytest.approx(expected, rel=0.02)


@given(work=st.floats(1e3, 1e6), mtbf=st.floats(1e4, 1e7), restart=st.floats(0, 1e4))
def test_interruptions_never_shorten_a_job(work, mtbf, restart):
    plan = plan_checkpoints(
        work_s=work, nodes=1, checkpoint_s=30, restart_s=restart, node_mtbf_s=mtbf
    )
    assert plan.wall >= work * (1 - 1e-9)
    assert plan.overhead == pytest.approx(plan.wall / work)


@given(nodes=st.integers(1, 64))
def test_more_nodes_are_interrupted_more_often(nodes):
    one = plan_checkpoints(work_s=30 * DAY, nodes=nodes, checkpoint_s=60)
    two = plan_checkpoints(work_s=30 * DAY, nodes=2 * nodes, checkpoint_s=60)
    assert two.mtbf == pytest.approx(one.mtbf / 2)
    assert two.wall > one.wall


def test_small_clusters_lose_under_one_percent_to_hardware():
    plan = plan_checkpoints(work_s=30 * DAY, nodes=60, checkpoint_s=30, restart_s=600)
    assert plan.overhead < 1.05
    assert plan_checkpoints(work_s=30 * DAY, nodes=4, checkpoint_s=30).overhead < 1.01


def test_an_announced_reclaim_loses_no_work():
    common = dict(work_s=3 * DAY, nodes=1, checkpoint_s=60, reclaims_per_node_second=6 / DAY)
    blind = plan_checkpoints(**common)
    announced = plan_checkpoints(**common, reclaim_notice_s=120)
    assert announced.wall < blind.wall
    assert announced.interval > blind.interval
    assert announced.interruptions == pytest.approx(announced.wall / announced.mtbf)


def test_a_job_that_is_stopped_faster_than_it_recovers_never_finishes():
    with pytest.raises(InfeasibleError, match="cannot finish"):
        plan_checkpoints(
            work_s=DAY,
            nodes=64,
            checkpoint_s=60,
            reclaims_per_node_second=1 / 3600,
            reclaim_notice_s=120,
        )
    with pytest.raises(InfeasibleError, match="cannot finish"):
        expected_wall_time(DAY, DAY, 60, 60, 600)


def test_waste_is_the_sum_of_its_three_causes():
    assert waste_share(3600, 60, 36_000, 600) == pytest.approx(60 / 3600 + 0.05 + 600 / 36_000)


def test_checkpoint_time_follows_its_bytes():
    assert checkpoint_seconds(7e9, 2e9) == pytest.approx(49.0)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: young_interval(-1, 10), "checkpoint_s"),
        (lambda: daly_interval(1, 0), "mtbf_s"),
        (lambda: job_mtbf(0, 10), "nodes"),
        (lambda: node_mtbf(float("nan")), "failures_per_1000_days"),
        (lambda: expected_wall_time(1, float("inf"), 1, 1, 1), "interval_s"),
    ],
)
def test_values_out_of_range_name_their_field(call, field):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == field
