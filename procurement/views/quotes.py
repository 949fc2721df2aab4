"""Quotes: entered on a vendor's behalf, and read by those who may."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.audit import trail
from core.errors import InputError
from core.files import download
from core.forms import refuse
from core.http import SignedInRequest
from procurement import policies
from procurement.forms.quotes import LineForms, QuoteForm, WarrantyForm, lines_of
from procurement.forms.requirements import AnswersForm
from procurement.milestones import parts_of
from procurement.models import Quote
from procurement.selectors.quote_changes import quote_changes
from procurement.selectors.quotes import quote_lines
from procurement.selectors.requirements import criteria_met
from procurement.selectors.warranty_terms import warranty_rows
from procurement.services import quotes
from procurement.views.common import buttons, visible
from procurement.warranty_rules import red_flags

LINES_SHOWN = 200


def quote_create(request: SignedInRequest, pk: int) -> HttpResponse:
    """A quote on an RFQ: head, lines, warranty terms and the vendor's own file."""
    rfq = visible(request.user, "rfq", pk)
    policies.require_action(request.user, "record_quote", rfq)
    data = request.POST or None
    vendor = request.GET.get("vendor")
    known = next(
        (i.vendor for i in rfq.invitations.select_related("vendor") if str(i.vendor_id) == vendor),
        None,
    )
    head = QuoteForm(
        data, request.FILES or None, rfq=rfq,
        initial={"vendor": vendor, "currency": known.currency if known else None,
                 "payment_terms": known.payment_terms if known else ""},
    )  # fmt: skip
    asked = list(rfq.lines.all())
    lines = LineForms(
        data, prefix="lines", form_kwargs={"rfq": rfq},
        initial=[
            {"rfq_line": line.position, "kind": "accelerator", "quantity": line.accelerators,
             "accelerators_per_item": 1, "serialised": True, "unit": "pcs"}
            for line in asked
        ],
    )  # fmt: skip
    warranty = WarrantyForm(
        data, initial={"months": rfq.warranty_months, "start_trigger": rfq.warranty_start}
    )
    answers = AnswersForm(data, rfq=rfq)
    parts: list[Any] = [head, lines, warranty, answers]
    if request.method == "POST" and all([part.is_valid() for part in parts]):
        try:
            quote = quotes.record_quote(
                rfq_id=pk,
                by=request.user,
                lines=lines_of(lines),
                warranty=warranty.cleaned_data,
                answers=answers.answers(),
                **head.service_arguments(),
            )
        except InputError as error:
            refuse(head, error)
        else:
            messages.success(request, _("The quote is recorded."))
            return redirect(quote)
    context = {
        "rfq": rfq, "head": head, "lines": lines, "warranty": warranty, "answers": answers,
    }  # fmt: skip
    status = 422 if request.method == "POST" else 200
    return render(request, "procurement/quote_form.html", context, status=status)


@require_safe
def quote_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    quote = visible(
        request.user, "quote", pk, Quote.objects.select_related("rfq", "vendor", "warranty")
    )
    may_read = policies.can_read_prices(request.user, quote.rfq)
    shown = quote_lines(quote) if may_read else None
    page = Paginator(shown.lines if shown else [], LINES_SHOWN).get_page(request.GET.get("page"))
    totals = shown.totals if shown else None
    payments = list(quote.payments.all()) if shown else []
    context = {
        "quote": quote,
        "may_read": may_read,
        "page": page,
        "lines": page.object_list,
        "bundles": shown.bundles if shown else [],
        "totals": totals,
        "payments": list(
            zip(
                payments,
                parts_of(totals.net, totals.tax, [row.term for row in payments]),
                strict=True,
            )
        )
        if totals and payments
        else [],
        "flags": red_flags(quote.warranty.terms(quote.rfq.warranty_months)) if may_read else (),
        "warranty": [(term, said[0]) for term, said in warranty_rows([quote])] if may_read else [],
        "changed": quote_changes(quote) if may_read and quote.revision > 1 else None,
        "reached": criteria_met(quote) if may_read else None,
        "attachments": quote.attachments.select_related("file"),
        "versions": quote.rfq.quotes.filter(vendor=quote.vendor).select_related("vendor", "rfq"),
        "steps": buttons(request.user, "quote", quote),
        "trail": trail(quote)[:40],
    }  # fmt: skip
    return render(request, "procurement/quote_detail.html", context)


@require_safe
def quote_file(request: SignedInRequest, pk: int, attachment: int) -> HttpResponseBase:
    """A vendor's paper: it holds prices, so it is read by those who may read prices."""
    quote = visible(request.user, "quote", pk, Quote.objects.select_related("rfq"))
    if not policies.can_read_prices(request.user, quote.rfq):
        raise Http404
    return download(get_object_or_404(quote.attachments.select_related("file"), pk=attachment).file)
