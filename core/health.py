"""/healthz: this process answers. /readyz: what it leans on answers too."""

from __future__ import annotations

from datetime import timedelta

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone

from core.models import Heartbeat

WORKER_SILENCE = timedelta(seconds=120)


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """The process is up."""
    return JsonResponse({"status": "ok"})


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """Database, Redis and a worker answer; 503 names what does not."""
    checks = {"database": _database(), "redis": _redis()}
    checks["worker"] = _worker() if checks["database"] == "ok" else "unknown: database"
    ready = all(value == "ok" for value in checks.values())
    return JsonResponse(
        {"status": "ok" if ready else "not ready", "checks": checks}, status=200 if ready else 503
    )


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def _redis() -> str:
    try:
        client = redis.Redis.from_url(
            settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2
        )
        client.ping()
        client.close()
    except redis.RedisError as error:
        return f"failed: {type(error).__name__}"
    return "ok"


def _worker() -> str:
    beat = Heartbeat.objects.filter(name="worker").first()
    if beat is None:
        return "no heartbeat yet"
    silence = timezone.now() - beat.at
    if silence > WORKER_SILENCE:
        return f"silent for {int(silence.total_seconds())} s"
    return "ok"
