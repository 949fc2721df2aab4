"""Intervals against published tables, and what few units can show."""

import pytest

from procurement.failure_rates import rate_interval, share_interval, turn_around


def test_shares_by_wilson():
    found = share_interval(1, 8)
    assert (found.value, found.low, found.high) == pytest.approx((0.125, 0.0224, 0.4709), abs=5e-4)
    assert share_interval(0, 10).low == 0
    assert share_interval(0, 10).high == pytest.approx(0.2775, abs=5e-4)
    assert share_interval(0, 0) is None


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (0, 0, 3.689),
        (1, 0.0253, 5.572),
        (5, 1.623, 11.668),
        (10, 4.795, 18.390),
        (100, 81.36, 121.63),
    ],
)
def test_counts_by_garwood(count, low, high):
    found = rate_interval(count, 1.0)
    assert (found.low, found.high) == pytest.approx((low, high), rel=2e-3, abs=1e-3)


def test_no_time_in_service_shows_nothing():
    assert rate_interval(0, 0) is None
    assert rate_interval(3, 10).holds(0.1)
    assert not rate_interval(0, 60).holds(0.1)  # 60 unit-years without a failure: below one in ten


def test_turn_around_keeps_the_open_ones_apart():
    found = turn_around([10, 20, 60], [5])
    assert (found.resolved, found.median_days, found.slowest_days) == (3, 20, 60)
    assert (found.open, found.longest_open_days) == (1, 5)
    assert turn_around([], []).median_days is None
