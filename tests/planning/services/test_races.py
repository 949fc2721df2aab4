"""Real concurrency: several connections, the database's locks. PostgreSQL only (see conftest)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from core.models import Notice
from core.money import Money
from core.organisation import today
from planning.models import Budget, CapacityRequest, Delegation, LedgerEntry, Vote
from planning.selectors.budgets import balance
from planning.services import approvals, spending
from planning.services.ledger_proof import prove_ledger
from tests.planning import builders
from tests.planning.races import outcome, together

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]


def approval(request: CapacityRequest, by) -> Callable[[], object]:
    step = request.current.steps.get()
    return lambda: approvals.decide(
        step_id=step.pk, decision="approve", by=by, seen_hash=step.content_hash
    )


def test_of_two_approvals_racing_for_the_last_money_one_wins():
    w = builders.world()
    budget = builders.fund(w, "1500")
    requests = [builders.in_review(w, "1000") for _ in range(2)]

    results = together(*(approval(request, w.lead) for request in requests))

    assert sorted(results) == ["ok", "over_budget"]
    assert sorted(CapacityRequest.objects.values_list("status", flat=True)) == [
        "approved",
        "in_review",
    ]
    assert balance(budget).available == 500
    assert Vote.objects.count() == 1


def test_of_many_concurrent_approvals_exactly_those_that_fit_succeed():
    w = builders.world()
    budget = builders.fund(w, "1250")
    requests = builders.many_in_review(w, 24, "100")

    results = together(
        *(approval(request, w.lead if n % 2 else w.cto) for n, request in enumerate(requests))
    )

    assert Counter(results) == {"ok": 12, "over_budget": 12}
    found = balance(budget)
    assert (found.approved, found.reserved, found.available) == (1200, 1200, 50)
    assert CapacityRequest.objects.filter(status="approved").count() == 12
    assert prove_ledger() == []


def test_two_hundred_approvals_at_once_against_money_for_a_hundred():
    w = builders.world()
    budget = builders.fund(w, "10000")
    requests = builders.many_in_review(w, 200, "100")
    calls = [approval(request, w.lead) for request in requests]

    # forty connections at a time: more than a server has workers
    with ThreadPoolExecutor(40) as pool:
        results = list(pool.map(outcome, calls))

    assert Counter(results) == {"ok": 100, "over_budget": 100}
    found = balance(budget)
    assert (found.approved, found.reserved, found.available) == (10000, 10000, 0)
    assert CapacityRequest.objects.filter(status="approved").count() == 100
    assert Notice.objects.filter(event="request.approved").count() == 100
    assert prove_ledger() == []


def test_the_same_step_decided_twice_at_once_counts_once():
    w = builders.world()
    builders.fund(w, "5000")
    request = builders.in_review(w)

    results = together(
        approval(request, w.lead), approval(request, w.lead), approval(request, w.cto)
    )

    assert Counter(results) == {"ok": 1, "invalid_transition": 2}
    assert Vote.objects.count() == 1
    assert LedgerEntry.objects.filter(bucket="approved").count() == 1
    assert Notice.objects.filter(event="request.approved", recipient=w.requester).count() == 1


def test_one_order_posted_twice_at_once_commits_once():
    w = builders.world()
    request = builders.approved(w)
    amount = Money(Decimal(400), "CNY")

    results = together(*[
        lambda: spending.commit(request_id=request.pk, amount=amount, source="order:1", by=w.procurement)
    ] * 2)  # fmt: skip

    assert sorted(results) == ["already_posted", "ok"]
    assert balance(Budget.objects.get()).committed == 400


def test_two_people_cannot_stand_in_for_each_other_by_asking_at_once():
    w = builders.world()

    def delegate(a, b):
        return lambda: approvals.delegate(
            principal=a, delegate=b, first_day=today(), last_day=today(), by=a
        )

    results = together(delegate(w.lead, w.cto), delegate(w.cto, w.lead))
    assert sorted(results) == ["invalid_input", "ok"]
    assert Delegation.objects.count() == 1
