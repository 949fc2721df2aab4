"""Corners of the ledger: what is taken back stands where it was bound; a rate is no promise; closed quarters."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import time_machine

from core.models import ExchangeRate
from core.money import Money
from planning.models import Budget
from planning.models.budgets import Bucket
from planning.selectors.budgets import held
from planning.services import spending
from planning.services.ledger_proof import prove_ledger
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock():
    with time_machine.travel(datetime(2026, 12, 1, 9, tzinfo=UTC), tick=False) as clock:
        yield clock


@pytest.fixture
def w(clock):
    return builders.world()


def cny(amount: str) -> Money:
    return Money(Decimal(amount), "CNY")


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


def rate(value: str, day: date = date(2026, 12, 1)) -> None:
    ExchangeRate.objects.update_or_create(
        base="USD", quote="CNY", as_of=day, defaults={"rate": Decimal(value), "source": "t"}
    )


def by_quarter(request, bucket) -> dict[str, Decimal]:
    rows = held(request, bucket)
    budgets = Budget.objects.in_bulk(rows)
    return {budgets[pk].label: amount for pk, amount in rows.items()}


def test_less_of_an_order_is_taken_from_the_quarter_in_which_it_stands(w, clock):
    request = builders.approved(w)
    spending.commit(request_id=request.pk, amount=cny("900"), source="order:1", by=w.procurement)
    clock.move_to(datetime(2027, 1, 5, 9, tzinfo=UTC))  # the quarter ended and is not closed yet
    spending.commit(
        request_id=request.pk, amount=cny("-300"), source="order:1", revision=1, by=w.procurement
    )
    assert by_quarter(request, Bucket.COMMITTED) == {"2026Q4": Decimal(600)}
    assert prove_ledger() == []
