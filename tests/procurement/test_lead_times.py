"""Quantiles of slips, and what they do to a promised day."""

from datetime import date, timedelta

import pytest

from procurement.lead_times import MIN_POINTS, Slips, forecast

DUE, TODAY = date(2027, 3, 1), date(2027, 1, 1)


@pytest.mark.parametrize(("share", "days"), [(0.5, 2), (0.9, 30), (0.8, 5), (1.0, 30), (0.01, -3)])
def test_quantiles_are_days_that_occurred(share, days):
    assert Slips((5, -3, 30, 0, 2)).at(share) == days


def test_the_nearest_basis_with_enough_points_counts():
    near, wide = Slips((9,) * (MIN_POINTS - 1)), Slips((1,) * MIN_POINTS)
    found = forecast(DUE, [("vendor_model", near), ("vendor", wide)], TODAY)
    assert (found.basis, found.likely) == ("vendor", DUE + timedelta(days=1))


def test_with_too_few_points_nothing_is_foretold_but_the_promise():
    found = forecast(DUE, [("vendor", Slips((9, 9)))], TODAY)
    assert (found.basis, found.likely, found.cautious, found.slips.points) == (
        "none",
        None,
        None,
        2,
    )
    assert found.late_days(DUE - timedelta(days=1)) == (1, None, None)


def test_early_vendors_are_foretold_early_but_never_before_tomorrow():
    early = [("vendor", Slips((-10,) * 5))]
    assert forecast(DUE, early, TODAY).likely == DUE - timedelta(days=10)
    assert forecast(DUE, early, DUE).likely == DUE + timedelta(days=1)


def test_the_cautious_day_is_never_before_the_likely_one():
    found = forecast(DUE, [("vendor", Slips((0, 0, 0, 0, 40)))], DUE + timedelta(days=20))
    assert found.likely <= found.cautious
    assert found.late_days(DUE) == (0, 21, 40)
