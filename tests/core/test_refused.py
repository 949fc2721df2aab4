"""A form that is refused on another page: it stands there again as it was filled in, once."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse

from core.refused import AGE, MOST
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


@pytest.fixture
def lead(w, client):
    w.lead.language = "en"
    w.lead.save()
    client.force_login(w.lead)
    return client


@pytest.fixture
def step(w):
    return builders.in_review(w).current.steps.get()


def decide(client, step, page=None, **values):
    headers = {"Referer": f"http://testserver{page}"} if page else {}
    data = {"decision": "approve", "seen_hash": step.content_hash, "reason": "Fewer cards do"}
    return client.post(
        reverse("approval-decide", args=[step.pk]), {**data, **values}, headers=headers
    )


def kept_on(page):
    found = re.search(
        r'<script id="refused" type="application/json">(.*?)</script>', page.content.decode()
    )
    return json.loads(found[1]) if found else None


PAST = {"cap_amount": "-5", "cap_currency": "CNY", "order_by": "2020-11-01"}


def test_a_refused_decision_stays_where_it_was_typed_with_every_field_marked(lead, step):
    inbox = reverse("approval-list")
    answer = decide(lead, step, inbox, **PAST)
    assert answer["Location"] == inbox
    page = lead.get(inbox)
    kept = kept_on(page)
    assert kept["action"] == reverse("approval-decide", args=[step.pk])
    assert kept["values"]["reason"] == ["Fewer cards do"]
    assert kept["values"]["order_by"] == ["2020-11-01"]
    assert set(kept["errors"]) == {"cap_amount", "order_by"}
    assert "1 Nov 2020 is before today" in kept["errors"]["order_by"][0]
    assert "-5 CNY is not above 0" in page.content.decode()
    assert kept_on(lead.get(inbox)) is None  # once


@pytest.mark.parametrize("decision", ["return", "reject"])
def test_a_return_without_a_reason_marks_the_reason(lead, step, decision):
    answer = decide(lead, step, decision=decision, reason=" ")
    page = lead.get(answer["Location"])
    assert set(kept_on(page)["errors"]) == {"reason"}
    assert "data-at-field" in page.content.decode()


def test_another_page_in_between_takes_nothing_away(lead, step):
    answer = decide(lead, step, **PAST)
    assert kept_on(lead.get(reverse("home"))) is None
    assert kept_on(lead.get(answer["Location"])) is not None


def test_what_is_taken_what_is_old_and_what_is_large_is_not_kept(lead, w, step, monkeypatch):
    answer = decide(lead, step, reason="x" * (MOST + 1))
    assert kept_on(lead.get(answer["Location"])) is None
    answer = decide(lead, step, **PAST)
    monkeypatch.setattr("core.refused.time.time", lambda: 1e10 + AGE)
    assert kept_on(lead.get(answer["Location"])) is None
    monkeypatch.undo()
    builders.fund(w, "100000")
    answer = decide(lead, step)
    assert kept_on(lead.get(answer["Location"])) is None


def test_tokens_and_passwords_are_never_kept(lead, step):
    answer = decide(
        lead, step, once="o", csrfmiddlewaretoken="c", new_password="p", api_token="t", **PAST
    )
    values = kept_on(lead.get(answer["Location"]))["values"]
    assert not {"once", "csrfmiddlewaretoken", "new_password", "api_token"} & set(values)


def test_an_error_page_leads_back_to_the_form_as_it_was(lead, w, step):
    decide(lead, step)
    page = step.revision.request.get_absolute_url()
    assert decide(lead, step, page, reason="Once more").status_code == 409
    assert kept_on(lead.get(page))["values"]["reason"] == ["Once more"]
