"""The load over week and year on the form, on the page and by API."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from rest_framework.test import APIClient

from core.organisation import today
from planning.models import CapacityRequest
from planning.services import imports, requests
from tests.planning import builders

pytestmark = pytest.mark.django_db
DAY = [1.0] * 9 + [5.0] * 8 + [1.0] * 7
TABLE = "hour,load\n" + "\n".join(f"{hour},{load}" for hour, load in enumerate(DAY))


@pytest.fixture
def w():
    return builders.world()


def typed(w, **fields):
    return {
        "team": w.team.pk, "title": "Chat", "model": "llama-3.1-8b", "requests_per_day": "1M",
        "input_tokens": 500, "output_tokens": 100, "weight_precision": "fp16", "latency_class": "chat",
        "need_by": (today() + timedelta(days=60)).isoformat(), "peak_factor": "", **fields,
    }  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_numbers_and_files_make_the_same_request(w, client, language):
    w.requester.language = language
    w.requester.save()
    client.force_login(w.requester)
    address = reverse("request-create", args=["online_inference"])
    page = client.get(address).content.decode()
    for part in (
        'data-bars-columns="24"',
        'data-bars-columns="12"',
        "multipart/form-data",
        "bars.js",
    ):
        assert part in page
    client.post(address, typed(w, load_week=" ".join(map(str, DAY))))
    client.post(address, typed(w, load_file=SimpleUploadedFile("load.csv", TABLE.encode())))
    first, second = CapacityRequest.objects.order_by("pk")
    assert first.current.workload == second.current.workload
    assert first.current.workload["load_series"]["values"] == DAY * 7
    peak = first.current.workload["assumed"]["peak_factor"]
    assert peak == {"value": pytest.approx(5 * 24 / 56, abs=0.01), "origin": "derived"}
    shown = client.get(first.get_absolute_url()).content.decode()
    assert ("Load over the week" if language == "en" else "一周内的负载") in shown
    again = client.get(reverse("request-edit", args=[first.pk])).content.decode()
    assert "1 1 1 1 1 1 1 1 1 5 5" in again


def test_a_wrong_file_names_the_row_and_keeps_what_was_read(w, client):
    client.force_login(w.requester)
    file = SimpleUploadedFile("load.csv", TABLE.replace("9,5.0", "9,lots").encode())
    answer = client.post(
        reverse("request-create", args=["online_inference"]), typed(w, load_file=file)
    )
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "row 11: lots" in page
    assert "9,lots" in page
    assert not CapacityRequest.objects.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x81\x81\x81\xff", b"x" * 30_000])
def test_a_file_that_is_no_table_is_refused_at_its_field(w, client, content):
    client.force_login(w.requester)
    answer = client.post(
        reverse("request-create", args=["online_inference"]),
        typed(w, load_file=SimpleUploadedFile("load.csv", content)),
    )
    assert answer.status_code == 422


def test_the_api_and_a_table_of_requests_take_it_and_the_study_uses_it(w):
    api = APIClient()
    api.force_authenticate(w.requester)
    body = {
        "team": w.team.slug, "kind": "online_inference", "title": "Chat",
        "need_by": (today() + timedelta(days=60)).isoformat(), "latency_class": "chat",
        "workload": {"model": "llama-3.1-8b", "requests_per_day": 1e6, "input_tokens": 500, "output_tokens": 100,
                     "load_series": TABLE, "load_months": [1] * 11 + [2]},
    }  # fmt: skip
    made = api.post("/api/v1/requests/", body, format="json")
    assert made.status_code == 201, made.content
    assert made.json()["current"]["workload"]["load_series"]["values"] == DAY * 7
    body["workload"]["load_series"] = TABLE.replace("9,5.0", "25,5.0")
    refused = api.post("/api/v1/requests/", body, format="json")
    assert refused.status_code == 422
    assert "row 11" in refused.content.decode()
    assert "load_months" in imports.WORKLOAD
    found = CapacityRequest.objects.get()
    requests.update_draft(request_id=found.pk, by=w.requester, title="Chat two")
    assert found.current.workload["load_series"]["values"] == DAY * 7


def test_measured_hours_stay_when_the_form_is_saved_and_a_week_can_be_taken_away(w, client):
    client.force_login(w.requester)
    client.post(
        reverse("request-create", args=["online_inference"]),
        typed(w, load_week=" ".join(map(str, DAY))),
    )
    found = CapacityRequest.objects.get()
    edit = reverse("request-edit", args=[found.pk])
    client.post(edit, {**typed(w), "version": found.version})
    assert "load_series" not in found.current.workload
    measured = {"start": "2026-11-02T00:00+00:00", "values": DAY * 8, "zone": "UTC", "unit": "requests",
                "source": "a.csv"}  # fmt: skip
    workload = {**found.current.workload, "load_series": measured, "peak_factor": 4}
    requests.update_draft(request_id=found.pk, by=w.requester, workload=workload)
    found.refresh_from_db()
    assert 'name="load_week"' not in client.get(edit).content.decode()
    client.post(edit, {**typed(w, peak_factor=4), "version": found.version})
    assert found.current.workload["load_series"]["source"] == "a.csv"
