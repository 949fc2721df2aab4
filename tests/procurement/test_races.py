"""Two people at the same moment: one wins, the other is told. PostgreSQL, two connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.db import connection, transaction

from core.errors import DomainError
from core.organisation import today
from procurement.models import Acceptance, Asset, Award, Delivery, PurchaseOrder, Quote, Rfq
from procurement.services import acceptance, awards, deliveries, invoices, orders, vendor_access
from tests.procurement import builders as b

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Run `calls` at the same moment, each on its own connection. Results, or the DomainError each raised."""
    gate = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(place: int, call: Callable[[], Any]) -> None:
        try:
            gate.wait(timeout=20)
            results[place] = call()
        except DomainError as error:
            results[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


def split(results: list[Any]) -> tuple[list[Any], list[DomainError]]:
    won = [row for row in results if row is not None and not isinstance(row, DomainError)]
    return won, [row for row in results if isinstance(row, DomainError)]


def test_of_two_awards_proposed_at_once_one_stands():
    s = b.shop()
    rfq = b.opened(s)
    mine, other = rfq.quotes.order_by("vendor__name")

    won, lost = split(together(
        lambda: awards.propose_award(rfq_id=rfq.pk, quote_id=mine.pk, reason=b.REASON, by=s.procurement),
        lambda: awards.propose_award(rfq_id=rfq.pk, quote_id=other.pk, reason=b.REASON, by=s.buyer2),
    ))  # fmt: skip

    assert (len(won), [error.status for error in lost]) == (1, [409])
    assert Award.objects.filter(status="proposed").count() == 1


def test_of_two_decisions_on_one_award_one_counts():
    s = b.shop()
    award = b.proposed(s)

    won, lost = split(together(
        lambda: awards.approve_award(award_id=award.pk, by=s.cto),
        lambda: awards.reject_award(award_id=award.pk, by=s.lead, reason="too dear"),
    ))  # fmt: skip

    assert (len(won), [error.status for error in lost]) == (1, [409])
    assert PurchaseOrder.objects.count() == (1 if won[0].status == "approved" else 0)


def test_an_order_is_issued_once_with_one_number():
    s = b.shop()
    order = b.awarded(s).orders.get()

    won, lost = split(together(
        lambda: orders.issue_order(order_id=order.pk, by=s.procurement),
        lambda: orders.issue_order(order_id=order.pk, by=s.buyer2),
    ))  # fmt: skip

    assert (len(won), len(lost)) == (1, 1)
    assert PurchaseOrder.objects.get().number.endswith("-0001")


def test_the_same_goods_received_twice_at_once_come_in_once():
    s = b.shop()
    order = b.issued(s)

    def receive(note: str, serials: tuple[str, ...]) -> Delivery:
        return deliveries.receive_delivery(
            order_id=order.pk, note_number=note, arrived_on=today(), by=s.operations,
            lines=[{"position": 1, "quantity": "8", "units": b.units(serials, ())}],
        )  # fmt: skip

    others = tuple(f"X{serial}" for serial in b.SERIALS)
    won, lost = split(together(lambda: receive("DN-1", b.SERIALS), lambda: receive("DN-2", others)))

    assert (len(won), [(error.status, error.code) for error in lost]) == (
        1,
        [(409, "already_received")],
    )
    assert "0 are open" in str(lost[0])
    assert Asset.objects.count() == 8


def test_a_key_taken_away_while_a_quote_waits_for_the_rfq_sends_nothing():
    s = b.shop()
    rfq = b.rfq(s)
    key = vendor_access.issue_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.procurement)
    token = vendor_access.token_of(key)
    results: list[Any] = []

    def send() -> None:
        try:
            results.append(
                vendor_access.submit_quote(
                    token=token, currency="CNY", valid_until=date(2099, 12, 31), lead_time_days=30,
                    lines=[b.line()], warranty=b.WARRANTY,
                )
            )  # fmt: skip
        except DomainError as error:
            results.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        Rfq.objects.select_for_update().get(pk=rfq.pk)
        waiting = threading.Thread(target=send)
        waiting.start()
        waiting.join(timeout=1)
        assert waiting.is_alive()
        vendor_access.revoke_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.procurement)
    waiting.join(timeout=60)
    assert [type(row) for row in results] == [vendor_access.KeyEnded]
    assert not Quote.objects.exists()


def test_an_acceptance_is_signed_once():
    s = b.shop()
    proposal = b.proposed_acceptance(s)

    won, lost = split(together(
        lambda: acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto),
        lambda: acceptance.refuse_acceptance(acceptance_id=proposal.pk, by=s.lead, reason="no"),
    ))  # fmt: skip

    assert (len(won), len(lost)) == (1, 1)
    signed = Acceptance.objects.get().status == "accepted"
    assert Asset.objects.filter(status="in_service").count() == (8 if signed else 0)


def test_two_invoices_do_not_share_the_accepted_quantity():
    s = b.shop()
    signed = b.accepted(s)
    order_id = signed.delivery.order_id

    def capture(number: str) -> int:
        return invoices.capture_invoice(
            order_id=order_id, number=number, dated_on=today(), currency="CNY", by=s.finance,
            lines=[{"position": 1, "quantity": "5", "unit_price": "250000", "tax_rate": "0.13"}],
            stated_tax="162500", stated_gross="1412500",
        ).pk  # fmt: skip

    first, second = capture("A"), capture("B")
    results = together(
        lambda: invoices.match_invoice(invoice_id=first, by=s.finance),
        lambda: invoices.match_invoice(invoice_id=second, by=s.finance2),
    )

    assert sorted(invoice.status for invoice in results) == ["exception", "matched"]


def test_of_a_split_award_and_one_to_none_at_once_one_stands():
    s = b.shop()
    rfq = b.opened(s)
    mine, other = (quote.lines.get() for quote in rfq.quotes.order_by("vendor__name"))

    won, lost = split(together(
        lambda: awards.propose_award(rfq_id=rfq.pk, lines=[(mine.pk, "5"), (other.pk, "3")],
                                     reason=b.REASON, by=s.procurement),
        lambda: awards.propose_award(rfq_id=rfq.pk, to_none=True, reason=b.REASON, by=s.buyer2),
    ))  # fmt: skip

    assert (len(won), [error.status for error in lost]) == (1, [409])
    assert Award.objects.count() == 1
