"""The meeting of a review: its day, people and agenda, its calendar file, cancelling it, reminders.

Every change counts the calendar entry's SEQUENCE up and is mailed once to each person; the UID stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, timedelta
from email.utils import parseaddr

from django.conf import settings
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext

from core.audit import object_type, record
from core.errors import InputError, InvalidTransition
from core.files import store_bytes
from core.messages import msg
from core.models import Notice, StoredFile, User
from core.organisation import organisation, today
from core.outbox import notify
from core.policies import require
from core.stale import check_version
from core.transitions import lock
from planning import review_policies
from planning.models.reviews import CapacityReview
from planning.services.month_one import rules
from planning.services.reviews import readers

Status = CapacityReview.Status
BEGUN = (Status.IN_SESSION, Status.CLOSED)
AGENDA = 4000  # characters


def _changeable(review_id: int, by: User, seen_version: int | None) -> CapacityReview:
    """The review, locked, while its meeting has not begun. Raises NotPermitted, StaleData, InvalidTransition."""
    review = lock(CapacityReview.objects.all(), review_id)
    require(review_policies.can_hold_review(by))
    check_version(review, seen_version)
    if review.status in BEGUN:
        raise InvalidTransition(msg("The meeting has begun"))
    return review


def _changed(review: CapacityReview, *fields: str) -> None:
    review.invitation += 1
    review.version += 1
    review.save(update_fields=[*fields, "invitation", "version"])


@transaction.atomic
def move_meeting(
    *, review_id: int, meeting_on: date, by: User, seen_version: int | None = None
) -> CapacityReview:
    """Hold the meeting on another day, also one that was cancelled; everyone gets the changed invitation."""
    review = _changeable(review_id, by, seen_version)
    if meeting_on < today():
        raise InputError(
            "meeting_on", msg("%(day)s is past", day=meeting_on.isoformat()), value=meeting_on.isoformat(),
            limit=today().isoformat(),
        )  # fmt: skip
    before, review.meeting_on = review.meeting_on, meeting_on
    was_cancelled, review.cancelled_at, review.cancel_reason = review.cancelled_at, None, ""
    _changed(review, "meeting_on", "cancelled_at", "cancel_reason")
    record(
        "review.moved", on=review, by=by, before=before.isoformat(), after=meeting_on.isoformat(),
        was_cancelled=was_cancelled is not None,
    )  # fmt: skip
    invite(review)
    return review


@transaction.atomic
def cancel_meeting(
    *, review_id: int, reason: str, by: User, seen_version: int | None = None
) -> CapacityReview:
    """Call the meeting off: everyone gets a calendar file that takes it out, once. Figures and pack go on; setting
    another day calls it again.
    """
    review = _changeable(review_id, by, seen_version)
    if review.cancelled_at is not None:
        raise InvalidTransition(msg("The meeting is cancelled already"))
    if not reason.strip():
        raise InputError("reason", msg("Give a reason"), value="", limit=">= 1")
    if len(reason.strip()) > 300:
        raise InputError(
            "reason", msg("%(field)s is longer than %(limit)s characters", field="reason", limit=300),
            value=len(reason), limit=300,
        )  # fmt: skip
    review.cancelled_at, review.cancel_reason = timezone.now(), reason.strip()
    _changed(review, "cancelled_at", "cancel_reason")
    record("review.meeting_cancelled", on=review, by=by, reason=review.cancel_reason)
    notify(
        participants(review),
        "review.meeting_cancelled",
        on=review,
        revision=str(review.invitation),
        message=msg(
            "The meeting of the capacity review %(quarter)s on %(day)s is cancelled: %(reason)s",
            quarter=str(review), day=review.meeting_on.isoformat(), reason=review.cancel_reason,
        ),
        url=review.get_absolute_url(),
        attachment=_stored(review, cancelled=True),
    )  # fmt: skip
    return review


@transaction.atomic
def plan_meeting(
    *,
    review_id: int,
    agenda: str,
    people: Sequence[User],
    by: User,
    seen_version: int | None = None,
) -> CapacityReview:
    """Say who takes part and what is talked about. Nobody named: all who may read reviews. Everyone gets the changed
    invitation; who no longer takes part gets a calendar file that takes it out.
    """
    review = _changeable(review_id, by, seen_version)
    for person in people:
        if not review_policies.can_see_reviews(person):
            raise InputError(
                "participants", msg("%(name)s may not read reviews", name=str(person)), value=person.email
            )  # fmt: skip
    if len(agenda) > AGENDA:
        raise InputError(
            "agenda", msg("%(field)s is longer than %(limit)s characters", field="agenda", limit=AGENDA),
            value=len(agenda), limit=AGENDA,
        )  # fmt: skip
    before = {user.pk: user for user in participants(review)}
    agenda_before, review.agenda = review.agenda, agenda.strip()
    review.participants.set(people)
    now = {user.pk for user in participants(review)}
    if review.agenda == agenda_before and now == set(before):
        return review
    _changed(review, "agenda")
    record(
        "review.meeting_planned", on=review, by=by, agenda=review.agenda,
        joined=sorted(now - set(before)), left=sorted(set(before) - now),
    )  # fmt: skip
    if review.cancelled_at is None:
        _uninvite(review, [user for pk, user in before.items() if pk not in now])
        invite(review)
    return review


def participants(review: CapacityReview) -> list[User]:
    """Who takes part: those named, else everyone who may read reviews."""
    return list(review.participants.filter(is_active=True)) or readers()


def invite(review: CapacityReview) -> None:
    """Send the invitation as a calendar file; the same sequence is sent once to each person."""
    notify(
        participants(review),
        "review.invited",
        on=review,
        revision=str(review.invitation),
        message=msg(
            "The capacity review of %(quarter)s is on %(day)s.",
            quarter=str(review), day=review.meeting_on.isoformat(),
        ),
        url=review.get_absolute_url(),
        attachment=_stored(review),
    )  # fmt: skip


def _uninvite(review: CapacityReview, people: Iterable[User]) -> None:
    notify(
        people,
        "review.uninvited",
        on=review,
        revision=str(review.invitation),
        message=msg(
            "You no longer take part in the capacity review %(quarter)s on %(day)s.",
            quarter=str(review), day=review.meeting_on.isoformat(),
        ),
        url=review.get_absolute_url(),
        attachment=_stored(review, cancelled=True),
    )  # fmt: skip


def invite_missing() -> None:
    """Send invitations that were not sent yet: after a review was scheduled, or by a worker that died."""
    for review in CapacityReview.objects.filter(cancelled_at=None).exclude(status__in=BEGUN):
        sent = Notice.objects.filter(
            event="review.invited",
            object_type=object_type(review),
            object_id=str(review.pk),
            revision=str(review.invitation),
        )
        if not sent.exists():
            invite(review)


def remind() -> None:
    """Remind those who take part, once for each day that was set, when the meeting is near."""
    near = today() + timedelta(days=rules().remind_before_days)
    due = CapacityReview.objects.filter(
        cancelled_at=None, meeting_on__gte=today(), meeting_on__lte=near
    ).exclude(status__in=BEGUN)
    for review in due:
        notify(
            participants(review),
            "review.reminded",
            on=review,
            revision=review.meeting_on.isoformat(),
            message=msg(
                "The capacity review of %(quarter)s is near: it is on %(day)s.",
                quarter=str(review), day=review.meeting_on.isoformat(),
            ),
            url=review.get_absolute_url(),
        )  # fmt: skip


def _stored(review: CapacityReview, *, cancelled: bool = False) -> StoredFile:
    state = "-cancelled" if cancelled else ""
    return store_bytes(
        calendar(review, cancelled=cancelled).encode(),
        name=f"capacity-review-{review.code}-{review.invitation}{state}.ics",
        content_type=f"text/calendar; method={'CANCEL' if cancelled else 'REQUEST'}",
    )


def agenda_of(review: CapacityReview) -> str:
    """What was written, else the usual one, in the language in force."""
    return review.agenda or gettext(
        "Agenda: what became of the last decisions; demand and supply; use and queues; forecast; a recommendation "
        "for each pool; decisions."
    )


def calendar(review: CapacityReview, *, cancelled: bool | None = None) -> str:
    """The meeting as iCalendar (RFC 5545): a whole day, the same UID for every change, SEQUENCE counting them.

    `cancelled` None: as the meeting stands.
    """
    cancelled = review.cancelled_at is not None if cancelled is None else cancelled
    with translation.override(organisation().language):
        title = gettext("Capacity review %(quarter)s") % {"quarter": str(review)}
        agenda = agenda_of(review)
    day = review.meeting_on
    lines = [
        "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Headroom//Capacity review//EN",
        f"METHOD:{'CANCEL' if cancelled else 'REQUEST'}", "BEGIN:VEVENT",
        f"UID:review-{review.code}@{settings.SITE_URL.split('//')[-1].split('/')[0]}",
        f"SEQUENCE:{review.invitation}",
        f"DTSTAMP:{review.created_at.astimezone(UTC):%Y%m%dT%H%M%SZ}",
        f"DTSTART;VALUE=DATE:{day:%Y%m%d}", f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}",
        f"SUMMARY:{_escaped(title)}", f"DESCRIPTION:{_escaped(agenda)}",
        f"ORGANIZER:mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}",
        *(f"ATTENDEE;ROLE=REQ-PARTICIPANT:mailto:{user.email}" for user in participants(review)),
        f"URL:{settings.SITE_URL}{review.get_absolute_url()}",
        f"STATUS:{'CANCELLED' if cancelled else 'CONFIRMED'}", "END:VEVENT", "END:VCALENDAR",
    ]  # fmt: skip
    return "".join(_folded(line) + "\r\n" for line in lines)


def _escaped(text: str) -> str:
    for sign in ("\\", ";", ","):
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\r", "").replace("\n", "\\n")


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
