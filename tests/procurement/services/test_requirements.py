"""An RFQ says what must be reached, its quotes answer, and the comparison tells how far they do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry
from core.organisation import today
from procurement.models import Quote, QuoteImport, Rfq, RfqRequirement
from procurement.selectors.comparison import compare
from procurement.selectors.compliances import compliances
from procurement.selectors.requirements import criteria_met, criteria_met_by
from procurement.services import quote_imports, quotes, rfqs, vendor_access
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
RATE = {"kind": "throughput", "benchmark": "HPL", "value": "300", "unit": "Tflop/s", "per": "node"}
MEMORY = {"kind": "memory", "value": "80", "unit": "GB", "per": "card"}


def due() -> dict:
    return {"kind": "delivery", "day": today() + timedelta(days=60)}


@pytest.fixture
def s():
    return b.shop()


def with_throughput(p50: float) -> dict:
    return {
        "accelerator": {"hbm_bytes": 80e9, "tdp": 700.0},
        "figures": {"throughput": {"p10": 1.0, "p50": p50, "p90": 2.0, "unit": "tokens/s"}},
    }


def test_criteria_come_from_the_approved_plans_pooled(s):
    one = b.request(s, plan_estimate=with_throughput(45_678.0))
    other = b.request(s, plan_estimate=with_throughput(4_322.0))

    rfq = b.rfq(s, one, other)

    rows = {row.kind: row for row in rfq.requirements.all()}
    assert set(rows) == {"throughput", "memory", "power", "delivery"}
    assert rows["throughput"].value == 45_700 + 4_320
    assert rows["throughput"].benchmark.startswith("llama-3.1-8b, LoRA")
    assert (rows["memory"].value, rows["memory"].unit, rows["memory"].per) == (80, "GB", "card")
    assert rows["power"].value == 700
    assert rows["delivery"].day == one.current.need_by
    assert all(row.lines == [] and row.from_plan for row in rows.values())
    assert "tokens/s" in str(AuditEntry.objects.get(action="rfq.created").data["requirements"])


def test_what_a_study_does_not_know_is_no_criterion(s):
    assert "throughput" not in set(b.rfq(s).requirements.values_list("kind", flat=True))


def test_criteria_of_a_draft_change_and_are_frozen_by_the_hash(s):
    rfq = b.rfq(s, publish=False)
    before = rfq.compute_hash()
    rfqs.update_rfq(rfq_id=rfq.pk, by=s.procurement, requirements=[RATE, due()])
    assert [row.kind for row in rfq.requirements.all()] == ["throughput", "delivery"]
    assert rfq.compute_hash() != before
    change = AuditEntry.objects.filter(action="rfq.updated").latest("pk").data["changes"]
    assert change["requirements"][1][0] == "Throughput of a server: at least 300 Tflop/s (HPL)"

    rfqs.take_from_plans(rfq_id=rfq.pk, by=s.procurement)
    assert rfq.compute_hash() == before

    rfqs.publish_rfq(rfq_id=rfq.pk, by=s.procurement)
    for act in (
        lambda: rfqs.update_rfq(rfq_id=rfq.pk, by=s.procurement, requirements=[]),
        lambda: rfqs.take_from_plans(rfq_id=rfq.pk, by=s.procurement),
    ):
        with pytest.raises(InvalidTransition):
            act()
    assert rfq.requirements.exists()


def test_only_buyers_change_criteria(s, client):
    rfq = b.rfq(s, publish=False)
    for name in ("requester", "cto", "finance", "auditor", "admin", "superuser", "outsider"):
        with pytest.raises(NotPermitted):
            rfqs.update_rfq(rfq_id=rfq.pk, by=getattr(s, name), requirements=[])
        client.force_login(getattr(s, name))
        assert client.get(f"/procurement/rfqs/{rfq.pk}/requirements/").status_code in (403, 404)
    foreign = b.person("procurement", b.planning.TeamFactory())
    client.force_login(foreign)
    assert client.get(f"/procurement/rfqs/{rfq.pk}/requirements/").status_code == 404


def asked(s, **fields):
    return b.rfq(s, requirements=[RATE, MEMORY, due()], **fields)


def test_a_quote_answers_and_is_compared(s):
    rfq = asked(s)
    told = [{"requirement": 1, "value": "299.9", "meets": True}, {"requirement": 2, "meets": True}]
    quote = b.quote(s, rfq, answers=told)
    silent = b.quote(s, rfq, s.rival)

    found = criteria_met(quote)
    assert [str(row.verdict) for row in found.rows] == ["misses", "meets", "meets"]
    assert [row.contradicts for row in found.rows] == [True, False, False]
    assert found.complies is False
    assert criteria_met(silent).complies is None
    assert criteria_met(silent).unsaid == 2  # the day of delivery by its lead time
    assert quote.content_hash != b.quote(s, rfq, answers=told[1:]).content_hash


def test_a_longer_validity_keeps_the_answers(s):
    rfq = asked(s)
    quote = b.quote(s, rfq, answers=[{"requirement": 2, "value": "141"}])
    later = quotes.extend_quote(
        quote_id=quote.pk, valid_until=quote.valid_until + timedelta(days=5), by=s.procurement
    )
    assert criteria_met(later).rows[1].answer.value == 141


def test_an_answer_to_no_criterion_is_refused(s):
    with pytest.raises(InputError, match="There is no criterion 4; there are: 1, 2, 3"):
        b.quote(s, asked(s), answers=[{"requirement": 4, "meets": True}])


def test_many_quotes_are_judged_in_constant_queries(s, django_assert_num_queries):
    rfq = asked(s)
    found = [b.quote(s, rfq), b.quote(s, rfq, s.rival)]
    rows = list(type(found[0]).objects.filter(rfq=rfq).select_related("rfq"))
    with django_assert_num_queries(5):  # two of them for what the lines promise
        assert len(criteria_met_by(rows)) == 2


def test_pages_and_api_ask_answer_and_compare(s, client):
    api = APIClient()
    api.force_login(s.procurement)
    rfq = b.rfq(s, publish=False)
    answer = api.patch(
        f"/api/v1/procurement/rfqs/{rfq.pk}/",
        {
            "requirements": [
                RATE,
                {**MEMORY, "lines": [1]},
                {**due(), "day": due()["day"].isoformat()},
            ]
        },
        format="json",
    )
    assert answer.status_code == 200, answer.content
    assert [row["value"] for row in answer.json()["requirements"]] == ["300", "80", None]
    wrong = api.patch(
        f"/api/v1/procurement/rfqs/{rfq.pk}/",
        {"requirements": [{**MEMORY, "unit": "GiB"}]}, format="json",
    )  # fmt: skip
    assert wrong.status_code == 422
    assert "Criterion 1: unit is GiB; it must be: GB, TB" in wrong.text

    client.force_login(s.procurement)
    page = client.get(f"/procurement/rfqs/{rfq.pk}/requirements/")
    assert "HPL" in page.text
    rfqs.publish_rfq(rfq_id=rfq.pk, by=s.procurement)
    assert "Throughput of a server" in client.get(f"/procurement/rfqs/{rfq.pk}/").text
    assert "Throughput of a server" in client.get(f"/procurement/rfqs/{rfq.pk}/quotes/new/").text

    body = {
        "vendor": s.vendor.pk, "currency": "CNY", "valid_until": (today() + timedelta(days=30)).isoformat(),
        "lead_time_days": 30, "lines": [b.line()], "warranty": b.WARRANTY,
        "answers": [{"requirement": 1, "value": "310.5"}, {"requirement": 3, "meets": False}],
    }  # fmt: skip
    made = api.post(f"/api/v1/procurement/rfqs/{rfq.pk}/quotes/", body, format="json")
    assert made.status_code == 201, made.content
    assert [row["verdict"] for row in made.json()["criteria"]["rows"]] == [
        "meets", "unsaid", "misses",
    ]  # fmt: skip
    assert "310.5" in client.get(f"/procurement/quotes/{made.json()['id']}/").text
    compared = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").json()
    assert compared["rows"][0]["criteria"]["complies"] is False
    assert "1 met, 1 missed, 1 not said" in client.get(f"/procurement/rfqs/{rfq.pk}/compare/").text


def test_the_page_of_criteria_saves_and_takes_them_from_the_plans(s, client):
    rfq = b.rfq(s, publish=False)
    client.force_login(s.procurement)
    rows = {
        "version": rfq.version, "rows-TOTAL_FORMS": 2, "rows-INITIAL_FORMS": 0,
        "rows-0-kind": "power", "rows-0-value": "10.5", "rows-0-unit": "kW", "rows-0-per": "server",
        "rows-0-lines": "1", "rows-1-kind": "", "rows-1-per": "whole",
    }  # fmt: skip
    address = f"/procurement/rfqs/{rfq.pk}/requirements/"
    assert client.post(address, {**rows, "rows-0-unit": "hp"}).status_code == 422
    assert client.post(address, rows).status_code == 302
    assert [str(row.words) for row in RfqRequirement.objects.filter(rfq=rfq)] == [
        "Power of a server: at most 10.5 kW"
    ]
    rfq.refresh_from_db()
    assert client.post(address, {"version": rfq.version, "plans": "1"}).status_code == 302
    assert [row.kind for row in rfq.requirements.all()] == ["delivery"]


def test_a_table_answers_and_its_template_asks(s, client):
    rfq = asked(s)
    client.force_login(s.procurement)
    sheet = client.get(f"/procurement/rfqs/{rfq.pk}/quote-template.csv?language=zh")
    text = b"".join(sheet.streaming_content).decode() if sheet.streaming else sheet.content.decode()
    assert "指标答复" in text
    assert "1: ; 2: ; 3:" in text

    columns = (
        "description", "quantity", "unit_price", "rfq_line", "accelerators_per_item", "kind", "tax_percent",
        "serialised", "currency", "valid_until", "lead_time_days", "warranty_months", "warranty_start", "answers",
    )  # fmt: skip
    head = ",".join(columns)
    row = "H100,8,250000,1,1,accelerator,13,yes,CNY,2099-12-31,30,36,acceptance,{}"

    def sent(answers: str) -> QuoteImport:
        upload = SimpleUploadedFile("q.csv", f"{head}\n{row.format(answers)}\n".encode())
        return quote_imports.start_import(
            rfq_id=rfq.pk, vendor_id=s.vendor.pk, upload=upload, by=s.procurement
        )

    assert "There is no criterion" in str(sent("7: 5").report["problems"])
    found = sent("1: 301; 2: yes; 3: 2099-01-01")
    quote_imports.apply_import(pk=found.pk, by=s.procurement)
    found.refresh_from_db()
    assert [str(one.verdict) for one in criteria_met(found.quote).rows] == [
        "meets",
        "meets",
        "misses",
    ]


def test_a_vendor_is_asked_and_answers_with_its_key(s):
    rfq = asked(s)
    key = vendor_access.issue_token(rfq_id=rfq.pk, vendor_id=s.vendor.pk, by=s.procurement)
    api = APIClient(headers={"Authorization": f"Vendor {key}"})
    told = api.get("/api/v1/procurement/vendor/rfq/").json()["requirements"]
    assert [row["kind"] for row in told] == ["throughput", "memory", "delivery"]
    assert "from_plan" not in told[0]
    body = {
        "currency": "CNY", "valid_until": (today() + timedelta(days=30)).isoformat(), "lead_time_days": 30,
        "lines": [b.line()], "warranty": b.WARRANTY, "answers": [{"requirement": 2, "value": "80"}],
    }  # fmt: skip
    sent = api.post("/api/v1/procurement/vendor/quote/", body, format="json")
    assert sent.status_code == 201, sent.content
    assert sent.json()["criteria"]["meets"] == 2  # its figure, and the day by its lead time


def test_answers_of_a_sealed_bid_are_sealed(s, client):
    rfq = asked(s, sealed=True)
    quote = b.quote(s, rfq, answers=[{"requirement": 1, "value": "271828.18"}])
    api = APIClient()
    for person in (s.procurement, s.cto, s.auditor, s.superuser):
        client.force_login(person)
        api.force_login(person)
        for text in (
            client.get(f"/procurement/quotes/{quote.pk}/").text,
            client.get(f"/procurement/rfqs/{rfq.pk}/").text,
            api.get(f"/api/v1/procurement/quotes/{quote.pk}/").text,
        ):
            assert "271828" not in text
            assert "271,828" not in text


def test_a_day_of_delivery_is_judged_once_and_on_the_day_of_the_opening(s):
    rfq = b.rfq(s, requirements=[due()], deliver_by=today() + timedelta(days=10))
    plain = b.rfq(s, requirements=[MEMORY], deliver_by=today() + timedelta(days=40))
    part = b.rfq(
        s, b.request(s), b.request(s), requirements=[{**due(), "lines": [2]}],
        deliver_by=today() + timedelta(days=40),
    )  # fmt: skip
    verdicts = {}
    for one in (rfq, plain, part):
        quote = b.quote(s, one)  # 30 days
        b.quote(s, one, s.rival, answers=[{"requirement": 1, "meets": False}])
        one = rfqs.close_rfq(rfq_id=one.pk, by=s.procurement, reason="in")
        for days in (0, 400):  # what was in time on the day of the opening stays so
            opened = one.opened_at - timedelta(days=days)
            Rfq.objects.filter(pk=one.pk).update(
                opened_at=opened, deliver_by=one.deliver_by - timedelta(days=days)
            )
            RfqRequirement.objects.filter(rfq=one, kind="delivery").update(
                day=today() + timedelta(days=60 - days)
            )
            found = {
                check.term: check.verdict
                for check in compliances(compare(Rfq.objects.get(pk=one.pk)))[quote.pk]
            }
            verdicts[one.pk, days] = found.get("deliver_by")
            told = criteria_met(Quote.objects.get(pk=quote.pk))
            assert told.complies is (None if one == plain else True)
    assert verdicts == {
        (rfq.pk, 0): None, (rfq.pk, 400): None,
        (plain.pk, 0): "meets", (plain.pk, 400): "meets",
        (part.pk, 0): "meets", (part.pk, 400): "meets",
    }  # fmt: skip


def test_a_throughput_is_answered_by_what_the_lines_promise(s, client):
    rfq = asked(s)
    told = [{"benchmark": "hpl", "value": "41000", "unit": "Gflop/s", "per": "card"}]
    lines = [b.line("2000000", "1", kind="server", accelerators_per_item=8, promises=told)]
    quote = b.quote(s, rfq, lines=lines, answers=[{"requirement": 1, "meets": False}])
    said = b.quote(s, rfq, s.rival, lines=lines, answers=[{"requirement": 1, "value": "290"}])

    met = criteria_met(quote).rows[0]
    assert (met.answer.value, str(met.verdict), met.promised) == (328, "meets", True)
    assert met.contradicts  # it says no, and promises 8 × 41 Tflop/s
    own = criteria_met(said).rows[0]
    assert (own.answer.value, str(own.verdict), own.promised) == (290, "misses", False)
    assert not quote.answers.filter(value__gt=0)  # read, not written into the vendor's offer
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    client.force_login(s.procurement)
    assert "from its promised throughput" in client.get(f"/procurement/quotes/{quote.pk}/").text
