"""Steps and people: who may decide, what waits for someone, what changed since it was last approved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, Q, QuerySet

from core.messages import Message, msg
from core.models import User
from core.organisation import today
from core.roles import Role
from planning.mandates import Mandate, Mandates, has_voted, involved
from planning.models.approvals import ApprovalStep, Authority, Vote
from planning.models.delegations import Delegation
from planning.models.requests import CapacityRequest, RequestRevision
from planning.states import RequestStatus, StepStatus
from planning.workloads import whole

_HOLDERS = {
    Authority.TEAM_LEAD: (Role.APPROVER, False),
    Authority.BUDGET_APPROVER: (Role.APPROVER, True),
    Authority.FINANCE: (Role.FINANCE, True),
    Authority.PROCUREMENT: (Role.PROCUREMENT, False),
}


def deciders(step: ApprovalStep) -> list[User]:
    """Who could decide on `step` today: holders of its authority without a part in the request, and their stand-ins."""
    request = step.revision.request
    role, central = _HOLDERS[Authority(step.authority)]
    place = Q(memberships__team=None)
    if not central:
        place |= Q(memberships__team=request.team_id)
    holders = User.objects.filter(place, is_active=True, memberships__role=role).distinct()
    asked = involved(request, step.revision)
    found = {user.pk: user for user in holders if user.pk not in asked}
    for delegation in (
        Delegation.objects.active_on(today())
        .filter(principal__in=list(found))
        .select_related("delegate")
    ):
        if delegation.delegate_id not in asked:
            found[delegation.delegate_id] = delegation.delegate
    return list(found.values())


def steps_with_facts(steps: QuerySet[ApprovalStep]) -> QuerySet[ApprovalStep]:
    """Steps with all that policies and pages look at, in a fixed number of queries."""
    return steps.select_related(
        "revision__request__team", "revision__request__requester", "revision__plan__study",
        "revision__submitted_by", "revision__team_use",
    ).prefetch_related(
        "revision__authors",
        Prefetch("votes", Vote.objects.select_related("voter", "principal")),
        Prefetch(
            "revision__steps", ApprovalStep.objects.prefetch_related("votes").order_by("group", "pk")
        ),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A step that waits for this person, and the earlier revision that was approved or submitted last."""

    step: ApprovalStep
    mandate: Mandate
    before: RequestRevision | None

    @property
    def amount_change(self) -> float | None:
        """Relative change of the amount against the earlier revision, in the base currency; None when unknown. [1]"""
        old, new = getattr(self.before, "plan", None), self.step.revision.plan
        if old is None or old.base_currency != new.base_currency or not old.base_amount:
            return None
        return float(new.base_amount / old.base_amount - 1)

    @property
    def days_later(self) -> int | None:
        """How much later than in the earlier revision it is needed. [days]"""
        if self.before is None:
            return None
        return (self.step.revision.need_by - self.before.need_by).days


def inbox(user: User) -> list[InboxItem]:
    """Pending steps that `user` may decide today, oldest first."""
    mandates = Mandates(user, today())
    pending = steps_with_facts(
        ApprovalStep.objects.filter(
            status=StepStatus.PENDING,
            revision__request__status=RequestStatus.IN_REVIEW,
            revision__request__in=CapacityRequest.objects.visible_to(user).values("pk"),
        )
    ).order_by("opened_at", "pk")
    pending = pending.prefetch_related(
        Prefetch(
            "revision__request__revisions",
            RequestRevision.objects.select_related("plan").prefetch_related("steps__votes"),
        )
    )
    found = []
    for step in pending:
        mandate = mandates.for_step(step)
        if isinstance(mandate, Message) or has_voted(user, mandate, group_votes(step)):
            continue
        found.append(InboxItem(step, mandate, _before(step.revision)))
    return found


def _before(revision: RequestRevision) -> RequestRevision | None:
    """As last_approved, over revisions that are loaded."""
    earlier = [
        other
        for other in revision.request.revisions.all()
        if other.number < revision.number and other.is_frozen
    ]
    earlier.sort(key=lambda other: -other.number)
    for other in earlier:
        if any(
            vote.decision == "approve" for step in other.steps.all() for vote in step.votes.all()
        ):
            return other
    return earlier[0] if earlier else None


def group_votes(step: ApprovalStep) -> list[Vote]:
    """What was voted on the steps beside `step`, itself included; from what steps_with_facts loaded."""
    beside = (other for other in step.revision.steps.all() if other.group == step.group)
    return [vote for other in beside for vote in other.votes.all()]


def why_not(user: User, step: ApprovalStep) -> Message | None:
    """Why `user` may not decide on `step`; None when they may."""
    mandate = Mandates(user, today()).for_step(step)
    if isinstance(mandate, Message):
        return mandate
    if has_voted(user, mandate, group_votes(step)):
        return msg("You have decided in this group of steps already.")
    return None


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs between two revisions. `field` is a name from RequestRevision.CONTENT or the plan."""

    field: str
    old: Any
    new: Any


PLAN_FIELDS = ("accelerator_slug", "cards", "servers", "mode", "money")


def differences(old: RequestRevision, new: RequestRevision) -> list[Difference]:
    """What differs between two revisions: content, workload value by value, and the plan."""
    found = []
    before, after = old.content(), new.content()
    loads = whole(before.pop("workload")), whole(after.pop("workload"))
    for name in [key for key in after if before[key] != after[key]]:
        found.append(Difference(name, before[name], after[name]))
    for name in dict.fromkeys([*loads[0], *loads[1]]):
        if loads[0].get(name) != loads[1].get(name):
            found.append(Difference(name, loads[0].get(name), loads[1].get(name)))
    plans: list[Any] = [getattr(revision, "plan", None) for revision in (old, new)]
    if plans[0] is not None and plans[1] is not None:
        for name in PLAN_FIELDS:
            if getattr(plans[0], name) != getattr(plans[1], name):
                found.append(
                    Difference(f"plan.{name}", getattr(plans[0], name), getattr(plans[1], name))
                )
    return found


def last_approved(revision: RequestRevision) -> RequestRevision | None:
    """The newest earlier revision on which someone voted to approve; the newest submitted one when none was."""
    earlier = RequestRevision.objects.filter(
        request=revision.request_id, number__lt=revision.number, submitted_at__isnull=False
    ).select_related("plan", "request")
    voted = earlier.filter(steps__votes__decision="approve").order_by("-number").first()
    return voted or earlier.order_by("-number").first()
