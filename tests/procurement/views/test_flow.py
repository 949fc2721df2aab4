"""The way through the pages, as people fill the forms."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from core.models import User
from core.organisation import today
from procurement.models import (
    Acceptance,
    Asset,
    Award,
    BurnInRun,
    Delivery,
    EvidenceFile,
    Invoice,
    PurchaseOrder,
    Quote,
    Rfq,
    Rma,
)
from procurement.selectors.thread import request_thread
from procurement.services import evidence
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def step(user: User, noun: str, obj: Any, action: str, expect: int = 302, **data: str) -> None:
    obj.refresh_from_db()
    response = signed_in(user).post(
        reverse("procurement-step", args=[noun, obj.pk, action]), {"version": obj.version, **data}
    )
    assert response.status_code == expect, response.text[-2000:]


def quote_form(vendor: Any, price: str, months: str = "36", **fields: str) -> dict[str, Any]:
    return {
        "vendor": vendor.pk, "currency": vendor.currency, "tax_mode": "document",
        "valid_until": str(today() + timedelta(days=60)), "lead_time_days": "30",
        "lines-TOTAL_FORMS": "2", "lines-INITIAL_FORMS": "0",
        "lines-0-rfq_line": "1", "lines-0-kind": "accelerator", "lines-0-description": "H100 SXM",
        "lines-0-manufacturer": "NVIDIA", "lines-0-quantity": "8", "lines-0-unit": "pcs",
        "lines-0-unit_price": price, "lines-0-tax_percent": "13", "lines-0-accelerators_per_item": "1",
        "lines-0-serialised": "true", "lines-1-kind": "server",
        "start_trigger": "acceptance", "months": months, "new_parts_only": "true",
        "papers": SimpleUploadedFile("quote.pdf", b"%PDF-1.7 quote"),
        **fields,
    }  # fmt: skip


def test_from_request_to_accepted_cards_by_the_pages():
    s = b.shop()
    request = b.request(s)
    buyer = signed_in(s.procurement)
    page = buyer.get(reverse("rfq-create"), {"request": request.pk})
    assert request.reference in page.text
    deadline = timezone.localtime() + timedelta(days=7)
    form = {
        "title": "Eight H100", "requests": [request.pk], "vendors": [s.vendor.pk, s.rival.pk],
        "deadline": deadline.strftime("%Y-%m-%dT%H:%M"), "deadline_zone": "Asia/Shanghai",
        "warranty_months": "36", "warranty_start": "acceptance", "terms": "as agreed",
        "weight_price": "20", "weight_warranty_price": "60", "weight_warranty": "0", "weight_lead_time": "10",
    }  # fmt: skip
    assert buyer.post(reverse("rfq-create"), form).status_code == 422  # weights add up to 90
    assert buyer.post(reverse("rfq-create"), form | {"weight_lead_time": "20"}).status_code == 302
    rfq = Rfq.objects.get()
    step(s.procurement, "rfq", rfq, "publish")

    address = reverse("quote-create", args=[rfq.pk])
    missing = buyer.post(address, quote_form(s.vendor, ""))
    assert missing.status_code == 422
    assert "A missing price is not 0" in missing.text
    assert buyer.post(address, quote_form(s.vendor, "250000")).status_code == 302
    assert buyer.post(address, quote_form(s.rival, "35000", "12")).status_code == 302
    step(s.procurement, "rfq", rfq, "close", reason="Both answered")

    compared = buyer.get(reverse("rfq-compare", args=[rfq.pk])).text
    # The dollar bid is 248,500 CNY a card: 1,500 cheaper, and dearer by the warranted year.
    assert "248,500.00 CNY" in compared
    assert "Cheaper is not better here" in compared
    chosen = Quote.objects.get(vendor=s.vendor)
    short = {"quote": chosen.pk, "reason": "too short"}
    assert buyer.post(reverse("rfq-compare", args=[rfq.pk]), short).status_code == 422
    assert (
        buyer.post(reverse("rfq-compare", args=[rfq.pk]), short | {"reason": b.REASON}).status_code
        == 302
    )
    step(s.procurement, "award", Award.objects.get(), "approve", expect=403)
    step(s.cto, "award", Award.objects.get(), "approve")
    order = PurchaseOrder.objects.get()
    step(s.procurement, "order", order, "issue")
    step(
        s.procurement, "order", order, "acknowledge", promised_on=str(today() + timedelta(days=20))
    )

    dock = signed_in(s.operations)
    pasted = "\n".join(f"{n}, {u}" for n, u in zip(b.SERIALS, b.UUIDS, strict=True))
    b.aged(order)
    receipt = {
        "note_number": "DN-1", "arrived_on": str(today() - b.ARRIVED), "quantity_1": "8",
    }  # fmt: skip
    twice = pasted.replace(b.SERIALS[1], b.SERIALS[0])
    refused = dock.post(reverse("order-receive", args=[order.pk]), receipt | {"units_1": twice})
    assert refused.status_code == 422
    assert "positions 1 and 2" in refused.text
    assert not Asset.objects.exists()
    assert (
        dock.post(
            reverse("order-receive", args=[order.pk]), receipt | {"units_1": pasted}
        ).status_code
        == 302
    )
    delivery = Delivery.objects.get()
    step(s.engineer, "delivery", delivery, "start-burn-in", site="Shanghai 1", rack="A1")
    bench = signed_in(s.engineer)
    log = SimpleUploadedFile("burn.log", b.BURN_FAULTY.read_bytes())
    bench.post(reverse("evidence-upload", args=[delivery.pk]), {"uploads": log})
    evidence.read_file(evidence_id=EvidenceFile.objects.get().pk, report=lambda *_: None)
    board = bench.get(reverse("delivery-burn-in", args=[delivery.pk])).text
    assert "72.0 / 72" in board
    items = reverse("burn-in-items", args=[delivery.pk])
    bench.post(items, {"codes": b.PEOPLE_ITEMS, "result": "pass"})
    bench.post(items, {"codes": b.REVIEW_ITEMS, "result": "pass", "note": "By hand"})
    step(s.engineer, "delivery", delivery, "complete-ready")
    assert BurnInRun.objects.filter(status="passed").count() == 6
    step(s.engineer, "delivery", delivery, "propose-acceptance", expect=422)
    step(s.engineer, "delivery", delivery, "propose-acceptance", reason="Failed the burn-in")
    step(s.engineer, "acceptance", Acceptance.objects.get(), "sign", expect=403)
    step(s.cto, "acceptance", Acceptance.objects.get(), "sign")
    step(s.engineer, "rma", Rma.objects.first(), "file")

    invoice = {
        "number": "INV-1", "dated_on": str(today()), "tax_mode": "document", "stated_tax": "195000",
        "stated_gross": "1695000", "quantity_1": "6", "unit_price_1": "250000", "tax_percent_1": "13",
    }  # fmt: skip
    ledger = signed_in(s.finance)
    assert ledger.post(reverse("order-invoice", args=[order.pk]), invoice).status_code == 302
    step(s.finance, "invoice", Invoice.objects.get(), "match")
    assert Invoice.objects.get().status == "matched"
    again = ledger.post(reverse("order-invoice", args=[order.pk]), invoice | {"number": " inv-1"})
    assert again.status_code == 409

    thread = signed_in(s.requester).get(reverse("request-thread", args=[request.pk])).text
    assert "2 failed cards are not replaced yet" in thread
    assert "6 of 8 accepted" in thread
    states = {stage.key: stage.state for stage in request_thread(request, s.requester).stages}
    assert states["acceptance"] == "current"


def test_a_step_has_a_page_of_its_own_that_only_asks():
    s = b.shop()
    rfq = b.rfq(s)
    address = reverse("procurement-step", args=["rfq", rfq.pk, "cancel"])
    assert signed_in(s.procurement).get(address).status_code == 200
    rfq.refresh_from_db()
    assert rfq.status == "open"
    assert signed_in(s.procurement).post(address, {"reason": ""}).status_code == 422
    stale = signed_in(s.procurement).post(address, {"reason": "No need", "version": "1"})
    assert stale.status_code == 409
