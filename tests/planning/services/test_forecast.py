"""Forecast, costs of teams, and what-if: figures that follow from the ledger, and nothing written by looking."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import time_machine
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import DomainError, InputError, NotPermitted
from core.models import AuditEntry, ExchangeRate
from core.money import Money
from core.organisation import quarter_at, today
from planning import supply as supplies
from planning.capacity import ON_ORDER, OWNED, Supply
from planning.models import Budget, BudgetChange, LedgerEntry
from planning.selectors.budgets import balance
from planning.selectors.forecast import course, forecast
from planning.selectors.showback import showback
from planning.services import allocations, budget_changes, requests, scenarios, spending
from planning.services.ledger import budget_for
from planning.services.ledger_proof import prove_ledger
from planning.services.policy_presets import load_policy
from planning.services.scenarios import Change
from tests.planning import builders

pytestmark = pytest.mark.django_db
SLUG = "h100-sxm-80gb"


@pytest.fixture
def w():
    with time_machine.travel(datetime(2026, 10, 15, 4, tzinfo=UTC), tick=False) as clock:
        made = builders.world()
        made.clock = clock
        yield made


def api(user):
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def cny(amount):
    return Money(Decimal(amount), "CNY")


def ordered(w, amount="1000", number=1, **fields):
    request = builders.approved(w, amount, **fields)
    requests.start_sourcing(request_id=request.pk, by=w.procurement)
    spending.commit(
        request_id=request.pk, amount=cny(amount), source=f"order:PO-{number}", by=w.procurement
    )
    return request


# --- forecast -------------------------------------------------------------------------------------------------------


def test_the_year_adds_up_what_is_spent_bound_and_asked_for(w):
    builders.fund(w, "10000")
    first = ordered(w, "1000")
    spending.post_actual(request_id=first.pk, amount=cny(400), source="invoice:1", by=w.finance)
    builders.approved(w, "2000")
    builders.in_review(w, "500")
    found = forecast(w.finance)
    (cloud, purchase) = found.kinds
    assert (found.year, found.currency) == (2026, "CNY")
    assert (purchase.allotted, purchase.actual, purchase.bound) == (13000, 400, 2600)
    assert (purchase.pipeline, purchase.weighed) == (500, 375)  # (2 of 2 + 10 × 0.7) / 12
    assert (purchase.low, purchase.expected, purchase.high) == (3000, 3375, 3500)
    assert (cloud.actual, cloud.run_rate, cloud.months_left) == (0, 0, 2)
    assert found.total("left") == 13000 - 3375


def test_a_cloud_keeps_costing_what_it_cost_lately(w):
    request = builders.approved(w, "9000", plan_mode="on_demand", budget="cloud")
    for n, month in enumerate((7, 8, 9)):
        w.clock.move_to(datetime(2026, month, 20, 4, tzinfo=UTC))
        LedgerEntry.objects.create(
            budget=budget_for(team=w.team, quarter=quarter_at(), kind="cloud"), kind="actual", bucket="actual",
            amount=Decimal(1500), source=f"bill:{n}", request=request, original_amount=Decimal(1500),
            original_currency="CNY", rate_date=today(), posted_by=w.finance,
        )  # fmt: skip
    w.clock.move_to(datetime(2026, 10, 15, 4, tzinfo=UTC))
    cloud = forecast(w.finance).kinds[0]
    assert (cloud.run_rate, cloud.months_left) == (1500, 2)
    assert cloud.to_come == 9000  # more is bound than two months cost
    requests.revise(request_id=request.pk, by=w.requester, reason="less")
    assert forecast(w.finance).kinds[0].to_come == 3000


def test_the_course_runs_from_what_is_spent_to_the_expected_end(w):
    builders.fund(w, "10000")
    first = ordered(w, "1000")
    spending.post_actual(request_id=first.pk, amount=cny(400), source="invoice:1", by=w.finance)
    builders.in_review(w, "500")
    rows = course(forecast(w.finance), today())
    assert [row[0].month for row in rows] == [*range(1, 11), 10, 11, 12]
    assert rows[9][:3] == (date(2026, 10, 1), "spent", 400)
    assert rows[10][:3] == (date(2026, 10, 1), "forecast", 400)
    assert rows[-1][1:] == ("forecast", Decimal("1363.640"), 1000, 1500)


def test_a_reader_forecasts_only_what_they_may_see(w):
    builders.fund(w, "10000")
    other = w.outsider.teams.get()
    builders.fund(w, "777", team=other)
    assert forecast(w.requester).total("allotted") == 10000
    assert forecast(w.outsider).total("allotted") == 777
    assert forecast(w.finance).total("allotted") == 10777
    assert forecast(w.finance, team=other.pk).total("allotted") == 777
    assert forecast(w.superuser).total("allotted") == 0


def test_a_fiscal_year_that_starts_in_october_is_the_next_one(w):
    w.organisation.fiscal_start_month = 10
    w.organisation.save()
    found = forecast(w.finance)
    assert (found.year, found.first) == (2027, date(2026, 10, 1))
    assert (
        found.kinds[0].run_rate is None
    )  # no full month of the year has passed: unknown, not zero
    assert found.kinds[0].months_left == 11


# --- costs of teams -------------------------------------------------------------------------------------------------


@pytest.fixture
def stock(monkeypatch):
    monkeypatch.setattr(supplies, "_sources", [lambda on: [Supply(SLUG, 100, OWNED, on)]])
    monkeypatch.setattr(supplies, "_leads", [lambda slug: 60])


def booking(w, request, cards, first, last):
    return allocations.book(
        request_id=request.pk, cards=cards, first_day=first, last_day=last, by=w.operations
    )


def test_a_month_costs_its_card_days_at_the_plans_price_of_a_day(w, stock):
    bought = builders.approved(w, "876000")  # 8 cards over three years: 100 a card and day
    rented = builders.approved(
        w, "1600", plan_mode="reserved_1y", duration_days=100, budget="cloud"
    )  # 2 a card and day
    open_ended = builders.approved(w, "500", plan_mode="reserved_1y", budget="cloud")
    booking(w, bought, 8, date(2026, 10, 20), date(2026, 11, 5))
    booking(w, rented, 4, date(2026, 10, 30), date(2026, 10, 31))
    booking(w, open_ended, 1, date(2026, 10, 31), date(2026, 10, 31))
    w.clock.move_to(datetime(2026, 12, 1, 4, tzinfo=UTC))
    rows = showback(w.finance, date(2026, 10, 1))
    assert [(row.card_days, row.cost) for row in rows] == [
        (96, cny("9600.00")), (8, cny("16.00")), (1, None),
    ]  # fmt: skip
    (november,) = showback(w.finance, date(2026, 11, 1))
    assert november.card_days == 40
    assert november.idle_cost is None  # no telemetry: unknown, not zero
    assert showback(w.outsider, date(2026, 10, 1)) == []


def test_a_running_month_counts_up_to_today_and_the_file_names_the_cost_center(w, stock, client):
    w.team.cost_center = "=CC-7"
    w.team.save()
    request = builders.approved(w, "876000")
    booking(w, request, 8, date(2026, 10, 15), date(2026, 10, 31))
    client.force_login(w.finance)
    text = b"".join(
        client.get(reverse("team-costs-export", args=["csv"]) + "?month=2026-10").streaming_content
    ).decode()
    (row,) = csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    assert (row["card_days"], row["cost"], row["cost_center"]) == ("8", "800.00", "'=CC-7")
    client.force_login(w.outsider)
    text = b"".join(
        client.get(reverse("team-costs-export", args=["csv"])).streaming_content
    ).decode()
    assert request.reference not in text


# --- what if --------------------------------------------------------------------------------------------------------


def counts():
    return LedgerEntry.objects.count(), BudgetChange.objects.count(), Budget.objects.count()


def test_an_order_moved_by_a_quarter_relieves_one_budget_and_burdens_the_next(w):
    ordered(w, "1000")
    before = counts()
    outcome = scenarios.what_if(Change(order="order:PO-1", quarters=1), by=w.finance)
    now, later = sorted(outcome.lines, key=lambda line: line.quarter)
    assert (now.need, later.need) == (-1000, 1000)
    assert (now.after.available, later.after.available) == (1000, -1000)
    assert later.budget is None
    assert counts() == before


def test_what_was_invoiced_of_an_order_does_not_move(w):
    request = ordered(w, "1000")
    spending.post_actual(request_id=request.pk, amount=cny(600), source="invoice:1", by=w.finance)
    outcome = scenarios.what_if(Change(order="order:PO-1", quarters=1), by=w.finance)
    assert {line.need for line in outcome.lines} == {-400, 400}


def test_a_rate_touches_documents_in_that_currency_and_a_price_what_is_not_ordered(w):
    ExchangeRate.objects.create(
        base="USD", quote="CNY", rate=Decimal(7), as_of=today(), source="test"
    )
    builders.fund(w, "90000")
    abroad = builders.in_review(w, "1000", currency="USD")
    builders.vote(abroad, w.lead)
    ordered(w, "2000")
    (line,) = scenarios.what_if(Change(currency="USD", rate_percent=Decimal(10)), by=w.cto).lines
    assert line.moved["approved"] == 700
    assert "committed" not in line.moved
    (line,) = scenarios.what_if(Change(accelerator=SLUG, price_percent=Decimal(-5)), by=w.cto).lines
    assert dict(line.moved) == {"approved": -350}
    assert scenarios.what_if(Change(), by=w.cto).lines == ()


def test_a_moved_order_moves_its_cards_in_the_calendar(w, monkeypatch):
    ordered(w, "1000")
    coming = Supply(SLUG, 40, ON_ORDER, date(2026, 11, 1), label="PO-1")
    monkeypatch.setattr(supplies, "_sources", [lambda on: [coming]])
    (line,) = scenarios.what_if(Change(order="order:PO-1", quarters=1), by=w.finance).capacity
    assert [new.on_order for _old, new in line.months][:5] == [0, 0, 0, 0, 40]
    assert [old.on_order for old, _new in line.months][:3] == [0, 40, 40]


def test_a_proposal_carries_the_order_with_its_money_once_a_second_person_confirms(w):
    ordered(w, "1000")
    load_policy(preset="company", by=None)
    now = budget_for(team=w.team, quarter=quarter_at(), kind="purchase")
    (change,) = scenarios.propose(
        Change(order="order:PO-1", quarters=1), reason="The hall is late", by=w.finance
    )
    assert (change.status, change.giver, change.amount) == ("proposed", now, 1000)
    assert balance(now).committed == 1000
    with pytest.raises(NotPermitted):
        budget_changes.confirm_change(change_id=change.pk, by=w.finance)
    budget_changes.confirm_change(change_id=change.pk, by=w.finance2)
    later = change.budget
    assert later.label == "2027Q1"
    assert [(balance(row).committed, balance(row).available) for row in (now, later)] == [
        (0, 0), (1000, 0),
    ]  # fmt: skip
    assert prove_ledger() == []
    entry = AuditEntry.objects.get(action="scenario.proposed")
    assert (entry.team, entry.data["totals"]) == (w.team, ["1,000.00 CNY"])


def test_an_order_that_was_invoiced_meanwhile_is_not_carried_twice(w):
    request = ordered(w, "1000")
    load_policy(preset="company", by=None)
    (change,) = scenarios.propose(
        Change(order="order:PO-1", quarters=1), reason="late", by=w.finance
    )
    spending.post_actual(request_id=request.pk, amount=cny(600), source="invoice:1", by=w.finance)
    with pytest.raises(DomainError, match="still stands"):
        budget_changes.confirm_change(change_id=change.pk, by=w.finance2)
    assert prove_ledger() == []


def test_what_gets_dearer_is_asked_for_as_an_allotment(w):
    load_policy(preset="small_team", by=None)
    budget = builders.fund(w, "9000")
    request = builders.in_review(w, "1000")
    builders.vote(request, w.lead)
    (change,) = scenarios.propose(
        Change(accelerator=SLUG, price_percent=Decimal(10)), reason="dearer", by=w.finance
    )
    assert (change.budget, change.giver, change.amount) == (budget, None, 100)
    with pytest.raises(InputError):
        scenarios.propose(Change(), reason="nothing", by=w.finance)
    with pytest.raises(InputError):
        scenarios.propose(
            Change(accelerator=SLUG, price_percent=Decimal(1)), reason=" ", by=w.finance
        )


def test_who_may_try_and_who_may_propose(w):
    ordered(w, "1000")
    change = Change(order="order:PO-1", quarters=1)
    for name, person in w.people().items():
        if name in ("finance", "finance2", "cto", "procurement", "auditor"):
            scenarios.what_if(change, by=person)
        else:
            with pytest.raises(NotPermitted):
                scenarios.what_if(change, by=person)
        if name not in ("finance", "finance2"):
            with pytest.raises(NotPermitted):
                scenarios.propose(change, reason="x", by=person)
    assert not BudgetChange.objects.exists()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("order", Change(order="order:none", quarters=1)),
        ("quarters", Change(order="order:PO-1", quarters=9)),
        ("rate_percent", Change(currency="USD", rate_percent=Decimal(-100))),
        ("price_percent", Change(accelerator=SLUG, price_percent=Decimal("NaN"))),
    ],
)
def test_what_cannot_be_tried_is_refused_by_name(w, field, change):
    with pytest.raises(InputError) as error:
        scenarios.what_if(change, by=w.finance)
    assert error.value.field == field


# --- pages and API --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_pages_show_and_propose(w, client, stock, language):
    request = ordered(w, "1000")
    booking(w, request, 8, date(2026, 10, 15), date(2026, 12, 31))
    for person in (w.finance, w.requester):
        person.language = language
        person.save()
    client.force_login(w.finance)
    assert "2026" in client.get(reverse("budget-forecast")).content.decode()
    assert request.reference in client.get(reverse("team-costs")).content.decode()
    page = client.get(reverse("ledger-what-if"), {"order": "order:PO-1", "quarters": 1})
    assert page.status_code == 200
    assert "2027Q1" in page.content.decode()
    assert client.get(reverse("ledger-what-if"), {"quarters": 99}).status_code == 422
    client.post(
        reverse("ledger-propose"),
        {"order": "order:PO-1", "quarters": 1, "reason": "The hall is late"},
    )
    assert BudgetChange.objects.get().amount == 1000
    client.force_login(w.requester)
    assert client.get(reverse("budget-forecast")).status_code == 200
    assert client.get(reverse("ledger-what-if")).status_code == 403


def test_the_api_does_the_same(w, stock):
    request = ordered(w, "1000")
    booking(w, request, 8, date(2026, 10, 15), date(2026, 12, 31))
    found = api(w.finance).get(reverse("api-forecast")).data
    assert found["kinds"][1]["bound"] == "1000.000"
    assert api(w.finance).get(reverse("api-forecast"), {"year": "x"}).data["field"] == "year"
    rows = api(w.finance).get(reverse("api-showback"), {"month": "2026-10"}).data
    assert rows[0]["request"] == request.reference
    assert api(w.outsider).get(reverse("api-showback")).data == []
    body = {"order": "order:PO-1", "quarters": 1}
    answer = api(w.cto).post(reverse("api-what-if"), body, format="json")
    assert {row["quarter"] for row in answer.data["lines"]} == {"2026Q4", "2027Q1"}
    assert api(w.requester).post(reverse("api-what-if"), body, format="json").status_code == 403
    body["reason"] = "late"
    propose = reverse("api-what-if-propose")
    assert api(w.cto).post(propose, body, format="json").status_code == 403
    assert api(w.finance).post(propose, body, format="json").status_code == 201
