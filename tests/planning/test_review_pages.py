"""Pages and API of reviews: who sees them, what they say, the PDF in both languages, constant queries."""

import io
from datetime import date
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import translation
from pypdf import PdfReader

from core.roles import Role
from planning.actuals import CardResult, OrderLine, QuarterActuals, VendorScore
from planning.models import CapacityReview
from planning.review_report import render_report
from planning.services import reviews

pytestmark = pytest.mark.django_db
ACTUALS = QuarterActuals(
    orders=(
        OrderLine(
            "PO-2026-0001", "R-0002", "基础模型", "浪潮", "h100-sxm-80gb", 8, 8, 7, 1, Decimal("1860000.00"), "CNY",
            date(2026, 11, 20), date(2026, 11, 24),
        ),
    ),
    cards=(CardResult("SN1", "h100-sxm-80gb", "PO-2026-0001", "浪潮", "at_vendor", "fail", 31.0, "14 errors"),),
    vendors=(VendorScore("浪潮", 8, 1, 4.0),),
    open_rmas=1,
)  # fmt: skip


@pytest.fixture
def frozen(organisation):
    review = reviews.ensure_reviews()[0]
    reviews.freeze_review(review_id=review.pk, actuals=ACTUALS, by=None)
    review.refresh_from_db()
    return review


def pages_of(review):
    return [reverse("review-list"), reverse("review-detail", args=[review.pk])]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_pack_says_the_same_on_the_page_and_in_the_pdf(client, frozen, make_user, language):
    client.force_login(make_user(Role.FINANCE, language=language))
    page = client.get(pages_of(frozen)[1]).content.decode()
    report = frozen.snapshots.get().reports.get(language=language)
    pdf = render_report(report)
    text = "".join(p.extract_text() for p in PdfReader(io.BytesIO(pdf)).pages)
    with translation.override(language):
        title = translation.gettext("Acceptance")
    for words in ("1,860,000.00 CNY", "PO-2026-0001", "浪潮", title):
        assert words in page
        assert words.replace(" ", "") in text.replace(" ", "").replace("\n", "")
    assert PdfReader(io.BytesIO(pdf)).trailer["/Root"]["/Lang"].lower().startswith(language[:2])
    assert "orders.csv" in PdfReader(io.BytesIO(pdf)).attachments


def test_the_same_snapshot_gives_the_same_bytes(frozen):
    report = frozen.snapshots.get().reports.get(language="en")
    assert render_report(report) == render_report(report)


@pytest.mark.parametrize("role", [Role.REQUESTER])
def test_a_team_member_sees_no_review_by_page_or_api(client, frozen, make_user, team, role):
    client.force_login(make_user(role, team=team))
    addresses = [
        *pages_of(frozen),
        reverse("api-review", args=[frozen.pk]),
        reverse("review-report", args=[frozen.pk, frozen.snapshots.get().reports.first().pk]),
    ]
    for address in addresses:
        assert client.get(address).status_code == 404
    assert client.get(reverse("api-reviews")).json()["results"] == []
    assert client.post(reverse("review-freeze", args=[frozen.pk])).status_code == 404
    assert client.post(reverse("api-review-freeze", args=[frozen.pk])).status_code == 404


def test_an_auditor_reads_but_does_not_freeze(client, frozen, make_user):
    client.force_login(make_user(Role.AUDITOR))
    assert client.get(pages_of(frozen)[1]).status_code == 200
    body = {"version": frozen.version, "reason": "again"}
    assert client.post(reverse("review-freeze", args=[frozen.pk]), body).status_code == 403
    assert client.post(reverse("api-review-freeze", args=[frozen.pk]), body).status_code == 403
    assert frozen.snapshots.count() == 1


def test_freezing_by_page_and_by_api_is_the_same_step(client, frozen, make_user):
    client.force_login(make_user(Role.OPERATIONS))
    page = client.post(
        reverse("review-freeze", args=[frozen.pk]),
        {"version": frozen.version, "reason": "late delivery"},
    )
    frozen.refresh_from_db()
    answer = client.post(
        reverse("api-review-freeze", args=[frozen.pk]),
        {"reason": "later delivery", "version": frozen.version},
        content_type="application/json",
    )
    assert (page.status_code, answer.status_code) == (302, 201)
    assert list(frozen.snapshots.values_list("reason", flat=True)) == [
        "later delivery",
        "late delivery",
        "",
    ]


def test_a_second_freeze_without_a_reason_keeps_the_form(client, frozen, make_user):
    client.force_login(make_user(Role.OPERATIONS))
    answer = client.post(reverse("review-freeze", args=[frozen.pk]), {"version": frozen.version})
    assert answer.status_code == 422


def test_the_list_costs_the_same_with_more_rows(
    client, organisation, make_user, django_assert_num_queries
):
    client.force_login(make_user(Role.FINANCE))
    rows = [
        CapacityReview(
            fiscal_year=2020 + n // 4, quarter=n % 4 + 1, start_month=1, meeting_on=date(2026, 1, 5)
        )
        for n in range(40)
    ]
    counts = []
    for part in (rows[:2], rows[2:]):
        CapacityReview.objects.bulk_create(part)
        client.get(reverse("review-list"))
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(
            connection,
        ) as seen:
            client.get(reverse("review-list"))
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 15
