"""/healthz: this process answers. /readyz: what it leans on answers too.

Answered by a middleware before all others: those read sessions and settings, which is what may be broken.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse

from core.background import broker_state, failed, worker_state

ROOM = 256 * 1024  # [B] what must fit on the disk for the data folder to count as writable


class HealthMiddleware:
    """Answers the probes; everything else goes on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/healthz":
            return _answer({"status": "ok"}, 200)
        if request.path == "/readyz":
            return readyz()
        return self.get_response(request)


def _answer(body: dict[str, object], status: int) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def readyz() -> JsonResponse:
    """Database, Redis and a worker answer and the disk takes a file; 503 names what does not."""
    checks = {**_database_and_worker(), "redis": broker_state(), "disk": _disk()}
    ready = all(value == "ok" for value in checks.values())
    return _answer(
        {"status": "ok" if ready else "not ready", "checks": checks}, 200 if ready else 503
    )


def _database_and_worker() -> dict[str, str]:
    try:
        return {"database": "ok", "worker": worker_state()}
    except (DatabaseError, InterfaceError) as error:
        return {"database": failed(error), "worker": "unknown: database"}


def _disk() -> str:
    """Whether the data folder takes a small file: quotas and read-only mounts show only in a write."""
    try:
        with tempfile.TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(b"\0" * ROOM)
            file.flush()
    except OSError as error:
        return f"failed: {error.strerror or type(error).__name__}"
    return "ok"
