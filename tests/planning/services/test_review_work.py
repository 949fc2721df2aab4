"""Decisions with owners, teams' plans beside what happened, invitations with their changes."""

from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import Notice
from core.organisation import today
from core.outbox import send_due
from planning.actuals import QuarterActuals
from planning.models import CapacityReview, ReviewAction, TeamPlan
from planning.review_pack import build_pack
from planning.services import review_meeting, review_work, reviews
from planning.tasks import ask_for_plans, ensure_reviews
from tests.planning import builders
from tests.planning.telemetry import feed, samples, source

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


@pytest.fixture
def review(w):
    return reviews.ensure_reviews()[0]


def at(review, status):
    CapacityReview.objects.filter(pk=review.pk).update(status=status)
    review.refresh_from_db()
    return review


def decide(review, w, **fields):
    values = {
        "text": "Lend two nodes to search",
        "owner": w.requester,
        "due_on": today() + timedelta(days=30),
        "by": w.cto,
    }
    return review_work.add_action(review_id=review.pk, **{**values, **fields})


def test_a_decision_reaches_its_owner_and_ends_as_a_request(review, w):
    action = decide(at(review, "in_session"), w)
    assert Notice.objects.get(event="review_action.added").recipient == w.requester
    request = builders.draft(w)
    with pytest.raises(InputError):
        review_work.end_action(action_id=action.pk, done=True, outcome="", by=w.requester)
    with pytest.raises(InputError):
        review_work.end_action(
            action_id=action.pk, done=True, outcome="", reference="R-9999", by=w.requester
        )
    ended = review_work.end_action(
        action_id=action.pk, done=True, outcome="", reference=request.reference, by=w.requester
    )
    assert (ended.status, ended.request) == ("done", request)
    with pytest.raises(InvalidTransition):
        review_work.end_action(action_id=action.pk, done=True, outcome="again", by=w.cto)


def test_who_may_decide_and_end(review, w):
    at(review, "in_session")
    for by in (w.requester, w.finance, w.auditor, w.lead):
        with pytest.raises(NotPermitted):
            decide(review, w, by=by)
    action = decide(review, w)
    for by in (w.outsider, w.finance, w.auditor):
        with pytest.raises(NotPermitted):
            review_work.end_action(action_id=action.pk, done=False, outcome="x", by=by)
    with pytest.raises(InputError):
        decide(review, w, due_on=today() - timedelta(days=1))
    with pytest.raises(InvalidTransition):
        decide(at(review, "closed"), w)


def test_the_next_review_shows_what_became_of_the_decisions(review, w):
    action = decide(at(review, "in_session"), w)
    before = review.period.previous()
    CapacityReview.objects.filter(pk=review.pk).update(
        fiscal_year=before.year, quarter=before.q, status="closed"
    )
    later = reviews.ensure_reviews()[0]
    review_work.end_action(
        action_id=action.pk, done=True, outcome="Lent since Monday", by=w.requester
    )
    snapshot = reviews.freeze_review(review_id=later.pk, actuals=QuarterActuals(), by=None)
    (row,) = snapshot.data["earlier_actions"]
    assert (row["state"], row["outcome"]) == ("done", "Lent since Monday")
    section = build_pack(snapshot.data, number=1).sections[0]
    assert "Lent since Monday" in section.tables[0].rows[0][-1]


