"""On what conditions a revision was approved: up to which amount, to be ordered by when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from core.exchange import MissingRate, convert
from core.messages import Message, msg
from core.money import Money
from core.templatetags.ui import money
from planning.models.approvals import Decision, Vote
from planning.models.plans import PlanChoice
from planning.models.requests import RequestRevision
from planning.states import StepStatus


@dataclass(frozen=True, slots=True)
class Conditions:
    """The strictest of every approval that counts; None where nobody set one."""

    cap: Money | None = None
    order_by: date | None = None

    def __bool__(self) -> bool:
        return self.cap is not None or self.order_by is not None


def lowest(caps: Iterable[Money], plan: PlanChoice) -> Money | None:
    """The lowest of several caps, compared at the rate of the day that is frozen with the plan."""
    return min(
        caps,
        key=lambda cap: convert(cap, plan.base_currency, plan.rate_date).amount,
        default=None,
    )


def below_plan(cap: Money | None, plan: PlanChoice) -> Message | None:
    """That a plan costs more than an approval's `cap`, with both amounts; None where it fits."""
    if cap is None or cap.amount <= 0:
        return None
    if cap.currency == plan.currency:
        cost = plan.money
    else:
        cost = plan.base_money
    try:
        if convert(cap, cost.currency, plan.rate_date).amount >= cost.amount:
            return None
    except MissingRate:  # nothing to compare by; a decision is refused for it
        return None
    return msg(
        "The plan costs %(cost)s and the approval holds up to %(cap)s: as it is planned, it cannot be ordered.",
        cost=money(cost),
        cap=money(cap),
    )


def conditions(revision: RequestRevision) -> Conditions:
    """What orders for `revision` are held to. One query."""
    votes = list(
        Vote.objects.filter(step__revision=revision, decision=Decision.APPROVE).exclude(
            step__status=StepStatus.VOID
        )
    )
    days = [vote.order_by for vote in votes if vote.order_by is not None]
    return Conditions(
        lowest([vote.cap for vote in votes if vote.cap is not None], revision.plan),
        min(days, default=None),
    )
