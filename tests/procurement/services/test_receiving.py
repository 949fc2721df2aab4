"""Goods on the dock: serial numbers, quantities, warranties."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pytest

from core.errors import InputError, NotPermitted
from core.organisation import local_day, today
from procurement.models import (
    Asset,
    AssetWarranty,
    Award,
    Delivery,
    PurchaseOrder,
)
from procurement.selectors.progress import line_progress, receipt_state
from procurement.services import (
    awards,
    deliveries,
    invoices,
    orders,
    rfqs,
)
from procurement.services.deliveries import AlreadyReceived
from procurement.services.policy import set_purchasing_policy
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def receive(s, order, quantity="8", units=None, note="DN-9", **fields):
    line = {"position": 1, "quantity": quantity, "units": b.units() if units is None else units}
    return deliveries.receive_delivery(
        order_id=order.pk,
        note_number=note,
        arrived_on=today(),
        lines=[line | fields],
        by=s.operations,
    )


def test_a_serial_twice_in_one_delivery_makes_no_asset_at_all(s):
    order = b.issued(s)
    for other in (b.SERIALS[0], f" {b.SERIALS[0]} ", "１" + b.SERIALS[0][1:]):
        with pytest.raises(InputError, match="positions 1 and 8"):
            receive(s, order, units=b.units((*b.SERIALS[:7], other)))
    assert (Asset.objects.count(), Delivery.objects.count()) == (0, 0)


def test_a_serial_that_was_ever_here_is_refused(s):
    order = b.issued(s)
    receive(s, order, "4", b.units(b.SERIALS[:4]))
    with pytest.raises(InputError, match="was received before"):
        receive(s, order, "4", b.units(b.SERIALS[3:7], ()), note="DN-10")
    assert Asset.objects.count() == 4


def test_too_many_half_a_card_and_the_same_note_are_refused(s):
    order = b.issued(s)
    with pytest.raises(InputError, match="8 are open"):
        receive(s, order, "9", b.units((*b.SERIALS, "X9"), ()))
    with pytest.raises(InputError, match="whole numbers"):
        receive(s, order, "1.5", [])
    receive(s, order)
    with pytest.raises(AlreadyReceived):
        receive(s, order, note=" dn-9")
    with pytest.raises(AlreadyReceived, match="0 are open"):
        receive(s, order, note="DN-10", units=b.units([f"X{n}" for n in range(8)], ()))
    assert Asset.objects.count() == 8


def cable_order(s, tolerance="0"):
    set_purchasing_policy(by=s.admin, over_delivery=Decimal(tolerance))
    rfq = b.rfq(s)
    cable = {
        "description": "Fibre",
        "kind": "network",
        "quantity": "100",
        "unit": "m",
        "unit_price": "1",
        "tax_rate": "0.13",
        "serialised": False,
    }
    b.quote(s, rfq, lines=[b.line(), cable])
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=rfq.quotes.get().pk, reason=b.REASON, by=s.procurement
    )
    awards.approve_award(award_id=award.pk, by=s.cto)
    return orders.issue_order(order_id=award.orders.get().pk, by=s.procurement)


@pytest.mark.parametrize(
    ("tolerance", "quantity", "fits"),
    [("0", "100.002", False), ("0", "100", True), ("0.02", "102", True), ("0.02", "102.01", False)],
)
def test_over_delivery_is_exact(s, tolerance, quantity, fits):
    order = cable_order(s, tolerance)

    def take():
        return deliveries.receive_delivery(
            order_id=order.pk, note_number="DN-1", arrived_on=today(), by=s.operations,
            lines=[{"position": 2, "quantity": quantity}],
        )  # fmt: skip

    if fits:
        take()
        progress = line_progress(order).values()
        # Too much of one line does not stand for another that never came.
        assert receipt_state(order, progress) == "part"
        assert max(row.received_share for row in progress) == 1.0
    else:
        with pytest.raises(InputError):
            take()


def test_units_without_a_serial_are_told_with_a_reason(s):
    order = b.issued(s)
    with pytest.raises(InputError, match="7 serial numbers and 0 missing"):
        receive(s, order, units=b.units(b.SERIALS[:7]))
    with pytest.raises(InputError, match="say why"):
        receive(s, order, units=b.units(b.SERIALS[:7]), missing_units=1)
    receive(
        s, order, units=b.units(b.SERIALS[:7]), missing_units=1, missing_reason="label torn off"
    )
    assert Asset.objects.count() == 7


def test_issuer_does_not_receive_and_receiver_does_not_reverse(s):
    b.MembershipFactory(user=s.procurement, team=None, role="operations")
    order = b.issued(s)
    buyer = type(s.procurement).objects.get(pk=s.procurement.pk)
    with pytest.raises(NotPermitted, match="does not receive"):
        deliveries.receive_delivery(
            order_id=order.pk, note_number="DN-1", arrived_on=today(), by=buyer,
            lines=[{"position": 1, "quantity": "8", "units": b.units()}],
        )  # fmt: skip
    delivery = receive(s, order)
    with pytest.raises(NotPermitted, match="does not reverse"):
        deliveries.reverse_delivery(delivery_id=delivery.pk, reason="wrong", by=s.operations)
    deliveries.reverse_delivery(delivery_id=delivery.pk, reason="wrong order", by=s.engineer)
    receive(s, order)  # serials and note are free again
    assert Asset.objects.exclude(status="voided").count() == 8


def test_every_unit_carries_its_warranty_from_the_start(s):
    rfq = b.rfq(s)
    b.quote(s, rfq, warranty={**b.WARRANTY, "start_trigger": "delivery", "months": 12})
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=rfq.quotes.get().pk, reason=b.REASON, by=s.procurement
    )
    awards.approve_award(award_id=award.pk, by=s.cto)
    b.received(s, orders.issue_order(order_id=award.orders.get().pk, by=s.procurement))
    rows = AssetWarranty.objects.all()
    assert {(row.months, row.start_trigger, row.starts_on) for row in rows} == {
        (12, "delivery", today() - b.ARRIVED)
    }
    assert all(row.ends_on is not None and row.source_id == rfq.quotes.get().pk for row in rows)


def by_invoice(s, trigger="invoice", **fields):
    rfq = b.rfq(s)
    quote = b.quote(s, rfq, warranty={**b.WARRANTY, "start_trigger": trigger}, **fields)
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement
    )
    awards.approve_award(award_id=award.pk, by=s.cto)
    return b.aged(orders.issue_order(order_id=award.orders.get().pk, by=s.procurement))


def invoiced(s, order, days_ago, quantity="8", **fields):
    fields = fields or {
        "lines": [{"position": 1, "quantity": quantity, "unit_price": "250000", "tax_rate": "0.13"}]
    }
    return invoices.capture_invoice(
        order_id=order.pk, number=f"I-{days_ago}", dated_on=today() - timedelta(days=days_ago),
        currency="CNY", stated_tax="0", stated_gross="1", by=s.finance, **fields,
    )  # fmt: skip


def starts():
    """Days ago on which the warranties of the cards start, in the order in which these came."""
    return [
        row.starts_on and (today() - row.starts_on).days
        for row in AssetWarranty.objects.order_by("asset_id")
    ]


def test_a_warranty_from_the_invoice_starts_whichever_came_first(s):
    order = by_invoice(s)
    void = invoiced(s, order, 9, "8")
    invoices.void_invoice(invoice_id=void.pk, reason="wrong", by=s.finance)
    receive(s, order, "2", b.units(b.SERIALS[:2], ()), note="A")
    assert starts() == [None] * 2
    invoiced(s, order, 5, "3")
    assert starts() == [5, 5]
    # Three are invoiced, two are here: one of the next starts with that invoice, one waits for its own.
    receive(s, order, "2", b.units(b.SERIALS[2:4], ()), note="B")
    assert starts() == [5, 5, 5, None]
    invoiced(s, order, 3, "5")
    assert starts() == [5, 5, 5, 3]
    receive(s, order, "4", b.units(b.SERIALS[4:], ()), note="C")
    assert starts() == [5, 5, 5, *[3] * 5]


def test_a_payment_in_advance_starts_no_warranty_unless_nothing_else_is_invoiced(s):
    order = by_invoice(
        s, payments=[{"event": "order", "percent": "30"}, {"event": "delivery", "percent": "70"}]
    )
    invoiced(s, order, 8, milestones=[{"position": 1, "amount": "678000"}])
    receive(s, order)
    assert starts() == [None] * 8
    invoiced(s, order, 2, milestones=[{"position": 2, "amount": "1582000"}])
    assert starts() == [2] * 8


def test_an_order_paid_in_advance_alone_starts_the_warranty_with_that_invoice(s):
    order = by_invoice(s, payments=[{"event": "order", "percent": "100"}])
    invoiced(s, order, 8, milestones=[{"position": 1, "amount": "2260000"}])
    receive(s, order)
    assert starts() == [8] * 8


def test_the_day_of_the_order_is_the_organisations(s):
    order = by_invoice(s, trigger="order")
    # 20:30 in London is the next day in Shanghai, where the organisation is.
    day = today() - timedelta(days=6)
    order.issued_at = datetime.combine(day - timedelta(days=1), time(20, 30), UTC)
    PurchaseOrder.objects.filter(pk=order.pk).update(issued_at=order.issued_at)
    assert local_day(order.issued_at) == day
    with pytest.raises(InputError, match="before the order was issued") as refused:
        orders.acknowledge_order(
            order_id=order.pk, promised_on=day - timedelta(days=1), by=s.procurement
        )
    assert (refused.value.field, refused.value.limit) == ("promised_on", day)
    orders.acknowledge_order(order_id=order.pk, promised_on=day, by=s.procurement)
    receive(s, order)
    assert starts() == [6] * 8


@pytest.mark.parametrize("part", ["proposed_by", "decided_by"])
def test_nobody_both_awards_and_receives(s, part):
    order = b.issued(s)
    Award.objects.filter(pk=order.award_id).update(**{part: s.operations})
    order.refresh_from_db()
    with pytest.raises(NotPermitted, match="awarded or issued"):
        receive(s, order)
    assert not Delivery.objects.exists()
