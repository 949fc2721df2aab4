"""The memo and the letters of an award, and the statements that come before it."""

import io
import re
from decimal import Decimal

import pytest
from django.urls import reverse
from pypdf import PdfReader
from rest_framework.test import APIClient

from catalog.models import Accelerator
from core.errors import InvalidTransition, NotPermitted
from core.models import AuditEntry, Notice, Organisation, OutsideMail
from core.outbox import send_due
from procurement import award_documents
from procurement.models import Award, AwardDocument, ConflictStatement, Quote, Vendor, VendorContact
from procurement.selectors.award_record import record_hash
from procurement.selectors.whole_cost import whole_costs
from procurement.services import awards, quotes, rfqs
from procurement.services.award_documents import attach_document, send_letters
from procurement.services.conflicts import StatementMissing, state_conflict
from procurement.services.policy import set_purchasing_policy
from tests.procurement import builders as b
from tests.procurement.services import test_whole_cost as costs

pytestmark = pytest.mark.django_db


@pytest.fixture
def s(tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return b.shop()


def words(pdf: bytes) -> str:
    pages = PdfReader(io.BytesIO(pdf)).pages
    return re.sub(r"\s+", " ", " ".join(page.extract_text() for page in pages))


def memo(award, language="en"):
    return award.documents.select_related("award__rfq").get(kind="memo", language=language)


def test_the_memo_holds_what_was_decided_on_in_both_languages(s):
    state_conflict(rfq_id=(award := b.proposed(s)).rfq_id, by=s.cto)
    award = awards.approve_award(award_id=award.pk, by=s.cto)
    text = words(award_documents.render_document(memo(award)))
    for part in (
        award.rfq.number, "Hengda Integrators", "Northwind Systems", "2,260,000.00", b.REASON,
        str(s.cto), str(s.procurement), "Price per accelerator and warranted year 60", award.record_hash[:20],
        "No conflict of interest", award.record["quotes"][0]["content_hash"][:16], award.rfq.criteria_hash[:16],
        "First at so much of all 1,771 weightings",
    ):  # fmt: skip
        assert part in text, part
    chinese = words(award_documents.render_document(memo(award, "zh-hans")))
    assert "定标" in chinese
    assert "Hengda Integrators" in chinese


def test_the_memo_is_the_same_to_the_byte_whatever_changes_later(s):
    award = b.awarded(s)
    first = award_documents.render_document(memo(award))
    Vendor.objects.update(legal_name="Renamed", address="Elsewhere")
    Quote.objects.update(notes="changed", reference="changed")
    type(s.cto).objects.filter(pk=s.cto.pk).update(name="Other Name")
    again = Award.objects.get(pk=award.pk)
    assert award_documents.render_document(memo(again)) == first
    assert record_hash(again.record) == again.record_hash


@pytest.mark.parametrize("kind", ["memo", "regret"])
def test_the_sender_is_who_it_was_when_the_award_was_decided(s, kind):
    Organisation.objects.update(legal_name="Lantern Compute Ltd", address="1 Old Road")
    award = b.awarded(s)
    document = award.documents.filter(kind=kind).first()
    first = award_documents.render_document(document)
    Organisation.objects.update(
        name="Renamed", legal_name="Renamed Ltd", address="2 New Road", time_zone="Europe/Berlin"
    )
    document.refresh_from_db()
    assert award_documents.render_document(document) == first
    text = words(first)
    assert "Lantern Compute Ltd" in text
    assert "1 Old Road" in text
    if kind == "regret":
        assert "Lantern Compute Ltd" in award_documents.letter(document).text


def test_a_record_of_before_without_a_sender_still_gives_its_letter(s):
    award = b.awarded(s)
    document = award.documents.get(kind="regret")
    document.award.record.pop("organisation")
    Organisation.objects.update(legal_name="Lantern Compute Ltd")
    assert "Lantern Compute Ltd" in award_documents.letter(document).text


def test_the_hash_changes_with_any_figure(s):
    award = b.awarded(s)
    changed = {**award.record, "sheet": [{**award.record["sheet"][0], "net": "1.00 CNY"}]}
    assert record_hash(changed) != award.record_hash


def test_the_letter_is_in_the_vendors_language_and_names_no_one_else(s):
    Vendor.objects.filter(pk=s.rival.pk).update(language="en", legal_name="Northwind Systems Ltd")
    award = b.awarded(s)
    letter = award.documents.get(kind="regret")
    assert (letter.quote.vendor, letter.language) == (s.rival, "en")
    text = words(award_documents.render_document(letter))
    assert "Northwind Systems Ltd" in text
    mail = award_documents.letter(letter).text
    for found in (text, mail):
        assert award.rfq.number in found
        for secret in ("Hengda", "250,000", "2,260,000", "36,000", "rank", "2 quotes"):
            assert secret not in found
    Vendor.objects.filter(pk=s.rival.pk).update(language="zh-hans")
    letter.language = "zh-hans"
    assert (
        "此致" in award_documents.letter(letter).text or "敬" in award_documents.letter(letter).text
    )


def test_an_award_to_none_and_a_disqualified_quote_get_their_own_words(s):
    rfq = b.opened(s)
    quotes.disqualify_quote(
        quote_id=rfq.quotes.get(vendor=s.rival).pk, reason="Hengda asks 250,000 and allows a burn-in",
        by=s.cto,
    )  # fmt: skip
    Vendor.objects.update(language="en")
    reason = "Northwind at 36,000 is out; nobody else is near the budget"
    award = awards.propose_award(rfq_id=rfq.pk, to_none=True, reason=reason, by=s.procurement)
    award = awards.approve_award(award_id=award.pk, by=s.lead)
    letters = {
        row.quote.vendor.name: award_documents.letter(row).text
        for row in award.documents.filter(kind="regret")
    }
    assert "did not meet a condition of this request" in letters["Northwind Systems"]
    assert "without an award" in letters["Hengda Integrators"]
    # What people wrote about the choice may speak of others: none of it is in a letter.
    drawn = [
        words(award_documents.render_document(row)) for row in award.documents.filter(kind="regret")
    ]
    for text in (*letters.values(), *drawn):
        for secret in ("36,000", "250,000", "budget", "allows"):
            assert secret not in text
    assert "Hengda" not in letters["Northwind Systems"]
    assert "Northwind" not in letters["Hengda Integrators"]
    assert "closed without an order" in words(award_documents.render_document(memo(award)))


def test_documents_are_kept_once_with_their_hash_and_read_by_who_reads_prices(s, client):
    award = b.awarded(s)
    for row in AwardDocument.objects.filter(file=None):
        for _twice in range(2):
            attach_document(
                document_id=row.pk,
                content=award_documents.render_document(row),
                name=award_documents.document_name(row),
            )
    assert AwardDocument.objects.filter(file=None).count() == 0
    assert AuditEntry.objects.filter(action="award.document_made").count() == 3
    row = memo(award)
    address = reverse("award-document", args=[award.pk, row.pk])
    api_address = f"/api/v1/procurement/awards/{award.pk}/documents/{row.pk}/"
    api = APIClient()
    for person, status in (
        (s.procurement, 200), (s.cto, 200), (s.auditor, 200), (s.operations, 404), (s.requester, 404),
        (s.outsider, 404), (s.admin, 404),
    ):  # fmt: skip
        client.force_login(person)
        api.force_authenticate(person)
        page = client.get(address)
        assert page.status_code == status, person
        assert api.get(api_address).status_code == status, person
        if status == 200:
            assert page["X-Content-Type-Options"] == "nosniff"
            assert page["Content-Disposition"].startswith("attachment")
    client.force_login(s.procurement)
    page = client.get(award.rfq.get_absolute_url()).text
    assert address in page
    assert "As a mail" in page


def test_the_policy_asks_for_statements_before_the_award(s, client):
    set_purchasing_policy(by=s.admin, conflict_statements=True)
    rfq = b.opened(s)
    quote = rfq.quotes.get(vendor=s.vendor)
    with pytest.raises(StatementMissing, match=str(s.procurement)):
        awards.propose_award(rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement)
    client.force_login(s.procurement)
    step = reverse("procurement-step", args=["rfq", rfq.pk, "state-conflict"])
    assert client.post(step, {"has_conflict": "on"}).status_code == 422
    assert client.post(step, {}).status_code == 302
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote.pk, reason=b.REASON, by=s.procurement
    )
    with pytest.raises(StatementMissing, match=str(s.cto)):
        awards.approve_award(award_id=award.pk, by=s.cto)
    api = APIClient()
    api.force_authenticate(s.cto)
    made = api.post(f"/api/v1/procurement/rfqs/{rfq.pk}/state-conflict/", {}, format="json")
    assert made.status_code == 200, made.json()
    assert [row["has_conflict"] for row in made.json()["statements"]] == [False, False]
    assert awards.approve_award(award_id=award.pk, by=s.cto).status == "approved"
    assert AuditEntry.objects.filter(action="rfq.conflict_stated").count() == 2


