"""Capacity reviews on the running product: beat twice, a worker killed while it draws a pack, Redis started anew."""

from __future__ import annotations

import contextlib
import email
import io
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from email.message import Message
from typing import Any

import psutil
import pytest
from pypdf import PdfReader

from tests.e2e.conftest import ROOT, Product, stop
from tests.e2e.test_processes import SECONDS, Api, workers

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def operations(product: Product) -> Api:
    return Api(product, "zhao@demo.example")


def waited(what: Any, why: str, seconds: float = SECONDS) -> Any:
    """The first true answer of `what`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.2)
    raise AssertionError(why)


def mails(product: Product) -> list[Message]:
    """Every mail that the product wrote."""
    found = []
    for path in sorted((product.data_dir / "mail").glob("*.log")):
        for part in path.read_bytes().split(b"\n" + b"-" * 79 + b"\n"):
            if part.strip():
                found.append(email.message_from_bytes(part))
    return found


def attached(product: Product, ending: str) -> Counter[tuple[str, str]]:
    """(recipient, file name) → how often it was mailed."""
    return Counter(
        (str(mail["To"]), str(part.get_filename()))
        for mail in mails(product)
        for part in mail.walk()
        if str(part.get_filename() or "").endswith(ending)
    )


@contextlib.contextmanager
def second_beat(product: Product) -> Iterator[None]:
    process = subprocess.Popen(
        [".venv/bin/celery", "-A", "config", "beat", "--loglevel", "WARNING", "--pidfile="],
        cwd=ROOT, env={**product.env, "SITE_URL": product.url}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
        assert process.poll() is None, "the second beat ended by itself"
    finally:
        stop(process)


def reviews_of(api: Api, team: str | None) -> list[Any]:
    rows: list[Any] = api("reviews/")["results"]
    return [row for row in rows if row["team"] == team]


def test_two_beats_make_one_review_and_one_mail_each(product, operations):
    with second_beat(product):
        operations("review-schedules/", {"team": "search", "at_hour": 3})
        waited(lambda: reviews_of(operations, "search"), "no review of the team was made")
        # Both schedulers go on for more than a minute: each sends the task that makes reviews again.
        until = time.monotonic() + 75
        while time.monotonic() < until:
            assert len(reviews_of(operations, "search")) == 1
            time.sleep(5)
        review = reviews_of(operations, "search")[0]
        waited(lambda: told(operations, review, "review.invited"), "nobody was invited")
    assert len(told(operations, review, "review.invited")) == 1
    # A digest may hold a mail back for a quarter of an hour; none goes twice.
    sent = {key: n for key, n in attached(product, ".ics").items() if "search" in key[1]}
    assert set(sent.values()) <= {1}, sent


def told(api: Api, review: Any, event: str) -> list[str]:
    """What the person was told of this event about the review."""
    return [
        notice["text"] for notice in api("notices/")["results"]
        if notice["event"].startswith(event) and notice["url"] == f"/reviews/{review['id']}/"
    ]  # fmt: skip


@pytest.fixture(scope="module")
def review(operations: Api) -> Any:
    """A team's review that beat made; each test here stands alone, in whatever order."""
    operations("review-schedules/", {"team": "foundation", "at_hour": 3})
    waited(lambda: reviews_of(operations, "foundation"), "no review of the team was made")
    return reviews_of(operations, "foundation")[0]


def report_files(api: Api, pk: int) -> list[Any]:
    snapshots = api(f"reviews/{pk}/")["snapshots"]
    newest = max(snapshots, key=lambda one: one["number"])
    return [report for report in newest["reports"] if report["sha256"]]


def frozen(api: Api, pk: int, reason: str) -> Any:
    review = api(f"reviews/{pk}/")
    return api(
        f"procurement/reviews/{pk}/freeze/",
        {"reason": reason},
        **{"If-Match": f'"{review["version"]}"'},
    )


def whole_pack(product: Product, api: Api, pk: int) -> None:
    """Both documents of the newest version are there, each once, whole."""
    # Work whose worker or broker was lost begins anew up to three minutes later, and then draws two documents.
    ready = waited(
        lambda: len(report_files(api, pk)) == 2 and report_files(api, pk), "no pack", 2 * SECONDS
    )
    for report in ready:
        data = api.content(f"reviews/{pk}/reports/{report['id']}/file/")
        assert data.rstrip().endswith(b"%%EOF")
        assert len(PdfReader(io.BytesIO(data)).pages) > 1
    waited(lambda: api(f"reviews/{pk}/")["status"] == "report_ready", "the review is not ready")


def test_a_worker_killed_while_it_draws_the_pack(product, operations, review):
    for attempt in range(10):
        snapshot = frozen(operations, review["id"], f"attempt {attempt}")
        doomed = workers(product)
        assert doomed, "there is a worker to kill"
        waited(lambda: drawing(operations, snapshot), "no worker began to draw")  # noqa: B023
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(doomed, timeout=10)
        if len(report_files(operations, review["id"])) < 2:
            break
    else:
        raise AssertionError("no worker could be killed in the middle of a pack")
    whole_pack(product, operations, review["id"])
    newest = max(one["number"] for one in operations(f"reviews/{review['id']}/")["snapshots"])
    found = told(operations, review, "review.report_made")
    assert len([text for text in found if re.search(rf"\b{newest}\b", text)]) == 1, found
    # A digest may hold the newest back for a quarter of an hour; nothing of this review is mailed twice.
    sent = {key: n for key, n in attached(product, ".pdf").items() if "foundation" in key[1]}
    assert set(sent.values()) <= {1}, sent


def drawing(api: Api, snapshot: Any) -> bool:
    """Whether a worker is at one of the documents now."""
    jobs = [api(f"jobs/{report['job']}/") for report in snapshot["reports"]]
    return any(job["status"] != "queued" for job in jobs)


def redis_of(product: Product) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(product.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # one of another kind may end meanwhile
            if process.name().startswith("redis-server"):
                found.append(process)
    return found


def test_redis_started_anew_loses_no_pack(product, operations, review):
    if os.environ.get("REDIS_URL"):
        pytest.skip("the Redis of the environment is not ours to stop")
    servers = redis_of(product)
    assert servers, "there is a Redis to kill"
    frozen(operations, review["id"], "before Redis goes")
    for process in servers:
        process.kill()
    psutil.wait_procs(servers, timeout=10)
    waited(lambda: redis_of(product), "Redis did not come back")
    whole_pack(product, operations, review["id"])
    assert len(reviews_of(operations, "foundation")) == 1
    assert len(told(operations, review, "review.invited")) == 1
    invited = {key: n for key, n in attached(product, ".ics").items() if "foundation" in key[1]}
    assert set(invited.values()) <= {1}, invited
