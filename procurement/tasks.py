"""Entry points for the worker: an id in, one service called."""

from __future__ import annotations

import structlog
from celery import shared_task

from core.errors import DomainError
from core.jobs import JobCancelled, Progress, job_task
from core.messages import msg
from core.models import Job
from core.organisation import NotSetUp
from procurement import award_documents, rfq_document
from procurement.certificate import certificate_name, render_certificate
from procurement.models import AcceptanceCertificate, AwardDocument, PurchaseOrder, RfqDocument
from procurement.order_document import document_name, render_order
from procurement.services import quote_imports
from procurement.services.award_documents import attach_document as attach_award_document
from procurement.services.certificates import attach_certificate
from procurement.services.evidence import read_file
from procurement.services.evidence_checks import check_evidence
from procurement.services.live import seal_finished, watch_feeds
from procurement.services.order_documents import attach_document
from procurement.services.reminders import (
    remind_of_documents,
    remind_of_registrations,
    remind_of_waivers,
    remind_of_warranties,
)
from procurement.services.reviews import freeze_due_reviews
from procurement.services.rfq_documents import attach_document as attach_rfq_document
from procurement.services.rfqs import close_rfq, due_rfqs

log = structlog.get_logger(__name__)


@job_task
def read_evidence_file(job: Job, progress: Progress, evidence_id: int) -> None:
    """Read an evidence file and bind what it says to units."""
    read_file(evidence_id=evidence_id, report=progress)


@job_task
def render_acceptance_certificate(job: Job, progress: Progress, certificate_id: int) -> None:
    """Draw a signed certificate with its evidence inside, and keep it."""
    certificate = AcceptanceCertificate.objects.select_related(
        "acceptance__delivery__order__vendor", "acceptance__proposed_by", "acceptance__decided_by"
    ).get(pk=certificate_id)
    if certificate.file_id is not None:
        return
    progress(10, msg("Drawing the certificate"))
    content = render_certificate(certificate)
    progress(90, msg("Keeping the document"))
    attach_certificate(
        certificate_id=certificate.pk, content=content, name=certificate_name(certificate)
    )


@job_task
def render_award_document(job: Job, progress: Progress, document_id: int) -> None:
    """Draw the memo of an award, or a letter to a vendor that was not chosen, and keep it."""
    document = AwardDocument.objects.select_related("award__rfq").get(pk=document_id)
    if document.file_id is not None:
        return
    progress(10, msg("Drawing the document"))
    content = award_documents.render_document(document)
    progress(90, msg("Keeping the document"))
    attach_award_document(
        document_id=document_id, content=content, name=award_documents.document_name(document)
    )


@job_task
def render_rfq_document(job: Job, progress: Progress, document_id: int) -> None:
    """Draw an issued RFQ for its vendors, and keep it."""
    document = RfqDocument.objects.select_related("rfq").get(pk=document_id)
    if document.file_id is not None:
        return
    progress(10, msg("Drawing the document"))
    content = rfq_document.render_rfq(document)
    progress(90, msg("Keeping the document"))
    attach_rfq_document(
        document_id=document_id, content=content, name=rfq_document.document_name(document)
    )


@job_task
def render_order_document(job: Job, progress: Progress, order_id: int, revision: int) -> None:
    """Draw the vendor's copy of an order's binding revision, and keep it."""
    order = PurchaseOrder.objects.select_related(
        "vendor", "quote__warranty", "award__rfq", "issued_by"
    ).get(pk=order_id)
    if order.revision != revision:
        return  # a newer amendment has its own job
    progress(10, msg("Drawing the order"))
    content = render_order(order)
    progress(90, msg("Keeping the document"))
    attach_document(
        order_id=order_id, revision=revision, content=content, name=document_name(order)
    )


@job_task
def check_quote_import(job: Job, progress: Progress, import_id: int) -> None:
    """Say what becomes of each row of a large table of quote lines."""
    quote_imports.check_import(pk=import_id, progress=progress)


@job_task
def apply_quote_import(job: Job, progress: Progress, import_id: int) -> None:
    """Record the quote of a large table; when it cannot be recorded the table goes back to its preview."""
    try:
        quote_imports.write_import(pk=import_id, progress=progress)
    except (DomainError, JobCancelled) as error:
        quote_imports.give_up_import(
            pk=import_id, error=error if isinstance(error, DomainError) else None
        )
        raise


@shared_task  # type: ignore[untyped-decorator]
def close_due_rfqs() -> None:
    """Close RFQs whose deadline has passed. Safe to repeat; one that cannot be closed does not stop the others."""
    for rfq_id in due_rfqs():
        try:
            close_rfq(rfq_id=rfq_id, by=None)
        except DomainError as error:
            log.warning("rfq.not_closed", rfq=rfq_id, text=str(error))


@shared_task  # type: ignore[untyped-decorator]
def check_evidence_files() -> int:
    """Compare evidence on disk with its hashes. Safe to repeat: an alarm is raised once."""
    return len(check_evidence())


@shared_task  # type: ignore[untyped-decorator]
def watch_live_burn_ins() -> tuple[int, int]:
    """Tell of cards that fell silent, and seal the log of those that have their hours. Safe to repeat."""
    return watch_feeds(), len(seal_finished())


@shared_task  # type: ignore[untyped-decorator]
def remind_of_ends() -> tuple[int, int, int, int]:
    """Tell of warranties, waivers and vendors' papers that end, and of those that wait for a registration.

    Safe to repeat: each mark is told once.
    """
    try:
        return (
            remind_of_warranties(), remind_of_waivers(), remind_of_documents(), remind_of_registrations(),
        )  # fmt: skip
    except NotSetUp:
        return 0, 0, 0, 0  # nothing ends before there is an organisation


@shared_task  # type: ignore[untyped-decorator]
def freeze_ended_quarters() -> None:
    """Freeze the figures of reviews whose quarter has ended. Safe to repeat."""
    try:
        freeze_due_reviews()
    except NotSetUp:
        return  # nothing to review before there is an organisation
