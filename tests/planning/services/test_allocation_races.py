"""Cards given out at the same instant, on the database's locks. PostgreSQL only (see conftest)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import pytest

from core.organisation import today
from planning import supply as supplies
from planning.capacity import OWNED, Supply
from planning.models import Allocation
from planning.selectors.capacity import free_cards
from planning.services import allocations
from tests.planning import builders
from tests.planning.races import together

pytestmark = [pytest.mark.race, pytest.mark.django_db(transaction=True)]
SLUG = "h100-sxm-80gb"


@pytest.fixture(autouse=True)
def stock(monkeypatch):
    """Twenty cards, nineteen of them to be given out; a plan of builders.approved is for eight."""
    monkeypatch.setattr(supplies, "_sources", [lambda on: [Supply(SLUG, 20, OWNED, on)]])
    monkeypatch.setattr(supplies, "_leads", [lambda slug: 60])


def day(n: int) -> date:
    return today() + timedelta(days=n)


def booking(w, request, cards=8, first=0, last=20) -> Callable[[], Allocation]:
    return lambda: allocations.book(
        request_id=request.pk,
        cards=cards,
        first_day=day(first),
        last_day=day(last),
        by=w.operations,
    )


def test_of_bookings_racing_for_the_last_cards_those_that_fit_win():
    """Also the first bookings of a pool that no one booked before."""
    w = builders.world()
    requests = [builders.approved(w) for _ in range(3)]

    assert sorted(together(*(booking(w, request) for request in requests))) == [
        "no_capacity", "ok", "ok",
    ]  # fmt: skip
    assert free_cards(SLUG, day(0), day(20)) == 3


def test_of_two_bookings_racing_for_the_last_cards_exactly_one_wins():
    w = builders.world()
    booking(w, builders.approved(w))()
    requests = [builders.approved(w) for _ in range(2)]

    assert sorted(together(*(booking(w, request) for request in requests))) == ["no_capacity", "ok"]
    assert Allocation.objects.standing().count() == 2


def test_two_bookings_of_one_request_do_not_go_past_its_plan():
    w = builders.world()
    request = builders.approved(w)

    results = together(booking(w, request, cards=5), booking(w, request, cards=5))

    assert sorted(results) == ["invalid_input", "ok"]
    assert Allocation.objects.get().cards == 5


def test_two_moves_of_one_request_do_not_go_past_its_plan():
    w = builders.world()
    request = builders.approved(w)
    rows = [booking(w, request, cards=3)() for _ in range(2)]

    results = together(*(grown(w, row, cards=5) for row in rows))

    assert sorted(results) == ["invalid_input", "ok"]
    assert sorted(Allocation.objects.values_list("cards", flat=True)) == [3, 5]


def grown(w, row, **changes) -> Callable[[], Allocation]:
    return lambda: allocations.move_allocation(allocation_id=row.pk, by=w.operations, **changes)


def test_a_move_and_a_booking_racing_for_the_same_days_do_not_both_win():
    w = builders.world()
    running = booking(w, builders.approved(w))()
    booking(w, builders.approved(w), first=21, last=30)()
    other = builders.approved(w)

    results = together(grown(w, running, last_day=day(30)), booking(w, other, first=21, last=30))

    assert sorted(results) == ["no_capacity", "ok"]
    assert free_cards(SLUG, day(21), day(30)) == 3


def test_a_move_and_a_release_of_what_both_saw_do_not_both_count():
    w = builders.world()
    row = booking(w, builders.approved(w))()

    results = together(
        grown(w, row, cards=4, version=row.version),
        lambda: allocations.release_allocation(
            allocation_id=row.pk, by=w.lead, version=row.version
        ),
    )

    assert results.count("ok") == 1
    assert set(results) - {"ok"} <= {"stale", "invalid_transition"}
    row.refresh_from_db()
    moved = results[0]
    assert (row.status, row.cards) == (("booked", 4) if moved == "ok" else ("released", 8))


def test_cards_that_are_released_while_they_are_wanted_are_given_once():
    w = builders.world()
    rows = [booking(w, builders.approved(w))() for _ in range(2)]
    requests = [builders.approved(w) for _ in range(2)]

    released, *wanted = together(
        lambda: allocations.release_allocation(allocation_id=rows[0].pk, by=w.lead),
        *(booking(w, request, first=1) for request in requests),
    )

    assert released == "ok"
    assert wanted.count("ok") <= 1
    assert set(wanted) <= {"ok", "no_capacity"}
    assert free_cards(SLUG, day(1), day(20)) == 11 - 8 * wanted.count("ok")


def test_two_releases_of_one_booking_give_back_once():
    w = builders.world()
    row = booking(w, builders.approved(w))()

    def release():
        return allocations.release_allocation(allocation_id=row.pk, by=w.lead)

    assert sorted(together(release, release)) == ["invalid_transition", "ok"]
