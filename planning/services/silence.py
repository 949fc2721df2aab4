"""What happens when nobody does anything: silent steps are escalated, approvals that were not used in time lapse."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.messages import msg
from core.models import Organisation, User
from core.organisation import organisation, today
from core.outbox import notify
from core.roles import Role
from planning.models.approvals import ApprovalStep, Decision, Vote
from planning.models.budgets import Bucket
from planning.models.requests import CapacityRequest
from planning.selectors.approvals import deciders, steps_with_facts
from planning.selectors.budgets import held
from planning.selectors.conditions import conditions
from planning.services import approvals, budgets
from planning.services.ledger import policy_of
from planning.services.moves import lock_request, move
from planning.states import RequestStatus, StepStatus


def working_days(since: datetime, until: datetime, org: Organisation) -> int:
    """Whole working days (Monday to Friday where the organisation is) that have passed since `since`'s day."""
    first, last = since.astimezone(org.zone).date(), until.astimezone(org.zone).date()
    whole, rest = divmod(max((last - first).days, 0), 7)
    return whole * 5 + sum((first + timedelta(days=n + 1)).weekday() < 5 for n in range(rest))


def silent_steps() -> list[int]:
    """Ids of pending steps that were not escalated and have waited longer than their policy says."""
    org = Organisation.objects.first()
    if org is None:
        return []
    now = timezone.now()
    found = []
    steps = ApprovalStep.objects.filter(
        status=StepStatus.PENDING, escalated_at=None, opened_at__isnull=False,
        revision__request__status=RequestStatus.IN_REVIEW,
    ).select_related("revision__policy")  # fmt: skip
    for step in steps:
        days = policy_of(step.revision).escalate_after_days
        if days and step.opened_at and working_days(step.opened_at, now, org) >= days:
            found.append(step.pk)
    return found


@transaction.atomic
def escalate(*, step_id: int) -> bool:
    """Tell once that nobody decided. Approves nothing, gives nobody an authority. Returns whether it was told now."""
    request_id = ApprovalStep.objects.values_list("revision__request_id", flat=True).get(pk=step_id)
    request = lock_request(request_id)
    step = steps_with_facts(ApprovalStep.objects.all()).get(pk=step_id)
    if step.status != StepStatus.PENDING or step.escalated_at is not None:
        return False
    step.escalated_at = timezone.now()
    ApprovalStep.objects.filter(pk=step.pk).update(escalated_at=step.escalated_at)
    record(
        "approval_step.escalated", on=step, by=None, team=request.team,
        opened_at=step.opened_at.isoformat() if step.opened_at else "",
    )  # fmt: skip
    chiefs = User.objects.filter(
        is_active=True, memberships__team=None, memberships__role=Role.APPROVER
    ).distinct()
    notify(
        [*deciders(step), *chiefs, request.requester],
        "approval_step.escalated",
        on=step,
        message=msg(
            "Nobody has decided on %(request)s (%(who)s)",
            request=str(request),
            who=str(step.get_authority_display()),
        ),
        url=request.get_absolute_url(),
    )
    return True


def overdue_approvals() -> list[int]:
    """Ids of approved requests of which a vote asked for an order by a day that is past."""
    if not Organisation.objects.exists():
        return []
    votes = Vote.objects.filter(
        decision=Decision.APPROVE, order_by__lt=today(organisation()),
        step__revision__request__status=RequestStatus.APPROVED,
    )  # fmt: skip
    return sorted(set(votes.values_list("step__revision__request_id", flat=True)))


@transaction.atomic
def lapse(*, request_id: int, on: date | None = None) -> bool:
    """End an approval whose time is over with nothing ordered: back for changes, money released. Returns whether."""
    request: CapacityRequest = lock_request(request_id)
    revision = request.current
    if request.status != RequestStatus.APPROVED or held(request, Bucket.COMMITTED):
        return False
    until = conditions(revision).order_by
    if until is None or until >= (on or today()):
        return False
    concerned = approvals.void_for_revision(
        revision=revision, by=None, reason=f"not ordered by {until.isoformat()}"
    )
    budgets.release(request=request, by=None, reason="lapsed")
    move(
        request, RequestStatus.CHANGES_REQUESTED, by=None, action="request.lapsed",
        order_by=until.isoformat(), revision=revision.number,
    )  # fmt: skip
    notify(
        [*concerned, request.requester],
        "request.lapsed",
        on=request,
        message=msg(
            "The approval of %(request)s ended: it had to be ordered until %(day)s",
            request=str(request),
            day=until.isoformat(),
        ),
        url=request.get_absolute_url(),
        revision=str(revision.number),
    )
    return True