def test_a_team_tells_its_plan_and_sees_the_last_beside_what_happened(review, w, client):
    before = review.period.previous()
    old = CapacityReview.objects.create(
        fiscal_year=before.year,
        quarter=before.q,
        start_month=1,
        meeting_on=today(),
        status="closed",
    )
    TeamPlan.objects.create(review=old, team=w.team, cards=12, text="two runs", told_by=w.requester)
    from datetime import UTC, datetime, time

    start = datetime.combine(review.period.start + timedelta(days=3), time(0), tzinfo=UTC)
    feed(source(team=w.team), samples(start=start, utilization=0.5))
    client.force_login(w.requester)
    address = reverse("team-plan", args=[review.pk, w.team.slug])
    page = client.get(address).content.decode()
    assert "12.0" in page
    assert "0.5" in page
    assert client.post(address, {"cards": "-1", "text": "x"}).status_code == 422
    assert client.post(address, {"cards": "20", "text": "a larger model"}).status_code == 302
    plan = TeamPlan.objects.get(review=review)
    assert (plan.cards, plan.version) == (20, 1)
    with pytest.raises(StaleData):
        review_work.tell_plan(
            review_id=review.pk, team=w.team, cards=1, text="x", by=w.lead, seen_version=7
        )
    rows = reviews.freeze_review(review_id=review.pk, actuals=QuarterActuals(), by=None).data[
        "plans"
    ]
    assert rows == [
        {
            "team": w.team.name,
            "cards": 20,
            "text": "a larger model",
            "last": 12,
            "measured": pytest.approx(0.5),
        }
    ]


def test_other_teams_and_central_readers_may_not_tell_a_plan(review, w, client):
    for by in (w.outsider, w.auditor, w.finance):
        client.force_login(by)
        assert client.get(reverse("team-plan", args=[review.pk, w.team.slug])).status_code == 404
        address = reverse("api-team-plan", args=[review.pk, w.team.slug])
        answer = client.put(address, {"cards": 1, "text": "x"}, content_type="application/json")
        assert answer.status_code == 404
    client.force_login(w.lead)
    answer = client.put(address, {"cards": 3, "text": "x"}, content_type="application/json")
    assert answer.status_code == 200
    at(review, "in_session")
    answer = client.put(address, {"cards": 4, "text": "x"}, content_type="application/json")
    assert answer.status_code == 409


def test_teams_without_a_plan_are_asked_once_when_the_meeting_is_near(review, w):
    CapacityReview.objects.update(meeting_on=today() + timedelta(days=60))
    ask_for_plans()
    assert not Notice.objects.filter(event="team_plan.asked").exists()
    CapacityReview.objects.update(meeting_on=today() + timedelta(days=10))
    for _ in range(3):
        ask_for_plans()
    asked = Notice.objects.filter(event="team_plan.asked", recipient=w.requester)
    assert asked.count() == 1
    review_work.tell_plan(review_id=review.pk, team=w.team, cards=1, text="x", by=w.requester)
    Notice.objects.all().delete()
    ask_for_plans()
    assert not asked.exists()


def test_everyone_gets_one_invitation_and_one_for_a_moved_day(review, w):
    for _ in range(3):
        ensure_reviews()
    assert Notice.objects.filter(event="review.invited", recipient=w.cto).count() == 1
    first = review_meeting.calendar(review)
    moved = review_meeting.move_meeting(
        review_id=review.pk, meeting_on=today() + timedelta(days=50), by=w.cto
    )
    ensure_reviews()
    assert Notice.objects.filter(event="review.invited", recipient=w.cto).count() == 2
    second = review_meeting.calendar(moved)
    uid = [line for line in first.splitlines() if line.startswith("UID")]
    assert uid == [line for line in second.splitlines() if line.startswith("UID")]
    assert "SEQUENCE:0" in first
    assert "SEQUENCE:1" in second
    assert all(len(line.encode()) <= 75 for line in second.split("\r\n"))
    assert "METHOD:CANCEL" in review_meeting.calendar(moved, cancelled=True)
    with pytest.raises(NotPermitted):
        review_meeting.move_meeting(review_id=review.pk, meeting_on=today(), by=w.finance)
    send_due()
    files = [
        name for m in mail.outbox if m.to == [w.cto.email] for name, _body, _type in m.attachments
    ]
    assert any(name.endswith(".ics") for name in files)


