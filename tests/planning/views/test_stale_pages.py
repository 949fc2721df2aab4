"""The second action from a page that was opened before a change: told what changed, in words, and nothing is done."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.organisation import today
from planning import supply as supplies
from planning.capacity import OWNED, Supply
from planning.models import ApprovalPolicy, BudgetChange
from planning.models.probabilities import StagePrior
from planning.services import allocations, budget_changes
from planning.services.policy_edit import edit_policy
from planning.services.policy_presets import load_policy
from planning.services.probabilities import set_prior
from planning.services.sites import save_site
from tests.planning import builders

pytestmark = pytest.mark.django_db
SLUG = "h100-sxm-80gb"
SITE = {"name": "Hall 1", "power_kw": 100.0, "cooling_kw": 100.0, "racks": 10, "kw_per_rack": 10.0}


@pytest.fixture
def w(monkeypatch):
    monkeypatch.setattr(supplies, "_sources", [lambda on: [Supply(SLUG, 20, OWNED, on)]])
    monkeypatch.setattr(supplies, "_leads", [lambda slug: 60])
    return builders.world()


def day(n):
    return today() + timedelta(days=n)


def api(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


def booking(w):
    request = builders.approved(w)
    return allocations.book(
        request_id=request.pk, cards=8, first_day=day(0), last_day=day(20), by=w.operations
    )


def test_a_booking_that_was_moved_meanwhile_shows_the_days_then_and_now(w, client):
    row = booking(w)
    allocations.move_allocation(allocation_id=row.pk, cards=6, by=w.procurement)
    allocations.move_allocation(allocation_id=row.pk, cards=4, last_day=day(10), by=w.procurement)
    client.force_login(w.operations)
    sent = {"version": 1, "cards": 7, "first_day": day(0), "last_day": day(30)}
    answer = client.post(reverse("allocation-move", args=[row.pk]), sent)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "What changed since you opened it" in text
    for said in ("Accelerators", "<del>8</del>", "<ins>4</ins>", "Last day", day(10).isoformat(),
                 "Paul Procurement", "What you entered, not saved", day(30).isoformat()):  # fmt: skip
        assert said in text, said
    row.refresh_from_db()
    assert (row.cards, row.last_day) == (4, day(10))

    body = api(w.operations).post(
        f"/api/v1/allocations/{row.pk}/release/", {"version": 2}, format="json"
    )
    assert body.status_code == 409
    assert body.json()["changes"] == {
        "version": ["2", "3"], "cards": ["6", "4"], "last_day": [day(20).isoformat(), day(10).isoformat()],
    }  # fmt: skip


def test_a_booking_that_was_released_meanwhile_is_said_with_its_state(w, client):
    row = booking(w)
    allocations.release_allocation(allocation_id=row.pk, by=w.lead)
    client.force_login(w.operations)
    answer = client.post(reverse("allocation-release", args=[row.pk]), {"version": 1})
    text = answer.content.decode()
    assert answer.status_code == 409
    assert "<del>Booked</del>" in text
    assert "<ins>Released</ins>" in text


@pytest.mark.parametrize("action", ["confirm", "decline"])
def test_a_budget_change_that_a_colleague_decided_is_said_with_who_and_what(w, client, action):
    ApprovalPolicy.objects.update(two_person_budget=True)
    budget = builders.fund(w, "1000")
    change = budget_changes.allot(budget_id=budget.pk, amount=Decimal(50), reason="r", by=w.finance)
    assert change.status == "proposed"
    client.force_login(w.finance2)
    page = client.get(budget.get_absolute_url()).content.decode()
    assert page.count('name="version" value="1"') == 2
    budget_changes.decline_change(change_id=change.pk, reason="Not this year", by=w.cto)
    sent = {"version": 1, "reason": "My own reason"}
    answer = client.post(reverse(f"change-{action}", args=[change.pk]), sent)
    text = answer.content.decode()
    assert answer.status_code == 409
    for said in (
        "<del>Waiting for a second person</del>",
        "<ins>Declined</ins>",
        "Cleo Chief",
        "Not this year",
        "My own reason",
    ):
        assert said in text, said
    body = api(w.finance2).post(
        f"/api/v1/budget-changes/{change.pk}/{action}/", sent, format="json"
    )
    assert (body.status_code, body.json()["code"]) == (409, "stale")
    assert body.json()["changes"]["status"] == ["proposed", "declined"]
    assert BudgetChange.objects.get().decided_by == w.cto


def test_a_site_keeps_what_was_typed_beside_what_changed(w, client):
    site = save_site(by=w.operations, **SITE)
    save_site(by=w.operations, site_id=site.pk, version=1, name="Hall 1", racks=12)
    client.force_login(w.operations)
    page = reverse("site-detail", args=[site.pk])
    sent = {**SITE, "power_kw": 250, "version": 1, "pue": "", "units_per_rack": 42, "used_power_kw": 0,
            "used_cooling_kw": 0, "used_racks": 0}  # fmt: skip
    answer = client.post(page, sent)
    text = answer.content.decode()
    assert answer.status_code == 409, text
    for said in (
        "<del>10</del>",
        "<ins>12</ins>",
        'value="250"',
        'name="version" value="2"',
        "Nothing was saved",
    ):
        assert said in text, said
    site.refresh_from_db()
    assert (site.power_kw, site.racks) == (100, 12)
    # saved again, now knowing
    assert client.post(page, {**sent, "version": 2}).status_code == 302


def test_rules_that_another_administrator_changed_are_shown_with_what_differs(w, client):
    seen = ApprovalPolicy.objects.get(active=True)
    edit_policy(
        rules=[{"group": 1, "authority": "team_lead"}], note="Leaner", by=w.admin,
        options={"order_tolerance": Decimal("0.01")},
    )  # fmt: skip
    client.force_login(w.admin)
    form = {"version": seen.pk, "note": "Mine", "rules-TOTAL_FORMS": 1, "rules-INITIAL_FORMS": 0,
            "rules-0-group": 1, "rules-0-authority": "team_lead", "rules-0-quorum": 1,
            "reservation_days": 30, "actual_tolerance": "0.02", "order_tolerance": "0.05", "rate_days": 35,
            "escalate_after_days": 3, "carry_over": "ask", "use_days": 28, "use_first_below": "0.3"}  # fmt: skip
    answer = client.post(reverse("policy-edit"), form)
    text = answer.content.decode()
    assert answer.status_code == 409, text
    assert "<del>0.0500</del>" in text
    assert "<ins>0.0100</ins>" in text
    assert 'value="Mine"' in text
    answer = client.post(reverse("policy-list"), {"preset": "small_team", "version": seen.pk})
    assert answer.status_code == 409
    assert "<ins>Own rules</ins>" in answer.content.decode()
    assert ApprovalPolicy.objects.get(active=True).preset == "custom"
    load_policy(preset="small_team", by=w.admin)


def test_an_assumption_that_finance_changed_meanwhile_is_not_overwritten(w, client):
    client.force_login(w.finance)
    page = client.get(reverse("probabilities")).content.decode()
    assert page.count('name="version" value="0"') == 3
    set_prior(stage="submitted", share=Decimal("0.6"), weight=20, by=w.finance2, version=0)
    sent = {"stage": "submitted", "percent": "40", "weight": 10, "version": 0}
    answer = client.post(reverse("probabilities"), sent)
    text = answer.content.decode()
    assert answer.status_code == 409
    for said in ("<del>0.500</del>", "<ins>0.600</ins>", "Fay Finance"):
        assert said in text, said
    assert StagePrior.objects.get().share == Decimal("0.6")
    again = {"stage": "submitted", "share": "0.4", "weight": 10, "version": 0}
    body = api(w.finance).post("/api/v1/probabilities/", again, format="json")
    assert body.status_code == 409
    assert body.json()["changes"]["weight"] == ["10", "20"]
    shown = api(w.finance).get("/api/v1/probabilities/").json()
    assert next(row["version"] for row in shown if row["stage"] == "submitted") == 1
