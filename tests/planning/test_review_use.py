"""What a review says of use, supply and forecast, and what a correction changed."""

import io
import re
from html import unescape

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import translation
from pypdf import PdfReader

from core.models import Organisation
from core.organisation import today
from core.roles import Role
from planning import review_use
from planning.actuals import QuarterActuals
from planning.demo_telemetry import load_telemetry
from planning.models import CapacityReview, TelemetrySource
from planning.review_changes import Change, changes
from planning.review_pack import build_pack
from planning.services import calibration, month_one, reviews
from tests.factories import TeamFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def review(organisation):
    TeamFactory(slug="foundation", name="Foundation")
    TeamFactory(slug="search", name="Search")
    load_telemetry(organisation, today(organisation))
    calibration.learn()
    return reviews.ensure_reviews()[0]


def frozen(review, reason=""):
    snapshot = reviews.freeze_review(
        review_id=review.pk, actuals=QuarterActuals(), by=None, reason=reason
    )
    review.refresh_from_db()
    return snapshot


def test_each_pool_has_a_recommendation_with_its_arithmetic(review):
    data = frozen(review).data
    found = {row["pool"]: row for row in data["recommendations"]}
    assert len(found) == 4
    assert found["search · nvidia-l40s-48gb · owned"]["action"] == "shrink"
    assert all(row["lines"] for row in found.values())
    assert len(data["forecast"]) == 4
    assert all(0 < row["error"] < 1 and row["tests"] > 3 for row in data["forecast"])
    assert all(row["low"] <= row["busy"] <= row["high"] for row in data["forecast"])
    assert not any("telemetry source" in hole["template"] for hole in data["holes"])


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_pack_has_the_chapters_in_both_languages(review, language):
    data = frozen(review).data
    with translation.override(language):
        pack = build_pack(data, number=1)
        titles = [section.title for section in pack.sections]
        for title in (
            "Recommendations",
            "Supply",
            "Use and queues",
            "Forecast of the next quarter",
            "Calibration",
        ):
            assert translation.gettext(title) in titles


def test_without_telemetry_the_pack_names_the_hole_and_guesses_nothing(organisation):
    data = frozen(reviews.ensure_reviews()[0]).data
    assert data["recommendations"] == data["forecast"] == data["use"] == []
    assert data["use_total"]["utilization"] is None
    assert any("No telemetry source is connected" in hole["template"] for hole in data["holes"])


def test_snapshots_from_before_open_as_they_were(review):
    data = dict(frozen(review).data)
    for name in ("use", "recommendations", "calibration", "forecast", "supply", "queues"):
        del data[name]
    titles = [section.title for section in build_pack(data, number=1).sections]
    assert "Recommendations" not in titles
    assert "Demand" in titles


def test_the_rules_of_the_organisation_decide_what_is_oversized(review, make_user):
    month_one.set_rules(by=make_user(Role.OPERATIONS), queue_hours=0.1, oversized_percent=99)
    actions = {row["action"] for row in frozen(review).data["recommendations"]}
    assert actions == {"fix"}


def test_a_correction_says_what_it_changed(review, client, make_user):
    frozen(review)
    TelemetrySource.objects.first()
    calibration.record_outcome(
        by=None, reference="new", kind="cost", estimated=10, measured=12, unit="CNY", measured_at=review.created_at
    )  # fmt: skip
    frozen(review, reason="an invoice came late")
    client.force_login(make_user(Role.FINANCE))
    page = client.get(reverse("review-detail", args=[review.pk])).content.decode()
    assert "What version 2 changed against version 1" in page
    assert "calibration cost" in page
    first = client.get(reverse("review-detail", args=[review.pk]), {"version": 1}).content.decode()
    assert "changed against" not in first


def test_changes_find_rows_by_name_not_by_place():
    first = {"order": "PO-1", "accelerator": "a", "ordered": 8}
    second = {"order": "PO-2", "accelerator": "a", "ordered": 4}
    old = {"orders": [first, second], "open_rmas": 1, "as_of": "x"}
    new = {"orders": [second, {**first, "ordered": 16}], "open_rmas": 0, "as_of": "y"}
    assert changes(old, new) == [
        Change("orders", "PO-1 · a", "ordered", "8", "16"),
        Change("open_rmas", "", "open_rmas", "1", "0"),
    ]
    assert changes(old, old) == []
    assert changes({"orders": []}, {"orders": old["orders"][:1]})[0].before is None


def test_make_review_writes_the_demo_pack_and_keeps_nothing(db, tmp_path):
    target = tmp_path / "review.pdf"
    call_command(
        "make_review", "--demo", "--language", "zh-hans", "--out", str(target), stdout=io.StringIO()
    )
    pdf = PdfReader(target)
    text = "".join(page.extract_text() for page in pdf.pages)
    assert "资源池" in text
    assert {"recommendations.csv", "forecast.csv", "use.csv"} <= set(pdf.attachments)
    assert not Organisation.objects.exists()
    assert not CapacityReview.objects.exists()


def test_make_review_says_when_there_is_nothing_to_write(organisation, tmp_path):
    with pytest.raises(CommandError, match="frozen"):
        call_command("make_review", "--out", str(tmp_path / "x.pdf"))
    with pytest.raises(CommandError, match="quarter"):
        call_command("make_review", "--quarter", "soon", "--out", str(tmp_path / "x.pdf"))


@pytest.mark.parametrize("name", ["review-detail", "telemetry"])
def test_pools_are_called_by_the_names_of_their_cards(review, client, make_user, name):
    frozen(review)
    client.force_login(make_user(Role.FINANCE))
    address = {
        "review-detail": reverse("review-detail", args=[review.pk]),
        "telemetry": reverse("telemetry"),
    }[name]
    page = client.get(address).content.decode()
    text = unescape(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.S))
    assert not re.findall(r"nvidia-[\w-]+", text)
    assert "L40S" in text
    words = review_use.pool_words("search · nvidia-l40s-48gb · owned")
    assert "nvidia" not in words
    assert words.startswith("search · ")
    assert review_use.pool_words("what a person wrote") == "what a person wrote"
