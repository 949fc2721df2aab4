"""Approval on a condition, silence, and rules as versions."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from core.audit import trail
from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AuditEntry, ExchangeRate, Notice
from core.money import Money
from core.organisation import organisation, today
from core.roles import Role
from planning import tasks
from planning.models import ApprovalPolicy, ApprovalStep, Vote
from planning.models.approvals import Standing
from planning.selectors.budgets import balance
from planning.selectors.conditions import below_plan, conditions
from planning.services import approvals, requests, silence, spending
from planning.services.over_approvals import AboveApproved
from planning.services.policy_edit import edit_policy
from planning.services.policy_presets import load_policy
from planning.services.policy_versions import confirm_policy, decline_policy
from planning.services.spending import ConditionBroken
from tests.planning import builders

pytestmark = pytest.mark.django_db
LEAD = {"group": 1, "authority": "team_lead"}


@pytest.fixture
def w():
    return builders.world()


def api(user):
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def cny(amount):
    return Money(Decimal(amount), "CNY")


def grant(request, by, **conditions):
    step = request.current.steps.filter(status="pending").order_by("pk").first()
    approvals.decide(
        step_id=step.pk, decision="approve", by=by, seen_hash=step.content_hash, **conditions
    )
    request.refresh_from_db()


def order(request, w, amount, source="order:1", currency="CNY", revision=0):
    return spending.commit(
        request_id=request.pk, amount=Money(Decimal(amount), currency), source=source,
        by=w.procurement, revision=revision,
    )  # fmt: skip


# --- conditions -----------------------------------------------------------------------------------------------------


def test_a_cap_below_the_plan_is_told_before_and_after_on_page_and_api(w, client):
    request = builders.in_review(w, "1000")
    step = request.current.steps.get()
    step.quorum = 2
    step.save(update_fields=["quorum"])
    w.lead.language = "en"
    w.lead.save()
    client.force_login(w.lead)
    assert "The plan costs 1,000.00 CNY" in client.get(reverse("approval-list")).content.decode()
    data = {
        "decision": "approve",
        "seen_hash": step.content_hash,
        "cap_amount": "800",
        "cap_currency": "CNY",
    }
    answer = client.post(reverse("approval-decide", args=[step.pk]), data, follow=True)
    said = "The plan costs 1,000.00 CNY and the approval holds up to 800.00 CNY"
    assert answer.content.decode().count(said) == 2  # at once, and beside the vote from now on
    found = api(w.lead).get(f"/api/v1/requests/{request.pk}/").json()
    assert said in str(found)


def test_a_cap_that_holds_the_plan_is_told_nothing(w):
    plan = builders.in_review(w, "1000").current.plan
    assert below_plan(cny(1000), plan) is None
    assert below_plan(None, plan) is None


def test_up_to_an_amount_reserves_that_amount_and_holds_the_sum_of_all_orders_to_it(w):
    budget = builders.fund(w, "5000")
    request = builders.in_review(w, "1000")
    grant(request, w.lead, cap=cny(800))
    assert balance(budget).approved == 800
    order(request, w, 500)
    with pytest.raises(ConditionBroken, match=r"up to 800\.00 CNY; with this, 900\.00 CNY"):
        order(request, w, 400, "order:2")
    order(request, w, 300, "order:2")
    with pytest.raises(ConditionBroken):
        order(request, w, 1, "order:2", revision=1)
    order(request, w, -100, "order:2", revision=1)
    order(request, w, 100, "order:2", revision=2)
    spending.post_actual(request_id=request.pk, amount=cny(500), source="invoice:1", by=w.finance)
    with pytest.raises(ConditionBroken):  # what was invoiced still counts
        order(request, w, 1, "order:3")


def test_a_cap_above_the_plan_takes_no_more_than_the_plan(w):
    budget = builders.fund(w, "5000")
    request = builders.in_review(w, "1000")
    grant(request, w.lead, cap=cny(1200))
    assert balance(budget).approved == 1000
    with pytest.raises(AboveApproved, match=r"1,050\.00 CNY is the most"):
        order(request, w, 1100)
    order(request, w, 1050)


def test_a_cap_makes_room_where_the_plan_would_not_fit(w):
    builders.fund(w, "900")
    request = builders.in_review(w, "1000")
    grant(request, w.lead, cap=cny(900))
    assert request.status == "approved"


def test_a_cap_in_another_currency_is_compared_at_the_frozen_rate(w):
    ExchangeRate.objects.create(
        base="USD", quote="CNY", rate=Decimal(7), as_of=today(), source="test"
    )
    budget = builders.fund(w, "50000")
    request = builders.in_review(w, "10000")
    grant(request, w.lead, cap=Money(Decimal(1000), "USD"))
    assert balance(budget).approved == 7000
    entry = budget.entries.get(bucket="approved")
    assert (entry.original_amount, entry.original_currency, entry.rate) == (1000, "USD", 7)
    with pytest.raises(ConditionBroken, match=r"up to 1,000\.00 USD"):
        order(request, w, 7001)
    order(request, w, 7000)


def test_the_strictest_of_several_conditions_binds(w):
    load_policy(preset="regulated", by=None)
    builders.fund(w, "5000", kind="cloud")
    request = builders.in_review(w, "1000", plan_mode="on_demand")
    soon, later = today() + timedelta(days=5), today() + timedelta(days=9)
    grant(request, w.lead, cap=cny(950), order_by=later)
    grant(request, w.finance, cap=cny(900), order_by=soon)
    grant(request, w.cto)
    found = conditions(request.current)
    assert (found.cap, found.order_by) == (cny(900), soon)
    assert request.status == "approved"


def test_to_be_ordered_by_a_day_binds_the_order(w):
    builders.fund(w, "5000")
    request = builders.in_review(w)
    day = today() + timedelta(days=3)
    grant(request, w.lead, order_by=day)
    requests.start_sourcing(request_id=request.pk, by=w.procurement)
    with time_machine.travel(timezone.now() + timedelta(days=4), tick=False):
        with pytest.raises(ConditionBroken, match=f"until {day.isoformat()}"):
            order(request, w, 500)
    order(request, w, 500)


@pytest.mark.parametrize(
    ("field", "conditions"),
    [
        ("cap", {"cap": cny(0)}),
        ("cap", {"cap": cny("0.001")}),
        ("order_by", {"order_by": date(2020, 1, 1)}),
    ],
)
def test_a_condition_nobody_could_keep_is_refused(w, field, conditions):
    builders.fund(w, "5000")
    request = builders.in_review(w)
    with pytest.raises(InputError) as error:
        grant(request, w.lead, **conditions)
    assert error.value.field == field
    step = request.current.steps.get()
    with pytest.raises(InputError, match="Only an approval"):
        approvals.decide(
            step_id=step.pk, decision="reject", by=w.lead, seen_hash=step.content_hash, reason="no",
            cap=cny(5),
        )  # fmt: skip
    assert not Vote.objects.exists()


def test_a_vote_with_its_condition_is_never_changed_not_even_by_sql(w):
    builders.fund(w, "5000")
    request = builders.in_review(w)
    grant(request, w.lead, cap=cny(800))
    for statement in ("UPDATE planning_vote SET cap_amount = 900", "DELETE FROM planning_vote"):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            connection.cursor().execute(statement)


def test_an_approval_not_used_in_time_lapses_once_and_frees_its_money(w):
    budget = builders.fund(w, "5000")
    request = builders.in_review(w)
    grant(request, w.lead, order_by=today())
    assert tasks.escalate_silence() == 0
    with time_machine.travel(timezone.now() + timedelta(days=1), tick=False):
        assert [tasks.escalate_silence() for _ in range(3)] == [1, 0, 0]
    request.refresh_from_db()
    assert request.status == "changes_requested"
    assert balance(budget).approved == 0
    assert request.current.steps.get().status == "void"
    assert Notice.objects.filter(event="request.lapsed").count() == 2  # requester and voter


def test_an_ordered_approval_does_not_lapse(w):
    builders.fund(w, "5000")
    request = builders.in_review(w)
    grant(request, w.lead, order_by=today())
    order(request, w, 500)
    with time_machine.travel(timezone.now() + timedelta(days=2), tick=False):
        assert not silence.lapse(request_id=request.pk)
    request.refresh_from_db()
    assert request.status == "approved"


# --- silence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        ("2026-12-04T09:00", "2026-12-07T09:00", 1),  # Friday to Monday
        ("2026-12-04T09:00", "2026-12-06T09:00", 0),
        ("2026-12-07T23:30", "2026-12-08T00:30", 1),
        ("2026-12-07T09:00", "2026-12-14T09:00", 5),
        ("2026-12-05T09:00", "2026-12-08T09:00", 2),  # Saturday to Tuesday
        ("2026-12-07T09:00", "2026-12-07T20:00", 0),
    ],
)
def test_working_days_leave_out_weekends_in_the_organisations_zone(w, since, until, days):
    zone = organisation().zone
    found = silence.working_days(
        datetime.fromisoformat(since).replace(tzinfo=zone),
        datetime.fromisoformat(until).replace(tzinfo=zone),
        organisation(),
    )
    assert found == days


def test_silence_is_told_once_and_approves_nothing():
    with time_machine.travel(datetime(2026, 12, 4, 2, tzinfo=UTC), tick=False):  # a Friday
        w = builders.world("company")
        builders.fund(w, "5000")
        request = builders.in_review(w)
    with time_machine.travel(datetime(2026, 12, 8, 2, tzinfo=UTC), tick=False):  # 2 working days
        assert tasks.escalate_silence() == 0
    with time_machine.travel(datetime(2026, 12, 9, 2, tzinfo=UTC), tick=False):
        assert [tasks.escalate_silence() for _ in range(5)] == [1, 0, 0, 0, 0]
        told = Notice.objects.filter(event="approval_step.escalated")
        assert set(told.values_list("recipient__name", flat=True)) == {
            "Leo Lead", "Cleo Chief", "Rita Requester",
        }  # fmt: skip
        assert told.count() == 3
        step = request.current.steps.get()
        assert (step.status, step.votes.count()) == ("pending", 0)
        assert trail(step).filter(action="approval_step.escalated").count() == 1
        with pytest.raises(NotPermitted):
            builders.vote(request, w.finance)
        builders.vote(request, w.lead)


def test_the_small_team_is_not_escalated(w):
    builders.fund(w, "5000")
    builders.in_review(w)
    with time_machine.travel(timezone.now() + timedelta(days=60), tick=False):
        assert tasks.escalate_silence() == 0


# --- rules as versions ----------------------------------------------------------------------------------------------


def test_a_new_version_leaves_the_old_one_as_it_was_and_requests_keep_theirs(w):
    old = ApprovalPolicy.objects.get(active=True)
    builders.fund(w, "5000")
    draft = builders.draft(w)
    requests.submit_request(request_id=draft.pk, by=w.requester)  # without a plan: review to come
    running = builders.in_review(w)
    new = edit_policy(
        rules=[LEAD, {"group": 2, "authority": "finance", "above": Decimal(500), "above_currency": "CNY"}],
        options={"escalate_after_days": 2, "actual_tolerance": Decimal("0.1")},
        note="Finance sees more", by=w.admin, seen=old.pk,
    )  # fmt: skip
    old.refresh_from_db()
    assert (old.active, new.active, old.rules.count(), new.rules.count()) == (False, True, 1, 2)
    assert (old.escalate_after_days, new.escalate_after_days) == (0, 2)
    builders.choose(draft, builders.study(draft))
    assert draft.current.steps.count() == 1  # by the version it was submitted under
    builders.vote(running, w.lead)
    assert running.status == "approved"
    later = builders.in_review(w)
    assert later.current.steps.count() == 2
    assert later.current.policy == new
    revised = requests.revise(request_id=running.pk, by=w.requester, reason="more")
    assert revised.current.policy is None  # a new revision is submitted under what holds then
    entry = AuditEntry.objects.get(action="approval_policy.edited")
    assert entry.data["before"] == old.pk
    assert entry.data["rules"][1]["above"] == "500"


@pytest.mark.parametrize(
    ("field", "rules", "options"),
    [
        ("rules", [], {}),
        ("rules", [{**LEAD, "above": Decimal(5), "above_currency": "CNY"}], {}),
        ("rules", [{**LEAD, "over_budget_only": True}], {}),
        ("quorum", [{**LEAD, "quorum": 0}], {}),
        ("group", [{**LEAD, "group": 0}], {}),
        ("authority", [{**LEAD, "authority": "superuser"}], {}),
        ("above_currency", [LEAD, {**LEAD, "above": Decimal(5)}], {}),
        ("above", [LEAD, {**LEAD, "above": Decimal(-5), "above_currency": "CNY"}], {}),
        ("residence", [LEAD, {**LEAD, "residence": "moon"}], {}),
        ("colour", [{**LEAD, "colour": "red"}], {}),
        ("reservation_days", [LEAD], {"reservation_days": 0}),
        ("actual_tolerance", [LEAD], {"actual_tolerance": Decimal(2)}),
        ("auto_approve", [LEAD], {"auto_approve": True}),
    ],
)
def test_rules_that_cannot_hold_are_refused_by_name(w, field, rules, options):
    with pytest.raises(InputError) as error:
        edit_policy(rules=rules, options=options, note="x", by=w.admin)
    assert error.value.field == field
    assert ApprovalPolicy.objects.count() == 1


def test_only_administrators_change_rules_with_a_reason_and_on_what_they_saw(w):
    seen = ApprovalPolicy.objects.get().pk
    for name, person in w.people().items():
        if name != "admin":
            with pytest.raises(NotPermitted):
                edit_policy(rules=[LEAD], options={}, note="x", by=person)
    with pytest.raises(InputError, match="what changes"):
        edit_policy(rules=[LEAD], options={}, note=" ", by=w.admin)
    edit_policy(rules=[LEAD], options={}, note="one", by=w.admin, seen=seen)
    with pytest.raises(StaleData):
        edit_policy(rules=[LEAD], options={}, note="two", by=w.admin, seen=seen)


# --- pages and API --------------------------------------------------------------------------------------------------


def typed(policy, **changes):
    return {
        "version": policy.pk, "note": "More eyes", "rules-TOTAL_FORMS": 2, "rules-INITIAL_FORMS": 1,
        "rules-MIN_NUM_FORMS": 0, "rules-MAX_NUM_FORMS": 40, "rules-0-group": 1, "rules-0-authority": "team_lead",
        "rules-0-quorum": 1, "rules-1-group": 2, "rules-1-authority": "finance", "rules-1-quorum": 1,
        "reservation_days": 90, "actual_tolerance": "0.02", "order_tolerance": "0.05",
        "rate_days": 35, "escalate_after_days": 3, "use_days": 28, "carry_over": "ask", **changes,
    }  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_an_administrator_edits_the_rules_on_a_page(w, client, language):
    w.admin.language = language
    w.admin.save()
    client.force_login(w.admin)
    policy = ApprovalPolicy.objects.get()
    assert client.get(reverse("policy-edit")).status_code == 200
    answer = client.post(reverse("policy-edit"), typed(policy, **{"rules-0-DELETE": "on"}))
    assert answer.status_code == 302
    new = ApprovalPolicy.objects.get(active=True)
    assert [rule.authority for rule in new.rules.all()] == ["finance"]
    assert client.post(reverse("policy-edit"), typed(policy)).status_code == 409
    wrong = client.post(reverse("policy-edit"), typed(new, **{"rules-0-quorum": 0, "note": "keep"}))
    assert wrong.status_code == 422
    assert 'value="keep"' in wrong.content.decode()
    assert client.get(reverse("policy-detail", args=[policy.pk])).status_code == 200
    page = client.get(reverse("policy-list")).content.decode()
    assert "More eyes" in page
    client.force_login(w.lead)
    assert client.get(reverse("policy-edit")).status_code == 403
    assert reverse("policy-edit") not in client.get(reverse("policy-list")).content.decode()


# --- rules by two people --------------------------------------------------------------------------------------------


@pytest.fixture
def second(w, make_user):
    """Another administrator, in a company."""
    load_policy(preset="company", by=None)
    return make_user(Role.ADMINISTRATOR)


def in_force():
    return ApprovalPolicy.objects.get(active=True)


def edited(w, **changes):
    return edit_policy(rules=[LEAD], options={}, note="Fewer eyes", by=w.admin, **changes)


def test_rules_change_when_a_second_administrator_agrees(w, second):
    before = in_force()
    waiting = edited(w, seen=before.pk)
    assert (waiting.standing, waiting.active, in_force()) == (Standing.WAITING, False, before)
    for name, person in w.people().items():
        with pytest.raises(NotPermitted):
            confirm_policy(policy_id=waiting.pk, by=person)
        if name != "admin":
            with pytest.raises(NotPermitted):
                decline_policy(policy_id=waiting.pk, by=person)
    done = confirm_policy(policy_id=waiting.pk, by=second)
    assert in_force() == done
    assert (done.standing, done.decided_by, done.loaded_by) == (Standing.ADOPTED, second, w.admin)
    entry = AuditEntry.objects.get(action="approval_policy.confirmed")
    assert (entry.actor, entry.data["proposed_by"]) == (second, w.admin.pk)
    assert AuditEntry.objects.get(action="approval_policy.proposed").data["rules"]
    for step in (confirm_policy, decline_policy):
        with pytest.raises(InvalidTransition):
            step(policy_id=waiting.pk, by=second)


def test_a_preset_waits_too_so_that_nobody_steps_down_to_a_small_team_alone(w, second):
    before = in_force()
    waiting = load_policy(preset="small_team", by=w.admin)
    assert (waiting.standing, in_force()) == (Standing.WAITING, before)
    assert load_policy(preset="regulated", by=None) == in_force()  # set-up asks nobody
    waiting.refresh_from_db()
    assert waiting.standing == Standing.DECLINED


def test_a_change_of_the_rules_is_taken_back_or_gives_way_to_a_newer_one(w, second):
    before, first = in_force(), edited(w)
    decline_policy(policy_id=first.pk, by=w.admin)
    assert AuditEntry.objects.get(action="approval_policy.declined").actor == w.admin
    earlier, later = edited(w), edit_policy(rules=[LEAD], options={}, note="x", by=second)
    earlier.refresh_from_db()
    assert (earlier.standing, later.standing) == (Standing.DECLINED, Standing.WAITING)
    with pytest.raises(InvalidTransition):
        confirm_policy(policy_id=earlier.pk, by=second)
    assert in_force() == before
    assert confirm_policy(policy_id=later.pk, by=w.admin) == in_force()


def test_what_was_written_for_other_rules_is_not_put_in_force(w, second):
    waiting = edited(w)
    other = load_policy(preset="regulated", by=None)
    ApprovalPolicy.objects.filter(pk=waiting.pk).update(standing=Standing.WAITING)
    with pytest.raises(StaleData):
        confirm_policy(policy_id=waiting.pk, by=second)
    assert in_force() == other


def test_one_administrator_is_enough_alone_and_in_a_small_team(w, make_user):
    load_policy(preset="company", by=None)
    assert edited(w) == in_force()
    load_policy(preset="small_team", by=None)
    make_user(Role.ADMINISTRATOR)
    assert edited(w) == in_force()
    assert edited(w).standing == Standing.WAITING  # own rules now, and two who could agree


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_two_administrators_change_the_rules_on_pages(w, second, client, language):
    for person in (w.admin, second):
        person.language = language
        person.save()
    before = in_force()
    client.force_login(w.admin)
    assert client.post(reverse("policy-edit"), typed(before)).status_code == 302
    waiting = ApprovalPolicy.objects.get(standing=Standing.WAITING)
    confirm = reverse("policy-step", args=[waiting.pk, "confirm"])
    decline = reverse("policy-step", args=[waiting.pk, "decline"])
    page = client.get(reverse("policy-list")).content.decode()
    assert decline in page
    assert confirm not in page
    assert client.post(confirm).status_code == 403
    assert waiting.get_absolute_url() not in client.get("/").content.decode()
    client.force_login(w.lead)
    assert decline not in client.get(waiting.get_absolute_url()).content.decode()
    assert client.post(decline).status_code == 403
    client.force_login(second)
    assert waiting.get_absolute_url() in client.get("/").content.decode()
    assert confirm in client.get(waiting.get_absolute_url()).content.decode()
    assert client.post(reverse("policy-step", args=[waiting.pk, "burn"])).status_code == 404
    assert client.post(confirm).status_code == 302
    assert in_force() == waiting
    client.post(reverse("policy-list"), {"preset": "small_team"})
    client.post(reverse("policy-step", args=[ApprovalPolicy.objects.latest("pk").pk, "decline"]))
    assert in_force() == waiting
    assert client.get(reverse("policy-list")).status_code == 200


def test_two_administrators_change_the_rules_by_api(w, second):
    body = {"seen": in_force().pk, "note": "By API", "rules": [LEAD]}
    answer = api(w.admin).post(reverse("api-policy-edit"), body, format="json")
    assert (answer.status_code, answer.data["standing"]) == (202, "waiting")
    confirm = reverse("api-policy-step", args=[answer.data["id"], "confirm"])
    assert api(w.admin).post(confirm).status_code == 403
    assert api(w.lead).post(confirm).status_code == 403
    done = api(second).post(confirm)
    assert (done.status_code, done.data["active"]) == (200, True)
    assert done.data["decided_by"] == second.email
    assert api(second).post(confirm).status_code == 409
    answer = api(w.admin).post(reverse("api-policies"), {"preset": "company"}, format="json")
    assert answer.status_code == 202
    decline = reverse("api-policy-step", args=[answer.data["id"], "decline"])
    assert api(w.admin).post(decline).data["standing"] == "declined"
    assert api(w.admin).post(decline.replace("decline", "burn")).status_code == 404


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_page_takes_a_condition_and_shows_it(w, client, language):
    builders.fund(w, "5000")
    request = builders.in_review(w)
    step = request.current.steps.get()
    w.lead.language = language
    w.lead.save()
    client.force_login(w.lead)
    body = {"decision": "approve", "seen_hash": step.content_hash, "cap_amount": "750"}
    client.post(reverse("approval-decide", args=[step.pk]), {**body, "cap_currency": ""})
    assert not Vote.objects.exists()
    client.post(reverse("approval-decide", args=[step.pk]), {**body, "cap_currency": "CNY"})
    assert Vote.objects.get().cap == cny(750)
    assert "750.00" in client.get(request.get_absolute_url()).content.decode()


def test_the_api_takes_conditions_and_rules(w):
    builders.fund(w, "5000")
    step = builders.in_review(w).current.steps.get()
    decide = reverse("api-approval-decide", args=[step.pk])
    body = {"decision": "approve", "seen_hash": step.content_hash, "cap_amount": "700"}
    answer = api(w.lead).post(decide, body, format="json")
    assert (answer.status_code, answer.data["field"]) == (422, "cap_currency")
    answer = api(w.lead).post(decide, {**body, "cap_currency": "CNY"}, format="json")
    assert answer.data["votes"][0]["cap_amount"] == "700.000"
    policy = ApprovalPolicy.objects.get()
    body = {
        "seen": policy.pk, "note": "By API",
        "rules": [LEAD, {"group": 2, "authority": "finance", "team": w.team.slug}],
    }  # fmt: skip
    edit = reverse("api-policy-edit")
    assert api(w.finance).post(edit, body, format="json").status_code == 403
    answer = api(w.admin).post(edit, body, format="json")
    assert answer.status_code == 201
    assert answer.data["rules"][1]["team"] == w.team.slug
    assert api(w.admin).post(edit, body, format="json").status_code == 409
    assert ApprovalStep.objects.count() == 1
