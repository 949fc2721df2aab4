"""From approved requests to accepted, paid cards: one failing card goes to RMA, the rest are accepted."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.models import AuditEntry
from core.organisation import today
from planning.models import CapacityRequest
from planning.services.ledger_proof import prove_ledger
from procurement.models import Asset, AssetWarranty, BurnInRun, Rma
from procurement.selectors.progress import line_progress
from procurement.serials import UnitEntry
from procurement.services import acceptance, burn_in, invoices, payments, rmas
from procurement.services.burn_in import NotProven
from procurement.warranty_rules import last_covered_day
from tests.planning.builders import held_sums
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def test_one_failing_card_goes_back_and_the_others_are_accepted_and_paid(settings):
    s = b.shop()
    order = b.issued(s)
    assert order.number.startswith("PO-")
    assert order.gross_amount == Decimal("2260000.000")  # 8 × 250,000 and 13 %
    request = CapacityRequest.objects.get()
    assert held_sums(request)["committed"] == Decimal("2260000")

    delivery = b.received(s, order)
    assert Asset.objects.count() == 8
    assert set(AssetWarranty.objects.values_list("start_trigger", "months")) == {("acceptance", 36)}

    runs = b.burning(s, delivery)
    with pytest.raises(NotProven):
        burn_in.complete_run(run_id=runs[0].pk, by=s.engineer)

    # Of the eight cards in the log two fail: one by the tool's own word, one only by its figures.
    b.upload(s, delivery, b.BURN_FAULTY)
    failed = BurnInRun.objects.filter(status="failed").order_by("asset__serial")
    assert [run.asset.uuid for run in failed] == [b.UUIDS[3].lower(), b.UUIDS[6].lower()]
    assert Rma.objects.filter(status="draft").count() == 2

    b.tick(s, delivery)
    passed, waiting = burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    assert (len(passed), waiting) == (6, 0)

    signed = b.accepted(s, delivery)
    assert signed.status == "part_accepted"
    assert signed.units.filter(included=True).count() == 6
    warranty = AssetWarranty.objects.get(asset=passed[0].asset)
    assert (warranty.starts_on, warranty.ends_on) == (today(), last_covered_day(today(), 36))
    request.refresh_from_db()
    assert request.status == "sourcing"
    (line,) = line_progress(order).values()
    assert (line.received, line.accepted, line.payable) == (8, 6, 6)

    invoice = invoices.capture_invoice(
        order_id=order.pk, number="INV-1", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "8", "unit_price": "250000", "tax_rate": "0.13"}],
        stated_tax="260000", stated_gross="2260000",
    )  # fmt: skip
    assert invoices.match_invoice(invoice_id=invoice.pk, by=s.finance).status == "exception"
    invoices.void_invoice(invoice_id=invoice.pk, by=s.finance, reason="Six were accepted")
    invoice = invoices.capture_invoice(
        order_id=order.pk, number="INV-2", dated_on=today(), currency="CNY", by=s.finance,
        lines=[{"position": 1, "quantity": "6", "unit_price": "250000", "tax_rate": "0.13"}],
        stated_tax="195000", stated_gross="1695000",
    )  # fmt: skip
    assert invoices.match_invoice(invoice_id=invoice.pk, by=s.finance).status == "matched"
    invoices.approve_invoice(invoice_id=invoice.pk, by=s.finance2)
    payments.pay_invoice(invoice_id=invoice.pk, by=s.finance)
    assert held_sums(request)["actual"] == Decimal("1695000")
    assert held_sums(request)["committed"] == Decimal("565000")

    for number, rma in enumerate(Rma.objects.order_by("pk"), 1):
        rmas.file_rma(rma_id=rma.pk, by=s.engineer)
        rmas.authorise_rma(rma_id=rma.pk, vendor_number=f"V-{number}", by=s.procurement)
        rmas.ship_rma(rma_id=rma.pk, tracking="SF-1", by=s.operations)
        rmas.receive_replacement(
            rma_id=rma.pk, unit=UnitEntry(f"NEW-{number}", f"GPU-new-{number}"), by=s.operations
        )
    log = b.BURN_PASSED.read_bytes()
    log = log.replace(b.UUIDS[3].encode(), b"GPU-new-1").replace(b.UUIDS[6].encode(), b"GPU-new-2")
    b.burning(s, delivery)
    b.upload(s, delivery, content=log)
    b.tick(s, delivery)
    burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    assert set(Rma.objects.values_list("status", "outcome")) == {("resolved", "replaced")}
    proposal = acceptance.propose_acceptance(delivery_id=delivery.pk, by=s.engineer)
    assert acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto).status == "accepted"

    request.refresh_from_db()
    assert request.status == "fulfilled"
    assert line_progress(order)[line.line.pk].payable == 2
    assert prove_ledger() == []
    states = AuditEntry.objects.filter(object_type="procurement.rma", action="rma.resolved")
    assert states.count() == 2
