"""Pages of studies: start one, watch it, read it, choose from it."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import InputError
from core.files import download
from core.forms import refuse
from core.http import SignedInRequest
from core.refused import say_refusal
from core.whole import whole
from planning import policies, study_changes, study_charts, study_funnel, study_orders, study_tables
from planning.forms.studies import WhatIfForm
from planning.models import CapacityRequest, Study
from planning.services import briefs, freshness, plans, studies
from planning.services.plans import USABLE
from planning.states import StudyStatus
from planning.workloads import WorkloadErrors

PAGE = 25


def visible_study(request: SignedInRequest, pk: int) -> Study:
    """The study, or 404 outside the reader's teams."""
    rows = Study.objects.visible_to(request.user)
    return get_object_or_404(
        rows.select_related(
            "revision__request__team", "revision__request__requester", "job", "snapshot"
        ),
        pk=pk,
    )


@require_POST
def study_start(request: SignedInRequest, pk: int) -> HttpResponse:
    """Study the current revision at today's prices."""
    found = get_object_or_404(CapacityRequest.objects.visible_to(request.user), pk=pk)
    asked_at = timezone.now()
    try:
        study = studies.request_study(revision_id=found.current.pk, by=request.user)
    except WorkloadErrors as error:
        for one in error.errors:
            say_refusal(request, one)
        return redirect(found)
    except InputError as error:
        say_refusal(request, error)
        return redirect(found)
    if study.created_at < asked_at and study.status in (StudyStatus.READY, StudyStatus.PUBLISHED):
        same = _("Prices, rates and inputs are the same as on %(day)s; the study stands.")
        messages.info(request, same % {"day": date_format(timezone.localtime(study.created_at))})
    return redirect(study)


@require_safe
def study_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Progress while it runs, then the result."""
    study = visible_study(request, pk)
    fragment = request.htmx.target if request.htmx and not request.htmx.boosted else None
    if fragment is None and _just_asked(study) and _something_to_show(study):
        study = visible_study(request, pk)
    context = _context(request, study)
    template = {
        "why-not": "planning/_why_not.html",
        "study-running": "planning/_study_running.html",
    }.get(fragment or "", "planning/study_detail.html")
    response = render(request, template, context)
    ended = study.status != StudyStatus.RUNNING or study.job is None or not study.job.is_open
    if fragment == "study-running" and ended:
        response["HX-Refresh"] = "true"
    return response


def _just_asked(study: Study) -> bool:
    age = timezone.now() - study.job.created_at if study.job else None
    return study.status == StudyStatus.RUNNING and age is not None and age < timedelta(seconds=2)


def _something_to_show(study: Study) -> bool:
    """Whether first plans or the end came within the moment that is worth waiting for: most studies take less, and a
    page that is asked again costs more than the wait."""
    until = time.monotonic() + settings.FIRST_PLANS_WAIT
    waiting = Study.objects.filter(pk=study.pk, status=StudyStatus.RUNNING, preview__isnull=True)
    while waiting.exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.04)
    return True


def _context(request: SignedInRequest, study: Study) -> dict[str, Any]:
    owner = study.revision.request
    context: dict[str, Any] = {
        "study": study,
        "capacity_request": owner,
        "version": owner.version,
        "may_study": policies.can_study(request.user, owner),
        "may_choose": policies.can(request.user, "choose_plan", owner)
        and study.status in USABLE
        and owner.revision_number == study.revision.number,
        "may_publish": policies.can_publish(request.user, study),
        "briefs": _briefs(study),
        "others": owner_studies(study),
        "trail": trail(study)[:30],
        "stale": _stale(study),
    }
    if study.preview is not None:
        context |= {
            "first": study_tables.first_rows(study.preview),
            "time_label": study_tables.time_label(study.preview),
        }
    if study.result is None or "schema" not in study.result:
        return context
    result = study.result
    sort = request.GET.get("sort", "cost")
    code, query = request.GET.get("why", ""), request.GET.get("q", "")
    keyed = study_tables.by_key(result)
    chosen = getattr(study.revision, "plan", None)
    context |= {
        "result": result,
        "cards": study_tables.merged_cards(result),
        "chart": study_charts.frontier_chart(result),
        "plans": study_tables.plan_rows(result["plans"] or result["nearest"], sort),
        "met": bool(result["plans"]),
        "sort": sort,
        "sorts": [
            ("cost", _("Cost")),
            ("time", study_tables.time_label(result)),
            ("cards", _("Cards")),
            ("regret", _("Regret")),
        ],
        "time_label": study_tables.time_label(result),
        "sides": study_tables.comparison(result),
        "details": [
            found
            for key in dict.fromkeys(row["key"] for row in result["recommended"])
            if (found := study_tables.detail(result, keyed[key])) is not None
        ],
        "lost": Paginator(study_tables.why_not(result, code, query), PAGE).get_page(
            request.GET.get("page")
        ),
        "codes": study_tables.codes_in(result),
        "code": code,
        "lost_asked": bool({"why", "q", "page"} & set(request.GET)),
        "query": query,
        "unpriced": [(row["subject"], row["reason"]) for row in result["unpriced"]],
        "software": study_tables.texts(result["software_first"]),
        "advice": study_tables.texts(result["advice"]),
        "notes": study_tables.texts(result["notes"]),
        "orders": study_orders.orders(result),
        "rooms": study_orders.rooms(result),
        "funnels": study_funnel.funnels(result),
        "risk": study_tables.risk(result),
        "versions": study_tables.versions(result),
        "chosen_key": chosen.plan_key if chosen and chosen.study_id == study.pk else "",
    }
    return context | {"contents": _contents(context)}


def _contents(context: dict[str, Any]) -> list[tuple[str, str]]:
    """(anchor, heading) of what the page has, answer first."""
    names = (
        ("recommended", _("Recommended"), "met"),
        ("frontier", _("Cost against time"), "chart"),
        ("compare", _("Reuse, rent or buy"), "sides"),
        ("plans", _("Plans") if context["met"] else _("Nearest misses"), "plans"),
        ("funnel", _("Split of the payment"), "funnels"),
        ("risk", _("Owning against renting"), "risk"),
        ("sites", _("Room and date"), "orders"),
        ("estimates", _("Estimates"), "details"),
        ("why", _("Why not the others"), "result"),
        ("basis", _("Assumptions and inputs"), "result"),
        ("brief", _("Decision brief"), "result"),
        ("trail", _("What happened"), "result"),
    )
    return [(anchor, name) for anchor, name, key in names if context[key]]


def _stale(study: Study) -> dict[str, Any] | None:
    """Why a study is out of date, and what moved since."""
    if study.status != StudyStatus.STALE:
        return None
    if studies.request_changed(study):
        return {"cause": "request"}
    return {"cause": "market", **study_changes.market_moves(freshness.moved_since(study))}


def _briefs(study: Study) -> list[dict[str, Any]]:
    """One row for each language: the drawn file, its job, or neither."""
    if study.result is None or "schema" not in study.result:
        return []
    found = {brief.language: brief for brief in briefs.current_briefs(study)}
    return [
        {"language": code, "name": str(name), "brief": found.get(code)}
        for code, name in settings.LANGUAGES
    ]


def owner_studies(study: Study) -> list[Study]:
    """The other finished studies of the same request, newest first."""
    rows = Study.objects.filter(
        revision__request=study.revision.request_id, result__isnull=False
    ).exclude(pk=study.pk)
    return list(rows.light().select_related("revision__request")[:20])


@require_POST
def study_choose(request: SignedInRequest, pk: int) -> HttpResponse:
    """Choose one of the study's plans for the request."""
    study = visible_study(request, pk)
    raw = request.POST.get("version", "")
    plans.choose_plan(
        revision_id=study.revision_id,
        study_id=study.pk,
        plan_key=request.POST.get("plan_key", ""),
        by=request.user,
        version=whole(raw),
    )
    messages.success(request, _("The plan was chosen."))
    return redirect(study.revision.request)


