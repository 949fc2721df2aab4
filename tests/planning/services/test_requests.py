from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from core.audit import trail
from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AppendOnlyError, Notice
from core.organisation import today
from planning.models import CapacityRequest, RequestRevision
from planning.services import requests
from planning.states import RequestStatus
from planning.workloads import WorkloadErrors
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def test_the_whole_way_from_draft_to_fulfilled_leaves_a_trail(w):
    request = builders.at(w, RequestStatus.FULFILLED)

    told = [entry.action for entry in trail(request)][::-1]
    assert told == [
        "request.created", "plan.chosen", "request.submitted", "request.review_started",
        "request.approved", "request.sourcing_started", "request.fulfilled",
    ]  # fmt: skip
    assert trail(request).get(action="request.approved").actor == w.lead


def test_every_wrong_value_is_named_with_its_limit(w):
    with pytest.raises(WorkloadErrors) as caught:
        builders.draft(
            w,
            workload={"model": "x", "tokens": "many", "lora_rank": 0, "colour": "red"},
            checkpoint_seconds=None,
            interruptible=True,
            latency_class="chat",
        )
    assert {error.field for error in caught.value.errors} == {
        "tokens", "lora_rank", "colour", "checkpoint_seconds", "latency_class",
    }  # fmt: skip
    assert not CapacityRequest.objects.exists()


def test_a_submitted_revision_cannot_be_changed_by_any_path(w):
    request = requests.submit_request(request_id=builders.draft(w).pk, by=w.requester)
    revision = request.current

    revision.region = "elsewhere"
    with pytest.raises(AppendOnlyError):
        revision.save()
    with pytest.raises(DatabaseError), transaction.atomic():
        RequestRevision.objects.filter(pk=revision.pk).update(region="elsewhere")
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM planning_requestrevision WHERE id = %s", [revision.pk])
    assert request.current.region == ""


def test_a_draft_changed_in_another_tab_is_refused_with_the_difference(w):
    request = builders.draft(w)
    requests.update_draft(request_id=request.pk, by=w.requester, version=1, region="cn-north")

    with pytest.raises(StaleData) as caught:
        requests.update_draft(
            request_id=request.pk, by=w.requester, version=1, region="cn-south", title="Other"
        )

    assert caught.value.changes == {
        "title": ("Other", "Tune the support model"),
        "region": ("cn-south", "cn-north"),
    }
    assert request.current.region == "cn-north"


def test_changing_the_content_drops_the_plan_and_outdates_the_study(w):
    request = builders.planned(w)
    study = request.current.studies.get()

    requests.update_draft(
        request_id=request.pk, by=w.requester, workload={**builders.LORA, "tokens": "1G"}
    )

    study.refresh_from_db()
    assert study.status == "stale"
    assert not hasattr(RequestRevision.objects.get(request=request), "plan")


def test_changing_only_the_title_keeps_the_plan(w):
    request = builders.planned(w)
    requests.update_draft(request_id=request.pk, by=w.requester, title="A better name")
    assert RequestRevision.objects.get(request=request).plan.plan_key == "only"


def test_an_empty_justification_or_a_past_date_stops_the_submission(w):
    request = builders.draft(w, justification=" ")
    with pytest.raises(InputError, match="why"):
        requests.submit_request(request_id=request.pk, by=w.requester)
    late = builders.draft(w, need_by=today() - timedelta(days=1))
    with pytest.raises(InputError) as caught:
        requests.submit_request(request_id=late.pk, by=w.requester)
    assert caught.value.field == "need_by"
    assert caught.value.limit == today()


def test_without_a_plan_the_review_waits_for_one(w):
    request = requests.submit_request(request_id=builders.draft(w).pk, by=w.requester)
    assert request.status == RequestStatus.SUBMITTED
    assert not request.ledger.exists()

    builders.choose(request, builders.study(request), by=w.procurement)

    assert request.status == RequestStatus.IN_REVIEW
    assert request.current.steps.get().status == "pending"


