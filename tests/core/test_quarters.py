from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from core.quarters import Quarter, months_later


@pytest.mark.parametrize(
    ("day", "start_month", "expected"),
    [
        (date(2026, 10, 1), 10, "2027Q1"),
        (date(2026, 9, 30), 10, "2026Q4"),
        (date(2026, 12, 31), 1, "2026Q4"),
        (date(2024, 2, 29), 4, "2024Q4"),
        (date(2026, 4, 1), 4, "2027Q1"),
    ],
)
def test_fiscal_year_is_named_after_the_year_it_ends_in(day, start_month, expected):
    assert str(Quarter.of(day, start_month)) == expected


def test_local_midnight_decides_not_utc():
    shanghai = ZoneInfo("Asia/Shanghai")
    assert str(Quarter.at(datetime(2026, 9, 30, 16, 30, tzinfo=UTC), shanghai, 10)) == "2027Q1"
    assert str(Quarter.at(datetime(2026, 9, 30, 15, 59, tzinfo=UTC), shanghai, 10)) == "2026Q4"


@pytest.mark.parametrize("start_month", range(1, 13))
def test_quarters_tile_the_calendar(start_month):
    quarter = Quarter(2026, 1, start_month)
    for _ in range(9):
        assert quarter.end == quarter.next().start
        assert Quarter.of(quarter.start, start_month) == quarter
        assert quarter.next().previous() == quarter
        quarter = quarter.next()


@pytest.mark.parametrize(
    ("day", "months", "expected"),
    [
        (date(2026, 1, 31), 1, date(2026, 2, 28)),
        (date(2027, 11, 30), 3, date(2028, 2, 29)),
        (date(2026, 12, 15), 1, date(2027, 1, 15)),
        (date(2026, 1, 15), -3, date(2025, 10, 15)),
        (date(2026, 5, 31), 0, date(2026, 5, 31)),
    ],
)
def test_months_later_keeps_the_day_or_takes_the_last(day, months, expected):
    assert months_later(day, months) == expected