@require_POST
def study_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    """Stop it."""
    study = visible_study(request, pk)
    studies.cancel_study(study_id=study.pk, by=request.user)
    return redirect(study)


@require_POST
def study_publish(request: SignedInRequest, pk: int) -> HttpResponse:
    """Put it before the deciders."""
    study = visible_study(request, pk)
    briefs.publish_study(study_id=study.pk, by=request.user)
    messages.success(request, _("The study was published."))
    return redirect(study)


@require_POST
def study_brief(request: SignedInRequest, pk: int, language: str) -> HttpResponse:
    """Have the decision brief drawn."""
    study = visible_study(request, pk)
    briefs.request_brief(study_id=study.pk, language=language, by=request.user)
    return redirect(study.get_absolute_url() + "#brief")


@require_safe
def study_brief_file(request: SignedInRequest, pk: int, language: str) -> FileResponse:
    """The decision brief as PDF."""
    study = visible_study(request, pk)
    brief = get_object_or_404(briefs.current_briefs(study), language=language, file__isnull=False)
    if brief.file is None:
        raise Http404
    return download(brief.file)


@require_safe
def study_compare(request: SignedInRequest, pk: int, other: int) -> HttpResponse:
    """Two studies of one request side by side."""
    after, before = visible_study(request, pk), visible_study(request, other)
    if before.revision.request_id != after.revision.request_id:
        raise Http404
    if before.pk > after.pk:
        before, after = after, before
    if before.result is None or after.result is None:
        raise Http404
    context = {
        "before": before,
        "after": after,
        "capacity_request": after.revision.request,
        "difference": study_changes.comparison_rows(studies.difference(before, after)),
    }
    return render(request, "planning/study_compare.html", context)


@require_safe
def study_what_if(request: SignedInRequest, pk: int) -> HttpResponse:
    """The study's question with other numbers, computed while one waits."""
    study = visible_study(request, pk)
    form = WhatIfForm(request.GET or None, study=study)
    context: dict[str, Any] = {
        "study": study,
        "form": form,
        "capacity_request": study.revision.request,
    }
    if form.is_valid():
        try:
            found = studies.what_if(study, form.changes())
        except (InputError, WorkloadErrors) as error:
            refuse(form, error)
        else:
            context["found"] = study_changes.what_if(study.result or {}, found)
    fragment = request.htmx and not request.htmx.boosted
    template = "planning/_what_if.html" if fragment else "planning/study_what_if.html"
    return render(request, template, context, status=422 if form.errors else 200)
