"""The vendor register."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from core.audit import trail
from core.errors import InputError
from core.forms import refuse
from core.http import SignedInRequest
from procurement import policies
from procurement.forms.vendors import VendorForm
from procurement.models import PurchaseOrder, Quote, Vendor
from procurement.services import vendors
from procurement.views.common import PAGE, buttons, version_of, visible


@require_safe
def vendor_list(request: SignedInRequest) -> HttpResponse:
    rows = Vendor.objects.visible_to(request.user)
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(name__icontains=text)
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "may_create": policies.can_keep_vendors(request.user),
        "q": text,
    }
    return render(request, "procurement/vendor_list.html", context)


@require_safe
def vendor_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    vendor = visible(request.user, "vendor", pk)
    context = {
        "vendor": vendor,
        "contacts": vendor.contacts.all(),
        "quotes": Quote.objects.visible_to(request.user).filter(vendor=vendor).select_related("rfq", "vendor")[:20],
        "orders": PurchaseOrder.objects.visible_to(request.user).filter(vendor=vendor)[:20],
        "steps": buttons(request.user, "vendor", vendor),
        "may_edit": policies.can(request.user, "edit", vendor),
        "trail": trail(vendor)[:40],
    }  # fmt: skip
    return render(request, "procurement/vendor_detail.html", context)


def vendor_create(request: SignedInRequest) -> HttpResponse:
    if not policies.can_keep_vendors(request.user):
        raise Http404
    form = VendorForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            vendor = vendors.create_vendor(by=request.user, **form.cleaned_data)
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The vendor is registered."))
            return redirect(vendor)
    return _form(request, form)


def vendor_edit(request: SignedInRequest, pk: int) -> HttpResponse:
    vendor = visible(request.user, "vendor", pk)
    policies.require_action(request.user, "edit", vendor)
    form = VendorForm(request.POST or None, instance=Vendor.objects.get(pk=pk))
    if request.method == "POST" and form.is_valid():
        try:
            vendors.update_vendor(
                vendor_id=pk, by=request.user, version=version_of(request), **form.cleaned_data
            )
        except InputError as error:
            refuse(form, error)
        else:
            return redirect(vendor)
    return _form(request, form, vendor)


def _form(request: SignedInRequest, form: VendorForm, vendor: Vendor | None = None) -> HttpResponse:
    return render(
        request,
        "procurement/vendor_form.html",
        {"form": form, "vendor": vendor},
        status=422 if request.method == "POST" else 200,
    )
