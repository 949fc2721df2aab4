"""An old exchange rate is named where it is used; a payment is booked as the bank made it."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils.formats import date_format
from rest_framework.test import APIClient

from core.errors import InputError
from core.models import ExchangeRate
from core.organisation import today
from planning.models import ApprovalPolicy, LedgerEntry
from planning.selectors.rates import old_rates_today
from planning.services.ledger_proof import prove_ledger
from procurement.models import Invoice, PurchaseOrder
from procurement.services import awards, invoices, orders, payments, rfqs
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def make_old(days: int) -> None:
    ExchangeRate.objects.update(as_of=today() - timedelta(days=days))


def foreign(s):
    """An approved award to the vendor that quotes in USD."""
    asked = b.request(s, "3000000")
    rfq = b.rfq(s, asked)
    b.quote(s, rfq, s.rival, "36000")
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    return awards.propose_award(
        rfq_id=rfq.pk, quote_id=rfq.quotes.get().pk, reason=b.REASON, by=s.procurement
    )


def approved_invoice(s, currency="USD", price="36000", tax="37440", gross="325440"):
    delivery = b.burned_in(s) if currency == "CNY" else _foreign_delivery(s)
    b.accepted(s, delivery)
    invoice = invoices.capture_invoice(
        order_id=delivery.order_id, number="INV-1", dated_on=today(), currency=currency, by=s.finance,
        lines=[{"position": 1, "quantity": "8", "unit_price": price, "tax_rate": "0.13"}],
        stated_tax=tax, stated_gross=gross,
    )  # fmt: skip
    assert invoices.match_invoice(invoice_id=invoice.pk, by=s.finance).status == "matched"
    return invoices.approve_invoice(invoice_id=invoice.pk, by=s.finance2)


def _foreign_delivery(s):
    order = awards.approve_award(award_id=foreign(s).pk, by=s.cto).orders.get()
    delivery = b.received(s, orders.issue_order(order_id=order.pk, by=s.procurement))
    b.burning(s, delivery)
    b.upload(s, delivery)
    b.tick(s, delivery)
    b.burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    return delivery


def test_a_rate_is_old_from_the_policys_age_on(s):
    make_old(35)
    assert old_rates_today(["USD", "CNY"], "CNY") == []
    make_old(36)
    (row,) = old_rates_today(["USD"], "CNY")
    said = str(row.message)
    for part in (
        (today() - timedelta(days=36)).isoformat(),
        "36 days",
        "35",
        "test",
        "Exchange rates",
    ):
        assert part in said, said
    ApprovalPolicy.objects.update(rate_days=40)
    assert old_rates_today(["USD"], "CNY") == []


def test_pages_and_api_warn_of_the_old_rate_on_the_whole_way(s, client):
    make_old(700)
    award = foreign(s)
    day = (today() - timedelta(days=700)).isoformat()
    written = date_format(today() - timedelta(days=700))  # as the reader writes a day
    api = APIClient()
    client.force_login(s.cto)
    api.force_authenticate(s.cto)
    for address in (award.rfq.get_absolute_url(), reverse("rfq-compare", args=[award.rfq_id])):
        page = client.get(address).text
        assert "The exchange rate is old" in page, address
        assert written in page
    facts = api.get(f"/api/v1/procurement/awards/{award.pk}/").json()["facts"]
    assert facts["old_rates"][0]["days"] == 700
    rows = api.get(f"/api/v1/procurement/rfqs/{award.rfq_id}/comparison/").json()
    assert rows["old_rates"][0]["as_of"] == day
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    assert written in client.get(order.get_absolute_url()).text
    assert api.get(f"/api/v1/procurement/orders/{order.pk}/").json()["old_rates"][0]["limit"] == 35
    make_old(1)
    assert "The exchange rate is old" not in client.get(order.get_absolute_url()).text
    # What was frozen with the opening stays old.
    assert (
        "The exchange rate is old" in client.get(reverse("rfq-compare", args=[award.rfq_id])).text
    )


def test_before_the_opening_the_rates_are_not_said_to_be_frozen(s, client):
    rfq = b.rfq(s)
    b.quote(s, rfq)
    client.force_login(s.procurement)
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    assert "they are frozen when the bids are opened" in page
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    assert "frozen when the bids were opened" in page


def test_a_foreign_payment_is_booked_at_the_rate_the_bank_took(s, client):
    invoice = approved_invoice(s)
    client.force_login(s.finance)
    address = reverse("procurement-step", args=["invoice", invoice.pk, "pay"])
    start = client.get(address).text
    for name in ("paid_on", "amount", "rate", "reference"):
        assert f'name="{name}"' in start
    assert "325440" in start
    body = {"paid_on": today().isoformat(), "amount": "325440"}
    refused = client.post(address, body)
    assert refused.status_code == 422
    assert "rate" in refused.context["form"].errors
    # The bank took more than the order was committed at: no more is spent than was ordered.
    assert client.post(address, body | {"rate": "7.4", "reference": "B-77"}).status_code == 302
    entry = LedgerEntry.objects.get(bucket="actual")
    assert entry.amount == Decimal("2408256.00")  # 325,440 × 7.4
    assert (entry.rate, entry.original_amount, entry.rate_date) == (Decimal("7.4"), 325440, today())
    invoice = Invoice.objects.get()
    payment = invoice.payments.get()
    assert (invoice.paid_on, invoice.paid_amount, payment.rate, payment.reference) == (
        today(), Decimal(325440), Decimal("7.4"), "B-77",
    )  # fmt: skip
    assert "B-77" in client.get(invoice.get_absolute_url()).text
    assert list(prove_ledger()) == []


def test_a_foreign_payment_with_a_reference_takes_the_rate_of_its_day(s):
    invoice = approved_invoice(s)
    ExchangeRate.objects.create(
        base="USD", quote="CNY", rate=Decimal("7.2"), as_of=today(), source="test"
    )
    payments.pay_invoice(
        invoice_id=invoice.pk, by=s.finance, paid_on=today() - timedelta(days=1), amount="325440",
        reference="B-78",
    )  # fmt: skip
    assert LedgerEntry.objects.get(bucket="actual").rate == Decimal("7.1")


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("paid_on", {"paid_on": timedelta(days=1)}),
        ("paid_on", {"paid_on": timedelta(days=-11)}),
        ("amount", {"amount": "2260000.01"}),
        ("amount", {"amount": "0"}),
        ("amount", {"amount": "many"}),
        ("reference", {"amount": "2000000"}),
        ("rate", {"rate": "7"}),
    ],
)
def test_a_payment_that_cannot_be_is_refused_at_its_field(s, field, changes):
    invoice = approved_invoice(s, "CNY", "250000", "260000", "2260000")
    given = {"paid_on": today(), "amount": "2260000", **changes}
    if isinstance(given["paid_on"], timedelta):
        given["paid_on"] = today() + given["paid_on"]
    with pytest.raises(InputError) as refused:
        payments.pay_invoice(invoice_id=invoice.pk, by=s.finance, **given)
    assert refused.value.field == field
    assert not LedgerEntry.objects.filter(bucket="actual").exists()


def test_each_part_payment_keeps_its_own_day_rate_and_reference(s):
    invoice = approved_invoice(s)
    parts = (
        (today() - timedelta(days=2), "100000", "7.05", "B-1"),
        (today() - timedelta(days=1), "225440", "7.25", "B-2"),
    )
    for day, amount, rate, reference in parts:
        payments.pay_invoice(
            invoice_id=invoice.pk, by=s.finance, paid_on=day, amount=amount, rate=rate,
            reference=reference,
        )  # fmt: skip
    invoice = Invoice.objects.get()
    kept = [(p.paid_on, str(p.amount), str(p.rate), p.reference) for p in invoice.payments.all()]
    assert kept == [
        (day, f"{amount}.000", f"{rate}000000", reference) for day, amount, rate, reference in parts
    ]
    assert (invoice.paid_on, invoice.paid_amount, invoice.status) == (parts[1][0], 325440, "paid")
    api = APIClient()
    api.force_authenticate(s.finance)
    shown = api.get(f"/api/v1/procurement/invoices/{invoice.pk}/").json()
    assert shown["paid_on"] == parts[1][0].isoformat()
    assert [payment["rate"] for payment in shown["payments"]] == ["7.05000000", "7.25000000"]


def test_a_lower_payment_that_settles_is_booked_as_paid(s):
    invoice = approved_invoice(s, "CNY", "250000", "260000", "2260000")
    payments.pay_invoice(
        invoice_id=invoice.pk,
        by=s.finance,
        paid_on=today(),
        amount="2200000",
        reference="2 % discount",
        settles=True,
    )
    assert Invoice.objects.get().status == "paid"
    assert LedgerEntry.objects.get(bucket="actual").amount == 2200000
    assert PurchaseOrder.objects.get().status == "issued"
