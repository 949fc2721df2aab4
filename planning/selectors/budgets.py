"""Balances: sums over ledger entries, read when asked and never stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Case, Q, QuerySet, Sum, When

from core.exchange import convert
from core.money import Money
from core.organisation import organisation, today
from planning.models.budgets import Bucket, Budget, LedgerEntry
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest, RequestQuerySet

ZERO = Decimal(0)
_DIGITS = Decimal("0.001")


def exact(total: Decimal) -> Decimal:
    """A sum of entries with the ledger's three digits: SQLite adds them up as floating point."""
    return Decimal(total).quantize(_DIGITS)


@dataclass(frozen=True, slots=True)
class Balance:
    """The five sums of a budget, in its currency, and what follows from them."""

    currency: str
    allotted: Decimal = ZERO
    reserved: Decimal = ZERO
    approved: Decimal = ZERO
    committed: Decimal = ZERO
    actual: Decimal = ZERO

    @property
    def available(self) -> Decimal:
        """What an approval or an order may still take."""
        return self.allotted - self.approved - self.committed - self.actual

    @property
    def after_requests(self) -> Decimal:
        """What would be left if everything asked for were approved. Below zero: more was asked than there is."""
        return self.available - self.reserved

    def behind(self, bound: Decimal) -> Decimal:
        """The money that stands behind `bound`, a part of what is approved or ordered: less than it, or none, where a
        quarter was bound ahead of its allotment. What is bound besides keeps its own first."""
        return min(bound, max(self.available + bound, ZERO))

    def share(self, bucket: str) -> float | None:
        """Part of the allotment, 0 to 1 and above; None without an allotment."""
        if self.allotted <= 0:
            return None
        return float(getattr(self, bucket) / self.allotted)


def balances(budgets: Iterable[Budget]) -> dict[int, Balance]:
    """Balance by budget id; one query for all."""
    rows = {budget.pk: budget for budget in budgets}
    sums: dict[int, dict[str, Decimal]] = {pk: {} for pk in rows}
    found = (
        LedgerEntry.objects.filter(budget__in=list(rows))
        .order_by()
        .values_list("budget_id", "bucket")
        .annotate(total=Sum("amount"))
    )
    for budget_id, bucket, amount in found:
        sums[budget_id][bucket] = exact(amount)
    return {pk: Balance(currency=rows[pk].currency, **found) for pk, found in sums.items()}


def balances_and_asked(
    budgets: Iterable[Budget], requests: Collection[int]
) -> tuple[dict[int, Balance], dict[tuple[int, int], Decimal]]:
    """Balance by budget id, and what each of `requests` asks for by (budget id, request id), in one query."""
    rows = {budget.pk: budget for budget in budgets}
    sums: dict[int, dict[str, Decimal]] = {pk: {} for pk in rows}
    asked: dict[tuple[int, int], Decimal] = {}
    whose = Case(When(request__in=requests, then="request"), default=None)
    found = (
        LedgerEntry.objects.filter(budget__in=list(rows))
        .order_by()
        .values_list("budget_id", "bucket", whose)
        .annotate(total=Sum("amount"))
    )
    for budget_id, bucket, request_id, amount in found:
        sums[budget_id][bucket] = sums[budget_id].get(bucket, ZERO) + exact(amount)
        if request_id is not None and bucket == Bucket.RESERVED:
            asked[budget_id, request_id] = exact(amount)
    return {pk: Balance(currency=rows[pk].currency, **kept) for pk, kept in sums.items()}, asked


def balance(budget: Budget) -> Balance:
    """The balance of one budget."""
    return balances([budget])[budget.pk]


def held(request: CapacityRequest, bucket: str) -> dict[int, Decimal]:
    """What stands for `request` in `bucket`, by budget id; budgets at zero left out."""
    rows = (
        LedgerEntry.objects.filter(request=request, bucket=bucket)
        .order_by()
        .values_list("budget_id")
        .annotate(total=Sum("amount"))
    )
    found = ((budget_id, exact(amount)) for budget_id, amount in rows)
    return {budget_id: amount for budget_id, amount in found if amount}


