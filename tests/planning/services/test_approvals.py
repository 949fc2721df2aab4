from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.audit import trail
from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AuditEntry, ExchangeRate, Notice, User
from core.organisation import today
from core.roles import Role
from planning.models import ApprovalLimit, ApprovalRule, ApprovalStep, LedgerEntry, PlanChoice, Vote
from planning.selectors.approvals import differences, inbox, last_approved
from planning.services import approvals, budgets, requests
from planning.services.ledger import OverBudget
from planning.states import RequestStatus
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def decide(step, by, decision="approve", reason="", seen=None):
    return approvals.decide(
        step_id=step.pk,
        decision=decision,
        by=by,
        reason=reason,
        seen_hash=seen or step.content_hash,
    )


def rate(base: str, quote: str, value: str, day: date | None = None) -> None:
    ExchangeRate.objects.create(
        base=base, quote=quote, rate=Decimal(value), as_of=day or today(), source="test"
    )


def authorities(request) -> list[str]:
    return list(request.current.steps.values_list("authority", flat=True))


def test_a_second_decision_on_the_same_step_is_refused_and_writes_nothing(w):
    builders.fund(w, "1000")
    request = builders.in_review(w)
    step = request.current.steps.get()
    decide(step, w.lead)
    before = (Vote.objects.count(), request.ledger.count(), Notice.objects.count())

    for again in (w.lead, w.cto):
        with pytest.raises(InvalidTransition):
            decide(step, again)

    assert (Vote.objects.count(), request.ledger.count(), Notice.objects.count()) == before
    assert Vote.objects.count() == 1


@pytest.mark.parametrize(
    "way", ["requester", "filer", "author", "submitter", "delegate", "of_requester"]
)
def test_nobody_approves_what_they_have_a_part_in(w, way):
    both = builders.person(Role.REQUESTER, w.team, is_superuser=True)
    builders.MembershipFactory(user=both, team=None, role=Role.APPROVER)
    request = builders.planned(w, by=both if way in ("requester", "filer") else w.requester,
                               requester=w.requester if way == "filer" else None)  # fmt: skip
    if way == "author":
        requests.update_draft(request_id=request.pk, by=both, title="Mine too")
    requests.submit_request(request_id=request.pk, by=both if way == "submitter" else w.requester)
    if way == "delegate":  # the approver is away, and the requester stands in
        approvals.delegate(
            principal=w.lead, delegate=w.requester, first_day=today(), last_day=today(), by=w.lead
        )
    if way == "of_requester":  # the approver stands in for the requester
        builders.MembershipFactory(user=w.requester, team=w.team, role=Role.APPROVER)
        w.requester = type(w.requester).objects.get(pk=w.requester.pk)
        approvals.delegate(principal=w.requester, delegate=both, first_day=today(), last_day=today(),
                           by=w.requester)  # fmt: skip
    step = request.current.steps.get()
    actor = w.requester if way == "delegate" else both

    with pytest.raises(NotPermitted):
        decide(step, actor)
    assert not inbox(actor)
    assert not Vote.objects.exists()


def test_a_superuser_without_a_role_decides_nothing(w):
    step = builders.in_review(w).current.steps.get()
    with pytest.raises(NotPermitted):
        decide(step, w.superuser)


def test_a_limit_holds_to_the_cent_and_in_the_persons_currency(w):
    builders.fund(w, "100000")
    ApprovalLimit.objects.create(user=w.lead, amount=10_000, currency="CNY")
    ok = builders.in_review(w, "10000.00")
    over = builders.in_review(w, "10000.01")
    decide(ok.current.steps.get(), w.lead)
    with pytest.raises(NotPermitted, match="limit"):
        decide(over.current.steps.get(), w.lead)
    assert [item.step.revision.request for item in inbox(w.lead)] == []

    rate("USD", "CNY", "7.1")
    ApprovalLimit.objects.filter(user=w.lead).update(amount=1409, currency="USD")  # 10,003.90 CNY
    decide(over.current.steps.get(), w.lead)


