"""How likely a stage is to be approved: counted, drawn to an assumption with few points, edited as data."""

from __future__ import annotations

from decimal import Decimal

import pytest
import time_machine
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from core.errors import InputError, NotPermitted
from core.models import AuditEntry
from planning.models.probabilities import StagePrior
from planning.selectors.capacity import calendar
from planning.selectors.forecast import forecast
from planning.selectors.probabilities import LOOK_BACK, probabilities
from planning.services import requests
from planning.services.probabilities import set_prior
from planning.states import RequestStatus
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def test_without_history_the_assumption_holds_and_the_count_says_so(w):
    found = probabilities()
    assert {stage: row.value for stage, row in found.items()} == {
        "submitted": 0.5, "in_review": 0.7, "changes_requested": 0.3,
    }  # fmt: skip
    assert all((row.reached, row.agreed, row.observed) == (0, 0, None) for row in found.values())


def test_decided_requests_are_counted_once_a_stage_and_drawn_to_the_assumption(w):
    for status in (RequestStatus.APPROVED, RequestStatus.FULFILLED, RequestStatus.REJECTED,
                   RequestStatus.CANCELLED, RequestStatus.IN_REVIEW, RequestStatus.DRAFT):  # fmt: skip
        builders.at(w, status)
    row = probabilities()["in_review"]
    assert (row.reached, row.agreed, row.observed) == (4, 2, 0.5)
    assert row.value == pytest.approx((2 + 10 * 0.7) / 14)

    again = builders.at(w, RequestStatus.CHANGES_REQUESTED)
    requests.revise(request_id=again.pk, by=w.requester)
    requests.update_draft(request_id=again.pk, by=w.requester, justification="Smaller now.")
    again.refresh_from_db()
    builders.choose(again, builders.study(again))
    requests.submit_request(request_id=again.pk, by=w.requester)
    builders.fund(w, "1000")
    builders.vote(again, w.lead)
    found = probabilities()
    assert (found["in_review"].reached, found["in_review"].agreed) == (5, 3)
    assert (found["changes_requested"].reached, found["changes_requested"].agreed) == (1, 1)


def test_what_is_longer_ago_than_two_years_does_not_count(w):
    builders.at(w, RequestStatus.REJECTED)
    with time_machine.travel(timezone.now() + LOOK_BACK * 1.01, tick=False):
        assert probabilities()["in_review"].reached == 0


def test_calendar_and_forecast_weigh_by_it(w):
    builders.fund(w, "100000")
    builders.in_review(w, "1000")
    set_prior(stage="in_review", share=Decimal("0.25"), weight=100, by=w.finance)
    (pool,) = calendar(w.cto).pools
    (demand,) = pool.demand
    assert demand.probability == 0.25
    (purchase,) = [row for row in forecast(w.finance).kinds if row.kind == "purchase"]
    assert (purchase.pipeline, purchase.weighed) == (1000, 250)


def test_only_finance_edits_within_limits_and_it_is_in_the_trail(w):
    for person in (w.requester, w.lead, w.procurement, w.admin, w.superuser):
        with pytest.raises(NotPermitted):
            set_prior(stage="submitted", share=Decimal("0.4"), weight=5, by=person)
    for field, wrong in (
        ("stage", {"stage": "draft"}), ("share", {"share": Decimal("1.01")}),
        ("share", {"share": Decimal("NaN")}), ("weight", {"weight": 0}),
    ):  # fmt: skip
        with pytest.raises(InputError) as refused:
            set_prior(**{"stage": "submitted", "share": Decimal("0.4"), "weight": 5, **wrong},
                      by=w.finance)  # fmt: skip
        assert refused.value.field == field
    assert not StagePrior.objects.exists()
    set_prior(stage="submitted", share=Decimal("0.4"), weight=5, by=w.finance)
    set_prior(stage="submitted", share=Decimal("0.6"), weight=5, by=w.finance)
    assert StagePrior.objects.count() == 1
    entry = AuditEntry.objects.filter(action="stage_prior.changed").first()
    assert entry.data["changes"]["share"] == ["0.400", "0.600"]


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_page_shows_counts_and_takes_an_assumption(w, client, language):
    builders.at(w, RequestStatus.REJECTED)
    for person in (w.finance, w.cto):
        person.language = language
        person.save()
    client.force_login(w.finance)
    address = reverse("probabilities")
    client.post(address, {"stage": "in_review", "percent": "40", "weight": 4})
    page = client.get(address).content.decode()
    assert ("0 of 1" if language == "en" else "0 / 1") in page
    assert f"{100 * (0 + 4 * 0.4) / 5:.1f}" in page  # 32.0 per cent
    assert client.post(address, {"stage": "in_review", "percent": "400", "weight": 4}).status_code == 302  # fmt: skip
    assert StagePrior.objects.get().share == Decimal("0.4")
    client.force_login(w.cto)
    assert 'name="percent"' not in client.get(address).content.decode()
    assert client.post(address, {"stage": "in_review", "percent": "1", "weight": 4}).status_code == 403  # fmt: skip
    client.force_login(w.requester)
    assert client.get(address).status_code == 403


def test_the_api_does_the_same(w):
    api = APIClient()
    api.force_authenticate(w.finance)
    body = {"stage": "submitted", "share": "0.2", "weight": 50}
    assert api.post("/api/v1/probabilities/", body, format="json").json()["value"] == 0.2
    assert api.get("/api/v1/probabilities/").json()[0]["weight"] == 50
    api.force_authenticate(w.requester)
    assert api.get("/api/v1/probabilities/").status_code == 403
    assert api.post("/api/v1/probabilities/", body, format="json").status_code == 403
