"""Running a study: pinned inputs, one result, cancel, failure, and again."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction

from core import jobs
from core.errors import InputError, InvalidTransition, NotPermitted
from core.jobs import JobCancelled, Progress
from core.models import AuditEntry, Job
from planning import stock
from planning.models import MarketSnapshot, Study
from planning.services import plans, requests, studies
from planning.states import RequestStatus, StudyStatus
from planning.study.search.run import run_study as search
from planning.study.search.snapshot import IdleStock
from planning.tasks import run_study
from tests.planning import builders

TERMS = {"interruptible": True, "checkpoint_seconds": 1800, "duration_days": 14}


@pytest.fixture
def w(db):
    return builders.world()


def started(w, **fields):
    request = builders.draft(w, **{**TERMS, **fields})
    return request, studies.request_study(revision_id=request.current.pk, by=w.requester)


def finished(w, **fields):
    request, study = started(w, **fields)
    run_study(str(study.job.pk))
    study.refresh_from_db()
    return request, study


def test_a_study_runs_once_and_keeps_its_result(w):
    _request, study = finished(w)

    assert study.status == StudyStatus.READY
    assert study.job.status == Job.Status.DONE
    assert study.result["schema"] == "headroom/study-1"
    assert study.result["plans"]
    assert {row["role"] for row in study.result["recommended"]} == {"cheapest", "fastest", "safest"}
    before = study.result_hash, study.version
    run_study(str(study.job.pk))  # delivered twice
    studies.finish_study(study_id=study.pk, result={"plans": []})
    study.refresh_from_db()
    assert (study.result_hash, study.version) == before


def test_the_same_inputs_are_one_study(w):
    request, study = started(w)

    again = studies.request_study(revision_id=request.current.pk, by=w.lead)

    assert again.pk == study.pk
    assert MarketSnapshot.objects.count() == 1
    assert Job.objects.filter(key=f"study:{study.pk}").count() == 1


@pytest.fixture
def idle_cards(monkeypatch):
    """Eight owned H100 that are free from now on."""
    monkeypatch.setattr(stock, "_sources", [])

    def appear():
        stock.register(lambda day: [IdleStock("nvidia-h100-sxm5-80gb", 8, 8, "Room 1")])

    return appear


def test_a_changed_market_makes_a_new_study_and_supersedes_the_old_one(w, idle_cards):
    request, study = finished(w)
    before = study.result_hash
    idle_cards()

    second = studies.request_study(revision_id=request.current.pk, by=w.requester)
    run_study(str(second.job.pk))

    assert second.pk != study.pk
    study.refresh_from_db()
    second.refresh_from_db()
    assert (study.status, study.result_hash) == (StudyStatus.SUPERSEDED, before)
    assert second.status == StudyStatus.READY
    reuse = next(side for side in second.result["comparison"] if side["side"] == "reuse")
    assert reuse["mode"] == "reused"
    assert "missing" in study.result["comparison"][0]


def test_a_pinned_study_gives_the_same_result_again(w):
    _request, study = finished(w)

    inputs = studies.inputs_of(Study.objects.select_related("snapshot").get(pk=study.pk))
    again = search(inputs.request, inputs.known, inputs.snapshot, inputs.setting)
    assert studies.content_hash(again) == study.result_hash


def test_the_database_refuses_to_change_a_result(w):
    _request, study = finished(w)

    for statement in (
        "UPDATE planning_study SET result_hash = 'x' WHERE id = %s",
        "UPDATE planning_study SET seed = 7 WHERE id = %s",
        "DELETE FROM planning_study WHERE id = %s",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, [study.pk])
    with pytest.raises(DatabaseError), transaction.atomic():
        MarketSnapshot.objects.all().delete()


def test_a_plan_of_the_study_can_be_chosen_and_starts_the_review(w):
    request, study = finished(w)
    requests.submit_request(request_id=request.pk, by=w.requester)
    cheapest = next(r["key"] for r in study.result["recommended"] if r["role"] == "cheapest")

    plan = plans.choose_plan(
        revision_id=request.current.pk, study_id=study.pk, plan_key=cheapest, by=w.requester
    )

    request.refresh_from_db()
    assert request.status == RequestStatus.IN_REVIEW
    stored = next(p for p in study.result["plans"] if p["key"] == cheapest)
    assert plan.amount == Decimal(stored["amount"])
    assert plan.cards == stored["cards"]


def test_submitting_without_a_plan_starts_a_study(w):
    request = builders.draft(w, **TERMS)

    requests.submit_request(request_id=request.pk, by=w.requester)

    study = request.current.studies.get()
    assert study.status == StudyStatus.RUNNING
    assert study.created_by is None


def test_what_cannot_be_studied_is_said_and_does_not_stop_the_submission(w):
    request = builders.draft(w, workload={"model": "no-such-model", "tokens": "1B"}, **TERMS)

    with pytest.raises(InputError, match="not a model"):
        studies.request_study(revision_id=request.current.pk, by=w.requester)
    submitted = requests.submit_request(request_id=request.pk, by=w.requester)

    assert submitted.status == RequestStatus.SUBMITTED
    assert "no-such-model" in AuditEntry.objects.get(action="study.refused").reason


def test_a_cancelled_study_has_failed_and_may_run_again(w):
    request, study = started(w)

    studies.cancel_study(study_id=study.pk, by=w.requester)
    study.refresh_from_db()
    assert study.status == StudyStatus.FAILED
    assert study.error["template"] == "It was cancelled"

    again = studies.request_study(revision_id=request.current.pk, by=w.requester)
    assert again.pk == study.pk
    run_study(str(again.job.pk))
    again.refresh_from_db()
    assert again.status == StudyStatus.READY


def test_a_running_study_stops_at_the_next_stage(w):
    _request, study = started(w)
    Job.objects.filter(pk=study.job.pk).update(cancel_requested=True)

    run_study(str(study.job.pk))

    study.refresh_from_db()
    study.job.refresh_from_db()
    assert (study.status, study.job.status) == (StudyStatus.FAILED, Job.Status.CANCELLED)
    assert study.result is None


def test_a_job_that_was_given_up_frees_its_study(w):
    request, study = started(w)
    Job.objects.filter(pk=study.job.pk).update(
        status=Job.Status.RUNNING,
        attempts=jobs.MAX_ATTEMPTS,
        beat_at=study.created_at - timedelta(hours=1),
    )
    jobs.sweep()

    again = studies.request_study(revision_id=request.current.pk, by=w.requester)

    assert again.status == StudyStatus.RUNNING
    assert again.job.attempts == 0


def test_a_domain_error_is_kept_on_the_study(w):
    _request, study = started(w)
    Study.objects.filter(pk=study.pk).update(inputs={**study.inputs, "request": {"kind": "lora"}})

    run_study(str(study.job.pk))

    study.refresh_from_db()
    study.job.refresh_from_db()
    assert study.status == StudyStatus.FAILED
    assert study.error
    assert study.job.status == Job.Status.FAILED


def test_progress_tells_stages_in_order(w):
    _request, study = started(w)
    seen = []

    class Watch(Progress):
        def __call__(self, percent, stage):
            seen.append(percent)
            super().__call__(percent, stage)

    studies.compute(study_id=study.pk, progress=Watch(study.job))
    assert seen == sorted(seen)
    assert len(seen) >= 6
    Job.objects.filter(pk=study.job.pk).update(cancel_requested=True)
    with pytest.raises(JobCancelled):
        Progress(study.job)(50, studies.CANCELLED)


def test_who_may_run_a_study(w):
    request = builders.draft(w, **TERMS)
    for person in (w.outsider, w.auditor, w.finance, w.superuser):
        with pytest.raises(NotPermitted):
            studies.request_study(revision_id=request.current.pk, by=person)
    assert studies.request_study(revision_id=request.current.pk, by=w.procurement)

    requests.cancel_request(request_id=request.pk, by=w.requester, reason="no need")
    with pytest.raises(InvalidTransition):
        studies.request_study(revision_id=request.current.pk, by=w.requester)


@pytest.mark.parametrize(
    ("kind", "workload", "terms"),
    [
        ("online_inference",
         {"model": "llama-3.1-8b", "requests_per_day": "200k", "input_tokens": 500, "output_tokens": 150},
         {"latency_class": "chat", "accuracy_loss_limit": 0.02, "duration_days": 180}),
        ("batch_inference",
         {"model": "llama-3.1-8b", "items": "100k", "input_tokens": 500, "output_tokens": 150, "window_hours": 8},
         {"duration_days": 90}),
        ("gpu_hours", {"gpu_hours": 2000, "accelerators": 8, "memory_bytes": "40G"}, {}),
        ("pretraining", {"parameters": "1B", "tokens": "20B"}, {"duration_days": 30}),
    ],
)  # fmt: skip
def test_every_kind_of_request_ends_with_plans(w, kind, workload, terms):
    request = builders.draft(w, kind=kind, workload=workload, **terms)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)

    run_study(str(study.job.pk))

    study.refresh_from_db()
    assert study.status == StudyStatus.READY, study.error
    assert study.result["plans"]
    assert len(study.result["recommended"]) == 3