def test_who_declared_a_conflict_takes_no_part_until_it_is_taken_back(s, client):
    award = b.proposed(s)
    state_conflict(rfq_id=award.rfq_id, by=s.cto, has_conflict=True, text="Holds shares of Hengda")
    for decide in (
        lambda: awards.approve_award(award_id=award.pk, by=s.cto),
        lambda: awards.reject_award(award_id=award.pk, by=s.cto, reason="no"),
    ):
        with pytest.raises(NotPermitted, match="declared a conflict"):
            decide()
    assert awards.approve_award(award_id=award.pk, by=s.lead).status == "approved"
    client.force_login(s.auditor)
    page = client.get(award.rfq.get_absolute_url()).text
    assert "Holds shares of Hengda" in page
    assert ConflictStatement.objects.count() == 1


def test_the_list_of_awards_keeps_its_number_of_queries(s, django_assert_max_num_queries):
    b.awarded(s)
    api = APIClient()
    api.force_authenticate(s.procurement)
    with django_assert_max_num_queries(20):
        assert api.get("/api/v1/procurement/awards/").json()["count"] == 1


def made(award):
    """Every document of the award is drawn."""
    for row in award.documents.select_related("award__rfq"):
        attach_document(
            document_id=row.pk,
            content=award_documents.render_document(row),
            name=award_documents.document_name(row),
        )
    Notice.objects.update(mail_at=None)  # what people are told is not looked at here
    return award


