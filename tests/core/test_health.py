import pytest
from django.utils import timezone

from core.health import WORKER_SILENCE
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
