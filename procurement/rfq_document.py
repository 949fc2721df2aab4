"""An issued RFQ as a document for its vendors: no request, no team, no other vendor is named in it."""

from __future__ import annotations

from core.pdf import render_pdf
from procurement.models import RfqDocument


def render_rfq(document: RfqDocument) -> bytes:
    """PDF in the document's language, dated by the day of issue. Takes seconds: call it in a task."""
    rfq = document.rfq
    if rfq.published_at is None:
        raise ValueError("an RFQ that was not issued has no document")
    context = {
        "rfq": rfq,
        "deadline": document.local_deadline,
        "lines": rfq.lines.all(),
        "requirements": rfq.requirements.all(),
        "clauses": rfq.clauses.all(),
        "criteria": rfq.criteria.all(),
    }
    return render_pdf(
        "procurement/rfq_document.html", context, document.language, made_at=rfq.published_at
    )


def document_name(document: RfqDocument) -> str:
    """`RFQ-2027-0001-en.pdf`; after an extension `RFQ-2027-0001-en-r2.pdf`."""
    later = f"-r{document.revision}" if document.revision > 1 else ""
    return f"{document.rfq.number}-{document.language}{later}.pdf"
