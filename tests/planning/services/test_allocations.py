"""Cards are given once: booked, moved and released by those who may, and whoever holds them is told in time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
import time_machine
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from catalog.reference import accelerator_label
from core.audit import trail
from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import Notice
from core.organisation import today
from planning import supply as supplies
from planning import tasks
from planning.capacity import OWNED, Supply
from planning.models import Allocation, CardDay, TelemetryCard, TelemetrySource
from planning.selectors.capacity import calendar, free_cards
from planning.selectors.origins import origins
from planning.services import allocations
from planning.services.allocations import NoCapacity
from tests.planning import builders

pytestmark = pytest.mark.django_db
SLUG = "h100-sxm-80gb"


@pytest.fixture(autouse=True)
def stock(monkeypatch):
    """Twenty cards, nineteen of them to be given out."""
    monkeypatch.setattr(supplies, "_sources", [lambda on: [Supply(SLUG, 20, OWNED, on)]])
    monkeypatch.setattr(supplies, "_leads", [lambda slug: 60])


@pytest.fixture
def w():
    return builders.world()


def api(user):
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def day(n):
    return today() + timedelta(days=n)


def booked(w, request=None, cards=8, first=0, last=20):
    request = request or builders.approved(w)
    return allocations.book(
        request_id=request.pk,
        cards=cards,
        first_day=day(first),
        last_day=day(last),
        by=w.operations,
    )


def test_a_plan_is_held_by_its_highest_day_not_by_the_sum_of_what_overlaps(w):
    request = builders.approved(w)  # eight cards
    booked(w, request, cards=5, first=0, last=5)
    booked(w, request, cards=5, first=10, last=15)
    with pytest.raises(InputError, match="1 … 3"):
        booked(w, request, cards=4, first=0, last=20)
    last = booked(w, request, cards=3, first=0, last=20)
    allocations.release_allocation(allocation_id=last.pk, by=w.operations)
    booked(w, request, cards=8, first=6, last=9)  # touches neither


def test_cards_are_given_out_once_and_a_buffer_stays(w):
    booked(w)
    booked(w)
    assert free_cards(SLUG, day(0), day(20)) == 3
    third = builders.approved(w)
    with pytest.raises(NoCapacity, match="3 cards free"):
        booked(w, third, cards=4, first=20, last=30)
    booked(w, third, cards=4, first=21, last=30)
    booked(w, third, cards=3)
    assert Allocation.objects.count() == 4


def test_a_request_gets_no_more_than_its_plan_and_only_when_approved(w):
    request = builders.approved(w)
    booked(w, request, cards=5)
    with pytest.raises(InputError) as error:
        booked(w, request, cards=4)
    assert (error.value.field, error.value.limit) == ("cards", 3)
    booked(w, request, cards=8, first=21, last=30)
    with pytest.raises(InvalidTransition):
        booked(w, builders.in_review(w))
    with pytest.raises(InputError):
        booked(w, builders.approved(w), first=5, last=4)
    with pytest.raises(InputError):
        booked(w, builders.approved(w), first=-5, last=-1)


def test_who_may_give_move_and_release(w):
    request = builders.approved(w)
    for name, person in w.people().items():
        act = lambda person=person: allocations.book(  # noqa: E731
            request_id=request.pk, cards=1, first_day=day(0), last_day=day(1), by=person
        )
        if name in ("operations", "procurement"):
            row = act()
        else:
            with pytest.raises(NotPermitted):
                act()
    for name, person in w.people().items():
        if name not in ("operations", "procurement"):
            with pytest.raises(NotPermitted):
                allocations.move_allocation(allocation_id=row.pk, last_day=day(2), by=person)
        if name not in ("operations", "procurement", "requester", "lead"):
            with pytest.raises(NotPermitted):
                allocations.release_allocation(allocation_id=row.pk, by=person)
    allocations.release_allocation(allocation_id=row.pk, by=w.requester)


def test_a_booking_is_moved_and_extended_only_where_cards_are_free(w):
    row = booked(w)
    other = booked(w, cards=8, first=10, last=40)
    with pytest.raises(NoCapacity):
        booked(w, cards=8, first=0, last=12)
    moved = allocations.move_allocation(
        allocation_id=row.pk, last_day=day(60), by=w.operations, version=row.version
    )
    assert moved.last_day == day(60)
    with pytest.raises(StaleData):
        allocations.move_allocation(allocation_id=row.pk, cards=2, by=w.operations, version=1)
    booked(w, cards=4, first=5, last=9)
    with pytest.raises(NoCapacity):
        allocations.move_allocation(allocation_id=other.pk, first_day=day(5), by=w.operations)
    entry = trail(row).get(action="allocation.moved")
    assert set(entry.data["changes"]) == {"last_day"}


def test_released_cards_are_free_from_the_next_day(w):
    row = booked(w, first=0, last=20)
    booked(w, first=0, last=20)
    with time_machine.travel(timezone.now() + timedelta(days=5), tick=False):
        released = allocations.release_allocation(allocation_id=row.pk, by=w.lead)
        assert (released.status, released.last_day) == ("released", today())
        assert free_cards(SLUG, day(0), day(10)) == 11
        with pytest.raises(InvalidTransition):
            allocations.release_allocation(allocation_id=row.pk, by=w.lead)


def test_a_renewal_is_a_draft_for_the_time_after_with_no_approval_of_its_own(w):
    row = booked(w)
    draft = allocations.renew(allocation_id=row.pk, by=w.requester)
    assert (draft.status, draft.current.start) == ("draft", day(21))
    assert draft.current.origin == "renewed"
    assert not draft.current.steps.exists()
    (origin,) = origins(draft, type(draft).objects.all())
    assert (origin.request, str(origin.label)) == (row.request, "Renews")
    with pytest.raises(NotPermitted):
        allocations.renew(allocation_id=row.pk, by=w.outsider)


def test_the_end_is_told_thirty_seven_and_one_days_before_once_each(w):
    row = booked(w, first=0, last=40)
    start = timezone.now()
    for n in range(42):
        with time_machine.travel(start + timedelta(days=n), tick=False):
            for _again in range(3):
                tasks.watch_allocations()
    told = Notice.objects.filter(event="allocation.ending", object_id=str(row.pk))
    assert told.count() == 3
    assert set(told.values_list("recipient__name", flat=True)) == {"Rita Requester"}


def telemetry(w, busy, cards=8):
    source = TelemetrySource.objects.create(name="fleet", team=w.team)
    for n in range(cards):
        card = TelemetryCard.objects.create(
            source=source, name=f"card{n}", accelerator_slug=SLUG, team=w.team, ownership="owned"
        )
        share = 0.6 if n < busy else 0.01
        CardDay.objects.create(
            card=card, day=day(-1), hours=24, utilization_hours=24, utilization_sum=24 * share,
            sm_hours=0, sm_sum=0, tensor_hours=0, tensor_sum=0, memory_hours=0, memory_sum=0, power_hours=0,
            energy_kwh=0,
        )  # fmt: skip


def test_hoarded_cards_are_named_to_their_team_first(w):
    telemetry(w, busy=4)
    row = booked(w)
    for _ in range(3):
        tasks.watch_allocations()
    told = Notice.objects.filter(event="allocation.underused")
    assert set(told.values_list("recipient__name", flat=True)) == {"Rita Requester", "Leo Lead"}
    assert told.count() == 2
    (seen,) = calendar(w.requester).hoarded
    assert (seen.allocation, seen.used, seen.idle) == (row, 4, 4)
    assert calendar(w.cto).hoarded == ()
    row.refresh_from_db()
    Allocation.objects.filter(pk=row.pk).update(underused_since=day(-14))
    assert [item.allocation for item in calendar(w.cto).hoarded] == [row]
    assert calendar(w.outsider).hoarded == ()


def test_without_telemetry_nobody_is_accused_and_used_cards_are_no_hoard(w):
    booked(w)
    tasks.watch_allocations()
    telemetry(w, busy=7)
    tasks.watch_allocations()
    assert not Notice.objects.filter(event="allocation.underused").exists()


def test_use_that_nobody_measures_any_more_is_not_taken_for_idle_or_busy(w):
    telemetry(w, busy=4)
    row = booked(w)
    tasks.watch_allocations()
    told = Notice.objects.count()
    CardDay.objects.all().delete()
    assert allocations.note_underuse(allocation_id=row.pk) is False
    row.refresh_from_db()
    assert row.underused_since == day(0)  # what was told stands until use is known again
    assert Notice.objects.count() == told


def test_the_calendar_shows_each_demand_once_and_others_only_their_own(w):
    running = booked(w, cards=5)
    builders.in_review(w)
    cloud = builders.in_review(w, plan_mode="on_demand")
    (found,) = calendar(w.cto).pools
    assert (found.accelerator, found.lead_days) == (SLUG, 60)
    kinds = Counter()
    for row in found.demand:
        kinds[row.kind] += row.cards
    assert kinds == {
        "running": 5,
        "approved": 3,
        "requested": 8,
    }  # 3 of the 8 are still to be given
    assert not [row for row in found.demand if row.label == str(cloud)]
    assert found.months[0].usable == 19
    own = calendar(w.requester)
    assert not own.whole
    assert own.pools[0].supply == ()
    assert calendar(w.outsider).pools == ()
    assert running.request.allocations.count() == 1


def test_the_calendar_takes_a_fixed_number_of_queries(w, django_assert_max_num_queries):
    from core.models import User

    for _ in range(2):
        booked(w)
    with django_assert_max_num_queries(20) as few:
        calendar(User.objects.get(pk=w.cto.pk))
    for _ in range(8):
        builders.in_review(w)
    with django_assert_max_num_queries(len(few.captured_queries)):
        calendar(User.objects.get(pk=w.cto.pk))


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_pages_book_move_renew_and_release(w, client, language):
    request = builders.approved(w)
    for person in (w.operations, w.requester, w.outsider):
        person.language = language
        person.save()
    client.force_login(w.operations)
    assert "book" in client.get(request.get_absolute_url()).content.decode()
    dates = {"first_day": day(0).isoformat(), "last_day": day(9).isoformat()}
    client.post(reverse("allocation-book", args=[request.pk]), {"cards": 99, **dates})
    assert not Allocation.objects.exists()
    client.post(reverse("allocation-book", args=[request.pk]), {"cards": 8, **dates})
    row = Allocation.objects.get()
    page = client.get(reverse("capacity"))
    assert page.status_code == 200
    assert accelerator_label(SLUG) in page.content.decode()
    assert SLUG not in page.content.decode()
    client.post(reverse("allocation-move", args=[row.pk]), {"cards": 6, "version": 1, **dates})
    row.refresh_from_db()
    assert row.cards == 6
    client.force_login(w.outsider)
    for name in ("allocation-move", "allocation-release", "allocation-renew"):
        assert client.post(reverse(name, args=[row.pk])).status_code == 404
    assert request.title not in client.get(reverse("capacity")).content.decode()
    client.force_login(w.requester)
    assert client.post(reverse("allocation-renew", args=[row.pk])).status_code == 302
    client.post(reverse("allocation-release", args=[row.pk]), {"version": 2})
    row.refresh_from_db()
    assert row.status == "released"


def test_the_api_does_the_same(w):
    request = builders.approved(w)
    body = {"cards": 8, "first_day": day(0).isoformat(), "last_day": day(9).isoformat()}
    book = reverse("api-allocation-book", args=[request.pk])
    assert api(w.outsider).post(book, body, format="json").status_code == 404
    assert api(w.requester).post(book, body, format="json").status_code == 403
    answer = api(w.operations).post(book, body, format="json")
    assert answer.status_code == 201
    pk = answer.data["id"]
    wanted = {**body, "cards": 8, "last_day": day(4000).isoformat()}
    move = reverse("api-allocation-move", args=[pk])
    assert api(w.operations).post(move, wanted, format="json").data["field"] == "last_day"
    assert api(w.operations).post(move, {"cards": 2}, format="json").data["version"] == 2
    assert [
        row["id"] for row in api(w.requester).get(reverse("api-allocations")).data["results"]
    ] == [pk]
    assert api(w.outsider).get(reverse("api-allocations")).data["results"] == []
    found = api(w.cto).get(reverse("api-capacity")).data
    assert (found["whole"], found["pools"][0]["months"][0]["usable"]) == (True, 19)
    assert api(w.outsider).get(reverse("api-capacity")).data["pools"] == []
    for name in ("api-allocation-release", "api-allocation-renew"):
        assert api(w.outsider).post(reverse(name, args=[pk])).status_code == 404
    assert api(w.requester).post(reverse("api-allocation-renew", args=[pk])).status_code == 201
    assert api(w.lead).post(reverse("api-allocation-release", args=[pk])).status_code == 200


def test_two_bookings_of_one_request_together_hold_no_more_than_its_plan(w):
    request = builders.approved(w)
    first, second = booked(w, request, cards=4), booked(w, request, cards=4)

    with pytest.raises(InputError, match="1 … 4"):
        allocations.move_allocation(allocation_id=first.pk, cards=5, by=w.operations)
    allocations.move_allocation(
        allocation_id=second.pk, first_day=day(21), last_day=day(30), by=w.operations
    )
    allocations.move_allocation(allocation_id=first.pk, cards=8, by=w.operations)
