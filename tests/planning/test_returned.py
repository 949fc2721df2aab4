"""What an approver sees of others who ask for the same budget, and what comes back to the requester."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.urls import reverse

from core.organisation import organisation, quarter_at
from planning.selectors.spread import effects
from planning.services import approvals
from planning.waiting import waiting
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def returned(w):
    found = builders.in_review(w)
    step = found.current.steps.get()
    approvals.decide(
        step_id=step.pk, decision="return", by=w.lead, seen_hash=step.content_hash, reason="Fewer"
    )
    found.refresh_from_db()
    return found


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_request_that_came_back_waits_for_its_requester_on_home(w, client, language):
    found = returned(w)
    assert [row.title for row in waiting(w.requester) if row.request] == [str(found)]
    assert not [row for row in waiting(w.lead) if row.request]
    w.requester.language = language
    w.requester.save()
    client.force_login(w.requester)
    page = client.get(reverse("home")).content.decode()
    heading, what = {
        "en": ("Waiting for you", "Returned to you"), "zh-hans": ("等您处理", "已退回给您"),
    }[language]  # fmt: skip
    assert heading in page
    assert what in page


def test_requests_on_one_budget_are_told_of_each_other(w, client):
    builders.fund(w, "1500")
    one, other = builders.in_review(w, "1000"), builders.in_review(w, "900")
    w.lead.language = "en"
    w.lead.save()
    client.force_login(w.lead)
    page = client.get(reverse("approval-list")).content.decode()
    assert "Other requests ask for 900.00 CNY of this budget." in page
    assert "Other requests ask for 1,000.00 CNY of this budget." in page
    assert "Beside this one, 500.00 CNY would be left for them" in page
    assert "Other requests" in client.get(one.get_absolute_url()).content.decode()
    assert other.pk != one.pk


def test_one_request_alone_is_told_of_nobody(w):
    builders.fund(w, "1500")
    plan = builders.in_review(w, "1000").current.plan
    (effect,) = effects([plan], quarter_at(org=organisation())).values()
    assert (effect.others, effect.own) == (Decimal(0), Decimal(1000))
