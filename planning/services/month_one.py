"""Four weeks after acceptance the product looks back by itself, says what it found, and gives the owner a task."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import Message, msg
from core.models import User
from core.organisation import organisation
from core.outbox import notify
from core.policies import require
from core.stale import check_version
from core.transitions import advance, lock
from planning import trouble
from planning.models.month_one import MonthOneReview, ReviewRules
from planning.models.requests import CapacityRequest
from planning.month_one_rules import SYMPTOM, Finding, Rules, finding
from planning.review_policies import can_close_look_back, can_set_review_rules
from planning.selectors.telemetry import Fleet, fleet
from planning.states import RequestStatus
from planning.trouble_table import BY_KEY

RULE_FIELDS = (
    "queue_statistic", "queue_hours", "oversized_percent", "days_after_acceptance", "meeting_after_days",
    "plans_before_days", "remind_before_days",
)  # fmt: skip


def rules() -> ReviewRules:
    """The organisation's rules; the defaults before anybody changed them."""
    return ReviewRules.objects.first() or ReviewRules()


@transaction.atomic
def set_rules(*, by: User, **fields: Any) -> ReviewRules:
    """Change the rules. What was found before stays."""
    require(can_set_review_rules(by))
    row = ReviewRules.objects.select_for_update().first() or ReviewRules()
    changes = {}
    for name in RULE_FIELDS:
        if name in fields and getattr(row, name) != fields[name]:
            changes[name] = [str(getattr(row, name)), str(fields[name])]
            setattr(row, name, fields[name])
    row.full_clean()
    row.save()
    record("review_rules.changed", on=row, by=by, changes=changes)
    return row


def due() -> list[int]:
    """Fulfilled requests whose first weeks are over and that nobody looked back at."""
    limit = timezone.now() - timedelta(days=rules().days_after_acceptance)
    found = CapacityRequest.objects.filter(
        status=RequestStatus.FULFILLED, status_since__lte=limit, month_one=None
    )
    return list(found.order_by("pk").values_list("pk", flat=True))


def look_back(*, request_id: int) -> MonthOneReview | None:
    """Make the review of one request, once. None: another worker made it, or it is not due."""
    request = (
        CapacityRequest.objects.select_related("team", "requester")
        .with_current()
        .get(pk=request_id)
    )
    setting = rules()
    end = request.status_since + timedelta(days=setting.days_after_acceptance)
    if request.status != RequestStatus.FULFILLED or end > timezone.now():
        return None
    org = organisation()
    first, last = (at.astimezone(org.zone).date() for at in (request.status_since, end))
    used = fleet(first=first, last=last, organisation=org, teams=[request.team_id])
    plan = getattr(request.current, "plan", None)
    figures = _figures(used, plan.accelerator_slug if plan else "", setting)
    found = finding(
        figures["utilization"],
        figures["queue"],
        Rules(setting.oversized_percent / 100, setting.queue_hours * 3600, setting.queue_statistic),
    )
    figures["causes"] = _causes(found, figures)
    figures["cards"] = plan.cards if plan else None
    figures["from"], figures["until"] = first.isoformat(), last.isoformat()
    try:
        with transaction.atomic():
            review = MonthOneReview.objects.create(
                request=request, owner=request.requester, finding=found.value, figures=figures
            )
            record("month_one.made", on=review, by=None, team=request.team, finding=found.value)
            notify(
                [request.requester],
                "month_one.made",
                on=review,
                message=_task(request, found),
                url=review.get_absolute_url(),
            )
            return review
    except IntegrityError:
        return None


def _figures(used: Fleet, accelerator: str, setting: ReviewRules) -> dict[str, Any]:
    """Means over the pools with the accelerator that was bought, of the team; all its pools when none is told."""
    pools = [p for p in used.pools if accelerator and p.accelerator == accelerator] or list(
        used.pools
    )
    hours = sum(p.use.hours for p in pools)

    def mean(name: str) -> float | None:
        told = [
            (getattr(p.use, name), p.use.hours) for p in pools if getattr(p.use, name) is not None
        ]
        weight = sum(h for _value, h in told)
        return sum(value * h for value, h in told) / weight if weight else None

    holes: list[Message] = list(used.holes)
    return {
        "utilization": mean("utilization"), "memory": mean("memory"), "sm": mean("sm"),
        "energy_kwh": _energy(p.use.energy_kwh for p in pools), "hours": hours,
        "idle": sum(p.idle for p in pools), "statistic": setting.queue_statistic,
        "queue": used.queue.statistic(setting.queue_statistic), "jobs": used.queue.jobs,
        "interrupted": used.queue.interrupted, "queue_limit": setting.queue_hours * 3600,
        "oversized_below": setting.oversized_percent / 100, "holes": [h.to_json() for h in holes],
    }  # fmt: skip


def _energy(told: Iterable[float | None]) -> float | None:
    """The sum of all pools; None when one of them told nothing: a part is not the whole. [kWh]"""
    sums = list(told)
    known = [energy for energy in sums if energy is not None]
    return sum(known) if sums and len(known) == len(sums) else None


def _causes(found: Finding, figures: dict[str, Any]) -> list[str]:
    """Keys of the likeliest causes, first to look at first."""
    if found not in SYMPTOM:
        return []
    signs = trouble.Signs(
        figures["utilization"], figures["sm"], figures["memory"], figures["queue"],
        figures["interrupted"], figures["idle"],
    )  # fmt: skip
    symptom = BY_KEY[SYMPTOM[found]]
    return [f"{symptom.key}/{one.cause.key}" for one in trouble.ranked(symptom, {}, signs)[:3]]


TASKS = {
    Finding.OVERSIZED: msg(
        "%(request)s after four weeks: the cards are over-sized. See the likely causes and say what you do."
    ),
    Finding.INSUFFICIENT: msg(
        "%(request)s after four weeks: the queue is too long. See the likely causes and say what you do."
    ),
    Finding.SCHEDULING: msg(
        "%(request)s after four weeks: jobs wait while cards idle. That is scheduling or fragments, not capacity."
    ),
    Finding.FITS: msg("%(request)s after four weeks: what was bought fits the work. Confirm it."),
    Finding.UNKNOWN: msg(
        "%(request)s after four weeks: not enough is known of its use. Connect telemetry or say how it is used."
    ),
}


def _task(request: CapacityRequest, found: Finding) -> Message:
    return Message(TASKS[found].template, {"request": request.reference})


@transaction.atomic
def close(
    *, review_id: int, answer: str, by: User, seen_version: int | None = None
) -> MonthOneReview:
    """The owner, or operations, says what was done about it."""
    review = lock(MonthOneReview.objects.all(), review_id)
    require(can_close_look_back(by, review))
    check_version(review, seen_version)
    if review.status != MonthOneReview.Status.OPEN:
        raise InvalidTransition(msg("This review is done"))
    if not answer.strip():
        raise InputError("answer", msg("Say what was done, or that nothing has to be"), value="")
    review.answer, review.done_at = answer.strip(), timezone.now()
    review.save(update_fields=["answer", "done_at"])
    advance(
        review, MonthOneReview.Status.DONE, by=by, action="month_one.done", team=review.request.team
    )
    return review
