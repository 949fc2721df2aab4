from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction

from core.errors import DomainError, InputError, InvalidTransition, NotPermitted
from core.models import AppendOnlyError, ExchangeRate, Notice
from core.money import Money
from core.organisation import today
from planning import tasks
from planning.models import Budget, LedgerEntry
from planning.selectors.budgets import balance
from planning.services import budget_changes, budgets, requests, spending
from planning.services.ledger import AlreadyPosted, OverBudget
from planning.services.ledger_proof import prove_ledger
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def cny(amount: str) -> Money:
    return Money(Decimal(amount), "CNY")


def sums(budget: Budget) -> tuple[str, ...]:
    found = balance(budget)
    return tuple(
        f"{getattr(found, name).normalize():f}"
        for name in ("allotted", "reserved", "approved", "committed", "actual", "available")
    )


def test_money_moves_from_asked_for_to_spent_and_counts_once(w):
    budget = builders.fund(w, "2000")
    request = builders.in_review(w, "1000")
    assert sums(budget) == ("2000", "1000", "0", "0", "0", "2000")
    builders.vote(request, w.lead)
    assert sums(budget) == ("2000", "0", "1000", "0", "0", "1000")
    spending.commit(request_id=request.pk, amount=cny("900"), source="order:1", by=w.procurement)
    assert sums(budget) == ("2000", "0", "100", "900", "0", "1000")
    spending.post_actual(request_id=request.pk, amount=cny("500"), source="invoice:1", by=w.finance)
    assert sums(budget) == ("2000", "0", "100", "400", "500", "1000")
    requests.start_sourcing(request_id=request.pk, by=w.procurement)
    requests.record_fulfilment(request_id=request.pk, accepted=8, by=None)
    assert sums(budget) == ("2000", "0", "0", "400", "500", "1100")
    assert prove_ledger() == []


def test_the_same_document_is_posted_once(w):
    request = builders.approved(w)
    spending.commit(request_id=request.pk, amount=cny("400"), source="order:1", by=w.procurement)
    with pytest.raises(AlreadyPosted):
        spending.commit(
            request_id=request.pk, amount=cny("400"), source="order:1", by=w.procurement
        )
    spending.commit(
        request_id=request.pk, amount=cny("-100"), source="order:1", revision=1, by=w.procurement
    )
    assert builders.held_sums(request)["committed"] == 300


def test_an_order_in_another_currency_keeps_amount_rate_and_date(w):
    ExchangeRate.objects.create(
        base="USD", quote="CNY", rate=Decimal("7.25"), as_of=today(), source="test"
    )
    request = builders.approved(w)
    entry = spending.commit(
        request_id=request.pk,
        amount=Money(Decimal("100"), "USD"),
        source="order:1",
        by=w.procurement,
    )
    assert (entry.amount, entry.original_amount, entry.original_currency, entry.rate, entry.rate_date) == (
        Decimal("725"), Decimal("100"), "USD", Decimal("7.25"), today(),
    )  # fmt: skip


def test_two_lines_of_one_order_are_tested_as_their_sum(w):
    request = builders.approved(w, "100")
    with pytest.raises(OverBudget):
        spending.commit(
            request_id=request.pk, amount=cny("105"), source="order:1", by=w.procurement
        )
    assert not LedgerEntry.objects.filter(kind="committed").exists()


def test_spent_money_is_not_counted_twice_against_a_new_request(w):
    budget = builders.fund(w, "20")
    first = builders.in_review(w, "11")
    builders.vote(first, w.lead)
    spending.commit(request_id=first.pk, amount=cny("11"), source="order:1", by=w.procurement)
    spending.post_actual(request_id=first.pk, amount=cny("11"), source="invoice:1", by=w.finance)
    second = builders.in_review(w, "5")
    builders.vote(second, w.lead)
    assert balance(budget).available == 4


def test_an_open_order_leaves_nothing_for_the_next(w):
    first = builders.approved(w, "100")
    spending.commit(request_id=first.pk, amount=cny("100"), source="order:1", by=w.procurement)
    second = builders.in_review(w, "1")
    assert balance(Budget.objects.get()).available == 0
    with pytest.raises(OverBudget):
        builders.vote(second, w.lead)


def test_more_than_ordered_is_not_spent_beyond_the_tolerance(w):
    request = builders.approved(w, "100")
    with pytest.raises(InputError):
        spending.post_actual(
            request_id=request.pk, amount=cny("1"), source="invoice:0", by=w.finance
        )
    spending.commit(request_id=request.pk, amount=cny("100"), source="order:1", by=w.procurement)
    with pytest.raises(InputError) as caught:
        spending.post_actual(
            request_id=request.pk, amount=cny("102.01"), source="invoice:1", by=w.finance
        )
    assert caught.value.limit == Decimal("102.00")
    spending.post_actual(request_id=request.pk, amount=cny("102"), source="invoice:1", by=w.finance)
    with pytest.raises(InputError):
        spending.post_actual(
            request_id=request.pk, amount=cny("0.1"), source="invoice:2", by=w.finance
        )


