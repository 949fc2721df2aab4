"""What each team's cards cost in a month: days that were booked, at what a day of a card costs in its plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from django.db.models import Q, Sum

from core.models import User
from core.money import Money, round_amount
from core.organisation import today
from planning.capacity import month_starts
from planning.models.allocations import Allocation
from planning.models.plans import PURCHASE_MODES, PlanChoice
from planning.models.telemetry import CardDay

# A bought card is spread over this long. [days]
LIFE_DAYS = 3 * 365


@dataclass(frozen=True, slots=True)
class ShowbackRow:
    """One allocation in one month. `cost` None: the plan tells no duration, so no price of a day."""

    allocation: Allocation
    month: date
    card_days: int
    day_price: Money | None
    utilisation: float | None  # mean over the month; None: no telemetry. Share

    @property
    def cost(self) -> Money | None:
        return None if self.day_price is None else (self.day_price * self.card_days).rounded()

    @property
    def idle_cost(self) -> Money | None:
        """The part of the cost for time in which the cards did nothing; None where either is unknown."""
        if self.cost is None or self.utilisation is None:
            return None
        idle = Decimal(str(round(1 - min(max(self.utilisation, 0.0), 1.0), 6)))
        return Money(round_amount(self.cost.amount * idle, self.cost.currency), self.cost.currency)


def showback(user: User, month: date) -> list[ShowbackRow]:
    """Rows of the month of `month`, of the teams that `user` may see; a running month up to today. Three queries."""
    first, following = month_starts(month, 1)
    last = min(following - timedelta(days=1), today())
    rows = list(
        Allocation.objects.visible_to(user)
        .filter(first_day__lte=last, last_day__gte=first)
        .exclude(Q(status="released") & Q(last_day__lt=first))
        .select_related("pool", "request", "team")
        .order_by("team__name", "request__number", "pk")
    )
    plans = {
        plan.revision.request_id: plan
        for plan in PlanChoice.objects.filter(
            revision__request__in=[row.request_id for row in rows]
        )
        .select_related("revision__request")
        .order_by("revision__number")
    }
    used = _utilisation(rows, first, last)
    found = []
    for row in rows:
        begin, end = max(row.first_day, first), min(row.last_day, last)
        plan = plans.get(row.request_id)
        found.append(
            ShowbackRow(
                allocation=row,
                month=first,
                card_days=row.cards * ((end - begin).days + 1),
                day_price=_day_price(plan) if plan else None,
                utilisation=used.get((row.team_id, row.pool.accelerator_slug)),
            )
        )
    return found


def _day_price(plan: PlanChoice) -> Money | None:
    """What one card costs a day in its plan, in the organisation's currency of then."""
    days = LIFE_DAYS if plan.mode in PURCHASE_MODES else plan.revision.duration_days
    return None if not days else Money(plan.base_amount / (plan.cards * days), plan.base_currency)


def _utilisation(
    rows: list[Allocation], first: date, last: date
) -> dict[tuple[int | None, str], float]:
    found = (
        CardDay.objects.filter(
            card__team__in={row.team_id for row in rows}, day__gte=first, day__lte=last
        )
        .order_by()
        .values_list("card__team", "card__accelerator_slug")
        .annotate(used=Sum("utilization_sum"), hours=Sum("utilization_hours"))
    )
    return {(team, slug): used / hours for team, slug, used, hours in found if hours}
