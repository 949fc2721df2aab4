"""The page of calibration: predicted against measured, errors over time, versions, vendors' promises."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.reference import accelerator_label
from core.errors import DomainError
from core.forms import refuse
from core.http import SignedInRequest
from core.templatetags.ui import percent, significant
from core.whole import whole
from planning import telemetry_policies as may
from planning.calibration_charts import courses, scatters
from planning.forms.calibration import OutcomeForm
from planning.models.calibration import CalibrationVersion, MeasuredOutcome, work_label
from planning.selectors.calibration import in_force, scores
from planning.selectors.promises import Benchmark, Promise, benchmarks, promises
from planning.services import calibration

PAGE = 30
DRAWN = 2000


@require_safe
def calibration_page(request: SignedInRequest) -> HttpResponse:
    return render(request, "planning/calibration.html", _context(request))


def _context(request: SignedInRequest, **more: Any) -> dict[str, Any]:
    rows = MeasuredOutcome.objects.visible_to(request.user).select_related("team", "request")
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    drawn = list(rows[:DRAWN])
    version = in_force()
    flagged = set(version.result["outliers"]) if version else set()
    found = scores(drawn)
    return {
        "page": page,
        "rows": [(row, row.work and work_label(row.work), row.pk in flagged) for row in page],
        "version": version,
        "versions": CalibrationVersion.objects.select_related("made_by")[:20],
        "cells": [] if version is None else [_cell(row) for row in version.cells()],
        "cell_columns": [
            (_("Accelerator"), ""), (_("Class of work"), ""), (_("Factor"), "num"), ("P10–P90", "num"),
            (_("Outcomes"), "num"), (_("Remark"), ""),
        ],
        "drifting": [] if version is None else [
            f"{accelerator_label(accelerator)} · {work_label(work)}" for accelerator, work in version.result["drifting"]
        ],
        "charts": [*scatters(drawn), *courses([s for s in found if s.month])],
        "score_columns": [
            (_("Class of work"), ""), (_("Outcomes"), "num"), (_("Median error"), "num"),
            (_("Between P10 and P90"), "num"), (_("With a band"), "num"),
        ],
        "scores": [
            [work_label(s.work), number_format(s.outcomes), percent(s.median_error, 1), percent(s.within),
             number_format(s.banded)]
            for s in found
            if not s.month
        ],
        "promise_columns": [
            (_("Vendor"), ""), (_("Promises"), "num"), (_("Held"), "num"), (_("Late on average"), "num"),
        ],
        "promises": [_promise(p) for p in promises()] if may.can_see_sources(request.user) else [],
        "benchmark_columns": [
            (_("Vendor"), ""), (_("Promises"), "num"), (_("Held"), "num"),
            (_("Measured of what was promised, median"), "num"),
        ],
        "benchmarks": [_benchmark(b) for b in benchmarks()] if may.can_see_sources(request.user) else [],
        "may_keep": may.can_keep_sources(request.user),
        "form": OutcomeForm(),
        **more,
    }  # fmt: skip


def _cell(row: dict[str, Any]) -> list[str]:
    few = _("few outcomes: close to the published figure") if row["outcomes"] < 5 else ""
    return [
        accelerator_label(row["accelerator"]), work_label(row["work"]), significant(row["factor"]),
        f"{significant(row['low'])}–{significant(row['high'])}", number_format(row["outcomes"]), few,
    ]  # fmt: skip


def _promise(promise: Promise) -> list[str]:
    late = "–" if promise.days_late is None else number_format(promise.days_late, 1)
    held = f"{promise.held} ({percent(promise.held / promise.due)})" if promise.due else "–"
    return [promise.vendor, number_format(promise.due), held, late]


def _benchmark(found: Benchmark) -> list[str]:
    held = f"{found.held} ({percent(found.held / found.promised)})"
    return [
        found.vendor or _("Not told"),
        number_format(found.promised),
        held,
        percent(found.median),
    ]


@require_POST
def outcome_record(request: SignedInRequest) -> HttpResponse:
    form = OutcomeForm(request.POST)
    if form.is_valid():
        try:
            calibration.record_outcome(by=request.user, **form.cleaned_data)
        except DomainError as error:
            if error.status != 422:
                raise
            refuse(form, error)
        else:
            messages.success(request, _("The outcome is kept."))
            return redirect("calibration")
    return render(request, "planning/calibration.html", _context(request, form=form), status=422)


@require_POST
def outcome_leave_out(request: SignedInRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(MeasuredOutcome.objects.visible_to(request.user), pk=pk)
    calibration.leave_out(outcome_id=row.pk, reason=request.POST.get("reason", ""), by=request.user)
    return redirect("calibration")


@require_POST
def calibration_learn(request: SignedInRequest) -> HttpResponse:
    version = calibration.learn(by=request.user)
    if version is None:
        messages.info(request, _("Nothing new: the factors stay as they are."))
    else:
        messages.success(request, _("Version %(number)s is in force.") % {"number": version.number})
    return redirect("calibration")


@require_POST
def calibration_choose(request: SignedInRequest) -> HttpResponse:
    """A version by its number, or the published efficiencies when the field is empty."""
    text = request.POST.get("number", "")
    if text and not CalibrationVersion.objects.filter(number=whole(text) or 0).exists():
        raise Http404
    calibration.choose_version(number=int(text) if text else None, by=request.user)
    return redirect("calibration")
