"""Memo and letters of a decided award: queued with the decision, kept once, letters mailed once when asked for."""

from __future__ import annotations

from django.db import transaction

from core.audit import record
from core.errors import InvalidTransition
from core.jobs import submit
from core.messages import msg
from core.models import LANGUAGE_CHOICES, StoredFile, User
from core.outbox import post
from core.transitions import lock
from procurement.award_documents import letter
from procurement.models import Award, AwardDocument
from procurement.models.awards import DocumentKind
from procurement.selectors.letters import SENT, recipient, sendings
from procurement.services.drawn import keep
from procurement.services.moves import take, touch
from procurement.states import QuoteStatus

RENDER_TASK = "procurement.tasks.render_award_document"


def request_documents(award: Award, *, by: User) -> list[AwardDocument]:
    """Queue the memo in every language, and a letter to each vendor that was not chosen, in its language."""
    rows = [
        AwardDocument(award=award, kind=DocumentKind.MEMO, language=code)
        for code, _name in LANGUAGE_CHOICES
    ]
    known = {row["id"] for row in (award.record or {})["quotes"]}
    losers = award.rfq.quotes.filter(
        pk__in=known, status__in=[QuoteStatus.NOT_SELECTED, QuoteStatus.DISQUALIFIED]
    ).select_related("vendor")
    rows += [
        AwardDocument(
            award=award, kind=DocumentKind.REGRET, language=quote.vendor.language, quote=quote
        )
        for quote in losers
    ]
    for row in rows:
        row.save()
        row.job = submit(RENDER_TASK, row.pk, key=f"award-document:{row.pk}", owner=by)
        row.save(update_fields=["job"])
    return rows


@transaction.atomic
def attach_document(*, document_id: int, content: bytes, name: str) -> StoredFile:
    """Keep a drawn document. The first one stays: drawing it again changes nothing."""
    row = lock(AwardDocument.objects.select_related("award"), document_id)
    return keep(
        row, content, name=name, action="award.document_made", on=row.award, kind=row.kind,
        quote=row.quote_id,
    )  # fmt: skip


@transaction.atomic
def send_letters(*, award_id: int, by: User, version: int | None = None) -> Award:
    """Mail each vendor that was not chosen its letter, once, in its language, to its first contact with an address.

    Those without an address are named in the trail and on the page, and are sent once they have one. Raises
    NotPermitted, or InvalidTransition naming vendors when there is nothing to send (all sent, still being made, or no
    address).
    """
    award: Award = take(
        Award.objects.select_related("rfq__owner"), award_id, action="send_letters", by=by,
        version=version,
    )  # fmt: skip
    rows = [row for row in sendings(award) if row.mail is None]
    if not rows:
        raise InvalidTransition(msg("Every letter of this award was sent"))
    being_made = [row.vendor.name for row in rows if row.document.file is None]
    homeless = [row.vendor.name for row in rows if not row.address]
    ready = [row for row in rows if row.can_go]
    if not ready:
        raise InvalidTransition(
            msg("No contact has an e-mail address: %(vendors)s", vendors=", ".join(homeless))
            if not being_made
            else msg("The letters are still being made: %(vendors)s", vendors=", ".join(being_made))
        )
    for row in ready:
        text = letter(row.document)
        post(
            SENT, on=award, recipient=recipient(row.vendor), address=row.address, subject=text.subject,
            body=text.text, reply_to=award.rfq.owner.email, attachment=row.document.file,
        )  # fmt: skip
    touch(award)
    record(
        "award.letters_sent", on=award, by=by, vendors=[row.vendor.name for row in ready],
        without_address=homeless, being_made=being_made,
    )  # fmt: skip
    return award
