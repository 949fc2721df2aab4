import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from core.background import WORKER_SILENCE
from core.models import Heartbeat

pytestmark = pytest.mark.django_db


def test_healthz_needs_nobody(client):
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readyz_names_what_does_not_answer(client, settings):
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    Heartbeat.objects.create(name="worker", at=timezone.now() - 2 * WORKER_SILENCE)
    response = client.get("/readyz")
    checks = response.json()["checks"]
    assert response.status_code == 503
    assert checks["database"] == "ok"
    assert checks["redis"].startswith("failed")
    assert checks["worker"].startswith("silent")


def test_a_stranger_is_sent_to_the_log_in(client):
    for path in ("/", "/audit/", "/notices/"):
        assert client.get(path).status_code == 302
    assert client.get("/api/v1/me/").status_code in {401, 403}


def test_readyz_names_a_full_disk(client, settings):
    settings.DATA_DIR = "/proc/1/nowhere"  # no file can be made there
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["disk"].startswith("failed")


def test_probes_need_no_database(client, monkeypatch):
    def refuse(*args, **kwargs):
        raise OperationalError("connection refused")

    monkeypatch.setattr(BaseDatabaseWrapper, "cursor", refuse)
    client.cookies["sessionid"] = "whatever"
    assert client.get("/healthz").status_code == 200
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] == "failed: OperationalError"
