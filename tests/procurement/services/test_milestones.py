"""Payment by milestones: each opens by its event, is matched three ways, and is paid in parts; the ledger follows."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import DomainError, InputError, InvalidTransition
from core.models import AuditEntry, ExchangeRate
from core.organisation import today
from planning.models import LedgerEntry
from planning.services.ledger_proof import prove_ledger
from procurement.models import Invoice, PurchaseOrder
from procurement.selectors.milestones import milestone_states
from procurement.services import awards, deliveries, invoices, orders, payments, quotes, rfqs
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
TERMS = [
    {"event": "order", "percent": "30"},
    {"event": "delivery", "percent": "55"},
    {"event": "acceptance", "percent": "10"},
    {"event": "retention", "percent": "5", "days": 90},
]


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def ordered(s, terms=TERMS, **fields):
    rfq = b.rfq(s)
    quote = b.quote(s, rfq, payments=terms, **fields)
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement
    )
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    return b.aged(orders.issue_order(order_id=order.pk, by=s.procurement))


def bill(s, order, amounts, number="M-1", tax=None, gross=None):
    """An invoice over `amounts` by milestone position; 13 % tax inside unless said otherwise."""
    whole = sum(Decimal(amount) for amount in amounts.values())
    inside = (whole * 13 / 113).quantize(Decimal("0.01")) if tax is None else tax
    return invoices.capture_invoice(
        order_id=order.pk, number=number, dated_on=today(), currency=order.currency, by=s.finance,
        milestones=[{"position": p, "amount": amount} for p, amount in amounts.items()],
        stated_tax=str(inside), stated_gross=str(whole if gross is None else gross),
    )  # fmt: skip


def matched(s, order, amounts, number="M-1", **fields):
    invoice = bill(s, order, amounts, number, **fields)
    return invoices.match_invoice(invoice_id=invoice.pk, by=s.finance)


def stages(order):
    return [state.stage for state in milestone_states(PurchaseOrder.objects.get(pk=order.pk))]


def opened(order):
    return [state.opened.amount for state in milestone_states(order)]


def test_amounts_are_exact_and_each_milestone_opens_by_its_own_event(s, monkeypatch):
    order = ordered(s)
    whole = [Decimal(n) for n in (678000, 1243000, 226000, 113000)]
    assert [state.amount.amount for state in milestone_states(order)] == whole
    assert sum(whole) == order.gross_amount
    assert opened(order) == [678000, 0, 0, 0]

    delivery = b.received(s, order)
    assert opened(order) == [678000, 1243000, 0, 0]
    b.burning(s, delivery)
    b.upload(s, delivery, b.BURN_FAULTY)  # two of eight fail
    b.tick(s, delivery)
    b.burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    b.accepted(s, delivery)
    assert opened(order) == [678000, 1243000, 169500, 0]  # 6/8 of 226,000

    for days, share in ((89, 0), (90, Decimal("84750"))):  # 6/8 of 113,000
        later = today() + timedelta(days=days)
        monkeypatch.setattr("procurement.selectors.milestones.today", lambda later=later: later)
        assert opened(order)[3] == share


def test_what_has_not_opened_is_refused_and_nobody_overrides_it(s):
    order = ordered(s)
    invoice = matched(s, order, {2: "1243000"})
    assert invoice.status == "exception"
    text = str(invoices.differences(invoice)[0][0])
    assert text == (
        "Milestone 2: 1,243,000.00 CNY invoiced; opened by what was delivered and not yet invoiced are 0.00 CNY"
    )
    with pytest.raises(DomainError, match="cannot be overridden"):
        invoices.override_invoice(invoice_id=invoice.pk, reason="pay", by=s.finance2)


def test_a_milestone_is_not_billed_twice_and_the_tolerance_is_the_policys(s):
    order = ordered(s)
    assert matched(s, order, {1: "600000"}).status == "matched"
    over = matched(s, order, {1: "78000.01"}, "M-2")
    assert over.status == "exception"
    assert "78,000.00 CNY of it are not invoiced yet" in str(invoices.differences(over)[0][0])
    # A price difference: a second person of finance may let it go, as with lines.
    assert invoices.override_invoice(
        invoice_id=over.pk, reason="rounding of the vendor", by=s.finance2
    ).status == "matched"  # fmt: skip


def test_tax_and_total_as_printed_are_checked(s):
    order = ordered(s)
    assert matched(s, order, {1: "678000"}, tax=Decimal("78000")).status == "matched"
    wrong = matched(s, order, {1: "1"}, "M-2", tax=Decimal("0.50"), gross="2")
    found = " ".join(str(message) for message in invoices.differences(wrong)[0])
    assert "Tax 0.50 CNY as printed; computed are 0.12 CNY" in found
    assert "Total 2.00 CNY as printed; the milestones invoiced add up to 1.00 CNY" in found


def test_part_payments_are_booked_one_by_one_until_nothing_is_open(s):
    order = ordered(s)
    invoice = matched(s, order, {1: "678000"})
    invoices.approve_invoice(invoice_id=invoice.pk, by=s.finance2)
    first = payments.pay_invoice(
        invoice_id=invoice.pk, by=s.finance, amount="400000.01", reference="B-1"
    )
    assert (first.status, first.open_amount.amount) == ("approved", Decimal("277999.99"))
    assert stages(order)[0] == "billed"
    assert milestone_states(order)[0].paid.amount == Decimal("400000.01")
    with pytest.raises(InputError, match=r"at most 277,999\.99"):
        payments.pay_invoice(invoice_id=invoice.pk, by=s.finance, amount="278000", reference="B-2")
    with pytest.raises(InvalidTransition, match="Part of the invoice is paid"):
        invoices.void_invoice(invoice_id=invoice.pk, reason="no", by=s.finance)
    last = payments.pay_invoice(invoice_id=invoice.pk, by=s.finance)
    assert (last.status, last.open_amount.amount) == ("paid", 0)
    booked = LedgerEntry.objects.filter(bucket="actual").order_by("pk")
    assert [entry.amount for entry in booked] == [Decimal("400000.01"), Decimal("277999.99")]
    committed = LedgerEntry.objects.filter(bucket="committed")
    assert sum(entry.amount for entry in committed) == order.gross_amount - 678000
    assert prove_ledger() == []
    assert stages(order)[0] == "paid"
    assert AuditEntry.objects.filter(action="invoice.part_paid").count() == 1


def test_an_order_by_milestones_takes_no_lines_and_the_other_way_round(s):
    order = ordered(s)
    common = {
        "order_id": order.pk, "number": "X", "dated_on": today(), "currency": "CNY", "by": s.finance,
        "stated_tax": "0", "stated_gross": "1",
    }  # fmt: skip
    line = {"position": 1, "quantity": "1", "unit_price": "1", "tax_rate": "0"}
    for field, given in (
        ("lines", {"lines": [line]}),
        ("milestones", {}),
        ("position", {"milestones": [{"position": 9, "amount": "1"}]}),
        ("position", {"milestones": [{"position": 1, "amount": "1"}] * 2}),
        ("amount", {"milestones": [{"position": 1, "amount": "1.001"}]}),
    ):
        with pytest.raises(InputError) as refused:
            invoices.capture_invoice(**common, **given)
        assert refused.value.field == field
    plain = b.issued(s)
    with pytest.raises(InputError, match="not paid by milestones"):
        invoices.capture_invoice(
            **{**common, "order_id": plain.pk}, milestones=[{"position": 1, "amount": "1"}]
        )
    assert not Invoice.objects.exists()


def test_terms_change_by_an_amendment_of_two_people_until_something_is_invoiced(s):
    order = ordered(s)
    other = [{"event": "order", "percent": "20"}, {"event": "acceptance", "percent": "80"}]
    revision = orders.propose_amendment(
        order_id=order.pk, payments=other, reason="less in advance", by=s.procurement
    )
    assert opened(order)[0] == 678000
    orders.approve_amendment(revision_id=revision.pk, by=s.cto)
    order = PurchaseOrder.objects.get(pk=order.pk)
    assert [state.amount.amount for state in milestone_states(order)] == [452000, 1808000]
    matched(s, order, {1: "452000"})
    with pytest.raises(InputError, match="payment terms stand"):
        orders.propose_amendment(order_id=order.pk, payments=TERMS, reason="x", by=s.procurement)
    with pytest.raises(InputError, match="Milestone 1 would come to"):
        orders.propose_amendment(
            order_id=order.pk, changes={1: {"quantity": "7"}}, reason="x", by=s.procurement
        )


def test_a_delivery_is_not_reversed_under_a_milestone_that_it_opened(s):
    order = ordered(s)
    delivery = b.received(s, order)
    assert matched(s, order, {2: "1243000"}).status == "matched"
    with pytest.raises(
        InvalidTransition,
        match=r"Milestone 2: 1,243,000.00 CNY are invoiced; 0.00 CNY would be left opened by what was delivered",
    ):
        deliveries.reverse_delivery(delivery_id=delivery.pk, reason="wrong", by=s.engineer)
    delivery.refresh_from_db()
    assert delivery.status == "posted"


def test_what_was_let_go_on_an_open_milestone_does_not_hold_up_another_delivery(s):
    order = ordered(s)
    over = matched(s, order, {1: "678500"})
    assert over.status == "exception"
    invoices.override_invoice(invoice_id=over.pk, reason="rounding of the vendor", by=s.finance2)
    delivery = b.received(s, order)
    assert (
        deliveries.reverse_delivery(delivery_id=delivery.pk, reason="wrong", by=s.engineer).status
        == "reversed"
    )


def test_terms_claimed_by_a_void_invoice_are_retired_when_they_change(s, client):
    order = ordered(s)
    void = bill(s, order, {1: "678000"})
    invoices.void_invoice(invoice_id=void.pk, reason="billed too early", by=s.finance)
    for other in (
        [{"event": "order", "percent": "20"}, {"event": "acceptance", "percent": "80"}],
        [],
        TERMS,
    ):
        revision = orders.propose_amendment(
            order_id=order.pk, payments=other, reason="other terms", by=s.procurement
        )
        orders.approve_amendment(revision_id=revision.pk, by=s.cto)
        order = PurchaseOrder.objects.get(pk=order.pk)
        assert orders.terms_of(order) == [{"days": 0, "label": "", **term} for term in other]
    assert sum(state.amount.amount for state in milestone_states(order)) == order.gross_amount
    # One row more than stand: the claimed one; the three beside it are gone.
    assert list(order.milestones.values_list("position", "retired_at").filter(position=1)) != []
    assert order.milestones.count() == len(TERMS) + 1
    assert matched(s, order, {1: "678000"}, "M-2").status == "matched"
    client.force_login(s.finance)
    assert "payment terms were changed since" in client.get(void.get_absolute_url()).text
    shown = client.get(f"/api/v1/procurement/invoices/{void.pk}/").json()
    assert shown["milestones"] == [{"position": 1, "amount": "678000.000"}]


def test_terms_are_part_of_the_quotes_hash_and_follow_an_extension(s):
    rfq = b.rfq(s)
    plain = b.quote(s, rfq)
    terms = b.quote(s, rfq, payments=TERMS)
    hashes = dict(rfq.quotes.values_list("pk", "content_hash"))
    assert hashes[plain.pk] != hashes[terms.pk]
    longer = quotes.extend_quote(
        quote_id=terms.pk, valid_until=today() + timedelta(days=90), by=s.procurement
    )
    assert [row.term.to_json()["percent"] for row in longer.payments.all()] == [
        "30",
        "55",
        "10",
        "5",
    ]


@pytest.mark.parametrize(("currency", "price"), [("JPY", "3333333"), ("KWD", "7777.777")])
def test_other_minor_units_add_up_as_printed(s, currency, price):
    ExchangeRate.objects.create(
        base=currency, quote="CNY", rate=Decimal("0.05") if currency == "JPY" else Decimal(23),
        as_of=today(), source="test",
    )  # fmt: skip
    order = ordered(s, [{"event": "order", "percent": "33.333"},
                        {"event": "delivery", "percent": "66.667"}],
                    currency=currency, lines=[b.line(price, tax_rate="0.07")])  # fmt: skip
    states = milestone_states(order)
    assert sum((state.amount for state in states[1:]), states[0].amount) == order.gross
    invoice = matched(s, order, {1: str(states[0].amount.amount)}, tax=states[0].part.tax.amount)
    assert invoice.status == "matched"


def test_pages_show_milestones_and_take_an_invoice_and_two_payments(s, client):
    order = ordered(s)
    client.force_login(s.finance)
    page = client.get(order.get_absolute_url()).text
    assert "Payment milestones" in page
    assert "May be invoiced" in page
    address = reverse("order-invoice", args=[order.pk])
    assert "Waits for its event" in page
    assert 'name="amount_4"' in client.get(address).text
    body = {
        "number": "P-1", "dated_on": str(today()), "tax_mode": "document", "stated_tax": "78000",
        "stated_gross": "678000", "amount_1": "678000",
    }  # fmt: skip
    assert client.post(address, body).status_code == 302
    invoice = Invoice.objects.get()
    for action, user in (("match", s.finance), ("approve", s.finance2)):
        client.force_login(user)
        step = reverse("procurement-step", args=["invoice", invoice.pk, action])
        assert client.post(step, {}).status_code == 302
    client.force_login(s.finance)
    pay = reverse("procurement-step", args=["invoice", invoice.pk, "pay"])
    body = {"paid_on": str(today()), "amount": "78000", "reference": "B-1"}
    assert client.post(pay, body).status_code == 302
    page = client.get(invoice.get_absolute_url()).text
    assert "Still open" in page
    assert "B-1" in page
    assert client.post(pay, body | {"amount": "600000", "reference": "B-2"}).status_code == 302
    invoice.refresh_from_db()
    assert invoice.status == "paid"


def test_the_same_by_api_and_prices_stay_with_their_readers(s):
    order = ordered(s)
    api = APIClient()
    api.force_authenticate(s.finance)
    shown = api.get(f"/api/v1/procurement/orders/{order.pk}/").json()
    assert [row["stage"] for row in shown["milestones"]] == [
        "open",
        "waiting",
        "waiting",
        "waiting",
    ]
    assert shown["milestones"][0]["amount"] == {"amount": "678000.00", "currency": "CNY"}
    made = api.post(
        f"/api/v1/procurement/orders/{order.pk}/invoices/",
        {"number": "A-1", "dated_on": str(today()), "currency": "CNY", "stated_tax": "78000",
         "stated_gross": "678000", "milestones": [{"position": 1, "amount": "678000"}]},
        format="json",
    )  # fmt: skip
    assert made.status_code == 201, made.json()
    assert made.json()["milestones"] == [{"position": 1, "amount": "678000.000"}]
    matched_ = api.post(
        f"/api/v1/procurement/invoices/{made.json()['id']}/match/", {}, format="json"
    )
    assert matched_.json()["status"] == "matched"
    approved = invoices.approve_invoice(invoice_id=made.json()["id"], by=s.finance2)
    paid = api.post(
        f"/api/v1/procurement/invoices/{approved.pk}/pay/",
        {"paid_on": str(today()), "amount": "0.01", "reference": "B"}, format="json",
    )  # fmt: skip
    assert paid.json()["payments"][0]["amount"] == "0.010"
    assert paid.json()["status"] == "approved"
    api.force_authenticate(s.operations)
    assert api.get(f"/api/v1/procurement/orders/{order.pk}/").json()["milestones"] is None


def test_an_order_by_milestones_closes_when_all_is_accepted_and_paid(s):
    order = ordered(
        s, [{"event": "order", "percent": "30"}, {"event": "acceptance", "percent": "70"}]
    )
    delivery = b.received(s, order)
    b.burning(s, delivery)
    b.upload(s, delivery)
    b.tick(s, delivery)
    b.burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    b.accepted(s, delivery)
    invoice = matched(s, order, {1: "678000", 2: "1582000"})
    assert invoice.status == "matched"
    invoices.approve_invoice(invoice_id=invoice.pk, by=s.finance2)
    with pytest.raises(InvalidTransition, match="not paid yet"):
        orders.close_order(order_id=order.pk, by=s.finance)
    payments.pay_invoice(invoice_id=invoice.pk, by=s.finance)
    assert orders.close_order(order_id=order.pk, by=s.finance).status == "closed"
    assert prove_ledger() == []
