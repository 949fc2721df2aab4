"""A contract over a term stands in each quarter it falls into; each budget holds its part, to the cent."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import time_machine
from django.db import transaction
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import DomainError, InputError, NotPermitted
from core.messages import Message
from core.models import AuditEntry, ExchangeRate, Job, Notice
from core.money import Money
from core.organisation import quarter_at
from core.quarters import Quarter
from planning import tasks
from planning.models import ApprovalPolicy, Budget
from planning.models.budgets import Bucket, EntryKind, LedgerEntry
from planning.selectors.approved import approved
from planning.selectors.budgets import balance, held
from planning.selectors.exposure import open_exposures
from planning.services import budget_changes, budgets, requests, revaluation, spending
from planning.services.ledger import OverBudget, budget_for
from planning.services.ledger_proof import prove_ledger
from planning.services.policy_edit import edit_policy
from tests.planning import builders

pytestmark = pytest.mark.django_db
TOTAL = "1000000.01"
START = date(2026, 12, 16)


@pytest.fixture
def w():
    with time_machine.travel(datetime(2026, 12, 1, 9, tzinfo=UTC), tick=False):
        yield builders.world()


def contract(w, amount: str = TOTAL, currency: str = "CNY", mode: str = "reserved_3y", **fields):
    return builders.in_review(
        w, amount, currency=currency, plan_mode=mode, start=START, need_by=START, **fields
    )


def allot(w, quarter: Quarter, amount: str) -> Budget:
    budget = budget_for(team=w.team, quarter=quarter, kind="cloud")
    LedgerEntry.objects.create(
        budget=budget, kind=EntryKind.ALLOTTED, bucket="allotted", amount=Decimal(amount),
        source=f"test:{budget.pk}:{budget.entries.count()}", original_amount=Decimal(amount),
        original_currency=budget.currency, rate_date=date(2026, 12, 1), posted_by=w.finance,
    )  # fmt: skip
    return budget


def by_quarter(request, bucket) -> dict[str, Decimal]:
    rows = held(request, bucket)
    budgets = Budget.objects.in_bulk(rows)
    return {budgets[pk].label: amount for pk, amount in rows.items()}


def test_three_years_stand_in_four_fiscal_years_and_sum_to_the_cent(w):
    builders.fund(w, "1000000", kind="cloud")
    request = contract(w)
    asked = by_quarter(request, Bucket.RESERVED)
    assert len(asked) == 13
    assert sum(asked.values()) == Decimal(TOTAL)
    builders.vote(request, w.lead)
    firm = by_quarter(request, Bucket.APPROVED)
    assert firm == asked
    assert {label[:4] for label in firm} == {"2026", "2027", "2028", "2029"}
    assert firm["2026Q4"] == pytest.approx(Decimal(TOTAL) * 16 / 1096, abs=Decimal("0.01"))

    requests.start_sourcing(request_id=request.pk, by=w.procurement)
    spending.commit(request_id=request.pk, amount=Money(Decimal(TOTAL), "CNY"),
                    source="order:PO-1", by=w.procurement)  # fmt: skip
    assert by_quarter(request, Bucket.COMMITTED) == firm
    assert by_quarter(request, Bucket.APPROVED) == {}
    assert prove_ledger() == []


def test_each_quarter_that_has_an_allotment_has_to_hold_its_part(w):
    builders.fund(w, "1000000", kind="cloud")
    short = allot(w, quarter_at().shift(3), "10")
    request = contract(w)
    with pytest.raises(OverBudget, match=short.label):
        builders.vote(request, w.lead)
    assert by_quarter(request, Bucket.APPROVED) == {}
    allot(w, quarter_at().shift(3), "200000")
    builders.vote(request, w.lead)
    assert request.status == "approved"


def test_where_the_rules_bind_nothing_ahead_a_later_quarter_needs_money_too(w):
    builders.fund(w, "1000000", kind="cloud")
    ApprovalPolicy.objects.update(bind_ahead=False)
    request = contract(w)
    with pytest.raises(OverBudget, match="2027Q1"):
        builders.vote(request, w.lead)


def started(request) -> bool:
    """Whether the review said that the request goes over a budget."""
    entry = AuditEntry.objects.get(action="request.review_started", object_id=str(request.pk))
    return entry.data["over_budget"]


def test_quarters_that_may_be_bound_ahead_make_a_request_no_over_budget_one(w):
    builders.fund(w, "1000000", kind="cloud")
    assert started(contract(w)) is False
    ApprovalPolicy.objects.update(bind_ahead=False)
    assert started(contract(w)) is True
    ApprovalPolicy.objects.update(bind_ahead=True)
    allot(
        w, quarter_at().shift(2), "10"
    )  # a later quarter of the term that has money has to hold its part
    assert started(contract(w)) is True


def test_the_tightest_of_budgets_in_two_currencies_is_found_in_one(w):
    rate("7", date(2026, 11, 30))
    builders.fund(w, "1000", kind="cloud")
    Budget.objects.create(team=w.team, fiscal_year=2027, quarter=1, kind="cloud", currency="USD")
    allot(w, quarter_at().next(), "900")  # 6300 yuan
    request = builders.planned(
        w, "200", plan_mode="leased", start=START, need_by=START, duration_days=32
    )
    with transaction.atomic():
        left = budgets.reserve(request=request, plan=request.current.plan,
                               policy=ApprovalPolicy.objects.get(active=True), by=w.finance)  # fmt: skip
    assert left == Money(Decimal(900), "CNY")


def test_where_the_rules_do_not_spread_the_whole_stands_in_the_quarter_of_the_decision(w):
    ApprovalPolicy.objects.update(spread_terms=False)
    builders.fund(w, TOTAL, kind="cloud")
    request = contract(w)
    builders.vote(request, w.lead)
    assert by_quarter(request, Bucket.APPROVED) == {"2026Q4": Decimal(TOTAL)}


def test_a_purchase_is_paid_once_and_not_spread(w):
    builders.fund(w, "5000")
    request = contract(w, "5000", mode="owned")
    builders.vote(request, w.lead)
    assert by_quarter(request, Bucket.APPROVED) == {"2026Q4": Decimal(5000)}


def test_a_cap_is_spread_like_the_amount(w):
    from planning.services import approvals

    builders.fund(w, "1000000", kind="cloud")
    request = contract(w)
    step = request.current.steps.get()
    approvals.decide(step_id=step.pk, decision="approve", by=w.lead, seen_hash=step.content_hash,
                     cap=Money(Decimal("500000.02"), "CNY"))  # fmt: skip
    assert sum(by_quarter(request, Bucket.APPROVED).values()) == Decimal("500000.02")


def test_an_invoice_falls_on_the_quarter_of_its_day_and_a_smaller_contract_gives_back_everywhere(w):
    builders.fund(w, "1000000", kind="cloud")
    request = contract(w)
    builders.vote(request, w.lead)
    spending.commit(request_id=request.pk, amount=Money(Decimal(TOTAL), "CNY"),
                    source="order:PO-1", by=w.procurement)  # fmt: skip
    before = by_quarter(request, Bucket.COMMITTED)
    spending.post_actual(request_id=request.pk, amount=Money(Decimal(2000), "CNY"),
                         source="invoice:1", by=w.finance, day=date(2027, 8, 15))  # fmt: skip
    after = by_quarter(request, Bucket.COMMITTED)
    assert before["2027Q3"] - after["2027Q3"] == 2000
    assert by_quarter(request, Bucket.ACTUAL) == {"2027Q3": Decimal(2000)}
    spending.commit(request_id=request.pk, amount=Money(Decimal("-99800.01"), "CNY"),
                    source="order:PO-1", revision=1, by=w.procurement)  # fmt: skip
    less = by_quarter(request, Bucket.COMMITTED)
    assert sum(less.values()) == sum(after.values()) - Decimal("99800.01")
    assert all(less[label] < after[label] for label in after)
    spending.release_commitment(request_id=request.pk, amount=Money(sum(less.values()), "CNY"),
                                source="order:PO-1:end", by=w.procurement, reason="ended")  # fmt: skip
    assert by_quarter(request, Bucket.COMMITTED) == {}
    assert prove_ledger() == []


def test_the_decider_sees_every_quarter(w, client):
    builders.fund(w, "1000000", kind="cloud")
    allot(w, quarter_at().shift(2), "10")
    request = contract(w)
    client.force_login(w.lead)
    for page in (reverse("approval-list"), request.get_absolute_url()):
        text = client.get(page).content.decode()
        for said in ("2026Q4", "2029Q4", "bound ahead", "Too little", "each of these budgets"):
            assert said in text, (page, said)


# --- the end of a quarter ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "said", "carried"), [
    ("lapse", False, 0), ("ask", False, 0), ("ask", True, 400), ("carry", False, 400),
])  # fmt: skip
def test_what_is_unused_is_carried_as_the_rules_say(w, rule, said, carried):
    ApprovalPolicy.objects.update(carry_over=rule)
    budget = builders.fund(w, "400", kind="cloud")
    with time_machine.travel(datetime(2027, 1, 2, 9, tzinfo=UTC), tick=False):
        budget_changes.close_budget(budget_id=budget.pk, by=w.finance, carry_unused=said)
        heir = budget_for(team=w.team, quarter=quarter_at(), kind="cloud")
    assert balance(heir).allotted == carried
    assert prove_ledger() == []


def test_where_the_rules_let_it_lapse_nobody_carries_it(w, client):
    ApprovalPolicy.objects.update(carry_over="lapse")
    budget = builders.fund(w, "400", kind="cloud")
    with time_machine.travel(datetime(2027, 1, 2, 9, tzinfo=UTC), tick=False):
        with pytest.raises(DomainError, match="lapse"):
            budget_changes.close_budget(budget_id=budget.pk, by=w.finance, carry_unused=True)
    budget.refresh_from_db()
    assert budget.closed_at is None


def test_what_was_bound_ahead_of_any_money_takes_none_along(w):
    """2027Q1 is bound and nobody put money into it: closing it gives the next quarter the contract and no money."""
    builders.fund(w, "1000000", kind="cloud")
    request = contract(w)
    builders.vote(request, w.lead)
    spending.commit(request_id=request.pk, amount=Money(Decimal(TOTAL), "CNY"),
                    source="order:PO-1", by=w.procurement)  # fmt: skip
    bound = by_quarter(request, Bucket.COMMITTED)
    with time_machine.travel(datetime(2027, 4, 2, 9, tzinfo=UTC), tick=False):
        for budget in Budget.objects.filter(fiscal_year__lt=2028, quarter__in=(4, 1)).order_by(
            "fiscal_year"
        ):
            if budget.label in ("2026Q4", "2027Q1"):
                budget_changes.close_budget(budget_id=budget.pk, by=w.finance)
    sums = {row.label: balance(row) for row in Budget.objects.all()}
    assert sum(found.allotted for found in sums.values()) == 1000000
    assert sums["2026Q4"].allotted == 1000000 - bound["2026Q4"]  # the rest lapsed
    assert sums["2027Q1"].allotted == 0
    assert sums["2027Q2"].allotted == bound["2026Q4"]
    assert sums["2027Q2"].committed == bound["2026Q4"] + bound["2027Q1"] + bound["2027Q2"]
    assert sums["2027Q2"].available == -bound["2027Q1"] - bound["2027Q2"]
    assert prove_ledger() == []


def test_an_order_from_a_reservation_without_money_takes_none_along(w):
    """Approved over quarters that are over when it is ordered: only the first of them had money."""
    builders.fund(w, "1000000", kind="cloud")
    request = contract(w)
    builders.vote(request, w.lead)
    firm = by_quarter(request, Bucket.APPROVED)
    with time_machine.travel(datetime(2027, 5, 2, 9, tzinfo=UTC), tick=False):
        spending.commit(request_id=request.pk, amount=Money(Decimal(TOTAL), "CNY"),
                        source="order:PO-1", by=w.procurement)  # fmt: skip
    sums = {row.label: balance(row) for row in Budget.objects.all()}
    assert sums["2027Q1"].allotted == 0
    assert sums["2027Q2"].allotted == firm["2026Q4"]
    assert sum(found.allotted for found in sums.values()) == 1000000
    assert prove_ledger() == []


def test_an_order_that_is_carried_takes_along_no_more_than_stands_behind_it(w):
    builders.fund(w, "1000000", kind="cloud")
    request = contract(w)
    builders.vote(request, w.lead)
    spending.commit(request_id=request.pk, amount=Money(Decimal(TOTAL), "CNY"),
                    source="order:PO-1", by=w.procurement)  # fmt: skip
    ahead, later = (
        budget_for(team=w.team, quarter=quarter_at().shift(n), kind="cloud") for n in (1, 2)
    )
    ApprovalPolicy.objects.update(two_person_budget=False)
    budget_changes.carry_order(
        giver_id=ahead.pk, receiver_id=later.pk, order="order:PO-1", request_id=request.pk,
        amount=Decimal(100), reason="r", by=w.finance,
    )  # fmt: skip
    assert balance(ahead).allotted == balance(later).allotted == 0
    assert prove_ledger() == []


# --- rates that move -----------------------------------------------------------------------------------------------


def rate(value: str, day: date = date(2026, 12, 1)) -> None:
    ExchangeRate.objects.create(base="USD", quote="CNY", rate=Decimal(value), as_of=day, source="t")


def ordered(w, usd: str = "100"):
    """Ordered for US dollars at 7, against a budget in yuan."""
    rate("7", date(2026, 11, 30))
    builders.fund(w, "100000")
    request = builders.in_review(w, usd, currency="USD")
    builders.vote(request, w.lead)
    spending.commit(request_id=request.pk, amount=Money(Decimal(usd), "USD"), source="order:PO-1",
                    by=w.procurement)  # fmt: skip
    return request


def test_a_rate_that_moved_is_an_entry_of_its_own_once(w):
    request = ordered(w)
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(700)}
    rate("7.5")
    assert revaluation.revalue(by=w.finance).entries == 1
    assert revaluation.revalue(by=w.finance).entries == 0
    entry = LedgerEntry.objects.get(kind=EntryKind.REVALUED)
    assert (entry.amount, entry.original_amount, entry.original_currency, entry.rate) == (
        50, 100, "USD", Decimal("7.5"),
    )  # fmt: skip
    assert balance(entry.budget).committed == 750
    assert balance(entry.budget).available == 100000 - 750
    assert AuditEntry.objects.filter(action="budget.revalued").count() == 1
    rate("6.9", date(2026, 12, 2))
    with time_machine.travel(datetime(2026, 12, 2, 9, tzinfo=UTC), tick=False):
        revaluation.revalue(by=w.finance)
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(690)}
    assert prove_ledger() == []


def test_what_was_paid_is_not_re_valued_and_payments_take_back_their_own_dollars(w):
    request = ordered(w)
    rate("8")
    spending.post_actual(request_id=request.pk, amount=Money(Decimal(40), "USD"),
                         source="invoice:1", by=w.finance)  # fmt: skip
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(380)}
    (left,) = open_exposures(request.pk)
    assert (left.original, left.amount) == (60, 380)
    revaluation.revalue(by=w.finance)
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(480)}  # 60 USD at 8
    assert by_quarter(request, Bucket.ACTUAL) == {"2026Q4": Decimal(320)}
    assert prove_ledger() == []


def test_what_a_rate_did_is_no_more_ordered_and_the_rest_of_the_approval_can_be_ordered(w):
    request = ordered(w)
    rate("20")
    revaluation.revalue(by=w.finance)
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(2000)}
    spending.commit(request_id=request.pk, amount=Money(Decimal(2), "CNY"), source="order:PO-2",
                    by=w.procurement)  # fmt: skip


def test_after_a_rate_moved_parts_are_cut_and_paid_up_to_what_was_ordered(w):
    """100 USD ordered at 7, valued at 20 since: neither what is cut nor what is paid counts with the new rate."""
    request = ordered(w)
    rate("20")
    revaluation.revalue(by=w.finance)
    spending.release_commitment(request_id=request.pk, amount=Money(Decimal(50), "USD"),
                                source="cut:1", by=w.procurement, reason="less")  # fmt: skip
    assert approved([request.pk])[request.pk].ordered == Money(Decimal(350), "CNY")
    for number, usd in enumerate(("20", "30")):
        spending.post_actual(request_id=request.pk, amount=Money(Decimal(usd), "USD"),
                             source=f"invoice:{number}", by=w.finance)  # fmt: skip
    assert by_quarter(request, Bucket.COMMITTED) == {}
    assert by_quarter(request, Bucket.ACTUAL) == {"2026Q4": Decimal(1000)}
    with pytest.raises(InputError, match="ordered are"):
        spending.post_actual(request_id=request.pk, amount=Money(Decimal(50), "USD"),
                             source="invoice:3", by=w.finance)  # fmt: skip
    assert prove_ledger() == []


def test_a_re_valuation_raises_no_ceiling_of_invoices(w):
    """100 USD ordered at 7 and valued at 20 since: 2000 yuan in yuan are more than what was ordered."""
    request = ordered(w)
    rate("20")
    revaluation.revalue(by=w.finance)
    with pytest.raises(InputError, match="ordered are"):
        spending.post_actual(request_id=request.pk, amount=Money(Decimal(1500), "CNY"),
                             source="invoice:1", by=w.finance)  # fmt: skip


def test_what_was_carried_to_the_next_quarter_is_still_measured_at_the_order(w):
    request = ordered(w)
    rate("20")
    revaluation.revalue(by=w.finance)
    budget = Budget.objects.get()
    with time_machine.travel(datetime(2027, 1, 2, 9, tzinfo=UTC), tick=False):
        budget_changes.close_budget(budget_id=budget.pk, by=w.finance)
        assert approved([request.pk])[request.pk].ordered == Money(Decimal(700), "CNY")
        with pytest.raises(InputError, match="ordered are"):
            spending.post_actual(request_id=request.pk, amount=Money(Decimal(1500), "CNY"),
                                 source="invoice:1", by=w.finance)  # fmt: skip


def worked() -> int:
    """Run what is queued; how many re-valuations that made."""
    before = LedgerEntry.objects.filter(kind=EntryKind.REVALUED).count()
    for job in Job.objects.filter(task=revaluation.TASK, status=Job.Status.QUEUED):
        tasks.revalue_now.run(str(job.pk))
        tasks.revalue_now.run(str(job.pk))  # delivered twice
    return LedgerEntry.objects.filter(kind=EntryKind.REVALUED).count() - before


def night() -> int:
    tasks.revalue_budgets()
    tasks.revalue_budgets()  # the clock may strike twice
    return worked()


def test_the_clock_re_values_from_the_policys_share_on_and_not_without_one(w):
    ordered(w)
    rate("7.06")  # 0.86 per cent
    assert night() == 0
    assert not Job.objects.exists()
    ApprovalPolicy.objects.update(revalue_from=Decimal("0.01"))
    assert night() == 0
    ApprovalPolicy.objects.update(revalue_from=Decimal("0.005"))
    assert night() == 1
    assert night() == 0


def test_a_run_of_finance_is_one_job_with_progress_and_a_trail(w):
    ordered(w)
    rate("7.5")
    job = revaluation.start(by=w.finance)
    assert revaluation.start(by=w.finance2).pk == job.pk  # the one that goes on
    assert (job.owner, job.status) == (w.finance, Job.Status.QUEUED)
    assert not LedgerEntry.objects.filter(
        kind=EntryKind.REVALUED
    ).exists()  # nothing while a page waits
    assert worked() == 1
    job.refresh_from_db()
    assert (job.status, job.percent) == (Job.Status.DONE, 100)
    assert str(Message.from_json(job.stage)) == "Re-valuations posted: 1"
    trail = AuditEntry.objects.filter(action__startswith="revaluation.").order_by("pk")
    assert [(row.action, row.actor) for row in trail] == [
        ("revaluation.started", w.finance), ("revaluation.ended", w.finance),
    ]  # fmt: skip
    assert trail[1].data["entries"] == 1
    again = revaluation.start(by=w.finance)
    assert again.pk != job.pk  # the ledger is another since
    assert worked() == 0
    assert revaluation.start(by=w.finance).pk == again.pk  # neither rates nor ledger moved


def test_a_run_that_was_stopped_goes_on_where_it_was(w):
    first = ordered(w)
    second = builders.in_review(w, "100", currency="USD")
    builders.vote(second, w.lead)
    rate("7.5")
    job = revaluation.start(by=w.finance)
    Job.objects.filter(pk=job.pk).update(cancel_requested=True)
    assert worked() == 0
    job.refresh_from_db()
    assert job.status == Job.Status.CANCELLED
    assert revaluation.start(by=w.finance2).pk == job.pk
    assert worked() == 2
    assert by_quarter(first, Bucket.COMMITTED) == by_quarter(second, Bucket.APPROVED)
    assert revaluation.revalue(by=w.finance).entries == 0


def test_a_document_without_a_rate_is_told_by_the_run(w):
    ordered(w)
    ExchangeRate.objects.all().delete()
    revaluation.start(by=w.finance)
    assert worked() == 0
    stage = str(Message.from_json(revaluation.newest_run().stage))
    assert "Left for want of a rate: 1" in stage
    assert "USD" in stage


def test_what_was_paid_in_a_quarter_that_is_closed_since_took_back_its_own_dollars(w):
    """One payment out of two quarters; when the first of them is closed, the second holds the same dollars."""
    rate("7", date(2026, 11, 30))
    builders.fund(w, "1000000", kind="cloud")
    request = contract(w, "1096", currency="USD")
    builders.vote(request, w.lead)
    spending.commit(request_id=request.pk, amount=Money(Decimal(1096), "USD"), source="order:PO-1",
                    by=w.procurement)  # fmt: skip
    rate("8")
    spending.post_actual(request_id=request.pk, amount=Money(Decimal(46), "USD"), source="invoice:1",
                         by=w.finance, day=date(2026, 12, 20))  # fmt: skip
    second = quarter_at().next()
    before = [row for row in open_exposures(request.pk) if budget_label(row) == str(second)]
    first = Budget.objects.get(fiscal_year=2026, quarter=4, kind="cloud")
    with time_machine.travel(datetime(2027, 1, 2, 9, tzinfo=UTC), tick=False):
        budget_changes.close_budget(budget_id=first.pk, by=w.finance)
    after = [row for row in open_exposures(request.pk) if budget_label(row) == str(second)]
    assert after == before
    assert all(row.budget_id != first.pk for row in open_exposures())
    assert prove_ledger() == []


def budget_label(row) -> str:
    return Budget.objects.get(pk=row.budget_id).label


def test_a_budget_in_another_currency_than_the_organisations_is_closed_into_one_of_its_own(w):
    budget = Budget.objects.create(
        team=w.team, fiscal_year=2026, quarter=4, kind="purchase", currency="USD"
    )
    with time_machine.travel(datetime(2027, 1, 2, 9, tzinfo=UTC), tick=False):
        budget_changes.close_budget(budget_id=budget.pk, by=w.finance)
        heir = Budget.objects.get(fiscal_year=2027, quarter=1)
    assert heir.currency == "USD"


def test_a_budget_that_a_rate_over_commits_is_told_to_finance(w):
    request = ordered(w)
    LedgerEntry.objects.create(
        budget=Budget.objects.get(), kind=EntryKind.ALLOTTED, bucket="allotted",
        amount=Decimal(-99290), source="test:less", original_amount=Decimal(-99290),
        original_currency="CNY", rate_date=date(2026, 12, 1),
    )  # fmt: skip
    rate("7.5")
    revaluation.revalue(by=w.finance)
    told = Notice.objects.filter(event="budget.revalued")
    assert set(told.values_list("recipient__name", flat=True)) == {"Fin Finance", "Fay Finance"}
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(750)}


def test_dollars_carried_to_the_next_quarter_are_still_dollars(w):
    request = ordered(w)
    budget = Budget.objects.get()
    with time_machine.travel(datetime(2027, 1, 2, 9, tzinfo=UTC), tick=False):
        budget_changes.close_budget(budget_id=budget.pk, by=w.finance)
        rate("7.5", date(2027, 1, 1))
        revaluation.revalue(by=w.finance)
    assert by_quarter(request, Bucket.COMMITTED) == {"2027Q1": Decimal(750)}
    assert prove_ledger() == []


def test_only_finance_re_values_by_page_and_api(w, client):
    ordered(w)
    rate("7.5")
    with pytest.raises(NotPermitted):
        revaluation.revalue(by=w.cto)
    client.force_login(w.procurement)
    assert client.post(reverse("budgets-revalue")).status_code == 403
    api = APIClient()
    api.force_authenticate(w.finance2)
    assert api.get("/api/v1/budgets/revalue/").status_code == 404
    client.force_login(w.finance)
    page = client.post(reverse("budgets-revalue"), follow=True).content.decode()
    assert "Re-valuing at new rates" in page
    assert "Queued" in page
    assert worked() == 1
    assert "Re-valuations posted: 1" in client.get(reverse("budget-list")).content.decode()
    detail = client.get(Budget.objects.get().get_absolute_url()).content.decode()
    assert "Re-valued" in detail
    with time_machine.travel(datetime(2026, 12, 1, 10, tzinfo=UTC), tick=False):
        answer = api.post("/api/v1/budgets/revalue/")
    assert (answer.status_code, answer.json()["status"]) == (202, "queued")
    worked()
    assert "No rate moved" in api.get("/api/v1/budgets/revalue/").json()["stage"]
    for person in (w.requester, w.procurement, w.cto):
        api.force_authenticate(person)
        assert api.get("/api/v1/budgets/revalue/").status_code == 403
        assert api.post("/api/v1/budgets/revalue/").status_code == 403


def test_a_tampered_re_valuation_is_found(w):
    ordered(w)
    budget = Budget.objects.get()
    request = budget.entries.exclude(request=None).first().request
    LedgerEntry.objects.create(
        budget=budget, kind=EntryKind.REVALUED, bucket="committed", amount=Decimal(99),
        source="revaluation:USD:x", request=request, original_amount=Decimal(100),
        original_currency="USD", rate=Decimal("7.5"), rate_date=date(2026, 12, 1),
    )  # fmt: skip
    assert "not at 7.5" in " ".join(str(finding) for finding in prove_ledger())


def test_the_rules_of_terms_and_rates_are_edited_as_data(w):
    made = edit_policy(
        rules=[{"group": 1, "authority": "team_lead"}], note="Yearly budgets", by=w.admin,
        options={"spread_terms": False, "bind_ahead": False, "carry_over": "carry",
                 "revalue_from": Decimal("0.02")},
    )  # fmt: skip
    assert (made.spread_terms, made.bind_ahead, made.carry_over, made.revalue_from) == (
        False, False, "carry", Decimal("0.02"),
    )  # fmt: skip
