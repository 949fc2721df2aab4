"""Background jobs: run once, report, cancel, survive a dead worker."""

from datetime import timedelta

import pytest
import structlog
from django.db import OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from core import jobs
from core.errors import InputError
from core.messages import msg
from core.models import Job

pytestmark = pytest.mark.django_db
RAN: list[str] = []


@jobs.job_task
def note(job, progress, word):
    progress(50, msg("Writing %(word)s", word=word))
    if word == "bad":
        raise InputError("word", msg("%(word)s is refused", word=word), value=word)
    if word == "defect":
        raise RuntimeError("boom")
    RAN.append(word)


PATH = f"{__name__}.note"


@pytest.fixture(autouse=True)
def _fresh():
    RAN.clear()


def make(word, **fields):
    return Job.objects.create(key=f"note:{word}", task=PATH, args=[word], **fields)


def test_a_job_runs_once_however_often_it_is_delivered():
    job = make("one")
    for _ in range(3):
        note(str(job.pk))
    job.refresh_from_db()
    assert RAN == ["one"]
    assert (job.status, job.percent, job.attempts) == (Job.Status.DONE, 100, 1)


def test_the_same_key_is_the_same_job(make_user):
    first = jobs.submit(PATH, "x", key="note:x", owner=make_user())
    assert jobs.submit(PATH, "x", key="note:x").pk == first.pk


def test_a_domain_error_is_kept_for_the_user():
    job = make("bad")
    note(str(job.pk))
    job.refresh_from_db()
    assert job.status == Job.Status.FAILED
    assert job.error["params"] == {"word": "bad"}


def test_a_defect_is_named_and_still_raised_for_the_log():
    job = make("defect")
    with pytest.raises(RuntimeError):
        note(str(job.pk))
    job.refresh_from_db()
    assert job.status == Job.Status.FAILED
    assert job.error["params"]["kind"] == "RuntimeError"


def test_cancel_stops_at_the_next_stage(make_user):
    job = make("late", cancel_requested=True)
    note(str(job.pk))
    job.refresh_from_db()
    assert job.status == Job.Status.CANCELLED
    assert RAN == []


def test_a_queued_job_is_cancelled_at_once(make_user):
    job = make("never")
    jobs.cancel(job, by=make_user())
    note(str(job.pk))
    job.refresh_from_db()
    assert job.status == Job.Status.CANCELLED
    assert RAN == []


def test_a_running_job_is_not_taken_by_a_second_worker_while_it_shows_life():
    job = make("busy", status=Job.Status.RUNNING, beat_at=timezone.now(), attempts=1)
    note(str(job.pk))
    assert RAN == []


def test_a_job_whose_worker_died_is_taken_over():
    silent = timezone.now() - jobs.SILENCE - timedelta(seconds=1)
    job = make("dead", status=Job.Status.RUNNING, beat_at=silent, attempts=1)
    note(str(job.pk))
    job.refresh_from_db()
    assert RAN == ["dead"]
    assert (job.status, job.attempts) == (Job.Status.DONE, 2)


def locked(*args, **kwargs):
    raise OperationalError("database is locked")


@pytest.mark.django_db(transaction=True)
def test_a_beat_that_the_store_refuses_is_one_beat_and_not_the_end(monkeypatch):
    job = make("long", status=Job.Status.RUNNING, beat_at=timezone.now(), attempts=1)
    begun, calls, update = job.beat_at, [], QuerySet.update

    def hiccup(self, **fields):
        calls.append(fields)
        if len(calls) == 1:
            locked()
        return update(self, **fields)

    class Stop:
        """Three beats, then the end."""

        waits = 0

        def wait(self, seconds):
            self.waits += 1
            return self.waits > 3

    monkeypatch.setattr(QuerySet, "update", hiccup)
    with structlog.testing.capture_logs() as logs:
        jobs._beat(job.pk, Stop())
    job.refresh_from_db()
    assert len(calls) == 3
    assert job.beat_at > begun
    assert [entry["event"] for entry in logs] == ["job.beat_missed"]


@pytest.mark.django_db(transaction=True)
def test_a_stage_that_the_store_refuses_does_not_end_the_work(monkeypatch):
    job = make("long", status=Job.Status.RUNNING, beat_at=timezone.now(), attempts=1)
    progress = jobs.Progress(job)
    monkeypatch.setattr(QuerySet, "update", locked)
    with structlog.testing.capture_logs() as logs:
        progress(50, msg("Writing %(word)s", word="x"))
    assert [entry["event"] for entry in logs] == ["job.stage_missed"]
    with pytest.raises(OperationalError), transaction.atomic():
        progress(60, msg("Writing %(word)s", word="x"))


def test_the_sweeper_gives_up_after_a_few_deaths_and_says_so():
    silent = timezone.now() - jobs.SILENCE - timedelta(seconds=1)
    job = make("cursed", status=Job.Status.RUNNING, beat_at=silent, attempts=jobs.MAX_ATTEMPTS)
    jobs.sweep()
    job.refresh_from_db()
    assert job.status == Job.Status.FAILED
    assert job.error["params"]["n"] == jobs.MAX_ATTEMPTS


def test_a_failed_job_can_be_tried_again_under_its_key(make_user):
    job = make("bad")
    note(str(job.pk))
    Job.objects.filter(pk=job.pk).update(args=["good"])
    jobs.retry(job, owner=make_user())
    note(str(job.pk))
    job.refresh_from_db()
    assert (RAN, job.status) == (["good"], Job.Status.DONE)


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_costs_no_committed_work(settings):
    """Redis down: the job row stays queued and the sweeper hands it out later; the user sees no error."""
    from celery import current_app

    before = current_app.conf.broker_url, current_app.conf.broker_transport_options
    current_app.conf.broker_url = "redis+socket:///nowhere/redis.sock"
    try:
        job = jobs.submit(PATH, "later", key="note:later")
    finally:
        current_app.conf.broker_url = before[0]
    job.refresh_from_db()
    assert job.status == Job.Status.QUEUED


def test_before_the_broker_starts_nothing_is_tried_and_nothing_alarms(
    settings, caplog, django_capture_on_commit_callbacks
):
    settings.BROKER_LATER = True
    with django_capture_on_commit_callbacks(execute=True):
        jobs.submit(PATH, "later", key="note:later")
    assert (
        Job.objects.get(key="note:later").status == Job.Status.QUEUED
    )  # the sweeper takes it from here
    assert RAN == []
    assert caplog.records == []
