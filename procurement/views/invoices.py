"""Invoices: what is asked for against what was ordered, received and accepted."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.audit import trail
from core.errors import DomainError, InputError
from core.files import download
from core.forms import refuse
from core.http import SignedInRequest
from core.organisation import organisation
from planning.selectors.rates import old_rates_today
from procurement import policies
from procurement.filters import InvoiceFilter
from procurement.forms.orders import InvoiceForm, MilestoneInvoiceForm
from procurement.models import Invoice
from procurement.selectors.invoices import billed_parts, matched_lines
from procurement.services import invoices
from procurement.states import InvoiceStatus
from procurement.views.common import PAGE, buttons, visible
from procurement.views.orders import lines_page
from procurement.waiting import next_people


@require_safe
def invoice_list(request: SignedInRequest) -> HttpResponse:
    """Invoices whose prices the reader may read."""
    rows = policies.readable_invoices(request.user).select_related("order", "vendor", "matched_by")
    found = InvoiceFilter(request.GET, queryset=rows, request=request)
    context = {
        "filter": found,
        "page": Paginator(found.qs, PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "procurement/invoice_list.html", context)


def order_invoice(request: SignedInRequest, pk: int) -> HttpResponse:
    """Capture an invoice as printed; matching is the next step."""
    order = visible(request.user, "order", pk)
    policies.require_action(request.user, "capture_invoice", order)
    kind = MilestoneInvoiceForm if order.milestones.standing().exists() else InvoiceForm
    form = kind(request.POST or None, request.FILES or None, order=order)
    status = 422 if request.method == "POST" else 200
    if request.method == "POST" and form.is_valid():
        try:
            invoice = invoices.capture_invoice(
                order_id=pk, by=request.user, **form.service_arguments()
            )
        except InputError as error:
            form.refuse_input(error)
        except DomainError as error:
            if error.status == 403:
                raise
            refuse(form, error)
            status = error.status
        else:
            return redirect(invoice)
    page = lines_page(request, order, form, _("Capture an invoice"), _("Capture"), version="")
    page.status_code = status
    return page


def _readable(request: SignedInRequest, pk: int) -> Invoice:
    invoice: Invoice = visible(
        request.user,
        "invoice",
        pk,
        Invoice.objects.select_related(
            "order__vendor", "vendor", "file", "matched_by", "approved_by", "created_by"
        ),
    )
    if not policies.can_read_order_prices(request.user, invoice.order):
        raise Http404
    return invoice


@require_safe
def invoice_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """The three-way match, line by line, and what may be done."""
    invoice = _readable(request, pk)
    context = {
        "invoice": invoice,
        "lines": matched_lines(invoice),
        "parts": billed_parts(invoice),
        "payments": invoice.payments.select_related("created_by"),
        "totals": invoice.totals(),
        "steps": buttons(request.user, "invoice", invoice),
        "old_rates": old_rates_today([invoice.currency], organisation().currency)
        if invoice.status != InvoiceStatus.PAID
        else [],
        "next": next_people(invoice),
        "trail": trail(invoice)[:40],
    }
    return render(request, "procurement/invoice_detail.html", context)


@require_safe
def invoice_file(request: SignedInRequest, pk: int) -> HttpResponseBase:
    """The invoice as it came."""
    invoice = _readable(request, pk)
    if invoice.file is None:
        raise Http404
    return download(invoice.file)
