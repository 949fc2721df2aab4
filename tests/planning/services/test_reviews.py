"""Capacity reviews: once a quarter, frozen figures, named holes, one door for each step."""

from datetime import UTC, datetime
from decimal import Decimal
from threading import Barrier, Thread

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AppendOnlyError, Notice
from core.roles import Role
from planning.actuals import OrderLine, QuarterActuals
from planning.models import CapacityReview, ReviewReport, ReviewSnapshot
from planning.services import review_meeting, reviews
from tests.factories import OrganisationFactory

pytestmark = pytest.mark.django_db
EMPTY = QuarterActuals()


@pytest.fixture
def review(organisation):
    return reviews.ensure_reviews()[0]


def order(**changes):
    values = {
        "order": "PO-2026-0001", "request": "R-0001", "team": "FM", "vendor": "Vendor A",
        "accelerator": "h100-sxm-80gb",
        "ordered": 8, "received": 8, "accepted": 7, "failed": 1, "amount": Decimal("1000.00"), "currency": "CNY",
        "promised_on": None, "first_received_on": None,
    }  # fmt: skip
    return OrderLine(**(values | changes))


def test_scheduling_again_makes_no_second_review_and_tells_nobody_twice(organisation, make_user):
    make_user(Role.FINANCE)
    assert len(reviews.ensure_reviews()) == 1
    review_meeting.invite_missing()
    assert reviews.ensure_reviews() == []
    review_meeting.invite_missing()
    assert CapacityReview.objects.count() == 1
    assert [notice.event for notice in Notice.objects.all()] == ["review.invited"]


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        (datetime(2026, 9, 30, 15, 59, tzinfo=UTC), "2026Q4"),  # 23:59 in Shanghai
        (datetime(2026, 9, 30, 16, 0, tzinfo=UTC), "2027Q1"),  # midnight there
    ],
)
def test_the_quarter_is_that_of_the_organisation_s_zone_and_fiscal_year(db, instant, expected):
    OrganisationFactory(fiscal_start_month=10)
    with time_machine.travel(instant, tick=False):
        assert str(reviews.ensure_reviews()[0]) == expected


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_two_schedulers_at_once_make_one_review():
    OrganisationFactory()
    barrier = Barrier(2)

    def run():
        barrier.wait()
        reviews.ensure_reviews()
        connection.close()

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert CapacityReview.objects.count() == 1


def test_freezing_keeps_the_figures_and_queues_both_languages(review, make_user):
    snapshot = reviews.freeze_review(
        review_id=review.pk,
        actuals=QuarterActuals(orders=(order(),)),
        by=make_user(Role.OPERATIONS),
    )
    review.refresh_from_db()
    assert review.status == CapacityReview.Status.DATA_FROZEN
    assert snapshot.data["orders"][0]["base_amount"] == "1000.00"
    assert snapshot.data["ordered_total"] == "1000.00"
    assert snapshot.data_hash == ReviewSnapshot.hash_of(snapshot.data)
    assert sorted(r.language for r in ReviewReport.objects.all()) == ["en", "zh-hans"]


def test_a_missing_exchange_rate_is_a_named_hole_not_a_zero(review, make_user):
    snapshot = reviews.freeze_review(
        review_id=review.pk,
        actuals=QuarterActuals(orders=(order(), order(order="PO-2", currency="EUR"))),
        by=make_user(Role.FINANCE),
    )
    assert snapshot.data["orders"][1]["base_amount"] is None
    assert snapshot.data["ordered_total"] is None
    assert any(hole["params"].get("base") == "EUR" for hole in snapshot.data["holes"])


def test_a_second_freeze_needs_a_reason_and_leaves_the_first_alone(review, make_user):
    user = make_user(Role.FINANCE)
    first = reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=user)
    with pytest.raises(InputError) as caught:
        reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=user)
    assert caught.value.field == "reason"
    second = reviews.freeze_review(
        review_id=review.pk,
        actuals=QuarterActuals(orders=(order(),)),
        by=user,
        reason="late invoice",
    )
    assert (first.number, second.number) == (1, 2)
    first.refresh_from_db()
    assert first.data["orders"] == []


def test_a_snapshot_cannot_be_changed_by_any_path(review, make_user):
    snapshot = reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=make_user(Role.FINANCE))
    with pytest.raises(AppendOnlyError):
        snapshot.save()
    with pytest.raises(AppendOnlyError):
        ReviewSnapshot.objects.update(number=9)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE planning_reviewsnapshot SET number = 9")


@pytest.mark.parametrize("role", [Role.REQUESTER, Role.AUDITOR, Role.APPROVER, Role.ADMINISTRATOR])
def test_who_may_not_freeze(review, make_user, role):
    with pytest.raises(NotPermitted):
        reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=make_user(role))


def test_a_stale_page_is_told_so(review, make_user):
    user = make_user(Role.FINANCE)
    reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=user, seen_version=review.version)
    with pytest.raises(StaleData):
        reviews.freeze_review(
            review_id=review.pk, actuals=EMPTY, by=user, reason="x", seen_version=review.version
        )


def test_the_first_rendering_stays_and_the_review_is_ready_when_both_are_made(review, make_user):
    reader = make_user(Role.FINANCE, language="en")
    snapshot = reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=reader)
    english, chinese = snapshot.reports.order_by("language")
    kept = reviews.attach_report(report_id=english.pk, content=b"%PDF-1", name="a.pdf")
    again = reviews.attach_report(report_id=english.pk, content=b"%PDF-2", name="a.pdf")
    review.refresh_from_db()
    assert kept.pk == again.pk
    assert review.status == CapacityReview.Status.DATA_FROZEN
    reviews.attach_report(report_id=chinese.pk, content=b"%PDF-1", name="b.pdf")
    review.refresh_from_db()
    assert review.status == CapacityReview.Status.REPORT_READY
    assert Notice.objects.filter(recipient=reader, attachment=kept).count() == 1


def test_the_meeting_is_closed_by_its_chair_with_minutes(review, make_user):
    chair, other = make_user(Role.APPROVER), make_user(Role.APPROVER)
    snapshot = reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=None)
    with pytest.raises(InvalidTransition):
        reviews.open_session(review_id=review.pk, by=chair)
    for report in snapshot.reports.all():
        reviews.attach_report(report_id=report.pk, content=b"%PDF-1", name="a.pdf")
    reviews.open_session(review_id=review.pk, by=chair)
    with pytest.raises(InvalidTransition):
        reviews.close_review(review_id=review.pk, minutes="Hold.", by=other)
    with pytest.raises(InputError):
        reviews.close_review(review_id=review.pk, minutes="  ", by=chair)
    closed = reviews.close_review(review_id=review.pk, minutes="Hold at 64 cards.", by=chair)
    assert closed.status == CapacityReview.Status.CLOSED


def test_the_scheduler_freezes_only_when_the_quarter_has_ended(organisation):
    with time_machine.travel(datetime(2026, 11, 30, tzinfo=UTC), tick=False):
        review = reviews.ensure_reviews()[0]
        assert reviews.due_reviews() == []
    with time_machine.travel(datetime(2026, 12, 31, 16, 1, tzinfo=UTC), tick=False):
        assert reviews.due_reviews() == [review.pk]
        reviews.freeze_review(review_id=review.pk, actuals=EMPTY, by=None)
        assert reviews.due_reviews() == []
