"""The hourly load of a request: read in by page and API by whoever may edit the draft, kept when it is edited."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from planning.services.load_series import set_load_series
from planning.services.studies import study_request
from tests.planning import builders

SERVICE = {
    "model": "llama-3.1-8b", "requests_per_day": 3e5, "peak_factor": 4, "input_tokens": 600, "output_tokens": 150,
}  # fmt: skip


def csv(hours=168, bad="", mark=b""):
    start = datetime(2026, 11, 2)
    rows = [
        f"{start + timedelta(hours=i):%Y-%m-%d %H:%M},{100 + i % 24},calls/h" for i in range(hours)
    ]
    if bad:
        rows[8] = bad
    return mark + "\n".join(["time,value,unit", *rows]).encode()


def upload(content, name="load.csv"):
    return SimpleUploadedFile(name, content, "text/csv")


@pytest.fixture
def w(db):
    return builders.world()


@pytest.fixture
def service(w):
    return builders.draft(w, kind="online_inference", workload=SERVICE, latency_class="chat")


def test_a_file_is_read_in_by_page_shown_kept_by_an_edit_and_taken_out(w, service, client):
    client.force_login(w.requester)
    address = reverse("load-series", args=[service.pk])
    assert "No file yet" in client.get(address).content.decode()
    sent = {
        "file": upload(csv(mark=b"\xef\xbb\xbf")),
        "zone": "Asia/Shanghai",
        "version": service.version,
    }
    assert client.post(address, sent).status_code == 302

    service.refresh_from_db()
    assert service.current.workload["load_series"]["source"] == "load.csv"
    page = client.get(address).content.decode()
    assert "calls/h" in page
    assert "<svg" in page or "chart" in page
    detail = client.get(service.get_absolute_url()).content.decode()
    assert "168 hours from" in detail
    assert address in detail

    form = client.get(reverse("request-edit", args=[service.pk])).context["form"]
    assert "load_series" not in form.fields
    typed = {name: form[name].value() or "" for name in form.fields}
    typed |= {"title": "Other title", "need_by": str(typed["need_by"]), "version": service.version}
    edited = client.post(reverse("request-edit", args=[service.pk]), typed)
    assert edited.status_code == 302, edited.context["form"].errors
    service.refresh_from_db()
    assert service.title == "Other title"
    assert len(service.current.workload["load_series"]["values"]) == 168
    assert study_request(service.current).workload["load_series"]["zone"] == "Asia/Shanghai"

    assert client.post(address, {"remove": "1", "version": service.version}).status_code == 302
    service.refresh_from_db()
    assert "load_series" not in service.current.workload


@pytest.mark.parametrize(
    ("sent", "field", "told"),
    [
        ({"file": csv(bad="2026-11-02 08:00,-1,calls/h"), "zone": "UTC"}, "file", "Row 10: -1.0 is below 0"),
        ({"file": csv(bad="2026-11-02 08:00,1,tokens/h"), "zone": "UTC"}, "file", "Row 10 is in tokens/h"),
        ({"file": csv(), "zone": "Mars"}, "zone", "not a time zone"),
        ({"file": b"time,value\n\xce\xc4,1\n", "zone": "UTC"}, "encoding", "not UTF-8"),
        ({"zone": "UTC"}, "file", "required"),
    ],
)  # fmt: skip
def test_what_is_wrong_stands_at_its_field_and_nothing_is_stored(
    w, service, client, sent, field, told
):
    client.force_login(w.requester)
    data = {**sent, **({"file": upload(sent["file"])} if "file" in sent else {})}
    answer = client.post(reverse("load-series", args=[service.pk]), data)

    assert answer.status_code == 422
    assert told in str(answer.context["form"].errors[field])
    service.refresh_from_db()
    assert "load_series" not in service.current.workload


def test_a_peak_below_the_file_s_busiest_hour_is_told_at_the_file(w, service, client):
    service.current.__class__.objects.filter(pk=service.current.pk).update(
        workload={**SERVICE, "peak_factor": 1.0}
    )
    client.force_login(w.requester)
    answer = client.post(
        reverse("load-series", args=[service.pk]), {"file": upload(csv()), "zone": "UTC"}
    )
    assert answer.status_code == 422
    assert "peak over mean says 1" in str(answer.context["form"].errors["file"])


def test_readers_may_look_others_not_and_a_run_has_no_such_page(w, service, client):
    address = reverse("load-series", args=[service.pk])
    client.force_login(w.auditor)
    assert client.get(address).status_code == 200
    assert client.post(address, {"file": upload(csv()), "zone": "UTC"}).status_code == 403
    client.force_login(w.outsider)
    assert client.get(address).status_code == 404
    client.force_login(w.requester)
    assert client.get(reverse("load-series", args=[builders.draft(w).pk])).status_code == 404


def test_the_api_reads_in_shows_and_takes_out(w, service, client):
    client.force_login(w.requester)
    address = reverse("api-load-series", args=[service.pk])
    assert client.get(address).status_code == 204
    set_load_series(request_id=service.pk, content=csv(), name="a.csv", zone="UTC", by=w.requester)
    assert len(client.get(address).json()["values"]) == 168

    from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

    def put(content, **data):
        body = encode_multipart(BOUNDARY, {"file": upload(content), **data})
        return client.put(address, body, MULTIPART_CONTENT)

    answer = put(csv(200), zone="Asia/Shanghai")
    assert (answer.status_code, len(answer.json()["values"])) == (200, 200)
    refused = put(csv(100), zone="UTC")
    assert refused.status_code == 422
    assert "100 hours" in refused.content.decode()
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 204

    client.force_login(w.outsider)
    assert put(csv(), zone="UTC").status_code == 404
    assert client.get(address).status_code == 404
