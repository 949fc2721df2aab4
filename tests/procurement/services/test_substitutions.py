"""Another part than ordered is received after consent only; cloud commitments are drawn down month by month."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry
from core.organisation import today
from planning.services.ledger_proof import prove_ledger
from procurement.models import Asset, Delivery, PurchaseOrder
from procurement.selectors.draw_downs import commitments
from procurement.selectors.milestones import milestone_states
from procurement.selectors.progress import line_progress
from procurement.services import awards, deliveries, invoices, orders, payments, rfqs
from procurement.services.draw_downs import AlreadyDrawn, record_draw_down
from procurement.services.policy import set_purchasing_policy
from procurement.services.substitutions import (
    consent_to_substitution,
    propose_substitution,
    refuse_substitution,
)
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def ordered(s, *lines, **fields):
    rfq = b.rfq(s)
    quote = b.quote(s, rfq, lines=list(lines), **fields)
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement
    )
    order = awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    return b.aged(orders.issue_order(order_id=order.pk, by=s.procurement))


def cards(s):
    return ordered(s, b.line(part_number="900-21010-0000"))


def cloud(s, **fields):
    """8 cards for 1,000 hours a month over a year, as hours of one server; nothing has a serial number."""
    return ordered(
        s,
        b.line("160", "12000", kind="cloud", description="8 × H100, hour", unit="h", serialised=False,
               accelerators_per_item=0, rfq_line=None),
        b.line("1", "8", kind="cloud", description="Reserved cards", serialised=False),
        **fields,
    )  # fmt: skip


def receive(s, order, **line):
    return deliveries.receive_delivery(
        order_id=order.pk, note_number=line.pop("note", "DN-1"), arrived_on=today(), by=s.operations,
        lines=[{"position": 1, "quantity": "8", "units": b.units(), **line}],
    )  # fmt: skip


def ask(s, order, part="900-21010-0300"):
    return propose_substitution(
        order_id=order.pk, position=1, part_number=part, description="H100 SXM 80 GB rev. 3",
        reason="The old revision is sold out", by=s.procurement,
    )  # fmt: skip


def draw(s, order, month, quantity, **fields):
    values = {"position": 1, "by": s.operations, **fields}
    return record_draw_down(order_id=order.pk, month=month, quantity=quantity, **values)


def old(order, days=100):
    """As if issued that long ago."""
    order.issued_at = order.issued_at - timedelta(days=days)
    PurchaseOrder.objects.filter(pk=order.pk).update(issued_at=order.issued_at)
    return order


def months(n):
    """First days of the last `n` months, this one last."""
    found = [today().replace(day=1)]
    while len(found) < n:
        found.append((found[-1] - timedelta(days=1)).replace(day=1))
    return found[::-1]


def test_another_part_is_refused_until_a_second_person_consents(s):
    order = cards(s)
    with pytest.raises(InputError, match="nobody consented") as refused:
        receive(s, order, part_number="900-21010-0300")
    assert refused.value.field == "part_number"
    row = ask(s, order)
    with pytest.raises(InputError, match="nobody consented"):
        receive(s, order, part_number="900-21010-0300")
    with pytest.raises(NotPermitted):
        consent_to_substitution(substitution_id=row.pk, by=s.procurement)
    consent_to_substitution(substitution_id=row.pk, by=s.cto)
    delivery = receive(s, order, part_number=" 900-21010-0300 ")
    assert delivery.lines.get().substitution == row
    assert set(Asset.objects.values_list("model", flat=True)) == {"H100 SXM 80 GB rev. 3"}
    actions = AuditEntry.objects.filter(action__startswith="substitution.").order_by("pk")
    assert [entry.action for entry in actions] == [
        "substitution.proposed",
        "substitution.consented",
    ]


def test_the_part_that_was_ordered_needs_nothing_however_it_is_written(s):
    delivery = receive(s, cards(s), part_number="900-21010-0000 ")
    assert delivery.lines.get().substitution is None


def test_a_line_without_a_part_number_says_that_it_cannot_be_compared(s, client):
    order = ordered(s, b.line())
    with pytest.raises(InputError, match="the order names no part number to compare 900-1 with"):
        receive(s, order, part_number="900-1")
    client.force_login(s.operations)
    address = reverse("order-receive", args=[order.pk])
    assert 'name="part_number_1"' not in client.get(address).text
    row = ask(s, order, "900-1")
    consent_to_substitution(substitution_id=row.pk, by=s.cto)
    assert "With consent: 900-1." in client.get(address).text
    receive(s, order, part_number=" ", quantity="4", units=b.units(b.SERIALS[:4], ()))
    receive(
        s, order, part_number="900-1", quantity="4", units=b.units(b.SERIALS[4:], ()), note="DN-2"
    )
    assert [
        line.substitution
        for delivery in Delivery.objects.order_by("pk")
        for line in delivery.lines.all()
    ] == [None, row]


def test_with_consent_to_another_part_the_receiver_says_which_came(s):
    order = cards(s)
    row = ask(s, order)
    receive(s, order, quantity="1", units=b.units(b.SERIALS[:1], ()))
    consent_to_substitution(substitution_id=row.pk, by=s.cto)
    with pytest.raises(InputError, match="say which part came") as refused:
        receive(s, order, quantity="1", units=b.units(b.SERIALS[1:2], ()), note="DN-2")
    assert refused.value.field == "part_number"
    receive(
        s,
        order,
        quantity="1",
        units=b.units(b.SERIALS[1:2], ()),
        note="DN-2",
        part_number="900-21010-0000",
    )


def test_a_refused_part_stays_refused_and_may_be_asked_for_again(s):
    order = cards(s)
    row = ask(s, order)
    with pytest.raises(InvalidTransition, match="asked for already"):
        ask(s, order, "900-21010-0300 ")
    refuse_substitution(substitution_id=row.pk, reason="Older memory", by=s.cto)
    with pytest.raises(InputError):
        receive(s, order, part_number="900-21010-0300")
    assert not Delivery.objects.exists()
    with pytest.raises(InputError, match="part that was ordered"):
        ask(s, order, "900-21010-0000")
    assert ask(s, order).status == "proposed"


def test_the_issuer_does_not_consent(s):
    b.MembershipFactory(user=s.buyer2, team=None, role="approver")
    both = type(s.buyer2).objects.get(pk=s.buyer2.pk)
    order = cards(s)
    row = propose_substitution(
        order_id=order.pk, position=1, part_number="X", description="X", reason="x", by=both
    )
    with pytest.raises(NotPermitted, match="does not decide on it"):
        consent_to_substitution(substitution_id=row.pk, by=both)


def test_substitutions_by_page_and_api(s, client):
    order = cards(s)
    client.force_login(s.procurement)
    address = reverse("procurement-step", args=["order", order.pk, "substitute"])
    body = {"position": 1, "part_number": "B", "description": "Card B", "reason": "sold out"}
    assert client.post(address, body).status_code == 302
    row = order.lines.get().substitutions.get()
    client.force_login(s.cto)
    assert "Card B" in client.get(order.get_absolute_url()).text
    api = APIClient()
    api.force_authenticate(s.cto)
    listed = api.get("/api/v1/procurement/substitutions/").json()["results"]
    assert [one["part_number"] for one in listed] == ["B"]
    made = api.post(f"/api/v1/procurement/substitutions/{row.pk}/consent/", {}, format="json")
    assert made.json()["status"] == "consented"
    api.force_authenticate(s.outsider)
    assert api.get(f"/api/v1/procurement/substitutions/{row.pk}/").status_code == 404
    client.force_login(s.operations)
    form = client.get(reverse("order-receive", args=[order.pk])).text
    assert 'name="part_number_1"' in form


def test_a_commitment_is_drawn_down_by_month_billed_and_paid(s):
    order = old(cloud(s))
    first, second, third = months(3)
    draw(s, order, first, "1000")
    draw(s, order, second.replace(day=15), "1200.5")
    (row, _cards) = commitments(line_progress(order).values())
    assert (row.row.received, row.row.accepted, row.left) == (
        Decimal("2200.500"), Decimal("2200.500"), Decimal("9799.500"),
    )  # fmt: skip
    assert row.months_left == Decimal("8.9")
    with pytest.raises(AlreadyDrawn, match="noted already with 1000"):
        draw(s, order, first, "900")
    draw(s, order, first, "900", reason="The bill says 900")
    with pytest.raises(InputError, match="committed are 12000") as refused:
        draw(s, order, third, "9900")
    assert refused.value.field == "quantity"
    lines = [{"position": 1, "quantity": "2100.5", "unit_price": "160", "tax_rate": "0.13"}]
    invoice = invoices.capture_invoice(
        order_id=order.pk, number="C-1", dated_on=today(), currency="CNY", by=s.finance, lines=lines,
        stated_tax="43690.40", stated_gross="379770.40",
    )  # fmt: skip
    invoice = invoices.match_invoice(invoice_id=invoice.pk, by=s.finance)
    assert invoice.status == "matched", invoices.differences(invoice)
    with pytest.raises(InputError, match="are invoiced"):
        draw(s, order, first, "800", reason="less")
    invoices.approve_invoice(invoice_id=invoice.pk, by=s.finance2)
    payments.pay_invoice(invoice_id=invoice.pk, by=s.finance)
    assert prove_ledger() == []


def test_a_draw_is_not_lowered_below_a_milestone_that_it_opened(s):
    order = old(cloud(s, payments=[{"event": "delivery", "percent": "100"}]))
    first = months(3)[0]
    draw(s, order, first, "6000")
    (state,) = milestone_states(order)
    whole = state.opened.amount
    assert 0 < whole < order.gross_amount
    invoice = invoices.capture_invoice(
        order_id=order.pk, number="C-1", dated_on=today(), currency="CNY", by=s.finance,
        milestones=[{"position": 1, "amount": str(whole)}],
        stated_tax=str((whole * 13 / 113).quantize(Decimal("0.01"))), stated_gross=str(whole),
    )  # fmt: skip
    invoice = invoices.match_invoice(invoice_id=invoice.pk, by=s.finance)
    assert invoice.status == "matched", invoices.differences(invoice)
    with pytest.raises(
        InputError, match=r"Milestone 1: .* are invoiced; .* would be left"
    ) as refused:
        draw(s, order, first, "5999.999", reason="less")
    assert (refused.value.field, refused.value.limit) == ("quantity", whole)
    assert order.lines.first().draws.get().quantity == 6000
    draw(s, order, first, "6001", reason="more")


def test_more_than_was_used_is_not_paid(s):
    order = old(cloud(s))
    draw(s, order, months(2)[0], "1000")
    invoice = invoices.capture_invoice(
        order_id=order.pk, number="C-1", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "1000.001", "unit_price": "160", "tax_rate": "0.13"}],
        stated_tax="20800.02", stated_gross="180800.18",
    )  # fmt: skip
    invoice = invoices.match_invoice(invoice_id=invoice.pk, by=s.finance)
    assert (invoice.status, invoice.quantity_blocked) == ("exception", True)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("position", {"position": 9}),
        ("quantity", {"quantity": "0"}),
        ("quantity", {"quantity": "1.0001"}),
        ("quantity", {"quantity": "12000.001"}),
        ("month", {"month": timedelta(days=40)}),
        ("month", {"month": timedelta(days=-400)}),
    ],
)
def test_a_draw_that_cannot_be_is_refused_at_its_field(s, field, changes):
    order = old(cloud(s))
    values = {"month": months(2)[0], "quantity": "1", **changes}
    if isinstance(values["month"], timedelta):
        values["month"] = today() + values["month"]
    with pytest.raises(InputError) as refused:
        draw(s, order, **values)
    assert refused.value.field == field


def test_the_tolerance_of_the_policy_holds_for_draws_too(s):
    order = old(cloud(s))
    set_purchasing_policy(by=s.admin, over_delivery=Decimal("0.02"))
    with pytest.raises(InputError):
        draw(s, order, months(2)[0], "12240.001")
    draw(s, order, months(2)[0], "12240")


def test_cloud_capacity_is_not_received_on_a_dock_and_cards_are_not_drawn(s):
    order = cloud(s)
    with pytest.raises(InputError, match="by month"):
        receive(s, order, quantity="1", units=())
    with pytest.raises(InputError, match="not a cloud commitment"):
        draw(s, cards_order := b.issued(s), today(), "1")
    assert cards_order.lines.get().draws.count() == 0


def test_draws_by_page_and_api_not_by_the_issuer(s, client):
    order = cloud(s)
    b.MembershipFactory(user=s.procurement, team=None, role="operations")
    with pytest.raises(NotPermitted, match="does not receive"):
        draw(s, order, today(), "1", by=type(s.procurement).objects.get(pk=s.procurement.pk))
    client.force_login(s.operations)
    page = client.get(order.get_absolute_url()).text
    assert "Draw-down of" in page
    address = reverse("procurement-step", args=["order", order.pk, "draw-down"])
    body = {"position": 1, "month": str(today()), "quantity": "700"}
    assert client.post(address, body).status_code == 302
    assert client.post(address, body).status_code == 409
    api = APIClient()
    api.force_authenticate(s.finance)
    told = api.get(f"/api/v1/procurement/orders/{order.pk}/").json()["commitments"]
    assert (told[0]["drawn"], told[0]["left"]) == ("700.000", "11300.000")
    changed = api.post(
        f"/api/v1/procurement/orders/{order.pk}/draw-down/",
        {**body, "quantity": "710", "reason": "corrected"}, format="json",
    )  # fmt: skip
    assert changed.json()["commitments"][0]["drawn"] == "710.000"
    assert AuditEntry.objects.filter(action="order.drawn_down").count() == 2
