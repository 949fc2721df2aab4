"""Outcomes teach estimates: matched once, versions put in force and taken back, and estimates say which they use."""

from datetime import timedelta
from decimal import Decimal

import pytest

from core.errors import InputError, NotPermitted
from core.models import AuditEntry
from core.money import Money
from core.roles import Role
from planning.estimators.types import Grade
from planning.models import CalibrationVersion, JobRun, MeasuredOutcome
from planning.selectors.calibration import in_force, scores
from planning.services import calibration, requests, spending
from planning.services.estimates import estimate_request
from planning.states import RequestStatus
from tests.planning import builders
from tests.planning.telemetry import T0, source

pytestmark = pytest.mark.django_db
ASKED = {
    "kind": "pretraining",
    "model": "llama-3.1-8b",
    "tokens": "1T",
    "accelerator": "nvidia-h100-sxm5-80gb",
    "accelerators": 64,
}


@pytest.fixture
def keeper(organisation, make_user):
    return make_user(Role.OPERATIONS)


def outcome(n: int, ratio: float = 0.8, **fields):
    values = {
        "by": None, "reference": f"run {n}", "kind": "speed", "estimated": 100.0, "measured": 100.0 * ratio, 
        "low": 90.0,
        "high": 110.0, "unit": "tokens/s", "measured_at": T0 + timedelta(hours=n), 
        "accelerator_slug": "nvidia-h100-sxm5-80gb",
        "work": "training",
    }  # fmt: skip
    return calibration.record_outcome(**{**values, **fields})


def figures():
    (found,) = estimate_request(ASKED).estimates
    return found.estimate


def test_estimates_use_the_version_in_force_and_say_so(keeper):
    before = figures()
    for n in range(30):
        outcome(n, 0.8)
    version = calibration.learn(by=keeper)
    after = figures()
    assert after.figures["throughput"].p50 == pytest.approx(
        0.8 * before.figures["throughput"].p50, rel=0.02
    )
    assert after.figures["training_time"].p50 == pytest.approx(
        before.figures["training_time"].p50 / 0.8, rel=0.02
    )
    assert after.figures["mfu"].p50 == pytest.approx(0.8 * before.figures["mfu"].p50, rel=0.02)
    assert after.figures["throughput"].grade is Grade.MEASURED
    assert after.memory == before.memory
    assert "calibration %(version)s" in after.assumptions[-1].template
    assert dict(after.assumptions[-1].params)["version"] == version.number
    assert after.trace[-1].name == "calibration"
    band = after.figures["throughput"]
    assert band.p10 < band.p50 < band.p90


def test_other_accelerators_take_what_all_share_and_keep_their_grade(keeper):
    (before,) = estimate_request({**ASKED, "accelerator": "nvidia-a100-sxm4-80gb"}).estimates
    for n in range(30):
        outcome(n, 0.8)
    calibration.learn(by=keeper)
    (after,) = estimate_request({**ASKED, "accelerator": "nvidia-a100-sxm4-80gb"}).estimates
    ratio = after.estimate.figures["throughput"].p50 / before.estimate.figures["throughput"].p50
    assert 0.8 < ratio < 0.99
    assert after.estimate.figures["throughput"].grade == before.estimate.figures["throughput"].grade


def test_one_click_back_and_what_a_person_chose_stays(keeper):
    published = figures().figures["throughput"].p50
    for n in range(20):
        outcome(n, 0.8)
    first = calibration.learn(by=keeper)
    slow = figures().figures["throughput"].p50
    for n in range(20, 60):
        outcome(n, 1.2)
    calibration.learn()
    assert in_force().number == 2
    calibration.choose_version(number=first.number, by=keeper)
    assert figures().figures["throughput"].p50 == slow
    for n in range(60, 120):
        outcome(n, 1.4)
    assert calibration.learn().number == 3
    assert in_force() == first  # chosen by a person
    calibration.choose_version(number=None, by=keeper)
    assert figures().figures["throughput"].p50 == published
    actions = AuditEntry.objects.filter(action__startswith="calibration.").values_list(
        "action", flat=True
    )
    assert {"calibration.learned", "calibration.in_force", "calibration.switched_off"} == set(
        actions
    )


def test_learning_twice_makes_one_version(keeper):
    for n in range(5):
        outcome(n)
    assert calibration.learn() is not None
    assert calibration.learn() is None
    assert CalibrationVersion.objects.count() == 1
    assert calibration.learn(by=keeper) is None


def test_nothing_is_learned_from_nothing(keeper):
    assert calibration.learn() is None
    assert in_force() is None


