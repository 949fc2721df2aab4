"""Memo and letters of a decided award: queued with the decision, kept once."""

from __future__ import annotations

from django.db import transaction

from core.jobs import submit
from core.models import LANGUAGE_CHOICES, StoredFile, User
from core.transitions import lock
from procurement.models import Award, AwardDocument
from procurement.models.awards import DocumentKind
from procurement.services.drawn import keep
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
