"""The calendar of capacity, within what the reader may see."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from django.db.models import Sum

from core.models import User
from core.organisation import today
from planning.capacity import (
    APPROVED,
    REQUESTED,
    RESERVED,
    RUNNING,
    Demand,
    Pool,
    Supply,
    daily,
    maintenance,
    pool,
)
from planning.models.allocations import Allocation, AllocationQuerySet
from planning.models.plans import PaymentChoice, PlanChoice
from planning.models.probabilities import STAGES
from planning.models.requests import CapacityRequest, RequestQuerySet, visible_teams
from planning.models.telemetry import CardDay
from planning.selectors.probabilities import values
from planning.selectors.telemetry import IDLE_BELOW
from planning.states import RequestStatus
from planning.supply import card_supply, lead_days

MONTHS = 12
SURE = (RequestStatus.APPROVED, RequestStatus.SOURCING)
# A cloud gives these by the hour: they need no cards of our own.
ELASTIC = (PaymentChoice.ON_DEMAND, PaymentChoice.SPOT)
TERMS: dict[str, int] = {PaymentChoice.RESERVED_1Y: 365, PaymentChoice.RESERVED_3Y: 3 * 365}
# A team is told of cards it does not use; others see it only after this long.
TEAM_FIRST = timedelta(days=14)
IDLE_SHARE = 0.6  # fewer busy than this share of the allocated cards: hoarded
LOOK_BACK = 28  # days


@dataclass(frozen=True, slots=True)
class Hoarded:
    """An allocation of which few cards are busy."""

    allocation: Allocation
    used: int  # cards that did anything in the last weeks

    @property
    def idle(self) -> int:
        return self.allocation.cards - self.used


@dataclass(frozen=True, slots=True)
class Calendar:
    """Pools with the tightest first; `whole`: all teams and the supply, else the reader's own teams alone."""

    first: date
    pools: tuple[Pool, ...]
    whole: bool
    hoarded: tuple[Hoarded, ...]
    place: str | None  # None: all places
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A site or region and what is missing there at most, by accelerator. Name "": where nobody told a place."""

    name: str
    short: tuple[tuple[str, int], ...]


def place_of(plan: PlanChoice) -> str:
    """Where the plan is: its site or region, else the region that the request names; "" when neither is told."""
    summary = plan.summary if isinstance(plan.summary, dict) else {}
    return str(summary.get("place") or summary.get("region") or plan.revision.region or "").strip()


def calendar(
    user: User, *, months: int = MONTHS, on: date | None = None, place: str | None = None
) -> Calendar:
    """A fixed number of queries. Who sees only some teams sees their demand alone: neither supply nor others.

    With `place`, that site or region alone; "" is what nobody told a place of, which counts at no place.
    """
    first = on or today()
    whole = visible_teams(user) is None
    demand = _demand(
        CapacityRequest.objects.visible_to(user), Allocation.objects.visible_to(user), first
    )
    supply = [*card_supply(first), *_terms(first)] if whole else []
    names = sorted({row.place for row in supply} | {row.place for row in demand})
    leads = {
        slug: lead_days(slug) if whole else None
        for slug in {row.accelerator for row in supply} | {row.accelerator for row in demand}
    }

    def pools_at(name: str | None) -> list[Pool]:
        there = [row for row in supply if name is None or row.place == name]
        wanted = [row for row in demand if name is None or row.place == name]
        slugs = sorted({row.accelerator for row in there} | {row.accelerator for row in wanted})
        return [
            pool(
                slug,
                [row for row in there if row.accelerator == slug],
                [row for row in wanted if row.accelerator == slug],
                first=first,
                months=months,
                lead_days=leads[slug],
            )
            for slug in slugs
        ]

    pools = pools_at(place)
    pools.sort(
        key=lambda row: (-max((month.short for month in row.months), default=0), row.accelerator)
    )
    places = tuple(
        Place(
            name,
            tuple(
                (row.accelerator, max(month.short for month in row.months))
                for row in pools_at(name)
            ),
        )
        for name in names
    )
    return Calendar(
        first,
        tuple(pools),
        whole,
        tuple(hoarded(user, on=first)),
        place,
        places if any(names) else (),
    )


def _plans(requests: RequestQuerySet) -> list[PlanChoice]:
    current = requests.with_current()
    return [request.current.plan for request in current if hasattr(request.current, "plan")]


def _span(plan: PlanChoice, first: date) -> tuple[date, date | None]:
    revision = plan.revision
    start = revision.start or revision.need_by
    last = start + timedelta(days=revision.duration_days - 1) if revision.duration_days else None
    return max(start, first), last


def _demand(
    requests: RequestQuerySet, allocations: AllocationQuerySet, first: date
) -> list[Demand]:
    """What runs, what is approved, and what is asked for, each at the place that its plan or its text names."""
    asked = requests.filter(status__in=[*SURE, RequestStatus.FULFILLED, *STAGES])
    plans = _plans(asked)
    places = {plan.revision.request_id: place_of(plan) for plan in plans}
    found = []
    given: dict[int, int] = {}
    for row in (
        allocations.standing().filter(last_day__gte=first).select_related("pool", "request", "team")
    ):
        given[row.request_id] = given.get(row.request_id, 0) + row.cards
        found.append(
            Demand(row.pool.accelerator_slug, row.cards, RUNNING, row.first_day, row.last_day,
                   label=str(row.request), team=str(row.team), place=places.get(row.request_id, ""))
        )  # fmt: skip
    likely = values()
    for plan in plans:
        request = plan.revision.request
        cards = plan.cards - given.get(request.pk, 0)
        start, last = _span(plan, first)
        if cards <= 0 or plan.mode in ELASTIC or (last is not None and last < first):
            continue
        kind = (
            RUNNING
            if request.status == RequestStatus.FULFILLED
            else APPROVED
            if request.status in SURE
            else REQUESTED
        )
        found.append(
            Demand(plan.accelerator_slug, cards, kind, start, last,
                   likely.get(request.status, 1.0), str(request), str(request.team),
                   place=place_of(plan))
        )  # fmt: skip
    return found


def _terms(first: date) -> list[Supply]:
    """Reserved at a cloud or leased: from the plans of what is sourced, until the term ends."""
    modes = (PaymentChoice.RESERVED_1Y, PaymentChoice.RESERVED_3Y, PaymentChoice.SUBSCRIPTION,
             PaymentChoice.LEASED)  # fmt: skip
    rows = CapacityRequest.objects.filter(status=RequestStatus.FULFILLED)
    found = []
    for plan in _plans(rows):
        if plan.mode not in modes:
            continue
        start = plan.revision.start or plan.revision.need_by
        days = TERMS.get(plan.mode) or plan.revision.duration_days
        last = start + timedelta(days=days - 1) if days else None
        if last is None or last >= first:
            found.append(
                Supply(plan.accelerator_slug, plan.cards, RESERVED, start, last,
                       str(plan.revision.request), place=place_of(plan))
            )  # fmt: skip
    return found


def free_cards(slug: str, first: date, last: date, *, without: int | None = None) -> int:
    """Cards of the pool that no allocation holds on any day of the span, after the maintenance buffer."""
    days = (last - first).days + 1
    rows = [row for row in (*card_supply(first), *_terms(first)) if row.accelerator == slug]
    there = daily(((row.first, row.last, row.cards) for row in rows), first, days)
    held = Allocation.objects.standing().filter(
        pool__accelerator_slug=slug, first_day__lte=last, last_day__gte=first
    )
    if without is not None:
        held = held.exclude(pk=without)
    taken = daily(((row.first_day, row.last_day, row.cards) for row in held), first, days)
    return min(int(cards - maintenance(cards) - taken[day]) for day, cards in enumerate(there))


def busy_cards(allocation: Allocation, on: date) -> int | None:
    """Cards of the team and accelerator that did anything in the last days; None: no telemetry tells."""
    rows = (
        CardDay.objects.filter(
            card__team=allocation.team_id,
            card__accelerator_slug=allocation.pool.accelerator_slug,
            day__gte=on - timedelta(days=LOOK_BACK),
            day__lt=on,
        )
        .order_by()
        .values_list("card")
        .annotate(busy=Sum("utilization_sum"), hours=Sum("utilization_hours"))
    )
    known = [busy / hours for _card, busy, hours in rows if hours]
    return sum(share >= IDLE_BELOW for share in known) if known else None


def hoarded(user: User, *, on: date) -> list[Hoarded]:
    """Allocations with idle cards that the reader may see: the own team's at once, others' once the team had time."""
    own = {team for _role, team in user.memberships.values_list("role", "team_id") if team}
    rows = (
        Allocation.objects.visible_to(user)
        .standing()
        .filter(underused_since__isnull=False, first_day__lte=on, last_day__gte=on)
        .select_related("pool", "request", "team")
    )
    found = []
    for row in rows:
        since = row.underused_since
        if since is None or (row.team_id not in own and since + TEAM_FIRST > on):
            continue
        used = busy_cards(row, on)
        if used is not None:
            found.append(Hoarded(row, used))
    return found
