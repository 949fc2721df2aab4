"""A session that ends while a page is open: the way back, and what was typed."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db


def test_a_form_sent_without_a_session_leads_back_to_its_page(client):
    sent = client.post(
        reverse("preferences"), {"name": "x"}, headers={"Referer": "http://testserver/audit/?q=a"}
    )
    assert sent["Location"] == f"{reverse('account_login')}?next=/audit/%3Fq%3Da"
    assert "You were signed out" in client.get(sent["Location"]).content.decode()


@pytest.mark.parametrize("page", ["https://example.com/requests/", "//example.com", "nonsense", ""])
def test_only_a_page_of_ours_is_led_back_to(client, page):
    sent = client.post(reverse("preferences"), {"name": "x"}, headers={"Referer": page})
    assert sent["Location"] == f"{reverse('account_login')}?next=/"


def test_a_page_asked_for_without_a_session_is_led_back_to_as_before(client):
    assert client.get("/audit/?q=a")["Location"].endswith("?next=/audit/%3Fq%3Da")


def test_a_fragment_without_a_session_is_refused_and_its_page_stays(client):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/requests/new/serving/"}
    for method in (client.get, client.post):
        refused = method(reverse("job-list"), headers=headers)
        assert refused.status_code == 401
        assert (
            f"{reverse('account_login')}?next=%2Frequests%2Fnew%2Fserving%2F"
            in refused.content.decode()
        )
        assert "<html" not in refused.content.decode()


def test_a_form_that_expired_leads_back_to_its_page(organisation, make_user):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user(name="Ada"))
    refused = strict.post(
        reverse("preferences"), {"name": "x"}, headers={"Referer": "http://testserver/preferences/"}
    )
    page = refused.content.decode()
    assert refused.status_code == 403
    assert "data-unsent" in page
    assert 'href="/preferences/"' in page
