"""Benchmark of live samples of a burn-in: one push of 4,000, taken and stored, beside reading its text alone.

It makes an SQLite database of its own and drops it. This file is also what its child process runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

PUSHES, CARDS, STEPS = 5, 8, 500
WANTED = 1000.0  # samples a second


def live_samples_per_second() -> dict[str, float | str]:
    """Samples a second of pushes of 4,000; the ratio is to reading the same text without storing anything."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3", "DATA_DIR": folder, "EMBEDDED": "1",
        }  # fmt: skip
        out = subprocess.run(
            [sys.executable, __file__],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    found = json.loads(out.splitlines()[-1])
    value, baseline = found["taken"] / found["push"], found["taken"] / found["read"]
    return {
        "value": round(value, 1), "unit": "samples/s", "baseline": round(baseline, 1),
        "ratio": round(value / baseline, 3), "baseline_is": "reading the same text alone",
        "note": f"{PUSHES} pushes of {CARDS * STEPS} samples, one process; asked for: {WANTED:.0f}",
    }  # fmt: skip


def _measure() -> dict[str, float]:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from django.utils import timezone

    from procurement.live_samples import read_samples
    from procurement.services.live import push_samples
    from tests.procurement.services import test_live

    opened = test_live.feed(test_live.b.shop())
    test_live.started(timedelta(hours=30))
    spent = {"push": 0.0, "read": 0.0, "taken": 0.0}
    for n in range(PUSHES):
        start = timezone.now() - timedelta(hours=29) + timedelta(seconds=n * STEPS * 30)
        body = test_live.stretch(start, (STEPS - 1) * 30, cards=CARDS)
        begin = time.perf_counter()
        spent["taken"] += push_samples(feed=opened, body=body)["taken"]
        spent["push"] += time.perf_counter() - begin
        begin = time.perf_counter()
        read_samples(body, now=timezone.now(), offset=timedelta(0))
        spent["read"] += time.perf_counter() - begin
    if spent["taken"] != PUSHES * CARDS * STEPS:
        raise RuntimeError(f"not all samples were taken: {spent['taken']:.0f}")
    return spent


BENCHMARKS = {"live_samples_per_second": live_samples_per_second}

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    print(json.dumps(_measure()), flush=True)
