"""The vendor's copy prints what the page shows, to the last digit, in both languages."""

from __future__ import annotations

import io

import pytest
from pypdf import PdfReader

from core.models import Job
from procurement.models import PurchaseOrder
from procurement.order_document import document_name, render_order
from procurement.services import orders
from procurement.tasks import render_order_document
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def text_of(order: PurchaseOrder) -> str:
    pages = PdfReader(io.BytesIO(render_order(order))).pages
    return "".join(page.extract_text() for page in pages).replace("\n", " ")


@pytest.mark.parametrize(
    ("language", "heading"), [("en", "Purchase order"), ("zh-hans", "采购订单")]
)
def test_it_prints_number_lines_and_totals(language, heading):
    s = b.shop()
    s.vendor.language = language
    s.vendor.save(update_fields=["language"])
    order = b.issued(s)
    text = text_of(order)
    for words in (
        heading,
        order.number,
        "H100 SXM 80 GB",
        "250,000",
        "2,000,000.00",
        "260,000.00",
        "2,260,000.00 CNY",
    ):
        assert words in text, words


def test_the_task_keeps_one_document_per_amendment_and_may_be_repeated():
    s = b.shop()
    order = b.issued(s)
    job = Job.objects.get(key=f"order-document:{order.pk}:0")
    render_order_document(str(job.pk))
    render_order_document(str(job.pk))
    order.refresh_from_db()
    assert order.document.name == document_name(order) == f"{order.number}.pdf"
    first = order.document.sha256

    revision = orders.propose_amendment(
        order_id=order.pk, changes={1: {"quantity": "9"}}, reason="one more", by=s.procurement
    )
    orders.approve_amendment(revision_id=revision.pk, by=s.cto)
    render_order_document(str(Job.objects.get(key=f"order-document:{order.pk}:1").pk))
    order.refresh_from_db()
    assert order.document.name == f"{order.number}-a1.pdf"
    assert order.document.sha256 != first
