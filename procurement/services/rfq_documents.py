"""The RFQ as its vendors get it, once for each language of those invited: queued at the issue and at each extension."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Max

from core.jobs import submit
from core.models import StoredFile, User
from core.transitions import lock
from procurement.models import Rfq, RfqDocument
from procurement.services.drawn import keep

RENDER_TASK = "procurement.tasks.render_rfq_document"


def request_documents(rfq: Rfq, languages: Iterable[str], *, by: User) -> list[RfqDocument]:
    """Queue a document with the deadline as it stands, in each of `languages`. The RFQ is locked by the caller."""
    rows = []
    last = rfq.documents.aggregate(last=Max("revision"))["last"] or 0
    for language in sorted(set(languages)):
        row = RfqDocument.objects.create(
            rfq=rfq, language=language, revision=last + 1, deadline=rfq.deadline
        )
        row.job = submit(RENDER_TASK, row.pk, key=f"rfq-document:{row.pk}", owner=by)
        row.save(update_fields=["job"])
        rows.append(row)
    return rows


@transaction.atomic
def attach_document(*, document_id: int, content: bytes, name: str) -> StoredFile:
    """Keep a drawn document. The first one stays: drawing it again changes nothing."""
    row = lock(RfqDocument.objects.select_related("rfq"), document_id)
    return keep(row, content, name=name, action="rfq.document_made", on=row.rfq)
