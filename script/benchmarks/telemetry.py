"""Benchmarks of the telemetry store. They need PostgreSQL: set DATABASE_URL; rows are rolled back."""

from __future__ import annotations

import time

import numpy as np
from django.db import connection, transaction

ROWS = 500_000
CARDS = 5_000


def rollup_copy_ratio() -> dict[str, float | str]:
    """Rows a second of storing hourly rollups against a bare COPY of the same rows into the same kind of table.

    Stored as the product does it: partitions made, the span checked, rows laid out, copied, one index kept.
    """
    from planning.services import telemetry_store as store

    if connection.vendor != "postgresql":
        return {
            "value": float("nan"), "unit": "rows/s", "baseline": float("nan"), "ratio": float("nan"),
            "note": "needs PostgreSQL (DATABASE_URL)",
        }  # fmt: skip
    generator = np.random.default_rng(11)
    start = 4_070_908_800  # 2099: a span of its own
    figures = generator.random((ROWS, len(store.COLUMNS)), dtype=np.float32)
    figures[generator.random(ROWS) < 0.2, 3:5] = np.nan
    hours = store.Hours(
        hour=np.repeat(start + 3600 * np.arange(ROWS // CARDS, dtype=np.int64), CARDS),
        series=np.tile(np.arange(1, CARDS + 1, dtype=np.int32), ROWS // CARDS),
        samples=np.full(ROWS, 60, dtype=np.int32),
        covered=np.full(ROWS, 3600, dtype=np.int32),
        figures=figures,
    )
    plain = b"".join(store.binary_rows(hours))
    ours, bare = [], []
    for _ in range(3):
        with transaction.atomic():
            begin = time.perf_counter()
            store.store_hours(hours)
            ours.append(time.perf_counter() - begin)
            transaction.set_rollback(True)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE bare (LIKE {store.TABLE} INCLUDING INDEXES)")
            names = ", ".join(("hour", "series_id", "samples", "covered", *store.COLUMNS))
            begin = time.perf_counter()
            with cursor.cursor.copy(f"COPY bare ({names}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(plain)
            bare.append(time.perf_counter() - begin)
            transaction.set_rollback(True)
    return {
        "value": round(ROWS / min(ours)),
        "unit": "rows/s",
        "baseline": round(ROWS / min(bare)),
        "ratio": round(min(bare) / min(ours), 3),
        "baseline_is": "COPY of the ready bytes into a plain table with the same index",
        "note": "at least half is asked for, and 100,000 rows/s",
    }


BENCHMARKS = {"rollup_copy_ratio": rollup_copy_ratio}
