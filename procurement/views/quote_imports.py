"""A quote by table: the file an RFQ produces, and the file that comes back, shown row by row before it is recorded."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from catalog.forms import EncodingForm
from core.errors import InputError
from core.exports import export_response
from core.forms import refuse
from core.http import SignedInRequest
from core.messages import Message
from core.refused import say_refusal
from core.templatetags.ui import said
from core.whole import whole
from procurement import policies
from procurement.forms.quotes import QuoteImportForm, QuoteTableForm, WarrantyForm
from procurement.models import QuoteImport
from procurement.quote_table import as_in_sheet
from procurement.quote_template import quote_template
from procurement.services import quote_imports
from procurement.views.common import visible

ROWS_SHOWN = 200


@require_safe
def quote_table(request: SignedInRequest, pk: int, kind: str) -> HttpResponseBase:
    """The RFQ's lines as a table to fill in; `?language=` for the other language's headings."""
    language = request.GET.get("language") or get_language() or "en"
    return export_response(kind, **quote_template(visible(request.user, "rfq", pk), language))


def quote_import(request: SignedInRequest, pk: int) -> HttpResponse:
    """Upload a vendor's table; what becomes of each row follows."""
    rfq = visible(request.user, "rfq", pk)
    policies.require_action(request.user, "record_quote", rfq)
    data = request.POST or None
    head = QuoteImportForm(
        data, request.FILES or None, rfq=rfq, initial={"vendor": request.GET.get("vendor")}
    )
    warranty = WarrantyForm(
        data, initial={"months": rfq.warranty_months, "start_trigger": rfq.warranty_start}
    )
    if request.method == "POST" and all([head.is_valid(), warranty.is_valid()]):
        try:
            row = quote_imports.start_import(
                rfq_id=pk, by=request.user, warranty=warranty.cleaned_data,
                **head.service_arguments(),
            )  # fmt: skip
        except InputError as error:
            refuse(head, error)
        else:
            return redirect(row)
    recent = QuoteImport.objects.filter(rfq=rfq, created_by=request.user)
    context = {
        "rfq": rfq, "head": head, "warranty": warranty,
        "recent": recent.select_related("file", "vendor")[:10],
    }  # fmt: skip
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/quote_import.html", context, status=status)


def _import(request: SignedInRequest, pk: int) -> QuoteImport:
    """One's own; for everyone else there is none."""
    rows = QuoteImport.objects.select_related("file", "created_by", "job", "rfq", "vendor", "quote")
    return get_object_or_404(rows, pk=pk, created_by=request.user)


@require_safe
def import_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return _preview(request, _import(request, pk))


def _preview(
    request: SignedInRequest,
    row: QuoteImport,
    form: EncodingForm | None = None,
    status: int = 200,
    again: QuoteTableForm | None = None,
) -> HttpResponse:
    report = row.report
    context: dict[str, Any] = {
        "row": row,
        "counts": report.get("counts", {}),
        "problems": [said(_in_sheet(one, report)) for one in report.get("problems", [])],
        "unknown_columns": report.get("unknown_columns", []),
        "hidden": row.rfq.prices_hidden,
    }
    if row.status == QuoteImport.Status.PREVIEW:
        if choices := report.get("choices"):
            form = form or EncodingForm(samples=choices)
            context["encoding_form"] = form
            context["encodings"] = [
                (radio.tag(), radio.choice_label, sample)
                for radio, sample in zip(form["encoding"], choices.values(), strict=True)
            ]
        rows = quote_imports.rows_refused_first(row)
        page = Paginator(rows, ROWS_SHOWN).get_page(request.GET.get("page"))
        page.object_list = [
            (
                line, fate, [_in_sheet(one, report) for one in found],
                {_column(name, report): cell for name, cell in cells.items()},
            )
            for line, fate, found, cells in page.object_list
        ]  # fmt: skip
        context["page"] = page
        context["again_form"] = again or QuoteTableForm()
    return render(request, "procurement/quote_import_detail.html", context, status=status)


def _column(name: str, report: dict[str, Any]) -> str:
    chinese = (get_language() or "").startswith("zh")
    return as_in_sheet(name, report.get("headings", {}), chinese=chinese)


def _in_sheet(stored: dict[str, Any], report: dict[str, Any]) -> Message:
    """A stored message with the column's name as it stands in the sheet."""
    message = Message.from_json(stored)
    name = message.params.get("field")
    if not isinstance(name, str):
        return message
    return Message(message.template, {**message.params, "field": _column(name, report)})


@require_POST
def import_again(request: SignedInRequest, pk: int) -> HttpResponse:
    """The corrected table in place of this one."""
    row = _import(request, pk)
    form = QuoteTableForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            made = quote_imports.import_again(
                pk=pk, upload=form.cleaned_data["file"], by=request.user
            )
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(made)
    return _preview(request, row, status=422, again=form)


@require_POST
def import_encoding(request: SignedInRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    form = EncodingForm(request.POST, samples=row.report.get("choices") or {})
    if form.is_valid():
        try:
            quote_imports.choose_encoding(
                pk=pk, encoding=form.cleaned_data["encoding"], by=request.user
            )
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(row)
    return _preview(request, row, form, status=422)


@require_POST
def import_apply(request: SignedInRequest, pk: int) -> HttpResponse:
    """Record the quote."""
    row = _import(request, pk)
    try:
        row = quote_imports.apply_import(
            pk=pk, by=request.user, seen=whole(request.POST.get("version", ""))
        )
    except InputError as error:
        say_refusal(request, error)
        return _preview(request, row, status=422)
    if row.quote is not None:
        messages.success(request, _("The quote is recorded."))
        return redirect(row.quote)
    return redirect(row)


@require_POST
def import_discard(request: SignedInRequest, pk: int) -> HttpResponse:
    row = _import(request, pk)
    quote_imports.discard_import(pk=pk, by=request.user)
    messages.success(request, _("The file was put aside. Nothing was recorded."))
    return redirect(row.rfq)
