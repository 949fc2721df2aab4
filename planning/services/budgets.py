"""What stands for a request before it is ordered: asked for, then approved; released when it ends or nobody decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone

from core.audit import record
from core.errors import StaleData
from core.exchange import convert, rate_on
from core.messages import msg
from core.models import Organisation, User
from core.money import ExchangeRate, Money
from core.organisation import organisation, quarter_at, today
from core.outbox import notify
from core.quarters import Quarter
from planning.models.approvals import ApprovalPolicy
from planning.models.budgets import Bucket, Budget, EntryKind, LedgerEntry
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest
from planning.selectors.budgets import Balance, balances, held, plan_in, sums_with
from planning.selectors.spread import bound_ahead, parts_of, quarters_of
from planning.services.ledger import (
    active_policy,
    budget_for,
    budgets_for,
    entry_of,
    in_currency,
    lock_budgets,
    lock_standing,
    over_budget,
    plan_rate,
    post,
    post_all,
)
from planning.services.moves import lock_request


def reserve(
    *, request: CapacityRequest, plan: PlanChoice, policy: ApprovalPolicy, by: User | None
) -> Money | None:
    """Put a soft reservation on the budget of this quarter, or of each quarter of a term. Over budget is no error here.

    Returns what the tightest of these budgets would have left if all that is asked for were approved, in the plan's
    base currency. A later quarter that the policy lets be bound ahead of its allotment is not short; None: all are.
    """
    current = quarter_at()
    shares = quarters_of(plan, policy, current)
    rows = budgets_for(team=request.team, shares=shares, kind=plan.spend_kind)
    budgets = lock_budgets(row.pk for row in rows)
    for row, part in zip(rows, parts_of(plan.money, shares), strict=True):
        budget = budgets[row.pk]
        amount = plan_in(plan, budget.currency) if len(rows) == 1 else _part_in(plan, part, budget)
        if amount.amount > 0:
            post(
                budget=budget,
                kind=EntryKind.RESERVED,
                bucket=Bucket.RESERVED,
                amount=amount.amount,
                source=f"request:{request.pk}",
                revision=request.revision_number,
                request=request,
                original=part,
                rate=plan_rate(plan, budget.currency),
                by=by,
            )
    sums, day = balances(budgets.values()), today()
    left = [
        convert(Money(sums[row.pk].after_requests, row.currency), plan.base_currency, day)
        for row, (quarter, _days) in zip(rows, shares, strict=True)
        if not bound_ahead(policy, quarter, current, sums[row.pk])
    ]
    return min(left, key=lambda found: found.amount, default=None)


def _part_in(plan: PlanChoice, part: Money, budget: Budget, day: date | None = None) -> Money:
    """A part of the plan's amount in the budget's currency, rounded once."""
    return in_currency(part, budget.currency, paid=plan_rate(plan, budget.currency, day))[0]


def release(
    *,
    request: CapacityRequest,
    by: User | None,
    reason: str = "",
    buckets: tuple[str, ...] = (Bucket.RESERVED, Bucket.APPROVED),
) -> None:
    """Take back what stands for `request` in `buckets`. Nothing standing is no error."""
    budgets, standing = lock_standing(request, buckets)
    entries = [
        _released(request, budgets[budget_id], bucket, amount, by=by, reason=reason)
        for bucket, found in standing.items()
        for budget_id, amount in sorted(found.items())
    ]
    post_all(entries)


def _released(
    request: CapacityRequest,
    budget: Budget,
    bucket: str,
    amount: Decimal,
    *,
    by: User | None,
    reason: str = "",
    day: date | None = None,
) -> LedgerEntry:
    return entry_of(
        budget=budget,
        kind=EntryKind.RELEASED,
        bucket=bucket,
        amount=-amount,
        source=f"request:{request.pk}",
        revision=request.revision_number,
        request=request,
        by=by,
        reason=reason,
        day=day,
    )


@dataclass(frozen=True, slots=True)
class Part:
    """What falls on one quarter."""

    quarter: Quarter
    budget: Budget
    amount: Money  # in the budget's currency
    original: Money
    rate: ExchangeRate


@dataclass(frozen=True, slots=True)
class Claim:
    """What an approval takes, of which budgets; read before anything is locked."""

    parts: tuple[Part, ...]
    current: Quarter
    day: date
    reserved: tuple[int, ...]  # budgets that hold a reservation of the request


def claim(
    *,
    request: CapacityRequest,
    plan: PlanChoice,
    policy: ApprovalPolicy,
    reason: str = "",
    cap: Money | None = None,
    org: Organisation | None = None,
) -> Claim:
    """What approving `request` takes of the budget of this quarter: the plan's amount, or `cap` where less was granted.
    A term is spread over its quarters, and each has to hold its part.

    Raises OverBudget when a budget does not hold it as it stands, so that a refusal waits for nobody. What is not
    refused here is decided by approve_amount, under the lock.
    """
    org = org or organisation()
    day = today(org)
    current = quarter_at(org=org)
    target = budget_for(
        team=request.team, quarter=current, kind=plan.spend_kind, currency=org.currency
    )
    amount = plan_in(plan, target.currency)
    original, rate = plan.money, plan_rate(plan, target.currency, day)
    if cap is not None and (granted := convert(cap, target.currency, plan.rate_date)) < amount:
        amount, original = granted, cap
        rate = rate_on(cap.currency, target.currency, plan.rate_date)
    parts = [Part(current, target, amount, original, rate)]
    shares = quarters_of(plan, policy, current)
    if [quarter for quarter, _days in shares] != [current]:
        parts = _by_quarter(request, plan, original, shares, day, target.currency)
    sums, reserved = sums_with([part.budget for part in parts], request, Bucket.RESERVED)
    found = Claim(tuple(parts), current, day, tuple(reserved))
    _overs(found, sums, policy, reason)
    return found


def _overs(
    claim: Claim, sums: Mapping[int, Balance], policy: ApprovalPolicy, reason: str
) -> list[tuple[int, Decimal]]:
    """Budgets that the claim goes over, and by how much; raises OverBudget where that is not allowed."""
    overs = []
    for part in claim.parts:
        found = sums[part.budget.pk]
        over = part.amount.amount - found.available
        if over <= 0 or bound_ahead(policy, part.quarter, claim.current, found):
            continue
        if not (policy.allow_over_budget and reason.strip()):
            raise over_budget(part.budget, found.available, part.amount.amount)
        overs.append((part.budget.pk, over))
    return overs


def approve_amount(
    *,
    request: CapacityRequest,
    claim: Claim,
    by: User | None,
    policy: ApprovalPolicy,
    reason: str = "",
) -> None:
    """Make the reservation firm against the budget of the quarter in which this happens, or of each quarter of a term,
    under the rows' lock.

    Call it last in the transaction: all approvals of one team and quarter wait for the one that holds this row, so
    nothing happens under it but to read the sums and to add the entries. Raises OverBudget unless the policy allows
    over-commitment and a reason is given.
    """
    budgets = lock_budgets([*(part.budget.pk for part in claim.parts), *claim.reserved])
    # --- from here on the rows are locked
    sums, soft = sums_with(budgets.values(), request, Bucket.RESERVED)
    if soft.keys() - budgets.keys():
        raise StaleData()  # a quarter was closed between the two reads
    overs = _overs(claim, sums, policy, reason)
    entries = [
        _released(request, budgets[budget_id], Bucket.RESERVED, standing, by=by, day=claim.day)
        for budget_id, standing in sorted(soft.items())
    ]
    entries += [
        entry_of(
            budget=budgets[part.budget.pk],
            kind=EntryKind.RESERVED,
            bucket=Bucket.APPROVED,
            amount=part.amount.amount,
            source=f"request:{request.pk}",
            revision=request.revision_number,
            request=request,
            original=part.original,
            rate=part.rate,
            by=by,
            reason=reason,
            day=claim.day,
        )
        for part in claim.parts
        if part.amount.amount > 0
    ]
    post_all(entries)
    for budget_id, over in overs:
        record(
            "budget.overcommitted", on=budgets[budget_id], by=by, reason=reason, request=request.pk,
            over=str(over),
        )  # fmt: skip


def _by_quarter(
    request: CapacityRequest, plan: PlanChoice, money: Money, shares: Sequence[tuple[Quarter, int]],
    day: date, currency: str,
) -> list[Part]:  # fmt: skip
    """What falls on each quarter of a term."""
    found = []
    rows = budgets_for(
        team=request.team, shares=shares, kind=plan.spend_kind, currency=currency
    )  # fmt: skip
    for (quarter, _days), row, part in zip(shares, rows, parts_of(money, shares), strict=True):
        rate = (
            plan_rate(plan, row.currency, day)
            if money.currency == plan.currency
            else rate_on(money.currency, row.currency, plan.rate_date)
        )
        due = in_currency(part, row.currency, paid=rate)[0]
        found.append(Part(quarter, row, due, part, rate))
    return found


@transaction.atomic
def expire_reservation(*, request_id: int) -> bool:
    """Release a soft reservation older than the policy allows. Returns whether there was one."""
    request = lock_request(request_id)
    limit = timezone.now() - timedelta(days=active_policy().reservation_days)
    old = LedgerEntry.objects.filter(
        request=request,
        bucket=Bucket.RESERVED,
        kind=EntryKind.RESERVED,
        revision=request.revision_number,
        posted_at__lt=limit,
    )
    if not old.exists() or not held(request, Bucket.RESERVED):
        return False
    release(request=request, by=None, buckets=(Bucket.RESERVED,), reason="expired")
    record("reservation.expired", on=request, by=None)
    notify(
        [request.requester],
        "reservation.expired",
        on=request,
        message=msg(
            "Nobody decided on %(request)s in time, so its reservation ended", request=str(request)
        ),
        url=request.get_absolute_url(),
        revision=str(request.revision_number),
    )
    return True


def expiring_requests() -> list[int]:
    """Ids of requests whose soft reservation is past the age of the policy in force; none without a policy."""
    policy = ApprovalPolicy.objects.filter(active=True).first()
    if policy is None:
        return []
    limit = timezone.now() - timedelta(days=policy.reservation_days)
    rows = (
        LedgerEntry.objects.filter(bucket=Bucket.RESERVED, request__isnull=False)
        .order_by()
        .values_list("request_id")
        .annotate(total=Sum("amount"), old=Sum("amount", filter=Q(posted_at__lt=limit)))
        .filter(total__gt=0, old__gt=0)
    )
    return [request_id for request_id, _total, _old in rows]
