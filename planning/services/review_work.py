"""Decisions of a review as action items, teams' plans, and the meeting's invitation."""

from __future__ import annotations

from datetime import UTC, date, timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext

from core.audit import object_type, record
from core.errors import InputError, InvalidTransition
from core.files import store_bytes
from core.messages import msg
from core.models import Notice, StoredFile, Team, User
from core.organisation import organisation, today
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
from planning.services.reviews import readers

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
    """Ask the people of teams without a plan, once a review, when the meeting is near."""
    near = today() + timedelta(days=rules().plans_before_days)
    for review in CapacityReview.objects.asking_for_plans(near):
        told = review.plans.values("team")
        for team in Team.objects.filter(active=True).exclude(pk__in=told):
            people = User.objects.filter(
                memberships__team=team,
                memberships__role__in=[r.value for r in review_policies.PLANNERS],
            ).distinct()
            notify(
                people,
                "team_plan.asked",
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


# --- the meeting -------------------------------------------------------------------------------------------------


@transaction.atomic
def move_meeting(
    *, review_id: int, meeting_on: date, by: User, seen_version: int | None = None
) -> CapacityReview:
    """Hold the meeting on another day; everyone gets the changed invitation."""
    review = lock(CapacityReview.objects.all(), review_id)
    require(review_policies.can_hold_review(by))
    check_version(review, seen_version)
    if review.status in (Status.IN_SESSION, Status.CLOSED):
        raise InvalidTransition(msg("The meeting has begun"))
    if meeting_on < today():
        raise InputError(
            "meeting_on", msg("%(day)s is past", day=meeting_on.isoformat()), value=meeting_on.isoformat(),
            limit=today().isoformat(),
        )  # fmt: skip
    before, review.meeting_on = review.meeting_on, meeting_on
    review.invitation += 1
    review.version += 1
    review.save(update_fields=["meeting_on", "invitation", "version"])
    record(
        "review.moved", on=review, by=by, before=before.isoformat(), after=meeting_on.isoformat()
    )
    invite(review)
    return review


def invite(review: CapacityReview) -> None:
    """Send the invitation as a calendar file; the same sequence is sent once to each person."""
    file = _stored(review)
    notify(
        readers(),
        "review.invited",
        on=review,
        revision=str(review.invitation),
        message=msg(
            "The capacity review of %(quarter)s is on %(day)s.",
            quarter=str(review), day=review.meeting_on.isoformat(),
        ),
        url=review.get_absolute_url(),
        attachment=file,
    )  # fmt: skip


def invite_missing() -> None:
    """Send invitations that were not sent yet: after a review was scheduled, or by a worker that died."""
    for review in CapacityReview.objects.exclude(status__in=[Status.IN_SESSION, Status.CLOSED]):
        sent = Notice.objects.filter(
            event="review.invited",
            object_type=object_type(review),
            object_id=str(review.pk),
            revision=str(review.invitation),
        )
        if not sent.exists():
            invite(review)


def _stored(review: CapacityReview) -> StoredFile:
    name = f"capacity-review-{review}-{review.invitation}.ics"
    content = calendar(review).encode()
    return store_bytes(content, name=name, content_type="text/calendar")


def calendar(review: CapacityReview, *, cancelled: bool = False) -> str:
    """The meeting as iCalendar (RFC 5545): a whole day, the same UID for every change, SEQUENCE counting them."""
    with translation.override(organisation().language):
        title = gettext("Capacity review %(quarter)s") % {"quarter": str(review)}
        agenda = gettext(
            "Agenda: what became of the last decisions; demand and supply; use and queues; forecast; a recommendation "
            "for each pool; decisions."
        )
    day = review.meeting_on
    lines = [
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Headroom//Capacity review//EN",
        f"METHOD:{'CANCEL' if cancelled else 'REQUEST'}", "BEGIN:VEVENT",
        f"UID:review-{review.fiscal_year}Q{review.quarter}@{settings.SITE_URL.split('//')[-1].split('/')[0]}",
        f"SEQUENCE:{review.invitation}",
        f"DTSTAMP:{review.created_at.astimezone(UTC):%Y%m%dT%H%M%SZ}",
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}", f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{_escaped(title)}", f"DESCRIPTION:{_escaped(agenda)}",
        f"URL:{settings.SITE_URL}{review.get_absolute_url()}",
        f"STATUS:{'CANCELLED' if cancelled else 'CONFIRMED'}", "END:VEVENT", "END:VCALENDAR",
    ]  # fmt: skip
    return "".join(_folded(line) + "\r\n" for line in lines)


def _escaped(text: str) -> str:
    for sign in ("\\", ";", ","):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\n", "\\n")


def _folded(line: str) -> str:
    """At most 75 bytes a line, never cut inside a character."""
    parts, size, part = [], 0, ""
    for char in line:
        width = len(char.encode())
        if size + width > 74:
            parts.append(part)
            part, size = "", 0
        part += char
        size += width
    return "\r\n ".join([*parts, part])
