"""Scores of vendors from what happened, their papers with an end, and what a block keeps out."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry, Notice
from core.organisation import today
from core.roles import Role
from procurement.models import Delivery, PurchaseOrder, Rma, VendorDocument
from procurement.selectors.vendor_scores import MIN_POINTS, Part, VendorScore, vendor_scores
from procurement.services import awards, rfqs, rmas, vendors
from procurement.services.reminders import remind_of_documents
from procurement.services.vendor_documents import add_document, retire_document
from procurement.states import BIDDEN_RFQ, RfqStatus
from tests.factories import TeamFactory
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def of(s, user=None):
    return vendor_scores([s.vendor, s.rival], user or s.procurement)


# --- scores ----------------------------------------------------------------------------------------------------------


def test_without_history_there_is_no_score_and_no_zero(s):
    score = of(s)[s.vendor.pk]
    assert score.score is None
    assert [part.score for part in score.parts] == [None] * 4
    assert [part.share for part in score.parts] == [None] * 4
    assert score.median_late_days is None


@pytest.mark.parametrize(("points", "score"), [(MIN_POINTS - 1, None), (MIN_POINTS, 0)])
def test_a_part_has_a_score_from_enough_points_on_also_a_bad_one(points, score):
    assert Part("delivery", 0, points).score == score
    assert Part("delivery", 0, points).to_json()["points"] == points


def test_the_score_is_the_mean_of_the_parts_that_have_one():
    score = VendorScore(
        late_days=[0, -1, 0, 3], overdue_days=[9], burned=8, failed=2, asked=3, answered=3
    )
    assert (score.delivery.good, score.delivery.points, score.delivery.score) == (3, 5, 60)
    assert score.quality.score == 75
    assert score.response.score is None  # three are too few
    assert (score.known, score.score) == (2, 68)
    assert (score.worst_late_days, score.median_late_days) == (9, 0)


def test_an_open_return_counts_against_once_it_waited_too_long():
    score = VendorScore(settled=[10.0, 31.0], open_claims=[5.0, 40.0])
    assert (score.returns.good, score.returns.points) == (1, 3)


def test_late_days_failed_burn_ins_returns_and_answers_are_counted(s):
    delivery = b.burned_in(s, b.BURN_FAULTY)
    order = delivery.order
    PurchaseOrder.objects.filter(pk=order.pk).update(
        promised_on=delivery.arrived_on - timedelta(days=3)
    )
    failed = delivery.runs.filter(status="failed").count()
    passed = delivery.runs.filter(status="passed").count()
    assert failed
    score = of(s)[s.vendor.pk]
    assert score.late_days == [3]
    assert (score.burned, score.failed) == (failed + passed, failed)
    assert score.failed_share.low < failed / 8 < score.failed_share.high
    assert (score.asked, score.answered) == (1, 1)
    claim = Rma.objects.filter(vendor=s.vendor).first()
    claim.evidence.set(delivery.evidence.all())
    rmas.file_rma(rma_id=claim.pk, by=s.engineer)
    Rma.objects.filter(pk=claim.pk).update(filed_at=timezone.now() - timedelta(days=45))
    score = of(s)[s.vendor.pk]
    assert (score.turn_around.open, score.returns.good, score.returns.points) == (1, 0, 1)
    assert of(s)[s.rival.pk].asked == 1


def test_an_order_that_is_due_and_of_which_nothing_came_is_late(s):
    order = b.issued(s)
    PurchaseOrder.objects.filter(pk=order.pk).update(promised_on=today() - timedelta(days=4))
    assert of(s)[s.vendor.pk].overdue_days == [4]


def test_who_was_asked_and_did_not_answer_and_who_was_late(s):
    rfq = b.rfq(s)
    b.quote(s, rfq)
    assert of(s)[s.vendor.pk].asked == 0  # the deadline is ahead
    b.pass_deadline(rfq)
    b.quote(s, rfq, s.rival, "36000")
    found = of(s)
    assert (found[s.vendor.pk].answered, found[s.vendor.pk].asked) == (1, 1)
    assert (found[s.rival.pk].answered, found[s.rival.pk].asked) == (0, 1)


def test_an_answer_counts_whether_or_not_the_rfq_ended_with_an_award(s):
    rfq = b.opened(s)
    award = awards.propose_award(rfq_id=rfq.pk, to_none=True, reason=b.REASON, by=s.procurement)
    awards.approve_award(award_id=award.pk, by=s.cto)
    found = of(s)
    for vendor in (s.vendor, s.rival):
        assert (found[vendor.pk].answered, found[vendor.pk].asked) == (1, 1)


def test_every_state_of_an_rfq_is_one_in_which_bids_still_come_or_one_in_which_they_are_in():
    states = set(RfqStatus)
    assert states - BIDDEN_RFQ == {RfqStatus.DRAFT, RfqStatus.OPEN, RfqStatus.CANCELLED}


def test_a_reader_of_one_team_sees_the_history_of_that_team_only(s):
    b.burned_in(s)
    other = b.person(Role.PROCUREMENT, TeamFactory(), name="Other Buyer")
    assert of(s)[s.vendor.pk].burned == 8
    assert of(s, other)[s.vendor.pk].burned == 0


def test_queries_do_not_grow_with_vendors(s, django_assert_max_num_queries):
    many = [b.vendor(s, f"V{n}", "CNY") for n in range(12)]
    with django_assert_max_num_queries(12):
        vendor_scores(many, s.procurement)


@pytest.mark.parametrize("address", ["/procurement/vendors/", "/api/v1/procurement/vendors/"])
def test_the_list_asks_the_same_for_one_vendor_and_for_many(s, client, address):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client.force_login(s.procurement)
    client.get(address)
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(address)
    for n in range(15):
        b.vendor(s, f"V{n}", "CNY")
    with CaptureQueriesContext(connection) as many:
        client.get(address)
    assert len(many) <= len(few)


def test_it_is_shown_on_page_list_comparison_and_api(s, client):
    b.burned_in(s, b.BURN_FAULTY)
    client.force_login(s.procurement)
    for address in (s.vendor.get_absolute_url(), "/procurement/vendors/"):
        text = client.get(address).text
        assert "burn-in passed" in text or "Units that passed their burn-in" in text
        assert "of 8" in text
    rfq = b.opened(s)
    assert "of 8" in client.get(f"/procurement/rfqs/{rfq.pk}/compare/").text
    api = APIClient()
    api.force_authenticate(s.procurement)
    history = api.get(f"/api/v1/procurement/vendors/{s.vendor.pk}/").data["history"]
    assert history["parts"]["quality"]["points"] == history["burned_in"] == 8
    assert history["parts"]["delivery"]["score"] is None
    rows = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").data["rows"]
    assert {row["vendor"]: row["vendor_history"]["burned_in"] for row in rows} == {
        s.vendor.name: 8, s.rival.name: 0,
    }  # fmt: skip


# --- papers ----------------------------------------------------------------------------------------------------------


def add(s, **fields):
    values = {
        "kind": "certificate",
        "title": "ISO 9001",
        "expires_on": today() + timedelta(days=20),
        **fields,
    }
    add_document(vendor_id=s.vendor.pk, by=s.procurement, **values)
    return VendorDocument.objects.latest("pk")


def test_a_document_is_kept_with_its_hash_and_end(s):
    paper = SimpleUploadedFile("iso.pdf", b"%PDF-1.7 x")
    document = add(s, file=paper, issued_on=today() - timedelta(days=300), number="C-1")
    assert (document.days_left, document.tone) == (20, "warn")
    entry = AuditEntry.objects.get(action="vendor.document_added")
    assert entry.data["sha256"] == document.file.sha256
    assert add(s, expires_on=today() - timedelta(days=1)).tone == "bad"
    assert add(s, expires_on=None).days_left is None


@pytest.mark.parametrize(
    "fields",
    [{"kind": "poem"}, {"title": " "}, {"title": "x" * 161},
     {"issued_on": date(2099, 1, 1)},
     {"file": SimpleUploadedFile("x.pdf", b"<html><script>1</script>")}],
)  # fmt: skip
def test_a_document_that_cannot_be_kept(s, fields):
    with pytest.raises(InputError):
        add(s, **fields)
    assert not VendorDocument.objects.exists()


def test_procurement_is_reminded_once_at_each_mark(s):
    document = add(s)
    start = document.expires_on

    def told(days: int) -> int:
        remind_of_documents(start - timedelta(days=days))
        return Notice.objects.filter(event="vendor_document.ends", recipient=s.procurement).count()

    assert [told(61), told(60), told(59), told(30), told(7), told(7), told(-1)] == [
        0,
        1,
        1,
        2,
        3,
        3,
        4,
    ]
    retire_document(
        vendor_id=s.vendor.pk, document_id=document.pk, reason="replaced", by=s.procurement
    )
    assert remind_of_documents(start) == 0


def test_who_may_keep_papers_and_who_may_read_them(s, client):
    document = add(s, file=SimpleUploadedFile("iso.pdf", b"%PDF-1.7 x"))
    api = APIClient()
    base = f"/api/v1/procurement/vendors/{s.vendor.pk}/documents/"
    body = {"kind": "licence", "title": "Licence"}
    for person, reads in ((s.cto, 200), (s.auditor, 200), (s.requester, 404), (s.superuser, 404)):
        api.force_authenticate(person)
        assert api.post(base, body, format="json").status_code in (403, 404)
        assert api.get(f"{base}{document.pk}/").status_code == reads
        client.force_login(person)
        page = reverse("vendor-document-file", args=[s.vendor.pk, document.pk])
        assert client.get(page).status_code == reads
        assert client.post(
            reverse("vendor-document-add", args=[s.vendor.pk]), body
        ).status_code in (403, 404)
    with pytest.raises(NotPermitted):
        retire_document(vendor_id=s.vendor.pk, document_id=document.pk, reason="x", by=s.cto)
    api.force_authenticate(s.procurement)
    made = api.post(base, body, format="json")
    assert [row["title"] for row in made.data["documents"]] == ["ISO 9001", "Licence"]
    last = made.data["documents"][-1]["id"]
    gone = api.post(f"{base}{last}/retire/", {"reason": "wrong one"}, format="json")
    assert gone.data["documents"][-1]["retired_at"] is not None
    assert api.post(f"{base}{last}/retire/", {"reason": "again"}, format="json").status_code == 409
    client.force_login(s.procurement)
    upload = {**body, "title": "By page", "file": SimpleUploadedFile("a.pdf", b"%PDF-1.7")}
    assert (
        "By page"
        in client.post(reverse("vendor-document-add", args=[s.vendor.pk]), upload, follow=True).text
    )
    other = reverse("vendor-document-file", args=[s.rival.pk, document.pk])
    assert client.get(other).status_code == 404


# --- blocked ---------------------------------------------------------------------------------------------------------


def test_a_blocked_vendor_is_not_invited_nor_awarded_and_the_refusal_says_why(s):
    proposal = b.proposed(s)
    opened = b.opened(s)
    draft = b.rfq(s, publish=False)
    vendors.block_vendor(vendor_id=s.vendor.pk, by=s.procurement, reason="Relabelled cards")
    with pytest.raises(InputError, match="Relabelled cards"):
        b.rfq(s)
    with pytest.raises(InvalidTransition):
        rfqs.publish_rfq(rfq_id=draft.pk, by=s.procurement)
    chosen = opened.quotes.get(vendor=s.vendor)
    with pytest.raises(InvalidTransition, match="Relabelled cards"):
        awards.propose_award(
            rfq_id=opened.pk, quote_id=chosen.pk, reason=b.REASON, by=s.procurement
        )
    with pytest.raises(InvalidTransition, match="Relabelled cards"):
        awards.approve_award(award_id=proposal.pk, by=s.cto)
    assert not Delivery.objects.exists()
