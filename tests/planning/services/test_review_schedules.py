"""Reviews by each unit's own fiscal calendar: planned in beat's schedule, made once, editable by who may."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.urls import reverse
from django_celery_beat.models import PeriodicTask

from core.errors import InputError, NotPermitted, StaleData
from core.models import AuditEntry, Notice
from planning.actuals import OrderLine, QuarterActuals
from planning.models import CapacityReview, ReviewSchedule
from planning.services import review_meeting, review_schedules, review_work, reviews
from planning.tasks import ensure_reviews, make_scheduled_review
from tests.planning import builders

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _frozen():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def w():
    return builders.world(fiscal_start_month=1)


def add(w, **fields):
    return review_schedules.add_schedule(team=w.team, by=w.operations, **fields)


def entry(row):
    return PeriodicTask.objects.get(name=f"review-schedule:{row.pk}")


def test_the_whole_organisation_holds_reviews_until_somebody_says_otherwise(w):
    (review,) = reviews.ensure_reviews()
    assert (str(review), review.team) == ("2026Q4", None)
    row = ReviewSchedule.objects.get()
    assert row.team is None
    assert entry(row).crontab.month_of_year == "1,4,7,10"
    assert str(entry(row).crontab.timezone) == w.organisation.time_zone
    review_schedules.set_schedule(schedule_id=row.pk, by=w.admin, active=False)
    assert not entry(row).enabled
    with time_machine.travel(datetime(2027, 1, 1, 9, tzinfo=UTC), tick=False):
        assert reviews.ensure_reviews() == []
    assert CapacityReview.objects.count() == 1


def test_a_team_has_its_own_calendar_and_each_review_is_made_once(w):
    row = add(w, start_month=2, meeting_after_days=10, at_hour=6)
    crontab = entry(row).crontab
    assert (crontab.month_of_year, crontab.day_of_month, crontab.hour) == ("2,5,8,11", "1", "6")
    for _ in range(3):
        make_scheduled_review(row.pk)
        ensure_reviews()
    own = CapacityReview.objects.get(team=w.team)
    # the fiscal year that begins in February 2026 is 2027; November is its last quarter
    assert (own.fiscal_year, own.quarter) == (2027, 4)
    assert own.meeting_on == date(2027, 2, 11)
    assert CapacityReview.objects.filter(team=None).count() == 1
    assert Notice.objects.filter(event="review.invited", recipient=w.cto).count() == 2
    uids = {
        line
        for review in CapacityReview.objects.all()
        for line in review_meeting.calendar(review).splitlines()
        if line.startswith("UID:")
    }
    assert len(uids) == 2


def test_a_review_is_not_made_before_its_hour(w):
    row = add(w, start_month=1, at_hour=6)
    zone = w.organisation.zone
    with time_machine.travel(datetime(2027, 1, 1, 5, 59, tzinfo=zone), tick=False):
        ensure_reviews()
        make_scheduled_review(row.pk)
        assert not CapacityReview.objects.filter(team=w.team).exists()
        assert CapacityReview.objects.filter(team=None, fiscal_year=2027).count() == 1
    with time_machine.travel(datetime(2027, 1, 1, 6, 0, tzinfo=zone), tick=False):
        make_scheduled_review(row.pk)
        ensure_reviews()
        assert CapacityReview.objects.filter(team=w.team).count() == 1


def test_a_clock_set_back_and_forth_makes_no_second_review(w):
    row = add(w)
    for instant in (
        datetime(2026, 12, 31, 20, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC),
        datetime(2026, 12, 31, 10, tzinfo=UTC), datetime(2027, 1, 2, tzinfo=UTC),
    ):  # fmt: skip
        with time_machine.travel(instant, tick=False):
            ensure_reviews()
            make_scheduled_review(row.pk)
            review_meeting.invite_missing()
    for team in (None, w.team):
        made = CapacityReview.objects.of_unit(team.pk if team else None)
        assert sorted(map(str, made)) == sorted(set(map(str, made)))
        assert made.count() == 2
    assert Notice.objects.filter(event="review.invited", recipient=w.cto).count() == 4


def test_who_may_change_a_schedule_and_what_is_refused(w, client):
    for by in (w.requester, w.cto, w.finance, w.auditor):
        with pytest.raises(NotPermitted):
            review_schedules.add_schedule(team=w.team, by=by)
    row = add(w)
    with pytest.raises(InputError) as twice:
        add(w)
    assert twice.value.field == "team"
    for name, value in (("start_month", 13), ("at_hour", 24), ("meeting_after_days", 91)):
        with pytest.raises(InputError) as refused:
            review_schedules.set_schedule(schedule_id=row.pk, by=w.admin, **{name: value})
        assert (refused.value.field, refused.value.value) == (name, value)
    review_schedules.set_schedule(schedule_id=row.pk, by=w.admin, seen_version=1, start_month=4)
    with pytest.raises(StaleData):
        review_schedules.set_schedule(schedule_id=row.pk, by=w.admin, seen_version=1, start_month=5)
    entry_ = AuditEntry.objects.get(action="review_schedule.changed")
    assert entry_.data["changes"] == {"start_month": ["None", "4"]}
    address = reverse("api-review-schedule", args=[row.pk])
    client.force_login(w.outsider)
    assert client.get(address).status_code == 404
    assert client.get(reverse("review-schedules")).status_code == 404
    client.force_login(w.cto)
    assert client.get(reverse("review-schedules")).status_code == 200
    assert client.post(reverse("review-schedules"), {"team": w.team.pk}).status_code == 404
    assert client.get(reverse("review-schedule", args=[row.pk])).status_code == 404
    denied = client.patch(address, {"at_hour": 3}, content_type="application/json")
    assert denied.status_code == 403


def test_pages_and_api_change_the_same_schedule(w, client):
    client.force_login(w.operations)
    page = reverse("review-schedules")
    body = {"team": w.team.pk, "at_hour": "5", "active": "on", "start_month": "7"}
    assert client.post(page, {**body, "at_hour": "25"}).status_code == 422
    assert client.post(page, body).status_code == 302
    row = ReviewSchedule.objects.get(team=w.team)
    assert str(row) in client.get(page).content.decode()
    edit = reverse("review-schedule", args=[row.pk])
    assert client.get(edit).status_code == 200
    changed = {"at_hour": "6", "active": "on", "start_month": "7", "version": "1"}
    assert client.post(edit, changed).status_code == 302
    assert client.post(edit, {**changed, "at_hour": "7"}).status_code == 409
    answer = client.patch(
        reverse("api-review-schedule", args=[row.pk]),
        {"active": False},
        content_type="application/json",
    )
    assert (answer.json()["active"], answer.json()["at_hour"]) == (False, 6)
    assert not entry(row).enabled
    listed = client.get(reverse("api-review-schedules")).json()["results"]
    assert [one["team"] for one in listed if one["team"]] == [w.team.slug]


def test_a_team_s_review_freezes_its_own_figures_and_asks_its_own_people(w):
    add(w)
    own = next(review for review in reviews.ensure_reviews() if review.team)
    other = w.outsider.memberships.get().team
    mine = builders.draft(w)
    builders.draft(w, by=w.outsider, team_id=other.pk)
    common = {
        "request": "", "vendor": "V", "accelerator": "nvidia-h100-sxm5-80gb", "ordered": 8, "received": 0,
        "accepted": 0, "failed": 0, "amount": Decimal(1), "currency": w.organisation.currency, "promised_on": None,
        "first_received_on": None,
    }  # fmt: skip
    actuals = QuarterActuals(
        orders=(
            OrderLine(order="PO-1", team=w.team.name, **common),
            OrderLine(order="PO-2", team=other.name, **common),
        )
    )
    with time_machine.travel(NOW + timedelta(hours=1), tick=False):
        data = reviews.freeze_review(review_id=own.pk, actuals=actuals, by=None).data
    assert [row["reference"] for row in data["requests"]] == [mine.reference]
    assert [row["order"] for row in data["orders"]] == ["PO-1"]
    with pytest.raises(InputError):
        review_work.tell_plan(review_id=own.pk, team=other, cards=1, text="x", by=w.outsider)
    CapacityReview.objects.update(meeting_on=NOW.date())
    review_work.ask_for_plans()
    asked = Notice.objects.filter(event="team_plan.asked", object_id=str(own.pk))
    assert {notice.recipient for notice in asked} == {w.requester, w.lead}
