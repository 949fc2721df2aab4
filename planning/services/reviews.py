"""Capacity reviews: scheduled once, frozen as numbered snapshots, reported in two languages, held and closed."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from core import jobs
from core.audit import record
from core.errors import InputError, InvalidTransition
from core.files import store_bytes
from core.messages import msg
from core.models import Membership, Organisation, StoredFile, User
from core.organisation import organisation
from core.outbox import notify
from core.policies import require
from core.quarters import Quarter
from core.stale import check_version
from core.transitions import advance, lock
from planning import review_policies
from planning.actuals import QuarterActuals
from planning.models.review_schedules import ReviewSchedule
from planning.models.reviews import BOTH, LANGUAGES, CapacityReview, ReviewReport, ReviewSnapshot
from planning.selectors.reviews import review_figures
from planning.services.month_one import rules
from planning.services.review_schedules import active_schedules, start_month_of

TEMPLATE_VERSION = 2
Status = CapacityReview.Status


def ensure_reviews() -> list[CapacityReview]:
    """Schedule the review of the running fiscal quarter of each unit that holds reviews, once. Returns those made now.

    Safe to run by two schedulers at the same instant: the unique constraint decides, not luck.
    """
    org = organisation()
    made = [_schedule(row, org) for row in active_schedules()]
    return [review for review in made if review is not None]


def make_scheduled_review(*, schedule_id: int) -> CapacityReview | None:
    """The running quarter's review of one schedule, once. None: it is there, or no reviews are held."""
    row = next((row for row in active_schedules() if row.pk == schedule_id), None)
    return None if row is None else _schedule(row, organisation())


def _schedule(unit: ReviewSchedule, org: Organisation) -> CapacityReview | None:
    now = timezone.now()
    period = Quarter.at(now, org.zone, start_month_of(unit, org))
    if now < datetime.combine(period.start, time(unit.at_hour), tzinfo=org.zone):
        return (
            None  # beat's entry comes at that hour; this look, every minute, only makes up for it
        )
    there = CapacityReview.objects.of_unit(unit.team_id)
    if there.filter(fiscal_year=period.year, quarter=period.q).exists():
        return None
    after = rules().meeting_after_days
    if unit.meeting_after_days is not None:
        after = unit.meeting_after_days
    try:
        with transaction.atomic():
            review = CapacityReview.objects.create(
                team=unit.team,
                fiscal_year=period.year,
                quarter=period.q,
                start_month=period.start_month,
                meeting_on=_working_day(period.end + timedelta(days=after)),
            )
            record("review.scheduled", on=review, by=None, to_state=review.status)
            return review
    except IntegrityError:
        return None  # another scheduler was first


def _working_day(day: date) -> date:
    while day.weekday() >= 5:
        day += timedelta(days=1)
    return day


def readers() -> list[User]:
    """Everyone who may read reviews."""
    ids = Membership.objects.filter(
        team=None, role__in=[role.value for role in review_policies.READERS], user__is_active=True
    ).values("user")
    return list(User.objects.filter(pk__in=ids))


def due_reviews() -> list[int]:
    """Reviews whose quarter has ended and whose figures nobody has frozen since: the scheduler freezes those."""
    org = organisation()
    due = []
    for review in CapacityReview.objects.exclude(status__in=[Status.IN_SESSION, Status.CLOSED]):
        _start, end = review.period.span(org.zone)
        if timezone.now() >= end and not review.snapshots.filter(as_of__gte=end).exists():
            due.append(review.pk)
    return due


@transaction.atomic
def freeze_review(
    *,
    review_id: int,
    actuals: QuarterActuals,
    by: User | None,
    reason: str = "",
    seen_version: int | None = None,
) -> ReviewSnapshot:
    """Freeze the figures as the next snapshot and queue its documents. `by` None: the scheduler.

    A second snapshot is a correction and needs a reason. Raises NotPermitted, InvalidTransition, InputError.
    """
    review = lock(CapacityReview.objects.all(), review_id)
    if by is not None:
        require(review_policies.can_freeze_review(by))
    check_version(review, seen_version)
    number = (review.snapshots.aggregate(last=Max("number"))["last"] or 0) + 1
    if number > 1 and by is not None and not reason.strip():
        raise InputError(
            "reason",
            msg("Figures were frozen before; say why they are frozen again"),
            value="",
            limit=">= 1",
        )
    as_of = timezone.now()
    data = review_figures(
        period=review.period,
        organisation=organisation(),
        actuals=actuals,
        as_of=as_of,
        team=review.team,
    )
    snapshot = ReviewSnapshot.objects.create(
        review=review,
        number=number,
        as_of=as_of,
        data=data,
        data_hash=ReviewSnapshot.hash_of(data),
        reason=reason,
        frozen_by=by,
    )
    if review.status == Status.DATA_FROZEN:
        record("review.frozen", on=review, by=by, reason=reason, snapshot=number)
    else:
        advance(
            review,
            Status.DATA_FROZEN,
            by=by,
            action="review.frozen",
            reason=reason,
            snapshot=number,
        )
    for language in LANGUAGES:
        request_report(snapshot=snapshot, language=language, by=by)
    return snapshot


