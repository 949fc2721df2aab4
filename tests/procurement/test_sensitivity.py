"""How far a weight may move before another quote wins, and what share of all weightings each wins."""

import pytest

from procurement.sensitivity import sensitivity, weightings


def ranked(scores, weights):
    totals = [sum(row[name] * weights.get(name, 0) for name in row) for row in scores]
    return max(range(len(scores)), key=lambda i: totals[i])


def test_the_bounds_are_where_the_winner_changes():
    scores = [{"price": 100, "warranty": 40}, {"price": 80, "warranty": 100}]
    found = sensitivity(scores, {"price": 80, "warranty": 20}, 0)
    price, warranty = found.ranges
    # 100p + 40(1-p) >= 80p + 100(1-p)  ⇔  p >= 0.75
    assert (price.low, price.high) == pytest.approx((75, 100))
    assert (warranty.low, warranty.high) == pytest.approx((0, 25))
    assert not price.is_free
    for weight in (74, 76):
        assert ranked(scores, {"price": weight, "warranty": 100 - weight}) == (weight < 75)


def test_shares_of_weightings_are_counted_and_ties_are_shared():
    scores = [{"price": 100, "warranty": 40}, {"price": 80, "warranty": 100}]
    found = sensitivity(scores, {"price": 80, "warranty": 20}, 0)
    # p = 75 ties, 80 to 100 are won: 5.5 of the 21 weightings in steps of 5.
    assert found.weightings == 21
    assert found.wins == pytest.approx((5.5 / 21, 15.5 / 21))


def test_others_keep_their_proportions():
    scores = [{"a": 90, "b": 50, "c": 60}, {"a": 60, "b": 80, "c": 70}, {"a": 20, "b": 95, "c": 50}]
    weights = {"a": 60, "b": 30, "c": 10}
    found = sensitivity(scores, weights, 0)
    for row in found.ranges:
        rest = {name: weight for name, weight in weights.items() if name != row.criterion}
        for moved in (row.low - 1, row.low + 1, row.high - 1, row.high + 1):
            if not 0 <= moved <= 100:
                continue
            scale = (100 - moved) / sum(rest.values())
            tried = {name: weight * scale for name, weight in rest.items()} | {row.criterion: moved}
            assert (ranked(scores, tried) == 0) == (row.low <= moved <= row.high)


def test_a_winner_on_every_criterion_stays_whatever_the_weights():
    scores = [{"a": 100, "b": 100, "c": 100}, {"a": 50, "b": 90, "c": 100}]
    found = sensitivity(scores, {"a": 34, "b": 33, "c": 33}, 0)
    assert all(row.is_free for row in found.ranges)
    # All weight on c is a tie.
    assert found.wins[0] == pytest.approx(1 - 0.5 / found.weightings)


def test_one_criterion_with_all_the_weight_shares_the_rest_evenly():
    scores = [{"a": 100, "b": 0, "c": 50}, {"a": 50, "b": 100, "c": 50}]
    (row,) = sensitivity(scores, {"a": 100}, 0).ranges
    assert (row.low, row.high) == pytest.approx((50, 100))


def test_with_one_quote_nothing_can_change():
    assert sensitivity([{"a": 1, "b": 2}], {"a": 100}, 0) is None
    assert sensitivity([], {"a": 100}, 0) is None


def test_every_weighting_is_tried_once_and_adds_up():
    rows = weightings(4, 5)
    assert rows.shape == (1771, 4)
    assert (rows.sum(axis=1) == 100).all()
    assert len({tuple(row) for row in rows}) == 1771
