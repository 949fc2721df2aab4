"""Earlier decisions and teams' plans, as a review shows and freezes them."""

from __future__ import annotations

from typing import Any

from core.models import Organisation, Team
from core.quarters import Quarter
from planning.models.review_work import ReviewAction, TeamPlan
from planning.models.reviews import CapacityReview
from planning.selectors.telemetry import fleet


def earlier_actions(period: Quarter) -> list[dict[str, Any]]:
    """Items of earlier reviews: all that are open, and what became of those of the review before."""
    before = period.previous()
    rows = ReviewAction.objects.select_related("review", "owner", "request").exclude(
        review__fiscal_year=period.year, review__quarter=period.q
    )
    return [
        {
            "review": str(row.review), "text": row.text, "pool": row.pool, "owner": str(row.owner),
            "due": row.due_on.isoformat(), "state": row.status,
            "request": row.request.reference if row.request else "", "outcome": row.outcome,
        }
        for row in rows
        if row.status == ReviewAction.Status.OPEN
        or (row.review.fiscal_year, row.review.quarter) == (before.year, before.q)
    ]  # fmt: skip


def busy_cards(team: Team, period: Quarter, organisation: Organisation) -> float | None:
    """Mean of the team's busy cards in a quarter; None: nobody told."""
    use = fleet(
        first=period.start, last=period.end, organisation=organisation, teams=[team.pk]
    ).total
    return None if use.utilization is None else use.utilization * use.cards


def plans(period: Quarter, organisation: Organisation) -> list[dict[str, Any]]:
    """Each team's plan for the coming months, and its last one beside what happened."""
    review = CapacityReview.objects.filter(fiscal_year=period.year, quarter=period.q).first()
    before = period.previous()
    last = {
        plan.team_id: plan
        for plan in TeamPlan.objects.filter(
            review__fiscal_year=before.year, review__quarter=before.q
        ).select_related("team")
    }
    now = {
        plan.team_id: plan
        for plan in (review.plans.select_related("team") if review else TeamPlan.objects.none())
    }
    found = []
    for team_id in sorted({*last, *now}):
        plan, old = now.get(team_id), last.get(team_id)
        team = (plan or last[team_id]).team
        found.append(
            {
                "team": team.name, "cards": plan.cards if plan else None, "text": plan.text if plan else "",
                "last": old.cards if old else None,
                "measured": busy_cards(team, period, organisation) if old else None,
            }
        )  # fmt: skip
    return found