def test_revising_an_approved_request_voids_its_approvals_and_tells_everyone(w):
    request = builders.approved(w)
    old = request.current

    with pytest.raises(InputError, match="reason"):
        requests.revise(request_id=request.pk, by=w.requester)
    requests.revise(request_id=request.pk, by=w.requester, reason="more data")

    request.refresh_from_db()
    assert (request.status, request.revision_number) == (RequestStatus.DRAFT, 2)
    assert [step.status for step in old.steps.all()] == ["void"]
    assert old.steps.get().votes.get().voter == w.lead
    told = Notice.objects.filter(event="request.revised").values_list("recipient", flat=True)
    assert set(told) == {w.lead.pk, w.requester.pk}
    assert not any(builders.held_sums(request).values())


def test_a_revision_that_changes_nothing_is_not_submitted_again(w):
    request = builders.at(w, RequestStatus.CHANGES_REQUESTED)
    requests.revise(request_id=request.pk, by=w.requester)

    with pytest.raises(InputError, match="Nothing differs"):
        requests.submit_request(request_id=request.pk, by=w.requester)

    requests.update_draft(
        request_id=request.pk, by=w.requester, justification="Half of it will do."
    )
    assert requests.submit_request(request_id=request.pk, by=w.requester).status == "submitted"


def test_a_recalled_request_keeps_its_study_for_the_same_content(w):
    request = builders.in_review(w)
    study = request.current.studies.get()
    requests.recall(request_id=request.pk, by=w.requester)
    request.refresh_from_db()

    builders.choose(request, study)
    assert requests.submit_request(request_id=request.pk, by=w.requester).status == "in_review"


def test_a_copy_is_a_draft_without_plan_or_approval(w):
    request = builders.approved(w)
    copy = requests.copy_request(request_id=request.pk, by=w.requester)

    assert copy.status == RequestStatus.DRAFT
    assert not copy.current.steps.exists()
    assert not hasattr(copy.current, "plan")
    assert copy.current.content_hash == request.current.content_hash
    assert not copy.ledger.exists()


def test_cancelling_an_approved_request_takes_an_approver_of_the_organisation(w):
    request = builders.approved(w)
    for person in (w.requester, w.lead, w.procurement, w.superuser):
        with pytest.raises(NotPermitted):
            requests.cancel_request(request_id=request.pk, by=person, reason="no")
    requests.cancel_request(request_id=request.pk, by=w.cto, reason="project ended")
    assert not any(builders.held_sums(request).values())


def test_sourcing_needs_every_step_of_the_current_revision(w):
    for status in (RequestStatus.DRAFT, RequestStatus.IN_REVIEW):
        with pytest.raises(InvalidTransition):
            requests.start_sourcing(request_id=builders.at(w, status).pk, by=w.procurement)


def test_fulfilment_waits_for_all_cards_or_a_reason(w):
    request = builders.at(w, RequestStatus.SOURCING)
    assert (
        requests.record_fulfilment(request_id=request.pk, accepted=7, by=None).status == "sourcing"
    )
    with pytest.raises(NotPermitted):
        requests.record_fulfilment(
            request_id=request.pk, accepted=7, by=w.requester, short_close_reason="enough"
        )
    done = requests.record_fulfilment(
        request_id=request.pk,
        accepted=7,
        by=w.procurement,
        short_close_reason="one replaced by credit",
    )
    assert done.status == "fulfilled"


def test_numbers_have_no_gaps(w):
    first = builders.draft(w)
    with pytest.raises(InputError):
        builders.draft(w, title="")
    assert builders.draft(w).number == first.number + 1


def test_someone_outside_the_team_sees_nothing(w):
    builders.draft(w)
    assert not CapacityRequest.objects.visible_to(w.outsider).exists()
    assert not CapacityRequest.objects.visible_to(w.superuser).exists()
    assert CapacityRequest.objects.visible_to(w.auditor).count() == 1


def test_the_hash_does_not_depend_on_how_a_database_writes_a_number(w):
    request = builders.draft(w, workload={**builders.LORA, "tokens": "1e16"})
    assert request.current.compute_hash() == request.current.content_hash
