"""Background work: queue by dotted path after commit, one row per unique key, progress, cancel, and a sweeper.

A task decorated with :func:`job_task` is safe to deliver twice: the first delivery claims the row, a second one finds
it claimed or done and leaves. A worker that dies leaves a row without a sign of life; the sweeper queues it again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import structlog
from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error as DatabaseProblem
from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.module_loading import import_string
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from core import outages, redis_away
from core.audit import act
from core.background import SILENCE
from core.errors import DomainError, InvalidTransition
from core.messages import Message, msg
from core.models import Job, User

log = structlog.get_logger(__name__)

BEAT_SECONDS = 10.0  # well within background.SILENCE
# A queued job is handed out again after this long, in case the broker lost it.
QUEUE_SILENCE = timedelta(minutes=3)
MAX_ATTEMPTS = 4


class JobCancelled(Exception):
    """The user asked to stop; raised at the next stage."""


def enqueue(path: str, *args: Any) -> None:
    """Send the task at dotted `path` after the current transaction commits. Arguments are ids."""
    task = import_string(path)
    transaction.on_commit(functools.partial(_send, task, args))


def _send(task: Any, args: tuple[Any, ...]) -> None:
    """Hand a task to the broker. What was committed stays committed when the broker is away: the sweeper hands a queued
    job out again, and the schedule repeats the rest. A bulk step does not wait for the time-out once per row."""
    if settings.BROKER_LATER:
        return
    if redis_away.is_away():
        log.info("task.left_to_the_sweeper", task=task.name, args=args)
        return
    try:
        task.apply_async(args, retry=False)
    except (OperationalError, RedisError) as error:
        redis_away.note_failure("queue", error)
        log.error("task.not_queued", task=task.name, args=args, error=str(error))


def submit(path: str, *args: Any, key: str, owner: User | None = None) -> Job:
    """Queue a job once per `key`. The same key again returns the row that is there."""
    job, created = Job.objects.get_or_create(
        key=key, defaults={"task": path, "args": list(args), "owner": owner}
    )
    if created:
        enqueue(path, str(job.pk))
    return job


class Progress:
    """Handed to the job's function: reports stages and notices a cancel."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, percent: int, stage: Message) -> None:
        """Report `percent` (0-100) and the stage. Raises JobCancelled when the user asked to stop.

        A stage that cannot be written for a moment is left out: the work is worth more than the news of it. Inside a
        transaction the error is the caller's, whose transaction it broke.
        """
        try:
            is_cancelled = self._report(percent, stage)
        except DatabaseProblem as error:
            if connection.in_atomic_block:
                raise
            log.warning("job.stage_missed", job=str(self.job.pk), error=str(error))
            connection.close_if_unusable_or_obsolete()
            return
        if is_cancelled:
            raise JobCancelled

    def _report(self, percent: int, stage: Message) -> bool:
        row = Job.objects.filter(pk=self.job.pk)
        row.update(percent=percent, stage=stage.to_json(), beat_at=timezone.now())
        return row.filter(cancel_requested=True).exists()


def _claim(job_id: str) -> Job | None:
    now = timezone.now()
    stale = Q(status=Job.Status.RUNNING, beat_at__lt=now - SILENCE)
    claimed = (
        Job.objects.filter(pk=job_id)
        .filter(Q(status=Job.Status.QUEUED) | stale)
        .update(
            status=Job.Status.RUNNING,
            started_at=now,
            beat_at=now,
            attempts=F("attempts") + 1,
            percent=0,
            error={},
        )
    )
    return Job.objects.get(pk=job_id) if claimed else None


def _beat(job_id: Any, stop: threading.Event) -> None:
    """Keep the row alive while the function works; dies with the process, which is the point.

    A store that is locked or away for a moment costs one beat, not the life of a job that works on.
    """
    try:
        while not stop.wait(BEAT_SECONDS):
            try:
                Job.objects.filter(pk=job_id, status=Job.Status.RUNNING).update(
                    beat_at=timezone.now()
                )
            except DatabaseProblem as error:
                log.warning("job.beat_missed", job=str(job_id), error=str(error))
                connection.close_if_unusable_or_obsolete()  # a dead connection is made anew at the next beat
    finally:
        connection.close()


def _finish(job: Job, status: str, **fields: Any) -> None:
    Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING).update(
        status=status, finished_at=timezone.now(), **fields
    )


