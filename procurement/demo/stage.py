"""The stage of the demo: its people, its vendors, moments counted back from today, and stories told side by side.

A story is a generator: it yields the moment of its next step and goes on when the clock stands there. All stories run
in one order of time, so that numbers, audit trail and budgets are as if people had worked like that.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from core.jobs import run_here
from core.models import Team, User
from planning.management.commands.load_demo import TIME_ZONE
from planning.models import CapacityRequest, Study
from planning.services import approvals, plans, requests, studies
from procurement.demo.clock import standing_at
from procurement.models import Vendor

ZONE = ZoneInfo(TIME_ZONE)
Story = Iterator[datetime]
SATURDAY = 5


class Stage:
    """Everything that stories share. `now` is the real moment at which the demo is loaded."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.today: date = now.astimezone(ZONE).date()
        self.vendors: dict[str, Vendor] = {}
        self.cards: tuple[str, ...] = ()  # device UUIDs of the cards in service
        self._people: dict[str, User] = {}

    def __getattr__(self, name: str) -> User:
        """A person by the part of the e-mail before the @."""
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._people:
            self._people[name] = User.objects.get(email=f"{name}@demo.example")
        return self._people[name]

    def team(self, slug: str) -> Team:
        return Team.objects.get(slug=slug)

    def day(self, ago: int) -> date:
        """So many days before today; below 0: after it."""
        return self.today - timedelta(days=ago)

    def at(self, ago: int, hour: int, minute: int = 0) -> datetime:
        """A moment of that day where the organisation is. Machines keep it, people do not come in on Sundays."""
        return datetime.combine(self.day(ago), time(hour, minute), ZONE)

    def office(self, ago: int, hour: int, minute: int = 0) -> datetime:
        """As `at`, on the Friday before where the day is of a weekend."""
        over = max(self.day(ago).weekday() - SATURDAY + 1, 0)
        return self.at(ago + over, hour, minute)


def play(stage: Stage, stories: Sequence[Callable[[Stage], Story]]) -> None:
    """Run all stories to their ends, always the one whose next step is the earliest; never after the real now."""
    running: list[tuple[datetime, int, Story]] = []
    for place, begin in enumerate(stories):
        story = begin(stage)
        running.append((next(story), place, story))
    heapq.heapify(running)
    while running:
        moment, place, story = heapq.heappop(running)
        with standing_at(min(moment, stage.now)):
            following = next(story, None)
        if following is not None:
            heapq.heappush(running, (max(following, moment), place, story))


# --- steps that most stories take ----------------------------------------------------------------------------------


def file_request(
    stage: Stage, *, by: User, team: str, kind: str, title: str, workload: dict[str, Any],
    justification: str, need_in: int, **terms: Any,
) -> CapacityRequest:  # fmt: skip
    """A draft of `by` that is needed `need_in` days after today."""
    return requests.create_request(
        team_id=stage.team(team).pk, kind=kind, title=title, workload=workload, by=by,
        justification=justification, need_by=stage.day(-need_in), **terms,
    )  # fmt: skip


def plan_and_submit(
    request: CapacityRequest, *, by: User, choose: Callable[[dict[str, Any]], bool] | None = None,
    use_reason: str = "",
) -> Study:  # fmt: skip
    """Study it here, choose the first plan that `choose` likes, and submit; `use_reason`: why idle cards do not do."""
    study = studies.request_study(revision_id=request.current.pk, by=by)
    run_job(study)
    study.refresh_from_db()
    found = [plan for plan in (study.result or {})["plans"] if choose is None or choose(plan)]
    plans.choose_plan(
        revision_id=request.current.pk, study_id=study.pk, plan_key=found[0]["key"], by=by
    )
    requests.submit_request(request_id=request.pk, by=by, use_reason=use_reason)
    return study


def run_job(row: Any) -> None:
    """Do at once what `row` queued; a failure ends the loading."""
    run_here(row.job)


def decide(request: CapacityRequest, by: User, decision: str = "approve", reason: str = "") -> None:
    """The vote of `by` on the step that waits."""
    request.refresh_from_db()
    step = request.current.steps.filter(status="pending").order_by("pk")[0]
    approvals.decide(
        step_id=step.pk, decision=decision, by=by, seen_hash=step.content_hash, reason=reason
    )


def bought(plan: dict[str, Any]) -> bool:
    """Whether the plan buys hardware."""
    return ":buy:" in plan["key"]
