"""A decision of a review becomes a request or a transfer at one click, by the permission of what is filed."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry
from core.organisation import quarter_at, today
from core.quarters import Quarter
from planning.actuals import QuarterActuals
from planning.models import BudgetChange, CapacityRequest, CapacityReview, ReviewAction
from planning.models.reviews import ReviewSnapshot
from planning.review_pack import build_pack
from planning.services import budget_changes, follow_ups, review_work, reviews
from tests.factories import MembershipFactory
from tests.planning import builders

pytestmark = pytest.mark.django_db
CARD = "nvidia-h100-sxm5-80gb"


@pytest.fixture
def w():
    return builders.world()


def pool_of(team):
    return f"{team.slug} · {CARD} · owned"


@pytest.fixture
def giving(w):
    return w.outsider.memberships.get().team


@pytest.fixture
def action(w, giving):
    """Open, for the pool that is to get 8 cards from another team's."""
    review = reviews.ensure_reviews()[0]
    data = {
        "currency": w.organisation.currency,
        "recommendations": [
            {
                "pool": pool_of(w.team), "accelerator": CARD, "ownership": "owned", "cards": 16, "utilization": 0.9,
                "action": "move", "change": 8, "to": pool_of(giving), "waiting": "70080.00",
                "lines": [{"template": "There are %(cards)s cards, and %(order)s on order.",
                           "params": {"cards": 16, "order": 0}}],
            }
        ],
    }  # fmt: skip
    ReviewSnapshot.objects.create(
        review=review, number=1, as_of=review.created_at, data=data, data_hash="x"
    )
    CapacityReview.objects.filter(pk=review.pk).update(status="in_session")
    return review_work.add_action(
        review_id=review.pk, text="Eight cards for search", pool=pool_of(w.team), owner=w.requester,
        due_on=today() + timedelta(days=20), by=w.cto,
    )  # fmt: skip


def budget(w, team, amount="200000"):
    quarter = Quarter.of(today() + timedelta(days=20), w.organisation.fiscal_start_month)
    row = budget_changes.open_budget(
        team_id=team.pk, quarter=str(quarter), kind="cloud", currency=w.organisation.currency, by=w.finance
    )  # fmt: skip
    change = budget_changes.allot(
        budget_id=row.pk, amount=Decimal(amount), reason="plan", by=w.finance
    )
    if change.status == "proposed":
        budget_changes.confirm_change(change_id=change.pk, by=w.finance2)
    return row


def test_one_click_drafts_the_request_that_the_recommendation_counts(action, w, client):
    client.force_login(w.requester)
    answer = client.post(reverse("review-action-request", args=[action.pk]))
    request = CapacityRequest.objects.get()
    assert answer.status_code == 302
    assert answer.url == request.get_absolute_url()
    assert (request.team, request.status, request.requester) == (w.team, "draft", w.requester)
    revision = request.current
    assert revision.workload["accelerators"] == 8
    assert revision.workload["accelerator"] == CARD
    assert revision.need_by == action.due_on
    assert "16" in revision.justification  # the arithmetic, in the organisation's language
    assert "Eight cards for search" in revision.justification
    page = client.get(request.get_absolute_url()).content.decode()
    assert action.get_absolute_url() in page
    page = client.get(action.get_absolute_url()).content.decode()
    assert request.get_absolute_url() in page
    assert reverse("review-action-request", args=[action.pk]) not in page
    assert (
        AuditEntry.objects.get(action="review_action.filed").data["reference"] == request.reference
    )
    with pytest.raises(InvalidTransition):
        follow_ups.file_request(action_id=action.pk, by=w.requester)


def test_the_permission_of_the_request_decides_who_files_it(action, w, client):
    for by in (
        w.cto,
        w.finance,
        w.auditor,
    ):  # they see the decision, and file no requests of this team
        with pytest.raises(NotPermitted):
            follow_ups.file_request(action_id=action.pk, by=by)
    with pytest.raises(
        NotPermitted
    ):  # may file requests, of another team, and does not see the decision
        follow_ups.file_request(action_id=action.pk, by=w.outsider)
    address = reverse("api-review-action-request", args=[action.pk])
    client.force_login(w.outsider)
    assert client.post(address, {}, content_type="application/json").status_code == 404
    assert client.get(action.get_absolute_url()).status_code == 404
    assert client.post(reverse("review-action-request", args=[action.pk])).status_code == 404
    client.force_login(w.auditor)
    assert client.get(action.get_absolute_url()).status_code == 200
    assert client.post(reverse("review-action-request", args=[action.pk])).status_code == 404
    assert not CapacityRequest.objects.exists()


