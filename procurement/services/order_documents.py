"""The vendor's copy of an order: queued when the order binds, one per amendment, kept with its hash."""

from __future__ import annotations

from django.db import transaction

from core.audit import record
from core.files import store_bytes
from core.jobs import submit
from core.models import Job, User
from core.transitions import lock
from procurement.models import PurchaseOrder

RENDER_TASK = "procurement.tasks.render_order_document"


def request_document(order: PurchaseOrder, *, by: User | None) -> Job:
    """Queue the document of the order's binding revision; the same revision twice is one job."""
    key = f"order-document:{order.pk}:{order.revision}"
    return submit(RENDER_TASK, order.pk, order.revision, key=key, owner=by)


@transaction.atomic
def attach_document(*, order_id: int, revision: int, content: bytes, name: str) -> PurchaseOrder:
    """Keep a drawn document as the order's, unless a newer amendment bound meanwhile. Safe to repeat."""
    order = lock(PurchaseOrder.objects.select_related("document"), order_id)
    if order.revision != revision or (order.document is not None and order.document.name == name):
        return order
    order.document = store_bytes(content, name=name, content_type="application/pdf")
    order.save(update_fields=["document"])
    record(
        "order.documented", on=order, by=None, amendment=revision, sha256=order.document.sha256,
    )  # fmt: skip
    return order
