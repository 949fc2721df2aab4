"""How a service's load is spread over the hours of a week and the months of a year, as people and programs write it.

Only the proportions count. A day of 24 hours stands for every day. Read from a list, from numbers in a text, or from a
table (CSV) whose errors name the row.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence

from core.errors import InputError
from core.messages import msg

DAYS, HOURS, MONTHS = 7, 24, 12
WEEK = DAYS * HOURS
LARGEST = 1e12
MOST_TEXT = 20_000  # characters
_DAY_NAMES = {
    name: day
    for day, names in enumerate(
        (
            ("mon", "monday", "周一", "星期一"), ("tue", "tuesday", "周二", "星期二"),
            ("wed", "wednesday", "周三", "星期三"), ("thu", "thursday", "周四", "星期四"),
            ("fri", "friday", "周五", "星期五"), ("sat", "saturday", "周六", "星期六"),
            ("sun", "sunday", "周日", "星期日", "星期天"),
        )
    )
    for name in names
}  # fmt: skip
_HOUR = re.compile(r"(\d{1,2})(?::00)?")


def read_week(field: str, value: object) -> list[float]:
    """168 loads, Monday 0:00 first. From 168 or 24 numbers, seven rows of 24, or rows of (day, hour, load) or
    (hour, load). Raises InputError."""
    if not isinstance(value, str):
        return _week(field, _numbers(field, value))
    rows = _rows(field, value)
    if _is_table(rows, width=3) and len(rows) > DAYS:
        found = _table(
            field, rows, [_day, _hour], [(d, h) for d in range(DAYS) for h in range(HOURS)]
        )
    elif _is_table(rows, width=2) and len(rows) > DAYS:
        found = _table(field, rows, [_hour], [(h,) for h in range(HOURS)])
    else:
        found = _matrix(field, rows)
    return _week(field, found)


def read_months(field: str, value: object) -> list[float]:
    """Twelve loads, January first: from a list, from numbers, or from rows of (month, load). Raises InputError."""
    if isinstance(value, str):
        rows = _rows(field, value)
        if _is_table(rows, width=2) and len(rows) > 2:
            found = _table(field, rows, [_month], [(m,) for m in range(1, MONTHS + 1)])
        else:
            found = [_load(field, cell, row) for row, cells in rows for cell in cells]
    else:
        found = _numbers(field, value)
    if len(found) != MONTHS:
        raise InputError(
            field, msg("%(field)s has %(value)s numbers; it takes %(limit)s", field=field,
                       value=len(found), limit="12"), value=len(found), limit=12,
        )  # fmt: skip
    return _some(field, found)


def peak_over_mean(week: Sequence[float]) -> float:
    """Load of the busiest hour over the mean of the week. [1]"""
    return max(week) * len(week) / sum(week)


def busiest(week: Sequence[float]) -> tuple[int, int]:
    """Day (0 is Monday) and hour of the largest load."""
    at = max(range(len(week)), key=lambda hour: week[hour])
    return divmod(at, HOURS)


def as_text(numbers: Sequence[float]) -> str:
    """Numbers as the reader takes them: a line for each day of a week."""
    width = HOURS if len(numbers) == WEEK else len(numbers)
    lines = (numbers[at : at + width] for at in range(0, len(numbers), width))
    return "\n".join(" ".join(f"{number:g}" for number in line) for line in lines)


def _week(field: str, numbers: list[float]) -> list[float]:
    if len(numbers) == HOURS:
        numbers = numbers * DAYS
    if len(numbers) != WEEK:
        raise InputError(
            field, msg("%(field)s has %(value)s numbers; it takes %(limit)s", field=field,
                       value=len(numbers), limit="24, 168"), value=len(numbers), limit="24, 168",
        )  # fmt: skip
    return _some(field, numbers)


def _some(field: str, numbers: list[float]) -> list[float]:
    if not any(numbers):
        raise InputError(
            field, msg("%(field)s is 0 everywhere; one number has to be above it", field=field),
            value=0, limit="> 0",
        )  # fmt: skip
    return numbers


def _numbers(field: str, value: object) -> list[float]:
    if not isinstance(value, list | tuple) or len(value) > WEEK:
        raise InputError(
            field, msg("%(field)s is a list of numbers or a table", field=field),
            value=str(value)[:100], limit="24, 168",
        )  # fmt: skip
    return [_load(field, number, at) for at, number in enumerate(value, start=1)]


def _load(field: str, value: object, row: int) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= LARGEST:
        raise InputError(
            field,
            msg("%(field)s, row %(row)s: %(value)s is no number from 0 to %(limit)s", field=field,
                row=row, value=str(value)[:40], limit=f"{LARGEST:g}"),
            value=str(value)[:40], limit=f"0 … {LARGEST:g}",
        )  # fmt: skip
    return float(f"{number:.6g}")


def _rows(field: str, text: str) -> list[tuple[int, list[str]]]:
    """(line, cells) of what is not empty, without a heading."""
    if len(text) > MOST_TEXT:
        raise InputError(
            field, msg("%(field)s is longer than %(limit)s characters", field=field, limit=MOST_TEXT),
            value=len(text), limit=MOST_TEXT,
        )  # fmt: skip
    text = text.lstrip("\ufeff")
    delimiter = next((mark for mark in "\t;," if mark in text), " ")
    lines = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    found = []
    for cells in lines:
        kept = [cell.strip() for cell in cells if cell.strip()]
        if kept:
            found.append((lines.line_num, kept))
    if found and not any(_is_number(cell) for cell in found[0][1]):
        found = found[1:]  # names of the columns
    return found


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_table(rows: list[tuple[int, list[str]]], *, width: int) -> bool:
    return bool(rows) and len(rows[0][1]) == width


def _matrix(field: str, rows: list[tuple[int, list[str]]]) -> list[float]:
    """Numbers in reading order; a day's name may stand before its 24."""
    found = []
    for row, cells in rows:
        named = len(cells) == HOURS + 1 and cells[0].lower() in _DAY_NAMES
        found += [_load(field, cell, row) for cell in (cells[1:] if named else cells)]
    return found