def test_a_threshold_compares_amounts_in_its_own_currency_whatever_the_plan_uses(w):
    rate("USD", "CNY", "7.1")
    ApprovalRule.objects.create(
        policy_id=ApprovalRule.objects.get().policy_id, group=2, authority="budget_approver",
        above=5000, above_currency="CNY",
    )  # fmt: skip
    dear = builders.planned(w, "4000", "USD")
    cheap = builders.planned(w, "700", "USD")
    for request in (dear, cheap):
        w.requester.language = "zh-hans"
        requests.submit_request(request_id=request.pk, by=w.requester)

    assert authorities(dear) == ["team_lead", "budget_approver"]
    assert authorities(cheap) == ["team_lead"]
    plan = PlanChoice.objects.get(revision=dear.current)
    assert (plan.base_amount, plan.rate, plan.rate_date) == (28_400, Decimal("7.1"), today())


def test_a_later_rate_does_not_move_what_was_frozen(w):
    rate("USD", "CNY", "7.1", today() - timedelta(days=1))
    request = builders.planned(w, "100", "USD")
    rate("USD", "CNY", "9")
    builders.fund(w, "720")
    requests.submit_request(request_id=request.pk, by=w.requester)
    builders.vote(request, w.lead)
    assert builders.held_sums(request)["approved"] == Decimal("710")


def test_groups_run_in_order_and_one_click_approves_one_step(w):
    policy = ApprovalRule.objects.get().policy
    ApprovalRule.objects.create(policy=policy, group=2, authority="finance")
    ApprovalRule.objects.create(policy=policy, group=3, authority="team_lead")
    builders.fund(w, "1000")
    request = builders.in_review(w)
    first, second, third = request.current.steps.order_by("group")

    decide(first, w.lead)
    third.refresh_from_db()
    assert third.status == "waiting"
    with pytest.raises(InvalidTransition):
        decide(third, w.lead)
    decide(second, w.finance)
    decide(third, w.lead)
    request.refresh_from_db()
    assert request.status == RequestStatus.APPROVED


def test_sourcing_waits_for_the_second_of_two_approvals(w):
    builders.fund(w, "21000")
    policy = ApprovalRule.objects.get().policy
    ApprovalRule.objects.create(
        policy=policy, group=2, authority="budget_approver", above=20_000, above_currency="CNY"
    )
    request = builders.in_review(w, "21000")
    builders.vote(request, w.lead)
    assert request.status == RequestStatus.IN_REVIEW
    with pytest.raises(InvalidTransition):
        requests.start_sourcing(request_id=request.pk, by=w.procurement)
    builders.vote(request, w.cto)
    assert requests.start_sourcing(request_id=request.pk, by=w.procurement).status == "sourcing"


def test_a_quorum_counts_people_and_principals_once(w):
    ApprovalRule.objects.update(authority="finance", quorum=2)
    builders.fund(w, "1000")
    request = builders.in_review(w)
    step = request.current.steps.get()
    decide(step, w.finance)
    with pytest.raises(InvalidTransition):
        decide(step, w.finance)
    stand_in = builders.person(None)
    approvals.delegate(
        principal=w.finance, delegate=stand_in, first_day=today(), last_day=today(), by=w.finance
    )
    with pytest.raises(InvalidTransition):
        decide(step, stand_in)  # the same principal a second time
    decide(step, w.finance2)
    request.refresh_from_db()
    assert request.status == RequestStatus.APPROVED


def test_a_stand_in_decides_on_the_days_and_the_record_names_both(w, time_machine):
    time_machine.move_to("2026-12-01T03:00:00Z")
    builders.fund(w, "2000")
    stand_in = builders.person(None, name="Xenia")
    approvals.delegate(
        principal=w.lead,
        delegate=stand_in,
        first_day=date(2026, 12, 1),
        last_day=date(2026, 12, 14),
        by=w.lead,
    )
    first, second = builders.in_review(w), builders.in_review(w)
    assert len(inbox(stand_in)) == 2

    decide(first.current.steps.get(), stand_in)
    entry = AuditEntry.objects.get(action="approval_step.approve")
    assert (entry.actor, entry.on_behalf_of) == (stand_in, w.lead)

    time_machine.move_to("2026-12-14T16:00:00Z")  # 15 December in Shanghai
    with pytest.raises(NotPermitted):
        decide(second.current.steps.get(), stand_in)
    assert not inbox(stand_in)


