"""What the schedule sends, the workers know."""

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from config.celery import app
from config.schedule import OWN, ProductScheduler


def test_every_scheduled_task_is_registered():
    app.loader.import_default_modules()
    names = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert names
    assert names - set(app.tasks) == set()


@pytest.mark.django_db(
    transaction=True
)  # beat lets go of connections, which no open transaction bears
def test_the_database_holds_the_product_s_schedule_however_often_beat_starts():
    app.loader.import_default_modules()
    listed = app.conf.beat_schedule
    by_hand = PeriodicTask.objects.create(
        name="review-schedule:1", task="planning.tasks.make_scheduled_review", enabled=False,
        interval=IntervalSchedule.objects.create(every=1, period="days"),
    )  # fmt: skip
    PeriodicTask.objects.create(
        name="headroom.of-an-earlier-version", task="gone",
        interval=IntervalSchedule.objects.create(every=2, period="days"),
    )  # fmt: skip
    for _ in range(2):
        ProductScheduler(app=app).setup_schedule()
    rows = {row.name: row for row in PeriodicTask.objects.all()}
    assert set(rows) == {by_hand.name, *(f"{OWN}{name}" for name in listed)}
    for name, wanted in listed.items():
        row = rows[f"{OWN}{name}"]
        assert (row.task, row.enabled) == (wanted["task"], True)
        seconds = wanted["schedule"]
        if isinstance(seconds, float):
            assert row.interval.every == seconds
        else:
            assert row.crontab.schedule == seconds
    by_hand.refresh_from_db()
    assert not by_hand.enabled


def test_beat_reads_the_schedule_from_the_database():
    assert app.conf.beat_scheduler == "config.schedule:ProductScheduler"