@pytest.mark.parametrize(
    "who", ["requester", "lead", "cto", "finance", "auditor", "superuser", "admin"]
)
def test_only_procurement_commits(w, who):
    request = builders.approved(w)
    with pytest.raises(NotPermitted):
        spending.commit(
            request_id=request.pk, amount=cny("1"), source="order:1", by=getattr(w, who)
        )


def test_an_order_needs_an_approved_request(w):
    request = builders.in_review(w)
    with pytest.raises(DomainError, match="approved"):
        spending.commit(request_id=request.pk, amount=cny("1"), source="order:1", by=w.procurement)


def test_a_standing_order_stops_cancel_and_revise(w):
    request = builders.approved(w)
    spending.commit(request_id=request.pk, amount=cny("1000"), source="order:1", by=w.procurement)
    for attempt in (
        lambda: requests.cancel_request(request_id=request.pk, by=w.cto, reason="x"),
        lambda: requests.revise(request_id=request.pk, by=w.requester, reason="x"),
    ):
        with pytest.raises(InvalidTransition, match="order"):
            attempt()
    spending.release_commitment(
        request_id=request.pk,
        amount=cny("1000"),
        source="order:1",
        by=w.procurement,
        reason="cancelled",
    )
    requests.cancel_request(request_id=request.pk, by=w.cto, reason="x")
    assert prove_ledger() == []


def test_the_quarter_is_that_of_the_decision_where_the_organisation_is(time_machine):
    time_machine.move_to(
        "2026-09-30T15:30:00Z"
    )  # 23:30 in Shanghai, the last day of its fiscal year
    w = builders.world(fiscal_start_month=10)
    request = builders.approved(w)
    assert request.ledger.filter(bucket="approved").get().budget.label == "2026Q4"

    time_machine.move_to("2026-09-30T16:30:00Z")  # 00:30 on 1 October
    late = builders.approved(w)
    assert late.ledger.filter(bucket="approved").get().budget.label == "2027Q1"


def test_an_order_of_the_next_quarter_takes_its_money_along(time_machine):
    time_machine.move_to("2026-12-31T04:00:00Z")
    w = builders.world()
    request = builders.approved(w)
    time_machine.move_to("2027-01-04T04:00:00Z")
    spending.commit(request_id=request.pk, amount=cny("800"), source="order:1", by=w.procurement)

    old, new = Budget.objects.order_by("fiscal_year")
    assert sums(old) == ("200", "0", "200", "0", "0", "0")
    assert sums(new) == ("800", "0", "0", "800", "0", "0")
    assert prove_ledger() == []


def test_closing_a_quarter_carries_what_is_promised_and_lets_the_rest_lapse(time_machine):
    time_machine.move_to("2026-12-01T04:00:00Z")
    w = builders.world()
    builders.fund(w, "500")
    request = builders.approved(w)
    builders.in_review(w, "300")
    spending.commit(request_id=request.pk, amount=cny("600"), source="order:1", by=w.procurement)
    budget = Budget.objects.get()
    with pytest.raises(DomainError, match="still runs"):
        budget_changes.close_budget(budget_id=budget.pk, by=w.finance)

    time_machine.move_to("2027-01-01T04:00:00Z")
    budget_changes.close_budget(budget_id=budget.pk, by=w.finance)
    old, new = Budget.objects.order_by("fiscal_year")
    assert sums(old) == ("500", "0", "0", "0", "0", "500")
    assert sums(new) == ("1000", "300", "400", "600", "0", "0")
    assert prove_ledger() == []
    with pytest.raises(DomainError, match="closed"):
        budget_changes.allot(budget_id=old.pk, amount=Decimal(1), reason="late", by=w.finance)


def test_one_person_allots_in_a_small_team_and_two_in_a_company(w):
    budget = builders.fund(w, "1")
    assert (
        budget_changes.allot(
            budget_id=budget.pk, amount=Decimal(9), reason="plan", by=w.finance
        ).status
        == "posted"
    )
    assert balance(budget).allotted == 10

    from planning.services.policy_presets import load_policy

    load_policy(preset="company", by=None)
    change = budget_changes.allot(
        budget_id=budget.pk, amount=Decimal(5), reason="plan", by=w.finance
    )
    assert change.status == "proposed"
    for person in (w.finance, w.lead, w.superuser, w.admin):
        with pytest.raises(NotPermitted):
            budget_changes.confirm_change(change_id=change.pk, by=person)
    assert balance(budget).allotted == 10
    budget_changes.confirm_change(change_id=change.pk, by=w.cto)
    assert balance(budget).allotted == 15
    with pytest.raises(InvalidTransition):
        budget_changes.confirm_change(change_id=change.pk, by=w.finance2)


