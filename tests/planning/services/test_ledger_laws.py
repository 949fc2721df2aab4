"""Any sequence of ledger operations keeps every invariant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import DomainError
from core.models import ExchangeRate
from core.money import Money
from core.organisation import today
from planning.models import Budget, CapacityRequest, LedgerEntry
from planning.selectors.budgets import balances
from planning.services import budget_changes, requests, revaluation, spending
from planning.services.ledger_proof import prove_ledger
from tests.planning import builders

pytestmark = pytest.mark.django_db

amounts = st.decimals(min_value=1, max_value=500, places=2)
steps = st.one_of(
    st.tuples(
        st.sampled_from(["submit", "granted", "granted", "allot", "take", "transfer"]), amounts
    ),
    st.tuples(
        st.sampled_from(["approve", "reject", "cancel", "revise", "fulfil", "reverse"]),
        st.just(Decimal(1)),
    ),
    st.tuples(st.sampled_from(["commit", "invoice", "uncommit"]), amounts),
)


def play(w: builders.World, number: int, action: str, amount: Decimal) -> None:
    """One step on the newest request or the first budgets. Refusals are part of the game."""
    request = CapacityRequest.objects.order_by("-pk").first()
    first, second = Budget.objects.order_by("pk")[:2]
    money = Money(amount, "CNY")
    pk = request.pk if request else 0
    if action == "submit":
        builders.in_review(w, str(amount))
    elif action == "granted":
        builders.vote(builders.in_review(w, str(amount)), w.lead)
    elif action == "allot":
        budget_changes.allot(budget_id=first.pk, amount=amount, reason="r", by=w.finance)
    elif action == "take":
        budget_changes.allot(budget_id=first.pk, amount=-amount, reason="r", by=w.finance)
    elif action == "transfer":
        budget_changes.transfer(
            giver_id=first.pk, receiver_id=second.pk, amount=amount, reason="r", by=w.finance
        )
    elif action == "reverse":
        entry = (
            LedgerEntry.objects.filter(kind__in=budget_changes.REVERSIBLE).order_by("-pk").first()
        )
        budget_changes.reverse(entry_id=entry.pk, reason="r", by=w.finance2)
    elif request is None:
        return
    elif action in ("approve", "reject"):
        if request.status == "in_review":
            builders.vote(request, w.lead, action, "r")
    elif action == "cancel":
        requests.cancel_request(request_id=pk, by=w.cto if request.status in ("approved", "sourcing") else w.requester,
                                reason="r")  # fmt: skip
    elif action == "revise":
        requests.revise(request_id=pk, by=w.requester, reason="r")
    elif action == "fulfil":
        requests.start_sourcing(request_id=pk, by=w.procurement)
        requests.record_fulfilment(request_id=pk, accepted=8, by=None)
    elif action == "commit":
        spending.commit(request_id=pk, amount=money, source=f"order:{number}", by=w.procurement)
    elif action == "uncommit":
        spending.release_commitment(
            request_id=pk, amount=money, source=f"cut:{number}", by=w.procurement, reason="r"
        )
    elif action == "invoice":
        spending.post_actual(request_id=pk, amount=money, source=f"invoice:{number}", by=w.finance)


@settings(max_examples=25, deadline=None)
@given(st.lists(steps, min_size=3, max_size=14))
def test_no_sequence_breaks_an_invariant(moves):

    with transaction.atomic():
        w = builders.world()
        builders.fund(w, "600")
        builders.fund(w, "1", kind="cloud")
        for number, (action, amount) in enumerate(moves):
            try:
                with transaction.atomic():
                    play(w, number, action, amount)
            except DomainError:
                pass
            assert prove_ledger() == []
            for found in balances(Budget.objects.all()).values():
                assert (
                    found.available >= -Decimal("0.02") * found.actual
                )  # the invoice tolerance alone
                assert min(found.reserved, found.approved, found.committed, found.actual) >= 0
        transaction.set_rollback(True)


# --- contracts over a term in another currency, while rates move and quarters end ----------------------------------

rates = st.decimals(min_value=Decimal("0.5"), max_value=20, places=2)
turns = st.one_of(
    st.tuples(st.sampled_from(["contract", "contract", "purchase"]), amounts),
    st.tuples(st.sampled_from(["commit", "commit", "invoice", "uncommit", "less"]), amounts),
    st.tuples(st.just("rate"), rates),
    st.tuples(st.sampled_from(["revalue", "revalue", "quarter", "reverse", "revise"]), st.just(Decimal(1))),
)  # fmt: skip


def turn(w: builders.World, clock, number: int, action: str, amount: Decimal) -> None:
    request = CapacityRequest.objects.order_by("-pk").first()
    pk, money = (request.pk if request else 0), Money(amount, "USD")
    if action in ("contract", "purchase"):
        mode = "reserved_1y" if action == "contract" else "owned"
        made = builders.in_review(w, str(amount), currency="USD", plan_mode=mode, start=today())
        builders.vote(made, w.lead)
    elif action == "rate":
        ExchangeRate.objects.update_or_create(
            base="USD", quote="CNY", as_of=today(), defaults={"rate": amount, "source": "t"}
        )
    elif action == "revalue":
        assert revaluation.revalue(by=w.finance).left == ()
        assert revaluation.revalue(by=w.finance).entries == 0  # once is enough
    elif action == "quarter":
        clock.shift(timedelta(days=92))
        month = w.organisation.fiscal_start_month
        for budget in Budget.objects.filter(closed_at=None).order_by("fiscal_year", "quarter"):
            if budget.period(month).end <= today():
                budget_changes.close_budget(budget_id=budget.pk, by=w.finance, carry_unused=True)
    elif action == "less":
        spending.commit(request_id=pk, amount=Money(-amount, "USD"), source=f"order:{number}",
                        by=w.procurement)  # fmt: skip
    elif action in ("commit", "invoice", "uncommit"):
        calls = {
            "commit": lambda: spending.commit(
                request_id=pk, amount=money, source=f"order:{number}", by=w.procurement
            ),
            "invoice": lambda: spending.post_actual(
                request_id=pk, amount=money, source=f"invoice:{number}", by=w.finance
            ),
            "uncommit": lambda: spending.release_commitment(
                request_id=pk, amount=money, source=f"cut:{number}", by=w.procurement, reason="r"
            ),
        }
        if request is not None:
            calls[action]()
    else:
        play(w, number, action, amount)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(turns, min_size=4, max_size=14))
def test_no_sequence_of_terms_rates_and_closings_breaks_an_invariant(moves):
    with (
        time_machine.travel(datetime(2026, 11, 20, 9, tzinfo=UTC), tick=False) as clock,
        transaction.atomic(),
    ):
        w = builders.world()
        ExchangeRate.objects.create(
            base="USD", quote="CNY", as_of=date(2026, 11, 1), rate=Decimal(7), source="t"
        )
        builders.fund(w, "9000")
        builders.fund(w, "9000", kind="cloud")
        for number, (action, amount) in enumerate([("contract", Decimal(100)), *moves]):
            try:
                with transaction.atomic():
                    turn(w, clock, number, action, amount)
            except DomainError:
                pass
            assert prove_ledger() == [], (action, amount)
            for found in balances(Budget.objects.all()).values():
                assert min(found.reserved, found.approved, found.committed, found.actual) >= 0
                assert found.allotted >= 0  # money that was never there did not go along
        transaction.set_rollback(True)
