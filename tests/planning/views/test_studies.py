"""Pages of studies."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from core.models import Organisation
from planning import stock
from planning.models import Study
from planning.services import studies
from planning.states import RequestStatus, StudyStatus
from planning.study.search.snapshot import IdleStock
from planning.tasks import render_brief, run_study
from tests.planning import builders

TERMS = {"interruptible": True, "checkpoint_seconds": 1800, "duration_days": 14}


@pytest.fixture
def w(db):
    return builders.world()


@pytest.fixture
def ready(w):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    run_study(str(study.job.pk))
    return Study.objects.get(pk=study.pk)


def test_a_study_is_started_watched_and_read(w, client, django_assert_max_num_queries):
    request = builders.draft(w, **TERMS)
    client.force_login(w.requester)

    page = client.post(reverse("study-start", args=[request.pk]), follow=True)
    study = Study.objects.get()
    assert page.redirect_chain[-1][0] == reverse("study-detail", args=[study.pk])
    assert "hx-get" in page.content.decode()

    run_study(str(study.job.pk))
    with django_assert_max_num_queries(40):
        page = client.get(reverse("study-detail", args=[study.pk]))
    text = page.content.decode()
    for word in (
        "Cheapest",
        "Fastest",
        "Safest",
        "Why not the others",
        "Reuse, rent or buy",
        "Seed",
    ):
        assert word in text
    cheapest = study_plan(study)
    assert cheapest["accelerator"] in text


def study_plan(study: Study) -> dict:
    study.refresh_from_db()
    key = study.result["recommended"][0]["key"]
    return next(plan for plan in study.result["plans"] if plan["key"] == key)


def test_a_plan_is_chosen_from_the_page(w, client, ready):
    client.force_login(w.requester)
    owner = ready.revision.request

    page = client.post(
        reverse("study-choose", args=[ready.pk]),
        {"plan_key": study_plan(ready)["key"], "version": owner.version},
        follow=True,
    )

    assert page.status_code == 200
    assert owner.current.plan.plan_key == study_plan(ready)["key"]
    text = client.get(reverse("study-detail", args=[ready.pk])).content.decode()
    assert "Chosen" in text


def test_reasons_are_filtered_on_the_server(w, client, ready):
    client.force_login(w.requester)
    address = reverse("study-detail", args=[ready.pk])

    part = client.get(
        address, {"why": "precision"}, HTTP_HX_REQUEST="true", HTTP_HX_TARGET="why-not"
    ).content.decode()

    assert "has no bf16 units" in part
    assert "<html" not in part
    assert "no slower" not in part
    nothing = client.get(address, {"q": "zzz-no-such-card"}).content.decode()
    assert "Nothing matches." in nothing


def test_other_teams_do_not_see_it(w, client, ready):
    client.force_login(w.outsider)
    for name in ("study-detail",):
        assert client.get(reverse(name, args=[ready.pk])).status_code == 404
    for name in ("study-choose", "study-cancel"):
        assert client.post(reverse(name, args=[ready.pk])).status_code == 404
    assert client.post(reverse("study-start", args=[ready.revision.request_id])).status_code == 404


def test_a_failed_study_says_why_and_offers_another_run(w, client):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    studies.cancel_study(study_id=study.pk, by=w.requester)
    client.force_login(w.requester)

    text = client.get(reverse("study-detail", args=[study.pk])).content.decode()

    assert "It was cancelled" in text
    assert "Run again" in text


def test_an_unknown_model_is_said_on_the_request_page(w, client):
    request = builders.draft(w, workload={"model": "no-such-model", "tokens": "1B"}, **TERMS)
    client.force_login(w.requester)

    page = client.post(reverse("study-start", args=[request.pk]), follow=True)

    assert "no-such-model is not a model of the catalogue" in page.content.decode()


def test_readers_see_no_buttons(w, client, ready):
    client.force_login(w.auditor)
    text = client.get(reverse("study-detail", args=[ready.pk])).content.decode()
    assert "Choose this plan" not in text
    assert ready.revision.request.status == RequestStatus.DRAFT
    assert ready.status == StudyStatus.READY


def test_what_if_answers_a_fragment_and_refuses_at_the_field(w, client, ready):
    client.force_login(w.requester)
    address = reverse("study-what-if", args=[ready.pk])

    page = client.get(address).content.decode()
    assert 'type="range"' in page
    part = client.get(
        address, {"amount": "2", "price": "1"}, HTTP_HX_REQUEST="true"
    ).content.decode()
    assert "With these numbers" in part
    assert "<html" not in part
    bad = client.get(address, {"amount": "50"}, HTTP_HX_REQUEST="true")
    assert bad.status_code == 422


def test_two_studies_are_compared(w, client, ready, monkeypatch):
    monkeypatch.setattr(stock, "_sources", [])
    stock.register(lambda day: [IdleStock("nvidia-h100-sxm5-80gb", 8, 8, "Room 1")])
    second = studies.request_study(revision_id=ready.revision_id, by=w.requester)
    run_study(str(second.job.pk))
    client.force_login(w.requester)

    text = client.get(reverse("study-compare", args=[second.pk, ready.pk])).content.decode()

    assert "Inputs that differ" in text
    assert "Already owned" in text
    client.force_login(w.outsider)
    assert client.get(reverse("study-compare", args=[second.pk, ready.pk])).status_code == 404


def test_a_brief_is_asked_for_drawn_and_downloaded(w, client, ready):
    client.force_login(w.requester)
    client.post(reverse("study-brief", args=[ready.pk, "en"]))
    brief = ready.briefs.get()
    assert client.get(reverse("study-brief-file", args=[ready.pk, "en"])).status_code == 404

    render_brief(str(brief.job.pk))

    page = client.get(reverse("study-detail", args=[ready.pk])).content.decode()
    assert reverse("study-brief-file", args=[ready.pk, "en"]) in page
    pdf = client.get(reverse("study-brief-file", args=[ready.pk, "en"]))
    assert pdf["Content-Type"] == "application/pdf"
    client.force_login(w.outsider)
    assert client.get(reverse("study-brief-file", args=[ready.pk, "en"])).status_code == 404


def test_a_running_study_shows_its_first_plans_and_refreshes_when_it_ends(w, client):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    client.force_login(w.requester)
    address = reverse("study-detail", args=[study.pk])
    preview = {
        "axis": "time", "candidates": 9, "met": 3,
        "plans": [{"accelerator": "H100 SXM", "cards": 8, "mode": "spot", "cost": "1234.50", "currency": "CNY",
                   "seconds": 3600.0}],
    }  # fmt: skip
    studies.show_first(study_id=study.pk, preview=preview)
    fragment = {"HX-Request": "true", "HX-Target": "study-running"}

    page = client.get(address, headers=fragment)
    assert "1,234 CNY" in page.content.decode()
    assert "HX-Refresh" not in page.headers

    run_study(str(study.job.pk))
    assert client.get(address, headers=fragment)["HX-Refresh"] == "true"


def test_the_page_of_a_study_asked_for_just_now_waits_for_its_first_plans(
    w, client, settings, monkeypatch
):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    client.force_login(w.requester)
    settings.FIRST_PLANS_WAIT = 60
    waits: list[float] = []

    def a_worker_meanwhile(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            run_study(str(study.job.pk))

    monkeypatch.setattr("planning.views.studies.time.sleep", a_worker_meanwhile)
    assert 'id="plans"' in client.get(reverse("study-detail", args=[study.pk])).content.decode()
    assert len(waits) == 3


def test_a_study_that_does_not_begin_shows_its_progress_after_the_wait(w, client, settings):
    request = builders.draft(w, **TERMS)
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    client.force_login(w.requester)
    settings.FIRST_PLANS_WAIT = 0.05
    page = client.get(reverse("study-detail", args=[study.pk])).content.decode()
    assert 'id="study-running"' in page


def test_a_stale_study_says_whether_request_or_prices_moved(w, client, ready, monkeypatch):
    client.force_login(w.requester)
    Study.objects.filter(pk=ready.pk).update(status=StudyStatus.STALE)
    monkeypatch.setattr(
        "planning.views.studies.freshness.moved_since",
        lambda study: {
            "offers_gone": 0, "offers_come": 2, "offers_moved": 1, "servers_changed": 0, "figures_changed": 0,
            "costs_changed": 0, "leases_changed": 0,
            "rates": [],
            "prices": [{"provider": "aws", "region": "us", "instance": "p5", "accelerator": "h100", "mode": "spot",
                        "before": "10", "after": "15", "currency": "USD", "change": 0.5}],
        },
    )  # fmt: skip

    page = client.get(reverse("study-detail", args=[ready.pk])).content.decode()
    assert "2 offers are new" in page
    assert "15 USD" in page

    monkeypatch.setattr("planning.views.studies.studies.request_changed", lambda study: True)
    page = client.get(reverse("study-detail", args=[ready.pk])).content.decode()
    assert "The request was changed after this study" in page


def test_a_service_shows_its_mix_and_each_purchase_its_last_day(w, client):
    Organisation.objects.update(time_zone="Asia/Singapore")  # where H100 may be bought
    request = builders.draft(
        w, kind="online_inference", latency_class="chat", duration_days=365,
        workload={"model": "llama-3.1-70b", "requests_per_day": "2M", "input_tokens": 800, "output_tokens": 200},
    )  # fmt: skip
    study = studies.request_study(revision_id=request.current.pk, by=w.requester)
    run_study(str(study.job.pk))
    client.force_login(w.requester)

    page = client.get(reverse("study-detail", args=[study.pk])).content.decode()

    for words in (
        "Against one mode alone",
        "If too much is reserved",
        "Last day to order",
        "What binds first",
    ):
        assert words in page


def test_running_again_with_nothing_new_says_that_the_study_stands(w, client, ready):
    client.force_login(w.requester)
    address = reverse("study-start", args=[ready.revision.request_id])
    page = client.post(address, follow=True)
    assert page.redirect_chain[-1][0] == reverse("study-detail", args=[ready.pk])
    assert "the study stands" in page.content.decode()


def test_a_plan_of_several_parts_is_one_card_and_long_tables_are_folded(w, client, ready):
    from planning import study_tables

    result = ready.result
    first = result["recommended"][0]
    result = {
        **result,
        "recommended": [{**row, "key": first["key"]} for row in result["recommended"]],
    }
    (card,) = study_tables.merged_cards(result)
    assert card.role == "Cheapest · Fastest · Safest"
    assert card.why.count("\n") == 2
    client.force_login(w.requester)
    text = client.get(reverse("study-detail", args=[ready.pk])).content.decode()
    assert '<details class="fold"><summary><h2>Why not the others' in text
    asked = client.get(reverse("study-detail", args=[ready.pk]), {"q": "h100"}).content.decode()
    assert '<details class="fold" open><summary><h2>Why not the others' in asked
    if len(ready.result["plans"]) > 8:
        assert "more plan" in text


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_study_reads_from_its_answer_down_and_its_contents_lead_to_every_part(
    w, client, ready, language
):
    study = ready
    client.force_login(w.requester)
    client.cookies["django_language"] = language
    page = client.get(study.get_absolute_url()).content.decode()

    contents = re.search(r'<nav[^>]*id="contents".*?</nav>', page, re.S).group()
    anchors = re.findall(r'href="#([a-z]+)"', contents)
    places = [page.index(f'id="{anchor}"') for anchor in anchors]
    assert places == sorted(places)
    assert anchors[:4] == ["recommended", "frontier", "compare", "plans"]
    for anchor in ("estimates", "why", "basis", "trail"):
        part = page[page.index(f'id="{anchor}"') :]
        assert part.index("<details") < part.index("</h2>")