def test_a_transfer_sums_to_nothing_and_gives_no_more_than_is_free(w):
    giver = builders.fund(w, "100")
    receiver = builders.fund(w, "1", kind="cloud")
    budget_changes.transfer(
        giver_id=giver.pk, receiver_id=receiver.pk, amount=Decimal(60), reason="r", by=w.finance
    )
    assert (balance(giver).allotted, balance(receiver).allotted) == (40, 61)
    with pytest.raises(OverBudget):
        budget_changes.transfer(
            giver_id=giver.pk,
            receiver_id=receiver.pk,
            amount=Decimal("40.01"),
            reason="r",
            by=w.finance,
        )
    assert prove_ledger() == []


def test_a_reversal_mirrors_the_whole_posting_by_another_person(w):
    giver = builders.fund(w, "100")
    receiver = builders.fund(w, "1", kind="cloud")
    change = budget_changes.transfer(
        giver_id=giver.pk, receiver_id=receiver.pk, amount=Decimal(60), reason="r", by=w.finance
    )
    entry = LedgerEntry.objects.filter(source=change.source).first()
    with pytest.raises(NotPermitted):
        budget_changes.reverse(entry_id=entry.pk, reason="wrong", by=w.finance)
    budget_changes.reverse(entry_id=entry.pk, reason="wrong", by=w.finance2)
    assert (balance(giver).allotted, balance(receiver).allotted) == (100, 1)
    with pytest.raises(InvalidTransition):
        budget_changes.reverse(entry_id=entry.pk, reason="again", by=w.finance2)
    assert prove_ledger() == []


def test_reversing_an_invoice_restores_the_commitment(w):
    request = builders.approved(w)
    spending.commit(request_id=request.pk, amount=cny("1000"), source="order:1", by=w.procurement)
    (entry,) = spending.post_actual(
        request_id=request.pk, amount=cny("700"), source="invoice:1", by=w.finance
    )
    budget_changes.reverse(entry_id=entry.pk, reason="wrong order", by=w.finance2)
    assert builders.held_sums(request)["committed"] == 1000
    assert builders.held_sums(request)["actual"] == 0


def test_an_entry_cannot_be_changed_or_deleted_by_any_path(w):
    entry = builders.fund(w, "1").entries.get()
    for attempt in (entry.save, entry.delete, LedgerEntry.objects.all().delete):
        with pytest.raises(AppendOnlyError):
            attempt()
    for statement in (
        "UPDATE planning_ledgerentry SET amount = 2",
        "DELETE FROM planning_ledgerentry",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


def test_an_unapproved_reservation_expires(w, time_machine):
    time_machine.move_to("2026-01-05T04:00:00Z")
    request = builders.in_review(w)
    assert budgets.expiring_requests() == []
    time_machine.move_to("2026-04-06T04:00:00Z")
    assert budgets.expiring_requests() == [request.pk]
    assert budgets.expire_reservation(request_id=request.pk)
    assert not budgets.expire_reservation(request_id=request.pk)
    assert builders.held_sums(request)["reserved"] == 0


def test_the_proof_finds_what_does_not_add_up(w):
    request = builders.approved(w)
    budget = Budget.objects.get()
    common = {"budget": budget, "original_currency": "CNY", "rate_date": today()}
    LedgerEntry.objects.create(
        kind="transferred",
        bucket="allotted",
        amount=5,
        original_amount=5,
        source="change:9",
        **common,
    )
    LedgerEntry.objects.create(
        kind="released", bucket="approved", amount=-2000, original_amount=-2000, source="x", request=request,
        **common,
    )  # fmt: skip
    LedgerEntry.objects.create(
        kind="committed", bucket="committed", amount=5, original_amount=7, source="y", **common
    )
    found = " ".join(str(finding) for finding in prove_ledger())
    assert "change:9" in found
    assert "approved" in found
    assert "7.00 CNY" in found


def test_the_nightly_proof_tells_finance_once(w):
    assert tasks.prove_ledger() == 0
    builders.fund(w, "1")
    LedgerEntry.objects.create(
        budget=Budget.objects.get(), kind="transferred", bucket="allotted", amount=5, original_amount=5,
        source="change:9", original_currency="CNY", rate_date=today(),
    )  # fmt: skip
    assert tasks.prove_ledger() == tasks.prove_ledger() == 1
    told = Notice.objects.filter(event="ledger.unsound").values_list("recipient", flat=True)
    assert sorted(told) == sorted([w.finance.pk, w.finance2.pk, w.admin.pk])


def test_the_clock_ends_reservations_and_tells_the_requester(w, time_machine):
    time_machine.move_to("2026-01-05T04:00:00Z")
    builders.in_review(w)
    time_machine.move_to("2026-04-06T04:00:00Z")
    assert (tasks.expire_reservations(), tasks.expire_reservations()) == (1, 0)
    assert Notice.objects.get(event="reservation.expired").recipient == w.requester
