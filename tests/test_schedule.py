"""What the schedule sends, the workers know."""

from config.celery import app


def test_every_scheduled_task_is_registered():
    app.loader.import_default_modules()
    names = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert names
    assert names - set(app.tasks) == set()