def reached(vendor, address, language="en"):
    VendorContact.objects.create(vendor=vendor, name="Switchboard")
    VendorContact.objects.create(vendor=vendor, name="Sales", email=address)
    Vendor.objects.filter(pk=vendor.pk).update(language=language)


def test_letters_are_mailed_once_in_the_vendors_language_and_tell_of_no_other(s, mailoutbox):
    reached(s.rival, "sales@northwind.example", "zh-hans")
    award = made(b.awarded(s))
    send_letters(award_id=award.pk, by=s.procurement)
    assert mailoutbox == []  # after the commit, by the outbox
    assert send_due() == 1
    assert send_due() == 0
    (mail,) = mailoutbox
    assert (mail.to, mail.reply_to) == (["sales@northwind.example"], [s.procurement.email])
    assert "敬" in mail.body or "此致" in mail.body
    name, content, kind = mail.attachments[0]
    assert (name.startswith("regret-"), kind) == (True, "application/pdf")
    assert not PdfReader(io.BytesIO(content)).attachments
    for text in (mail.subject, mail.body, words(content)):
        for secret in ("Hengda", "250,000", "2,260,000", "36,000", "250000"):
            assert secret not in text
    with pytest.raises(InvalidTransition, match="Every letter of this award was sent"):
        send_letters(award_id=award.pk, by=s.procurement)
    entry = AuditEntry.objects.get(action="award.letters_sent")
    assert (entry.actor, entry.data["vendors"]) == (s.procurement, ["Northwind Systems"])
    assert "northwind.example" not in str(entry.data)


def test_a_vendor_without_an_address_is_named_and_sent_once_it_has_one(s, mailoutbox):
    award = b.awarded(s)
    VendorContact.objects.all().delete()
    with pytest.raises(InvalidTransition, match="still being made: Northwind Systems"):
        send_letters(award_id=award.pk, by=s.procurement)
    made(award)
    with pytest.raises(InvalidTransition, match="e-mail address: Northwind Systems"):
        send_letters(award_id=award.pk, by=s.procurement)
    reached(s.rival, "sales@northwind.example")
    send_letters(award_id=award.pk, by=s.procurement)
    VendorContact.objects.filter(email="sales@northwind.example").update(
        email="new@northwind.example"
    )
    assert send_due() == 1
    assert mailoutbox[0].to == ["sales@northwind.example"]


