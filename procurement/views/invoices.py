"""Invoices: what is asked for against what was ordered, received and accepted."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.audit import trail
from core.files import download
from core.http import SignedInRequest
from procurement import policies
from procurement.models import Invoice
from procurement.views.common import buttons, visible


@require_safe
def invoice_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    invoice = visible(
        request.user, "invoice", pk,
        Invoice.objects.select_related("order__vendor", "vendor", "file", "matched_by", "approved_by"),
    )  # fmt: skip
    if not policies.can_read_order_prices(request.user, invoice.order):
        raise Http404
    lines = list(invoice.lines.select_related("order_line"))
    totals = invoice.totals()
    context = {
        "invoice": invoice,
        "lines": list(zip(lines, totals.lines, strict=True)),
        "totals": totals,
        "steps": buttons(request.user, "invoice", invoice),
        "trail": trail(invoice)[:40],
    }
    return render(request, "procurement/invoice_detail.html", context)


@require_safe
def invoice_file(request: SignedInRequest, pk: int) -> HttpResponseBase:
    invoice = visible(request.user, "invoice", pk, Invoice.objects.select_related("order", "file"))
    if invoice.file is None or not policies.can_read_order_prices(request.user, invoice.order):
        raise Http404
    return download(invoice.file)
