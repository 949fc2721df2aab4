"""Each figure of a review leads to its frozen rows, by page, CSV and API; one document holds both languages."""

import io
from datetime import date
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.urls import reverse
from pypdf import PdfReader

from core.roles import Role
from planning.actuals import CardResult, OpenRfq, OrderLine, QuarterActuals
from planning.models.reviews import BOTH, ReviewReport
from planning.review_pack import build_pack
from planning.review_report import render_report, report_name
from planning.review_rows import LISTS, frozen_rows, with_links
from planning.services import reviews

pytestmark = pytest.mark.django_db


def card(serial, vendor, verdict="pass"):
    return CardResult(serial, "h100-sxm-80gb", "PO-1", vendor, "in_service", verdict, 72.0)


ACTUALS = QuarterActuals(
    orders=(
        OrderLine("PO-1", "R-1", "Chat", "浪潮", "h100-sxm-80gb", 8, 8, 7, 1, Decimal("10.00"), "CNY",
                  date(2026, 11, 20), None),
    ),
    cards=(card("SN1", "浪潮"), card("SN2", "浪潮", "fail"), card("SN3", "Other")),
    rfqs=(OpenRfq("RFQ-1", "=cards", "open", 8, "2026-12-01T00:00+00:00"),),
    open_rfqs=1,
)  # fmt: skip


@pytest.fixture
def frozen(organisation):
    review = reviews.ensure_reviews()[0]
    reviews.freeze_review(review_id=review.pk, actuals=ACTUALS, by=None)
    review.refresh_from_db()
    return review


def rows_at(review, name):
    return reverse("review-rows", args=[review.pk, name])


def test_every_link_of_the_pack_opens_rows_that_are_there(client, frozen, make_user):
    client.force_login(make_user(Role.AUDITOR, language="en"))
    snapshot = frozen.snapshots.get()
    pack = with_links(
        build_pack(snapshot.data, number=1), snapshot.data, rows_at(frozen, "x")[:-2], 1
    )
    addresses = {url for _l, _f, _n, url in pack.tiles if url}
    addresses |= {url for section in pack.sections for _name, url, _n in section.behind}
    assert len(addresses) > 8
    page = client.get(frozen.get_absolute_url()).content.decode()
    for address in addresses:
        assert address.replace("&", "&amp;") in page
        assert client.get(address).status_code == 200
    for section in pack.sections:
        for table in section.tables:
            if table.wheres:
                assert frozen_rows(snapshot.data, table.source, table.wheres[0])


def test_a_figure_s_rows_are_those_it_is_made_of(client, frozen, make_user):
    client.force_login(make_user(Role.FINANCE, language="en"))
    where = {"version": 1, "vendor": "浪潮"}
    page = client.get(rows_at(frozen, "cards"), where).content.decode()
    assert ("SN1" in page, "SN2" in page, "SN3" in page) == (True, True, False)
    api = client.get(reverse("api-review-rows", args=[frozen.pk, "cards"]), where).json()
    assert [row["serial"] for row in api["rows"]] == ["SN1", "SN2"]
    csv = client.get(rows_at(frozen, "rfqs"), {"format": "csv"}).content.decode("utf-8-sig")
    assert "RFQ-1" in csv
    assert ",=cards" not in csv  # no formula
    # a correction leaves the rows of the version before as they were
    reviews.freeze_review(review_id=frozen.pk, actuals=QuarterActuals(), by=None)
    assert "SN1" in client.get(rows_at(frozen, "cards"), where).content.decode()
    assert "SN1" not in client.get(rows_at(frozen, "cards")).content.decode()
    for wrong in (rows_at(frozen, "nothing"), rows_at(frozen, "cards") + "?version=9"):
        assert client.get(wrong).status_code == 404
    wrong = reverse("api-review-rows", args=[frozen.pk, "cards"])
    assert client.get(wrong, {"version": "x"}).status_code == 404


def test_who_sees_no_review_sees_no_rows_and_asks_for_no_document(client, frozen, make_user, team):
    client.force_login(make_user(Role.REQUESTER, team=team))
    assert client.get(rows_at(frozen, "cards")).status_code == 404
    assert client.get(reverse("api-review-rows", args=[frozen.pk, "cards"])).status_code == 404
    assert client.post(reverse("review-report-ask", args=[frozen.pk])).status_code == 404
    client.force_login(make_user(Role.AUDITOR))
    body = {"number": 1, "language": "both"}
    assert client.post(reverse("review-report-ask", args=[frozen.pk]), body).status_code == 403
    assert client.post(reverse("api-review-reports", args=[frozen.pk]), body).status_code == 403
    assert not ReviewReport.objects.filter(language=BOTH).exists()


def test_both_languages_are_asked_for_by_page_and_api_and_are_one_document(
    client, frozen, make_user
):
    client.force_login(make_user(Role.FINANCE, language="en"))
    body = {"number": 1, "language": "both"}
    assert client.post(reverse("review-report-ask", args=[frozen.pk]), body).status_code == 302
    assert client.post(reverse("api-review-reports", args=[frozen.pk]), body).status_code == 201
    report = ReviewReport.objects.get(language=BOTH)
    assert "en-" not in report_name(report)
    refused = client.post(
        reverse("api-review-reports", args=[frozen.pk]), {"number": 1, "language": "fr"}
    )
    assert refused.status_code == 422
    assert "both" in refused.content.decode()
    unknown = client.post(
        reverse("api-review-reports", args=[frozen.pk]), {"number": 7, "language": "en"}
    )
    assert unknown.status_code == 422


def test_one_document_says_all_in_english_and_then_all_in_chinese(frozen):
    def document(language):
        report = ReviewReport(
            snapshot=frozen.snapshots.get(), language=language, template_version=1
        )
        pdf = render_report(report)
        assert render_report(report) == pdf
        return PdfReader(io.BytesIO(pdf))

    english, chinese, both = document("en"), document("zh-hans"), document(BOTH)
    assert len(both.pages) == len(english.pages) + len(chinese.pages)
    text = ["".join(page.extract_text().split()) for page in both.pages]
    half = len(english.pages)
    assert "Recommendations" in "".join(text[:half])
    assert "Recommendations" not in "".join(text[half:])
    assert "建议" in "".join(text[half:])
    assert both.trailer["/Root"]["/Lang"].lower().startswith("en")
    assert set(both.attachments) == set(english.attachments)
    # every link of the second part leads into the second part
    names = [dest.title for dest in both.named_destinations.values()]
    assert {"p1s1", "p2s1", "p1check", "p2check"} <= set(names)
    assert len(names) == len(set(names))


def test_lists_of_the_rows_are_those_of_the_snapshot(frozen):
    data = frozen.snapshots.get().data
    lists = {name for name, value in data.items() if isinstance(value, list)} - {"holes"}
    assert lists == set(LISTS)


def test_the_command_writes_both_languages(frozen, tmp_path):
    out = tmp_path / "both.pdf"
    call_command("make_review", "--language", "both", "--out", str(out))
    assert len(PdfReader(out).pages) > 4
