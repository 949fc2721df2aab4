"""The vendor register."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import InputError
from core.files import download
from core.forms import refuse
from core.http import SignedInRequest
from core.refused import say_refusal
from procurement import policies
from procurement.forms.vendors import DocumentForm, VendorForm
from procurement.models import PurchaseOrder, Quote, Vendor
from procurement.selectors.vendor_scores import RETURN_DAYS, vendor_scores
from procurement.services import vendors
from procurement.services.vendor_documents import add_document, retire_document
from procurement.views.common import PAGE, buttons, version_of, visible


@require_safe
def vendor_list(request: SignedInRequest) -> HttpResponse:
    rows = Vendor.objects.visible_to(request.user)
    if text := request.GET.get("q", "").strip():
        rows = rows.filter(name__icontains=text)
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    scores = vendor_scores(page.object_list, request.user)
    context = {
        "page": page,
        "rows": [(vendor, scores[vendor.pk]) for vendor in page],
        "may_create": policies.can_keep_vendors(request.user),
        "q": text,
    }
    return render(request, "procurement/vendor_list.html", context)


@require_safe
def vendor_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    return _detail(request, visible(request.user, "vendor", pk))


def _detail(
    request: SignedInRequest, vendor: Vendor, form: DocumentForm | None = None, status: int = 200
) -> HttpResponse:
    may_edit = policies.can(request.user, "edit", vendor)
    context = {
        "vendor": vendor,
        "score": vendor_scores([vendor], request.user)[vendor.pk],
        "return_days": RETURN_DAYS,
        "documents": vendor.documents.select_related("file"),
        "document_form": form or (DocumentForm() if may_edit else None),
        "contacts": vendor.contacts.all(),
        "quotes": Quote.objects.visible_to(request.user).filter(vendor=vendor).select_related("rfq", "vendor")[:20],
        "orders": PurchaseOrder.objects.visible_to(request.user).filter(vendor=vendor)[:20],
        "steps": buttons(request.user, "vendor", vendor),
        "may_edit": may_edit,
        "trail": trail(vendor)[:40],
    }  # fmt: skip
    return render(request, "procurement/vendor_detail.html", context, status=status)


@require_POST
def document_add(request: SignedInRequest, pk: int) -> HttpResponse:
    vendor = visible(request.user, "vendor", pk)
    policies.require_action(request.user, "edit", vendor)
    form = DocumentForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            add_document(vendor_id=pk, by=request.user, **form.cleaned_data)
        except InputError as error:
            refuse(form, error)
        else:
            messages.success(request, _("The document is kept."))
            return redirect(vendor)
    return _detail(request, vendor, form, status=422)


@require_POST
def document_retire(request: SignedInRequest, pk: int, document: int) -> HttpResponse:
    vendor = visible(request.user, "vendor", pk)
    try:
        retire_document(
            vendor_id=pk, document_id=document, by=request.user,
            reason=request.POST.get("reason", ""),
        )  # fmt: skip
    except InputError as error:
        say_refusal(request, error)
    return redirect(vendor)


@require_safe
def document_file(request: SignedInRequest, pk: int, document: int) -> HttpResponseBase:
    """A vendor's paper, for those who see the register."""
    vendor = visible(request.user, "vendor", pk)
    found = get_object_or_404(
        vendor.documents.exclude(file=None).select_related("file"), pk=document
    )
    return download(found.file)


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
