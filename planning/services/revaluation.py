"""When rates move, what is bound in another currency is bound for more or less: told by entries of their own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import transaction

from core.audit import record
from core.exchange import MissingRate, rate_on
from core.messages import Message, msg
from core.models import Organisation, User
from core.money import ExchangeRate, Money, minor_digits, round_amount
from core.organisation import today
from core.outbox import notify
from core.roles import Role
from planning.models.budgets import Budget, EntryKind, LedgerEntry
from planning.models.requests import CapacityRequest
from planning.selectors.budgets import balance
from planning.selectors.exposure import Exposure, open_exposures
from planning.services.ledger import lock_budgets, policy_in_force, post, require_keeper
from planning.services.moves import lock_request


@dataclass(frozen=True, slots=True)
class Revalued:
    """How many entries were made, and which documents have no rate to be valued at."""

    entries: int
    left: tuple[Message, ...]


def revalue(*, by: User | None) -> Revalued:
    """Value what is approved or ordered in another currency than its budget at today's rate, each request in a
    transaction of its own.

    By finance (`by`) every movement counts; by the clock (None) those of at least the policy's share, and none where
    the policy names no share. Doing it again on the same rates makes nothing. Raises NotPermitted.
    """
    least = Decimal(0)
    if by is None:
        policy = policy_in_force()
        if policy is None or policy.revalue_from is None or not Organisation.objects.exists():
            return Revalued(0, ())
        least = policy.revalue_from
    else:
        require_keeper(by)
    day, made, left = today(), 0, []
    for request_id in sorted({row.request_id for row in open_exposures()}):
        try:
            made += _revalue_request(request_id, day, least, by)
        except MissingRate as error:
            left.append(error.message)
    return Revalued(made, tuple(left))


@transaction.atomic
def _revalue_request(request_id: int, day: date, least: Decimal, by: User | None) -> int:
    request = lock_request(request_id)
    budgets = lock_budgets(row.budget_id for row in open_exposures(request_id))
    moved: dict[int, Decimal] = defaultdict(Decimal)
    made = 0
    for row in open_exposures(request_id):
        budget = budgets.get(row.budget_id)
        if budget is None or budget.closed_at is not None:
            continue
        rate = _into(rate_on(row.currency, budget.currency, day), row.currency, budget.currency)
        due = round_amount(row.original * rate.rate, budget.currency)
        unit = Decimal(1).scaleb(-minor_digits(budget.currency))
        # A part may hold a fraction of the smallest unit: less than one of them is no movement.
        if abs(due - row.amount) < max(unit, least * row.amount):
            continue
        delta = round_amount(due - row.amount, budget.currency)
        _post(row, budget=budget, request=request, delta=delta, rate=rate, by=by)
        moved[budget.pk] += delta
        made += 1
    for budget_id, delta in moved.items():
        budget = budgets[budget_id]
        left = balance(budget).available
        record(
            "budget.revalued", on=budget, by=by, request=request.pk, amount=str(Money(delta, budget.currency)),
            available=str(Money(left, budget.currency)),
        )  # fmt: skip
        if left < 0 <= left + delta:
            people = User.objects.filter(
                is_active=True, memberships__role=Role.FINANCE, memberships__team=None
            )
            notify(
                people.distinct(), "budget.revalued", on=budget,
                message=msg("Exchange rates moved: %(budget)s is over-committed by %(amount)s",
                            budget=str(budget), amount=str(Money(-left, budget.currency))),
                url=budget.get_absolute_url(), revision=day.isoformat(),
            )  # fmt: skip
    return made


def _into(rate: ExchangeRate, base: str, quote: str) -> ExchangeRate:
    """The rate as what one `base` costs, with the digits that the ledger keeps."""
    value = rate.rate if rate.base == base else Decimal(1) / rate.rate
    return ExchangeRate(base, quote, round(value, 8), rate.as_of, rate.source)


def _post(
    row: Exposure, *, budget: Budget, request: CapacityRequest, delta: Decimal, rate: ExchangeRate,
    by: User | None,
) -> None:  # fmt: skip
    source = f"revaluation:{row.currency}:request:{request.pk}"
    before = LedgerEntry.objects.filter(
        budget=budget, source=source, kind=EntryKind.REVALUED, bucket=row.bucket
    ).count()
    post(
        budget=budget, kind=EntryKind.REVALUED, bucket=row.bucket, amount=delta, source=source,
        revision=before, request=request, original=Money(round(row.original, 6), row.currency),
        rate=rate, by=by,
    )  # fmt: skip
