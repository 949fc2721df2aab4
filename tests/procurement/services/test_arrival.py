"""Nothing arrives before it was ordered, no hours count from before the arrival, a wrong card is not looked away."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from core.errors import InputError, InvalidTransition
from core.organisation import local_day, today
from procurement.identity import contradicts
from procurement.models import Asset, EvidenceFile, OrderLine, PurchaseOrder, RunItem
from procurement.selectors.receiving import check_scan
from procurement.serials import UnitEntry
from procurement.services import burn_in, deliveries
from procurement.services.run_proof import NotProven
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def test_an_arrival_before_the_order_was_issued_is_refused_naming_both_days(s):
    order = b.issued(s)
    issued = local_day(order.issued_at)
    early = issued - timedelta(days=1)
    with pytest.raises(InputError) as refused:
        b.received(s, order, arrived_on=early)
    assert refused.value.field == "arrived_on"
    assert early.isoformat() in str(refused.value)
    assert issued.isoformat() in str(refused.value)
    assert b.received(s, order, arrived_on=issued)


def test_hours_from_before_the_arrival_do_not_count(s):
    delivery = b.received(s, arrived_on=today())
    runs = b.burning(s, delivery)
    evidence = b.upload(s, delivery)  # 72 hours that end now: most of them before the cards came
    runs[0].refresh_from_db()
    assert runs[0].covered_seconds < 25 * 3600
    said = " ".join(flag["template"] for flag in evidence.flags)
    assert "older than the arrival" in said
    b.tick(s, delivery)
    assert burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer) == ([], len(runs))


def test_another_model_in_any_log_contradicts_and_blocks(s, client):
    order = b.issued(s)
    OrderLine.objects.filter(order=order).update(accelerator_slug="nvidia-h200-sxm5-141gb")
    delivery = b.received(s, order)
    runs = b.burning(s, delivery)
    b.upload(s, delivery)  # says NVIDIA H100 80GB HBM3
    row = RunItem.objects.get(run=runs[0], item__code="A2.2")
    assert row.result == "fail"
    assert "NVIDIA H100 80GB HBM3" in row.value
    assert "H200" in row.value
    with pytest.raises(InvalidTransition, match=r"A2\.2"):
        burn_in.decide_items(
            delivery_id=delivery.pk, codes=["A2.2"], result="pass", note="fine", by=s.engineer
        )
    with pytest.raises(InvalidTransition):
        burn_in.waive_item(run_id=runs[0].pk, code="A2.2", reason="never mind", by=s.cto)
    with pytest.raises(NotProven) as refused:
        burn_in.complete_run(run_id=runs[0].pk, by=s.engineer)
    assert any("H100 80GB HBM3 ≠" in str(point) for point in refused.value.open)
    client.force_login(s.engineer)
    page = client.get(reverse("run-detail", args=[runs[0].pk])).text
    assert "NVIDIA H100 80GB HBM3 ≠" in page
    assert "A2.2" in client.get(reverse("delivery-burn-in", args=[delivery.pk])).text


@pytest.mark.parametrize(
    ("shown", "ordered", "differs"),
    [
        ("NVIDIA H100 80GB HBM3", "nvidia-h200-sxm5-141gb", True),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-sxm5-80gb", False),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb", False),
        ("NVIDIA H200", "nvidia-h200-sxm5-141gb", False),
        ("NVIDIA H100 PCIe", "nvidia-h100-sxm5-80gb", True),
        ("Some card", "nvidia-h100-sxm5-80gb", False),
        (None, "nvidia-h100-sxm5-80gb", False),
        ("NVIDIA H100 80GB HBM3", "", False),
    ],
)
def test_which_names_contradict(shown, ordered, differs):
    assert contradicts(shown, ordered) is differs


def test_a_uuid_that_another_unit_has_is_named_with_that_unit(s, client):
    b.received(s)
    order = b.issued(s)
    mine = [UnitEntry(f"NEW-{n}") for n in range(1, 8)] + [UnitEntry("NEW-8", b.UUIDS[2])]
    with pytest.raises(InputError) as refused:
        b.received(s, order, note_number="DN-2",
                   lines=[{"position": 1, "quantity": "8", "units": mine}])  # fmt: skip
    said = str(refused.value)
    for part in (b.UUIDS[2], "Line 1", "position 8", "NEW-8", b.SERIALS[2]):
        assert part in said, said
    assert Asset.objects.filter(serial="NEW-1").count() == 0
    scan = check_scan({1: mine}, list(order.lines.all()), None)
    assert [(u, n, a.serial) for u, n, a in scan.lines[0].uuids_known] == [
        (b.UUIDS[2], 8, b.SERIALS[2])
    ]
    client.force_login(s.operations)
    text = "\n".join(f"{unit.serial}, {unit.uuid}" for unit in mine)
    checked = client.post(reverse("receive-check", args=[order.pk]), {"units_1": text}).text
    assert b.UUIDS[2] in checked
    assert b.SERIALS[2] in checked


def test_a_uuid_listed_twice_is_named_with_both_positions(s):
    order = b.issued(s)
    twice = [UnitEntry(f"NEW-{n}") for n in range(1, 7)]
    twice += [UnitEntry("NEW-7", b.UUIDS[0]), UnitEntry("NEW-8", b.UUIDS[0])]
    with pytest.raises(InputError) as refused:
        deliveries.receive_delivery(
            order_id=order.pk, note_number="DN-3", arrived_on=today(), by=s.operations,
            lines=[{"position": 1, "quantity": "8", "units": twice}],
        )  # fmt: skip
    said = str(refused.value)
    assert b.UUIDS[0] in said
    assert "positions 7 and 8" in said
    assert "Serial number" not in said
    assert not check_scan({1: twice}, list(order.lines.all()), None).lines[0].is_clean


def test_a_missing_note_is_said_at_its_field_and_no_tick_is_lost(s, client):
    delivery = b.received(s)
    runs = b.burning(s, delivery)
    client.force_login(s.engineer)
    chosen = [str(run.asset_id) for run in runs[:2]]
    answer = client.post(
        reverse("burn-in-items", args=[delivery.pk]),
        {
            "units": chosen,
            "codes": ["A1.5", "A4.5"],
            "result": "pass",
            "note": "",
            "reason": "mine",
        },
    )
    assert answer.status_code == 422
    assert "note" in answer.context["finding"].errors
    page = answer.text
    assert page.count("checked") >= 4
    for pk in chosen:
        assert f'value="{pk}" form="chosen"' in page
    assert "mine</textarea>" in page
    none = client.post(
        reverse("burn-in-items", args=[delivery.pk]), {"result": "pass", "note": "seen"}
    )
    assert none.status_code == 422
    assert "seen" in none.text
    stopped = client.post(
        reverse("burn-in-bulk", args=[delivery.pk, "interrupt"]), {"units": chosen, "reason": ""}
    )
    assert stopped.status_code == 422
    assert "reason" in stopped.context["stopped"].errors
    done = client.post(
        reverse("burn-in-items", args=[delivery.pk]),
        {"units": chosen, "codes": ["A1.5"], "result": "pass", "note": "seen"},
    )
    assert done.status_code == 302
    assert RunItem.objects.filter(item__code="A1.5", result="pass").count() == 2


def test_logs_before_the_arrival_stay_worthless(s):
    delivery = b.received(s, arrived_on=today())
    b.burning(s, delivery)
    old = b.ending(
        (b.SAMPLES / "08_gpu_burn_72h_ok_carriage_returns.log").read_bytes(),
        timezone.now() - timedelta(days=5),
    )
    b.upload(s, delivery, content=old)
    assert EvidenceFile.objects.get().verdicts.exclude(covered_seconds=0).count() == 0
    assert PurchaseOrder.objects.count() == 1
