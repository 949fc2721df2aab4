"""Entry points of background work and of the clock: load by id, call one service. Safe to repeat."""

from __future__ import annotations

from datetime import date

from celery import shared_task
from django.db import OperationalError

from core.errors import DomainError
from core.jobs import JobCancelled, Progress, job_task
from core.messages import msg
from core.models import Job, User
from core.organisation import NotSetUp
from planning.models.reviews import ReviewReport
from planning.models.studies import StudyBrief
from planning.review_report import render_report, report_name
from planning.services import (
    allocations,
    briefs,
    freshness,
    imports,
    month_one,
    revaluation,
    review_meeting,
    review_work,
    reviews,
    silence,
    studies,
)
from planning.services.budgets import expire_reservation, expiring_requests
from planning.services.calibration import learn
from planning.services.ledger_proof import prove_and_alarm
from planning.services.telemetry_load import drop_old_samples as drop_samples
from planning.services.telemetry_load import load_file
from planning.services.telemetry_pull import pull
from planning.services.telemetry_sources import due_pulls, request_pull
from planning.study_brief import brief_name
from planning.study_brief import render_brief as draw_brief


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def prove_ledger() -> int:
    """Prove that the ledger adds up; tell finance and administrators what does not."""
    return prove_and_alarm()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def revalue_budgets() -> None:
    """Queue the night's re-valuation where the rules ask for one. Safe to repeat: it is the same run."""
    revaluation.start(by=None)


@job_task
def revalue_now(job: Job, progress: Progress, by_id: int | None, day: str) -> None:
    """Value what is bound in other currencies at the rates of a day. Delivered again it goes on where it stopped."""
    by = User.objects.get(pk=by_id) if by_id is not None else None
    revaluation.revalue(by=by, day=date.fromisoformat(day), progress=progress)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def expire_reservations() -> int:
    """Release soft reservations past the policy's age. Does nothing before a policy is in force."""
    return sum(expire_reservation(request_id=pk) for pk in expiring_requests())


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def ensure_reviews() -> None:
    """Schedule the running quarter's review. Harmless to repeat."""
    try:
        reviews.ensure_reviews()
        review_meeting.invite_missing()
    except NotSetUp:
        return  # nothing to review before there is an organisation


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def look_back() -> int:
    """Make the month-one reviews that are due. Each request has one; repeating makes none."""
    try:
        return sum(month_one.look_back(request_id=pk) is not None for pk in month_one.due())
    except NotSetUp:
        return 0


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def make_scheduled_review(schedule_id: int) -> None:
    """The review of one schedule, when its quarter begins. Harmless to repeat."""
    try:
        reviews.make_scheduled_review(schedule_id=schedule_id)
        review_meeting.invite_missing()
    except NotSetUp:
        return


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def ask_for_plans() -> None:
    """Ask teams for their plans when a review's meeting is near, and remind of it. Each person once a review."""
    try:
        review_work.ask_for_plans()
        review_meeting.remind()
    except NotSetUp:
        return


@job_task
def render_review(job: Job, progress: Progress, report_id: int) -> None:
    """Draw the PDF of one snapshot in one language and keep it."""
    report = ReviewReport.objects.select_related("snapshot__review", "file").get(pk=report_id)
    if report.file is not None:
        return
    progress(10, msg("Drawing the pack"))
    content = render_report(report)
    progress(90, msg("Keeping the document"))
    reviews.attach_report(report_id=report.pk, content=content, name=report_name(report))


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def outdate_studies() -> int:
    """Mark studies whose prices, figures or rates moved. Harmless to repeat."""
    return freshness.outdate_studies()


@job_task
def run_study(job: Job, progress: Progress, study_id: int) -> None:
    """Compute one study from its pinned inputs and store the result once."""
    studies.compute(study_id=study_id, progress=progress)


@job_task
def render_brief(job: Job, progress: Progress, brief_id: int) -> None:
    """Draw the decision brief of one study in one language and keep it."""
    brief = StudyBrief.objects.select_related("study__revision__request__team", "file").get(
        pk=brief_id
    )
    if brief.file is not None:
        return
    progress(10, msg("Drawing the brief"))
    content = draw_brief(brief)
    progress(90, msg("Keeping the document"))
    briefs.attach_brief(brief_id=brief.pk, content=content, name=brief_name(brief))


@job_task
def load_telemetry(job: Job, progress: Progress, ingestion_id: int) -> None:
    """Read a telemetry file and store what it says."""
    load_file(ingestion_id=ingestion_id, report=progress)


@job_task
def pull_telemetry(job: Job, progress: Progress, source_id: int) -> None:
    """Ask one Prometheus for what is new."""
    pull(source_id=source_id, report=progress)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def pull_due_sources() -> None:
    """Queue a question for every Prometheus source with a whole hour not asked for. One job an hour and source."""
    for pk in due_pulls():
        request_pull(source_id=pk, by=None)


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def drop_old_samples() -> int:
    """Let go of single samples past their source's window; the rollups stay."""
    return drop_samples()


@job_task
def apply_request_import(job: Job, progress: Progress, import_id: int) -> None:
    """File the rows of a large import; when they cannot be filed it goes back to its preview."""
    try:
        imports.file_rows(pk=import_id, progress=progress)
    except (DomainError, JobCancelled):
        imports.give_up_import(pk=import_id)
        raise


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def learn_from_outcomes() -> None:
    """Match new outcomes and make a calibration version where they change the factors. Safe to repeat."""
    learn()


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def escalate_silence() -> int:
    """Tell of steps on which nobody decided in time; end approvals that were not used in time. Harmless to repeat."""
    told = sum(silence.escalate(step_id=pk) for pk in silence.silent_steps())
    return told + sum(silence.lapse(request_id=pk) for pk in silence.overdue_approvals())


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True, max_retries=5, acks_late=True)
def watch_allocations() -> int:
    """Remind of allocations that end, and tell teams of cards that they do not use. Harmless to repeat."""
    told = allocations.remind_of_ends()
    return told + sum(
        allocations.note_underuse(allocation_id=pk) for pk in allocations.running_allocations()
    )
