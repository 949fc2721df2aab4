"""The purchase order as a document, in the vendor's language and the organisation's letterhead."""

from __future__ import annotations

from core.pdf import render_pdf
from procurement.models import PurchaseOrder
from procurement.models.rfqs import TRIGGER_LABELS
from procurement.selectors.milestones import milestone_states
from procurement.selectors.precedence import held_terms, order_differences
from procurement.warranty_rules import StartTrigger


def render_order(order: PurchaseOrder) -> bytes:
    """The order's binding terms as PDF, dated by its issue. Takes seconds: call it in a task."""
    if order.issued_at is None:
        raise ValueError("an order that was not issued has no document")
    lines = list(order.lines.select_related("request"))
    totals = order.totals(lines)
    held = held_terms(order)
    context = {
        "order": order,
        "lines": list(zip(lines, totals.lines, strict=True)),
        "totals": totals,
        "milestones": milestone_states(order, totals),
        "warranty": order.quote.warranty,
        "held": held,
        "start": TRIGGER_LABELS[StartTrigger(held["start_trigger"])],
        "differences": order_differences(order),
        "terms": order.award.rfq.terms,
        "clauses": order.award.rfq.clauses.all(),
        "contact": order.vendor.contacts.first(),
    }
    return render_pdf(
        "procurement/order_document.html", context, order.vendor.language, made_at=order.issued_at
    )


def document_name(order: PurchaseOrder) -> str:
    """`PO-2027-0001.pdf`, with the amendment's number when there is one."""
    suffix = f"-a{order.revision}" if order.revision else ""
    return f"{order.number}{suffix}.pdf"
