"""Whether the background service answers, for probes and for people who wait for a job."""

from __future__ import annotations

import time
from datetime import timedelta

from django.utils import timezone

from core import redis_away
from core.messages import Message, msg
from core.models import Heartbeat, Job

WORKER_SILENCE = timedelta(seconds=120)
# A running job whose row has shown no sign of life for this long lost its worker; a live one beats in the background.
SILENCE = timedelta(seconds=45)
LOOK_AGAIN = 5.0  # [s]
_worker = (float("-inf"), False)  # when looked, on the monotonic clock, and whether one was there


def failed(error: Exception) -> str:
    """The kind only: texts of drivers name hosts and paths."""
    return f"failed: {type(error).__name__}"


def broker_state() -> str:
    """ "ok", or what is wrong with Redis."""
    error = redis_away.probe()
    return "ok" if error is None else failed(error)


def worker_state() -> str:
    """ "ok", or since when no worker has shown life. Raises DatabaseError when the database does not answer."""
    beat = Heartbeat.objects.filter(name="worker").first()
    if beat is None:
        return "no heartbeat yet"
    silence = timezone.now() - beat.at
    if silence > WORKER_SILENCE:
        return f"silent for {int(silence.total_seconds())} s"
    return "ok"


def away() -> bool:
    """Whether queued work finds nobody. Asked again after a few seconds: a list of jobs asks once per row."""
    global _worker
    if not redis_away.answers():
        return True
    now = time.monotonic()
    if now - _worker[0] >= LOOK_AGAIN:
        _worker = (now, worker_state() == "ok")
    return not _worker[1]


def stage_of(job: Job) -> Message | None:
    """Where a job stands: its own stage; that it is kept, while nobody is there to work on it."""
    stage = Message.from_json(job.stage) if job.stage else None
    if job.status == Job.Status.QUEUED:
        unattended = away()
    elif job.status == Job.Status.RUNNING and job.beat_at:
        unattended = timezone.now() - job.beat_at > SILENCE
    else:
        unattended = False
    if not unattended:
        return stage
    return msg(
        "The background service does not answer. Nothing is lost: this starts by itself within minutes of its return."
    )