def sums_with(
    budgets: Iterable[Budget], request: CapacityRequest, bucket: str
) -> tuple[dict[int, Balance], dict[int, Decimal]]:
    """Balance by budget id, and what stands for `request` in `bucket` by budget id (also of budgets not given), in one
    query: what is read while a budget is locked."""
    rows = {budget.pk: budget for budget in budgets}
    sums: dict[int, dict[str, Decimal]] = {pk: {} for pk in rows}
    standing: dict[int, Decimal] = {}
    own = Q(request=request, bucket=bucket)
    found = (
        LedgerEntry.objects.filter(Q(budget__in=list(rows)) | own)
        .order_by()
        .values_list("budget_id", "bucket")
        .annotate(total=Sum("amount"), own=Sum("amount", filter=own))
    )
    for budget_id, name, total, mine in found:
        if budget_id in sums:
            sums[budget_id][name] = exact(total)
        if mine and exact(mine):
            standing[budget_id] = exact(mine)
    return {pk: Balance(rows[pk].currency, **found) for pk, found in sums.items()}, standing


@dataclass(frozen=True, slots=True)
class BudgetEffect:
    """What approving a request would do to the budget that pays for it."""

    budget: Budget | None  # None: no budget row exists for this quarter yet
    label: str
    before: Balance
    amount: Money  # in the budget's currency
    ahead: bool = False  # a later quarter without an allotment, which the rules let be bound
    quarters: tuple[BudgetEffect, ...] = ()  # of a contract over a term, this one first
    own: Decimal = ZERO  # what this request has asked for already, in the budget's currency

    @property
    def others(self) -> Decimal:
        """What other requests ask for of the same budget, which nobody has approved."""
        return max(self.before.reserved - self.own, ZERO)

    @property
    def short_with_others(self) -> bool:
        """Whether the budget holds this request alone, and not the others beside it."""
        return self.others > 0 and self.fits and self.after < self.others

    @property
    def after(self) -> Decimal:
        return self.before.available - self.amount.amount

    @property
    def fits(self) -> bool:
        return all(part.fits for part in self.quarters) if self.quarters else self._holds

    @property
    def _holds(self) -> bool:
        return self.ahead or self.after >= 0


def plan_in(plan: PlanChoice, currency: str) -> Money:
    """The plan's amount in a budget's currency: at the frozen rate where that leads there, else at today's."""
    if plan.currency == currency:
        return plan.money.rounded()
    if plan.base_currency == currency:
        return plan.base_money.rounded()
    return convert(plan.money, currency, today())


@dataclass(frozen=True, slots=True)
class Precedent:
    """An earlier request of the same kind, and what was spent on it so far (None: nothing yet)."""

    request: CapacityRequest
    spent: Money | None


def similar(request: CapacityRequest, readable: RequestQuerySet) -> list[Precedent]:
    """The last five approved requests of the same kind that the reader may see, spending in today's base currency."""
    past = list(
        readable.filter(kind=request.kind, status__in=["approved", "sourcing", "fulfilled"])
        .exclude(pk=request.pk)
        .with_current()
        .order_by("-number")[:5]
    )
    currency = organisation().currency
    spent: dict[int, Money] = {}
    rows = (
        LedgerEntry.objects.filter(request__in=past, bucket=Bucket.ACTUAL)
        .order_by()
        .values_list("request_id", "budget__currency")
        .annotate(total=Sum("amount"))
    )
    for pk, own, total in rows:
        amount = convert(Money(Decimal(total), own), currency, today())
        spent[pk] = spent[pk] + amount if pk in spent else amount
    return [Precedent(row, spent.get(row.pk)) for row in past]


def entries(budget: Budget) -> QuerySet[LedgerEntry]:
    """The ledger of a budget, newest first, with what a table shows."""
    rows: QuerySet[LedgerEntry] = LedgerEntry.objects.filter(budget=budget)
    return rows.select_related("posted_by", "request", "reverses", "reversal")


def sums_for_request(request: CapacityRequest) -> dict[str, Decimal]:
    """Reserved, approved, committed and actual of one request, per bucket, over all its budgets of one currency."""
    rows = (
        LedgerEntry.objects.filter(request=request)
        .exclude(bucket=Bucket.ALLOTTED)
        .order_by()
        .values_list("bucket", "budget__currency")
        .annotate(total=Sum("amount"))
    )
    return {f"{bucket} {currency}": Decimal(total) for bucket, currency, total in rows if total}