def test_pages_and_api_do_the_same(review, w, client):
    at(review, "in_session")
    client.force_login(w.cto)
    body = {
        "text": "Grow the pool",
        "owner": w.requester.pk,
        "due_on": (today() + timedelta(days=9)).isoformat(),
    }
    assert client.post(reverse("review-action-add", args=[review.pk]), body).status_code == 302
    wrong = client.post(
        reverse("review-action-add", args=[review.pk]), {**body, "due_on": "2020-01-01"}
    )
    assert wrong.status_code == 422
    assert "Grow the pool" in wrong.content.decode()
    answer = client.post(
        reverse("api-review-actions", args=[review.pk]),
        {**body, "owner": w.requester.email},
        content_type="application/json",
    )
    assert answer.status_code == 201
    page = client.get(review.get_absolute_url()).content.decode()
    assert page.count("Grow the pool") == 2
    client.force_login(w.requester)
    first, second = ReviewAction.objects.all()
    assert (
        client.post(
            reverse("review-action-end", args=[first.pk]), {"outcome": "done", "done": "on"}
        ).status_code
        == 302
    )
    end = reverse("api-review-action-end", args=[second.pk])
    assert (
        client.post(
            end, {"done": False, "outcome": "no need"}, content_type="application/json"
        ).json()["status"]
        == "dropped"
    )
    client.force_login(w.outsider)
    assert (
        client.post(
            end, {"done": True, "outcome": "x"}, content_type="application/json"
        ).status_code
        == 404
    )
    assert client.get(reverse("review-invitation", args=[review.pk])).status_code == 404
    assert client.get(reverse("api-review-actions", args=[review.pk])).status_code == 404


def notices(event, who):
    return Notice.objects.filter(event=event, recipient=who)


def sequence_of(notice):
    with notice.attachment.file.open("rb") as content:
        text = content.read().decode()
    lines = text.replace("\r\n ", "").splitlines()
    return {line.partition(":")[0]: line.partition(":")[2] for line in lines}


def test_a_cancelled_meeting_is_mailed_once_and_may_be_called_again(review, w):
    ensure_reviews()
    with pytest.raises(InputError):
        review_meeting.cancel_meeting(review_id=review.pk, reason=" ", by=w.cto)
    for by in (w.requester, w.lead, w.finance, w.auditor):
        with pytest.raises(NotPermitted):
            review_meeting.cancel_meeting(review_id=review.pk, reason="Nobody is there", by=by)
    off = review_meeting.cancel_meeting(review_id=review.pk, reason="Nobody is there", by=w.cto)
    with pytest.raises(InvalidTransition):
        review_meeting.cancel_meeting(review_id=review.pk, reason="again", by=w.cto)
    for _ in range(3):
        ensure_reviews()
        ask_for_plans()
    told = notices("review.meeting_cancelled", w.cto).get()
    sent = sequence_of(told)
    invited = sequence_of(notices("review.invited", w.cto).get())
    assert (sent["METHOD"], sent["STATUS"], sent["SEQUENCE"]) == ("CANCEL", "CANCELLED", "1")
    assert (invited["METHOD"], invited["SEQUENCE"], invited["UID"]) == ("REQUEST", "0", sent["UID"])
    assert f"mailto:{w.cto.email}" in review_meeting.calendar(off).replace("\r\n ", "")
    send_due()
    send_due()
    files = [
        (name, kind)
        for m in mail.outbox
        if m.to == [w.cto.email]
        for name, _body, kind in m.attachments
    ]
    assert [kind for name, kind in files if "cancelled" in name] == ["text/calendar; method=CANCEL"]
    at(review, "report_ready")
    with pytest.raises(InvalidTransition):
        reviews.open_session(review_id=review.pk, by=w.cto)
    again = review_meeting.move_meeting(
        review_id=review.pk, meeting_on=today() + timedelta(days=5), by=w.cto
    )
    assert again.cancelled_at is None
    assert sequence_of(notices("review.invited", w.cto).latest("pk"))["SEQUENCE"] == "2"
    assert reviews.open_session(review_id=review.pk, by=w.cto).status == "in_session"


