"""The planning side of a quarter's figures, read at one instant: demand, decisions and budgets."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet

from core.exchange import MissingRate, convert
from core.messages import Message, msg
from core.models import Organisation, Team, User
from core.money import Money, total
from core.quarters import Quarter
from planning.actuals import QuarterActuals
from planning.models.budgets import Budget
from planning.models.month_one import ReviewRules
from planning.models.requests import CapacityRequest
from planning.models.reviews import CapacityReview
from planning.review_policies import can_see_reviews
from planning.selectors.budgets import balances
from planning.selectors.review_use import use_figures
from planning.selectors.review_work import earlier_actions, plans
from planning.states import TERMINAL_REQUEST

BUCKETS = ("allotted", "reserved", "approved", "committed", "actual", "available")
SCHEMA = "headroom/review-1"


def visible_reviews(user: User) -> QuerySet[CapacityReview]:
    """All reviews for central roles, none for others."""
    return (
        CapacityReview.objects.select_related("team")
        if can_see_reviews(user)
        else CapacityReview.objects.none()
    )


def review_figures(
    *,
    period: Quarter,
    organisation: Organisation,
    actuals: QuarterActuals,
    as_of: datetime,
    team: Team | None = None,
) -> dict[str, Any]:
    """Everything a review shows, as JSON values. What is not known is a named hole, never a zero.

    `team`: its requests, budgets, orders, cards, use and decisions only; None: the whole organisation.
    """
    currency = organisation.currency
    day = as_of.astimezone(organisation.zone).date()
    holes: list[Message] = list(actuals.holes)
    if team is not None:
        actuals = actuals.of_team(team.name)
        holes.append(
            msg(
                "Scores of vendors, open RFQs, returns and calibration are those of the whole organisation."
            )
        )
    requests = _requests(period, organisation, as_of, team)
    budgets = _budgets(period, currency, day, holes, team)
    orders, ordered_total = _orders(actuals, currency, day, holes)
    if not budgets:
        holes.append(msg("No budget was set for %(quarter)s.", quarter=str(period)))
    rules = ReviewRules.objects.first() or ReviewRules()
    use = use_figures(
        period=period, organisation=organisation, actuals=actuals, day=day, holes=holes,
        statistic=rules.queue_statistic, queue_limit=rules.queue_hours * 3600,
        low_use=rules.oversized_percent / 100, team=team,
    )  # fmt: skip
    frozen = actuals.to_json()
    cards = Counter(card.state for card in actuals.cards)
    verdicts = Counter(card.verdict or "none" for card in actuals.cards)
    return {
        "schema": SCHEMA,
        "quarter": str(period),
        "from": period.start.isoformat(),
        "until": period.end.isoformat(),
        "as_of": as_of.isoformat(timespec="seconds"),
        "currency": currency,
        "organisation": organisation.legal_name or organisation.name,
        "requests": requests,
        "demand": _demand(requests),
        "budgets": budgets,
        "orders": orders,
        "ordered_total": ordered_total,
        "cards": frozen["cards"],
        "card_states": dict(cards),
        "verdicts": dict(verdicts),
        **{name: frozen[name] for name in ("vendors", "rfqs", "rmas")},
        "open_rfqs": actuals.open_rfqs,
        "open_rmas": actuals.open_rmas,
        **use,
        "team": team.name if team else "",
        "earlier_actions": earlier_actions(period, team),
        "plans": plans(period, organisation, team),
        "holes": [hole.to_json() for hole in holes],
    }


def _requests(
    period: Quarter, organisation: Organisation, as_of: datetime, team: Team | None
) -> list[dict[str, Any]]:
    """Requests that lived in the quarter: filed before its end, and open in it or ended within it."""
    start, end = period.span(organisation.zone)
    rows = (
        CapacityRequest.objects.filter(created_at__lt=min(end, as_of))
        .exclude(status__in=TERMINAL_REQUEST, status_since__lt=start)
        .with_current()
        .order_by("number")
    )
    if team is not None:
        rows = rows.filter(team=team)
    found = []
    for request in rows:
        revision = request.current
        plan = getattr(revision, "plan", None)
        found.append(
            {
                "reference": request.reference,
                "title": request.title,
                "team": request.team.name,
                "kind": request.kind,
                "status": request.status,
                "since": request.status_since.isoformat(timespec="seconds"),
                "cards": plan.cards if plan else None,
                "accelerator": plan.accelerator_slug if plan else "",
                "mode": plan.mode if plan else "",
                "amount": str(plan.base_money.rounded().amount) if plan else None,
            }
        )
    return found


def _demand(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By team and kind: how many requests, how many cards, how much money; requests without a plan counted apart."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in requests:
        groups[row["team"], row["kind"]].append(row)
    return [
        {
            "team": team,
            "kind": kind,
            "requests": len(rows),
            "cards": sum(planned)
            if (planned := [r["cards"] for r in rows if r["cards"] is not None])
            else None,
            "without_plan": sum(1 for row in rows if row["cards"] is None),
            "amount": str(sum(priced, Decimal(0)))
            if (priced := [Decimal(r["amount"]) for r in rows if r["amount"]])
            else None,
        }
        for (team, kind), rows in sorted(groups.items())
    ]


def _budgets(
    period: Quarter, currency: str, day: Any, holes: list[Message], team: Team | None
) -> list[dict[str, Any]]:
    own = Q() if team is None else Q(team=team)
    rows = list(
        Budget.objects.filter(own, fiscal_year=period.year, quarter=period.q)
        .select_related("team")
        .order_by("team__name", "kind")
    )
    sums = balances(rows)
    found = []
    for row in rows:
        balance = sums[row.pk]
        line: dict[str, Any] = {"team": row.team.name, "kind": row.kind, "currency": row.currency}
        for bucket in BUCKETS:
            line[bucket] = str(Money(getattr(balance, bucket), row.currency).rounded().amount)
        try:
            line["base"] = {
                bucket: str(
                    convert(Money(getattr(balance, bucket), row.currency), currency, day)
                    .rounded()
                    .amount
                )
                for bucket in BUCKETS
            }
        except MissingRate as error:
            line["base"] = None
            holes.append(error.message)
        found.append(line)
    return found


def _orders(
    actuals: QuarterActuals, currency: str, day: Any, holes: list[Message]
) -> tuple[list[dict[str, Any]], str | None]:
    """Order lines with their amount in the base currency beside; the total only when every line has one."""
    lines = actuals.to_json()["orders"]
    converted: list[Money] = []
    for line, order in zip(lines, actuals.orders, strict=True):
        try:
            base = convert(Money(order.amount, order.currency), currency, day).rounded()
        except MissingRate as error:
            line["base_amount"] = None
            holes.append(error.message)
            continue
        line["base_amount"] = str(base.amount)
        converted.append(base)
    complete = len(converted) == len(lines)
    return lines, str(total(converted, currency).amount) if complete else None
