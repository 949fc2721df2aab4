"""Hourly rows into the database: by binary COPY on PostgreSQL, by upsert elsewhere, the same result.

Where a row is there already, it is replaced when `replace` says that the new one is exact, else when the new one rests
on at least as many samples. The same rows again change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from core.partitions import ensure_months
from planning.models.telemetry import CardHour
from planning.telemetry_formats.hours import COLUMNS

TABLE = "planning_cardhour"
_KEYS = ("hour", "series_id", "samples", "covered")
_ALL = (*_KEYS, *COLUMNS)
_NAMES = ", ".join(f'"{name}"' for name in _ALL)
_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_EPOCH = 946_684_800  # 2000-01-01, in seconds since 1970
_CHUNK = 50_000


@dataclass(frozen=True, slots=True)
class Hours:
    """Rows as columns: `hour` in seconds since 1970, figures in the order of COLUMNS, NaN where there is none."""

    hour: NDArray[np.int64]
    series: NDArray[np.int32]
    samples: NDArray[np.int32]
    covered: NDArray[np.int32]
    figures: NDArray[np.float32]  # (n, len(COLUMNS))

    def __len__(self) -> int:
        return len(self.hour)

    @classmethod
    def of(cls, rows: Iterable[tuple[datetime, int, int, int, tuple[float | None, ...]]]) -> Hours:
        """From (hour, series, samples, covered, figures) tuples."""
        kept = list(rows)
        return cls(
            np.array([int(row[0].timestamp()) for row in kept], dtype=np.int64),
            np.array([row[1] for row in kept], dtype=np.int32),
            np.array([row[2] for row in kept], dtype=np.int32),
            np.array([row[3] for row in kept], dtype=np.int32),
            np.array([row[4] for row in kept], dtype=np.float32).reshape(len(kept), len(COLUMNS)),
        )


def store_hours(hours: Hours, *, replace: bool = False) -> int:
    """Write `hours`; returns how many rows are new or changed."""
    if not len(hours):
        return 0
    with transaction.atomic():
        if connection.vendor == "postgresql":
            ensure_months(TABLE, (datetime.fromtimestamp(at, UTC) for at in _month_starts(hours)))
            return _store_by_copy(hours, replace=replace)
        return _store_by_upsert(hours, replace=replace)


def _month_starts(hours: Hours) -> list[int]:
    months = np.unique(hours.hour.astype("datetime64[s]").astype("datetime64[M]"))
    return [int(at) for at in months.astype("datetime64[s]").astype(np.int64)]


def _newer(replace: bool) -> str:
    old = f'"{TABLE}"'
    differs = " OR ".join(f'{old}."{name}" IS DISTINCT FROM excluded."{name}"' for name in _ALL[2:])
    enough = "" if replace else f' AND excluded."samples" >= {old}."samples"'
    return f"WHERE ({differs}){enough}"


def _conflict(replace: bool) -> str:
    sets = ", ".join(f'"{name}" = excluded."{name}"' for name in _ALL[2:])
    return f'ON CONFLICT ("hour", "series_id") DO UPDATE SET {sets} {_newer(replace)}'


def _store_by_copy(hours: Hours, *, replace: bool) -> int:
    """Straight into the table where its span of hours is still empty, else through a staging table."""
    low, high = int(hours.hour.min()), int(hours.hour.max())
    with connection.cursor() as cursor:
        # One writer at a time decides whether the span is empty; readers are not held up.
        cursor.execute(f'LOCK TABLE "{TABLE}" IN SHARE ROW EXCLUSIVE MODE')
        cursor.execute(
            f'SELECT EXISTS (SELECT 1 FROM "{TABLE}" WHERE "hour" BETWEEN to_timestamp(%s) AND to_timestamp(%s) '
            'AND "series_id" BETWEEN %s AND %s)',
            [low, high, int(hours.series.min()), int(hours.series.max())],
        )
        target = TABLE
        if cursor.fetchone()[0] or _repeats(hours):
            target = "pg_temp.incoming_hours"
            cursor.execute(f'CREATE TEMPORARY TABLE incoming_hours (LIKE "{TABLE}") ON COMMIT DROP')
        with cursor.cursor.copy(f"COPY {target} ({_NAMES}) FROM STDIN (FORMAT BINARY)") as copy:
            for piece in binary_rows(hours):
                copy.write(piece)
        if target == TABLE:
            return len(hours)
        cursor.execute(
            f'INSERT INTO "{TABLE}" ({_NAMES}) SELECT DISTINCT ON ("hour", "series_id") {_NAMES} '
            f'FROM {target} ORDER BY "hour", "series_id", "samples" DESC {_conflict(replace)}'
        )
        changed = int(cursor.rowcount)
        cursor.execute(f"DROP TABLE {target}")
        return changed


def _repeats(hours: Hours) -> bool:
    keys = hours.hour * (1 << 31) + hours.series
    return len(np.unique(keys)) < len(keys)


def binary_rows(hours: Hours) -> Iterator[bytes]:
    """The rows in PostgreSQL's binary COPY format. Rows with the same figures missing are laid out together."""
    yield _HEADER
    missing = np.isnan(hours.figures)
    pattern = missing @ (1 << np.arange(len(COLUMNS)))
    for value in np.unique(pattern):
        rows = np.flatnonzero(pattern == value)
        present = ~missing[rows[0]]
        fields: list[tuple[str, str]] = [("n", ">i2")]
        for name in _KEYS:
            fields += [(f"{name}_len", ">i4"), (name, ">i8" if name == "hour" else ">i4")]
        for name, there in zip(COLUMNS, present, strict=True):
            fields.append((f"{name}_len", ">i4"))
            if there:
                fields.append((name, ">f4"))
        layout = np.dtype(fields)
        for start in range(0, len(rows), _CHUNK):
            part = rows[start : start + _CHUNK]
            out = np.empty(len(part), dtype=layout)
            out["n"] = len(_ALL)
            out["hour_len"], out["hour"] = 8, (hours.hour[part] - _EPOCH) * 1_000_000
            for name, column in (
                ("series_id", hours.series), ("samples", hours.samples), ("covered", hours.covered),
            ):  # fmt: skip
                out[f"{name}_len"], out[name] = 4, column[part]
            for place, (name, there) in enumerate(zip(COLUMNS, present, strict=True)):
                out[f"{name}_len"] = 4 if there else -1
                if there:
                    out[name] = hours.figures[part, place]
            yield out.tobytes()
    yield b"\xff\xff"


def _store_by_upsert(hours: Hours, *, replace: bool) -> int:
    marks = ", ".join(["%s"] * len(_ALL))
    sql = f'INSERT INTO "{TABLE}" ({_NAMES}) VALUES ({marks}) {_conflict(replace)}'
    to_db = CardHour._meta.get_field("hour").get_db_prep_value
    changed = 0
    with closing(connection.cursor()) as cursor:
        for place in range(len(hours)):
            figures = [None if np.isnan(v) else float(v) for v in hours.figures[place]]
            at = datetime.fromtimestamp(int(hours.hour[place]), UTC)
            cursor.execute(
                sql,
                [
                    to_db(at, connection), int(hours.series[place]), int(hours.samples[place]),
                    int(hours.covered[place]), *figures,
                ],
            )  # fmt: skip
            changed += cursor.rowcount
    return changed