def _table(
    field: str, rows: list[tuple[int, list[str]]], keys: Sequence[Callable[[str], int]], wanted: list[tuple[int, ...]]
) -> list[float]:  # fmt: skip
    """Loads by key, each once and none missing."""
    found: dict[tuple[int, ...], float] = {}
    for row, cells in rows:
        if len(cells) != len(keys) + 1:
            raise InputError(
                field, msg("%(field)s, row %(row)s has %(value)s columns; it takes %(limit)s",
                           field=field, row=row, value=len(cells), limit=len(keys) + 1),
                value=len(cells), limit=len(keys) + 1,
            )  # fmt: skip
        key = tuple(read(cell) for read, cell in zip(keys, cells, strict=False))
        if key not in wanted:
            raise InputError(
                field, msg("%(field)s, row %(row)s: there is no %(value)s", field=field, row=row,
                           value=", ".join(cells[:-1])), value=", ".join(cells[:-1]), limit=len(wanted),
            )  # fmt: skip
        if key in found:
            raise InputError(
                field, msg("%(field)s, row %(row)s: %(value)s stands there twice", field=field,
                           row=row, value=", ".join(cells[:-1])), value=", ".join(cells[:-1]), limit=1,
            )  # fmt: skip
        found[key] = _load(field, cells[-1], row)
    missing = [key for key in wanted if key not in found]
    if missing:
        told = ", ".join(map(str, (missing[0][0] + 1, missing[0][1]) if len(keys) == 2 else missing[0]))  # fmt: skip
        raise InputError(
            field, msg("%(field)s: %(count)s rows are missing, the first of them %(value)s", field=field,
                       count=len(missing), value=told), value=told, limit=len(wanted),
        )  # fmt: skip
    return [found[key] for key in wanted]


_NONE = -1  # a key that no row may have


def _day(cell: str) -> int:
    """0 is Monday; 1 to 7 as people count."""
    if cell.isascii() and cell.isdecimal():
        return int(cell) - 1
    return _DAY_NAMES.get(cell.lower(), _NONE)


def _hour(cell: str) -> int:
    match = _HOUR.fullmatch(cell)
    return int(match[1]) if match else _NONE


def _month(cell: str) -> int:
    return int(cell) if cell.isascii() and cell.isdecimal() else _NONE
