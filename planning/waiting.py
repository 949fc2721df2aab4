"""What waits for a person besides votes on requests. Apps above register what waits in them; Home, the approvals page
and the API show the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core.models import Membership, User
from core.organisation import today
from core.policies import can_agree_as_second
from core.roles import has_role
from planning.models import ApprovalPolicy, BudgetChange, CapacityRequest, CapacityReview
from planning.models.approvals import Standing
from planning.models.month_one import MonthOneReview
from planning.models.review_work import ReviewAction, TeamPlan
from planning.policies import can_confirm_change, can_load_policy
from planning.review_policies import PLANNERS, WATCHERS
from planning.services.month_one import rules
from planning.states import ChangeStatus, RequestStatus


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that this person can do now."""

    title: str
    url: str
    label: str | Promise  # what is to be done
    since: datetime
    decision: bool = False  # to agree or refuse, as a second person
    request: bool = False  # one's own request, returned
    review: bool = False  # looking back and planning ahead, not a step of buying
    state: str = ""
    state_label: str | Promise = ""
    note: str = ""


Source = Callable[[User, bool], Iterable[Waiting]]  # who; whether decisions alone are asked for
_sources: list[Source] = []


def register(source: Source) -> None:
    """Ask `source` from now on; the same one twice counts once."""
    if source not in _sources:
        _sources.append(source)


def waiting(user: User) -> list[Waiting]:
    """Everything that waits for `user`, longest first."""
    return _ask(user, decisions_only=False)


def decisions(user: User) -> list[Waiting]:
    """What waits for a decision of `user`, besides requests."""
    return _ask(user, decisions_only=True)


def _ask(user: User, *, decisions_only: bool) -> list[Waiting]:
    found = [
        row
        for source in (_changes, _rules, _returned, _reviews, *_sources)
        for row in source(user, decisions_only)
    ]
    return sorted(found, key=lambda row: row.since)


def _rules(user: User, _decisions_only: bool) -> Iterable[Waiting]:
    if not can_load_policy(user):
        return
    for policy in ApprovalPolicy.objects.filter(standing=Standing.WAITING):
        if can_agree_as_second(user, policy.loaded_by_id):
            yield Waiting(
                title=str(policy), url=policy.get_absolute_url(), label=_("Approval rules to confirm"),
                since=policy.loaded_at, decision=True, state=policy.standing,
                state_label=policy.get_standing_display(), note=policy.note,
            )  # fmt: skip


def _changes(user: User, _decisions_only: bool) -> Iterable[Waiting]:
    if not can_confirm_change(user, 0):
        return
    rows = BudgetChange.objects.filter(status=ChangeStatus.PROPOSED).select_related("budget__team")
    for row in rows:
        if can_confirm_change(user, row.proposed_by_id):
            yield Waiting(
                title=str(row), url=row.budget.get_absolute_url(), label=_("Budget change to confirm"),
                since=row.proposed_at, decision=True, state=row.status, state_label=row.get_status_display(),
            )  # fmt: skip


def _returned(user: User, decisions_only: bool) -> Iterable[Waiting]:
    """Own requests that were returned: only their requester brings them on."""
    if decisions_only:
        return
    mine = CapacityRequest.objects.filter(requester=user, status=RequestStatus.CHANGES_REQUESTED)
    for row in mine:
        yield Waiting(
            title=str(row), url=row.get_absolute_url(), label=_("Returned to you: change it and submit it again"),
            since=row.status_since, request=True, state=row.status, state_label=row.get_status_display(),
        )  # fmt: skip


def _reviews(user: User, decisions_only: bool) -> Iterable[Waiting]:
    """Looks back to answer, own action items, and plans that a near review asks of the user's teams."""
    if decisions_only:
        return
    mine = Q() if has_role(user, *WATCHERS) else Q(owner=user)
    for look in MonthOneReview.objects.filter(
        mine, status=MonthOneReview.Status.OPEN
    ).select_related("request"):
        yield Waiting(
            title=str(look), url=look.get_absolute_url(), label=_("Four weeks on: say what was done"),
            since=look.made_at, review=True, state=look.finding, state_label=look.get_finding_display(),
        )  # fmt: skip
    for action in ReviewAction.objects.filter(
        owner=user, status=ReviewAction.Status.OPEN
    ).select_related("review"):
        yield Waiting(
            title=str(action), url=action.get_absolute_url(), label=_("Decided in a review"),
            since=action.created_at, review=True,
            state="overdue" if action.due_on < today() else "",
            state_label=_("overdue") if action.due_on < today() else "", note=action.due_on.isoformat(),
        )  # fmt: skip
    yield from _plans(user)


def _plans(user: User) -> Iterable[Waiting]:
    held = Membership.objects.filter(
        user=user, role__in=[role.value for role in PLANNERS], team__active=True
    ).select_related("team")
    teams = {row.team_id: row.team for row in held if row.team is not None}
    if not teams:
        return
    near = today() + timedelta(days=rules().plans_before_days)
    reviews = {row.pk: row for row in CapacityReview.objects.asking_for_plans(near)}
    told = set(TeamPlan.objects.filter(review__in=reviews).values_list("review_id", "team_id"))
    for review in reviews.values():
        for team in teams.values():
            if review.team_id in (None, team.pk) and (review.pk, team.pk) not in told:
                yield Waiting(
                    title=f"{team} · {review}", url=reverse("team-plan", args=[review.pk, team.slug]),
                    label=_("Plan of the next three months asked for"), since=review.created_at,
                    review=True, note=review.meeting_on.isoformat(),
                )  # fmt: skip