def test_delegations_make_no_circle_and_do_not_pass_on(w):
    days = {"first_day": today(), "last_day": today()}
    approvals.delegate(principal=w.lead, delegate=w.cto, by=w.lead, **days)
    with pytest.raises(InputError):
        approvals.delegate(principal=w.cto, delegate=w.lead, by=w.cto, **days)
    with pytest.raises(NotPermitted):
        approvals.delegate(principal=w.cto, delegate=w.finance, by=w.lead, **days)
    with pytest.raises(NotPermitted):
        approvals.delegate(principal=w.requester, delegate=w.cto, by=w.requester, **days)

    end = builders.person(None)
    approvals.delegate(principal=w.procurement, delegate=end, by=w.procurement, **days)
    step = builders.in_review(w).current.steps.get()
    with pytest.raises(NotPermitted):
        decide(step, end)


def test_revoking_a_delegation_ends_it_at_once(w):
    stand_in = builders.person(None)
    row = approvals.delegate(
        principal=w.lead, delegate=stand_in, first_day=today(), last_day=today(), by=w.lead
    )
    step = builders.in_review(w).current.steps.get()
    with pytest.raises(NotPermitted):
        approvals.revoke_delegation(delegation_id=row.pk, by=stand_in)
    approvals.revoke_delegation(delegation_id=row.pk, by=w.lead)
    with pytest.raises(NotPermitted):
        decide(step, stand_in)


def test_a_vote_counts_for_what_was_on_the_screen_only(w):
    builders.fund(w, "1000")
    request = builders.in_review(w)
    step = request.current.steps.get()
    with pytest.raises(StaleData):
        decide(step, w.lead, seen="0" * 64)
    PlanChoice.objects.filter(revision=request.current).update(
        amount=90_000
    )  # behind the services' back
    with pytest.raises(StaleData):
        decide(step, w.lead)


def test_an_edit_after_approval_builds_a_new_chain_for_the_new_amount(w):
    policy = ApprovalRule.objects.get().policy
    ApprovalRule.objects.create(
        policy=policy, group=2, authority="budget_approver", above=10_000, above_currency="CNY"
    )
    request = builders.approved(w, "9000")
    old = request.current.steps.get()
    requests.revise(request_id=request.pk, by=w.requester, reason="ten times the data")
    requests.update_draft(
        request_id=request.pk, by=w.requester, workload={**builders.LORA, "tokens": "3G"}
    )
    request.refresh_from_db()
    builders.choose(request, builders.study(request, "90000"))
    requests.submit_request(request_id=request.pk, by=w.requester)

    old.refresh_from_db()
    assert old.status == "void"
    assert authorities(request) == ["team_lead", "budget_approver"]
    with pytest.raises(InvalidTransition):
        decide(old, w.lead)
    seen = {row.field for row in differences(last_approved(request.current), request.current)}
    assert seen == {"tokens", "plan.money"}


def test_reject_and_return_need_a_reason_and_end_the_other_steps(w):
    ApprovalRule.objects.create(
        policy_id=ApprovalRule.objects.get().policy_id, group=1, authority="finance"
    )
    for decision, state, other in (
        ("reject", "rejected", "cancelled"),
        ("return", "changes_requested", "void"),
    ):
        request = builders.in_review(w)
        with pytest.raises(InputError, match="reason"):
            builders.vote(request, w.lead, decision, " ")
        builders.vote(request, w.lead, decision, "too much")
        assert request.status == state
        assert (
            ApprovalStep.objects.get(revision=request.current, authority="finance").status == other
        )
    told = Notice.objects.filter(recipient=w.requester).values_list("event", flat=True)
    assert {"request.rejected", "request.returned"} <= set(told)


def test_an_approval_over_budget_leaves_no_vote(w):
    builders.fund(w, "999.99")
    request = builders.in_review(w)
    with pytest.raises(OverBudget):
        builders.vote(request, w.lead)
    request.refresh_from_db()
    assert request.status == RequestStatus.IN_REVIEW
    assert not Vote.objects.exists()
    assert not trail(request).filter(action="request.approved").exists()


