"""The schedules of capacity reviews, each with its entry in beat's schedule.

Beat makes a review when its quarter begins; the task that runs every minute makes one that was missed (beat was down,
the clock was set). Both end at the same constraint: one review a unit and quarter.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django_celery_beat.models import CrontabSchedule, PeriodicTask

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import Organisation, Team, User
from core.organisation import organisation
from core.policies import require
from core.stale import check_version
from core.transitions import lock
from planning.models.review_schedules import ReviewSchedule
from planning.review_policies import can_set_review_rules

FIELDS = ("active", "start_month", "meeting_after_days", "at_hour")
NAME = "review-schedule:"
TASK = "planning.tasks.make_scheduled_review"


def default_schedule() -> ReviewSchedule:
    """That of the whole organisation; made when there is none yet."""
    row, is_new = ReviewSchedule.objects.get_or_create(team=None)
    if is_new:
        _enter(row, organisation())
    return row


def active_schedules() -> list[ReviewSchedule]:
    """Every unit that holds reviews, the whole organisation first."""
    default_schedule()
    rows = ReviewSchedule.objects.filter(active=True).select_related("team")
    return [row for row in rows if row.team is None or row.team.active]


@transaction.atomic
def add_schedule(*, team: Team, by: User, **fields: Any) -> ReviewSchedule:
    """Let a team hold reviews of its own. Raises NotPermitted, InputError."""
    require(can_set_review_rules(by))
    if not team.active:
        raise InputError(
            "team", msg("%(team)s is no longer active", team=str(team)), value=team.slug
        )
    if ReviewSchedule.objects.filter(team=team).exists():
        raise InputError(
            "team", msg("%(team)s has a schedule already", team=str(team)), value=team.slug
        )
    row = ReviewSchedule(team=team)
    _set(row, fields)
    row.save()
    record("review_schedule.added", on=row, by=by, team=team, **_facts(row))
    _enter(row, organisation())
    return row


@transaction.atomic
def set_schedule(
    *, schedule_id: int, by: User, seen_version: int | None = None, **fields: Any
) -> ReviewSchedule:
    """Change a schedule; what is not given stays. Reviews that are made keep their day. Raises NotPermitted,
    InputError, StaleData.
    """
    row = lock(ReviewSchedule.objects.all(), schedule_id)
    require(can_set_review_rules(by))
    check_version(row, seen_version)
    before = _facts(row)
    _set(row, fields)
    row.version += 1
    row.save()
    changes = {
        name: [str(before[name]), str(value)]
        for name, value in _facts(row).items()
        if value != before[name]
    }
    record("review_schedule.changed", on=row, by=by, team=row.team, changes=changes)
    _enter(row, organisation())
    return row


def _facts(row: ReviewSchedule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FIELDS}


LIMITS = {"start_month": (1, 12), "meeting_after_days": (0, 90), "at_hour": (0, 23)}


def _set(row: ReviewSchedule, fields: dict[str, Any]) -> None:
    for name in FIELDS:
        if name not in fields:
            continue
        value = fields[name]
        low, high = LIMITS.get(name, (0, 1))
        if value is not None and not low <= value <= high:
            raise InputError(
                name,
                msg("%(field)s is %(value)s; it must be within %(limit)s", field=name, value=value,
                    limit=f"{low} … {high}"),
                value=value, limit=f"{low} … {high}",
            )  # fmt: skip
        setattr(row, name, value)


def start_month_of(row: ReviewSchedule, org: Organisation) -> int:
    """The unit's first month of the fiscal year."""
    return row.start_month or org.fiscal_start_month


def _enter(row: ReviewSchedule, org: Organisation) -> None:
    """Beat's entry of a schedule, by its name: written again, it is the same row."""
    first = start_month_of(row, org)
    months = sorted((first - 1 + 3 * n) % 12 + 1 for n in range(4))
    when = {
        "minute": "0", "hour": str(row.at_hour), "day_of_week": "*", "day_of_month": "1",
        "month_of_year": ",".join(map(str, months)), "timezone": org.zone,
    }  # fmt: skip
    crontab = CrontabSchedule.objects.filter(**when).first() or CrontabSchedule.objects.create(
        **when
    )
    PeriodicTask.objects.update_or_create(
        name=f"{NAME}{row.pk}",
        defaults={
            "task": TASK, "crontab": crontab, "args": json.dumps([row.pk]), "enabled": row.active,
        },
    )  # fmt: skip
