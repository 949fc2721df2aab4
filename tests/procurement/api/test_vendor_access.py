"""A vendor's key opens its RFQ's public part and its own quote, until the deadline, and no other address."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry
from core.tokens import issue_token as person_token
from procurement.models import Quote, Rfq, VendorToken
from procurement.services import rfqs, vendor_access, vendors
from tests.procurement import builders as b
from tests.procurement.test_sealed_bids import addresses

pytestmark = pytest.mark.django_db
BASE = "/api/v1/procurement/vendor"
PRICE = "271828.18"
GUESSES = 30  # wrong keys a minute


@pytest.fixture
def s():
    return b.shop()


def offer(**fields):
    return {
        "currency": "CNY", "valid_until": "2099-12-31", "lead_time_days": 30,
        "lines": [b.line(PRICE)], "warranty": b.WARRANTY, **fields,
    }  # fmt: skip


def key_of(s, rfq, vendor=None) -> str:
    return vendor_access.issue_token(
        rfq_id=rfq.pk, vendor_id=(vendor or s.vendor).pk, by=s.procurement
    )


def holder(key: str, word: str = "Vendor") -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"{word} {key}")
    return client


def test_it_reads_what_is_asked_and_nothing_of_who_asks_or_who_else_is_asked(s):
    rfq = b.rfq(s, sealed=True)
    b.quote(s, rfq, s.rival, "1234.5")
    body = holder(key_of(s, rfq)).get(f"{BASE}/rfq/").json()
    assert body["number"] == rfq.number
    assert body["lines"] == [
        {"position": 1, "accelerator": rfq.lines.get().accelerator_slug, "accelerators": 8,
         "description": rfq.lines.get().description}
    ]  # fmt: skip
    request = rfq.lines.get().request
    text = json.dumps(body)
    for word in (s.rival.name, s.vendor.name, request.team.name, request.reference, request.title,
                 s.procurement.email, s.procurement.name, "received", "invited", "1234.5"):  # fmt: skip
        assert word not in text


@pytest.mark.parametrize("field", ["tax_rate", "serialised", "kind", "accelerators_per_item"])
def test_what_its_line_does_not_say_is_refused_and_not_guessed(s, field):
    rfq = b.rfq(s)
    line = b.line()
    del line[field]
    answer = holder(key_of(s, rfq)).post(
        f"{BASE}/quote/", offer(lines=[b.line(), line]), format="json"
    )
    assert answer.status_code == 422, answer.data
    body = answer.json()
    assert body["field"] == field
    assert body["limit"]
    assert "Line 2" in str(body)
    assert not rfq.quotes.exists()


def test_it_submits_revises_and_withdraws_its_own_quote(s):
    rfq = b.rfq(s)
    client = holder(key_of(s, rfq))
    first = client.post(f"{BASE}/quote/", offer(vendor=s.rival.pk, rfq=999), format="json")
    assert first.status_code == 201, first.data
    assert first.data["totals"]["net"] == {"amount": "2174625.44", "currency": "CNY"}
    assert (first.data["state"], first.data["late"]) == ("standing", False)
    second = client.post(f"{BASE}/quote/", offer(lines=[b.line("250000")]), format="json")
    assert second.data["revision"] == 2
    kept = Quote.objects.order_by("revision")
    assert [(q.vendor_id, q.rfq_id, q.status) for q in kept] == [
        (s.vendor.pk, rfq.pk, "superseded"), (s.vendor.pk, rfq.pk, "submitted"),
    ]  # fmt: skip
    assert [row["revision"] for row in client.get(f"{BASE}/quote/").data] == [2, 1]
    gone = client.delete(f"{BASE}/quote/", {"reason": "Stock is gone"}, format="json")
    assert gone.data["state"] == "withdrawn"
    assert client.delete(f"{BASE}/quote/", {"reason": "again"}, format="json").status_code == 409
    assert client.delete(f"{BASE}/quote/", {}, format="json").status_code == 400
    actions = set(
        AuditEntry.objects.filter(object_type="procurement.quote").values_list("action", "actor")
    )
    assert {("quote.sent_by_vendor", None), ("quote.withdrawn_by_vendor", None)} <= actions


def test_wrong_keys_of_an_address_are_limited_before_any_is_looked_at(s):
    rfq = b.rfq(s)
    key = key_of(s, rfq)
    address = {"REMOTE_ADDR": "192.0.2.7"}
    for n in range(GUESSES):
        # What the caller says of its address counts for nothing.
        guess = holder(f"guess{n}").get(
            f"{BASE}/rfq/", **address, headers={"X-Forwarded-For": f"198.51.100.{n}"}
        )
        assert guess.status_code == 401
    refused = holder("one more").get(f"{BASE}/rfq/", **address)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    # Also with a right key, so that the answer does not tell one; other addresses go on.
    assert holder(key).get(f"{BASE}/rfq/", **address).status_code == 429
    for _ in range(GUESSES + 1):
        assert holder(key).get(f"{BASE}/rfq/", REMOTE_ADDR="192.0.2.8").status_code == 200


def test_a_quote_sent_twice_with_one_key_is_kept_once(s):
    rfq = b.rfq(s)
    client, rival = holder(key_of(s, rfq)), holder(key_of(s, rfq, s.rival))

    def send(client=client, **fields):
        return client.post(
            f"{BASE}/quote/", offer(**fields), format="json", headers={"Idempotency-Key": "q-1"}
        )

    first, again = send(), send()
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotent-Replay"] == "true"
    assert again.json() == first.json()
    assert Quote.objects.count() == 1
    assert send(lead_time_days=31).status_code == 422
    # With a new key of its own it is still the same vendor; another vendor's keys are its own.
    assert send(holder(key_of(s, rfq)))["Idempotent-Replay"] == "true"
    assert send(rival).status_code == 201
    assert Quote.objects.count() == 2
    paper = SimpleUploadedFile("quote.pdf", b"%PDF-1.7 1")
    for _ in range(2):
        paper.seek(0)
        sent = rival.post(
            f"{BASE}/quote/", {"quote": json.dumps(offer()), "files": [paper]},
            format="multipart", headers={"Idempotency-Key": "q-2"},
        )  # fmt: skip
        assert sent.status_code == 201, sent.data
    assert Quote.objects.count() == 3


@pytest.mark.parametrize("taken", ["withdrawn", "replaced", "blocked"])
def test_a_key_that_ended_after_the_log_in_sends_and_withdraws_nothing(s, taken):
    rfq = b.rfq(s)
    token = vendor_access.token_of(key_of(s, rfq))
    b.quote(s, rfq)
    if taken == "withdrawn":
        vendor_access.revoke_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.procurement)
    elif taken == "replaced":
        key_of(s, rfq)
    else:
        vendors.block_vendor(vendor_id=s.vendor.pk, by=s.procurement, reason="fraud")
    with pytest.raises(vendor_access.KeyEnded):
        vendor_access.submit_quote(token=token, **offer(valid_until=date(2099, 12, 31)))
    with pytest.raises(vendor_access.KeyEnded):
        vendor_access.withdraw_own(token=token, reason="gone")
    assert [quote.status for quote in Quote.objects.all()] == ["submitted"]


def test_files_come_with_the_quote_and_only_its_vendor_gets_them_back(s):
    rfq = b.rfq(s)
    client, rival = holder(key_of(s, rfq)), holder(key_of(s, rfq, s.rival))
    paper = SimpleUploadedFile("quote.pdf", b"%PDF-1.7 271828.18")
    sent = client.post(
        f"{BASE}/quote/", {"quote": json.dumps(offer()), "files": [paper]}, format="multipart"
    )
    assert sent.status_code == 201, sent.data
    file = sent.data["files"][0]
    address = f"{BASE}/quote/1/files/{file['id']}/"
    answer = client.get(address)
    assert b"".join(answer.streaming_content) == b"%PDF-1.7 271828.18"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert rival.get(address).status_code == 404
    script = SimpleUploadedFile("quote.pdf", b"<html><script>1</script>")
    refused = client.post(
        f"{BASE}/quote/", {"quote": json.dumps(offer()), "files": [script]}, format="multipart"
    )
    assert refused.status_code == 422
    assert Quote.objects.count() == 1
    assert client.post(f"{BASE}/quote/", {"quote": "{"}, format="multipart").status_code == 400


def test_one_vendor_never_sees_another(s):
    rfq = b.rfq(s, sealed=True)
    b.quote(s, rfq, price=PRICE)
    assert holder(key_of(s, rfq, s.rival)).get(f"{BASE}/quote/").data == []


def test_its_own_bid_stays_sealed_for_everyone_else(s, client):
    rfq = b.rfq(s, sealed=True)
    sent = holder(key_of(s, rfq)).post(f"{BASE}/quote/", offer(), format="json")
    assert sent.status_code == 201
    quote = Quote.objects.get()
    for person in (s.procurement, s.cto, s.finance, s.admin, s.superuser):
        client.force_login(person)
        for address in (quote.get_absolute_url(), rfq.get_absolute_url(),
                        f"/api/v1/procurement/quotes/{quote.pk}/"):  # fmt: skip
            text = client.get(address).text
            assert "271828" not in text
            assert "271,828" not in text
    assert "271828" not in str(list(AuditEntry.objects.values_list("data", "reason")))


@pytest.mark.slow
def test_the_key_opens_no_other_address(s):
    """Every address and method: with the key the answer is the one that nobody at all gets."""
    rfq = b.rfq(s)
    b.quote(s, rfq)
    key = key_of(s, rfq)
    nobody = APIClient()
    tried = 0
    for address in addresses():
        if address.startswith((f"{BASE}/", "/support/", "/static/")):
            continue
        holders = [(holder(key, word), word) for word in ("Vendor", "Token", "Bearer")]
        for method in ("get", "post", "put", "patch", "delete"):
            without = getattr(nobody, method)(address)
            for client, word in holders:
                with_key = getattr(client, method)(address)
                tried += 1
                same = (with_key.status_code, without.status_code)
                assert same[0] == same[1], (address, method, word)
                api = address.startswith("/api/") and "schema" not in address
                assert not api or same[0] in (401, 403, 404, 405), (address, method, same)
    assert tried > 1500


def test_nothing_but_a_key_opens_the_vendors_addresses(s):
    b.rfq(s)
    session = APIClient()
    session.force_login(s.procurement)
    for client in (APIClient(), session, holder(person_token(s.procurement), "Token"),
                   holder(person_token(s.superuser)), holder("")):  # fmt: skip
        for address in ("rfq/", "quote/", "quote-template.csv", "quote/1/files/1/"):
            assert client.get(f"{BASE}/{address}").status_code == 401


def test_the_key_is_kept_as_its_hash_and_a_new_one_ends_the_old(s):
    rfq = b.rfq(s)
    old, new = key_of(s, rfq), key_of(s, rfq)
    stored = [str(row) for row in VendorToken.objects.values_list()]
    trail = str(list(AuditEntry.objects.values_list("action", "data")))
    for key in (old, new):
        assert not any(key in row for row in stored)
        assert key not in trail
    assert holder(old).get(f"{BASE}/rfq/").status_code == 401
    assert holder(new).get(f"{BASE}/rfq/").status_code == 200
    assert VendorToken.objects.get(revoked_at=None).last_used_at is not None
    assert AuditEntry.objects.filter(action="rfq.vendor_key_issued").count() == 2


def test_it_ends_when_taken_away(s):
    rfq = b.rfq(s)
    client = holder(key_of(s, rfq))
    vendor_access.revoke_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.procurement)
    assert client.get(f"{BASE}/rfq/").status_code == 401
    assert client.post(f"{BASE}/quote/", offer(), format="json").status_code == 401
    with pytest.raises(InputError, match="no key"):
        vendor_access.revoke_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.procurement)


def test_it_ends_with_the_deadline_and_moves_with_it(s):
    rfq = b.rfq(s, sealed=True)
    client = holder(key_of(s, rfq))
    assert client.post(f"{BASE}/quote/", offer(), format="json").status_code == 201
    deadline = rfq.deadline + timedelta(days=3)
    rfqs.extend_rfq(rfq_id=rfq.pk, deadline=deadline, reason="holiday", by=s.procurement)
    assert client.get(f"{BASE}/rfq/").status_code == 200
    b.pass_deadline(rfq)
    for answer in (client.get(f"{BASE}/rfq/"), client.get(f"{BASE}/quote/"),
                   client.get(f"{BASE}/quote-template.csv"),
                   client.delete(f"{BASE}/quote/", {"reason": "x"}, format="json")):  # fmt: skip
        assert (answer.status_code, answer.data["code"]) == (403, "key_ended")
    assert Quote.objects.get().status == "submitted"


def test_a_late_quote_is_kept_marked_and_supersedes_nothing(s):
    rfq = b.rfq(s)
    client = holder(key_of(s, rfq))
    client.post(f"{BASE}/quote/", offer(), format="json")
    b.pass_deadline(rfq)
    late = client.post(f"{BASE}/quote/", offer(lines=[b.line("1")]), format="json")
    assert (late.status_code, late.data["late"], late.data["state"]) == (201, True, "late")
    assert [q.status for q in Quote.objects.order_by("revision")] == ["submitted", "late"]
    Rfq.objects.filter(pk=rfq.pk).update(deadline=timezone.now() - timedelta(hours=25))
    assert client.post(f"{BASE}/quote/", offer(), format="json").status_code == 403


def test_a_blocked_vendor_and_a_cancelled_rfq(s):
    rfq = b.rfq(s)
    client, rival = holder(key_of(s, rfq)), holder(key_of(s, rfq, s.rival))
    vendors.block_vendor(vendor_id=s.vendor.pk, by=s.procurement, reason="Relabelled cards")
    answer = client.get(f"{BASE}/rfq/")
    assert answer.status_code == 403
    assert "Relabelled" not in answer.text  # the reason is not theirs to read here
    assert client.post(f"{BASE}/quote/", offer(), format="json").status_code == 403
    with pytest.raises(InvalidTransition, match="Relabelled cards"):
        key_of(s, rfq)
    rfqs.cancel_rfq(rfq_id=rfq.pk, reason="No budget", by=s.procurement)
    assert rival.get(f"{BASE}/rfq/").status_code == 403
    assert rival.post(f"{BASE}/quote/", offer(), format="json").status_code == 403


def test_bad_quotes_are_told_by_field_and_keep_nothing(s):
    client = holder(key_of(s, b.rfq(s)))
    wrong = client.post(f"{BASE}/quote/", offer(lines=[b.line(quantity="0")]), format="json")
    assert (wrong.status_code, wrong.data["field"]) == (422, "quantity")
    assert client.post(f"{BASE}/quote/", offer(lines=[]), format="json").status_code in (400, 422)
    assert client.post(f"{BASE}/quote/", {}, format="json").status_code == 400
    assert not Quote.objects.exists()


def test_who_may_give_and_take_keys_by_page_and_api(s, client):
    rfq = b.rfq(s)
    api = APIClient()
    address = f"/api/v1/procurement/rfqs/{rfq.pk}/vendor-keys/{s.vendor.pk}/"
    page = reverse("vendor-key", args=[rfq.pk])
    for person in (s.cto, s.finance, s.auditor, s.operations, s.requester, s.outsider, s.superuser):
        api.force_authenticate(person)
        assert api.post(address).status_code in (403, 404)
        client.force_login(person)
        assert client.post(page, {"vendor": s.vendor.pk}).status_code in (403, 404)
    assert not VendorToken.objects.exists()
    api.force_authenticate(s.procurement)
    key = api.post(address).data["key"]
    assert holder(key).get(f"{BASE}/rfq/").status_code == 200
    listed = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/vendor-keys/").data
    assert [row["vendor"] for row in listed] == [s.vendor.pk]
    assert key not in str(listed)
    assert api.delete(address).status_code == 204
    client.force_login(s.procurement)
    shown = client.post(page, {"vendor": s.vendor.pk})
    assert "shown this once" in shown.text
    assert shown["Cache-Control"] == "private, no-store"
    assert "shown this once" not in client.get(rfq.get_absolute_url()).text
    client.post(page, {"vendor": s.vendor.pk, "revoke": "1"})
    assert not VendorToken.objects.filter(revoked_at=None).exists()
    with pytest.raises(NotPermitted):
        vendor_access.issue_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.cto)


def test_no_key_for_a_draft_or_for_who_was_not_invited(s):
    draft = b.rfq(s, publish=False)
    with pytest.raises(InvalidTransition):
        key_of(s, draft)
    other = b.vendor(s, "Third", "CNY")
    with pytest.raises(InputError, match="not invited"):
        vendor_access.issue_token(rfq_id=b.rfq(s).pk, vendor_id=other.pk, by=s.procurement)