def test_a_policy_may_allow_over_commitment_with_a_reason(w):
    policy = ApprovalRule.objects.get().policy
    policy.allow_over_budget = True
    policy.save()
    request = builders.in_review(w)
    with pytest.raises(OverBudget):
        builders.vote(request, w.lead)
    builders.vote(request, w.lead, reason="the board agreed on 3 May")
    assert AuditEntry.objects.get(action="budget.overcommitted").data["over"] == "1000.00"


def test_an_outdated_study_blocks_approval_where_the_policy_says_so(w):
    builders.fund(w, "1000")
    request = builders.in_review(w)
    plan = request.current.plan
    plan.study.status = "stale"
    plan.study.save()
    policy = ApprovalRule.objects.get().policy
    policy.block_stale_study = True
    policy.save()
    with pytest.raises(Exception, match="out of date"):
        builders.vote(request, w.lead)


@pytest.mark.parametrize(
    ("preset", "amount", "chain"),
    [
        ("small_team", "5000000", ["team_lead"]),
        ("company", "100000", ["team_lead"]),
        ("company", "100000.01", ["team_lead", "finance"]),
        ("company", "500001", ["team_lead", "finance", "budget_approver"]),
        ("regulated", "1", ["team_lead", "finance", "procurement", "budget_approver"]),
    ],
)
def test_presets_ask_for_what_they_say(preset, amount, chain):
    w = builders.world(preset)
    builders.fund(w, "9000000")
    assert authorities(builders.in_review(w, amount)) == chain


def test_a_plan_without_a_price_cannot_be_chosen(w):
    request = builders.draft(w)
    with pytest.raises(InputError, match="no price"):
        builders.choose(request, builders.study(request, amount=None))
    assert not PlanChoice.objects.exists()


def test_an_approval_asks_the_database_little_and_nothing_but_sums_and_entries_under_the_lock():
    w = builders.world()
    builders.fund(w, "5000")
    step = builders.in_review(w).current.steps.get()
    lead = User.objects.get(pk=w.lead.pk)
    with CaptureQueriesContext(connection) as queries:
        approvals.decide(step_id=step.pk, decision="approve", by=lead, seen_hash=step.content_hash)
    asked = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    assert len(asked) <= 20
    locked = max(n for n, sql in enumerate(asked) if sql.startswith('SELECT "planning_budget"'))
    assert [sql.split(" ")[0] for sql in asked[locked + 1 :]] == ["SELECT", "INSERT"]
    assert all('"planning_ledgerentry"' in sql for sql in asked[locked + 1 :])


def test_a_refusal_for_want_of_money_writes_nothing_and_waits_for_no_budget():
    w = builders.world()
    builders.fund(w, "999")
    step = builders.in_review(w).current.steps.get()
    lead = User.objects.get(pk=w.lead.pk)
    with CaptureQueriesContext(connection) as queries, pytest.raises(OverBudget):
        approvals.decide(step_id=step.pk, decision="approve", by=lead, seen_hash=step.content_hash)
    asked = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
    assert {sql.split(" ")[0] for sql in asked} == {"SELECT"}
    assert len(asked) <= 11
    locked = [sql for sql in asked if "FOR UPDATE" in sql]
    assert not [sql for sql in locked if '"planning_budget"' in sql]


def test_money_that_went_between_the_two_looks_is_seen_under_the_lock(monkeypatch):
    w = builders.world()
    budget = builders.fund(w, "1500")
    request = builders.in_review(w)
    real = budgets.claim

    def claim(**facts):
        found = real(**facts)
        LedgerEntry.objects.create(
            budget=budget, kind="actual", bucket="actual", amount=501, source="bill:1",
            original_amount=501, original_currency="CNY", rate_date=today(),
        )  # fmt: skip
        return found

    monkeypatch.setattr(budgets, "claim", claim)
    with pytest.raises(OverBudget, match=r"999.00 CNY left; this needs 1,?000.00"):
        builders.vote(request, w.lead)
    assert not Vote.objects.exists()
