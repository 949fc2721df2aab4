"""The page of a request's hourly load: what is stored, a file to read in, and a way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from core import charts
from core.charts import Chart
from core.errors import InputError
from core.forms import refuse
from core.http import SignedInRequest
from core.imports import EncodingNeeded
from core.messages import Message
from core.organisation import organisation
from core.whole import whole
from planning import policies, tables
from planning.forms.load_series import LoadSeriesForm
from planning.services.load_series import remove_load_series, set_load_series
from planning.study.load_series import FIELD, HOURS_PER_WEEK, course, hours_of
from planning.views.requests import visible
from planning.workloads import FIELDS, WorkloadErrors


def load_series_page(request: SignedInRequest, pk: int) -> HttpResponse:
    """Show the hours of a service; POST reads a file in, or with `remove` takes them out."""
    found = visible(request, pk)
    if FIELD not in {field.name for field in FIELDS[found.kind]}:
        raise Http404
    may_edit = policies.can(request.user, "edit", found)
    form = LoadSeriesForm(initial={"zone": organisation().time_zone})
    if request.method == "POST":
        policies.require_action(request.user, "edit", found)
        version = whole(request.POST.get("version", ""))
        if "remove" in request.POST:
            remove_load_series(request_id=pk, by=request.user, version=version)
            messages.success(request, _("The usual week counts again."))
            return redirect("load-series", pk)
        form = LoadSeriesForm(request.POST, request.FILES)
        if form.is_valid() and _read_in(request, form, pk, version):
            messages.success(
                request, _("The hours were read in. Studies made from now on follow them.")
            )
            return redirect("load-series", pk)
    series = found.current.workload.get(FIELD)
    context: dict[str, Any] = {
        "capacity_request": found,
        "form": form,
        "version": found.version,
        "may_edit": may_edit,
        "facts": tables.load_facts(series) if series else [],
        "chart": _week(series) if series else None,
    }
    status = 422 if form.errors else 200
    return render(request, "planning/load_series.html", context, status=status)


def _read_in(request: SignedInRequest, form: LoadSeriesForm, pk: int, version: int | None) -> bool:
    upload = form.cleaned_data["file"]
    try:
        set_load_series(
            request_id=pk, content=upload.read(), name=upload.name, zone=form.cleaned_data["zone"],
            encoding=form.cleaned_data["encoding"], by=request.user, version=version,
        )  # fmt: skip
    except EncodingNeeded as error:
        form.add_error("encoding", error.message.render(_))
    except WorkloadErrors as error:
        for one in error.errors:
            _refuse(form, one)
    except InputError as error:
        _refuse(form, error)
    return not form.errors


def _refuse(form: LoadSeriesForm, error: InputError) -> None:
    """What is wrong in the file is told at the file."""
    if error.field in form.fields:
        refuse(form, error)
    else:
        form.add_error("file", Message(error.message.template, error.message.params).render(_))


def _week(series: Mapping[str, Any]) -> Chart:
    """The mean of each hour of the week over the mean of all."""
    weeks = hours_of(series) // HOURS_PER_WEEK
    load = course(series, weeks * HOURS_PER_WEEK).reshape(weeks, HOURS_PER_WEEK)
    mean, most = load.mean(axis=0), load.max(axis=0)
    whole_mean = float(np.mean(load))
    names = ((_("Mean"), mean), (_("Busiest week"), most))
    return charts.lines(
        title=_("Load over the week"),
        description=_("Monday 0:00 first, in the zone of the file; 1 is the mean of all hours."),
        labels=(_("Hour of the week"), _("Hours"), _("Times the mean")),
        rows=[
            (float(hour), name, float(values[hour]) / whole_mean, None, None)
            for name, values in (names if weeks > 1 else names[:1])
            for hour in range(HOURS_PER_WEEK)
        ],
    )
