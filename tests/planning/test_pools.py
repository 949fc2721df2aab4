"""Forecast and recommendations: back-tested, honest about what is not known, one card promised once."""

import numpy as np
import pytest

from planning.calibration.forecast import LEAST, forecast
from planning.calibration.pools import Action, PoolState, advise


def busy(days: int, *, level=50.0, slope=0.0, season=10.0, noise=2.0, seed=1):
    random = np.random.default_rng(seed)
    at = np.arange(days)
    return level + slope * at + season * ((at % 7) < 5) + random.normal(0, noise, days)


def test_the_week_and_the_trend_are_carried_on():
    found = forecast(busy(120, slope=0.2), 28)
    truth = busy(148, slope=0.2, noise=0)[120:]
    assert found.mean == pytest.approx(truth.mean(), rel=0.05)
    assert np.corrcoef(found.days, truth)[0, 1] > 0.9
    assert 0 < found.error < 0.1
    assert found.tests >= 10


def test_intervals_of_the_mean_keep_their_word_on_unseen_quarters():
    inside = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        walk = np.cumsum(random.normal(0, 0.4, 271))
        series = np.maximum(busy(271, seed=seed) + walk, 0)
        found = forecast(series[:180], 91)
        inside.append(found.low <= series[180:].mean() <= found.high)
    assert 0.65 <= np.mean(inside) <= 0.97


def test_gaps_are_left_out_and_too_few_days_forecast_nothing():
    series = busy(90)
    holes = series.copy()
    holes[10:30] = np.nan
    assert forecast(holes, 28).mean == pytest.approx(forecast(series, 28).mean, rel=0.05)
    assert forecast(series[: LEAST - 1], 28) is None
    assert forecast(np.full(60, np.nan), 28) is None


def test_a_noisy_flat_series_grows_no_trend():
    means = [forecast(busy(60, noise=8, seed=seed), 91).mean for seed in range(30)]
    assert np.mean(means) == pytest.approx(50 + 10 * 5 / 7, rel=0.05)


def pool(key="a", *, cards=64, use=0.6, busy=40.0, spread=4.0, ownership="owned", **more):
    return PoolState(key, more.pop("accelerator", "h100"), ownership, cards, use, busy_low=busy - spread, busy=busy,
                     busy_high=busy + spread, **{"queue": 600.0, "price_hour": 2.0, **more})  # fmt: skip


@pytest.mark.parametrize(
    ("state", "action", "cards"),
    [
        (pool(), Action.HOLD, 0),
        (pool(use=0.1, busy=5, spread=1, queue=2 * 86_400), Action.FIX, 0),
        (pool(use=0.1, busy=5, spread=1), Action.SHRINK, 56),
        (pool(use=0.95, busy=70, spread=4), Action.GROW, 24),
        (pool(use=0.95, busy=70, spread=4, on_order=32), Action.HOLD, 0),
        (pool(use=0.9, busy=55, spread=8, queue=2 * 86_400), Action.GROW, 5),
        (pool(use=0.95, busy=70, spread=4, sm=0.2), Action.FIX, 0),
        (pool(ownership="reserved"), Action.RENEW, 64),
        (pool(ownership="reserved", use=0.2, busy=10, spread=2), Action.DROP, 49),
    ],
)
def test_each_pool_gets_the_methods_advice(state, action, cards):
    (advice,) = advise([state])
    assert (advice.action, advice.cards) == (action, cards)
    assert advice.lines


def test_cards_are_moved_before_they_are_bought_and_promised_once():
    short = [pool("a", use=0.95, busy=70, spread=2), pool("b", use=0.95, busy=70, spread=2)]
    idle = pool("c", cards=64, use=0.1, busy=20, spread=4)
    first, second, third = advise([*short, idle])
    assert (first.action, first.to, first.cards) == (Action.MOVE, "c", 24)
    assert second.action is Action.GROW  # ten are left, it needs twenty-four
    assert third.cards == 10 if third.action is Action.SHRINK else third.action is Action.HOLD
    (lone, _other) = advise([short[0], pool("d", accelerator="a100", use=0.1, busy=2, spread=1)])
    assert lone.action is Action.GROW


def test_waiting_costs_the_bridge_on_demand_and_is_unknown_without_a_price():
    (grow,) = advise([pool(use=0.95, busy=70, spread=2)])
    assert grow.waiting == pytest.approx(24 * 2190 * 2.0)
    (unpriced,) = advise([pool(use=0.95, busy=70, spread=2, price_hour=None)])
    assert unpriced.waiting is None
    assert "not known" in unpriced.lines[-1].template


def test_what_is_not_known_is_not_guessed():
    nobody, few = advise(
        [PoolState("a", "h100", "owned", 8, None), PoolState("b", "h100", "owned", 8, 0.5)]
    )
    assert nobody.action is few.action is Action.UNKNOWN
    assert nobody.lines != few.lines