def test_who_leaves_the_meeting_gets_it_taken_out_and_the_others_the_change(review, w):
    ensure_reviews()
    with pytest.raises(InputError):
        review_meeting.plan_meeting(review_id=review.pk, agenda="", people=[w.requester], by=w.cto)
    with pytest.raises(NotPermitted):
        review_meeting.plan_meeting(review_id=review.pk, agenda="", people=[], by=w.finance)
    planned = review_meeting.plan_meeting(
        review_id=review.pk, agenda="Only the pool of search", people=[w.cto, w.finance], by=w.cto
    )
    left = sequence_of(notices("review.uninvited", w.auditor).get())
    assert (left["METHOD"], left["SEQUENCE"]) == ("CANCEL", "1")
    assert not notices("review.uninvited", w.finance).exists()
    kept = sequence_of(notices("review.invited", w.finance).latest("pk"))
    assert (kept["METHOD"], kept["SEQUENCE"]) == ("REQUEST", "1")
    assert kept["DESCRIPTION"] == "Only the pool of search"
    same = review_meeting.plan_meeting(
        review_id=review.pk, agenda=planned.agenda, people=[w.cto, w.finance], by=w.cto
    )
    assert same.invitation == planned.invitation
    review_meeting.cancel_meeting(review_id=review.pk, reason="Put off", by=w.cto)
    assert notices("review.meeting_cancelled", w.finance).count() == 1
    assert not notices("review.meeting_cancelled", w.auditor).exists()


def test_people_are_reminded_once_of_each_day(review, w):
    CapacityReview.objects.update(meeting_on=today() + timedelta(days=30))
    ask_for_plans()
    assert not notices("review.reminded", w.cto).exists()
    CapacityReview.objects.update(meeting_on=today() + timedelta(days=2))
    for _ in range(3):
        ask_for_plans()
    assert notices("review.reminded", w.cto).count() == 1
    assert notices("team_plan.reminded", w.requester).count() == 1
    review_meeting.move_meeting(
        review_id=review.pk, meeting_on=today() + timedelta(days=1), by=w.cto
    )
    ask_for_plans()
    assert notices("review.reminded", w.cto).count() == 2


def test_the_meeting_by_page_and_api(review, w, client):
    client.force_login(w.cto)
    page = client.get(review.get_absolute_url()).content.decode()
    assert reverse("review-cancel", args=[review.pk]) in page
    body = {"agenda": "Short", "people": [w.cto.pk], "version": review.version}
    assert client.post(reverse("review-meeting", args=[review.pk]), body).status_code == 302
    assert client.post(reverse("review-meeting", args=[review.pk]), body).status_code == 409
    address = reverse("api-review-meeting", args=[review.pk])
    answer = client.patch(
        address, {"participants": [w.finance.email]}, content_type="application/json"
    )
    assert (answer.status_code, answer.json()["agenda"]) == (200, "Short")
    detail = client.get(reverse("api-review", args=[review.pk])).json()
    assert detail["participants"] == [w.finance.email]
    review.refresh_from_db()
    empty = {"reason": "", "version": review.version}
    assert client.post(reverse("review-cancel", args=[review.pk]), empty).status_code == 422
    client.force_login(w.finance)
    cancel = reverse("api-review-cancel", args=[review.pk])
    assert client.post(cancel, {"reason": "x"}, content_type="application/json").status_code == 403
    client.force_login(w.outsider)
    assert client.post(cancel, {"reason": "x"}, content_type="application/json").status_code == 404
    client.force_login(w.cto)
    off = client.post(cancel, {"reason": "Put off"}, content_type="application/json")
    assert off.json()["cancel_reason"] == "Put off"
    page = client.get(review.get_absolute_url()).content.decode()
    assert "Put off" in page
    assert reverse("review-cancel", args=[review.pk]) not in page