def test_an_estimate_that_was_calibrated_teaches_on_published_ground(keeper):
    row = outcome(1, 1.0, factor=0.8)
    assert row.ratio == pytest.approx(0.8)
    slow = outcome(2, 1.25, kind="time")
    assert slow.ratio == pytest.approx(0.8)


def test_the_same_outcome_again_is_the_same_row(keeper):
    assert outcome(1).pk == outcome(1, 0.5).pk
    assert MeasuredOutcome.objects.get().measured == 80.0


def test_outcomes_left_out_do_not_teach_and_say_why(keeper):
    for n in range(10):
        outcome(n, 0.7)
    for row in MeasuredOutcome.objects.all():
        calibration.leave_out(outcome_id=row.pk, reason="cooling was broken", by=keeper)
    assert calibration.learn(by=keeper) is None
    assert (
        AuditEntry.objects.filter(action="outcome.left_out", reason="cooling was broken").count()
        == 10
    )
    calibration.leave_out(outcome_id=row.pk, reason="", by=keeper)
    assert calibration.learn(by=keeper).outcomes == 1


def test_a_finished_run_that_reports_tokens_is_matched_once(keeper):
    of = source("job_table", accelerator_slug="nvidia-h100-sxm5-80gb")
    run = JobRun.objects.create(source=of, job="r", model_slug="llama-3.1-8b", tokens=64 * 8000 * 36_000, cards=64,
                                started_at=T0, ended_at=T0 + timedelta(hours=10))  # fmt: skip
    JobRun.objects.create(source=of, job="unknown", model_slug="no-such-model", tokens=1e9, cards=8, started_at=T0,
                          ended_at=T0 + timedelta(hours=1))  # fmt: skip
    assert calibration.match_runs() == 1
    assert calibration.match_runs() == 0
    row = MeasuredOutcome.objects.get()
    assert row.reference == f"run:{run.pk}"
    assert row.measured == pytest.approx(64 * 8000)
    assert 0.3 < row.measured / row.estimated < 3
    assert row.low < row.estimated < row.high


def test_scores_tell_error_and_coverage_by_class(keeper):
    outcome(1, 0.95), outcome(2, 0.5), outcome(3, 1.05)
    outcome(4, 2.0, kind="cost", work="", accelerator_slug="", low=None, high=None)
    found = {(s.work, s.month): s for s in scores(MeasuredOutcome.objects.all())}
    training = found["training", ""]
    assert (training.outcomes, training.within) == (3, pytest.approx(2 / 3))
    assert training.median_error == pytest.approx(0.05)
    assert found["cost", ""].within is None
    assert found["training", "2026-11"].outcomes == 3


@pytest.mark.parametrize(
    ("fields", "named"),
    [({"measured": 0.0}, "measured"), ({"estimated": -1.0}, "estimated"), ({"low": 2.0, "high": 1.0}, "low"),
     ({"work": ""}, "accelerator_slug")],
)  # fmt: skip
def test_a_wrong_outcome_is_refused_by_name(organisation, fields, named):
    with pytest.raises(InputError) as caught:
        outcome(1, **fields)
    assert caught.value.field == named


@pytest.mark.parametrize("role", [Role.REQUESTER, Role.FINANCE, Role.AUDITOR, Role.APPROVER])
def test_only_keepers_of_sources_teach(organisation, make_user, role):
    by = make_user(role)
    for act in (
        lambda: outcome(1, by=by),
        lambda: calibration.learn(by=by),
        lambda: calibration.choose_version(number=None, by=by),
    ):
        with pytest.raises(NotPermitted):
            act()


def test_a_request_closed_short_is_held_against_its_part_of_the_plan(db):
    """Seven of eight cards for seven eighths of the money are as planned, not cheaper."""
    w = builders.world()
    request = builders.at(w, RequestStatus.SOURCING)  # eight cards for 1000
    spending.commit(
        request_id=request.pk, amount=Money(Decimal(875), "CNY"), source="order:1", by=w.procurement
    )
    spending.post_actual(
        request_id=request.pk, amount=Money(Decimal(875), "CNY"), source="invoice:1", by=w.finance
    )
    requests.record_fulfilment(
        request_id=request.pk, accepted=7, by=w.procurement, short_close_reason="one was returned"
    )
    calibration.match_costs()
    row = MeasuredOutcome.objects.get(kind="cost")
    assert (row.estimated, row.measured) == (875.0, 875.0)
    assert row.title == f"Cost of {request}"
