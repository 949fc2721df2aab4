"""Four weeks after acceptance: one look back, one task, whatever the scheduler does."""

from datetime import timedelta

import pytest
import time_machine
from django.core import mail
from django.core.exceptions import ValidationError
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry, Notice
from core.outbox import send_due
from planning.models import CapacityRequest, JobRun, MonthOneReview
from planning.services import month_one
from planning.states import RequestStatus
from planning.tasks import look_back
from tests.planning import builders
from tests.planning.telemetry import feed, samples, source

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


@pytest.fixture
def fulfilled(w):
    request = builders.at(w, RequestStatus.FULFILLED)
    CapacityRequest.objects.filter(pk=request.pk).update(
        status_since=timezone.now() - timedelta(days=28, minutes=1)
    )
    request.refresh_from_db()
    return request


def use(w, utilization: float) -> None:
    start = (timezone.now() - timedelta(days=10)).replace(minute=0, second=0, microsecond=0)
    feed(source(team=w.team), samples(start=start, utilization=utilization, memory=0.5))


def jobs(w, waited: float, count: int = 10) -> None:
    of, start = source("sacct"), timezone.now() - timedelta(days=10)
    for n in range(count):
        JobRun.objects.create(
            source=of,
            job=str(n),
            team=w.team,
            submitted_at=start,
            started_at=start,
            waited_seconds=waited,
        )


def test_it_comes_by_itself_once_with_one_task_and_one_mail(fulfilled, w):
    use(w, 0.1)
    jobs(w, 60)
    assert look_back() == 1
    assert look_back() == 0
    review = MonthOneReview.objects.get()
    assert (review.finding, review.owner) == ("oversized", fulfilled.requester)
    assert review.figures["utilization"] == pytest.approx(0.1)
    assert review.figures["causes"][0] == "idle-cards/oversized"
    assert Notice.objects.filter(event="month_one.made").count() == 1
    send_due()
    send_due()
    assert sum("four weeks" in m.body or "four weeks" in m.subject for m in mail.outbox) == 1


def test_it_does_not_come_early(w):
    request = builders.at(w, RequestStatus.FULFILLED)
    assert month_one.due() == []
    assert month_one.look_back(request_id=request.pk) is None
    with time_machine.travel(timezone.now() + timedelta(days=28, hours=1)):
        assert month_one.due() == [request.pk]


@pytest.mark.race
@pytest.mark.django_db(transaction=True)
def test_two_schedulers_at_once_make_one(fulfilled):
    from threading import Thread

    def run():
        month_one.look_back(request_id=fulfilled.pk)
        connection.close()

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (
        MonthOneReview.objects.count() == Notice.objects.filter(event="month_one.made").count() == 1
    )


def test_idle_cards_beside_a_queue_are_called_scheduling(fulfilled, w):
    use(w, 0.1)
    jobs(w, 2 * 86_400)
    look_back()
    review = MonthOneReview.objects.get()
    assert review.finding == "scheduling"
    assert review.figures["causes"][0] == "idle-cards/scheduling"


def test_the_statistic_of_the_queue_is_a_setting_and_is_stated(fulfilled, w, client):
    use(w, 0.7)
    jobs(w, 60, 19)
    JobRun.objects.filter(job="0").update(waited_seconds=9 * 86_400)
    month_one.set_rules(by=w.operations, queue_statistic="longest")
    look_back()
    review = MonthOneReview.objects.get()
    assert (review.finding, review.figures["statistic"]) == ("insufficient", "longest")
    client.force_login(w.requester)
    assert "Longest" in client.get(review.get_absolute_url()).content.decode()


def test_without_telemetry_it_says_so_and_is_no_failure_and_no_zero(fulfilled, client, w):
    look_back()
    review = MonthOneReview.objects.get()
    assert (review.finding, review.figures["utilization"], review.figures["queue"]) == (
        "unknown",
        None,
        None,
    )
    client.force_login(w.requester)
    page = client.get(review.get_absolute_url()).content.decode()
    assert "No source told what cards did" in page


def test_energy_is_the_sum_of_all_pools_or_not_known(fulfilled, w):
    start = (timezone.now() - timedelta(days=10)).replace(minute=0, second=0, microsecond=0)
    for n, told in ((1, {"power": 600.0}), (2, {})):
        feed(
            source(team=w.team, accelerator_slug=f"card-{n}"),
            samples(card=f"GPU-{n}", start=start, **told),
        )
    look_back()
    assert MonthOneReview.objects.get().figures["energy_kwh"] is None


def test_energy_of_pools_that_all_told_it_is_added_up(fulfilled, w):
    start = (timezone.now() - timedelta(days=10)).replace(minute=0, second=0, microsecond=0)
    for n in (1, 2):
        feed(
            source(team=w.team, accelerator_slug=f"card-{n}"),
            samples(card=f"GPU-{n}", start=start, power=600.0),
        )
    look_back()
    assert MonthOneReview.objects.get().figures["energy_kwh"] == pytest.approx(1.2)


def test_the_owner_answers_once_and_others_may_not(fulfilled, w, client):
    look_back()
    review = MonthOneReview.objects.get()
    with pytest.raises(NotPermitted):
        month_one.close(review_id=review.pk, answer="x", by=w.lead)
    with pytest.raises(InputError):
        month_one.close(review_id=review.pk, answer=" ", by=w.requester)
    client.force_login(w.requester)
    address = reverse("month-one-close", args=[review.pk])
    assert client.post(address, {"answer": "", "version": 1}).status_code == 422
    assert (
        client.post(address, {"answer": "Two nodes lent to search.", "version": 1}).status_code
        == 302
    )
    with pytest.raises(InvalidTransition):
        month_one.close(review_id=review.pk, answer="again", by=w.requester)
    assert AuditEntry.objects.filter(action="month_one.done", team=w.team).count() == 1


def test_other_teams_find_none_by_page_or_api(fulfilled, w, client):
    look_back()
    review = MonthOneReview.objects.get()
    client.force_login(w.outsider)
    assert client.get(reverse("api-month-one-list")).json()["results"] == []
    assert fulfilled.title not in client.get(reverse("month-one-list")).content.decode()
    for address in (review.get_absolute_url(), reverse("api-month-one", args=[review.pk])):
        assert client.get(address).status_code == 404
    for name in ("month-one-close", "api-month-one-close"):
        assert client.post(reverse(name, args=[review.pk])).status_code == 404
    assert client.get(reverse("review-rules")).status_code == 404
    client.force_login(w.auditor)
    assert client.get(reverse("api-month-one", args=[review.pk])).json()["finding"] == "unknown"
    body = {"answer": "x"}
    answer = client.post(
        reverse("api-month-one-close", args=[review.pk]), body, content_type="application/json"
    )
    assert answer.status_code == 403


def test_rules_are_changed_by_operations_only_and_within_limits(w, client):
    with pytest.raises(NotPermitted):
        month_one.set_rules(by=w.finance, queue_hours=1)
    with pytest.raises(ValidationError):
        month_one.set_rules(by=w.operations, oversized_percent=130)
    client.force_login(w.operations)
    answer = client.patch(
        reverse("api-review-rules"), {"queue_hours": 12}, content_type="application/json"
    )
    assert answer.json()["queue_hours"] == 12
    assert AuditEntry.objects.get(action="review_rules.changed").data["changes"] == {
        "queue_hours": ["24", "12.0"]
    }
    client.force_login(w.auditor)
    assert (
        client.patch(
            reverse("api-review-rules"), {"queue_hours": 1}, content_type="application/json"
        ).status_code
        == 403
    )
