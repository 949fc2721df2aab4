"""Studies that no longer hold: a request changed and changed back, prices and rates that moved."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from catalog.models import OfferPrice, TcoDefault
from catalog.services.loading import load_reference
from catalog.services.prices import add_price
from catalog.services.rates import add_rate
from catalog.services.revisions import TCO, correct
from core.models import AuditEntry, ExchangeRate
from core.organisation import today
from planning.models import Study
from planning.services import freshness, requests, studies
from planning.services.freshness import outdate_studies
from planning.services.snapshots import snapshot
from planning.states import StudyStatus
from planning.tasks import run_study
from tests.planning import builders

TERMS = {"interruptible": True, "checkpoint_seconds": 1800, "duration_days": 14}


@pytest.fixture
def w(db):
    return builders.world()


def run(w, request):
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    run_study(str(study.job.pk))
    study.refresh_from_db()
    return study


def edit(w, request, **fields):
    request.refresh_from_db()
    return requests.update_draft(request_id=request.pk, by=w.requester, **fields)


def test_a_draft_that_is_changed_and_changed_back_gets_a_study_of_its_own(w):
    request = builders.draft(w, **TERMS)
    first = run(w, request)
    edit(w, request, duration_days=30)
    second = run(w, request)
    edit(w, request, duration_days=14)

    again = run(w, request)

    first.refresh_from_db()
    second.refresh_from_db()
    assert again.pk not in (first.pk, second.pk)
    assert again.status == StudyStatus.READY
    assert again.inputs_hash == first.inputs_hash
    assert again.result_hash == first.result_hash
    assert (first.status, second.status) == (StudyStatus.SUPERSEDED, StudyStatus.SUPERSEDED)


def test_a_study_that_went_out_of_date_does_not_answer_again(w):
    request = builders.draft(w, **TERMS)
    first = run(w, request)
    edit(w, request, duration_days=30)
    edit(w, request, duration_days=14)

    again = run(w, request)

    first.refresh_from_db()
    assert again.pk != first.pk
    assert (first.status, again.status) == (StudyStatus.SUPERSEDED, StudyStatus.READY)


def test_two_studies_never_answer_for_the_same_inputs_at_once(w):
    request = builders.draft(w, **TERMS)
    study = run(w, request)

    with pytest.raises(IntegrityError), transaction.atomic():
        Study.objects.create(revision=study.revision, inputs_hash=study.inputs_hash)


def test_a_request_changed_while_its_study_runs_leaves_it_out_of_date(w):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    edit(w, request, duration_days=30)

    run_study(str(study.job.pk))

    study.refresh_from_db()
    assert study.status == StudyStatus.STALE
    assert study.result is not None


@pytest.fixture
def priced(w):
    """A study over a catalogue in the database."""
    load_reference()
    request = builders.draft(w, **TERMS)
    study = run(w, request)
    assert study.inputs["currency"] == "CNY"
    return request, study


def dearer(w, price: OfferPrice, factor: str = "1.5") -> None:
    offer = price.offer
    cells = {
        "cloud": offer.cloud, "region": offer.region, "instance_type": offer.instance_type,
        "accelerator": offer.accelerator.slug, "accelerator_count": str(offer.accelerator_count), "kind": price.kind,
        "price_per_instance_hour": str((price.amount * Decimal(factor)).quantize(Decimal("0.0001"))),
        "currency": price.currency, "as_of": today().isoformat(), "source": "new price list",
    }  # fmt: skip
    _price, added = add_price(target="offers", cells=cells, by=w.procurement)
    assert added


def h100_price() -> OfferPrice:
    return OfferPrice.objects.latest().filter(
        offer__accelerator__slug="nvidia-h100-sxm5-80gb", kind="on_demand", offer__complete=True
    )[0]  # fmt: skip


def test_a_new_price_outdates_the_study_and_leaves_its_result(
    w, priced, django_capture_on_commit_callbacks
):
    _request, study = priced
    with django_capture_on_commit_callbacks() as queued:
        dearer(w, h100_price())
    assert [call.args[0].name for call in queued] == ["planning.tasks.outdate_studies"]
    assert outdate_studies() == 1

    hash_before, result = study.result_hash, study.result
    study.refresh_from_db()
    assert study.status == StudyStatus.STALE
    assert (study.result_hash, study.result) == (hash_before, result)
    entry = AuditEntry.objects.get(action="study.outdated")
    assert entry.data["cause"] == "market"
    moved = freshness.moved_since(study)
    assert moved["offers_moved"] == 1
    assert moved["prices"][0]["change"] == pytest.approx(0.5, abs=1e-3)


def test_nothing_moved_outdates_nothing(priced):
    _request, study = priced

    assert outdate_studies() == 0
    study.refresh_from_db()
    assert study.status == StudyStatus.READY
    assert freshness.moved_since(study) is None


@pytest.mark.parametrize(("factor", "stale"), [("1.005", 0), ("1.02", 1)])
def test_a_rate_outdates_a_study_from_one_per_cent(w, priced, factor, stale):
    known = ExchangeRate.objects.filter(base="USD", quote="CNY").latest("as_of")
    rate = (known.rate * Decimal(factor)).quantize(Decimal("0.0001"))
    add_rate(base="USD", quote="CNY", rate=rate, as_of=today(), source="bank", by=w.finance)

    assert outdate_studies() == stale


def test_prices_of_cards_that_were_not_asked_about_do_not_outdate(w, priced):
    request = builders.draft(
        w,
        kind="gpu_hours",
        workload={"gpu_hours": 800, "accelerators": 8, "accelerator": "nvidia-l40s"},
    )
    study = run(w, request)
    dearer(w, h100_price())

    outdate_studies()

    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_a_decided_request_keeps_its_study(w, priced):
    request, study = priced
    requests.cancel_request(request_id=request.pk, by=w.requester, reason="")
    dearer(w, h100_price())

    assert outdate_studies() == 0
    study.refresh_from_db()
    assert study.status == StudyStatus.READY


def test_the_database_still_refuses_to_change_a_result(w):
    study = run(w, builders.draft(w, **TERMS))

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE planning_study SET result_hash = 'x' WHERE id = %s", [study.pk])


def test_first_plans_are_there_before_the_risks_are_weighed(w):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    seen = []

    def progress(percent, _stage):
        seen.append((percent, Study.objects.values_list("preview", flat=True).get(pk=study.pk)))

    studies.compute(study_id=study.pk, progress=progress)

    before = [preview for percent, preview in seen if percent <= 65]
    after = [preview for percent, preview in seen if 65 < percent]
    assert all(preview is None for preview in before)
    study.refresh_from_db()
    assert after[0]["plans"][0]["cost"] == study.result["plans"][0]["cost"]
    assert study.preview is None


def test_a_corrected_cost_default_reaches_studies_and_outdates_those_of_before(w):
    load_reference()
    found = builders.draft(w, **TERMS)
    before = run(w, found)
    default = TcoDefault.objects.get(key="tariff.cny_per_kwh")
    correct(
        TCO, pk=default.pk, changes={"value": 0.8}, reason="Our contract", by=w.procurement,
        source="Contract 12", source_url="", as_of=today(), confidence="read",
    )  # fmt: skip

    assert [(row.name, row.value) for row in snapshot(today()).costs] == [
        ("tariff.cny_per_kwh", 0.8)
    ]
    outdate_studies()
    before.refresh_from_db()
    assert before.status == StudyStatus.STALE
    after = run(w, found)
    assert after.result["costs"][0]["source"] == "Contract 12"
    assert before.result["costs"] == []
