"""The demo's clock, and the demo on days on which dates go wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from core.errors import InvalidTransition
from core.jobs import run_here
from core.models import AuditEntry, Job
from procurement.demo.clock import standing_at
from procurement.management.commands.load_demo_history import load
from tests.procurement.test_demo_history import check_what_is_there


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    "now",
    [
        datetime(2026, 12, 31, 16, 3, tzinfo=UTC),  # three minutes into 1 January where the demo is
        datetime(2028, 2, 29, 4, 0, tzinfo=UTC),
        datetime(2027, 3, 31, 15, 58, tzinfo=UTC),  # the last minutes of a quarter
    ],
    ids=str,
)
def test_any_day_of_the_year(now):
    load(now)
    with standing_at(now):
        check_what_is_there(now)


@pytest.mark.django_db
def test_the_clock_stands_still_only_inside(organisation):
    moment = datetime(2026, 3, 1, 9, tzinfo=UTC)
    with standing_at(moment):
        assert timezone.now() == moment
        assert AuditEntry().at == moment, "defaults of fields hold the function itself"
        assert isinstance(datetime.now(UTC), timezone.datetime)
    assert timezone.now() > moment + timedelta(days=30)


@pytest.mark.django_db
def test_a_job_run_here_is_done_once(organisation):
    job = Job.objects.create(key="x", task="planning.tasks.run_study", args=[0], status="done")
    run_here(job)  # done already: nothing happens, though there is no such study
    job.refresh_from_db()
    assert job.attempts == 0
    for status in ("running", "failed", "cancelled"):
        Job.objects.update(status=status, beat_at=timezone.now())
        with pytest.raises(
            InvalidTransition, match=status
        ):  # the caller would go on without a result
            run_here(job)
