"""A decision of a capacity review becomes an RFQ at one click, by the permission of the RFQ."""

from datetime import timedelta

import pytest
from django.urls import reverse

from core.errors import InputError, InvalidTransition, NotPermitted
from core.organisation import today
from planning.models import CapacityReview
from planning.models.reviews import ReviewSnapshot
from planning.services import review_work, reviews
from procurement.models import Rfq
from procurement.services import follow_ups, rfqs
from tests.procurement import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return builders.shop()


@pytest.fixture
def approved(s):
    return builders.request(s)


@pytest.fixture
def action(s, approved):
    plan = approved.current.plan
    pool = f"{approved.team.slug} · {plan.accelerator_slug} · owned"
    review = reviews.ensure_reviews()[0]
    row = {
        "pool": pool, "accelerator": plan.accelerator_slug, "ownership": "owned", "cards": 8, "utilization": 0.9,
        "action": "grow", "change": 8, "to": "", "waiting": None, "lines": [],
    }  # fmt: skip
    ReviewSnapshot.objects.create(
        review=review, number=1, as_of=review.created_at, data_hash="x",
        data={"currency": s.organisation.currency, "recommendations": [row]},
    )  # fmt: skip
    CapacityReview.objects.filter(pk=review.pk).update(status="in_session")
    return review_work.add_action(
        review_id=review.pk, text="Buy eight cards", pool=pool, owner=s.requester,
        due_on=today() + timedelta(days=20), by=s.cto,
    )  # fmt: skip


def test_one_click_drafts_the_rfq_of_what_is_approved_for_the_pool(action, approved, s, client):
    client.force_login(s.procurement)
    page = client.get(action.get_absolute_url()).content.decode()
    assert reverse("review-action-rfq", args=[action.pk]) in page
    answer = client.post(reverse("review-action-rfq", args=[action.pk]))
    rfq = Rfq.objects.get()
    assert answer.status_code == 302
    assert answer.url == rfq.get_absolute_url()
    assert (rfq.status, rfq.title, rfq.owner) == ("draft", "Buy eight cards", s.procurement)
    assert [line.request for line in rfq.lines.all()] == [approved]
    assert action.get_absolute_url() in client.get(rfq.get_absolute_url()).content.decode()
    page = client.get(action.get_absolute_url()).content.decode()
    assert rfq.get_absolute_url() in page
    assert rfq.number in page
    with pytest.raises(InvalidTransition):
        follow_ups.file_rfq(action_id=action.pk, by=s.procurement)
    rfqs.cancel_rfq(rfq_id=rfq.pk, reason="Not now", by=s.procurement)
    again = follow_ups.file_rfq(action_id=action.pk, by=s.procurement, request_ids=[approved.pk])
    assert again.review_action == action


def test_only_buyers_make_an_rfq_of_it(action, s, client):
    for by in (s.requester, s.cto, s.finance):
        with pytest.raises((NotPermitted, InputError)):
            follow_ups.file_rfq(action_id=action.pk, by=by)
        client.force_login(by)
        assert client.post(reverse("review-action-rfq", args=[action.pk])).status_code == 404
        assert (
            reverse("review-action-rfq", args=[action.pk])
            not in client.get(action.get_absolute_url()).content.decode()
        )
    assert not Rfq.objects.exists()


def test_the_api_tells_what_became_of_it_and_refuses_where_nothing_is_approved(
    action, approved, s, client
):
    client.force_login(s.procurement)
    address = reverse("api-review-action-rfq", args=[action.pk])
    other = client.post(address, {"requests": [999]}, content_type="application/json")
    assert other.status_code == 422, other.content
    made = client.post(address, {}, content_type="application/json")
    assert made.status_code == 201, made.content
    assert made.json()["review_action"] == action.pk
    listed = client.get(reverse("api-review-actions", args=[action.review_id])).json()["results"]
    (one,) = listed[0]["became"]
    assert (one["kind"], one["reference"], one["state"]) == ("rfq", made.json()["number"], "draft")
    later = review_work.add_action(
        review_id=action.review_id, text="And eight more", owner=s.requester, pool=action.pool,
        due_on=action.due_on, by=s.cto,
    )  # fmt: skip
    assert client.post(reverse("review-action-rfq", args=[later.pk])).status_code == 422
    assert Rfq.objects.count() == 1
