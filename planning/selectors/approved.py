"""What was approved for a request, what is ordered of it, and how far orders may go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import F

from core.exchange import convert
from core.money import Money, round_amount
from core.organisation import today
from planning.models.approvals import ApprovalPolicy, OverApproval
from planning.models.budgets import Bucket, LedgerEntry
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest
from planning.selectors.order_rates import at_order_rates


@dataclass(frozen=True, slots=True)
class Approved:
    """One request: the amount its approvers agreed to, and how far orders, with tax, may go."""

    request: CapacityRequest
    amount: Money  # of the chosen plan, in the organisation's currency at the rate frozen with it
    ordered: Money  # by orders that bind, what was paid of them included
    tolerance: Decimal
    over: OverApproval | None  # the highest amount that an approver agreed to since
    may_go_over: bool  # whether the policy lets an approver agree to more, with a reason

    @property
    def agreed(self) -> Money:
        """What was approved, or the higher amount that an approver agreed to since."""
        if self.over is None:
            return self.amount
        raised = Money(self.over.amount, self.over.currency)
        return raised if self.amount < raised else self.amount

    @property
    def limit(self) -> Money:
        """Up to here orders may go: what was agreed and the policy's tolerance."""
        agreed = self.agreed
        return Money(
            round_amount(agreed.amount * (1 + self.tolerance), agreed.currency), agreed.currency
        )


def approved(request_ids: Iterable[int]) -> dict[int, Approved]:
    """By request; requests without a chosen plan are left out. Four queries however many."""
    ids = set(request_ids)
    plans = list(
        PlanChoice.objects.filter(
            revision__request__in=ids,
            revision__number=F("revision__request__revision_number"),
        ).select_related("revision__request__team", "revision__policy")
    )
    in_force = ApprovalPolicy.objects.filter(active=True).first() or ApprovalPolicy()
    raised: dict[int, OverApproval] = {}
    rows = OverApproval.objects.filter(revision__in=[plan.revision_id for plan in plans])
    for row in rows.order_by("id"):
        best = raised.get(row.revision_id)
        if best is None or best.amount < row.amount:
            raised[row.revision_id] = row
    ordered: dict[int, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    rows_of = LedgerEntry.objects.filter(
        request__in=ids, bucket__in=[Bucket.COMMITTED, Bucket.ACTUAL]
    ).select_related("budget")
    for entry, amount in at_order_rates(rows_of):
        if entry.request_id is not None:
            ordered[entry.request_id][entry.budget.currency] += amount
    found = {}
    for plan in plans:
        request, base = plan.revision.request, plan.base_currency
        policy = plan.revision.policy or in_force
        spent = Money(Decimal(0), base)
        for currency, total in ordered[request.pk].items():
            if total:
                spent = spent + convert(Money(total, currency), base, today())
        found[request.pk] = Approved(
            request=request, amount=plan.base_money.rounded(), ordered=spent,
            tolerance=policy.order_tolerance, over=raised.get(plan.revision_id),
            may_go_over=policy.over_approval,
        )  # fmt: skip
    return found