def test_what_the_recommendation_does_not_tell_is_asked_for(action, w, client):
    ReviewAction.objects.filter(pk=action.pk).update(pool="")
    with pytest.raises(InputError) as refused:
        follow_ups.file_request(action_id=action.pk, by=w.requester)
    assert refused.value.field == "team"
    client.force_login(w.requester)
    address = reverse("review-action-request", args=[action.pk])
    assert client.post(address).status_code == 422
    assert client.post(address, {"team": w.team.pk, "cards": "0"}).status_code == 422
    assert not CapacityRequest.objects.exists()
    assert client.post(address, {"team": w.team.pk, "cards": "4"}).status_code == 302
    assert CapacityRequest.objects.get().current.workload["accelerators"] == 4


def test_a_transfer_between_the_budgets_of_the_two_pools(action, w, giving, client):
    giver, receiver = budget(w, giving), budget(w, w.team)
    client.force_login(w.finance)
    body = {} if follow_ups.at_once() else {"reason": ""}
    answer = client.post(
        reverse("api-review-action-transfer", args=[action.pk]),
        body,
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.content
    change = BudgetChange.objects.get(giver=giver)
    assert (change.budget, change.amount) == (receiver, Decimal("70080"))
    assert "Eight cards for search" in change.reason
    assert answer.json()["review_action"] == action.pk
    listed = client.get(reverse("api-review-actions", args=[action.review_id])).json()["results"]
    assert [one["kind"] for one in listed[0]["became"]] == ["transfer"]
    with pytest.raises(InvalidTransition):
        follow_ups.file_transfer(action_id=action.pk, by=w.finance)


def test_who_may_not_transfer_and_what_is_missing(action, w, client):
    for by in (w.requester, w.cto, w.operations):
        with pytest.raises((NotPermitted, InputError)):
            follow_ups.file_transfer(action_id=action.pk, by=by)
    client.force_login(w.requester)
    assert client.get(reverse("review-action-transfer", args=[action.pk])).status_code == 404
    client.force_login(w.finance)
    address = reverse("review-action-transfer", args=[action.pk])
    assert client.get(address).status_code == 200
    assert client.post(address).status_code == 422  # no budget is open
    assert not BudgetChange.objects.exists()


def test_the_next_review_shows_what_became_of_it(action, w):
    request = follow_ups.file_request(action_id=action.pk, by=w.requester)
    before = action.review.period.previous()
    CapacityReview.objects.filter(pk=action.review_id).update(
        fiscal_year=before.year, quarter=before.q, status="closed"
    )
    later = reviews.ensure_reviews()[0]
    assert later.period == quarter_at()
    snapshot = reviews.freeze_review(review_id=later.pk, actuals=QuarterActuals(), by=None)
    (row,) = snapshot.data["earlier_actions"]
    assert row["became"] == [{"kind": "request", "reference": request.reference, "state": "draft"}]
    cell = build_pack(snapshot.data, number=1).sections[0].tables[0].rows[0][-1]
    assert request.reference in cell
    assert "Draft" in cell


def test_nothing_is_filed_from_an_ended_decision_nor_another_request_named(action, w):
    request = follow_ups.file_request(action_id=action.pk, by=w.requester)
    other = builders.draft(w)
    with pytest.raises(InputError):
        review_work.end_action(
            action_id=action.pk, done=True, outcome="", reference=other.reference, by=w.requester
        )
    ended = review_work.end_action(action_id=action.pk, done=True, outcome="", by=w.requester)
    assert ended.request == request
    MembershipFactory(user=w.finance, team=w.team, role="requester")
    with pytest.raises(InvalidTransition):
        follow_ups.file_transfer(action_id=action.pk, by=w.finance)
