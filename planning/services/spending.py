"""Orders and invoices against a request: what was approved is used up first, and what is spent was ordered before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import transaction

from core.audit import record
from core.errors import DomainError, InputError, NotPermitted
from core.messages import msg
from core.models import User
from core.money import ExchangeRate, Money, round_amount
from core.organisation import organisation, quarter_at, today
from core.quarters import Quarter
from planning import policies
from planning.models.budgets import Bucket, Budget, EntryKind, LedgerEntry
from planning.models.plans import PlanChoice, SpendKind
from planning.models.requests import CapacityRequest
from planning.selectors.approved import approved
from planning.selectors.budgets import balance
from planning.selectors.conditions import conditions
from planning.selectors.order_rates import at_order_rates
from planning.selectors.spread import bound_ahead, parts_of, quarters_of, term_of
from planning.services.ledger import (
    budget_for,
    budgets_for,
    in_currency,
    lock_standing,
    over_budget,
    policy_of,
    post,
)
from planning.services.moves import lock_request
from planning.services.over_approvals import above_approved
from planning.states import RequestStatus
from planning.terms import split


class ConditionBroken(DomainError):
    """The approval was given on a condition that this order would not keep."""

    code = "condition_broken"


@transaction.atomic
def commit(
    *, request_id: int, amount: Money, source: str, by: User | None, revision: int = 0
) -> LedgerEntry:
    """Commit an order (or the signed change of one: same `source`, next `revision`) to this quarter's budget; a
    contract over a term to the budget of each quarter it falls into, to the cent, and each has to hold its part.

    The firm reservation is used up first; where it stands in an earlier quarter, its money is carried over with it.
    Raises OverBudget, ConditionBroken, AboveApproved, AlreadyPosted, InvalidTransition (not approved) or NotPermitted.
    """
    request = lock_request(request_id)
    plan = _plan_of(request)
    policy, current = policy_of(plan.revision), quarter_at()
    shares = quarters_of(plan, policy, current)
    rows = budgets_for(team=request.team, shares=shares, kind=plan.spend_kind)
    _require_procurement(by, rows[0])
    _require_sourced(request)
    budgets, standing = lock_standing(
        request, [Bucket.APPROVED, Bucket.COMMITTED], also=[row.pk for row in rows]
    )
    firm, ordered = standing[Bucket.APPROVED], standing[Bucket.COMMITTED]
    budget = budgets[rows[0].pk]
    due, rate = in_currency(amount, budget.currency)
    _hold_to_conditions(request, plan, amount)
    _hold_to_approval(request, amount)
    if due.amount == 0:
        raise InputError("amount", msg("The amount of an order must not be 0"), value=amount.amount)
    if due.amount < 0 and -due.amount > sum(ordered.values(), Decimal(0)):
        raise InputError(
            "amount",
            msg("%(amount)s is more than what is ordered", amount=str(amount)),
            value=amount.amount,
        )
    parts = [(budgets[rows[0].pk], amount)]
    if due.amount < 0:
        # Less of an order: each quarter gives back its share of what still stands in it.
        keys = sorted(ordered)
        parts = list(zip((budgets[pk] for pk in keys), split(amount, [ordered[pk] for pk in keys]),
                         strict=True))  # fmt: skip
    elif due.amount > 0:
        pieces = parts_of(amount, shares)
        parts = [(budgets[row.pk], piece) for row, piece in zip(rows, pieces, strict=True)]
    entries = []
    for at, (budget, part) in enumerate(parts):
        if part.amount == 0:
            continue
        due, rate = in_currency(part, budget.currency)
        rest = max(due.amount, Decimal(0))
        carried: dict[str, list[_Used]] = defaultdict(list)
        # Its own reservation, and with the first part what stands in quarters that the term does not touch (any more).
        homes = [
            pk
            for pk in sorted(firm)
            if pk == budget.pk or (at == 0 and all(pk != row.pk for row in rows))
        ]
        for budget_id in homes:
            if rest <= 0:
                break
            used = _use_up(
                request,
                budgets[budget_id],
                budget,
                firm[budget_id],
                rest,
                source=source,
                revision=revision,
                by=by,
            )
            rest -= used.used
            if used.money:
                carried[used.money.currency].append(used)
        _carry_in(request, budget, carried, source=source, revision=revision, by=by)
        found = balance(budget)
        # What was firmly reserved was granted; only an order above it needs money that is still free.
        if rest > 0 and due.amount > found.available:
            quarter = budget.period(current.start_month)
            if not bound_ahead(policy, quarter, current, found):
                raise over_budget(budget, found.available, due.amount)
        entries.append(
            post(
                budget=budget,
                kind=EntryKind.COMMITTED,
                bucket=Bucket.COMMITTED,
                amount=due.amount,
                source=source,
                revision=revision,
                request=request,
                original=part,
                rate=rate,
                by=by,
            )
        )
        record("budget.committed", on=budget, by=by, request=request.pk, amount=str(due), source=source)  # fmt: skip
    return entries[0]


@dataclass(frozen=True, slots=True)
class _Used:
    """What was taken of a firm reservation."""

    used: Decimal  # in the target's currency
    money: Money | None  # that went along from another budget, in its currency
    rate: ExchangeRate


def _use_up(
    request: CapacityRequest,
    home: Budget,
    target: Budget,
    standing: Decimal,
    wanted: Decimal,
    *,
    source: str,
    revision: int,
    by: User | None,
) -> _Used:
    """Release up to `wanted` (target's currency) of a firm reservation; the money behind it leaves another budget."""
    common = {"revision": revision, "request": request, "by": by}
    in_target, rate = in_currency(Money(standing, home.currency), target.currency)
    if in_target.amount <= wanted:
        taken, used = standing, in_target.amount
    else:
        used = wanted
        taken = in_currency(Money(wanted, target.currency), home.currency)[0].amount
    money = Decimal(0) if home.pk == target.pk else balance(home).behind(taken)
    post(budget=home, kind=EntryKind.RELEASED, bucket=Bucket.APPROVED, amount=-taken, source=source,
         **common)  # fmt: skip
    if money <= 0:
        return _Used(used, None, rate)
    post(budget=home, kind=EntryKind.CARRIED, bucket=Bucket.ALLOTTED, amount=-money,
         source=_leg(source, home.currency, target), original=Money(-money, home.currency),
         **common)  # fmt: skip
    return _Used(used, Money(money, home.currency), rate)


def _carry_in(
    request: CapacityRequest, target: Budget, carried: Mapping[str, Sequence[_Used]], *, source: str,
    revision: int, by: User | None,
) -> None:  # fmt: skip
    """The other leg of what _use_up took out of other budgets: one entry for each of their currencies."""
    for currency, found in carried.items():
        money = Money(sum((row.money.amount for row in found if row.money), Decimal(0)), currency)
        post(budget=target, kind=EntryKind.CARRIED, bucket=Bucket.ALLOTTED,
             amount=in_currency(money, target.currency, paid=found[0].rate)[0].amount, original=money,
             rate=found[0].rate, source=_leg(source, currency, target), revision=revision,
             request=request, by=by)  # fmt: skip


def _leg(source: str, currency: str, target: Budget) -> str:
    """A document's legs in another currency than the receiving budget's are told apart by it."""
    return source if currency == target.currency else f"{source}:{currency}"


@transaction.atomic
def release_commitment(
    *, request_id: int, amount: Money, source: str, by: User | None, revision: int = 0, reason: str
) -> None:
    """Take back part of what is ordered (a cancelled order, a short-closed line). Raises InputError above it."""
    request = lock_request(request_id)
    budgets, standing = lock_standing(request, [Bucket.COMMITTED])
    for budget in budgets.values():
        _require_procurement(by, budget)
    _take_back(
        request,
        budgets,
        standing[Bucket.COMMITTED],
        amount,
        source=source,
        revision=revision,
        by=by,
        reason=reason,
    )


def _take_back(
    request: CapacityRequest,
    budgets: dict[int, Budget],
    standing: dict[int, Decimal],
    amount: Money,
    *,
    source: str,
    revision: int,
    by: User | None,
    reason: str,
    bucket: str = Bucket.COMMITTED,
    partial: bool = False,
    first: Budget | None = None,
) -> Money:
    """Release `amount` of `bucket`, from `first` and then the oldest quarter on.

    Returns what could not be released (`partial` only).
    """
    rest = amount
    order = sorted(standing, key=lambda pk: (first is None or pk != first.pk, *_when(budgets[pk])))
    for budget_id in order:
        if rest.amount <= 0:
            break
        budget, found = budgets[budget_id], standing[budget_id]
        wanted, _rate = in_currency(rest, budget.currency)
        taken = min(wanted.amount, found)
        post(
            budget=budget,
            kind=EntryKind.RELEASED,
            bucket=bucket,
            amount=-taken,
            source=source,
            revision=revision,
            request=request,
            by=by,
            reason=reason,
        )
        back, _rate = in_currency(Money(wanted.amount - taken, budget.currency), amount.currency)
        rest = back
    if rest.amount > 0 and not partial:
        raise InputError(
            "amount",
            msg("%(amount)s is more than what is ordered", amount=str(amount)),
            value=amount.amount,
        )
    return rest


@transaction.atomic
def post_actual(
    *,
    request_id: int,
    amount: Money,
    source: str,
    by: User | None,
    revision: int = 0,
    day: date | None = None,
    paid: ExchangeRate | None = None,
) -> list[LedgerEntry]:
    """Post what was spent (an invoice, a cloud bill): the commitment shrinks by it, so that it counts once.

    `day` is the day of the payment (today when None), `paid` the rate that the bank took; without one the rate of the
    day holds. What a payment costs more because the rate moved is no more than was ordered: the ceiling is tested at
    the rate of the order.

    Cloud spend without an order draws on the firm reservation. Raises InputError when all actuals together would
    exceed what was ordered by more than the policy's tolerance.
    """
    request = lock_request(request_id)
    plan = _plan_of(request)
    if by is not None and not policies.can_keep_budgets(by):
        raise NotPermitted(on=request)
    if amount.amount <= 0:
        raise InputError(
            "amount", msg("The amount spent must be above 0"), value=amount.amount, limit="> 0"
        )
    buckets = [Bucket.COMMITTED, *([Bucket.APPROVED] if plan.spend_kind == SpendKind.CLOUD else [])]
    home = budget_for(
        team=request.team, quarter=_quarter_paid(plan, day), kind=plan.spend_kind
    )  # fmt: skip
    budgets, standing = lock_standing(request, buckets, also=[home.pk])
    target = _pays(budgets, [pk for found in standing.values() for pk in found], home)
    spent, rate = in_currency(amount, target.currency, day, paid)
    measured = _at_order_rate(request, amount, target) or spent
    promised, before = _promised(request, buckets, target.currency)
    ceiling = round_amount(
        promised * (1 + policy_of(plan.revision).actual_tolerance), target.currency
    )
    if before + min(spent.amount, measured.amount) > ceiling:
        raise InputError(
            "amount",
            msg(
                "%(amount)s would bring what was spent to %(sum)s; ordered are %(limit)s",
                amount=str(spent),
                sum=str(Money(before + spent.amount, target.currency)),
                limit=str(Money(ceiling, target.currency)),
            ),
            value=amount.amount,
            limit=ceiling,
        )
    rest = spent
    for bucket in buckets:
        if rest.amount > 0:
            rest = _take_back(
                request, budgets, standing[bucket], rest, source=source, revision=revision, by=by,
                reason="", bucket=bucket, partial=True, first=target,
            )  # fmt: skip
    entry = post(
        budget=target,
        kind=EntryKind.ACTUAL,
        bucket=Bucket.ACTUAL,
        amount=spent.amount,
        source=source,
        revision=revision,
        request=request,
        original=amount,
        rate=rate,
        day=day,
        by=by,
    )
    record("budget.spent", on=target, by=by, request=request.pk, amount=str(spent), source=source)
    return [entry]


def _when(budget: Budget) -> tuple[int, int, int]:
    return budget.fiscal_year, budget.quarter, budget.pk


def _quarter_paid(plan: PlanChoice, day: date | None) -> Quarter:
    """Of a contract over a term the quarter of the payment's day; else the running one."""
    if term_of(plan) is None or day is None:
        return quarter_at()
    return Quarter.of(day, organisation().fiscal_start_month)


def _pays(budgets: dict[int, Budget], standing: list[int], home: Budget) -> Budget:
    """The budget that an invoice falls on: this quarter's where several quarters of a term stand, else the oldest."""
    if not standing or (len(set(standing)) > 1 and home.pk in standing):
        return budgets[home.pk]
    return min((budgets[pk] for pk in standing), key=_when)


def _at_order_rate(request: CapacityRequest, amount: Money, target: Budget) -> Money | None:
    """`amount` at the rate at which the newest order in its currency was committed; None: no such order."""
    entry: LedgerEntry | None = (
        LedgerEntry.objects.filter(
            request=request, bucket=Bucket.COMMITTED, kind=EntryKind.COMMITTED,
            original_currency=amount.currency, budget__currency=target.currency,
        ).order_by("-id").first()
    )  # fmt: skip
    if entry is None or amount.currency == target.currency:
        return None
    return Money(round_amount(amount.amount * entry.rate, target.currency), target.currency)


def _entries(request: CapacityRequest) -> list[tuple[LedgerEntry, Decimal]]:
    rows = LedgerEntry.objects.filter(request=request).exclude(
        bucket__in=[Bucket.ALLOTTED, Bucket.RESERVED]
    )
    return at_order_rates(rows.select_related("budget"))


def _promised(
    request: CapacityRequest, buckets: list[Bucket], currency: str
) -> tuple[Decimal, Decimal]:
    """(what was promised, what was spent of it), in `currency` at the rates of the orders. What an invoice used up of a
    promise still counts."""
    rows = _entries(request)
    documents = {row.source for row, _amount in rows if row.bucket == Bucket.ACTUAL}
    rates = {
        (row.original_currency, row.budget.currency): row.rate
        for row, _amount in rows
        if row.bucket == Bucket.COMMITTED and row.kind == EntryKind.COMMITTED
    }
    promised: dict[str, Decimal] = defaultdict(Decimal)
    spent: dict[str, Decimal] = defaultdict(Decimal)
    measured: dict[int, Decimal] = {}
    for row, amount in rows:
        own = row.budget.currency
        if row.bucket == Bucket.ACTUAL:
            if row.reverses_id in measured:
                amount = -measured[row.reverses_id]
            elif row.original_currency != own and (row.original_currency, own) in rates:
                due = row.original_amount * rates[row.original_currency, own]
                amount = min(amount, round_amount(due, own))
            measured[row.pk] = amount
            spent[own] += amount
        elif row.bucket in buckets and row.source not in documents:
            promised[own] += amount
    return _total(promised, currency), _total(spent, currency)


def _total(sums: Mapping[str, Decimal], currency: str) -> Decimal:
    return sum(
        (in_currency(Money(total, own), currency)[0].amount for own, total in sums.items()),
        Decimal(0),
    )


def _hold_to_conditions(request: CapacityRequest, plan: PlanChoice, amount: Money) -> None:
    """An approval up to an amount, or to be ordered by a day, binds the orders: the sum of all of them."""
    if amount.amount <= 0:
        return
    found = conditions(plan.revision)
    if found.order_by is not None and today() > found.order_by:
        raise ConditionBroken(
            msg("%(request)s was approved to be ordered until %(day)s",
                request=str(request), day=found.order_by.isoformat())
        )  # fmt: skip
    if found.cap is None:
        return
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for row, ordered in _entries(request):
        if row.bucket in (Bucket.COMMITTED, Bucket.ACTUAL):
            sums[row.budget.currency] += ordered
    before = _total(sums, found.cap.currency)
    after = Money(before, found.cap.currency) + in_currency(amount, found.cap.currency)[0]
    if found.cap < after:
        raise ConditionBroken(
            msg("%(request)s was approved up to %(cap)s; with this, %(sum)s would be ordered",
                request=str(request), cap=str(found.cap), sum=str(after))
        )  # fmt: skip


def _hold_to_approval(request: CapacityRequest, amount: Money) -> None:
    """All orders together, with tax, stay within what was approved (or agreed to since) and the policy's tolerance."""
    found = approved([request.pk]).get(request.pk)
    if found is None or amount.amount <= 0:
        return
    after = found.ordered + in_currency(amount, found.amount.currency)[0]
    if found.limit < after:
        raise above_approved(found, after)


def _plan_of(request: CapacityRequest) -> PlanChoice:
    plan = (
        PlanChoice.objects.filter(
            revision__request=request, revision__number=request.revision_number
        )
        .select_related("revision__policy")
        .first()
    )
    if plan is None:
        raise DomainError(msg("%(request)s has no chosen plan", request=str(request)))
    return plan


def _require_procurement(by: User | None, budget: Budget) -> None:
    if by is not None and not policies.can_commit(by, budget):
        raise NotPermitted(on=budget)


def _require_sourced(request: CapacityRequest) -> None:
    if request.status not in (RequestStatus.APPROVED, RequestStatus.SOURCING):
        raise DomainError(
            msg(
                "%(request)s is in state %(state)s: only an approved request may be ordered",
                request=str(request),
                state=str(request.status),
            )
        )
