"""Into which fiscal quarters the money of a plan falls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta

from django.db.models import Q

from core.exchange import convert
from core.money import ExchangeRate, Money
from core.organisation import today
from core.quarters import Quarter, months_later
from planning.models.approvals import ApprovalPolicy
from planning.models.budgets import Budget
from planning.models.plans import PaymentChoice, PlanChoice
from planning.selectors.budgets import ZERO, Balance, BudgetEffect, balances_and_asked, plan_in
from planning.terms import days_by_quarter, split

# Paid for over a term; its length in months, None: as long as the request says.
TERM_MONTHS: dict[str, int | None] = {
    PaymentChoice.RESERVED_1Y: 12,
    PaymentChoice.RESERVED_3Y: 36,
    PaymentChoice.SUBSCRIPTION: None,
    PaymentChoice.LEASED: None,
}


def term_of(plan: PlanChoice) -> tuple[date, date] | None:
    """First and last day of a contract over a term; None for what is paid once or by the hour, or has no length."""
    if plan.mode not in TERM_MONTHS:
        return None
    revision = plan.revision
    first = revision.start or revision.need_by
    months = TERM_MONTHS[plan.mode]
    if months is not None:
        return first, months_later(first, months) - timedelta(days=1)
    if revision.duration_days is None:
        return None
    return first, first + timedelta(days=revision.duration_days - 1)


def quarters_of(
    plan: PlanChoice, policy: ApprovalPolicy | None, current: Quarter
) -> list[tuple[Quarter, int]]:
    """Quarters and the days of the term in them; the running quarter alone where nothing is spread."""
    term = term_of(plan) if policy is not None and policy.spread_terms else None
    return days_by_quarter(*term, current) if term else [(current, 1)]


def parts_of(money: Money, shares: Sequence[tuple[Quarter, int]]) -> list[Money]:
    """`money` by quarter, to the cent; as it is where there is one."""
    return [money] if len(shares) == 1 else split(money, [days for _quarter, days in shares])


def bound_ahead(
    policy: ApprovalPolicy | None, quarter: Quarter, current: Quarter, balance: Balance
) -> bool:
    """Whether a later quarter may be bound because nobody has allotted anything to it: years to come have no budget."""
    return policy is not None and policy.bind_ahead and quarter > current and balance.allotted == 0


def effects(plans: Iterable[PlanChoice], current: Quarter) -> dict[int, BudgetEffect]:
    """What approving would do, by plan id: to the budget of the running quarter, or of each quarter of a term.

    A fixed number of queries.
    """
    plans = list(plans)
    policies = {row.pk: row for row in ApprovalPolicy.objects.filter(
        Q(active=True) | Q(pk__in={plan.revision.policy_id for plan in plans})
    )}  # fmt: skip
    in_force = next((row for row in policies.values() if row.active), None)
    shares = {}
    for plan in plans:
        policy = policies.get(plan.revision.policy_id or 0, in_force)
        shares[plan.pk] = (policy, quarters_of(plan, policy, current))
    wanted = {quarter for _policy, found in shares.values() for quarter, _days in found}
    rows = {
        (row.team_id, row.kind, row.period(current.start_month)): row
        for row in Budget.objects.filter(
            fiscal_year__in={quarter.year for quarter in wanted},
            team__in={plan.revision.request.team_id for plan in plans},
        ).select_related("team")
    }
    sums, own = balances_and_asked(rows.values(), {plan.revision.request_id for plan in plans})
    found = {}
    for plan in plans:
        policy, parts = shares[plan.pk]
        lines = []
        for (quarter, _days), piece in zip(parts, parts_of(plan.money, parts), strict=True):
            budget = rows.get((plan.revision.request.team_id, plan.spend_kind, quarter))
            currency = budget.currency if budget else plan.base_currency
            before = sums[budget.pk] if budget else Balance(currency)
            lines.append(
                BudgetEffect(
                    budget=budget, label=str(quarter), before=before,
                    amount=plan_in(plan, currency)
                    if len(parts) == 1
                    else _at_plan_rate(plan, piece, currency),
                    ahead=bound_ahead(policy, quarter, current, before),
                    own=own.get((budget.pk, plan.revision.request_id), ZERO) if budget else ZERO,
                )
            )  # fmt: skip
        found[plan.pk] = (
            replace(lines[0], quarters=tuple(lines)) if term_of(plan) and len(lines) > 1 else lines[0]
        )  # fmt: skip
    return found


def _at_plan_rate(plan: PlanChoice, piece: Money, currency: str) -> Money:
    if piece.currency != currency == plan.base_currency:
        return piece.convert(ExchangeRate(plan.currency, currency, plan.rate, plan.rate_date))
    return convert(piece, currency, today())
