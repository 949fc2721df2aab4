"""Earlier decisions and teams' plans, as a review shows and freezes them."""

from __future__ import annotations

from typing import Any

from core.models import Organisation, Team, User
from core.quarters import Quarter
from planning.follow_ups import became
from planning.models.review_work import ReviewAction, TeamPlan
from planning.models.reviews import CapacityReview
from planning.review_policies import can_see_action
from planning.selectors.telemetry import fleet


def recommendation_of(action: ReviewAction) -> dict[str, Any] | None:
    """The recommendation for the decision's pool in the newest figures, with the `currency` of its amounts."""
    if not action.pool:
        return None
    return next((row for row in recommendations(action.review) if row["pool"] == action.pool), None)


def recommendations(review: CapacityReview) -> list[dict[str, Any]]:
    """Those of the newest figures of a review, each with the `currency` of its amounts."""
    snapshot = review.snapshots.first()
    if snapshot is None:
        return []
    currency = snapshot.data["currency"]
    return [{**row, "currency": currency} for row in snapshot.data.get("recommendations", [])]


def team_of(pool: str) -> Team | None:
    """The team of a pool's key; None: it belongs to none."""
    return Team.objects.filter(slug=pool.split(" · ")[0], active=True).first() if pool else None


def decided_in(action: ReviewAction | None, user: User) -> dict[str, str] | None:
    """The decision from which something was filed: `review`; `text` and `url` for those who may see it."""
    if action is None:
        return None
    seen = can_see_action(user, action)
    return {
        "review": str(action.review),
        "text": action.text if seen else "",
        "url": action.get_absolute_url() if seen else "",
    }


def action_behind(**what: Any) -> ReviewAction | None:
    """The decision that became this `request` or `transfer`."""
    return ReviewAction.objects.filter(**what).select_related("review").first()


def earlier_actions(period: Quarter, team: Team | None = None) -> list[dict[str, Any]]:
    """Items of earlier reviews: all that are open, and what became of those of the review before."""
    before = period.previous()
    rows = [
        row
        for row in ReviewAction.objects.select_related("review__team", "owner")
        .exclude(review__fiscal_year=period.year, review__quarter=period.q)
        .filter(review__team=team)
        if row.status == ReviewAction.Status.OPEN
        or (row.review.fiscal_year, row.review.quarter) == (before.year, before.q)
    ]
    filed = became([row.pk for row in rows], None)
    return [
        {
            "review": str(row.review), "text": row.text, "pool": row.pool, "owner": str(row.owner),
            "due": row.due_on.isoformat(), "state": row.status,
            "became": [
                {"kind": one.kind, "reference": one.reference, "state": one.state}
                for one in filed.get(row.pk, [])
            ],
            "outcome": row.outcome,
        }
        for row in rows
    ]  # fmt: skip


def busy_cards(team: Team, period: Quarter, organisation: Organisation) -> float | None:
    """Mean of the team's busy cards in a quarter; None: nobody told."""
    use = fleet(
        first=period.start, last=period.end, organisation=organisation, teams=[team.pk]
    ).total
    return None if use.utilization is None else use.utilization * use.cards


def plans(
    period: Quarter, organisation: Organisation, team: Team | None = None
) -> list[dict[str, Any]]:
    """Each team's plan for the coming months, and its last one beside what happened."""
    reviews = CapacityReview.objects.of_unit(team.pk if team else None)
    review = reviews.filter(fiscal_year=period.year, quarter=period.q).first()
    before = period.previous()
    last = {
        plan.team_id: plan
        for plan in TeamPlan.objects.filter(
            review__fiscal_year=before.year, review__quarter=before.q, review__team=team
        ).select_related("team")
    }
    now = {
        plan.team_id: plan
        for plan in (review.plans.select_related("team") if review else TeamPlan.objects.none())
    }
    found = []
    for team_id in sorted({*last, *now}):
        plan, old = now.get(team_id), last.get(team_id)
        whose = (plan or last[team_id]).team
        found.append(
            {
                "team": whose.name, "cards": plan.cards if plan else None, "text": plan.text if plan else "",
                "last": old.cards if old else None,
                "measured": busy_cards(whose, period, organisation) if old else None,
            }
        )  # fmt: skip
    return found
