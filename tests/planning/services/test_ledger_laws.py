"""Any sequence of ledger operations keeps every invariant."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import DomainError
from core.money import Money
from planning.models import Budget, CapacityRequest, LedgerEntry
from planning.selectors.budgets import balances
from planning.services import budget_changes, requests, spending
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
