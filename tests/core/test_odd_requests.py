"""Bodies and numbers that no honest client sends: a clear refusal, never a defect."""

import pytest
from django.db import OperationalError
from django.urls import reverse

from core.whole import whole, wholes

pytestmark = pytest.mark.django_db
DEEP = b'{"a":' * 3000 + b"1" + b"}" * 3000


@pytest.fixture
def api(client, organisation, make_user):
    client.force_login(make_user(name="Ada Chen"))
    return client


@pytest.mark.parametrize(
    "body", [DEEP, b"[" * 100_000, b'{"a": "\\ud800"}', b'{"a": "\\u0000"}', b"{"]
)
def test_json_that_cannot_be_kept_is_refused(api, body):
    answer = api.post(reverse("api-requests"), body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["detail"]


@pytest.mark.parametrize("raw", ["", "-1", "1.0", "²", "٣", "9" * 19, "9" * 5000, " 1"])
def test_what_is_no_whole_number_is_none(raw):
    assert whole(raw) is None
    assert wholes([raw, "7"]) == [7]


def test_the_description_of_the_api_is_for_those_who_signed_in(client, api):
    assert api.get(reverse("api-schema")).status_code == 200
    api.logout()
    assert client.get(reverse("api-schema")).status_code in {401, 403}


@pytest.mark.parametrize("words", ["database is locked", "deadlock detected"])
def test_a_lock_held_too_long_is_told_as_such(api, monkeypatch, words):
    def locked(*args, **kwargs):
        raise OperationalError(words)

    monkeypatch.setattr("core.views.issue_token", locked)
    monkeypatch.setattr("core.api.issue_token", locked)
    page = api.post(reverse("token-issue"))
    call = api.post(reverse("api-token"))
    assert (page.status_code, call.status_code) == (503, 503)
    assert page["Retry-After"] == call["Retry-After"]
    assert "Nothing was saved" in page.content.decode()
    assert call.json()["code"] == "busy"


def test_another_fault_of_the_database_stays_a_defect(api, monkeypatch):
    def broken(*args, **kwargs):
        raise OperationalError("no such table")

    monkeypatch.setattr("core.views.issue_token", broken)
    api.raise_request_exception = False
    assert api.post(reverse("token-issue")).status_code == 500