def request_report(*, snapshot: ReviewSnapshot, language: str, by: User | None) -> ReviewReport:
    """Queue the PDF of a snapshot in a language; the same one twice is one row and one job."""
    choices = (*LANGUAGES, BOTH)
    if language not in choices:
        raise InputError(
            "language",
            msg(
                "%(value)s is not a language of reviews (%(limit)s)",
                value=language,
                limit=", ".join(choices),
            ),
            value=language,
            limit=", ".join(choices),
        )
    report, _new = ReviewReport.objects.get_or_create(
        snapshot=snapshot, language=language, template_version=TEMPLATE_VERSION
    )
    if report.job_id is None:
        report.job = jobs.submit(
            "planning.tasks.render_review",
            report.pk,
            key=f"review-report:{report.pk}",
            owner=by,
        )
        report.save(update_fields=["job"])
    return report


@transaction.atomic
def ask_for_report(*, review_id: int, number: int, language: str, by: User) -> ReviewReport:
    """Have a frozen version drawn in a language, or in both. Raises NotPermitted, InputError.

    One that is drawn, or being drawn, is handed back as it is.
    """
    review = lock(CapacityReview.objects.all(), review_id)
    require(review_policies.can_freeze_review(by))
    snapshot = review.snapshots.filter(number=number).first()
    if snapshot is None:
        most = review.snapshots.aggregate(last=Max("number"))["last"] or 0
        raise InputError(
            "number",
            msg("There is no version %(value)s; the newest is %(limit)s", value=number, limit=most),
            value=number,
            limit=most,
        )
    report = request_report(snapshot=snapshot, language=language, by=by)
    record("review.report_asked", on=review, by=by, language=language, snapshot=number)
    return report


@transaction.atomic
def attach_report(*, report_id: int, content: bytes, name: str) -> StoredFile:
    """Keep a rendered PDF. The first one stays: a repeated rendering changes nothing. Tells the readers once."""
    report = lock(ReviewReport.objects.all(), report_id)
    if report.file is not None:
        return report.file
    report.file = store_bytes(content, name=name, content_type="application/pdf")
    report.made_at = timezone.now()
    report.save(update_fields=["file", "made_at"])
    snapshot = report.snapshot
    review = lock(CapacityReview.objects.all(), snapshot.review_id)
    record(
        "review.report_made",
        on=review,
        by=None,
        language=report.language,
        snapshot=snapshot.number,
        sha256=report.file.sha256,
    )
    latest = review.snapshots.aggregate(last=Max("number"))["last"]
    open_reports = snapshot.reports.filter(template_version=TEMPLATE_VERSION, file=None).exists()
    if snapshot.number == latest and not open_reports and review.status == Status.DATA_FROZEN:
        advance(review, Status.REPORT_READY, by=None, action="review.report_ready")
    for user in readers():
        if (user.language or organisation().language) == report.language:
            notify(
                [user],
                f"review.report_made.{report.language}",
                on=review,
                revision=str(snapshot.number),
                message=msg(
                    "The pack of the capacity review %(review)s (version %(number)s) is ready.",
                    review=str(review),
                    number=snapshot.number,
                ),
                url=review.get_absolute_url(),
                attachment=report.file,
            )
    return report.file


@transaction.atomic
def open_session(*, review_id: int, by: User, seen_version: int | None = None) -> CapacityReview:
    """The meeting starts: `by` chairs it."""
    review = lock(CapacityReview.objects.all(), review_id)
    require(review_policies.can_hold_review(by))
    check_version(review, seen_version)
    if review.cancelled_at is not None:
        raise InvalidTransition(msg("The meeting is cancelled: set another day first"))
    review.chair = by
    review.save(update_fields=["chair"])
    advance(review, Status.IN_SESSION, by=by, action="review.opened")
    return review


@transaction.atomic
def close_review(
    *, review_id: int, minutes: str, by: User, seen_version: int | None = None
) -> CapacityReview:
    """Close the meeting with its minutes; only the one who chairs it may."""
    review = lock(CapacityReview.objects.all(), review_id)
    require(review_policies.can_hold_review(by))
    check_version(review, seen_version)
    if review.status == Status.IN_SESSION and review.chair_id != by.pk:
        raise InvalidTransition(
            msg("%(chair)s chairs this review and closes it", chair=str(review.chair))
        )
    if not minutes.strip():
        raise InputError(
            "minutes", msg("Write what was decided, or that nothing was"), value="", limit=">= 1"
        )
    review.minutes = minutes.strip()
    review.save(update_fields=["minutes"])
    advance(review, Status.CLOSED, by=by, action="review.closed")
    return review
