"""Looks back, action items and plans wait on Home for those who do them, and for nobody else."""

from datetime import timedelta

import pytest
import time_machine
from django.urls import reverse
from django.utils import timezone

from core.organisation import today
from planning.models import CapacityRequest, CapacityReview
from planning.services import month_one, review_work, reviews
from planning.states import RequestStatus
from planning.waiting import decisions, waiting
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def labels(user):
    return [str(row.label) for row in waiting(user) if row.review]


def test_an_open_look_back_waits_for_its_owner_and_operations_until_it_is_answered(w, client):
    request = builders.at(w, RequestStatus.FULFILLED)
    CapacityRequest.objects.filter(pk=request.pk).update(
        status_since=timezone.now() - timedelta(days=29)
    )
    look = month_one.look_back(request_id=request.pk)
    for user in (w.requester, w.operations):
        assert "Four weeks on: say what was done" in labels(user)
    assert labels(w.outsider) == labels(w.cto) == []
    assert not [row for row in decisions(w.requester) if row.review]
    client.force_login(w.requester)
    assert look.get_absolute_url() in client.get(reverse("home")).text
    month_one.close(review_id=look.pk, answer="Given back two", by=w.requester)
    assert labels(w.requester) == labels(w.operations) == []


def test_an_action_item_waits_for_its_owner_and_says_when_it_is_overdue(w):
    review = reviews.ensure_reviews()[0]
    CapacityReview.objects.filter(pk=review.pk).update(status="in_session")
    due = today() + timedelta(days=3)
    action = review_work.add_action(
        review_id=review.pk, text="Lend two nodes", owner=w.requester, due_on=due, by=w.cto
    )
    (row,) = [row for row in waiting(w.requester) if row.review]
    assert (row.state, row.note) == ("", due.isoformat())
    with time_machine.travel(timezone.now() + timedelta(days=5)):
        assert [row.state for row in waiting(w.requester) if row.review] == ["overdue"]
    assert labels(w.cto) == []
    review_work.end_action(action_id=action.pk, done=True, outcome="Lent", by=w.requester)
    assert labels(w.requester) == []


def test_a_plan_waits_for_the_people_of_the_team_once_the_meeting_is_near(w):
    review = reviews.ensure_reviews()[0]
    CapacityReview.objects.filter(pk=review.pk).update(meeting_on=today() + timedelta(days=60))
    assert labels(w.requester) == []
    CapacityReview.objects.filter(pk=review.pk).update(meeting_on=today() + timedelta(days=5))
    assert labels(w.requester) == ["Plan of the next three months asked for"]
    assert w.team.name not in " ".join(row.title for row in waiting(w.outsider))
    review_work.tell_plan(review_id=review.pk, team=w.team, cards=4, text="As now", by=w.requester)
    assert labels(w.requester) == []
