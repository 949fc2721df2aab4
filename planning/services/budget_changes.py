"""Money into budgets and between them, by two people where the policy says so; reversals; the end of a quarter."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from core import transitions
from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition, NotPermitted
from core.messages import msg
from core.models import Organisation, Team, User
from core.money import CURRENCIES, ExchangeRate, Money, round_amount
from core.organisation import organisation, today
from core.quarters import Quarter
from core.stale import check_version
from planning import policies
from planning.models.approvals import CarryOver
from planning.models.budgets import Bucket, Budget, BudgetChange, EntryKind, LedgerEntry
from planning.models.plans import SpendKind
from planning.models.requests import CapacityRequest
from planning.selectors.budgets import balance, held
from planning.selectors.exposure import Exposure, open_exposures
from planning.services.ledger import (
    active_policy,
    budget_for,
    lock_budgets,
    over_budget,
    policy_in_force,
    post,
    require_keeper,
)
from planning.states import ChangeStatus


@transaction.atomic
def open_budget(*, team_id: int, quarter: str, kind: str, currency: str, by: User) -> Budget:
    """Make the budget row of a team, quarter (`2027Q1`) and kind. Raises InputError when it exists or is misnamed."""
    require_keeper(by)
    if kind not in SpendKind.values:
        raise InputError("kind", msg("%(value)s is no kind of budget", value=kind), value=kind)
    if currency not in CURRENCIES:
        raise InputError(
            "currency",
            msg("%(value)s is not a currency in use here", value=currency),
            value=currency,
        )
    try:
        period = Quarter.parse(quarter, organisation().fiscal_start_month)
    except ValueError:
        raise InputError(
            "quarter", msg("%(value)s is not a quarter like 2027Q1", value=quarter), value=quarter
        ) from None
    team = Team.objects.get(pk=team_id)
    budget, created = Budget.objects.get_or_create(
        team=team,
        fiscal_year=period.year,
        quarter=period.q,
        kind=kind,
        defaults={"currency": currency},
    )
    if not created:
        raise InputError(
            "quarter", msg("%(budget)s exists already", budget=str(budget)), value=quarter
        )
    record("budget.opened", on=budget, by=by, currency=currency)
    return budget


@transaction.atomic
def allot(*, budget_id: int, amount: Decimal, reason: str, by: User) -> BudgetChange:
    """Propose to put `amount` (budget's currency; below 0 takes back) into a budget; posted at once if one may."""
    require_keeper(by)
    budget = lock_budgets([budget_id])[budget_id]
    return _propose(budget=budget, giver=None, amount=amount, reason=reason, by=by)


@transaction.atomic
def transfer(
    *, giver_id: int, receiver_id: int, amount: Decimal, reason: str, by: User
) -> BudgetChange:
    """Propose to move `amount` from one budget to another of the same currency."""
    require_keeper(by)
    if giver_id == receiver_id:
        raise InputError("receiver", msg("Choose two different budgets"), value=receiver_id)
    if amount <= 0:
        raise InputError("amount", msg("A transfer must be above 0"), value=amount, limit="> 0")
    budgets = lock_budgets([giver_id, receiver_id])
    giver, receiver = budgets[giver_id], budgets[receiver_id]
    if giver.currency != receiver.currency:
        raise InputError(
            "receiver",
            msg(
                "%(left)s and %(right)s are different currencies: take back here and allot there",
                left=giver.currency,
                right=receiver.currency,
            ),
            value=receiver.currency,
            limit=giver.currency,
        )
    return _propose(budget=receiver, giver=giver, amount=amount, reason=reason, by=by)


@transaction.atomic
def carry_order(
    *,
    giver_id: int,
    receiver_id: int,
    order: str,
    request_id: int,
    amount: Decimal,
    reason: str,
    by: User,
) -> BudgetChange:
    """Propose to carry `amount` of an order to a budget of another quarter, with the money behind it: both are free
    afterwards of as much as before, unless it was bound ahead of any money."""
    require_keeper(by)
    budgets = lock_budgets([giver_id, receiver_id])
    giver, receiver = budgets[giver_id], budgets[receiver_id]
    if (giver.team_id, giver.kind, giver.currency) != (
        receiver.team_id, receiver.kind, receiver.currency,
    ):  # fmt: skip
        raise InputError(
            "receiver", msg("An order stays with its team, kind and currency"), value=receiver_id
        )
    return _propose(
        budget=receiver, giver=giver, amount=amount, reason=reason, by=by, carries=order,
        request=CapacityRequest.objects.get(pk=request_id),
    )  # fmt: skip


def _propose(
    *,
    budget: Budget,
    giver: Budget | None,
    amount: Decimal,
    reason: str,
    by: User,
    carries: str = "",
    request: CapacityRequest | None = None,
) -> BudgetChange:
    if amount == 0 or not amount.is_finite():
        raise InputError("amount", msg("The amount must not be 0"), value=amount)
    if not reason.strip():
        raise InputError("reason", msg("Give a reason"))
    change = BudgetChange.objects.create(
        budget=budget, giver=giver, amount=amount, reason=reason.strip()[:300], proposed_by=by,
        carries=carries, request=request,
    )  # fmt: skip
    record(
        "budget_change.proposed",
        on=change,
        by=by,
        team=budget.team,
        reason=reason,
        amount=str(amount),
        currency=budget.currency,
    )
    if not active_policy().two_person_budget:
        _post_change(change, by=by)
    return change


def _post_change(change: BudgetChange, *, by: User) -> None:
    budgets = lock_budgets(pk for pk in (change.budget_id, change.giver_id) if pk is not None)
    if change.request is not None and change.giver_id is not None:
        _post_carried(change, budgets[change.giver_id], budgets[change.budget_id], by=by)
        _mark_posted(change, by=by)
        return
    legs = (
        [(change.budget_id, change.amount, EntryKind.ALLOTTED)]
        if change.giver_id is None
        else [
            (change.giver_id, -change.amount, EntryKind.TRANSFERRED),
            (change.budget_id, change.amount, EntryKind.TRANSFERRED),
        ]
    )
    for budget_id, amount, kind in legs:
        budget = budgets[budget_id]
        available = balance(budget).available
        if amount < 0 and available + amount < 0:
            raise over_budget(budget, available, -amount)
        post(
            budget=budget,
            kind=kind,
            bucket=Bucket.ALLOTTED,
            amount=amount,
            source=change.source,
            by=by,
            reason=change.reason,
        )
    _mark_posted(change, by=by)


def _mark_posted(change: BudgetChange, *, by: User) -> None:
    transitions.advance(
        change, ChangeStatus.POSTED, by=by, action="budget_change.posted", amount=str(change.amount)
    )
    change.decided_by, change.decided_at = by, timezone.now()
    change.save(update_fields=["decided_by", "decided_at"])


def _post_carried(change: BudgetChange, giver: Budget, receiver: Budget, *, by: User) -> None:
    """The order's commitment and its money, out of one budget and into the other."""
    request = change.request
    assert request is not None  # noqa: S101 - narrows the type
    standing = held(request, Bucket.COMMITTED).get(giver.pk, Decimal(0))
    if standing < change.amount:
        raise DomainError(
            msg("Only %(standing)s of %(order)s still stands in %(budget)s",
                standing=str(Money(standing, giver.currency)), order=change.carries,
                budget=str(giver))
        )  # fmt: skip
    money = balance(giver).behind(change.amount)
    for bucket, part in ((Bucket.COMMITTED, change.amount), (Bucket.ALLOTTED, money)):
        for budget, amount in ((giver, -part), (receiver, part)) if part else ():
            post(
                budget=budget, kind=EntryKind.CARRIED, bucket=bucket, amount=amount,
                source=change.source, request=request, by=by, reason=change.reason,
            )  # fmt: skip


def _lock_change(change_id: int, by: User, version: int | None) -> BudgetChange:
    change = transitions.lock(BudgetChange.objects.all(), change_id)
    if not policies.can_confirm_change(by, change.proposed_by_id):
        raise NotPermitted(on=change)
    check_version(change, version)
    if change.status != ChangeStatus.PROPOSED:
        raise InvalidTransition(
            msg("%(change)s was decided before", change=str(change))
        )  # fmt: skip
    return change


@transaction.atomic
def confirm_change(*, change_id: int, by: User, version: int | None = None) -> BudgetChange:
    """Post a proposed change, as a second person. Raises NotPermitted, StaleData, InvalidTransition or OverBudget."""
    change = _lock_change(change_id, by, version)
    _post_change(change, by=by)
    return change


@transaction.atomic
def decline_change(
    *, change_id: int, reason: str, by: User, version: int | None = None
) -> BudgetChange:
    """Turn a proposed change down, with a reason. Raises NotPermitted, StaleData, InvalidTransition or InputError."""
    change = _lock_change(change_id, by, version)
    if not reason.strip():
        raise InputError("reason", msg("Give a reason"))
    transitions.advance(
        change, ChangeStatus.DECLINED, by=by, action="budget_change.declined", reason=reason
    )
    change.decided_by, change.decided_at = by, timezone.now()
    change.save(update_fields=["decided_by", "decided_at"])
    return change


REVERSIBLE = frozenset({EntryKind.ALLOTTED, EntryKind.TRANSFERRED, EntryKind.ACTUAL})


@transaction.atomic
def reverse(*, entry_id: int, reason: str, by: User) -> list[LedgerEntry]:
    """Mirror a whole posting (both legs of a transfer; an actual and the commitment it used up). By another person.

    Of a closed quarter the mirror goes to the next open one. Raises NotPermitted, InputError, OverBudget or
    InvalidTransition (already reversed).
    """
    require_keeper(by)
    first: LedgerEntry = LedgerEntry.objects.select_related("budget").get(pk=entry_id)
    if first.posted_by_id == by.pk:
        raise NotPermitted(
            msg("Someone else than the one who posted it must reverse it."), on=first.budget
        )
    if not reason.strip():
        raise InputError("reason", msg("Give a reason"))
    if first.kind not in REVERSIBLE:
        raise InputError(
            "entry",
            msg("Only what was allotted, transferred or spent can be reversed"),
            value=first.kind,
            limit=", ".join(sorted(REVERSIBLE)),
        )
    group = list(
        LedgerEntry.objects.filter(source=first.source, revision=first.revision)
        .exclude(kind=EntryKind.REVERSED)
        .select_related("budget__team", "request")
        .order_by("budget_id", "pk")
    )
    org = organisation()
    homes = {entry.pk: _home_of_mirror(entry.budget, org) for entry in group}
    budgets = lock_budgets(home.pk for home in homes.values())
    if LedgerEntry.objects.filter(reverses__in=[entry.pk for entry in group]).exists():
        raise InvalidTransition(msg("%(source)s was reversed before", source=first.source))
    mirrored = []
    for entry in group:
        budget = budgets[homes[entry.pk].pk]
        mirrored.append(
            post(
                budget=budget,
                kind=EntryKind.REVERSED,
                bucket=entry.bucket,
                amount=-entry.amount,
                source=entry.source,
                revision=entry.revision,
                request=entry.request,
                reverses=entry,
                by=by,
                reason=reason,
            )
        )
    for budget in budgets.values():
        if (left := balance(budget).available) < 0 and first.kind != EntryKind.ACTUAL:
            raise over_budget(budget, left + abs(first.amount), abs(first.amount))
    record(
        "ledger.reversed",
        on=first.budget,
        by=by,
        reason=reason,
        source=first.source,
        entries=[entry.pk for entry in group],
    )
    return mirrored


def _home_of_mirror(budget: Budget, org: Organisation) -> Budget:
    """The budget itself while open, else the next open one of the same team, kind and currency."""
    currency = budget.currency
    while budget.closed_at is not None:
        budget = budget_for(
            team=budget.team, quarter=budget.period(org.fiscal_start_month).next(),
            kind=budget.kind, currency=currency,
        )  # fmt: skip
    if budget.currency != currency:
        raise DomainError(
            msg("%(left)s and %(right)s are different currencies: take back here and allot there",
                left=currency, right=budget.currency)
        )  # fmt: skip
    return budget


def _carry(
    budget: Budget, heir: Budget, request: CapacityRequest, bucket: str, standing: Decimal, *,
    foreign_parts: Iterable[Exposure], source: str, by: User,
) -> None:  # fmt: skip
    """Both legs of what stands for a request: for documents in another currency with what is left of them, so that a
    rate that moves later is still seen."""
    legs: list[tuple[str, Decimal, Decimal]] = []  # currency, original, amount
    rest = standing
    for row in foreign_parts:
        amount = min(round_amount(row.amount, budget.currency), rest)
        if row.budget_id == budget.pk and row.bucket == bucket and amount > 0:
            legs.append((row.currency, round(row.original, 6), amount))
            rest -= amount
    if rest:
        legs.append((budget.currency, rest, rest))
    for currency, original, amount in legs:
        foreign = currency != budget.currency
        rate = (
            ExchangeRate(currency, budget.currency, round(amount / original, 8), today())
            if foreign
            else None
        )
        for home, sign in ((budget, -1), (heir, 1)):
            post(
                budget=home, kind=EntryKind.CARRIED, bucket=bucket, amount=sign * amount,
                source=f"{source}:request:{request.pk}" + (f":{currency}" if foreign else ""),
                request=request, original=Money(sign * original, currency), rate=rate, by=by,
            )  # fmt: skip


@transaction.atomic
def close_budget(*, budget_id: int, by: User, carry_unused: bool = False) -> Budget:
    """Close a quarter: what is asked for, approved or ordered is carried to the next with the money behind it; the rest
    lapses. What was bound ahead of any money takes none along.

    `carry_unused` is finance's word where the policy leaves it to them. Raises NotPermitted, InvalidTransition, or
    DomainError while the quarter still runs, currencies differ or the policy lets unused money lapse.
    """
    require_keeper(by)
    org = organisation()
    budget = Budget.objects.select_related("team").get(pk=budget_id)
    period = budget.period(org.fiscal_start_month)
    if timezone.now() < period.span(org.zone)[1]:
        raise DomainError(msg("%(budget)s still runs", budget=str(budget)))
    heir = budget_for(
        team=budget.team, quarter=period.next(), kind=budget.kind, currency=budget.currency
    )
    rows = lock_budgets([budget.pk, heir.pk])
    budget, heir = rows[budget.pk], rows[heir.pk]
    if budget.closed_at is not None:
        raise InvalidTransition(msg("%(budget)s is closed already", budget=str(budget)))
    if heir.currency != budget.currency:
        raise DomainError(
            msg(
                "%(left)s and %(right)s are different currencies: take back here and allot there",
                left=budget.currency,
                right=heir.currency,
            )
        )
    policy = policy_in_force()
    rule = policy.carry_over if policy is not None else CarryOver.ASK
    if rule == CarryOver.LAPSE and carry_unused:
        raise DomainError(
            msg("The rules let unused money lapse when a quarter is closed: it is not carried over")
        )
    source = f"close:{budget.pk}"
    before, bound = balance(budget), Decimal(0)
    for request in CapacityRequest.objects.filter(ledger__budget=budget).distinct().order_by("pk"):
        foreign_parts = open_exposures(request.pk)
        for bucket in (Bucket.RESERVED, Bucket.APPROVED, Bucket.COMMITTED):
            standing = held(request, bucket).get(budget.pk)
            if standing is None:
                continue
            _carry(budget, heir, request, bucket, standing, foreign_parts=foreign_parts, source=source,
                   by=by)  # fmt: skip
            if bucket != Bucket.RESERVED:
                bound += standing
    funds = before.behind(bound)
    if carry_unused or rule == CarryOver.CARRY:
        funds += max(before.available, Decimal(0))
    if funds:
        for home, amount in ((budget, -funds), (heir, funds)):
            post(budget=home, kind=EntryKind.CARRIED, bucket=Bucket.ALLOTTED, amount=amount,
                 source=source, by=by)  # fmt: skip
    budget.closed_at = timezone.now()
    budget.save(update_fields=["closed_at"])
    record("budget.closed", on=budget, by=by, carried=str(Money(funds, budget.currency)))
    return budget
