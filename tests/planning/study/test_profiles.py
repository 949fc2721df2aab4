"""A service's load over week and year, as people and programs write it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import InputError
from planning.economics import load_shape
from planning.study import profiles, workloads
from planning.study.load_series import course, is_week, week_series

DAY = [0.0] * 8 + [10.0] * 12 + [2.0] * 4
BASE = {"model": "llama-3.1-8b", "requests_per_day": 1e6, "input_tokens": 100, "output_tokens": 100}


def week(value):
    return profiles.read_week("load_series", value)


def rows(pairs) -> str:
    return "day,hour,load\n" + "\n".join(f"{d},{h},{load}" for d, h, load in pairs)


ALL = [(day, hour, day * 100 + hour) for day in range(1, 8) for hour in range(24)]


def test_every_way_of_writing_reads_the_same():
    full = DAY * 7
    text = "\n".join(" ".join(map(str, DAY)) for _ in range(7))
    for value in (
        DAY, full, " ".join(map(str, DAY)), text, ",".join(map(str, full)), text.replace(" ", ";"),
        "hour;load\n" + "\n".join(f"{hour}:00;{load}" for hour, load in enumerate(DAY)),
        "\ufeff" + text.replace(" ", "\t").replace("\n", "\r\n"),
        "\n".join(f"{day},{','.join(map(str, DAY))}" for day in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "周日")),
    ):  # fmt: skip
        assert week(value) == full
    assert week(profiles.as_text(full)) == full


def test_rows_in_any_order_land_at_their_hour():
    names = dict(enumerate(("Monday", "周二", "wed", "Thu", "星期五", "Sat", "Sun"), start=1))
    found = week(rows((names[day], f"{hour}:00", load) for day, hour, load in reversed(ALL)))
    assert found == [load for _day, _hour, load in ALL]
    assert profiles.busiest(found) == (6, 23)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (rows([*ALL[:5], (1, 5, "many"), *ALL[6:]]), "row 7: many"),
        (rows([*ALL[:5], (1, 5, -1), *ALL[6:]]), "row 7: -1"),
        (rows([*ALL[:5], (1, 24, 3), *ALL[6:]]), "row 7: there is no 1, 24"),
        (rows([*ALL[:5], ("Someday", 5, 3), *ALL[6:]]), "row 7: there is no Someday"),
        (rows([*ALL, (2, 0, 3)]), "row 170: 2, 0 stands there twice"),
        (rows(ALL[:-2]), "2 rows are missing, the first of them 7, 22"),
        (rows(ALL).replace("1,3,103", "1,3"), "row 5 has 2 columns"),
        ([1.0] * 23, "has 23 numbers; it takes 24, 168"),
        ([0.0] * 24, "0 everywhere"),
        ([1.0] * 23 + [float("nan")], "row 24: nan"),
        ([1.0] * 23 + [True], "row 24: True"),
        ({"a": 1}, "list of numbers or a table"),
        ("", "has 0 numbers"),
        ("1 " * 20_000, "longer than 20000"),
    ],
)
def test_errors_name_the_row_or_what_is_missing(value, part):
    with pytest.raises(InputError) as refused:
        week(value)
    assert part in str(refused.value)
    assert refused.value.field == "load_series"


def test_months_are_twelve():
    numbers = [float(n) for n in range(1, 13)]
    assert profiles.read_months("load_months", numbers) == numbers
    table = "month,load\n" + "\n".join(f"{n},{n}" for n in range(1, 13))
    assert profiles.read_months("load_months", table) == numbers
    with pytest.raises(InputError, match="row 3: there is no 13"):
        profiles.read_months("load_months", table.replace("2,2", "13,2", 1))
    with pytest.raises(InputError, match="takes 12"):
        profiles.read_months("load_months", [1.0] * 11)


def test_a_told_week_gives_the_peak_that_the_estimate_takes():
    clean, errors = workloads.problems("online_inference", {**BASE, "load_series": DAY})
    assert not errors
    assert is_week(clean["load_series"])
    assert clean["peak_factor"] == pytest.approx(10 * 24 / (120 + 8), abs=0.01)
    assert workloads.normalise("online_inference", clean) == clean  # as a draft is saved again
    _clean, errors = workloads.problems(
        "online_inference", {**BASE, "load_series": DAY, "peak_factor": 1.5}
    )
    assert [error.field for error in errors] == ["peak_factor"]
    lone = [0.0] * 167 + [1.0]
    _clean, errors = workloads.problems("online_inference", {**BASE, "load_series": lone})
    assert [error.field for error in errors] == ["load_series"]


def test_the_course_of_the_load_is_the_one_that_was_told():
    found = course(week_series(DAY * 7), 400)
    assert found[:24].tolist() == [load / 10 for load in DAY]
    assert found[168:192].tolist() == found[:24].tolist()


def test_months_weigh_the_course_from_the_month_in_which_it_begins():
    months = [1.0] * 11 + [4.0]
    year = load_shape.season(np.ones(8760), months, 12)
    assert year[:700].min() == 1.0
    assert year[740:8000].max() == 0.25
    assert np.isclose(year.max(), 1.0)
    assert load_shape.season(np.ones(100), [0.0] * 11 + [1.0], 1).tolist() == [1.0] * 100
    with pytest.raises(InputError):
        load_shape.season(np.ones(10), [1.0] * 11, 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0, 1e6), min_size=168, max_size=168).filter(any))
def test_a_week_survives_being_written_and_read(numbers):
    found = week(numbers)
    assert week(profiles.as_text(found)) == found
    assert profiles.peak_over_mean(found) >= 1


@pytest.mark.parametrize("text", ["a,b\n" * 5, '"', "1;2,3\t4", "\x00", "day,hour,load", "，" * 30])
def test_odd_text_is_refused_and_never_an_error_of_the_program(text):
    with pytest.raises(InputError):
        week(text)
