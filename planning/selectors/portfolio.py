"""What all teams ask for, pooled, against what is owned and idle. Only requests that the reader may see are
pooled, and of those what is neither on order nor accepted for them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import numpy as np

from catalog.reference import accelerator_label
from catalog.selectors import accelerator_rows
from core.models import User
from core.money import Money
from core.organisation import today
from planning.economics.checks import Floats
from planning.economics.portfolio import OwnedPool, Pooled, TeamRequest, pool
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest
from planning.states import RequestStatus
from planning.stock import idle_stock
from planning.study.search.pooled import OthersDemand
from planning.study.search.snapshot import IdleStock
from planning.supply import bound_cards

DAYS = 364  # looked ahead
# Asked for and not there yet: what is fulfilled stands among the owned cards.
ASKED = (
    RequestStatus.SUBMITTED, RequestStatus.IN_REVIEW, RequestStatus.CHANGES_REQUESTED, RequestStatus.APPROVED,
    RequestStatus.SOURCING,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request's cards, from when until when (the horizon's end where no duration was told)."""

    request: CapacityRequest
    plan: PlanChoice
    first: date
    last: date
    bound: int  # cards on order or accepted for it

    @property
    def open(self) -> int:
        """Cards that nobody ordered yet."""
        return max(self.plan.cards - self.bound, 0)


@dataclass(frozen=True, slots=True)
class Pool:
    """All that is wanted of one accelerator."""

    accelerator: str  # slug
    name: str
    wanted: tuple[Wanted, ...]
    by_team: Mapping[str, Floats]  # cards wanted each day, ordered ones included
    bound: int  # on order or accepted
    owned: int
    idle: int
    pooled: Pooled
    currency: str


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Pools, largest first, and the requests that nobody can pool yet: they have no plan."""

    start: date
    pools: tuple[Pool, ...]
    without_plan: tuple[CapacityRequest, ...]

    def total(self, name: str) -> int:
        """Sum over the pools of one figure of theirs."""
        return sum(int(getattr(one.pooled, name)) for one in self.pools)


def portfolio(user: User, on: date | None = None) -> Portfolio:
    """Requests asked for and not there yet that `user` may see, pooled by accelerator over the year from `on`."""
    start = today() if on is None else on
    rows = list(
        CapacityRequest.objects.visible_to(user)
        .filter(status__in=ASKED)
        .with_current()
        .order_by("number")
    )
    wanted: dict[str, list[Wanted]] = defaultdict(list)
    bound = bound_cards([request.pk for request in rows])
    without = []
    for request in rows:
        plan = getattr(request.current, "plan", None)
        if plan is None:
            without.append(request)
            continue
        wanted[plan.accelerator_slug].append(
            _wanted(request, plan, start, bound.get((request.pk, plan.accelerator_slug), 0))
        )
    names = {slug: str(row["name"]) for slug, row in accelerator_rows().items()} if wanted else {}
    stock = idle_stock(start)
    pools = [
        _pool(slug, names.get(slug) or accelerator_label(slug), tuple(ones), start,
              [s for s in stock if s.accelerator == slug])
        for slug, ones in wanted.items()
    ]  # fmt: skip
    pools.sort(key=lambda one: (-one.pooled.sum_of_peaks, one.name))
    return Portfolio(start, tuple(pools), tuple(without))


def demand_of_others(request: CapacityRequest, on: date | None = None) -> dict[str, OthersDemand]:
    """By accelerator what every other open request asks for, ordered cards left out, idle owned cards used first.

    Sums over the organisation, for a study to count with, whoever may read it: no request and no team is named, and
    the study shows no figure of it while fewer than three other teams stand behind it. Needs without a plan are not in
    it.
    """
    start = today() if on is None else on
    rows = list(
        CapacityRequest.objects.filter(status__in=ASKED)
        .exclude(pk=request.pk)
        .with_current()
        .order_by("number")
    )
    bound = bound_cards([row.pk for row in rows])
    wanted: dict[str, list[Wanted]] = defaultdict(list)
    for row in rows:
        plan = getattr(row.current, "plan", None)
        if plan is not None:
            slug = plan.accelerator_slug
            one = _wanted(row, plan, start, bound.get((row.pk, slug), 0))
            if one.open:
                wanted[slug].append(one)
    stock = idle_stock(start) if wanted else []
    found = {}
    for slug, ones in wanted.items():
        free = sum(item.free for item in stock if item.accelerator == slug)
        by_team: dict[int, Floats] = defaultdict(lambda: np.zeros(DAYS))
        used = np.zeros(DAYS)
        for one in ones:
            low, high = max((one.first - start).days, 0), min((one.last - start).days + 1, DAYS)
            by_team[one.request.team_id][low:high] += one.open
            used[low:high] += one.open * _busy(one)
        together = np.sum(list(by_team.values()), axis=0)
        if not together.any():
            continue
        left = np.maximum(together - free, 0.0) / np.maximum(together, 1.0)
        found[slug] = OthersDemand(
            requests=len(ones), alone=int(sum(series.max() for series in by_team.values())),
            together=int(together.max()), idle=free, card_hours=round(float((used * left).sum()) * 24, 3),
            teams=len(set(by_team) - {request.team_id}),
        )  # fmt: skip
    return found


def _busy(one: Wanted) -> float:
    """Of its days the share in which the plan uses its cards; all of them where it does not tell."""
    hours, days = one.plan.summary.get("hours"), (one.last - one.first).days + 1
    return min(float(hours) / (24 * days), 1.0) if hours else 1.0


def _wanted(request: CapacityRequest, plan: PlanChoice, start: date, bound: int) -> Wanted:
    revision = request.current
    first = max(revision.start or revision.need_by, start)
    days = revision.duration_days or _days_of(plan)
    last = start + timedelta(days=DAYS - 1) if days is None else first + timedelta(days=days - 1)
    return Wanted(request, plan, first, last, min(bound, plan.cards))


def _days_of(plan: PlanChoice) -> int | None:
    """How long the plan holds its cards; None: not known. [d]"""
    hours = plan.summary.get("hours")
    return max(math.ceil(float(hours) / 24), 1) if hours else None


def _pool(
    slug: str, name: str, wanted: tuple[Wanted, ...], start: date, stock: list[IdleStock]
) -> Pool:
    by_team: dict[str, Floats] = defaultdict(lambda: np.zeros(DAYS))
    left: dict[str, Floats] = defaultdict(lambda: np.zeros(DAYS))
    for one in wanted:
        low = max((one.first - start).days, 0)
        high = min((one.last - start).days + 1, DAYS)
        team = str(one.request.team)
        by_team[team][low:high] += one.plan.cards
        left[team][low:high] += one.open
    owned = [
        OwnedPool(item.name, item.cards, np.full(DAYS, float(item.cards - item.free)))
        for item in stock
    ]
    currency = wanted[0].plan.base_currency
    cards = sum(one.plan.cards for one in wanted)
    paid = sum((one.plan.base_amount for one in wanted), Decimal(0))
    pooled = pool(
        [TeamRequest(team, series) for team, series in left.items()],
        owned,
        price_per_card=Money(paid / cards, currency),
    )
    return Pool(
        slug, name, wanted, dict(by_team), sum(one.bound for one in wanted),
        sum(item.cards for item in owned), pooled.idle_owned, pooled, currency,
    )  # fmt: skip
