"""Hours of load from a file: what is read, what is refused and where, and how the funnel follows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import jsonschema
import numpy as np
import pytest

from core.errors import InputError
from core.messages import Message
from planning.economics import load_shape
from planning.study.load_series import (
    check_series,
    course,
    is_week,
    parse_load,
    peak_over_mean,
    requests_per_day,
)
from planning.study.request import parse_request, request_json
from tests.planning.study.search import markets
from tests.planning.study.search.markets import SERVE, market, offer, text

MONDAY = datetime(2026, 11, 2)


def table(hours=336, *, start=MONDAY, value=lambda i: 100 + i % 24, rows=None, header="time,value"):
    lines = [f"{start + timedelta(hours=i):%Y-%m-%d %H:%M},{value(i)}" for i in range(hours)]
    for number, row in (
        rows or {}
    ).items():  # the row as the file counts it, its header being row 1
        lines[number - 2] = row
    return "\n".join([header, *lines]) + "\n"


def refusal(content, zone="Asia/Shanghai"):
    with pytest.raises(InputError) as caught:
        parse_load(content, zone=zone)
    error = caught.value
    return error.field, str(Message(error.message.template, error.message.params))


def test_a_file_with_byte_order_mark_other_separators_and_offsets_reads_the_same():
    plain = parse_load(table(), zone="Asia/Shanghai", source="load.csv")
    marked = parse_load(
        "\ufeff" + table().replace(",", ";"), zone="Asia/Shanghai", source="load.csv"
    )
    assert marked == plain
    assert (plain["start"], len(plain["values"])) == ("2026-11-02T00:00+08:00", 336)
    offsets = table().replace(":00,", ":00+08:00,")
    assert parse_load(offsets)["values"] == plain["values"]
    assert check_series(plain) == plain


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "The file is empty"),
        ("time,value\n", "no row below its header"),
        ("hour,load\n1,2\n", "Row 1: the header is hour,load; it must name time and value"),
        (table(rows={5: "2026-11-02 03:00,-4"}), "Row 5: -4.0 is below 0"),
        (table(rows={5: "2026-11-02 03:00,many"}), "Row 5: many is not a number"),
        (table(rows={5: "2026-11-02 03:00,nan"}), "Row 5: nan is not a number"),
        (table(rows={5: "2026-11-02 03:00,"}), "Row 5: – is not a number"),
        (table(rows={5: "noon,4"}), "Row 5: noon is not a time"),
        (table(rows={5: "2026-11-02 02:00,4"}), "Row 5: the hour 2026-11-02 02:00+08:00 comes a second time"),
        (table(rows={5: "2026-11-02 05:00,4"}), "Row 5: 2 hours are missing before 2026-11-02 05:00"),
        (table(rows={5: "2026-11-01 05:00,4"}), "Row 5: 2026-11-01 05:00+08:00 is before the row above"),
        (table(rows={5: "2026-11-02 02:15,4"}), "Row 5: 2026-11-02 02:15+08:00 is 15 minutes after"),
        (table(rows={5: "2026-11-02 03:00,4,x"}), "Row 5 has 3 cells; the header has 2"),
        (table(rows={5: "2026-11-02 03:00,4 qps"}), "Row 5 is in qps, row 2 in –: one unit"),
        (table(hours=167), "The series has 167 hours; it must have 168 to 8784"),
        (table(hours=8785), "Row 8786: the series has more than 8784 hours"),
        (table(value=lambda i: 0), "Every value of the series is 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_row(content, told):
    field, words = refusal(content)

    assert field == "load_series"
    assert told in words


def test_two_units_in_a_column_are_refused_and_one_is_kept():
    def units(other):
        lines = table(header="time,value,unit").splitlines()
        told = [f"{line},requests/h" for line in lines[1:]]
        told[20] = told[20].replace("requests/h", other)
        return "\n".join([lines[0], *told])

    assert "Row 22 is in requests/s, row 2 in requests/h" in refusal(units("requests/s"))[1]
    kept = parse_load(units("requests/h"), zone="UTC")
    assert kept["unit"] == "requests/h"
    assert requests_per_day(kept) == pytest.approx(24 * np.mean(kept["values"]))
    assert requests_per_day(kept | {"unit": "req/s"}) == pytest.approx(
        86_400 * np.mean(kept["values"])
    )
    assert requests_per_day(kept | {"unit": "tokens"}) is None


def test_times_without_an_offset_need_a_zone_that_exists():
    assert "has no offset, and no time zone was told" in refusal(table(), zone=None)[1]
    field, words = refusal(table(), zone="Mars/Olympus")
    assert (field, "Mars/Olympus is not a time zone" in words) == ("zone", True)


def test_where_clocks_change_an_hour_is_missing_or_comes_twice():
    berlin = ZoneInfo("Europe/Berlin")

    def local(start, hours=200):
        moments = [start.astimezone(ZoneInfo("UTC")) + timedelta(hours=i) for i in range(hours)]
        rows = [
            f"{moment.astimezone(berlin):%Y-%m-%d %H:%M},{i + 1}"
            for i, moment in enumerate(moments)
        ]
        return "\n".join(["time,value", *rows])

    autumn = local(datetime(2026, 10, 23, tzinfo=berlin))  # 02:00 comes twice on the 25th
    assert parse_load(autumn, zone="Europe/Berlin")["values"] == list(range(1, 201))
    spring = local(datetime(2027, 3, 26, tzinfo=berlin))
    assert len(parse_load(spring, zone="Europe/Berlin")["values"]) == 200
    skipped = spring.replace("2027-03-28 03:00", "2027-03-28 02:00")
    assert "does not exist in this time zone" in refusal(skipped, "Europe/Berlin")[1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"values": "1,2"}, "must be a list of numbers"),
        ({"values": [1.0] * 200 + [True]}, "Value 201: True is not a number"),
        ({"values": [1.0] * 200 + [-1]}, "Row 201: -1 is below 0"),
        ({"start": "soon"}, "soon is not a time"),
        ({"zone": "Nowhere"}, "Nowhere is not a time zone"),
        ({"extra": 1}, "must be an object with start and values"),
    ],
)
def test_an_object_is_checked_as_a_file_is(changes, told):
    good = {"start": "2026-11-02T00:00+08:00", "values": [1.0] * 200}
    assert check_series(good)["zone"] == ""
    with pytest.raises(InputError) as caught:
        check_series(good | changes)
    assert told in str(Message(caught.value.message.template, caught.value.message.params))


def test_the_course_begins_on_monday_and_repeats_whole_weeks():
    def busy_at_noon_on_fridays(i):
        moment = datetime(2026, 11, 4) + timedelta(hours=i)  # a Wednesday
        return 9 if (moment.weekday(), moment.hour) == (4, 12) else 1

    series = parse_load(
        table(400, start=datetime(2026, 11, 4), value=busy_at_noon_on_fridays), zone="Asia/Shanghai"
    )
    load = course(series, 5 * 168)

    assert list(np.flatnonzero(load == 1.0)) == [week * 168 + 4 * 24 + 12 for week in range(5)]
    assert course(series, 8760, 0.05)[-168:].max() == pytest.approx(1.0)
    assert peak_over_mean(series) > 8


def week(busy, rest=5.0):
    values = [100.0 if i in busy else rest for i in range(168)]
    return {"start": "2026-11-02T00:00+00:00", "values": values}


def mix_of(data):
    result = markets.study(data, market(offer()))
    plan = next(p for p in result["plans"] if p["kind"] == "mix")
    return plan, result


def test_the_funnel_follows_the_file_and_the_study_keeps_it():
    service = {**SERVE, "requests_per_day": "300M", "peak_factor": 12}
    narrow = mix_of({**service, "load_series": week(range(36, 46))})
    high = mix_of({**service, "load_series": week(range(36, 46), rest=60.0)})

    plan, result = narrow
    assert plan["funnel"]["reserved_cards"] < high[0]["funnel"]["reserved_cards"]
    assert plan["funnel"]["peak_cards"] == high[0]["funnel"]["peak_cards"]
    assert any("168 hours of load from a file" in text(note) for note in plan["notes"])
    assert not any("office hours are taken" in text(note) for note in plan["notes"])
    frozen = result["request"]["load_series"]
    assert frozen["values"] == week(range(36, 46))["values"]
    assert request_json(parse_request(result["request"])) == result["request"]
    busiest = [sum(row) for row in plan["funnel"]["week"]]
    assert set(np.flatnonzero(np.array(busiest) == max(busiest))) == set(
        range(12, 22)
    )  # 8,760 h: it ends on a Monday


def test_a_peak_told_below_the_busiest_hour_is_refused_at_the_peak():
    with pytest.raises(InputError) as caught:
        parse_request({**SERVE, "peak_factor": 2, "load_series": week(range(3))})
    assert caught.value.field == "peak_factor"
    assert "The busiest hour of the file is 14.93 times" in str(caught.value)


def test_a_file_that_counts_other_requests_than_told_is_said():
    series = week(range(20, 120)) | {"unit": "requests/h"}
    plan, _result = mix_of({**SERVE, "requests_per_day": "30M", "load_series": series})
    assert any("By the file there are" in text(note) for note in plan["notes"])


def test_other_kinds_do_not_ask_for_it():
    with pytest.raises(InputError) as caught:
        parse_request({**markets.TUNE, "load_series": week(range(3))})
    assert caught.value.field == "load_series"


def test_a_drawn_week_and_the_months_of_the_year_shape_the_split():
    service = {**SERVE, "requests_per_day": "300M", "peak_factor": 12, "start": "2027-01-01"}
    day = [1.0] * 8 + [10.0] * 12 + [1.0] * 4
    plain, _result = mix_of({**service, "load_series": day})
    assert any("follows the week as it was told" in text(note) for note in plain["notes"])
    seasonal, result = mix_of({**service, "load_series": day, "load_months": [1] * 11 + [10]})
    assert seasonal["funnel"]["reserved_cards"] < plain["funnel"]["reserved_cards"]
    assert result["request"]["load_months"] == [1.0] * 11 + [10.0]


@pytest.mark.parametrize(
    "header",
    [
        "time,value",
        "时间,数值",
        "日期时间,请求数（每小时）",
        "Timestamp;Load",
        "数值,时间",
        "时间,负载,单位",
        None,
    ],
)
def test_a_header_may_be_english_chinese_or_none(header):
    mark = ";" if header and ";" in header else ","
    turned = bool(header) and header.startswith("数值")
    rows = []
    for hour in range(168):
        moment = (datetime(2026, 11, 2, tzinfo=UTC) + timedelta(hours=hour)).isoformat()
        cells = [str(hour + 1), moment] if turned else [moment, str(hour + 1)]
        rows.append(mark.join([*cells, *(["requests"] if header and "单位" in header else [])]))
    series = check_series("\n".join([*([header] if header else []), *rows]))
    assert series["values"][:3] == [1.0, 2.0, 3.0]
    assert series["start"].startswith("2026-11-02T00:00")
    assert series["source"] == ""


@pytest.mark.parametrize("header", ["day,load", "时间,时间", "time,a"])
def test_a_header_without_time_and_value_is_refused_with_what_it_may_be(header):
    with pytest.raises(InputError) as caught:
        parse_load(header + "\n2026-11-02 00:00,1", zone="UTC")
    assert "时间,数值" in str(caught.value)


def test_a_week_as_a_table_is_no_series():
    table = "\n".join(["hour,load", *(f"{hour},{hour + 1}" for hour in range(24))])
    assert is_week(check_series(table))


def year(of_month):
    """8,760 h from 1 July: the load of each hour by its month."""
    start = datetime(2026, 7, 1, tzinfo=UTC)
    values = [float(of_month((start + timedelta(hours=h)).month)) for h in range(8760)]
    return {
        "start": start.isoformat(timespec="minutes"),
        "values": values,
        "zone": "",
        "unit": "",
        "source": "a.csv",
    }


def test_a_measured_year_begins_with_the_month_of_the_start():
    series = year(lambda month: month)
    for month in (1, 4, 7, 11):
        load = course(series, 8736, first_month=month)
        assert load[84] == pytest.approx(month / 12), month
        weekday = np.argmax(
            course(
                year(lambda m: m) | {"values": [1.0 + (h % 168 == 12) for h in range(8760)]}, 168
            )
        )
        assert weekday == (2 * 24 + 12) % 168  # 1 July 2026 is a Wednesday
    assert course(series, 24, first_month=None).tolist() == course(series, 24).tolist()


def test_a_season_that_was_measured_counts_once():
    months = [float(month) for month in range(1, 13)]
    series = year(lambda month: month)
    load = course(series, 8736, months=months, first_month=1)
    assert np.ptp(load) == pytest.approx(0.0, abs=1e-9)
    told = load_shape.season(load, months, 1)
    assert told[84] == pytest.approx(1 / 12, rel=0.01)
    november = {
        "start": "2026-11-02T00:00+00:00",
        "values": [11.0] * 168,
        "zone": "",
        "unit": "",
        "source": "a",
    }
    flat = course(november, 8736, months=months, first_month=1)
    assert np.ptp(flat) == 0.0
    drawn = check_series([1.0] * 12 + [3.0] * 12)
    assert course(drawn, 168, months=months).tolist() == course(drawn, 168).tolist()
    gone = [0.0 if month == 7 else 1.0 for month in range(1, 13)]  # said to be empty, and measured
    assert course(series, 8736, months=gone, first_month=7)[84] > 0


def test_the_schemas_take_arrays():
    from planning.study.schema import load_schemas

    kinds = [one["type"] for one in load_schemas()["load_series"]["anyOf"]]
    assert kinds == ["string", "array", "array", "object"]
    validate = jsonschema.Draft202012Validator(load_schemas()["load_series"]).is_valid
    assert validate([1.0] * 24)
    assert validate([1.0] * 168)
    assert not validate([1.0] * 25)
    months = jsonschema.Draft202012Validator(load_schemas()["load_months"]).is_valid
    assert months([1.0] * 12)
    assert not months([1.0] * 11)
