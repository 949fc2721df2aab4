"""Cards by day, as plain values: every day counts once, and what is missing is named with its dates."""

from __future__ import annotations

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from planning.capacity import (
    APPROVED,
    ON_ORDER,
    OWNED,
    REQUESTED,
    RESERVED,
    RUNNING,
    Demand,
    Supply,
    daily,
    month_starts,
    pool,
)

DAY = date(2026, 12, 10)
days = st.integers(-40, 400).map(lambda n: DAY + timedelta(days=n))


@given(st.lists(st.tuples(days, st.none() | days, st.integers(1, 9)), max_size=6))
def test_the_sum_of_each_day_is_that_of_the_spans_that_hold_it(spans):
    found = daily(spans, DAY, 100)
    for n in range(100):
        day = DAY + timedelta(days=n)
        assert found[n] == sum(
            value for first, last, value in spans if first <= day and (last is None or day <= last)
        )


def test_months_follow_the_calendar_over_a_leap_day():
    assert month_starts(date(2027, 12, 31), 3) == [
        date(2027, 12, 1), date(2028, 1, 1), date(2028, 2, 1), date(2028, 3, 1),
    ]  # fmt: skip


def made(supply, demand, **more):
    return pool("h100", supply, demand, first=DAY, months=4, **{"lead_days": 60, **more})


def test_supply_is_the_least_of_the_month_and_keeps_a_buffer_back():
    found = made(
        [
            Supply("h100", 100, OWNED, DAY),
            Supply("h100", 20, ON_ORDER, date(2027, 1, 16)),
            Supply("h100", 16, RESERVED, DAY, date(2027, 2, 10), "R-0001"),
            Supply("h100", 8, ON_ORDER, None),
        ],
        [],
    )
    december, january, february, march = found.months
    assert (december.owned, december.reserved, december.on_order) == (100, 16, 0)
    assert (december.buffer, december.usable) == (6, 110)
    assert january.on_order == 0  # not there on every day
    assert (february.reserved, february.on_order, february.usable) == (0, 20, 114)
    assert march.usable == 114
    assert [row.label for row in found.expiring] == ["R-0001"]
    assert found.undated == 8


def test_peaks_are_told_beside_means_and_requests_weigh_by_their_probability():
    found = made(
        [Supply("h100", 40, OWNED, DAY)],
        [
            Demand("h100", 31, RUNNING, DAY, None),
            Demand("h100", 8, APPROVED, date(2027, 1, 1), date(2027, 1, 10)),
            Demand("h100", 10, REQUESTED, date(2027, 2, 1), None, 0.5),
        ],
    )
    january = found.months[1]
    assert january.mean == 31 + 8 * 10 / 31
    assert (january.peak, january.sure_peak, january.short) == (39, 39, 1)
    assert found.months[2].requested == 5


def test_each_shortage_is_a_window_with_its_worst_day_and_the_last_day_to_order():
    found = made(
        [Supply("h100", 40, OWNED, DAY)],
        [
            Demand("h100", 40, APPROVED, date(2027, 1, 5), date(2027, 1, 9)),
            Demand("h100", 5, APPROVED, date(2027, 1, 7), date(2027, 1, 8)),
            Demand("h100", 100, REQUESTED, date(2027, 2, 1), date(2027, 2, 3), 0.5),
        ],
    )
    first, second = found.windows
    assert (first.first, first.last, first.missing, first.sure) == (
        date(2027, 1, 5), date(2027, 1, 9), 7, True,
    )  # fmt: skip
    assert first.order_by == date(2026, 11, 6)
    assert (second.missing, second.sure) == (12, False)
    assert (
        made([], [Demand("h100", 1, RUNNING, DAY, None)], lead_days=None).windows[0].order_by
        is None
    )


def test_enough_is_no_window():
    assert (
        made([Supply("h100", 20, OWNED, DAY)], [Demand("h100", 19, RUNNING, DAY, None)]).windows
        == ()
    )
