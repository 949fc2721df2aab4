"""Cards for a request from one day to another: booked, moved, released, renewed; and reminders of their end."""

from __future__ import annotations

from datetime import date, timedelta

from django.db import transaction

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition, NotPermitted
from core.messages import Message, msg
from core.models import Organisation, User
from core.organisation import today
from core.outbox import notify
from core.roles import Role
from core.stale import check_version
from core.transitions import advance, lock
from planning import policies
from planning.capacity import daily
from planning.models.allocations import Allocation, CapacityPool
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest, Origin, RequestRevision
from planning.models.templates import Relation, RequestLink
from planning.selectors.capacity import IDLE_SHARE, busy_cards, free_cards
from planning.services.moves import lock_request
from planning.services.request_content import new_draft, open_team
from planning.states import AllocationStatus, RequestStatus

BOOKABLE = (RequestStatus.APPROVED, RequestStatus.SOURCING, RequestStatus.FULFILLED)
MOST_DAYS = 3660
REMIND = (30, 7, 1)  # days before the last day


class NoCapacity(DomainError):
    """The pool does not hold so many cards on every day."""

    code = "no_capacity"


def _lock_pool(slug: str) -> CapacityPool:
    CapacityPool.objects.get_or_create(accelerator_slug=slug)
    return CapacityPool.objects.select_for_update().get(accelerator_slug=slug)


def _check_span(first_day: date, last_day: date) -> None:
    if last_day < first_day:
        raise InputError(
            "last_day", msg("The last day is before the first"), value=last_day, limit=first_day
        )
    if last_day < today():
        raise InputError(
            "last_day", msg("The last day is in the past"), value=last_day, limit=today()
        )
    if (last_day - first_day).days >= MOST_DAYS:
        raise InputError(
            "last_day", msg("At most %(limit)s days", limit=MOST_DAYS), value=last_day,
            limit=MOST_DAYS,
        )  # fmt: skip


def _check_free(
    slug: str, cards: int, first_day: date, last_day: date, *, without: int | None = None
) -> None:
    free = free_cards(slug, max(first_day, today()), last_day, without=without)
    if cards > free:
        raise NoCapacity(
            msg("%(pool)s has %(free)s cards free on every day of this span; this needs %(cards)s",
                pool=slug, free=max(free, 0), cards=cards)
        )  # fmt: skip


def _plan_of(request: CapacityRequest) -> PlanChoice:
    return PlanChoice.objects.get(
        revision__request=request, revision__number=request.revision_number
    )


def _check_planned(
    request: CapacityRequest,
    plan: PlanChoice,
    cards: int,
    first_day: date,
    last_day: date,
    *,
    without: int | None = None,
) -> None:
    """Raise InputError where a locked request would hold more cards than its plan on any day of the span."""
    others = Allocation.objects.standing().filter(
        request=request, first_day__lte=last_day, last_day__gte=first_day
    )
    if without is not None:
        others = others.exclude(pk=without)
    spans = others.values_list("first_day", "last_day", "cards")
    held = int(max(daily(spans, first_day, (last_day - first_day).days + 1)))
    if not 1 <= cards <= plan.cards - held:
        raise InputError(
            "cards",
            msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s", field="cards",
                value=cards, limit=f"1 … {plan.cards - held}", unit="cards"),
            value=cards, limit=plan.cards - held,
        )  # fmt: skip


@transaction.atomic
def book(
    *,
    request_id: int,
    cards: int,
    first_day: date,
    last_day: date,
    by: User,
    accelerator: str = "",
) -> Allocation:
    """Give cards of a pool (the plan's accelerator unless another is named) to an approved request.

    Raises NotPermitted, InvalidTransition, InputError or NoCapacity; decided under the pool's lock.
    """
    request = lock_request(request_id)
    if not policies.can_allocate(by):
        raise NotPermitted(on=request)
    if request.status not in BOOKABLE:
        raise InvalidTransition(
            msg("%(request)s is in state %(state)s: only an approved request gets cards",
                request=str(request), state=str(request.status))
        )  # fmt: skip
    plan = _plan_of(request)
    _check_span(first_day, last_day)
    _check_planned(request, plan, cards, first_day, last_day)
    pool = _lock_pool(accelerator or plan.accelerator_slug)
    _check_free(pool.accelerator_slug, cards, first_day, last_day)
    row = Allocation.objects.create(
        pool=pool, request=request, team=request.team, cards=cards, first_day=first_day,
        last_day=last_day, booked_by=by,
    )  # fmt: skip
    record(
        "allocation.booked", on=row, by=by, request=request.pk, cards=cards,
        first_day=first_day.isoformat(), last_day=last_day.isoformat(),
    )  # fmt: skip
    _tell(row, "allocation.booked", msg("%(cards)s cards are booked for %(request)s, %(first)s to %(last)s",
          cards=cards, request=str(request), first=first_day.isoformat(), last=last_day.isoformat()))  # fmt: skip
    return row


def _tell(row: Allocation, event: str, message: Message, revision: str = "") -> None:
    notify(
        [row.request.requester], event, on=row, message=message,
        url=row.request.get_absolute_url(), revision=revision or str(row.version),
    )  # fmt: skip


def _lock(allocation_id: int, version: int | None) -> Allocation:
    row = lock(
        Allocation.objects.select_related("pool", "request__team", "request__requester", "team"),
        allocation_id,
    )
    check_version(row, version)
    if row.status != AllocationStatus.BOOKED:
        raise InvalidTransition(msg("%(allocation)s was released", allocation=str(row)))
    return row


