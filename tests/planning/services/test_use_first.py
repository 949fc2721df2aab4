"""A team that uses little of what it has is asked to use that first, as the rules say; unknown use is never little."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError
from core.models import AppendOnlyError, User
from core.organisation import today
from planning.models import (
    Allocation,
    ApprovalPolicy,
    ApprovalRule,
    CapacityPool,
    PoolDay,
    RevisionUse,
)
from planning.selectors.approvals import inbox
from planning.selectors.team_use import team_use
from planning.services import bulk, requests
from planning.services.policy_edit import edit_policy
from planning.services.policy_presets import load_policy
from tests.planning import builders

pytestmark = pytest.mark.django_db
WHY = "They are A10 cards and do not hold the model."


@pytest.fixture
def w():
    made = builders.world("company")
    builders.fund(made, "1000000")
    return made


def used(w, share: float, *, cards: int = 10, days: int = 28, team=None, **fields: object) -> None:
    hours = 24.0 * cards
    empty = {f"{name}_{what}": 0.0 for name in ("sm", "tensor", "memory") for what in ("hours", "sum")}  # fmt: skip
    for back in range(1, days + 1):
        PoolDay.objects.create(
            **{
                "day": today() - timedelta(days=back), "team": team or w.team, "ownership": "owned",
                "accelerator_slug": "a10-24gb", "cards": cards, "hours": hours, "utilization_hours": hours,
                "utilization_sum": share * hours, "power_hours": 0.0, "energy_kwh": 0.0, **empty, **fields,
            }
        )  # fmt: skip


def use(w):
    return team_use(w.team.pk, ApprovalPolicy.objects.get(active=True), today())


def submit(w, request, **facts):
    return requests.submit_request(request_id=request.pk, by=w.requester, **facts)


def test_a_team_under_the_threshold_submits_only_with_a_reason_that_deciders_read(w):
    used(w, 0.299)
    request = builders.planned(w)
    with pytest.raises(InputError) as refused:
        submit(w, request)
    assert (refused.value.field, refused.value.limit) == ("use_reason", 0.3)
    for part in ("10 cards", "30%", str(today() - timedelta(days=28))):
        assert part in str(refused.value)
    request.refresh_from_db()
    assert (request.status, RevisionUse.objects.count()) == ("draft", 0)

    submit(w, request, use_reason=f"  {WHY} ")
    kept = request.current.team_use
    assert (kept.state, kept.low, kept.cards, kept.reason) == ("known", True, 10, WHY)
    assert kept.share == pytest.approx(0.299)


def test_at_the_threshold_nothing_is_asked_and_the_measurement_is_kept(w):
    used(w, 0.3)
    kept = submit(w, builders.planned(w)).current.team_use
    assert (kept.low, kept.reason) == (False, "")


@pytest.mark.parametrize("why", ["no telemetry", "few hours", "hours without use"])
def test_unknown_use_is_not_little_use_and_says_so(w, why, client):
    used(w, 0.0, days=6 if why == "few hours" else 28,
         **{"utilization_hours": 0.0, "utilization_sum": 0.0} if why == "hours without use" else {})  # fmt: skip
    if why == "no telemetry":
        PoolDay.objects.all().delete()
        booked(w)
    found = use(w)
    assert (found.state, found.share, found.low) == ("unknown", None, False)
    request = builders.planned(w)
    client.force_login(w.requester)
    page = client.get(request.get_absolute_url()).content.decode()
    assert "is not known" in page
    assert "busy 0" not in page
    assert submit(w, request).current.team_use.state == "unknown"


def booked(w) -> None:
    """Eight cards that run for the team."""
    load_policy(preset="small_team", by=None)
    request = builders.approved(w)
    Allocation.objects.create(
        pool=CapacityPool.objects.create(accelerator_slug="h100-sxm-80gb"), request=request,
        team=w.team, cards=8, first_day=today(), last_day=today() + timedelta(days=9),
        booked_by=w.procurement,
    )  # fmt: skip


def test_a_team_without_cards_or_with_clouds_by_the_hour_alone_is_asked_nothing(w):
    used(w, 0.01, ownership="cloud")
    used(w, 0.01, team=builders.TeamFactory())
    assert use(w).state == "none"
    submit(w, builders.planned(w))


def test_the_window_and_the_threshold_are_the_policys(w):
    used(w, 0.9, days=28)
    PoolDay.objects.filter(day__gte=today() - timedelta(days=7)).update(utilization_sum=0.0)
    assert use(w).share == pytest.approx(0.675)
    ApprovalPolicy.objects.filter(active=True).update(use_days=7)
    assert use(w).share == 0
    ApprovalPolicy.objects.filter(active=True).update(use_first_below=None)
    assert use(w) is None


def test_a_rule_adds_a_step_for_teams_with_little_use_alone(w):
    used(w, 0.1)
    policy = ApprovalPolicy.objects.get(active=True)
    ApprovalRule.objects.create(policy=policy, group=2, authority="finance", low_use_only=True)
    request = submit(w, builders.planned(w), use_reason=WHY)
    assert list(request.current.steps.values_list("authority", flat=True)) == [
        "team_lead",
        "finance",
    ]
    PoolDay.objects.all().delete()
    other = submit(w, builders.planned(w))
    assert other.current.steps.count() == 1


def test_the_step_follows_what_was_measured_at_submission_when_the_plan_comes_later(w):
    used(w, 0.1)
    policy = ApprovalPolicy.objects.get(active=True)
    ApprovalRule.objects.create(policy=policy, group=2, authority="finance", low_use_only=True)
    request = submit(w, builders.draft(w), use_reason=WHY)
    PoolDay.objects.update(utilization_sum=240.0)
    builders.choose(request, builders.study(request), by=w.procurement)
    assert request.current.steps.count() == 2
    assert request.current.team_use.share == pytest.approx(0.1)


def test_a_small_team_is_told_and_not_held_up():
    w = builders.world()
    used(w, 0.1)
    assert submit(w, builders.planned(w)).current.team_use.low


def test_no_side_door_submits_without_the_reason(w):
    used(w, 0.1)
    first, second = builders.planned(w), builders.planned(w)
    api = APIClient()
    api.force_authenticate(w.requester)
    address = f"/api/v1/requests/{first.pk}/submit/"
    refused = api.post(address, {"version": first.version}, format="json")
    assert refused.status_code == 422
    assert "use_reason" in str(refused.json())
    (outcome,) = bulk.step_many(action="submit", request_ids=[second.pk], by=w.requester)
    assert "use them first" in str(outcome.refused)

    told = api.post(address, {"version": first.version, "use_reason": WHY}, format="json").json()
    assert told["team_use"]["low"] is True
    assert told["team_use"]["reason"] == told["steps"][0]["team_use"]["reason"] == WHY
    (outcome,) = bulk.step_many(
        action="submit", request_ids=[second.pk], by=w.requester, reason=WHY
    )
    assert outcome.refused is None


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_it_shows_before_submission_beside_the_form_and_in_the_inbox(w, client, language):
    used(w, 0.1)
    request = builders.planned(w)
    for person in (w.requester, w.lead):
        person.language = language
        person.save()
    client.force_login(w.requester)
    page = client.get(request.get_absolute_url()).content.decode()
    said = "is asked to use first what it has" if language == "en" else "请先用好现有的卡"
    assert said in page
    assert 'name="use_reason"' in page
    panel = client.post(
        reverse("request-check", args=["lora"]) + f"?of={request.pk}", {"title": "x"}
    ).content.decode()
    assert said in panel
    refused = client.post(
        reverse("request-step", args=[request.pk, "submit"]), {"version": request.version},
        follow=True,
    )  # fmt: skip
    assert refused.redirect_chain[-1][0] == request.get_absolute_url()
    client.post(reverse("request-step", args=[request.pk, "submit"]),
                {"version": request.version, "use_reason": WHY})  # fmt: skip
    client.force_login(w.lead)
    inbox = client.get(reverse("approval-list")).content.decode()
    assert said in inbox
    assert WHY in inbox


def test_a_revision_is_measured_anew_and_starts_with_the_reason_given_before(w, client):
    used(w, 0.1)
    request = submit(w, builders.planned(w), use_reason=WHY)
    requests.recall(request_id=request.pk, by=w.requester, reason="smaller")
    client.force_login(w.requester)
    assert WHY in client.get(request.get_absolute_url()).content.decode()
    with pytest.raises(InputError, match="use them first"):
        submit(w, request)


def test_the_measurement_is_never_changed(w):
    used(w, 0.1)
    kept = submit(w, builders.planned(w), use_reason=WHY).current.team_use
    kept.share = 0.9
    with pytest.raises(AppendOnlyError):
        kept.save()
    with pytest.raises(AppendOnlyError):
        kept.delete()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        RevisionUse.objects.filter(pk=kept.pk)._raw_delete("default")


def test_an_administrator_edits_threshold_window_and_rule(w):
    policy = ApprovalPolicy.objects.get(active=True)
    rules = [{"group": 1, "authority": "team_lead"},
             {"group": 2, "authority": "finance", "low_use_only": True}]  # fmt: skip
    made = edit_policy(
        rules=rules, options={"use_first_below": Decimal("0.5"), "use_days": 14}, note="Stricter",
        by=w.admin, seen=policy.pk,
    )  # fmt: skip
    assert (made.use_first_below, made.use_days, made.use_needs_reason) == (Decimal("0.5"), 14, True)  # fmt: skip
    for options, field in (
        ({"use_first_below": None}, "use_first_below"),
        ({"use_first_below": Decimal("1.5")}, "use_first_below"),
        ({"use_days": 0}, "use_days"),
    ):
        with pytest.raises(InputError) as refused:
            edit_policy(rules=rules, options=options, note="No", by=w.admin)
        assert refused.value.field == field


def test_the_inbox_takes_as_many_queries_for_four_as_for_two(w):
    used(w, 0.1)
    counts = []
    for _ in range(2):
        for _ in range(2):
            submit(w, builders.planned(w), use_reason=WHY)
        lead = User.objects.get(pk=w.lead.pk)
        with CaptureQueriesContext(connection) as seen:
            assert all(item.step.revision.team_use.low for item in inbox(lead))
        counts.append(len(seen))
    assert counts[0] == counts[1]
