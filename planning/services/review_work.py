"""Decisions of a review as action items, and teams' plans."""

from __future__ import annotations

from datetime import date, timedelta

from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import Team, User
from core.organisation import today
from core.outbox import notify
from core.policies import require
from core.roles import has_role
from core.stale import check_version
from core.transitions import advance, lock
from core.whole import whole
from planning import review_policies
from planning.follow_ups import became
from planning.models.requests import CapacityRequest
from planning.models.review_work import ReviewAction, TeamPlan
from planning.models.reviews import CapacityReview
from planning.services.month_one import rules

Status = CapacityReview.Status


@transaction.atomic
def add_action(
    *, review_id: int, text: str, owner: User, due_on: date, by: User, pool: str = ""
) -> ReviewAction:
    """Record a decision while the review is prepared or held. Tells its owner."""
    review = lock(CapacityReview.objects.all(), review_id)
    require(review_policies.can_hold_review(by))
    if review.status not in (Status.REPORT_READY, Status.IN_SESSION):
        raise InvalidTransition(
            msg("Decisions are recorded between the report and the end of the meeting")
        )
    if not text.strip():
        raise InputError("text", msg("Say what was decided"), value="")
    if due_on < today():
        raise InputError(
            "due_on", msg("%(day)s is past", day=due_on.isoformat()), value=due_on.isoformat(),
            limit=today().isoformat(),
        )  # fmt: skip
    action = ReviewAction.objects.create(
        review=review,
        text=text.strip()[:500],
        owner=owner,
        due_on=due_on,
        pool=pool[:200],
        created_by=by,
    )
    record("review_action.added", on=action, by=by, review=str(review), owner=owner.pk)
    notify(
        [owner],
        "review_action.added",
        on=action,
        message=msg(
            "From the capacity review %(review)s, by %(day)s: %(text)s",
            review=str(review), day=due_on.isoformat(), text=action.text,
        ),
        url=action.get_absolute_url(),
    )  # fmt: skip
    return action


@transaction.atomic
def end_action(
    *,
    action_id: int,
    done: bool,
    outcome: str,
    by: User,
    reference: str = "",
    seen_version: int | None = None,
) -> ReviewAction:
    """Say what became of it; `reference` names the request it became. The owner, or who may hold reviews."""
    action = lock(ReviewAction.objects.all(), action_id)
    require(may_end(by, action))
    check_version(action, seen_version)
    if reference.strip():
        number = reference.strip().upper().removeprefix("R-").lstrip("0")
        found = CapacityRequest.objects.visible_to(by).filter(number=whole(number) or 0)
        filed, action.request = action.request, found.first()
        if action.request is None:
            raise InputError(
                "reference",
                msg("No request has the number %(number)s", number=reference),
                value=reference,
            )
        if filed is not None and filed != action.request:
            raise InputError(
                "reference",
                msg("This decision became %(reference)s already", reference=filed.reference),
                value=reference, limit=filed.reference,
            )  # fmt: skip
    if not outcome.strip() and action.request is None and not became([action.pk], None):
        raise InputError("outcome", msg("Say what became of it, or name the request"), value="")
    action.outcome = outcome.strip()[:500]
    action.save(update_fields=["outcome", "request"])
    state = ReviewAction.Status.DONE if done else ReviewAction.Status.DROPPED
    advance(action, state, by=by, action="review_action.ended", reason=action.outcome)
    return action


def may_end(user: User, action: ReviewAction) -> bool:
    """The owner, and who may hold reviews."""
    return user.pk == action.owner_id or review_policies.can_hold_review(user)


# --- teams' plans ------------------------------------------------------------------------------------------------


def may_plan(user: User, team: Team) -> bool:
    """Requesters and approvers of the team."""
    return has_role(user, *review_policies.PLANNERS, team=team)


@transaction.atomic
def tell_plan(
    *,
    review_id: int,
    team: Team,
    cards: float,
    text: str,
    by: User,
    seen_version: int | None = None,
) -> TeamPlan:
    """A team's plan for the three months after the quarter; told again, it replaces the one before."""
    review = lock(CapacityReview.objects.all(), review_id)
    require(may_plan(by, team))
    if review.team_id not in (None, team.pk):
        raise InputError(
            "team", msg("%(review)s is not a review of %(team)s", review=str(review), team=str(team)), value=team.slug
        )  # fmt: skip
    if review.status in (Status.IN_SESSION, Status.CLOSED):
        raise InvalidTransition(msg("The meeting has begun: plans are no longer taken"))
    if not 0 <= cards < 1e6:
        raise InputError("cards", msg("Cards must be 0 or more"), value=cards, limit=">= 0")
    plan = TeamPlan.objects.filter(review=review, team=team).first()
    if plan is not None:
        check_version(plan, seen_version)
        plan.version += 1
    else:
        plan = TeamPlan(review=review, team=team)
    plan.cards, plan.text, plan.told_by, plan.told_at = cards, text.strip(), by, timezone.now()
    plan.save()
    record("team_plan.told", on=plan, by=by, team=team, cards=cards)
    return plan


def ask_for_plans() -> None:
    """Ask the people of teams without a plan, once a review, when the meeting is near, and once more before it."""
    _tell("team_plan.asked", rules().plans_before_days)
    _tell("team_plan.reminded", rules().remind_before_days)


def _tell(event: str, days: int) -> None:
    for review in CapacityReview.objects.asking_for_plans(today() + timedelta(days=days)):
        told = review.plans.values("team")
        teams = Team.objects.filter(active=True).exclude(pk__in=told)
        for team in teams if review.team_id is None else teams.filter(pk=review.team_id):
            people = User.objects.filter(
                memberships__team=team,
                memberships__role__in=[r.value for r in review_policies.PLANNERS],
            ).distinct()
            notify(
                people,
                event,
                on=review,
                revision=team.slug[:40],
                message=msg(
                    "Tell what %(team)s plans to use in the three months after %(review)s; the meeting is on %(day)s.",
                    team=team.name,
                    review=str(review),
                    day=review.meeting_on.isoformat(),
                ),
                url=reverse("team-plan", args=[review.pk, team.slug]),
            )