@transaction.atomic
def move_allocation(
    *,
    allocation_id: int,
    by: User,
    first_day: date | None = None,
    last_day: date | None = None,
    cards: int | None = None,
    version: int | None = None,
) -> Allocation:
    """Change days or cards, also to extend what runs. Raises as book, and StaleData."""
    seen = Allocation.objects.select_related("pool").get(pk=allocation_id)
    if not policies.can_allocate(by):
        raise NotPermitted(on=seen)
    pool_id = seen.pool.accelerator_slug
    request = lock_request(seen.request_id)  # as book: the request, its pool, then the row
    _lock_pool(pool_id)
    row = _lock(allocation_id, version)
    first, last, count = first_day or row.first_day, last_day or row.last_day, cards or row.cards
    _check_span(first, last)
    _check_planned(request, _plan_of(request), count, first, last, without=row.pk)
    _check_free(pool_id, count, first, last, without=row.pk)
    before = {"cards": row.cards, "first_day": row.first_day, "last_day": row.last_day}
    after = {"cards": count, "first_day": first, "last_day": last}
    changed = [name for name in after if before[name] != after[name]]
    if not changed:
        return row
    Allocation.objects.filter(pk=row.pk).update(version=row.version + 1, **after)
    row.refresh_from_db()
    record(
        "allocation.moved", on=row, by=by, team=row.team,
        changes={name: [str(before[name]), str(after[name])] for name in changed},
    )  # fmt: skip
    _tell(row, "allocation.moved", msg("The booking for %(request)s is now %(cards)s cards, %(first)s to %(last)s",
          request=str(row.request), cards=count, first=first.isoformat(), last=last.isoformat()))  # fmt: skip
    return row


@transaction.atomic
def release_allocation(*, allocation_id: int, by: User, version: int | None = None) -> Allocation:
    """Give cards back as of today (a booking to come: at once). Raises NotPermitted, InvalidTransition or StaleData."""
    row = _lock(allocation_id, version)
    if not policies.can_release(by, row.request):
        raise NotPermitted(on=row)
    day = min(row.last_day, max(today(), row.first_day))
    advance(
        row, AllocationStatus.RELEASED, by=by, action="allocation.released",
        also={"last_day": day}, cards=row.cards,
    )  # fmt: skip
    _tell(
        row, "allocation.released", msg("The cards of %(request)s were released", request=str(row.request))
    )  # fmt: skip
    return row


@transaction.atomic
def renew(*, allocation_id: int, by: User) -> CapacityRequest:
    """A draft that asks for the same again from the day after the end. It goes the whole way like any request."""
    row = Allocation.objects.select_related("request__team").get(pk=allocation_id)
    if not policies.can_copy(by, row.request):
        raise NotPermitted(on=row)
    old = row.request.current
    start = max(row.last_day + timedelta(days=1), today())
    content = {name: getattr(old, name) for name in RequestRevision.CONTENT}
    draft = new_draft(
        team=open_team(row.request.team_id, by),
        kind=row.request.kind,
        title=row.request.title,
        content={**content, "start": start, "need_by": start},
        origin=Origin.RENEWED,
        by=by,
    )
    RequestLink.objects.create(source=row.request, target=draft, relation=Relation.RENEWED)
    record("request.created", on=draft, by=by, kind=draft.kind, renews=row.pk)
    return draft


def remind_of_ends() -> int:
    """Tell requesters of allocations that end in 30, 7 or 1 days: once for each point, also when a day was missed."""
    if not Organisation.objects.exists():
        return 0
    day = today()
    rows = Allocation.objects.standing().filter(
        last_day__gte=day, last_day__lte=day + timedelta(days=max(REMIND))
    )
    told = 0
    for row in rows.select_related("request__requester", "request__team", "pool"):
        left = (row.last_day - day).days
        point = min(point for point in REMIND if left <= point)
        _tell(
            row, "allocation.ending",
            msg("%(cards)s cards of %(request)s end on %(day)s: extend, renew or let go",
                cards=row.cards, request=str(row.request), day=row.last_day.isoformat()),
            revision=f"{row.last_day.isoformat()}:{point}",
        )  # fmt: skip
        told += 1
    return told


@transaction.atomic
def note_underuse(*, allocation_id: int) -> bool:
    """Tell the team of cards that it holds and does not use, or forget it when it does. Returns whether it was told."""
    row = _lock(allocation_id, None)
    day = today()
    used = busy_cards(row, day)
    if used is None:
        return False  # nobody measured: neither idle nor busy
    low = used < row.cards * IDLE_SHARE
    if not low or row.underused_since is not None:
        if not low and row.underused_since is not None:
            Allocation.objects.filter(pk=row.pk).update(underused_since=None)
        return False
    Allocation.objects.filter(pk=row.pk).update(underused_since=day)
    record("allocation.underused", on=row, by=None, team=row.team, used=used, cards=row.cards)
    leads = User.objects.filter(
        is_active=True, memberships__team=row.team_id, memberships__role=Role.APPROVER
    )
    notify(
        [row.request.requester, *leads.distinct()],
        "allocation.underused",
        on=row,
        message=msg("%(request)s holds %(cards)s cards and uses %(used)s: give back what is not needed",
                    request=str(row.request), cards=row.cards, used=used),
        url="/capacity/",
        revision=day.isoformat(),
    )  # fmt: skip
    return True


def running_allocations() -> list[int]:
    """Ids of allocations that run today."""
    if not Organisation.objects.exists():
        return []
    day = today()
    rows = Allocation.objects.standing().filter(first_day__lte=day, last_day__gte=day)
    return list(rows.values_list("pk", flat=True))
