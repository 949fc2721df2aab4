"""Pages of studies: start one, watch it, read it, choose from it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import InputError
from core.http import SignedInRequest
from planning import policies, study_tables
from planning.models import CapacityRequest, Study
from planning.services import plans, studies
from planning.services.plans import USABLE
from planning.workloads import WorkloadErrors

PAGE = 25


def visible_study(request: SignedInRequest, pk: int) -> Study:
    """The study, or 404 outside the reader's teams."""
    rows = Study.objects.visible_to(request.user)
    return get_object_or_404(
        rows.select_related("revision__request__team", "revision__request__requester", "job"), pk=pk
    )


@require_POST
def study_start(request: SignedInRequest, pk: int) -> HttpResponse:
    """Study the current revision at today's prices."""
    found = get_object_or_404(CapacityRequest.objects.visible_to(request.user), pk=pk)
    try:
        study = studies.request_study(revision_id=found.current.pk, by=request.user)
    except WorkloadErrors as error:
        for one in error.errors:
            messages.error(request, one.message.render(_))
        return redirect(found)
    except InputError as error:
        messages.error(request, error.message.render(_))
        return redirect(found)
    return redirect(study)


@require_safe
def study_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """Progress while it runs, then the result."""
    study = visible_study(request, pk)
    context = _context(request, study)
    template = "planning/study_detail.html"
    if request.htmx and not request.htmx.boosted and request.htmx.target == "why-not":
        template = "planning/_why_not.html"
    return render(request, template, context)


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
        "trail": trail(study)[:30],
    }
    if study.result is None or "schema" not in study.result:
        return context
    result = study.result
    sort = request.GET.get("sort", "cost")
    code, query = request.GET.get("why", ""), request.GET.get("q", "")
    keyed = study_tables.by_key(result)
    chosen = getattr(study.revision, "plan", None)
    return context | {
        "result": result,
        "cards": study_tables.cards(result),
        "chart": study_tables.frontier_chart(result),
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
        "query": query,
        "unpriced": [(row["subject"], row["reason"]) for row in result["unpriced"]],
        "software": study_tables.texts(result["software_first"]),
        "advice": study_tables.texts(result["advice"]),
        "notes": study_tables.texts(result["notes"]),
        "risk": study_tables.risk(result),
        "versions": study_tables.versions(result),
        "chosen_key": chosen.plan_key if chosen and chosen.study_id == study.pk else "",
    }


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
        version=int(raw) if raw.isdecimal() else None,
    )
    messages.success(request, _("The plan was chosen."))
    return redirect(study.revision.request)


@require_POST
def study_cancel(request: SignedInRequest, pk: int) -> HttpResponse:
    """Stop it."""
    study = visible_study(request, pk)
    studies.cancel_study(study_id=study.pk, by=request.user)
    return redirect(study)
