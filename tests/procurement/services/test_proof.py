"""Evidence, burn-in and acceptance: no way to a pass that was not proven."""

from __future__ import annotations

import pytest

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.organisation import today
from procurement.models import (
    AcceptanceUnit,
    Asset,
    BurnInRun,
    EvidenceFile,
    UnitVerdict,
)
from procurement.services import (
    acceptance,
    burn_in,
    deliveries,
    evidence,
)
from procurement.services.acceptance import EvidenceAltered
from procurement.services.assets import report_fault
from procurement.services.burn_in import NotProven
from procurement.services.evidence import SameFile
from procurement.services.evidence_checks import check_evidence
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
        arrived_on=today() - b.ARRIVED,
        lines=[line | fields],
        by=s.operations,
    )


def test_a_file_whose_cards_were_not_delivered_is_flagged_and_proves_nothing(s):
    order = b.issued(s)
    delivery = receive(s, order, units=b.units(uuids=()))  # UUIDs unknown: the log cannot be bound
    b.burning(s, delivery)
    kept = b.upload(s, delivery)
    assert UnitVerdict.objects.count() == 0
    assert (
        "8 devices of the file were not delivered here"
        in kept.flags[0]["template"] % kept.flags[0]["params"]
    )
    assert BurnInRun.objects.filter(covered_seconds__gt=0).count() == 0


def test_the_same_file_for_one_server_is_refused_and_for_two_is_flagged_on_both(s):
    order = b.issued(s)
    first = receive(s, order, "4", b.units(b.SERIALS[:4], b.UUIDS[:4], node_serial="N1"))
    second = receive(
        s, order, "4", b.units(b.SERIALS[4:], b.UUIDS[4:], node_serial="N2"), note="DN-10"
    )
    b.burning(s, first)
    b.burning(s, second)
    b.upload(s, first)
    with pytest.raises(SameFile):
        b.upload(s, first)
    b.upload(s, second)
    for kept in EvidenceFile.objects.all():
        assert any("The same file was uploaded" in flag["template"] for flag in kept.flags)
    b.tick_all(s, first)
    burn_in.complete_ready(delivery_id=first.pk, by=s.engineer)
    proposal = acceptance.propose_acceptance(delivery_id=first.pk, by=s.engineer, reason="rest")
    with pytest.raises(InvalidTransition, match="another server"):
        acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)


def test_a_failing_file_is_not_undone_by_a_later_good_one(s):
    delivery = b.received(s)
    b.burning(s, delivery)
    b.upload(s, delivery, b.BURN_FAULTY)
    b.upload(s, delivery)
    assert BurnInRun.objects.filter(status="failed").count() == 2


def test_a_log_that_says_ok_and_never_ran_proves_nothing(s):
    delivery = b.received(s)
    b.burning(s, delivery)
    b.upload(s, delivery, b.SAMPLES / "10_gpu_burn_ok_but_never_ran.log")
    assert not BurnInRun.objects.filter(covered_seconds__gt=0, status="running").exists()
    passed, _waiting = burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    assert passed == []


def test_no_way_to_a_pass_while_something_is_open(s):
    delivery = b.received(s)
    run = b.burning(s, delivery)[0]
    b.upload(s, delivery)
    with pytest.raises(NotProven):
        burn_in.complete_run(run_id=run.pk, by=s.engineer)
    with pytest.raises(InvalidTransition, match="decided by evidence"):
        burn_in.decide_item(run_id=run.pk, code="A4.3", result="fail", by=s.engineer, note="x")
    with pytest.raises(InvalidTransition, match="cannot be waived"):
        burn_in.waive_item(run_id=run.pk, code="A4.1", reason="trust me", by=s.cto)
    with pytest.raises(InputError, match="blocking"):
        burn_in.decide_item(run_id=run.pk, code="A4.4", result="na", by=s.engineer, note="x")
    with pytest.raises(InvalidTransition, match="No unit"):
        acceptance.propose_acceptance(delivery_id=delivery.pk, by=s.engineer, reason="please")


def test_a_break_starts_the_clock_again_and_voids_what_was_proven(s):
    delivery = b.received(s)
    run = b.burning(s, delivery)[0]
    b.upload(s, delivery)
    run.refresh_from_db()
    assert run.covered_seconds == 259200
    burn_in.interrupt_run(run_id=run.pk, reason="Power cut", by=s.engineer)
    assert burn_in.resume_run(run_id=run.pk, by=s.engineer).covered_seconds == 0
    with pytest.raises(NotProven):
        burn_in.complete_run(run_id=run.pk, by=s.engineer)


def test_a_pass_belongs_to_its_own_unit(s):
    delivery = b.burned_in(s, b.BURN_FAULTY)
    proposal = b.proposed_acceptance(s, delivery)
    included = set(proposal.units.filter(included=True).values_list("asset__serial", flat=True))
    assert b.SERIALS[3] not in included
    failed = Asset.objects.get(serial=b.SERIALS[3])
    good = AcceptanceUnit.objects.filter(acceptance=proposal, included=True).first()
    AcceptanceUnit.objects.filter(acceptance=proposal, asset=failed).update(
        included=True, run=failed.runs.get()
    )
    with pytest.raises(StaleData):
        acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)
    assert good.asset.runs.get().status == "passed"


def test_evidence_that_was_altered_on_disk_stops_the_signature(s):
    delivery = b.burned_in(s)
    proposal = b.proposed_acceptance(s, delivery)
    kept = EvidenceFile.objects.get()
    with open(kept.file.file.path, "ab") as raw:
        raw.write(b" ")
    with pytest.raises(EvidenceAltered):
        acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)


def test_hours_and_passes_of_a_file_that_was_altered_fall_while_the_run_is_open(s):
    delivery = b.received(s)
    b.burning(s, delivery)
    b.upload(s, delivery)
    b.tick(s, delivery)
    run = delivery.runs.first()
    assert run.covered_seconds >= run.required_seconds
    kept = EvidenceFile.objects.get()
    with open(kept.file.file.path, "ab") as raw:
        raw.write(b" ")
    assert check_evidence() == [kept]
    run.refresh_from_db()
    assert run.covered_seconds == 0
    assert run.items.get(item__code="A4.3").result == "open"
    with pytest.raises(NotProven):
        burn_in.complete_run(run_id=run.pk, by=s.engineer)


def test_a_fault_after_the_proposal_stops_the_signature(s):
    proposal = b.proposed_acceptance(s)
    report_fault(asset_id=Asset.objects.first().pk, fault="XID 79", by=s.engineer)
    with pytest.raises(StaleData, match="no longer as it was proposed"):
        acceptance.sign_acceptance(acceptance_id=proposal.pk, by=s.cto)


def test_the_operator_does_not_sign_even_with_the_role(s):
    proposal = b.proposed_acceptance(s)
    b.MembershipFactory(user=s.engineer, team=None, role="approver")
    both = type(s.engineer).objects.get(pk=s.engineer.pk)
    with pytest.raises(NotPermitted, match="Neither the one who proposed nor an operator"):
        acceptance.sign_acceptance(acceptance_id=proposal.pk, by=both)


def test_reading_a_file_twice_changes_nothing_more(s):
    delivery = b.received(s)
    b.burning(s, delivery)
    kept = b.upload(s, delivery)
    before = list(UnitVerdict.objects.values_list("asset", "verdict", "covered_seconds"))
    evidence.read_file(evidence_id=kept.pk, report=lambda *_: None)
    assert list(UnitVerdict.objects.values_list("asset", "verdict", "covered_seconds")) == before
