"""API of studies: file, start, poll, choose; other teams see nothing."""

from __future__ import annotations

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from planning.models import Study
from planning.services import studies
from planning.tasks import render_brief, run_study
from tests.planning import builders

TERMS = {"interruptible": True, "checkpoint_seconds": 1800, "duration_days": 14}


@pytest.fixture
def w(db):
    return builders.world()


@pytest.fixture
def api(w):
    def as_person(person):
        client = APIClient()
        client.force_authenticate(person)
        return client

    return as_person


@pytest.fixture
def ready(w):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    run_study(str(study.job.pk))
    return Study.objects.get(pk=study.pk)


def test_start_poll_choose(w, api):
    request = builders.draft(w, **TERMS)
    client = api(w.requester)

    started = client.post(reverse("api-request-studies", args=[request.pk]))
    assert started.status_code == 201
    pk = started.json()["id"]
    polled = client.get(reverse("api-study", args=[pk])).json()
    assert (polled["status"], polled["result"], polled["percent"]) == ("running", None, 0)

    run_study(str(Study.objects.get(pk=pk).job.pk))

    polled = client.get(reverse("api-study", args=[pk])).json()
    assert polled["status"] == "ready"
    result = polled["result"]
    assert result["schema"] == "headroom/study-1"
    assert all(isinstance(row["reason"], str) for row in result["exclusions"])
    key = result["recommended"][0]["key"]
    chosen = client.post(reverse("api-study-choose", args=[pk]), {"plan_key": key}, format="json")
    assert chosen.status_code == 200
    assert request.current.plan.plan_key == key
    listed = client.get(reverse("api-request-studies", args=[request.pk])).json()
    assert [row["id"] for row in listed["results"]] == [pk]
    assert "result" not in listed["results"][0]


def test_the_same_key_starts_it_once(w, api):
    request = builders.draft(w, **TERMS)
    client = api(w.requester)
    address = reverse("api-request-studies", args=[request.pk])
    first = client.post(address, HTTP_IDEMPOTENCY_KEY="one")
    second = client.post(address, HTTP_IDEMPOTENCY_KEY="one")
    assert first.json()["id"] == second.json()["id"]
    assert Study.objects.count() == 1


def test_messages_are_in_the_callers_language(w, api, ready):
    client = api(w.requester)
    result = client.get(
        reverse("api-study", args=[ready.pk]), HTTP_ACCEPT_LANGUAGE="zh-hans"
    ).json()["result"]
    why = {row["why"] for row in result["recommended"]}
    assert "Nothing that meets the need costs less" not in why


def test_what_if_and_its_limits(w, api, ready):
    client = api(w.requester)
    address = reverse("api-study-what-if", args=[ready.pk])

    same = client.post(address, {}, format="json").json()
    twice = client.post(address, {"amount": 2.0}, format="json").json()
    half = client.post(address, {"price": 0.5}, format="json").json()

    own = next(p for p in ready.result["plans"] if "cheapest" in p["roles"])
    assert float(same["cheapest"]["cost"]) == float(own["cost"])
    assert float(twice["cheapest"]["cost"]) > float(same["cheapest"]["cost"])
    assert float(half["cheapest"]["cost"]) == pytest.approx(
        float(same["cheapest"]["cost"]) / 2, abs=0.01
    )
    refused = client.post(address, {"amount": 100}, format="json")
    assert refused.status_code == 400
    wrong = client.post(address, {"duration_days": 100_000}, format="json")
    assert wrong.status_code == 422
    assert wrong.json()["field"] == "duration_days"
    assert Study.objects.count() == 1


def test_cancel(w, api):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    answer = api(w.requester).post(reverse("api-study-cancel", args=[study.pk]))
    assert answer.json()["status"] == "failed"
    assert answer.json()["error"] == "It was cancelled"
    again = api(w.requester).post(reverse("api-study-cancel", args=[study.pk]))
    assert again.status_code == 409


def test_publish_draws_the_brief_and_is_not_for_the_requester(w, api, ready):
    address = reverse("api-study-publish", args=[ready.pk])
    assert api(w.requester).post(address).status_code == 403

    assert api(w.lead).post(address).json()["status"] == "published"

    listed = api(w.requester).get(reverse("api-study-briefs", args=[ready.pk])).json()
    assert {row["language"] for row in listed} == {"en", "zh-hans"}
    for brief in ready.briefs.all():
        render_brief(str(brief.job.pk))
    pdf = api(w.requester).get(reverse("api-study-brief-file", args=[ready.pk, "en"]))
    assert b"".join(pdf.streaming_content).startswith(b"%PDF")
    assert api(w.lead).post(address).status_code == 409


def test_compare_is_of_one_request_only(w, api, ready):
    client = api(w.requester)
    assert (
        client.get(reverse("api-study-compare", args=[ready.pk, ready.pk])).json()["inputs"] == []
    )
    other = builders.draft(w, **TERMS, title="Another")
    second = studies.request_study(revision_id=other.current.pk, by=w.requester)
    run_study(str(second.job.pk))
    assert client.get(reverse("api-study-compare", args=[ready.pk, second.pk])).status_code == 404


def test_other_teams_see_nothing(w, api, ready):
    client = api(w.outsider)
    for name in ("api-study", "api-study-briefs"):
        assert client.get(reverse(name, args=[ready.pk])).status_code == 404
    for name in ("choose", "cancel", "publish", "what-if"):
        assert (
            client.post(
                reverse(f"api-study-{name}", args=[ready.pk]), {}, format="json"
            ).status_code
            == 404
        )
    assert client.get(reverse("api-study-compare", args=[ready.pk, ready.pk])).status_code == 404
    assert client.get(reverse("api-study-brief-file", args=[ready.pk, "en"])).status_code == 404
    assert (
        client.post(reverse("api-request-studies", args=[ready.revision.request_id])).status_code
        == 404
    )
