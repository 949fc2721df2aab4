"""How busy the cards are that a team has already: what the rules ask to be used first."""

from __future__ import annotations

from datetime import date, timedelta

from django.db.models import Max, Sum

from planning.models.allocations import Allocation
from planning.models.approvals import ApprovalPolicy
from planning.models.requests import CapacityRequest, RequestRevision
from planning.models.team_use import RevisionUse
from planning.models.telemetry import Ownership, PoolDay

# Telemetry has to speak for this share of the cards' hours, or their use is not known. [1]
LEAST_COVERED = 0.25
DAY_HOURS = 24


def team_use(team_id: int, policy: ApprovalPolicy | None, on: date) -> RevisionUse | None:
    """The team's use over the policy's days before `on`, not stored; None when the policy does not ask.

    What it has: cards that are owned or reserved and told of by telemetry, and what is booked for it today; whichever
    is more. Clouds by the hour are not had. Three queries.
    """
    if policy is None or policy.use_first_below is None:
        return None
    first = on - timedelta(days=policy.use_days)
    told = (
        PoolDay.objects.filter(team=team_id, day__gte=first, day__lt=on)
        .exclude(ownership=Ownership.CLOUD)
        .order_by()
        .values("accelerator_slug", "ownership")
        .annotate(most=Max("cards"), busy=Sum("utilization_sum"), hours=Sum("utilization_hours"))
    )
    rows = list(told)
    booked = Allocation.objects.standing().filter(
        team=team_id, first_day__lte=on, last_day__gte=on
    )  # fmt: skip
    cards = max(
        sum(row["most"] for row in rows), booked.aggregate(cards=Sum("cards"))["cards"] or 0
    )
    hours = sum(row["hours"] for row in rows)
    covered = min(hours / (cards * policy.use_days * DAY_HOURS), 1.0) if cards else None
    known = covered is not None and hours > 0 and covered >= LEAST_COVERED
    state = RevisionUse.State
    return RevisionUse(
        state=state.NONE if not cards else state.KNOWN if known else state.UNKNOWN,
        share=min(sum(row["busy"] for row in rows) / hours, 1.0) if known else None,
        cards=cards,
        covered=covered,
        first=first,
        last=on - timedelta(days=1),
        below=float(policy.use_first_below),
    )


def use_kept(revision: RequestRevision) -> RevisionUse | None:
    """What was measured when `revision` was submitted; None: not submitted, or the policy did not ask."""
    found: RevisionUse | None = getattr(revision, "team_use", None)
    return found


def use_of(request: CapacityRequest, policy: ApprovalPolicy | None, on: date) -> RevisionUse | None:
    """For a draft what would be measured now, else what was measured at submission."""
    revision = request.current
    return use_kept(revision) if revision.is_frozen else team_use(request.team_id, policy, on)
