"""Terms by fiscal quarter, and exact shares."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.money import Money
from core.quarters import Quarter
from planning.terms import days_by_quarter, split


def test_three_years_from_mid_quarter_touch_four_fiscal_years_and_the_leap_day():
    found = days_by_quarter(date(2026, 11, 15), date(2029, 11, 14), Quarter(2027, 1, 10))
    assert found[0] == (Quarter(2027, 1, 10), 47)  # a fiscal year from October: 15 Nov - 31 Dec
    assert found[-1] == (Quarter(2030, 1, 10), 45)
    assert dict(found)[Quarter(2028, 2, 10)] == 91  # January to March 2028, the leap day in it
    assert len({quarter.year for quarter, _days in found}) == 4
    assert sum(days for _quarter, days in found) == 1096


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (date(2026, 9, 30), date(2026, 10, 1), [("2026Q4", 2)]),  # its first day is over
        (date(2026, 12, 31), date(2027, 1, 1), [("2026Q4", 1), ("2027Q1", 1)]),
        (date(2026, 1, 1), date(2026, 3, 31), [("2026Q4", 90)]),  # all of it is over
        (date(2027, 4, 1), date(2027, 6, 30), [("2027Q2", 91)]),
    ],
)
def test_boundaries_and_what_is_over(first, last, expected):
    found = days_by_quarter(first, last, Quarter(2026, 4))
    assert [(str(quarter), days) for quarter, days in found] == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dates(date(2020, 1, 1), date(2035, 1, 1)), st.integers(0, 2000), st.integers(1, 12))
def test_every_day_counts_once_and_quarters_follow_each_other(first, days, start_month):
    last = first + timedelta(days=days)
    current = Quarter.of(date(2026, 6, 1), start_month)
    found = days_by_quarter(first, last, current)
    assert sum(count for _quarter, count in found) == days + 1
    assert all(count > 0 for _quarter, count in found)
    for (one, _), (other, _) in pairwise(found):
        assert one.next() == other
    assert found[0][0] >= current


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.decimals(Decimal("-1e9"), Decimal("1e9"), places=2),
    st.lists(st.integers(0, 400), min_size=1, max_size=20).filter(any),
    st.sampled_from(["CNY", "JPY", "KWD"]),
)
def test_parts_sum_to_the_amount_to_the_last_unit(amount, weights, currency):
    money = Money(amount, currency)
    parts = split(money, weights)
    assert sum(part.amount for part in parts) == money.rounded().amount
    exact = [money.rounded().amount * weight / sum(weights) for weight in weights]
    assert all(abs(part.amount - share) <= 1 for part, share in zip(parts, exact, strict=True))


def test_a_third_of_a_cent_goes_to_the_earlier_part():
    parts = split(Money(Decimal("100.00"), "USD"), [1, 1, 1])
    assert [str(part.amount) for part in parts] == ["33.34", "33.33", "33.33"]
