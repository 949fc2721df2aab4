"""Every page of buying and proving: shown to those who take part, 404 to other teams, a fixed number of queries."""

from __future__ import annotations

import pytest
from django.urls import reverse

from core.organisation import today
from planning.models import CapacityRequest
from procurement.models import (
    Acceptance,
    Asset,
    BurnInRun,
    EvidenceFile,
    Invoice,
    PurchaseOrder,
    Quote,
    Rfq,
    Rma,
    Vendor,
)
from procurement.services import invoices
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def story():
    """A whole case: one faulty delivery accepted in part, an invoice, two returns."""
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    b.accepted(s, delivery)
    invoices.capture_invoice(
        order_id=delivery.order_id, number="INV-1", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "6", "unit_price": "250000", "tax_rate": "0.13"}],
        stated_tax="195000", stated_gross="1695000",
    )  # fmt: skip
    return s


def addresses() -> dict[str, str]:
    first = {
        "vendor-detail": Vendor, "rfq-detail": Rfq, "rfq-compare": Rfq, "quote-detail": Quote,
        "order-detail": PurchaseOrder, "run-detail": BurnInRun, "evidence-detail": EvidenceFile,
        "acceptance-detail": Acceptance, "asset-detail": Asset, "rma-detail": Rma,
        "invoice-detail": Invoice, "request-thread": CapacityRequest,
    }  # fmt: skip
    found = {name: reverse(name, args=[model.objects.first().pk]) for name, model in first.items()}
    delivery = Acceptance.objects.get().delivery_id
    found |= {
        name: reverse(name, args=[delivery]) for name in ("delivery-detail", "delivery-burn-in")
    }
    lists = ("vendor-list", "rfq-list", "order-list", "delivery-list", "asset-list", "rma-list")
    return found | {name: reverse(name) for name in lists}


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_shown_in_both_languages(client, story, language):
    for person in (story.procurement, story.cto, story.operations, story.finance, story.auditor):
        person.language = language
        person.save()
        client.force_login(person)
        for name, address in addresses().items():
            expected = (
                404
                if person == story.operations and name in ("rfq-compare", "invoice-detail")
                else 200
            )
            assert client.get(address).status_code == expected, (name, person)


def test_another_team_sees_none_of_it(client, story):
    client.force_login(story.outsider)
    for name, address in addresses().items():
        response = client.get(address)
        if name.endswith("-list"):
            assert response.status_code == 200
            assert b.SERIALS[0] not in response.text
            assert "Hengda" not in response.text
        else:
            assert response.status_code == 404, name