def job_task(function: Callable[..., None]) -> Any:
    """Make `function(job, progress, *args)` a Celery task that takes a Job id and runs each job once."""

    @shared_task(  # type: ignore[untyped-decorator]
        name=f"{function.__module__}.{function.__name__}",
        acks_late=True,
        reject_on_worker_lost=True,
    )
    @functools.wraps(function)
    def run(job_id: str) -> None:
        job = _claim(job_id)
        if job is None:
            log.info("job.already_taken", job=job_id)
            return
        token = act.set(f"job:{job_id}")
        stop = threading.Event()
        threading.Thread(target=_beat, args=(job.pk, stop), daemon=True).start()
        try:
            function(job, Progress(job), *job.args)
        except JobCancelled:
            _finish(job, Job.Status.CANCELLED)
        except DomainError as error:
            _finish(job, Job.Status.FAILED, error=error.message.to_json())
        except SoftTimeLimitExceeded:
            _finish(
                job,
                Job.Status.FAILED,
                error=msg(
                    "This took longer than the limit and was stopped. Try a smaller input."
                ).to_json(),
            )
        except Exception as error:
            # A full disk or a defect: keep the row readable for the user, then let Celery log the traceback. Where not
            # even this can be written, the row falls silent and the sweeper starts it again.
            refusal = outages.logged(error)
            said = (
                refusal.message
                if refusal
                else msg(
                    "An internal error stopped this (%(kind)s). Report it with the id %(job)s.",
                    kind=type(error).__name__,
                    job=str(job.pk),
                )
            )
            _finish(job, Job.Status.FAILED, error=said.to_json())
            raise
        else:
            _finish(job, Job.Status.DONE, percent=100)
        finally:
            stop.set()
            act.reset(token)

    return run


def run_here(job: Job) -> None:
    """Run a queued job now, in this process and inside the caller's transaction; its failure is the caller's.

    For commands that go on with the result. Without a sign of life while it runs: nobody else sees the row. A job that
    is done stays as it is; raises InvalidTransition for one that runs elsewhere, failed or was cancelled.
    """
    taken = _claim(str(job.pk))
    if taken is None:
        job.refresh_from_db()
        if job.status != Job.Status.DONE:
            raise InvalidTransition(
                msg(
                    "The job %(key)s cannot be done here: its state is %(state)s",
                    key=job.key,
                    state=str(job.status),
                )
            )
        log.info("job.done_already", job=str(job.pk), key=job.key)
        return
    log.info("job.run_here", job=str(taken.pk), key=taken.key)
    import_string(taken.task).run.__wrapped__(taken, Progress(taken), *taken.args)
    _finish(taken, Job.Status.DONE, percent=100)


def cancel(job: Job, *, by: User) -> None:
    """Ask a job to stop; it does at its next stage. A queued one stops at once."""
    with transaction.atomic():
        Job.objects.filter(pk=job.pk, status=Job.Status.QUEUED).update(
            status=Job.Status.CANCELLED, finished_at=timezone.now()
        )
        Job.objects.filter(pk=job.pk, status=Job.Status.RUNNING).update(cancel_requested=True)
    log.info("job.cancel_requested", job=str(job.pk), by=by.pk)


def retry(job: Job, *, owner: User | None) -> Job:
    """Put a failed or cancelled job back in the queue, under the same key."""
    changed = Job.objects.filter(
        pk=job.pk, status__in=[Job.Status.FAILED, Job.Status.CANCELLED]
    ).update(
        status=Job.Status.QUEUED,
        cancel_requested=False,
        attempts=0,
        percent=0,
        error={},
        finished_at=None,
        owner=owner,
        created_at=timezone.now(),
    )
    if changed:
        enqueue(job.task, str(job.pk))
    job.refresh_from_db()
    return job


def sweep() -> int:
    """Queue again what lost its worker or its message; give up after MAX_ATTEMPTS and say so. Returns how many."""
    now = timezone.now()
    lost = Job.objects.filter(
        Q(status=Job.Status.RUNNING, beat_at__lt=now - SILENCE)
        | Q(status=Job.Status.QUEUED, created_at__lt=now - QUEUE_SILENCE)
    )
    count = 0
    for job in lost:
        if job.attempts >= MAX_ATTEMPTS:
            Job.objects.filter(pk=job.pk, attempts=job.attempts).update(
                status=Job.Status.FAILED,
                finished_at=now,
                error=msg(
                    "This was started %(n)s times and its worker died each time.", n=job.attempts
                ).to_json(),
            )
            log.error("job.given_up", job=str(job.pk), key=job.key)
            continue
        _send(import_string(job.task), (str(job.pk),))
        count += 1
    return count


__all__ = [
    "JobCancelled",
    "Progress",
    "cancel",
    "enqueue",
    "job_task",
    "retry",
    "run_here",
    "submit",
    "sweep",
]
