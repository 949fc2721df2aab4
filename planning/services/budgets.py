"""What stands for a request before it is ordered: asked for, then approved; released when it ends or nobody decides."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Q, Sum
from django.utils import timezone

from core.audit import record
from core.errors import StaleData
from core.exchange import convert, rate_on
from core.messages import msg
from core.models import User
from core.money import Money
from core.organisation import organisation, quarter_at, today
from core.outbox import notify
from planning.models.approvals import ApprovalPolicy
from planning.models.budgets import Bucket, Budget, EntryKind, LedgerEntry
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest
from planning.selectors.budgets import Balance, balance, held, plan_in, sums_with
from planning.services.ledger import (
    active_policy,
    budget_for,
    entry_of,
    lock_budgets,
    lock_standing,
    over_budget,
    plan_rate,
    post,
    post_all,
)
from planning.services.moves import lock_request


def reserve(*, request: CapacityRequest, plan: PlanChoice, by: User | None) -> Balance:
    """Put a soft reservation on this quarter's budget and return the balance with it. Over budget is no error here."""
    budget = budget_for(team=request.team, quarter=quarter_at(), kind=plan.spend_kind)
    budget = lock_budgets([budget.pk])[budget.pk]
    amount = plan_in(plan, budget.currency)
    if amount.amount > 0:
        post(
            budget=budget,
            kind=EntryKind.RESERVED,
            bucket=Bucket.RESERVED,
            amount=amount.amount,
            source=f"request:{request.pk}",
            revision=request.revision_number,
            request=request,
            original=plan.money,
            rate=plan_rate(plan, budget.currency),
            by=by,
        )
    return balance(budget)


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


def approve_amount(
    *,
    request: CapacityRequest,
    plan: PlanChoice,
    by: User | None,
    policy: ApprovalPolicy,
    reason: str = "",
    cap: Money | None = None,
) -> None:
    """Make the reservation firm against the budget of the quarter in which this happens, under the row's lock: the
    plan's amount, or `cap` where less was granted.

    Call it last in the transaction: all approvals of one team and quarter wait for the one that holds this row, so
    nothing happens under it but to read the sums and to add the entries. Raises OverBudget unless the policy allows
    over-commitment and a reason is given.
    """
    org = organisation()
    day = today(org)
    target = budget_for(
        team=request.team, quarter=quarter_at(org=org), kind=plan.spend_kind, currency=org.currency
    )
    amount = plan_in(plan, target.currency)
    original, rate = plan.money, plan_rate(plan, target.currency, day)
    if cap is not None and (granted := convert(cap, target.currency, plan.rate_date)) < amount:
        amount, original = granted, cap
        rate = rate_on(cap.currency, target.currency, plan.rate_date)
    reserved = held(request, Bucket.RESERVED)
    # --- from here on the row is locked
    budgets = lock_budgets([target.pk, *reserved])
    target = budgets[target.pk]
    balances, soft = sums_with(budgets.values(), request, Bucket.RESERVED)
    if soft.keys() - budgets.keys():
        raise StaleData()  # a quarter was closed between the two reads
    available = balances[target.pk].available
    over = amount.amount - available
    if over > 0 and not (policy.allow_over_budget and reason.strip()):
        raise over_budget(target, available, amount.amount)
    entries = [
        _released(request, budgets[budget_id], Bucket.RESERVED, standing, by=by, day=day)
        for budget_id, standing in sorted(soft.items())
    ]
    if amount.amount > 0:
        entries.append(
            entry_of(
                budget=target,
                kind=EntryKind.RESERVED,
                bucket=Bucket.APPROVED,
                amount=amount.amount,
                source=f"request:{request.pk}",
                revision=request.revision_number,
                request=request,
                original=original,
                rate=rate,
                by=by,
                reason=reason,
                day=day,
            )
        )
    post_all(entries)
    if over > 0:
        record(
            "budget.overcommitted", on=target, by=by, reason=reason, request=request.pk, over=str(over)
        )  # fmt: skip


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
