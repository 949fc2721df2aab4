"""What the telemetry of a reader's teams showed in the last four weeks, for the trouble finder."""

from __future__ import annotations

from datetime import timedelta

from core.models import User
from core.organisation import organisation, today
from planning.models.requests import visible_teams
from planning.selectors.telemetry import fleet
from planning.trouble import Signs

DAYS = 28


def signs_of(user: User) -> Signs:
    """Means over the teams that `user` may see; nothing where no source told."""
    org = organisation()
    teams = visible_teams(user)
    last = today(org) + timedelta(days=1)
    found = fleet(
        first=last - timedelta(days=DAYS), last=last, organisation=org,
        teams=None if teams is None else sorted(teams),
    )  # fmt: skip
    use = found.total
    return Signs(
        use.utilization,
        use.sm,
        use.memory,
        found.queue.p90,
        found.queue.interrupted,
        found.idle_owned,
    )
