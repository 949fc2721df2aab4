"""The budget ledger's rows: every amount is posted once, nothing is changed, and the locked budget row decides races.

Lock order everywhere: the request, then budget rows by ascending id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import IntegrityError

from core.errors import DomainError, StaleData
from core.exchange import rate_on
from core.messages import msg
from core.models import Team, User
from core.money import ExchangeRate, Money, round_amount
from core.organisation import organisation, today
from core.policies import require
from core.quarters import Quarter
from planning import policies
from planning.models.approvals import ApprovalPolicy
from planning.models.budgets import Budget, LedgerEntry
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest, RequestRevision
from planning.selectors.budgets import held


class OverBudget(DomainError):
    """The budget does not hold the amount."""

    code = "over_budget"


class AlreadyPosted(DomainError):
    """This document was posted before."""

    code = "already_posted"


class BudgetClosed(DomainError):
    """The quarter is closed: entries go to an open one."""

    code = "budget_closed"


def budget_for(*, team: Team, quarter: Quarter, kind: str, currency: str = "") -> Budget:
    """The team's budget row; made with nothing allotted, in the organisation's currency, when there is none."""
    key = {"team": team, "fiscal_year": quarter.year, "quarter": quarter.q, "kind": kind}
    found = Budget.objects.filter(**key).order_by().first()  # one at most
    if found is None:
        defaults = {"currency": currency or organisation().currency}
        found, _created = Budget.objects.get_or_create(**key, defaults=defaults)
    found.team = team
    return found


def budgets_for(
    *, team: Team, shares: Iterable[tuple[Quarter, int]], kind: str, currency: str = ""
) -> list[Budget]:
    """The team's budget row of each quarter of a spread (see selectors.spread.quarters_of)."""
    return [
        budget_for(team=team, quarter=quarter, kind=kind, currency=currency)
        for quarter, _days in shares
    ]


def lock_budgets(ids: Iterable[int]) -> dict[int, Budget]:
    """Budget rows by id, locked in ascending order."""
    rows = Budget.objects.select_for_update(of=("self",)).select_related("team")
    return {row.pk: row for row in rows.filter(pk__in=set(ids)).order_by("pk")}


def lock_standing(
    request: CapacityRequest, buckets: Iterable[str], *, also: Iterable[int] = ()
) -> tuple[dict[int, Budget], dict[str, dict[int, Decimal]]]:
    """Lock the budgets that hold anything for `request` in `buckets` (and those in `also`); read what they hold."""
    buckets = list(buckets)
    before = {pk for bucket in buckets for pk in held(request, bucket)}
    budgets = lock_budgets([*before, *also])
    standing = {bucket: held(request, bucket) for bucket in buckets}
    if any(pk not in budgets for found in standing.values() for pk in found):
        raise StaleData()  # a quarter was closed between the two reads
    return budgets, standing


def entry_of(
    *,
    budget: Budget,
    kind: str,
    bucket: str,
    amount: Decimal,
    source: str,
    by: User | None,
    revision: int = 0,
    request: CapacityRequest | None = None,
    original: Money | None = None,
    rate: ExchangeRate | None = None,
    reverses: LedgerEntry | None = None,
    reason: str = "",
    day: date | None = None,
) -> LedgerEntry:
    """One entry for a locked budget, not stored yet. Raises BudgetClosed."""
    if budget.closed_at is not None:
        raise BudgetClosed(msg("The budget %(budget)s is closed", budget=str(budget)))
    original = original or Money(amount, budget.currency)
    return LedgerEntry(
        budget=budget,
        kind=kind,
        bucket=bucket,
        amount=round_amount(amount, budget.currency),
        source=source,
        revision=revision,
        request=request,
        original_amount=original.amount,
        original_currency=original.currency,
        rate=rate.rate if rate and rate.base == original.currency else _inverse(rate),
        rate_date=rate.as_of if rate else day or today(),
        reverses=reverses,
        posted_by=by,
        reason=reason[:300],
    )


def post(**facts: Any) -> LedgerEntry:
    """Add one entry (see entry_of) to a locked budget. Raises AlreadyPosted or BudgetClosed."""
    entry = entry_of(**facts)
    if LedgerEntry.objects.filter(
        budget=entry.budget, source=entry.source, kind=entry.kind, bucket=entry.bucket,
        revision=entry.revision,
    ).exists():  # fmt: skip
        raise _posted_before(entry)
    entry.save()
    return entry


def post_all(entries: Sequence[LedgerEntry]) -> None:
    """Add entries to locked budgets in one statement; the database refuses what was posted before."""
    try:
        LedgerEntry.objects.bulk_create(entries)
    except IntegrityError as error:
        raise _posted_before(entries[0]) from error


def _posted_before(entry: LedgerEntry) -> AlreadyPosted:
    return AlreadyPosted(
        msg("%(source)s was posted to %(budget)s before", source=entry.source, budget=str(entry.budget))
    )  # fmt: skip


def over_budget(budget: Budget, available: Decimal, amount: Decimal) -> OverBudget:
    """The refusal, with both figures."""
    return OverBudget(
        msg(
            "%(budget)s has %(available)s left; this needs %(amount)s",
            budget=str(budget),
            available=str(Money(available, budget.currency)),
            amount=str(Money(amount, budget.currency)),
        )
    )


def _inverse(rate: ExchangeRate | None) -> Decimal:
    return Decimal(1) if rate is None else Decimal(1) / rate.rate


def in_currency(
    money: Money, currency: str, day: date | None = None, paid: ExchangeRate | None = None
) -> tuple[Money, ExchangeRate]:
    """`money` in `currency` at the rate of `day` (today when None), or at what the bank took (`paid`); and the rate."""
    fits = paid is not None and {paid.base, paid.quote} == {money.currency, currency}
    rate = paid if paid is not None and fits else rate_on(money.currency, currency, day or today())
    return (money.rounded() if rate.base == rate.quote else money.convert(rate)), rate


def plan_rate(plan: PlanChoice, currency: str, day: date | None = None) -> ExchangeRate:
    """The rate at which the plan's amount is in a budget's currency: the frozen one where that leads there."""
    if plan.base_currency == currency != plan.currency:
        return ExchangeRate(plan.currency, currency, plan.rate, plan.rate_date)
    return rate_on(plan.currency, currency, day or today())


def policy_in_force() -> ApprovalPolicy | None:
    """The newest rules; None before any were loaded."""
    return ApprovalPolicy.objects.filter(active=True).first()


def policy_of(revision: RequestRevision) -> ApprovalPolicy:
    """The rules under which a revision was submitted; those in force where none were then."""
    return revision.policy or active_policy()


def active_policy() -> ApprovalPolicy:
    """The policy in force. Raises DomainError when none was loaded."""
    policy = policy_in_force()
    if policy is None:
        raise DomainError(
            msg("No approval policy is in force. Run: manage.py load_policies --preset small_team")
        )
    return policy


def require_keeper(by: User) -> None:
    """Raise NotPermitted unless `by` keeps budgets."""
    require(policies.can_keep_budgets(by))
