"""Every page of buying and proving: shown to those who take part, 404 to other teams, a fixed number of queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
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
from procurement.routes import buying_api
from procurement.services import burn_in, invoices
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


def queries(client, address) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def more_of_everything(s) -> None:
    """Four more whole cases beside the first."""
    for n in range(4):
        b.vendor(s, f"Vendor {n}", "CNY")
        delivery = b.received(
            s, note_number=f"DN-more-{n}",
            lines=[{"position": 1, "quantity": "8", "units": b.units([f"M{n}-{i}" for i in range(8)], ())}],
        )  # fmt: skip
        for run in b.burning(s, delivery):
            burn_in.fail_run(run_id=run.pk, reason="XID 79", by=s.engineer)


def test_lists_ask_the_same_number_of_queries_for_few_and_for_many_rows(client, story):
    client.force_login(story.auditor)
    nouns = ("vendor", "rfq", "order", "delivery", "asset", "rma")
    pages = [reverse(f"{noun}-list") for noun in nouns]
    api = [f"/api/v1/procurement/{plural}/" for plural in buying_api.PLURALS.values()]
    for address in (*pages, *api):
        client.get(address)  # fills what is cached per process
    few = {address: queries(client, address) for address in (*pages, *api)}
    more_of_everything(story)
    many = {address: queries(client, address) for address in (*pages, *api)}
    grown = {
        address: (few[address], many[address]) for address in few if many[address] > few[address]
    }
    assert grown == {}
    assert max(many[address] for address in pages) <= 15


def test_home_shows_what_waits_for_each(client, story):
    client.force_login(story.engineer)
    assert "RMA-" in client.get(reverse("home")).text
    client.force_login(story.finance)
    assert "INV-1" in client.get(reverse("home")).text
    client.force_login(story.outsider)
    assert "INV-1" not in client.get(reverse("home")).text
