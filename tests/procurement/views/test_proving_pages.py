"""Pages of the proving half: what they say in both languages, who may do what, and what is never lost."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import translation
from django.utils.formats import date_format

from core.models import AuditEntry
from core.organisation import today
from procurement.models import (
    Acceptance,
    Asset,
    BurnInRun,
    Delivery,
    EvidenceFile,
    Invoice,
    Rma,
)
from procurement.services import deliveries
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32


def file(name: str, content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def said(text: str, language: str) -> str:
    with translation.override(language):
        return translation.gettext(text)


# --- receiving -----------------------------------------------------------------------------------------------------


def scan(serials, **fields):
    return {
        "arrived_on": today().isoformat(), "note_number": "DN-7", "quantity_1": str(len(serials)),
        "units_1": "\n".join(serials), **fields,
    }  # fmt: skip


def announced(s):
    order = b.issued(s)
    delivery = deliveries.announce_delivery(
        order_id=order.pk, note_number="DN-7", serials=b.SERIALS, by=s.buyer2
    )
    address = reverse("order-receive", args=[order.pk]) + f"?delivery={delivery.pk}"
    return delivery, address


def test_goods_of_which_nothing_was_announced_are_asked_about_before_they_are_posted(client):
    s = b.shop()
    delivery, address = announced(s)
    client.force_login(s.operations)
    others = [f"OTHER-{n}" for n in range(8)]
    assert "unannounced" not in client.get(address).text
    body = scan(others, version=str(delivery.version))
    asked = client.post(address, body)
    assert asked.status_code == 422
    assert "None of the 8 serial numbers that were scanned is among the 8 announced" in asked.text
    assert 'name="unannounced"' in asked.text
    assert not Asset.objects.exists()
    assert client.post(address, {**body, "unannounced": "on"}).status_code == 302
    assert Asset.objects.count() == 8


def test_a_receipt_is_refused_for_all_that_is_wrong_at_once(client):
    s = b.shop()
    delivery, address = announced(s)
    client.force_login(s.operations)
    ahead = today() + timedelta(days=8)
    body = scan(
        ["ODD-1", "odd-1", "???", "a,b,c,d,e"],
        version=str(delivery.version),
        arrived_on=ahead.isoformat(),
    )
    refused = client.post(address, body)
    errors = refused.context["form"].errors
    assert set(errors) == {"arrived_on", "units_1", "unannounced"}
    assert f"{date_format(ahead)}, is after today" in errors["arrived_on"][0]
    said_of_units = " ".join(errors["units_1"])
    for part in ("Line 3: ??? is no serial number", "Line 4", "positions 1 and 2"):
        assert part in said_of_units
    assert not Asset.objects.exists()


def test_a_packing_list_is_announced_by_paste_and_file_and_refuses_doubles(client):
    s = b.shop()
    order = b.issued(s)
    address = reverse("order-announce", args=[order.pk])
    client.force_login(s.buyer2)
    rows = "item,serial\n" + "".join(f"card,{serial}\n" for serial in b.SERIALS[4:])
    body = {"note_number": "DN-7", "serials": "\n".join(b.SERIALS[:4])}
    twice = client.post(
        address, body | {"packing_list": file("list.csv", ("serial\n" + b.SERIALS[0]).encode())}
    )
    assert twice.status_code == 422
    assert "at positions 1 and 5" in twice.text
    assert b.SERIALS[3] in twice.text  # what was pasted is still there
    foreign = client.post(address, body | {"packing_list": file("list.csv", b"a,b\n1,2\n")})
    assert foreign.status_code == 422
    done = client.post(address, body | {"packing_list": file("list.csv", rows.encode())})
    delivery = Delivery.objects.get()
    assert done.url == delivery.get_absolute_url()
    assert [row.serial for row in delivery.announced.all()] == list(b.SERIALS)


def test_receiving_names_both_positions_keeps_the_scan_and_posts_once(client):
    s = b.shop()
    order = b.issued(s)
    announced = deliveries.announce_delivery(
        order_id=order.pk, note_number="DN-7", by=s.buyer2, serials=b.SERIALS
    )
    address = reverse("order-receive", args=[order.pk]) + f"?delivery={announced.pk}"
    client.force_login(s.operations)
    page = client.get(address).text
    assert b.SERIALS[7] in page

    double = [*b.SERIALS[:7], b.SERIALS[2].lower() + " "]
    answer = client.post(address, scan(double, version=announced.version, notes="Box 2 is dented"))
    assert answer.status_code == 422
    assert "at positions 3 and 8" in answer.text
    assert "Box 2 is dented" in answer.text
    assert all(serial in answer.text for serial in b.SERIALS[:7])
    assert not Asset.objects.exists()

    check = client.post(
        reverse("receive-check", args=[order.pk]) + f"?delivery={announced.pk}",
        scan([*b.SERIALS[:6], "STRANGE-1", b.SERIALS[0]]),
    ).text
    assert "6 of 8 announced units are scanned" in check
    assert "STRANGE-1" in check
    assert b.SERIALS[7] in check
    assert "positions 1 and 8" in check

    posted = scan(b.SERIALS, version=announced.version, shock_label_clear="no")
    assert client.post(address, posted).status_code == 302
    again = client.post(address, posted)
    assert again.status_code == 302
    assert Asset.objects.count() == 8
    assert AuditEntry.objects.filter(action="delivery.received").count() == 1
    assert "Damage was noted on arrival" in client.get(announced.get_absolute_url()).text

    # The same note without an announcement is a conflict, said in the form.
    body = scan(["OTHER-1"])
    answer = client.post(reverse("order-receive", args=[order.pk]), body)
    assert answer.status_code == 409
    assert "OTHER-1" in answer.text


def test_the_issuer_does_not_receive_and_photos_are_kept_before_the_receipt(client):
    s = b.shop()
    order = b.issued(s)
    announced = deliveries.announce_delivery(order_id=order.pk, note_number="DN-7", by=s.buyer2)
    client.force_login(s.procurement)
    assert (
        client.post(reverse("order-receive", args=[order.pk]), scan(b.SERIALS)).status_code == 403
    )
    client.force_login(s.operations)
    address = reverse("evidence-upload", args=[announced.pk])
    target = announced.get_absolute_url()
    answer = client.post(
        address, {"uploads": [file("seal.png", PNG), file("burn.log", b"text")], "next": target}
    )
    assert answer.url == target
    (photo,) = EvidenceFile.objects.all()
    assert (photo.format, photo.state, photo.verdict) == ("photo", "read", "n/a")
    page = client.get(target).text
    assert "seal.png" in page
    assert "burn.log was not kept" in page
    hostile = client.post(
        address, {"uploads": file("a.png", PNG + b"1"), "next": "https://evil.example/"}
    )
    assert hostile.url == reverse("delivery-burn-in", args=[announced.pk])


# --- burn-in -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_board_shows_hours_open_items_verdicts_outliers_and_the_return(client, language):
    s = b.shop()
    delivery = b.received(s)
    s.engineer.language = language
    s.engineer.save()
    client.force_login(s.engineer)
    board = reverse("delivery-burn-in", args=[delivery.pk])
    chosen = Asset.objects.get(serial=b.SERIALS[0])
    client.post(
        reverse("burn-in-start", args=[delivery.pk]), {"units": chosen.pk, "site": "Shanghai 1"}
    )
    assert [run.asset for run in BurnInRun.objects.all()] == [chosen]
    client.post(reverse("burn-in-start", args=[delivery.pk]), {"site": "Shanghai 1", "rack": "A1"})
    assert BurnInRun.objects.count() == 8
    page = client.get(board).text
    assert "0.0 / 72" in page
    assert "A4.1" in page

    b.upload(s, delivery, b.BURN_FAULTY)
    page = client.get(board).text
    assert "72.0 / 72" in page
    rmas = dict(Rma.objects.values_list("asset__serial", "number"))
    assert set(rmas) == {b.SERIALS[3], b.SERIALS[6]}
    assert all(number in page for number in rmas.values())
    assert (
        "Mean speed [Gflop/s]" if language == "en" else "平均速度 [Gflop/s]"
    ) in page  # the slow card, against the batch
    assert "-13.2 %" in page
    assert said("Burn-in and evidence", language) in page
    assert said("Against the batch", language) in page


def test_the_board_and_lists_cost_the_same_for_more_units(client):
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    b.upload(s, delivery)
    client.force_login(s.engineer)
    names = {
        "board": reverse("delivery-burn-in", args=[delivery.pk]),
        "propose": reverse("acceptance-propose", args=[delivery.pk]),
        "assets": reverse("asset-list"),
        "deliveries": reverse("delivery-list"),
        "rmas": reverse("rma-list"),
        "detail": reverse("delivery-detail", args=[delivery.pk]),
    }

    def cost(address):
        with CaptureQueriesContext(connection) as found:
            assert client.get(address).status_code == 200
        return len(found)

    grow(delivery, range(2))
    client.get(names["board"])
    before = {name: cost(address) for name, address in names.items()}
    grow(delivery, range(2, 40))
    after = {name: cost(address) for name, address in names.items()}
    assert after == before


def grow(delivery, numbers):
    """More units with runs, verdicts and returns, as rows."""
    asset = Asset.objects.exclude(uuid=None).filter(runs__isnull=False).first()
    run = asset.runs.get()
    items = list(run.items.all())
    verdict = asset.verdicts.get()
    for number in numbers:
        copy = Asset.objects.get(pk=asset.pk)
        copy.pk, copy.uuid = None, None
        copy.serial = copy.folded_serial = f"more-{number}"
        copy.save()
        again = BurnInRun.objects.get(pk=run.pk)
        again.pk, again.asset = None, copy
        again.save()
        for item in items:
            item.pk, item.run = None, again
            item.save()
        verdict.pk, verdict.asset = None, copy
        verdict.save()
        Rma.objects.create(
            number=f"RMA-{number}", asset=copy, vendor=delivery.vendor, fault="x", fault_on=today()
        )
        Delivery.objects.create(
            order=delivery.order,
            vendor=delivery.vendor,
            note_number=f"n{number}",
            folded_note=f"n{number}",
        )


def test_a_power_failure_interrupts_the_whole_rack_and_the_clock_starts_again(client):
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    b.upload(s, delivery)
    client.force_login(s.engineer)
    bulk = lambda action: reverse("burn-in-bulk", args=[delivery.pk, action])  # noqa: E731
    client.post(bulk("interrupt"))
    assert set(BurnInRun.objects.values_list("status", flat=True)) == {"running"}  # no reason given
    client.post(bulk("interrupt"), {"reason": "PDU A lost power"})
    assert set(BurnInRun.objects.values_list("status", flat=True)) == {"interrupted"}
    one = Asset.objects.get(serial=b.SERIALS[0])
    client.post(bulk("resume"), {"units": one.pk})
    assert BurnInRun.objects.get(status="running").asset == one
    assert BurnInRun.objects.get(asset=one).covered_seconds == 0
    client.post(bulk("explode"))
    client.force_login(s.buyer2)
    assert client.post(bulk("abandon"), {"reason": "x"}).status_code == 403
    assert not BurnInRun.objects.filter(status="abandoned").exists()


def test_bad_files_are_refused_by_name_and_the_good_ones_of_the_batch_are_kept(client):
    s = b.shop()
    delivery = b.received(s)
    b.burning(s, delivery)
    client.force_login(s.engineer)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("burn.log", b.BURN_PASSED.read_bytes())
    board = reverse("delivery-burn-in", args=[delivery.pk])
    answer = client.post(
        reverse("evidence-upload", args=[delivery.pk]),
        {"uploads": [
            file("empty.log", b""), file("logs.zip", packed.getvalue()), file("page.html", b"<html><script>"),
            file("n" * 400 + ".log", b.BURN_PASSED.read_bytes()),
            file("half.log", b.BURN_PASSED.read_bytes()[: b.BURN_PASSED.stat().st_size // 2]),
            file("foreign.txt", b"Dear team, all cards are fine. Regards"),
        ]},
        follow=True,
    )  # fmt: skip
    for name in ("empty.log", "logs.zip", "page.html"):
        assert f"{name} was not kept" in answer.text, name
    assert answer.redirect_chain == [(board, 302)]
    kept = {file.file.name[-9:]: file for file in EvidenceFile.objects.select_related("file")}
    assert set(kept) == {"nnnnn.log", "half.log", "reign.txt"}
    for evidence in kept.values():
        b.evidence.read_file(evidence_id=evidence.pk, report=lambda *_: None)
        evidence.refresh_from_db()
    assert kept["half.log"].verdict == "inconclusive"
    assert kept["reign.txt"].verdict == "reject"
    assert kept["nnnnn.log"].verdict == "pass"
    assert len(kept["nnnnn.log"].file.name) <= 200
    # Again the same bytes for the same delivery: refused, once is enough.
    again = client.post(
        reverse("evidence-upload", args=[delivery.pk]),
        {"uploads": file("copy.log", b.BURN_PASSED.read_bytes())}, follow=True,
    )  # fmt: skip
    assert "copy.log was not kept" in again.text
    assert EvidenceFile.objects.count() == 3


def test_one_file_for_two_servers_is_flagged_on_both_and_proves_neither(client):
    s = b.shop()
    order = b.issued(s)
    units = [
        unit for half, node in ((slice(0, 4), "NODE-A"), (slice(4, 8), "NODE-B"))
        for unit in b.units(b.SERIALS[half], b.UUIDS[half], node_serial=node)
    ]  # fmt: skip
    delivery = b.received(s, order, lines=[{"position": 1, "quantity": "8", "units": units}])
    client.force_login(s.engineer)
    client.post(reverse("burn-in-start", args=[delivery.pk]), {"site": "Shanghai 1"})
    nodes = list(Asset.objects.filter(kind="node").order_by("serial"))
    for node in nodes:
        client.post(
            reverse("evidence-upload", args=[delivery.pk]),
            {"uploads": file("burn.log", b.BURN_PASSED.read_bytes()), "node": node.pk},
        )
    for evidence in EvidenceFile.objects.all():
        b.evidence.read_file(evidence_id=evidence.pk, report=lambda *_: None)
    page = client.get(reverse("delivery-burn-in", args=[delivery.pk])).text
    assert "The same file was uploaded for NODE-A too" in page
    assert "The same file was uploaded for NODE-B too" in page


def test_an_altered_file_is_an_alarm_wherever_it_is_shown(client):
    from procurement.services.evidence_checks import check_evidence

    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    evidence = EvidenceFile.objects.get()
    client.force_login(s.auditor)
    detail = reverse("evidence-detail", args=[evidence.pk])
    assert "The file was altered" not in client.get(detail).text
    assert check_evidence() == []
    with evidence.file.file.open("r+b") as content:
        content.write(b"all OK")
    assert "The file was altered" in client.get(detail).text
    assert check_evidence() == [evidence]
    assert check_evidence() == []
    assert AuditEntry.objects.filter(action="evidence.altered").count() == 1
    board = client.get(reverse("delivery-burn-in", args=[delivery.pk])).text
    assert "It proves nothing" in board
    rma = Rma.objects.first()
    assert "Evidence was altered" in client.get(rma.get_absolute_url()).text
    assert client.get(reverse("rma-bundle", args=[rma.pk])).status_code == 409


# --- acceptance ----------------------------------------------------------------------------------------------------


def test_a_proposal_asks_a_reason_for_each_unit_left_out_and_a_second_person_signs(client):
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    address = reverse("acceptance-propose", args=[delivery.pk])
    client.force_login(s.engineer)
    by_serial = {asset.serial: asset.pk for asset in Asset.objects.all()}
    ticked = {
        f"in_{by_serial[serial]}": "on"
        for serial in b.SERIALS[1:]
        if serial not in (b.SERIALS[3], b.SERIALS[6])
    }
    silent = client.post(address, ticked)
    assert silent.status_code == 422
    assert "is left out" in silent.text
    reasons = {f"reason_{by_serial[b.SERIALS[n]]}": f"why {n}" for n in (0, 3, 6)}
    made = client.post(address, ticked | reasons)
    acceptance = Acceptance.objects.get()
    assert made.url == acceptance.get_absolute_url()
    assert dict(acceptance.units.filter(included=False).values_list("asset__serial", "reason")) == {
        b.SERIALS[0]: "why 0", b.SERIALS[3]: "why 3", b.SERIALS[6]: "why 6",
    }  # fmt: skip
    sign = reverse("procurement-step", args=["acceptance", acceptance.pk, "sign"])
    assert client.post(sign, {"version": acceptance.version}).status_code == 403
    client.force_login(s.cto)
    assert client.post(sign, {"version": acceptance.version}).status_code == 302
    acceptance.refresh_from_db()
    assert acceptance.status == "part_accepted"
    certificate = reverse("certificate-file", args=[acceptance.pk, "en"])
    assert client.get(certificate).status_code == 404  # not drawn yet
    from procurement.tasks import render_acceptance_certificate

    render_acceptance_certificate(str(acceptance.certificates.get(language="en").job_id))
    answer = client.get(certificate)
    assert b"".join(answer.streaming_content).startswith(b"%PDF-")
    assert certificate in client.get(acceptance.get_absolute_url()).text
    client.force_login(s.outsider)
    assert client.get(certificate).status_code == 404


# --- assets --------------------------------------------------------------------------------------------------------


def test_three_hundred_pasted_serials_are_found_or_named(client):
    s = b.shop()
    delivery = b.received(s)
    asset = Asset.objects.first()
    many = [
        Asset(
            kind="accelerator", serial=f"SN-{n:04d}", folded_serial=f"sn-{n:04d}", model="H100", manufacturer="NVIDIA",
            folded_manufacturer="nvidia", receipt_line=asset.receipt_line, request=asset.request, received_on=today(),
        )
        for n in range(320)
    ]  # fmt: skip
    Asset.objects.bulk_create(many)
    client.force_login(s.operations)
    pasted = "\n".join(f" sn-{n:04d}\t" for n in range(310)) + ",ＳＮ－０３１１；NOT-HERE,NOT-THERE"
    page = client.post(reverse("asset-search"), {"serials": pasted}).text
    assert "NOT-HERE, NOT-THERE" in page
    assert "311 found" in page
    assert page.count('name="units"') == 311
    client.force_login(s.outsider)
    page = client.post(reverse("asset-search"), {"serials": pasted}).text
    assert 'name="units"' not in page
    assert delivery.note_number not in page


def test_units_are_installed_moved_filtered_and_exported(client):
    s = b.shop()
    b.received(s)
    client.force_login(s.operations)
    ids = list(Asset.objects.values_list("pk", flat=True))
    place = reverse("asset-place")
    client.post(place, {"units": ids[:3], "site": "Shanghai 1", "rack": "A1"})
    assert Asset.objects.filter(status="installed", rack="A1").count() == 3
    client.post(place, {"units": ids[:4], "site": "Shanghai 1", "rack": "B2"})
    assert Asset.objects.filter(status="installed", rack="B2").count() == 4
    moved = AuditEntry.objects.filter(action="asset.moved").first()
    assert moved.data["before"] == ["Shanghai 1", "A1", ""]
    client.post(place, {"units": ids, "site": ""})
    assert Asset.objects.filter(status="installed").count() == 4
    listed = client.get(reverse("asset-list"), {"status": "installed", "cover": "not_started"}).text
    assert listed.count('name="units"') == 4
    assert client.get(reverse("asset-list"), {"cover": "none"}).text.count('name="units"') == 0
    beyond = client.get(reverse("asset-list"), {"order": "1" + "0" * 29})
    assert beyond.status_code == 200
    csv = b"".join(
        client.get(reverse("asset-export", args=["csv"]) + "?status=installed").streaming_content
    )
    assert csv.decode("utf-8-sig").count("Shanghai 1") == 4
    sheet = client.get(reverse("asset-export", args=["xlsx"]))
    assert b"".join(sheet.streaming_content).startswith(b"PK")
    client.force_login(s.buyer2)
    assert client.post(place, {"units": ids[:1], "site": "Elsewhere"}).status_code == 403


# --- returns and invoices ------------------------------------------------------------------------------------------


def test_a_claim_goes_its_way_and_carries_its_evidence(client):
    s = b.shop()
    b.burned_in(s, b.BURN_FAULTY)
    rma = Rma.objects.order_by("pk").first()
    page = rma.get_absolute_url()
    step = lambda action: reverse("procurement-step", args=["rma", rma.pk, action])  # noqa: E731
    client.force_login(s.engineer)
    bundle = client.get(reverse("rma-bundle", args=[rma.pk]))
    archive = zipfile.ZipFile(io.BytesIO(b"".join(bundle.streaming_content)))
    claim = json.loads(archive.read("claim.json"))
    assert claim["serial"] == b.SERIALS[3]
    assert claim["verdicts"][0]["reasons"][0]["rule"] == "final_faulty"
    assert archive.read(claim["files"][0]["name"]) == b.BURN_FAULTY.read_bytes()
    for person, action, body in (
        (s.engineer, "file", {}),
        (s.procurement, "authorise", {"vendor_number": "V-77"}),
        (s.operations, "ship", {"tracking": "SF-1"}),
        (s.operations, "receive-replacement", {"serial": "NEW-1", "uuid": "GPU-new-1"}),
    ):
        client.force_login(person)
        assert client.post(step(action), body).status_code == 302, action
    shown = client.get(page).text
    assert "NEW-1" in shown
    assert "V-77" in shown
    board = client.get(reverse("delivery-burn-in", args=[rma.asset.receipt_line.delivery_id])).text
    assert "NEW-1" in board
    client.force_login(s.outsider)
    assert client.get(reverse("rma-bundle", args=[rma.pk])).status_code == 404


def test_an_invoice_shows_each_line_against_acceptance_and_names_what_differs(client):
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    b.accepted(s, delivery)
    client.force_login(s.finance)
    capture = reverse("order-invoice", args=[delivery.order_id])
    body = {
        "number": "INV-1", "dated_on": today().isoformat(), "tax_mode": "line", "stated_tax": "260208",
        "stated_gross": "2261808", "quantity_1": "8", "unit_price_1": "250200", "tax_percent_1": "13",
    }  # fmt: skip
    assert client.post(capture, body).status_code == 302
    invoice = Invoice.objects.get()
    again = client.post(capture, body)
    assert again.status_code == 409
    assert "is here already" in again.text
    step = lambda action: reverse("procurement-step", args=["invoice", invoice.pk, action])  # noqa: E731
    client.post(step("match"), {})
    page = client.get(invoice.get_absolute_url()).text
    assert "Line 1: quantity 8; accepted and not yet invoiced are 6" in page
    assert "Line 1: unit price 250200; ordered at 250000" in page
    client.force_login(s.finance2)
    client.post(step("override"), {"reason": "please"})
    invoice.refresh_from_db()
    assert invoice.status == "exception"
    listed = client.get(reverse("invoice-list"), {"status": "exception"}).text
    assert "INV-1" in listed
    client.force_login(s.operations)
    assert client.get(invoice.get_absolute_url()).status_code == 404
    assert "INV-1" not in client.get(reverse("invoice-list")).text