def test_with_one_vendor_without_an_address_the_others_are_written_to(s, mailoutbox):
    third = b.vendor(s, "Third Systems", "CNY")
    VendorContact.objects.all().delete()
    reached(third, "sales@third.example")
    rfq = b.rfq(s, vendor_ids=[s.vendor.pk, s.rival.pk, third.pk])
    for vendor in (s.vendor, s.rival, third):
        b.quote(s, rfq, vendor)
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    award = awards.propose_award(
        rfq_id=rfq.pk,
        quote_id=rfq.quotes.get(vendor=s.vendor).pk,
        reason=b.REASON,
        by=s.procurement,
    )
    award = made(awards.approve_award(award_id=award.pk, by=s.cto))
    send_letters(award_id=award.pk, by=s.procurement)
    entry = AuditEntry.objects.get(action="award.letters_sent")
    assert entry.data["without_address"] == ["Northwind Systems"]
    assert send_due() == 1
    assert mailoutbox[0].to == ["sales@third.example"]


def test_letters_are_sent_by_page_and_api_by_procurement_alone(s, client, mailoutbox):
    reached(s.rival, "sales@northwind.example")
    award = made(b.awarded(s))
    page = award.rfq.get_absolute_url()
    step = reverse("procurement-step", args=["award", award.pk, "send-letters"])
    address = f"/api/v1/procurement/awards/{award.pk}/"
    api = APIClient()
    for person in (s.cto, s.finance, s.auditor, s.operations, s.requester, s.outsider, s.admin):
        client.force_login(person)
        api.force_authenticate(person)
        assert client.post(step).status_code in (403, 404), person
        refused = api.post(f"{address}send-letters/", {}, format="json")
        assert refused.status_code in (403, 404), person
        assert step not in client.get(page).text
    assert not OutsideMail.objects.exists()
    client.force_login(s.procurement)
    api.force_authenticate(s.procurement)
    shown = client.get(page).text
    assert step in shown
    assert "Not sent yet" in shown
    assert client.post(step).status_code == 302
    shown = client.get(page).text
    assert "On its way to sales@northwind.example" in shown
    assert step not in shown
    (told,) = api.get(address).json()["letters"]
    assert (told["vendor"], told["mailed_at"]) == (s.rival.pk, None)
    assert told["sent_at"]
    assert api.post(f"{address}send-letters/", {}, format="json").status_code == 409
    assert send_due() == 1
    assert "Mailed to sales@northwind.example" in client.get(page).text
    assert api.get("/api/v1/procurement/awards/").json()["results"][0]["letters"] is None


def test_whole_cost_and_cost_per_unit_of_work_are_frozen_with_the_decision(s):
    costs.card(costs.SLUG)
    rfq = b.rfq(s, costs.estimated(s))
    b.quote(s, rfq)
    b.quote(s, rfq, s.rival, "36000", warranty={**b.WARRANTY, "months": 12})
    comparison = costs.closed(s, rfq)
    counted = whole_costs(comparison)
    chosen = rfq.quotes.get(vendor=s.vendor)
    award = awards.propose_award(
        rfq_id=rfq.pk, quote_id=chosen.pk, reason=b.REASON, by=s.procurement
    )
    award = awards.approve_award(award_id=award.pk, by=s.cto)
    frozen = {row["quote"]: row for row in award.record["whole_costs"]}
    assert set(frozen) == set(counted)
    for pk, whole in counted.items():
        assert Decimal(frozen[pk]["total"]["amount"]) == whole.total.amount
        (unit,) = whole.per_pflop_hour
        assert Decimal(frozen[pk]["per_pflop_hour"][0]["amount"]["amount"]) == unit.amount.amount
    first = award_documents.render_document(memo(award))
    amount = f"{counted[chosen.pk].total.amount:,.2f}"
    assert "Whole cost" in words(first)
    assert amount in words(first)
    assert "colocation" in words(first)
    chinese = words(award_documents.render_document(memo(award, "zh-hans")))
    assert amount in chinese
    assert "nothing was measured" not in chinese
    Accelerator.objects.update(current=None)
    assert award_documents.render_document(memo(award)) == first


def test_a_record_from_before_has_a_memo_without_whole_costs(s):
    award = b.awarded(s)
    del award.record["whole_costs"]
    award.save(update_fields=["record"])
    assert "Whole cost" not in words(award_documents.render_document(memo(award)))
