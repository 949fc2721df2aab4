"""Celery: background work and the clock. Tasks take ids, are safe to repeat, and the database row is the truth."""

import os

from celery import Celery
from celery.schedules import crontab
from celery.signals import setup_logging, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("headroom")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def use_django_logging(**kwargs: object) -> None:
    """Keep Celery from replacing our log configuration."""
    import logging.config

    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@worker_ready.connect  # type: ignore[untyped-decorator]
def show_life(**kwargs: object) -> None:
    """The first heartbeat at once, so that /readyz need not wait for beat's first tick."""
    app.send_task("core.tasks.heartbeat")


# Every entry may run twice or late without harm: each task checks the database first.
app.conf.beat_schedule = {
    "heartbeat": {"task": "core.tasks.heartbeat", "schedule": 30.0},
    "sweep-stuck-jobs": {"task": "core.tasks.sweep_jobs", "schedule": 20.0},
    "ensure-reviews": {"task": "planning.tasks.ensure_reviews", "schedule": 60.0},
    "outdate-studies": {"task": "planning.tasks.outdate_studies", "schedule": 600.0},
    "freeze-ended-quarters": {"task": "procurement.tasks.freeze_ended_quarters", "schedule": 600.0},
    "pull-telemetry": {"task": "planning.tasks.pull_due_sources", "schedule": 300.0},
    "look-back": {"task": "planning.tasks.look_back", "schedule": 600.0},
    "ask-for-plans": {"task": "planning.tasks.ask_for_plans", "schedule": crontab(minute=15)},
    "learn-from-outcomes": {
        "task": "planning.tasks.learn_from_outcomes",
        "schedule": crontab(hour=4, minute=20),
    },
    "drop-old-samples": {
        "task": "planning.tasks.drop_old_samples",
        "schedule": crontab(hour=3, minute=10),
    },
    "sweep-files": {"task": "core.tasks.sweep_files", "schedule": crontab(hour=3, minute=50)},
    "forget-keys": {"task": "core.tasks.forget_keys", "schedule": crontab(hour=3, minute=55)},
    "send-outbox": {"task": "core.tasks.send_outbox", "schedule": 60.0},
    "close-due-rfqs": {"task": "procurement.tasks.close_due_rfqs", "schedule": 60.0},
    "prove-ledger": {"task": "planning.tasks.prove_ledger", "schedule": crontab(hour=2, minute=10)},
    "revalue-budgets": {
        "task": "planning.tasks.revalue_budgets",
        "schedule": crontab(hour=1, minute=50),
    },
    "watch-live-burn-ins": {"task": "procurement.tasks.watch_live_burn_ins", "schedule": 60.0},
    "remind-of-ends": {
        "task": "procurement.tasks.remind_of_ends",
        "schedule": crontab(hour=1, minute=40),
    },
    "check-evidence": {
        "task": "procurement.tasks.check_evidence_files",
        "schedule": crontab(hour=3, minute=30),
    },
    "escalate-silence": {"task": "planning.tasks.escalate_silence", "schedule": 900.0},
    "watch-allocations": {
        "task": "planning.tasks.watch_allocations",
        "schedule": crontab(hour=1, minute=40),
    },
    "expire-reservations": {
        "task": "planning.tasks.expire_reservations",
        "schedule": crontab(hour=2, minute=20),
    },
}
