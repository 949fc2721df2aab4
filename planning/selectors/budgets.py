"""Balances: sums over ledger entries, read when asked and never stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import QuerySet, Sum

from core.money import Money
from planning.models.budgets import Bucket, Budget, LedgerEntry
from planning.models.requests import CapacityRequest

ZERO = Decimal(0)


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
        sums[budget_id][bucket] = Decimal(amount)
    return {pk: Balance(currency=rows[pk].currency, **found) for pk, found in sums.items()}


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
    return {budget_id: Decimal(amount) for budget_id, amount in rows if amount}


@dataclass(frozen=True, slots=True)
class BudgetEffect:
    """What approving a request would do to the budget that pays for it."""

    budget: Budget | None  # None: no budget row exists for this quarter yet
    label: str
    before: Balance
    amount: Money  # in the budget's currency

    @property
    def after(self) -> Decimal:
        return self.before.available - self.amount.amount

    @property
    def fits(self) -> bool:
        return self.after >= 0


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
