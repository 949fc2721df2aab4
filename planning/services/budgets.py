"""The budget ledger: every amount is posted once, nothing is changed, and the locked budget row decides races.

Lock order everywhere: the request, then budget rows by ascending id.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError, NotPermitted, StaleData
from core.exchange import rate_on
from core.messages import msg
from core.models import Team, User
from core.money import ExchangeRate, Money, round_amount
from core.organisation import organisation, quarter_at, today
from core.outbox import notify
from core.policies import require
from core.quarters import Quarter
from planning import policies
from planning.models.approvals import ApprovalPolicy
from planning.models.budgets import Bucket, Budget, EntryKind, LedgerEntry
from planning.models.plans import PlanChoice, SpendKind
from planning.models.requests import CapacityRequest
from planning.selectors.budgets import Balance, balance, held, plan_in
from planning.services.moves import lock_request
from planning.states import RequestStatus


class OverBudget(DomainError):
    """The budget does not hold the amount."""

    code = "over_budget"


class AlreadyPosted(DomainError):
    """This document was posted before."""

    code = "already_posted"


class BudgetClosed(DomainError):
    """The quarter is closed: entries go to an open one."""

    code = "budget_closed"


# --- rows and entries --------------------------------------------------------------------------------------------


def budget_for(*, team: Team, quarter: Quarter, kind: str) -> Budget:
    """The team's budget row; made with nothing allotted, in the organisation's currency, when there is none."""
    budget, _created = Budget.objects.get_or_create(
        team=team,
        fiscal_year=quarter.year,
        quarter=quarter.q,
        kind=kind,
        defaults={"currency": organisation().currency},
    )
    return budget


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


def post(
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
) -> LedgerEntry:
    """Add one entry to a locked budget. Raises AlreadyPosted or BudgetClosed."""
    if budget.closed_at is not None:
        raise BudgetClosed(msg("The budget %(budget)s is closed", budget=str(budget)))
    if LedgerEntry.objects.filter(
        budget=budget, source=source, kind=kind, bucket=bucket, revision=revision
    ).exists():
        raise AlreadyPosted(
            msg("%(source)s was posted to %(budget)s before", source=source, budget=str(budget))
        )
    original = original or Money(amount, budget.currency)
    entry: LedgerEntry = LedgerEntry.objects.create(
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
        rate_date=rate.as_of if rate else today(),
        reverses=reverses,
        posted_by=by,
        reason=reason[:300],
    )
    return entry


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


def _in_currency(money: Money, currency: str) -> tuple[Money, ExchangeRate]:
    rate = rate_on(money.currency, currency, today())
    return (money.rounded() if rate.base == rate.quote else money.convert(rate)), rate


def _plan_rate(plan: PlanChoice, currency: str) -> ExchangeRate:
    if plan.base_currency == currency != plan.currency:
        return ExchangeRate(plan.currency, currency, plan.rate, plan.rate_date)
    return rate_on(plan.currency, currency, today())


# --- from request to order ---------------------------------------------------------------------------------------


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
            rate=_plan_rate(plan, budget.currency),
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
    _release_standing(request, budgets, standing, by=by, reason=reason)


def _release_standing(
    request: CapacityRequest,
    budgets: dict[int, Budget],
    standing: dict[str, dict[int, Decimal]],
    *,
    by: User | None,
    reason: str = "",
) -> None:
    for bucket, found in standing.items():
        for budget_id, amount in sorted(found.items()):
            post(
                budget=budgets[budget_id],
                kind=EntryKind.RELEASED,
                bucket=bucket,
                amount=-amount,
                source=f"request:{request.pk}",
                revision=request.revision_number,
                request=request,
                by=by,
                reason=reason,
            )


def approve_amount(
    *,
    request: CapacityRequest,
    plan: PlanChoice,
    by: User | None,
    policy: ApprovalPolicy,
    reason: str = "",
) -> None:
    """Make the reservation firm against the budget of the quarter in which this happens, under the row's lock.

    Raises OverBudget unless the policy allows over-commitment and a reason is given.
    """
    quarter = quarter_at()
    budget = budget_for(team=request.team, quarter=quarter, kind=plan.spend_kind)
    budgets, soft = lock_standing(request, [Bucket.RESERVED], also=[budget.pk])
    budget = budgets[budget.pk]
    amount = plan_in(plan, budget.currency)
    available = balance(budget).available
    if amount.amount > available:
        if not (policy.allow_over_budget and reason.strip()):
            raise over_budget(budget, available, amount.amount)
        record(
            "budget.overcommitted",
            on=budget,
            by=by,
            reason=reason,
            request=request.pk,
            over=str(amount.amount - available),
        )
    _release_standing(request, budgets, soft, by=by)
    if amount.amount > 0:
        post(
            budget=budget,
            kind=EntryKind.RESERVED,
            bucket=Bucket.APPROVED,
            amount=amount.amount,
            source=f"request:{request.pk}",
            revision=request.revision_number,
            request=request,
            original=plan.money,
            rate=_plan_rate(plan, budget.currency),
            by=by,
            reason=reason,
        )


@transaction.atomic
def commit(
    *, request_id: int, amount: Money, source: str, by: User | None, revision: int = 0
) -> LedgerEntry:
    """Commit an order (or the signed change of one: same `source`, next `revision`) to this quarter's budget.

    The firm reservation is used up first; where it stands in an earlier quarter, its money is carried over with it.
    Raises OverBudget, AlreadyPosted, InvalidTransition (not approved) or NotPermitted.
    """
    request = lock_request(request_id)
    plan = _plan_of(request)
    budget = budget_for(team=request.team, quarter=quarter_at(), kind=plan.spend_kind)
    _require_procurement(by, budget)
    _require_sourced(request)
    budgets, standing = lock_standing(
        request, [Bucket.APPROVED, Bucket.COMMITTED], also=[budget.pk]
    )
    firm, ordered = standing[Bucket.APPROVED], standing[Bucket.COMMITTED]
    budget = budgets[budget.pk]
    due, rate = _in_currency(amount, budget.currency)
    if due.amount == 0:
        raise InputError("amount", msg("The amount of an order must not be 0"), value=amount.amount)
    if due.amount < 0 and -due.amount > sum(ordered.values(), Decimal(0)):
        raise InputError(
            "amount",
            msg("%(amount)s is more than what is ordered", amount=str(amount)),
            value=amount.amount,
        )
    rest = max(due.amount, Decimal(0))
    for budget_id, reserved in sorted(firm.items()):
        if rest <= 0:
            break
        rest -= _use_up(
            request,
            budgets[budget_id],
            budget,
            reserved,
            rest,
            source=source,
            revision=revision,
            by=by,
        )
    available = balance(budget).available
    # What was firmly reserved was granted; only an order above it needs money that is still free.
    if rest > 0 and due.amount > available:
        raise over_budget(budget, available, due.amount)
    entry = post(
        budget=budget,
        kind=EntryKind.COMMITTED,
        bucket=Bucket.COMMITTED,
        amount=due.amount,
        source=source,
        revision=revision,
        request=request,
        original=amount,
        rate=rate,
        by=by,
    )
    record("budget.committed", on=budget, by=by, request=request.pk, amount=str(due), source=source)
    return entry


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
) -> Decimal:
    """Release up to `wanted` (target's currency) of a firm reservation, carrying its money to `target`. Returns it."""
    common = {"source": source, "revision": revision, "request": request, "by": by}
    in_target, rate = _in_currency(Money(standing, home.currency), target.currency)
    if in_target.amount <= wanted:
        taken, used = standing, in_target.amount
    else:
        used = wanted
        taken = _in_currency(Money(wanted, target.currency), home.currency)[0].amount
    post(budget=home, kind=EntryKind.RELEASED, bucket=Bucket.APPROVED, amount=-taken, **common)  # type: ignore[arg-type]
    if home.pk != target.pk:
        original = Money(taken, home.currency)
        post(budget=home, kind=EntryKind.CARRIED, bucket=Bucket.ALLOTTED, amount=-taken,
             original=-original, **common)  # type: ignore[arg-type]  # fmt: skip
        post(budget=target, kind=EntryKind.CARRIED, bucket=Bucket.ALLOTTED, amount=used,
             original=original, rate=rate, **common)  # type: ignore[arg-type]  # fmt: skip
    return used


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
) -> Money:
    """Release `amount` of `bucket`, oldest budget first. Returns what could not be released (`partial` only)."""
    rest = amount
    for budget_id, found in sorted(standing.items()):
        if rest.amount <= 0:
            break
        budget = budgets[budget_id]
        wanted, _rate = _in_currency(rest, budget.currency)
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
        back, _rate = _in_currency(Money(wanted.amount - taken, budget.currency), amount.currency)
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
    *, request_id: int, amount: Money, source: str, by: User | None, revision: int = 0
) -> list[LedgerEntry]:
    """Post what was spent (an invoice, a cloud bill): the commitment shrinks by it, so that it counts once.

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
    home = budget_for(team=request.team, quarter=quarter_at(), kind=plan.spend_kind)
    budgets, standing = lock_standing(request, buckets, also=[home.pk])
    target = budgets[min((pk for found in standing.values() for pk in found), default=home.pk)]
    spent, rate = _in_currency(amount, target.currency)
    promised, before = _promised(request, buckets, target.currency)
    ceiling = round_amount(promised * (1 + active_policy().actual_tolerance), target.currency)
    if before + spent.amount > ceiling:
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
                reason="", bucket=bucket, partial=True,
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
        by=by,
    )
    record("budget.spent", on=target, by=by, request=request.pk, amount=str(spent), source=source)
    return [entry]


def _promised(
    request: CapacityRequest, buckets: list[Bucket], currency: str
) -> tuple[Decimal, Decimal]:
    """(what was promised, what was spent of it), in `currency`. What an invoice used up of a promise still counts."""
    entries: QuerySet[LedgerEntry] = LedgerEntry.objects.filter(request=request)
    spending = entries.filter(bucket=Bucket.ACTUAL)
    promises = entries.filter(bucket__in=buckets).exclude(source__in=spending.values("source"))
    return _total(promises, currency), _total(spending, currency)


def _total(entries: QuerySet[LedgerEntry], currency: str) -> Decimal:
    rows = entries.order_by().values_list("budget__currency").annotate(total=Sum("amount"))
    return sum(
        (_in_currency(Money(Decimal(total), own), currency)[0].amount for own, total in rows),
        Decimal(0),
    )


def _plan_of(request: CapacityRequest) -> PlanChoice:
    plan = PlanChoice.objects.filter(
        revision__request=request, revision__number=request.revision_number
    ).first()
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


def active_policy() -> ApprovalPolicy:
    """The policy in force. Raises DomainError when none was loaded."""
    policy = ApprovalPolicy.objects.filter(active=True).first()
    if policy is None:
        raise DomainError(
            msg("No approval policy is in force. Run: manage.py load_policies --preset small_team")
        )
    return policy


# --- upkeep ------------------------------------------------------------------------------------------------------


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


def require_keeper(by: User) -> None:
    """Raise NotPermitted unless `by` keeps budgets."""
    require(policies.can_keep_budgets(by))
