"""The running product by its API, and with its worker killed in mid-study."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from datetime import date, timedelta
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import Product

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SECONDS = 180  # a lost worker is noticed after 45 s and swept every 20 s
WORKLOAD = {"gpu_hours": 20000, "accelerators": 8, "accelerator": "nvidia-h100-sxm5-80gb"}
TRAINING = {"model": "llama-3.1-8b"}


class Api:
    """One person's token."""

    def __init__(self, product: Product, email: str) -> None:
        self.base = product.url
        self.token = product.manage("drf_create_token", email).split()[2]

    def __call__(self, path: str, body: dict[str, Any] | None = None, **headers: str) -> Any:
        request = urllib.request.Request(
            f"{self.base}/api/v1/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Token {self.token}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.code} {error.read().decode()}") from error

    def content(self, path: str) -> bytes:
        """What is served at `path` as it is."""
        request = urllib.request.Request(
            f"{self.base}/api/v1/{path}", headers={"Authorization": f"Token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            content: bytes = answer.read()
        return content

    def file(self, kind: str, workload: dict[str, Any]) -> int:
        """A draft of the same need that the browser's walk files. Returns the request's id."""
        filed = self(
            "requests/",
            {
                "team": "foundation", "kind": kind, "title": "8 × H100 by API", "workload": workload,
                "need_by": (date.today() + timedelta(days=400)).isoformat(), "duration_days": 1095,
                "data_residence": "organisation", "justification": "Fine-tunes our models daily.",
            },
        )  # fmt: skip
        return int(filed["id"])

    def wait(self, study: int) -> Any:
        """Poll until the study ends."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            polled = self(f"studies/{study}/")
            if polled["status"] != "running":
                return polled
            time.sleep(0.5)
        raise AssertionError(f"study {study} did not end: {polled['percent']} %")


@pytest.fixture(scope="module")
def lin(product: Product) -> Api:
    return Api(product, "lin@demo.example")


def test_a_request_filed_and_its_study_polled(lin):
    pk = lin.file("gpu_hours", WORKLOAD)
    study = lin.wait(lin(f"requests/{pk}/studies/", {})["id"])
    assert study["status"] == "ready", study
    plans = [(plan["kind"], plan["cards"], plan["key"]) for plan in study["result"]["plans"]]
    bought = [key for kind, cards, key in plans if (kind, cards) == ("purchase", 8)]
    assert bought, plans
    lin(f"studies/{study['id']}/choose/", {"plan_key": bought[0]})
    request = lin(f"requests/{pk}/")
    assert request["current"]["plan"]["plan_key"] == bought[0]


def workers(product: Product) -> list[psutil.Process]:
    """The worker and the processes it forked, not the runner that starts it again."""
    found = []
    for process in psutil.Process(product.process.pid).children(recursive=True):
        words = {part.rsplit("/", 1)[-1] for part in process.cmdline()}
        if {"celery", "worker"} <= words and "keep" not in words:
            found.append(process)
    return found


def kill_in_the_middle(product: Product, lin: Api, study: int) -> bool:
    """Kill -9 every worker process as soon as `study` has begun. False when it was quicker than we."""
    doomed = workers(product)
    assert doomed, "there is a worker to kill"
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        polled = lin(f"studies/{study}/")
        if polled["status"] != "running":
            return False
        if polled["percent"]:
            break
    for process in doomed:
        process.kill()
    psutil.wait_procs(doomed, timeout=10)
    return bool(lin(f"studies/{study}/")["status"] == "running")


def test_a_worker_killed_in_mid_study(product, lin):
    for tokens in (2e10, 3e10, 4e10, 5e10, 6e10):
        pk = lin.file("pretraining", TRAINING | {"tokens": tokens})
        study = lin(f"requests/{pk}/studies/", {})["id"]
        if kill_in_the_middle(product, lin, study):
            break
    else:
        raise AssertionError("no worker could be killed in the middle of a study")
    done = lin.wait(study)
    assert done["status"] == "ready", done
    assert done["result"]["plans"]
    ended = lin(f"audit/?text={study}&action=study.finished")["results"]
    assert [row["object_id"] for row in ended].count(str(study)) == 1, ended
