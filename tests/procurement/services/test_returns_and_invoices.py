"""Returns to the vendor, and what may be paid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile

from core.errors import InputError, InvalidTransition, NotPermitted
from core.organisation import today
from procurement.models import (
    Asset,
    EvidenceFile,
    Invoice,
)
from procurement.serials import UnitEntry
from procurement.services import (
    evidence,
    invoices,
    rmas,
)
from procurement.services.assets import report_fault
from procurement.services.invoices import DuplicateInvoice
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def test_one_return_is_open_per_unit_and_a_denied_claim_needs_a_reason_to_go_on(s):
    b.burned_in(s, b.BURN_FAULTY)
    failed = Asset.objects.get(serial=b.SERIALS[3])
    rma = failed.rmas.get()
    assert rmas.draft_rma(failed, fault="again", fault_on=today(), run=None, by=s.engineer) == rma
    rmas.file_rma(rma_id=rma.pk, by=s.engineer)
    assert EvidenceFile.objects.get().locked_at is not None
    rmas.deny_rma(rma_id=rma.pk, reason="Human damage", by=s.procurement)
    with pytest.raises(InputError):
        rmas.file_rma(rma_id=rma.pk, by=s.engineer)
    assert rmas.file_rma(rma_id=rma.pk, reason="Photos attached", by=s.engineer).status == "filed"


def test_a_claim_counts_on_the_day_of_the_fault_not_of_the_filing(s):
    b.accepted(s)
    asset = Asset.objects.first()
    warranty = asset.warranties.get()
    with time_machine.travel(
        datetime.combine(warranty.ends_on, datetime.min.time(), UTC) + timedelta(days=9)
    ):
        rma = report_fault(
            asset_id=asset.pk, fault="XID 48", fault_on=warranty.ends_on, by=s.engineer
        )
        assert rmas.file_rma(rma_id=rma.pk, by=s.engineer).basis == "warranty"
        other = Asset.objects.filter(status="in_service").first()
        late = report_fault(
            asset_id=other.pk,
            fault="XID 48",
            fault_on=warranty.ends_on + timedelta(days=1),
            by=s.engineer,
        )
        with pytest.raises(InvalidTransition, match="under no warranty"):
            rmas.file_rma(rma_id=late.pk, by=s.engineer)


def test_a_replacement_needs_a_serial_that_was_never_here(s):
    b.burned_in(s, b.BURN_FAULTY)
    rma = Asset.objects.get(serial=b.SERIALS[3]).rmas.get()
    rmas.file_rma(rma_id=rma.pk, by=s.engineer)
    rmas.authorise_rma(rma_id=rma.pk, vendor_number="V1", by=s.procurement)
    with pytest.raises(InputError, match="was received before"):
        rmas.receive_replacement(
            rma_id=rma.pk, unit=UnitEntry(b.SERIALS[0].lower()), by=s.operations
        )


def capture(
    s,
    order_id,
    number="INV-1",
    dated=None,
    quantity="8",
    price="250000",
    tax="260000",
    gross="2260000",
):
    return invoices.capture_invoice(
        order_id=order_id, number=number, dated_on=dated or today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": quantity, "unit_price": price, "tax_rate": "0.13"}],
        stated_tax=tax, stated_gross=gross,
    )  # fmt: skip


def test_an_invoice_number_is_taken_once_over_all_years(s):
    order_id = b.accepted(s).delivery.order_id
    capture(s, order_id, "INV-7", today() - timedelta(days=400))
    with pytest.raises(DuplicateInvoice):
        capture(s, order_id, "inv-7 ")
    assert Invoice.objects.count() == 1


def test_an_exception_names_line_field_and_both_values_and_quantity_is_never_overridden(s):
    order_id = b.accepted(s, b.burned_in(s, b.BURN_FAULTY)).delivery.order_id
    invoice = invoices.match_invoice(invoice_id=capture(s, order_id).pk, by=s.finance)
    assert invoice.status == "exception"
    text = invoice.exceptions[0]["template"] % invoice.exceptions[0]["params"]
    assert text == "Line 1: quantity 8; accepted and not yet invoiced are 6"
    with pytest.raises(Exception, match="cannot be overridden"):
        invoices.override_invoice(invoice_id=invoice.pk, reason="pay them", by=s.finance2)

    dear = capture(
        s, order_id, "INV-2", quantity="6", price="250001", tax="195000.78", gross="1695006.78"
    )
    assert invoices.match_invoice(invoice_id=dear.pk, by=s.finance).status == "exception"
    with pytest.raises(NotPermitted, match="does not override"):
        invoices.override_invoice(invoice_id=dear.pk, reason="small", by=s.finance)
    assert (
        invoices.override_invoice(invoice_id=dear.pk, reason="small", by=s.finance2).status
        == "matched"
    )


def test_the_receiver_does_not_match(s):
    b.MembershipFactory(user=s.operations, team=None, role="finance")
    order_id = b.accepted(s).delivery.order_id
    both = type(s.operations).objects.get(pk=s.operations.pk)
    with pytest.raises(NotPermitted, match="does not match their invoice"):
        invoices.match_invoice(invoice_id=capture(s, order_id).pk, by=both)


def test_an_upload_is_typed_by_its_content(s):
    delivery = b.received(s)
    for name, content in (
        ("a.png", b"<svg onload=alert(1)>"),
        ("b.log", b""),
        ("c.log", b"\x00\x01\x02"),
    ):
        with pytest.raises(InputError):
            evidence.upload_evidence(
                delivery_id=delivery.pk, upload=SimpleUploadedFile(name, content), by=s.engineer
            )
