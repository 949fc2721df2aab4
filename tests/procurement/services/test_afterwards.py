"""After the signature: reminders once a mark, waivers that end, failures by batch, labels, units seen before."""

from __future__ import annotations

from datetime import timedelta
from io import BytesIO

import pytest
from django.urls import reverse
from django.utils import timezone
from pypdf import PdfReader
from rest_framework.test import APIClient

from core.errors import InputError
from core.models import Notice
from core.organisation import today
from procurement.models import Asset, AssetWarranty, RunItem
from procurement.services import burn_in
from procurement.services.reminders import remind_of_waivers, remind_of_warranties
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def marks(event):
    return set(Notice.objects.filter(event=event).values_list("revision", flat=True))


def test_a_warranty_is_told_at_90_30_and_7_days_and_each_mark_once(s):
    b.accepted(s)
    end = AssetWarranty.objects.values_list("ends_on", flat=True).first()
    assert remind_of_warranties(end - timedelta(days=91)) == 0
    for days, mark in ((90, 90), (60, 90), (30, 30), (8, 30), (7, 7), (0, 7)):
        assert remind_of_warranties(end - timedelta(days=days)) == 1
        assert f"{end.isoformat()}/{mark}" in marks("warranty.ends")
    assert remind_of_warranties(end + timedelta(days=1)) == 0
    people = {s.operations.pk, s.engineer.pk, s.procurement.pk, s.buyer2.pk}
    assert Notice.objects.filter(event="warranty.ends").count() == 3 * len(people)


def test_a_unit_with_a_later_extension_is_not_told_of_the_earlier_end(s):
    b.accepted(s)
    end = AssetWarranty.objects.values_list("ends_on", flat=True).first()
    for row in AssetWarranty.objects.all():
        AssetWarranty.objects.create(
            asset=row.asset, basis="extension", source=row.source, start_trigger=row.start_trigger,
            months=12, starts_on=end, ends_on=end + timedelta(days=365),
        )  # fmt: skip
    assert remind_of_warranties(end - timedelta(days=7)) == 0


def test_a_waiver_that_has_run_out_is_open_again_and_is_told(s):
    delivery = b.received(s)
    run = b.burning(s, delivery)[0]
    with pytest.raises(InputError, match="future"):
        burn_in.waive_item(run_id=run.pk, code="A4.5", reason="x", by=s.cto, expires_on=today())
    until = today() + timedelta(days=20)
    row = burn_in.waive_item(run_id=run.pk, code="A4.5", reason="x", by=s.cto, expires_on=until)
    assert row.is_settled
    assert remind_of_waivers(until - timedelta(days=31)) == 0
    for left, mark in ((30, "30"), (7, "7"), (0, "0"), (-1, "over")):
        assert remind_of_waivers(until - timedelta(days=left)) == 1
        assert f"A4.5/{mark}" in marks("waiver.ends")
    RunItem.objects.filter(pk=row.pk).update(expires_on=today() - timedelta(days=1))
    row.refresh_from_db()
    assert not row.is_settled
    assert any("A4.5" in str(point) for point in burn_in.open_points(run))


def test_failures_are_counted_by_model_and_batch_and_vendors_by_days(s, client):
    b.accepted(s, b.burned_in(s, b.BURN_FAULTY))
    api = APIClient()
    api.force_authenticate(s.operations)
    board = api.get(reverse("api-failures")).json()
    model = board["models"][0]
    assert (model["units"], model["failed_at_burn_in"], model["failed_in_service"]) == (8, 2, 0)
    assert model["share"]["value"] == 0.25
    assert model["share"]["low"] < 0.25 < model["share"]["high"]
    assert board["batches"][0]["note"] == s.vendor.name
    client.force_login(s.operations)
    page = client.get(reverse("asset-failures"))
    assert "25 %" in page.text
    client.force_login(s.outsider)
    assert "25 %" not in client.get(reverse("asset-failures")).text


def test_failure_pages_take_the_same_queries_for_many_units(
    s, client, django_assert_max_num_queries
):
    b.burned_in(s, b.BURN_FAULTY)
    client.force_login(s.operations)
    with django_assert_max_num_queries(14):
        client.get(reverse("asset-failures"))


def test_labels_are_a_pdf_with_a_code_for_each_unit_of_the_filter(s, client):
    b.received(s)
    client.force_login(s.operations)
    answer = client.get(reverse("asset-labels"), {"status": "received"})
    assert answer["Content-Type"] == "application/pdf"
    text = "".join(page.extract_text() for page in PdfReader(BytesIO(answer.content)).pages)
    assert all(serial in text for serial in b.SERIALS)


def test_a_log_that_shows_a_unit_of_an_earlier_delivery_says_which(s):
    first = b.received(s, b.issued(s))
    b.burning(s, first)
    order = b.issued(s)
    second = b.received(
        s, order, note_number="DN-2",
        lines=[{"position": 1, "quantity": "8", "units": b.units([f"NEW{n}" for n in range(8)], ())}],
    )  # fmt: skip
    b.burning(s, second)
    kept = b.upload(s, second)
    templates = [flag["template"] for flag in kept.flags]
    assert sum("another delivery" in text for text in templates) == 8
    assert Asset.objects.filter(receipt_line__delivery=second, uuid=None).count() == 8


def test_a_serial_with_the_uuid_of_another_unit_is_flagged_as_relabelled(s):
    first = b.received(s, b.issued(s))
    order = b.issued(s)
    second = b.received(
        s, order, note_number="DN-2",
        lines=[{"position": 1, "quantity": "8", "units": b.units([f"NEW{n}" for n in range(8)], ())}],
    )  # fmt: skip
    b.burning(s, second)
    at = timezone.now()
    log = (
        "timestamp, serial, uuid, temperature.gpu\n"
        f"{at:%Y/%m/%d %H:%M:%S}.000, NEW0, {b.UUIDS[0]}, 60\n"
    )
    kept = b.upload(s, second, content=log.encode())
    assert any("relabelled" in flag["template"] for flag in kept.flags)
    assert not kept.verdicts.exists()
    assert first.pk != second.pk
