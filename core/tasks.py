"""Housekeeping that every app relies on. Entry points only: each calls one function."""

import structlog
from celery import shared_task
from django.utils import timezone

from core import jobs, once, outbox
from core.files import sweep_orphans
from core.models import Heartbeat

log = structlog.get_logger(__name__)


@shared_task  # type: ignore[untyped-decorator]
def heartbeat() -> None:
    """Show that beat sends and a worker receives; /readyz looks at it."""
    Heartbeat.objects.update_or_create(name="worker", defaults={"at": timezone.now()})


@shared_task  # type: ignore[untyped-decorator]
def sweep_jobs() -> None:
    """Queue again what lost its worker."""
    count = jobs.sweep()
    if count:
        log.warning("jobs.swept", count=count)


@shared_task  # type: ignore[untyped-decorator]
def send_outbox() -> None:
    """Mail the digests that are due."""
    outbox.send_due()


@shared_task  # type: ignore[untyped-decorator]
def sweep_files() -> None:
    """Delete what refused uploads left behind."""
    count = sweep_orphans()
    if count:
        log.info("files.swept", count=count)


@shared_task  # type: ignore[untyped-decorator]
def forget_keys() -> None:
    """Drop one-time tokens and idempotency keys that nobody will send again."""
    count = once.forget_old()
    if count:
        log.info("keys.forgotten", count=count)
