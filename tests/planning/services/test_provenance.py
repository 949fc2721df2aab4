"""What nobody told is kept, shown and handed out as such: a usual value, or one worked out from what was told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import translation

from core.organisation import today
from planning.models import CapacityRequest
from planning.selectors.approvals import differences
from planning.services import requests
from planning.services.load_series import remove_load_series, set_load_series
from planning.services.studies import study_request
from planning.study.workloads import DEFAULT, DERIVED
from planning.tables import revision_facts
from tests.planning import builders

SERVICE = {
    "model": "llama-3.1-8b",
    "requests_per_day": 3e5,
    "input_tokens": 600,
    "output_tokens": 150,
}
HOUR = "2026-11-{day:02d} {hour:02d}:00,{value}"


@pytest.fixture
def w(db):
    return builders.world()


@pytest.fixture
def service(w):
    return builders.draft(w, kind="online_inference", workload=SERVICE, latency_class="chat")


def hours(peak):
    """A week whose hour at noon is `peak` times as busy as the others."""
    rows = [
        HOUR.format(day=2 + day, hour=hour, value=peak if hour == 12 else 1)
        for day in range(7)
        for hour in range(24)
    ]
    return ("time,value\n" + "\n".join(rows)).encode()


def assumed(request):
    request.refresh_from_db()
    return {
        k: (row["value"], row["origin"]) for k, row in request.current.workload["assumed"].items()
    }


def test_a_default_is_not_the_person_s_word(w, service):
    kept = service.current.workload
    assert {k: v for k, v in kept.items() if k != "assumed"} == SERVICE
    assert assumed(service)["peak_factor"] == (3.0, DEFAULT)
    assert study_request(service.current).workload["peak_factor"] == 3.0

    facts = dict(revision_facts(service.current))
    assert facts["Peak over mean"] == "3 (usual value, not told)"
    assert "not told" not in facts["Input tokens per request"]
    with translation.override("zh-hans"):
        assert "未填写" in dict(revision_facts(service.current))["峰均比"]


def test_a_peak_from_the_hours_follows_the_hours_and_leaves_with_them(w, service):
    def load(peak):
        set_load_series(
            request_id=service.pk, content=hours(peak), name="a.csv", zone="UTC", by=w.requester
        )

    load(12)  # above the default of 3, which nobody told
    assert assumed(service)["peak_factor"] == (pytest.approx(12 * 24 / 35, abs=0.01), DERIVED)
    assert "from the hours of load" in dict(revision_facts(service.current))["Peak over mean"]
    load(2)
    assert assumed(service)["peak_factor"][0] == pytest.approx(2 * 24 / 25, abs=0.01)
    remove_load_series(request_id=service.pk, by=w.requester)
    assert assumed(service)["peak_factor"] == (3.0, DEFAULT)


def test_the_form_shows_a_default_as_a_hint_and_sends_nothing(w, service, client):
    client.force_login(w.requester)
    fields = {
        "team": w.team.pk, "title": "Chat", "need_by": (today() + timedelta(days=60)).isoformat(),
        "model": "llama-3.1-8b", "requests_per_day": "300k", "input_tokens": "600", "output_tokens": "150",
        "latency_class": "chat",
    }  # fmt: skip
    page = client.get(reverse("request-create", args=["online_inference"])).content.decode()
    assert 'placeholder="usual: 3"' in page
    assert 'value="3.0"' not in page
    client.post(reverse("request-create", args=["online_inference"]), fields)
    made = CapacityRequest.objects.order_by("-pk")[0]
    assert set(assumed(made)) == {"peak_factor", "weight_precision", "growth_per_month"}
    client.post(
        reverse("request-edit", args=[made.pk]),
        {**fields, "version": made.version, "peak_factor": "3"},
    )
    assert "peak_factor" not in assumed(made)
    assert made.current.workload["peak_factor"] == 3.0


def test_the_api_tells_it_takes_it_back_and_compares_by_value(w, service, client):
    client.force_login(w.requester)
    address = reverse("api-request", args=[service.pk])
    told = client.get(address).json()["current"]["workload"]
    assert told["assumed"]["peak_factor"] == {"value": 3.0, "origin": DEFAULT}
    body = {"workload": {**told, "requests_per_day": 4e5}, "version": service.version}
    assert client.patch(address, body, "application/json").status_code == 200
    assert assumed(service)["peak_factor"] == (3.0, DEFAULT)

    before = service.current
    same = requests.update_draft(
        request_id=service.pk,
        by=w.requester,
        workload={**SERVICE, "requests_per_day": 4e5, "peak_factor": 3},
    )
    assert differences(before, same.current) == []
