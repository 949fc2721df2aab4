"""The clause library: versions that stay, chosen for an RFQ, copied when it is issued, printed for the vendor."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from pypdf import PdfReader
from rest_framework.test import APIClient

from core.errors import InputError, NotPermitted, StaleData
from core.models import AppendOnlyError, AuditEntry, Job
from procurement.api.clauses import ClauseSerializer
from procurement.models import Clause, RfqDocument
from procurement.order_document import render_order
from procurement.selectors.clauses import current_clauses
from procurement.services import rfqs, vendor_access
from procurement.services.clauses import load_clauses, write_clause
from procurement.tasks import render_rfq_document
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
WORDS = {
    "title_en": "Noise", "title_zh": "噪声", "text_en": "At most 75 dB.", "text_zh": "不超过 75 分贝。",
}  # fmt: skip


@pytest.fixture
def s():
    made = b.shop()
    load_clauses()
    return made


def text_of(content: bytes) -> str:
    pages = PdfReader(io.BytesIO(content)).pages
    return "".join(page.extract_text() for page in pages).replace("\n", "")


def revise(s, code: str = "burn-in-72h", **words: str) -> Clause:
    newest = current_clauses(retired=True)[code]
    kept = {name: getattr(newest, name) for name in WORDS}
    return write_clause(
        code=code,
        by=s.procurement,
        version=newest.version,
        reason="Counsel asked",
        **(kept | words),
    )


def test_the_shipped_clauses_speak_both_languages_and_load_once(s):
    library = current_clauses()
    assert len(library) == 10
    assert {"burn-in-72h", "sample-machine", "new-parts", "doa-window", "spare-parts"} <= set(
        library
    )
    for clause in library.values():
        assert clause.text_en.isascii() or "“" in clause.text_en or "×" in clause.text_en
        assert any("\u4e00" <= sign <= "\u9fff" for sign in clause.text_zh)
    assert load_clauses() == 0


def test_a_change_is_a_new_version_and_nothing_is_overwritten(s):
    second = revise(s, text_en="96 hours at full load.")
    assert second.version == 2
    assert Clause.objects.get(code="burn-in-72h", version=1).text_en.startswith("Before acceptance")
    entry = AuditEntry.objects.get(action="clause.revised")
    assert entry.data["changes"]["text_en"][1] == "96 hours at full load."
    with pytest.raises(StaleData):
        write_clause(code="burn-in-72h", by=s.procurement, version=1, reason="late", **WORDS)
    with pytest.raises(AppendOnlyError):
        second.save()
    with pytest.raises(AppendOnlyError):
        Clause.objects.filter(pk=second.pk).update(text_en="x")
    with pytest.raises(DatabaseError), transaction.atomic():
        super(type(Clause.objects.all()), Clause.objects.all()).update(text_en="x")


def test_wrong_words_are_named(s):
    with pytest.raises(InputError, match="text_zh has 0 characters"):
        write_clause(code="noise", by=s.procurement, **{**WORDS, "text_zh": " "})
    with pytest.raises(InputError, match="no short name"):
        write_clause(code="Noise!", by=s.procurement, **WORDS)
    with pytest.raises(InputError, match="Give a reason"):
        write_clause(code="new-parts", by=s.procurement, version=1, **WORDS)


def test_the_library_asks_the_database_as_often_for_one_clause_as_for_all(s):
    api = APIClient()
    api.force_login(s.procurement)
    address = "/api/v1/procurement/clauses/"
    counts = []
    for keep in (1, 100):
        with CaptureQueriesContext(connection) as asked:
            found = current_clauses(retired=True)
            rows = ClauseSerializer(list(found.values())[:keep], many=True, context={}).data
        counts.append(len(asked))
        assert len(rows) == min(keep, len(found))
    assert counts[0] == counts[1]
    assert len(api.get(address).json()) == len(found)


def test_who_writes_and_who_reads(s, client):
    api = APIClient()
    readers = ("procurement", "cto", "finance", "operations", "auditor")
    for name, person in s.people().items():
        client.force_login(person)
        api.force_login(person)
        may = name == "procurement" or name == "buyer2"
        seen = client.get("/procurement/clauses/").status_code
        assert api.get("/api/v1/procurement/clauses/").status_code == seen
        if name in readers:
            assert seen == 200
        if name in ("requester", "outsider"):
            assert seen == 404
        if may:
            assert client.get("/procurement/clauses/new/").status_code == 200
            continue
        assert client.get("/procurement/clauses/new/").status_code == 404
        assert client.post("/procurement/clauses/new-parts/", WORDS).status_code == 404
        with pytest.raises(NotPermitted):
            write_clause(code="noise", by=person, **WORDS)


def test_an_rfq_takes_the_preset_and_is_issued_with_the_newest_words(s):
    draft = b.rfq(s, publish=False)
    assert draft.clauses.count() == 10
    rfqs.update_rfq(rfq_id=draft.pk, by=s.procurement, clauses=["new-parts", "burn-in-72h"])
    with pytest.raises(InputError, match="no clause noise in use"):
        rfqs.update_rfq(rfq_id=draft.pk, by=s.procurement, clauses=["noise"])
    revise(s, text_en="96 hours at full load.")

    issued = rfqs.publish_rfq(rfq_id=draft.pk, by=s.procurement)
    revise(s, text_en="120 hours at full load.")

    rows = [(row.clause.code, row.clause.version) for row in issued.clauses.all()]
    assert rows == [("new-parts", 1), ("burn-in-72h", 2)]
    assert issued.clauses.last().text_en == "96 hours at full load."
    assert issued.compute_hash() == issued.criteria_hash
    assert AuditEntry.objects.get(action="rfq.published").data["clauses"] == [
        "new-parts v1", "burn-in-72h v2",
    ]  # fmt: skip


def test_a_clause_out_of_use_stops_the_issue_by_name(s):
    draft = b.rfq(s, publish=False)
    newest = current_clauses()["spare-parts"]
    kept = {name: getattr(newest, name) for name in WORDS}
    write_clause(
        code="spare-parts", by=s.procurement, version=1, reason="Old", in_use=False, **kept
    )
    with pytest.raises(InputError, match="no clause spare-parts in use"):
        rfqs.publish_rfq(rfq_id=draft.pk, by=s.procurement)


def test_the_papers_are_made_in_the_languages_of_those_invited(s, client):
    s.rival.language = "en"
    s.rival.save(update_fields=["language"])
    rfq = b.rfq(s)
    rows = {row.language: row for row in RfqDocument.objects.filter(rfq=rfq)}
    assert set(rows) == {"en", "zh-hans"}
    for row in rows.values():
        render_rfq_document(str(Job.objects.get(key=f"rfq-document:{row.pk}").pk))
        row.refresh_from_db()
    english, chinese = (text_of(rows[code].file.file.read()) for code in ("en", "zh-hans"))
    assert "Burn-in of 72 hours" in english
    assert "Delivered in full by" in english
    assert "72 小时烤机" in chinese
    assert "全部到货" in chinese
    request = rfq.lines.get().request
    for told in (request.reference, request.team.name, s.vendor.name):
        assert told not in english

    client.force_login(s.procurement)
    address = f"/procurement/rfqs/{rfq.pk}/documents/{rows['en'].pk}/"
    assert client.get(address).status_code == 200
    client.force_login(s.outsider)
    assert client.get(address).status_code == 404
    key = vendor_access.issue_token(rfq_id=rfq.pk, vendor_id=s.rival.pk, by=s.procurement)
    api = APIClient(headers={"Authorization": f"Vendor {key}"})
    assert api.get("/api/v1/procurement/vendor/rfq/document/").status_code == 200
    assert len(api.get("/api/v1/procurement/vendor/rfq/").json()["clauses"]) == 10


def test_an_extension_draws_the_papers_anew_with_the_new_deadline(s, client):
    s.rival.language = "en"
    s.rival.save(update_fields=["language"])
    rfq = b.rfq(s)
    key = vendor_access.issue_token(rfq_id=rfq.pk, vendor_id=s.rival.pk, by=s.procurement)
    api = APIClient(headers={"Authorization": f"Vendor {key}"})
    before = rfq.local_deadline
    later = rfqs.extend_rfq(
        rfq_id=rfq.pk,
        deadline=rfq.deadline + timedelta(days=9),
        reason="asked for",
        by=s.procurement,
    ).local_deadline
    entry = AuditEntry.objects.get(action="rfq.extended")
    assert [datetime.fromisoformat(one) for one in entry.data["changes"]["deadline"]] == [
        before,
        later,
    ]
    old, new = RfqDocument.objects.filter(rfq=rfq, language="en").order_by("revision")
    # Drawn after the extension, the first still says what it was issued with, and no vendor is served it.
    for row, told in ((old, before), (new, later)):
        assert api.get("/api/v1/procurement/vendor/rfq/document/").status_code == 404
        render_rfq_document(str(Job.objects.get(key=f"rfq-document:{row.pk}").pk))
        row.refresh_from_db()
        assert f"{told:%Y-%m-%d %H:%M}" in text_of(row.file.file.read())
    served = api.get("/api/v1/procurement/vendor/rfq/document/")
    assert f"{later:%Y-%m-%d %H:%M}" in text_of(b"".join(served.streaming_content))
    client.force_login(s.procurement)
    page = client.get(rfq.get_absolute_url()).text
    assert f"/documents/{new.pk}/" in page
    assert f"/documents/{old.pk}/" not in page


@pytest.mark.parametrize(
    ("language", "words"), [("en", "New parts only"), ("zh-hans", "仅限全新件")]
)
def test_the_order_prints_them_in_the_vendors_language(s, language, words):
    s.vendor.language = language
    s.vendor.save(update_fields=["language"])
    assert words in text_of(render_order(b.issued(s)))


def test_by_page_and_api(s, client):
    client.force_login(s.procurement)
    made = client.post(
        "/procurement/clauses/new/", {"code": "noise", "version": "0", "preset": "on", **WORDS}
    )
    assert made.status_code == 302
    page = client.get("/procurement/clauses/noise/").text
    assert "不超过 75 分贝。" in page
    again = {
        **WORDS,
        "text_en": "At most 70 dB.",
        "version": "1",
        "reason": "Neighbours",
        "in_use": "on",
    }
    assert client.post("/procurement/clauses/noise/", again).status_code == 302
    api = APIClient()
    api.force_login(s.procurement)
    versions = api.get("/api/v1/procurement/clauses/noise/").json()
    assert [row["version"] for row in versions] == [2, 1]
    stale = api.post(
        "/api/v1/procurement/clauses/", {"code": "noise", "version": 1, **WORDS}, format="json"
    )
    assert stale.status_code == 409
    rfq = b.rfq(s, publish=False)
    told = api.patch(
        f"/api/v1/procurement/rfqs/{rfq.pk}/", {"clauses": ["noise"]}, format="json"
    ).json()
    assert [(row["code"], row["version"]) for row in told["clauses"]] == [("noise", 2)]
    assert "At most 70 dB." in client.get(f"/procurement/rfqs/{rfq.pk}/").text
    assert "Clause library" in client.get("/procurement/rfqs/").text


def test_words_that_differ_from_the_data_are_told_on_clause_and_rfq_in_both_languages(s, client):
    revise(s, "doa-window", text_en="Dead on arrival within 14 days.", text_zh="到货后 14 日内。")
    rfq = b.rfq(s)
    client.force_login(s.procurement)
    api = APIClient()
    api.force_authenticate(s.procurement)
    for page in (
        "/procurement/clauses/",
        "/procurement/clauses/doa-window/",
        rfq.get_absolute_url(),
    ):
        assert "English words: 14 days. As data: Dead on arrival (days) 30" in client.get(page).text
        shown = client.get(page, headers={"accept-language": "zh-hans"})
        assert "中文文字：14 日。" in shown.text or "English words: 14 days" in shown.text
    told = api.get("/api/v1/procurement/clauses/doa-window/").json()[0]["warnings"]
    assert len(told) == 2
    found = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/").json()["clause_warnings"]
    assert found == {"doa-window": told}
