"""An hourly series of load as a file: a CSV of `time,value[,unit]` (English or Chinese header, or none), or the same as
a JSON object. Checked row by row.

What is stored is the object: where it starts, its hours in order, the zone in which its week is counted, its source.
Only the course matters: sizes follow from the requests a day and the peak that the request tells.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.messages import Message, msg
from planning.study import profiles

FIELD = "load_series"
LEAST_HOURS, MOST_HOURS = 168, 8784  # a week, a leap year
YEAR_WEEKS = 52  # from so many whole weeks on a series has every month
HOURS_PER_WEEK = 168
WEEK = "week"  # the source of a typical week
MONDAY = datetime(2024, 1, 1, tzinfo=UTC)
DIGITS = 6  # significant: more would say more than a meter knows
DELIMITERS = (",", ";", "\t")
# What a column may be called; without a header the columns stand in this order.
COLUMNS: Mapping[str, frozenset[str]] = {
    "time": frozenset({"time", "timestamp", "date", "datetime", "时间", "时刻", "日期", "日期时间"}),
    "value": frozenset({"value", "load", "requests", "数值", "值", "负载", "请求数", "请求量", "用量"}),
    "unit": frozenset({"unit", "units", "单位"}),
}  # fmt: skip
HEADER = "time,value[,unit] / 时间,数值[,单位]"
KEYS = frozenset({"start", "values", "zone", "unit", "source"})
_VALUE = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*)?")

Row = tuple[int, str, str, str]  # line of the file, time, value, unit


def parse_load(text: str, *, zone: str | None = None, source: str = "") -> dict[str, Any]:
    """The series of a CSV. `zone`: of times without an offset; without it such times are refused. A first row that is a
    time and a number is no header: then the columns are time, value and perhaps unit.

    Raises
    ------
    InputError
        On `load_series` (or `zone`), naming the row: a header without time and value, a time or value that cannot be
        read, a negative value, an hour twice or missing, times that go back, steps of another length, a second unit,
        too few or too many hours.
    """
    return _series(_rows(text), _zone(zone), zone, source)


def check_series(value: object) -> dict[str, Any]:
    """A stored or told series: the JSON object, the text of a CSV whose times bear their offset, or a week as people
    draw and write it (see `profiles`): 168 or 24 numbers, a table of day, hour and load."""
    if isinstance(value, str):
        if _is_series(value):
            return parse_load(value)
    if isinstance(value, str | list | tuple):
        return week_series(profiles.read_week(FIELD, value))
    if not isinstance(value, Mapping) or not {"start", "values"} <= set(value) <= KEYS:
        raise _refused(
            msg("%(field)s must be an object with start and values, or the text of a CSV", field=FIELD),
            value=str(value)[:100], limit=", ".join(sorted(KEYS)),
        )  # fmt: skip
    start, zone = _moment(1, str(value["start"]), None), value.get("zone") or ""
    _zone(str(zone) or None)
    numbers = value["values"]
    if not isinstance(numbers, list | tuple):
        raise _refused(msg("The values of %(field)s must be a list of numbers", field=FIELD),
                       value=str(numbers)[:100])  # fmt: skip
    for number, one in enumerate(numbers, start=1):
        if isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one):
            raise _refused(msg("Value %(row)s: %(value)s is not a number", row=number, value=str(one)[:40]),
                           value=str(one)[:40], limit="number")  # fmt: skip
        if one < 0:
            raise _negative(number, one)
    return _stored(
        start, [float(one) for one in numbers], str(zone), str(value.get("unit") or "")[:40],
        str(value.get("source") or "")[:120],
    )  # fmt: skip


def week_series(loads: Sequence[float]) -> dict[str, Any]:
    """One typical week, Monday 0:00 first; only its proportions count."""
    return _stored(MONDAY, list(loads), "", "", WEEK)


def is_week(series: Mapping[str, Any] | None) -> bool:
    """Whether it is a typical week as told by a person, not measured hours."""
    return (
        series is not None and series.get("source") == WEEK and hours_of(series) == HOURS_PER_WEEK
    )


def hours_of(series: Mapping[str, Any]) -> int:
    """How many hours the series has."""
    return len(series["values"])


def peak_over_mean(series: Mapping[str, Any]) -> float:
    """The busiest hour over the mean of all. [1]"""
    values = np.asarray(series["values"], dtype=np.float64)
    return float(values.max() / values.mean())


def requests_per_day(series: Mapping[str, Any]) -> float | None:
    """The mean by the file where its unit says what it counts; None where it does not."""
    unit = str(series.get("unit") or "").replace(" ", "").casefold()
    match = re.fullmatch(
        r"(?:requests?|reqs?|calls?|queries|qps|rps)(?:/(s|sec|second|h|hour|d|day))?", unit
    )
    if match is None:
        return None
    by = match.group(1) or ("s" if unit in ("qps", "rps") else "h")
    scale = {"s": 86_400.0, "h": 24.0, "d": 1.0}[by[0]]
    return float(np.mean(series["values"])) * scale


def course(
    series: Mapping[str, Any],
    hours: int,
    growth_per_month: float = 0.0,
    *,
    months: Sequence[float] | None = None,
    first_month: int | None = None,
) -> NDArray[np.float64]:
    """Load of each hour over the largest of all, from Monday 0:00 of the series' zone on. Shape (hours,)

    The last whole weeks of the series are repeated until they cover the hours; growth compounds by month of 730 h. A
    series of a year begins with the week in which it was `first_month` (1 to 12). `months`: loads of the year's months,
    by which the course is weighed afterwards; those in which the series was measured are taken out of it here, so that
    a season counts once. A typical week was measured in no month.
    """
    values = np.asarray(series["values"], dtype=np.float64)
    if months is not None and not is_week(series):
        values = _without_season(series, values, months)
    whole = values[-(values.size // HOURS_PER_WEEK) * HOURS_PER_WEEK :]
    start = _begin(series)
    first = (start.weekday() * 24 + start.hour + values.size - whole.size) % HOURS_PER_WEEK
    week = np.roll(
        whole, first
    )  # the hours before the first Monday come last: nothing is thrown away
    if first_month is not None and week.size >= YEAR_WEEKS * HOURS_PER_WEEK:
        begin = start + timedelta(hours=values.size - whole.size - first)
        at = next(
            number
            for number in range(1, week.size // HOURS_PER_WEEK + 1)
            if (begin + timedelta(weeks=number)).month == first_month
        )
        week = np.roll(week, -at * HOURS_PER_WEEK)
    hour = np.arange(hours)
    load = week[hour % week.size] * (1.0 + growth_per_month) ** (hour / 730.0)
    if not load.any():  # a service shorter than the busy part of a series
        return np.ones(hours)
    found: NDArray[np.float64] = load / load.max()
    return found


def _begin(series: Mapping[str, Any]) -> datetime:
    """Its first hour, in its zone."""
    start = datetime.fromisoformat(series["start"])
    return start.astimezone(ZoneInfo(series["zone"])) if series.get("zone") else start


def _without_season(
    series: Mapping[str, Any], values: NDArray[np.float64], months: Sequence[float]
) -> NDArray[np.float64]:
    """The hours as they would have been in a month like any other; a month said to have no load is left as measured."""
    start = _begin(series)
    month = [(start + timedelta(hours=hour)).month - 1 for hour in range(0, values.size, 24)]
    weight = np.repeat(np.asarray(months, dtype=np.float64)[month], 24)[: values.size]
    mean = float(np.mean(months))
    found: NDArray[np.float64] = values * np.where(
        weight > 0, mean / np.where(weight > 0, weight, 1.0), 1.0
    )
    return found


# ---- Reading -----------------------------------------------------------------------------------------------------


def _rows(text: str) -> Iterable[Row]:
    text = text.lstrip("\ufeff")
    delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    header: list[str] | None = None
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        line = reader.line_num
        if header is None:
            bare = _bare(cells)
            header = list(COLUMNS)[: len(cells)] if bare else [_column(cell) for cell in cells]
            if (
                not {"time", "value"} <= set(header)
                or header.count("time") + header.count("value") > 2
            ):
                raise _refused(
                    msg("Row %(row)s: the header is %(found)s; it must name time and value once each (%(limit)s)",
                        row=line, found=delimiter.join(cells)[:80], limit=HEADER),
                    value=delimiter.join(cells)[:80], limit=HEADER,
                )  # fmt: skip
            if not bare:
                continue
        if len(cells) != len(header):
            raise _refused(
                msg("Row %(row)s has %(found)s cells; the header has %(wanted)s", row=line, found=len(cells),
                    wanted=len(header)),
                value=len(cells), limit=len(header),
            )  # fmt: skip
        told = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        yield line, told["time"], told["value"], told.get("unit", "")
    if header is None:
        raise _refused(msg("The file is empty"), value="", limit=HEADER)


def _delimiter(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(DELIMITERS, key=first.count)


def _column(name: str) -> str:
    """What a column of that heading holds; a unit in brackets behind it does not matter. As written where unknown."""
    plain = re.sub(r"[(（\[].*", "", name).strip().casefold()
    return next((column for column, names in COLUMNS.items() if plain in names), plain)


def _bare(cells: Sequence[str]) -> bool:
    """Whether a first row is a row of the series: a time and a number."""
    if not 2 <= len(cells) <= len(COLUMNS):
        return False
    return _is_time(cells[0]) and _VALUE.fullmatch(cells[1].strip()) is not None


def _is_time(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text.strip().replace("/", "-"))
    except ValueError:
        return False
    return len(text.strip()) > len("2026-11-02") and moment.year > 1


def _is_series(text: str) -> bool:
    """Whether a text is measured hours, not a table of a week: its columns or its first row bear times."""
    rows = csv.reader(
        io.StringIO(text.lstrip("\ufeff")), delimiter=_delimiter(text.lstrip("\ufeff"))
    )
    cells = next((cells for cells in rows if any(cell.strip() for cell in cells)), [])
    return _bare(cells) or "time" in map(_column, cells)


def _series(
    rows: Iterable[Row], zone: tzinfo | None, name: str | None, source: str
) -> dict[str, Any]:
    start: datetime | None = None
    before: tuple[int, datetime] | None = None
    unit: tuple[int, str] | None = None
    values: list[float] = []
    for line, time, value, told in rows:
        moment = _moment(line, time, zone)
        if before is not None:
            moment = _after(before, (line, moment), zone)
        start = start or moment
        amount, suffix = _amount(line, value)
        unit = _same_unit(unit, line, told or suffix)
        values.append(amount)
        before = (line, moment)
        if len(values) > MOST_HOURS:
            raise _refused(
                msg("Row %(row)s: the series has more than %(limit)s hours; give the latest year", row=line,
                    limit=MOST_HOURS),
                value=len(values), limit=MOST_HOURS,
            )  # fmt: skip
    if start is None:
        raise _refused(msg("The file has no row below its header"), value=0, limit=LEAST_HOURS)
    return _stored(start, values, name or "", unit[1] if unit else "", source)


def _stored(
    start: datetime, values: list[float], zone: str, unit: str, source: str
) -> dict[str, Any]:
    if not LEAST_HOURS <= len(values) <= MOST_HOURS:
        raise _refused(
            msg("The series has %(found)s hours; it must have %(low)s to %(high)s, a week to a year",
                found=len(values), low=LEAST_HOURS, high=MOST_HOURS),
            value=len(values), limit=f"{LEAST_HOURS} … {MOST_HOURS}",
        )  # fmt: skip
    if not any(values):
        raise _refused(
            msg("Every value of the series is 0: there is no load to follow"), value=0, limit="> 0"
        )
    return {
        "start": start.isoformat(timespec="minutes"),
        "zone": zone,
        "unit": unit,
        "source": source,
        "values": [float(f"{value:.{DIGITS}g}") for value in values],
    }


def _zone(name: str | None) -> tzinfo | None:
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(
            "zone", msg("%(value)s is not a time zone such as Asia/Shanghai", value=name), value=name, limit="IANA"
        ) from error  # fmt: skip


def _moment(line: int, text: str, zone: tzinfo | None) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError as error:
        raise _refused(
            msg("Row %(row)s: %(value)s is not a time such as 2026-11-02 09:00", row=line, value=text[:40]),
            value=text[:40], limit="ISO 8601",
        ) from error  # fmt: skip
    if moment.tzinfo is None:
        if zone is None:
            raise _refused(
                msg("Row %(row)s: %(value)s has no offset, and no time zone was told", row=line, value=text[:40]),
                value=text[:40], limit="2026-11-02T09:00+08:00",
            )  # fmt: skip
        moment = moment.replace(tzinfo=zone)
        if moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment.replace(
            tzinfo=None
        ):
            raise _refused(
                msg("Row %(row)s: %(value)s does not exist in this time zone: clocks go forward then", row=line,
                    value=text[:40]),
                value=text[:40],
            )  # fmt: skip
    return moment


def _after(
    before: tuple[int, datetime], now: tuple[int, datetime], zone: tzinfo | None
) -> datetime:
    """The moment of a row, one hour after the row before. Where clocks go back, the hour that comes twice is two."""
    (_line, last), (line, moment) = before, now
    step = moment.astimezone(UTC) - last.astimezone(UTC)
    if zone is not None and step <= timedelta(0):
        again = moment.replace(fold=1)
        if again.astimezone(UTC) - last.astimezone(UTC) == timedelta(hours=1):
            return again
    hours = step.total_seconds() / 3600
    told: dict[str, str | int | float] = {
        "row": line,
        "time": moment.isoformat(sep=" ", timespec="minutes"),
    }
    if hours == 1:
        return moment
    if hours == 0:
        raise _refused(
            msg("Row %(row)s: the hour %(time)s comes a second time", **told), value=told["time"]
        )
    if hours < 0:
        raise _refused(
            msg("Row %(row)s: %(time)s is before the row above", **told), value=told["time"]
        )
    if hours == int(hours):
        raise _refused(
            msg("Row %(row)s: %(n)s hours are missing before %(time)s", n=int(hours) - 1, **told),
            value=told["time"], limit="1 h",
        )  # fmt: skip
    raise _refused(
        msg("Row %(row)s: %(time)s is %(minutes)s minutes after the row above; each row must be an hour", **told,
            minutes=round(hours * 60)),
        value=told["time"], limit="60 min",
    )  # fmt: skip


def _amount(line: int, text: str) -> tuple[float, str]:
    """A number and the unit behind it, if any; a comma may group thousands."""
    match = _VALUE.fullmatch(text.replace(",", "").replace("_", "").strip())
    number = float(match.group(1)) if match else math.nan
    if match is None or not math.isfinite(number):
        raise _refused(msg("Row %(row)s: %(value)s is not a number", row=line, value=text[:40] or "–"),
                       value=text[:40], limit="number")  # fmt: skip
    if number < 0:
        raise _negative(line, number)
    return number, (match.group(2) or "").strip()


def _same_unit(known: tuple[int, str] | None, line: int, told: str) -> tuple[int, str]:
    if known is not None and told != known[1]:
        raise _refused(
            msg("Row %(row)s is in %(unit)s, row %(first)s in %(other)s: one unit for all", row=line,
                unit=told or "–", first=known[0], other=known[1] or "–"),
            value=told, limit=known[1],
        )  # fmt: skip
    return known or (line, told[:40])


def _negative(line: int, value: float) -> InputError:
    return _refused(
        msg("Row %(row)s: %(value)s is below 0", row=line, value=value), value=value, limit=">= 0"
    )


def _refused(message: Message, *, value: object, limit: object = None) -> InputError:
    return InputError(FIELD, message, value=value, limit=limit)
