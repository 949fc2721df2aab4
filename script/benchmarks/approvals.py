"""Benchmark of approvals: 200 at once in four server processes, against a budget that covers 100. Needs PostgreSQL.

It makes a database of its own beside the one that DATABASE_URL names (or beside `postgres` here) and drops it.
This file is also what its child processes run: `approvals.py prepare | work | alone | check`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

APPROVALS, COVERED, AMOUNT = 200, 100, 100
WORKERS, THREADS = 4, 4  # four processes of a server, with the threads that each has
WARM = 2  # approvals by each thread before the clock starts: imports, connections, prepared plans
SECONDS_WANTED = 2.0
LOCAL = "postgres://postgres@127.0.0.1:5432/postgres"
NOWHERE = float("nan")


def approvals_p95() -> dict[str, float | str]:
    """Seconds from the common start until 95 % of 200 approvals and refusals are answered."""
    import psycopg

    given = os.environ.get("DATABASE_URL", "")
    server = given if given.startswith("postgres") else LOCAL
    name = f"headroom_bench_{os.getpid()}"
    try:
        connection = psycopg.connect(server, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        return {
            "value": NOWHERE, "unit": "s", "baseline": NOWHERE, "ratio": NOWHERE,
            "note": f"needs PostgreSQL; none answers at {urlsplit(server).hostname} (DATABASE_URL): {error}".strip(),
        }  # fmt: skip
    with connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            return _measured(urlunsplit(urlsplit(server)._replace(path=f"/{name}")))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _measured(database: str) -> dict[str, float | str]:
    steps = json.loads(_run("prepare", database))
    alone = json.loads(_run("alone", database, steps["alone"]))
    share = [steps["race"][n::WORKERS] for n in range(WORKERS)]
    warm = [steps["warm"][n::WORKERS] for n in range(WORKERS)]
    workers = [_start("work", database) for _ in range(WORKERS)]
    for worker, race, before in zip(workers, share, warm, strict=True):
        _say(worker, {"race": race, "warm": before})
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()  # it says that it is warm
    begin = time.monotonic() + 0.2
    for worker in workers:
        _say(worker, begin)
    answers = [json.loads(worker.communicate()[0]) for worker in workers]
    results = [tuple(result) for answer in answers for result in answer["results"]]
    codes = Counter(code for _seconds, code in results)
    if codes != {"ok": COVERED, "over_budget": APPROVALS - COVERED}:
        raise RuntimeError(f"{COVERED} were to be approved and the rest refused: {codes}")
    _run("check", database)
    p95, baseline = _p95(results), _p95(alone["results"])
    cores = sum(answer["cpu"] for answer in answers)
    return {
        "value": round(p95, 3), "unit": "s", "baseline": round(baseline, 3), "ratio": round(p95 / baseline, 3),
        "baseline_is": "the same for 200 others, one after the other in one process",
        "note": f"{WORKERS} processes × {THREADS} threads: median {_quantile(results, 0.5):.2f} s, last "
        f"{_quantile(results, 1):.2f} s, {cores:.2f} s of cores beside the database's; asked for: {SECONDS_WANTED} s",
    }  # fmt: skip


def _p95(results: list[Any]) -> float:
    return _quantile(results, 0.95)


def _quantile(results: list[Any], share: float) -> float:
    seconds = sorted(result[0] for result in results)
    return float(seconds[max(0, round(share * len(seconds)) - 1)])


def _start(part: str, database: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DATABASE_URL": database, "EMBEDDED": "1"}
    return subprocess.Popen(
        [sys.executable, __file__, part], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def _say(worker: subprocess.Popen[str], value: Any) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(value) + "\n")
    worker.stdin.flush()


def _run(part: str, database: str, value: Any = None) -> str:
    with _start(part, database) as worker:
        out, _err = worker.communicate(json.dumps(value) + "\n")
    if worker.returncode:
        raise RuntimeError(f"{part} ended with {worker.returncode}")
    return out


# --- what the child processes do ---------------------------------------------------------------------------------


def _prepare() -> Any:
    """Tables, people, two teams with money for 100 and 200 requests in review each; and some to warm up with."""
    from dataclasses import replace

    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from core.roles import Role
    from tests.factories import TeamFactory
    from tests.planning import builders

    world = builders.world()

    def team(requests: int, covered: int) -> list[Any]:
        own = TeamFactory()
        w = replace(world, team=own, requester=builders.person(Role.REQUESTER, own))
        builders.fund(w, str(covered * AMOUNT))
        rows = builders.many_in_review(w, requests, str(AMOUNT))
        steps = [(row.current.steps.get(), world.cto.pk) for row in rows]
        return [(step.pk, step.content_hash, by) for step, by in steps]

    warm = WARM * WORKERS * THREADS
    return {
        "race": team(APPROVALS, COVERED),
        "alone": team(APPROVALS, COVERED),
        "warm": team(warm, warm),
    }


def _decide(step: tuple[int, str, int]) -> str:
    from core.errors import DomainError
    from core.models import User
    from planning.services import approvals

    pk, seen, by = step
    try:
        # a server reads who asks with each request
        approvals.decide(step_id=pk, decision="approve", by=User.objects.get(pk=by), seen_hash=seen)
    except DomainError as error:
        return error.code
    return "ok"


def _alone() -> Any:
    first, *steps = json.loads(sys.stdin.readline())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(_decide, first).result()
        return _answers(steps, pool, time.monotonic())


def _work() -> Any:
    given = json.loads(sys.stdin.readline())
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(_decide, given["warm"]))
        print("warm", flush=True)
        begin = json.loads(sys.stdin.readline())
        time.sleep(max(0.0, begin - time.monotonic()))
        return _answers(given["race"], pool, begin)


def _answers(steps: list[Any], pool: ThreadPoolExecutor, begin: float) -> dict[str, Any]:
    """(seconds from `begin`, outcome) of each, and the process's seconds of a core."""

    def one(step: Any) -> tuple[float, str]:
        code = _decide(step)
        return time.monotonic() - begin, code

    spent = time.process_time()
    results = list(pool.map(one, steps))
    return {"results": results, "cpu": time.process_time() - spent}


def _check() -> Any:
    from planning.services.ledger_proof import prove_ledger

    wrong = prove_ledger()
    if wrong:
        raise RuntimeError(f"the ledger does not balance: {wrong}")
    return None


BENCHMARKS = {"approvals_p95": approvals_p95}

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    parts = {"prepare": _prepare, "work": _work, "alone": _alone, "check": _check}
    print(json.dumps(parts[sys.argv[1]]()), flush=True)
