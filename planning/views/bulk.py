"""Many requests at once: table in, table out, steps on marked rows, filters that are kept."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from catalog.forms import EncodingForm
from core.errors import InputError
from core.exports import Column, export_response
from core.forms import refuse
from core.http import SignedInRequest
from core.imports import refused_first
from core.policies import require
from core.refused import say_refusal
from core.whole import whole, wholes
from planning.filters import RequestFilter
from planning.forms.bulk import RequestImportForm, SaveFilterForm
from planning.models import CapacityRequest, RequestImport, SavedFilter
from planning.request_export import COLUMNS as EXPORTED
from planning.services import bulk, filters, imports
from planning.services.bulk import Outcome

ROWS_SHOWN = 500


@require_safe
def request_export(request: SignedInRequest, kind: str) -> HttpResponseBase:
    """What the list shows, as CSV or XLSX. The file can be imported again."""
    rows = CapacityRequest.objects.visible_to(request.user).with_current().order_by("number")
    found = RequestFilter(request.GET, queryset=rows, request=request)
    if not found.is_valid():
        return redirect(f"{reverse('request-list')}?{request.GET.urlencode()}")
    return export_response(
        kind, name="requests", columns=EXPORTED, rows=found.qs.iterator(chunk_size=500)
    )


# --- a table in -----------------------------------------------------------------------------------------------------


def request_import(request: SignedInRequest) -> HttpResponse:
    """Upload a table; what becomes of each row follows."""
    require(imports.may_import(request.user))
    form = RequestImportForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            row = imports.start_import(upload=form.cleaned_data["file"], by=request.user)
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(row)
    own = RequestImport.objects.filter(created_by=request.user).select_related("file")
    context = {
        "form": form,
        "recent": own[:10],
        "required": ", ".join(imports.REQUIRED),
        "columns": ", ".join((*imports.TERMS, *imports.WORKLOAD)),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "planning/import_start.html", context, status=status)


@require_safe
def import_template(request: SignedInRequest) -> HttpResponseBase:
    """An empty table with the right columns."""
    names = (*imports.HEAD, *imports.TERMS, *imports.WORKLOAD)
    columns: list[Column[Any]] = [Column(name, lambda row: None) for name in names]
    return export_response("csv", name="requests-template", columns=columns, rows=[])


def _import(request: SignedInRequest, pk: int) -> RequestImport:
    """One's own; for everyone else there is none."""
    rows = RequestImport.objects.select_related("file", "created_by", "job")
    return get_object_or_404(rows, pk=pk, created_by=request.user)


@require_safe
def import_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return _preview(request, _import(request, pk))


def _preview(
    request: SignedInRequest,
    row: RequestImport,
    form: EncodingForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {"row": row, "counts": row.counts}
    if row.status == RequestImport.Status.PREVIEW:
        shown = imports.preview(row, request.user)
        context |= {"counts": shown.counts, "unknown_columns": shown.unknown_columns}
        if shown.choices is not None:
            form = form or EncodingForm(samples=shown.choices)
            context["encoding_form"] = form
            context["encodings"] = [
                (radio.tag(), radio.choice_label, sample)
                for radio, sample in zip(form["encoding"], shown.choices.values(), strict=True)
            ]
        ordered = refused_first(shown.fates, lambda fate: fate.fate == imports.REFUSED)
        context["fates"] = ordered[:ROWS_SHOWN]
    return render(request, "planning/import_detail.html", context, status=status)


@require_POST
def import_encoding(request: SignedInRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    samples = dict(imports.preview(row, request.user).choices or {})
    form = EncodingForm(request.POST, samples=samples)
    if form.is_valid():
        try:
            imports.choose_encoding(pk=pk, encoding=form.cleaned_data["encoding"], by=request.user)
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(row)
    return _preview(request, row, form, status=422)


@require_POST
def import_apply(request: SignedInRequest, pk: int) -> HttpResponse:
    """File the rows as drafts."""
    row = _import(request, pk)
    seen = request.POST.get("version", "")
    try:
        row = imports.apply_import(
            pk=pk,
            by=request.user,
            all_or_nothing=request.POST.get("all_or_nothing") == "on",
            seen=whole(seen),
        )
    except InputError as error:
        say_refusal(request, error)
        return _preview(request, row, status=422)
    if row.status == RequestImport.Status.APPLIED:
        n = row.counts[imports.ADD]
        messages.success(
            request, ngettext("%(n)s draft was filed.", "%(n)s drafts were filed.", n) % {"n": n}
        )
    return redirect(row)


@require_POST
def import_discard(request: SignedInRequest, pk: int) -> HttpResponse:
    _import(request, pk)
    imports.discard_import(pk=pk, by=request.user)
    messages.success(request, _("The file was put aside. Nothing was added."))
    return redirect("request-import")


# --- steps on marked rows -------------------------------------------------------------------------------------------


@require_POST
def bulk_step(request: SignedInRequest) -> HttpResponse:
    """Submit or withdraw the marked requests, and say what became of each."""
    ids = wholes(request.POST.getlist("request"))
    try:
        outcomes = bulk.step_many(
            action=request.POST.get("action", ""),
            request_ids=ids,
            reason=request.POST.get("reason", ""),
            by=request.user,
            path=request.path,
        )
    except InputError as error:
        say_refusal(request, error)
        return redirect("request-list")
    return _outcomes(request, outcomes, "request-list")


@require_POST
def bulk_approve(request: SignedInRequest) -> HttpResponse:
    """Approve the marked steps; each carries the hash of what was on the screen."""
    seen = []
    for raw in request.POST.getlist("step"):
        number, _sign, digest = raw.partition(":")
        if whole(number) is not None and digest:
            seen.append((int(number), digest))
    try:
        outcomes = bulk.approve_many(
            seen=seen, by=request.user, reason=request.POST.get("reason", ""), path=request.path
        )
    except InputError as error:
        say_refusal(request, error)
        return redirect("approval-list")
    return _outcomes(request, outcomes, "approval-list")


def _outcomes(request: SignedInRequest, outcomes: list[Outcome], back: str) -> HttpResponse:
    done = [outcome for outcome in outcomes if outcome.refused is None]
    context = {"outcomes": outcomes, "done": len(done), "back": reverse(back)}
    status = 200 if len(done) == len(outcomes) else 207 if done else 409
    return render(request, "planning/bulk_outcome.html", context, status=status)


# --- filters --------------------------------------------------------------------------------------------------------


@require_POST
def filter_save(request: SignedInRequest) -> HttpResponse:
    form = SaveFilterForm(request.POST)
    address = f"{reverse('request-list')}?{request.POST.get('query', '')[:500]}"
    if not form.is_valid():
        messages.error(request, _("Give the filter a name."))
        return redirect(address)
    try:
        row = filters.save_filter(by=request.user, **form.cleaned_data)
    except InputError as error:
        say_refusal(request, error)
        return redirect(address)
    messages.success(request, _("The filter was saved."))
    return redirect("filter-open", pk=row.pk)


@require_safe
def filter_open(request: SignedInRequest, pk: int) -> HttpResponse:
    """The list under a kept filter, with the reader's own rights."""
    row = get_object_or_404(SavedFilter.objects.visible_to(request.user), pk=pk)
    return redirect(f"{reverse('request-list')}?{row.query}")


@require_POST
def filter_delete(request: SignedInRequest, pk: int) -> HttpResponse:
    get_object_or_404(SavedFilter.objects.visible_to(request.user), pk=pk)
    filters.delete_filter(pk=pk, by=request.user)
    messages.success(request, _("The filter was deleted."))
    return redirect("request-list")
