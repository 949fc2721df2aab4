"""Deliveries: announced, received on the dock, and what came of them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import DomainError, InputError
from core.forms import refuse
from core.http import SignedInRequest
from core.whole import whole
from procurement import policies
from procurement.filters import DeliveryFilter
from procurement.forms.receiving import AnnounceForm, ReceiveForm
from procurement.forms.uploads import PhotoForm
from procurement.models import Asset, Delivery, PurchaseOrder
from procurement.selectors.deliveries import packing_list_differences
from procurement.selectors.receiving import check_scan
from procurement.services import deliveries
from procurement.services.registrations import awaiting_registration
from procurement.states import DeliveryStatus
from procurement.views.burn_in import ON_DOCK, the_delivery
from procurement.views.common import PAGE, buttons, version_of, visible


@require_safe
def delivery_list(request: SignedInRequest) -> HttpResponse:
    rows = (
        Delivery.objects.visible_to(request.user)
        .select_related("order", "vendor", "received_by")
        .annotate(units=Count("lines__assets", distinct=True))
        .order_by("-id")
    )
    found = DeliveryFilter(request.GET, queryset=rows, request=request)
    context = {
        "filter": found,
        "page": Paginator(found.qs, PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "procurement/delivery_list.html", context)


@require_safe
def delivery_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """What was announced, counted and found; photos; what may be done next."""
    delivery = the_delivery(request, pk)
    assets = list(
        Asset.objects.filter(receipt_line__delivery=delivery)
        .select_related("parent", "replaces")
        .prefetch_related("warranties")
        .order_by("serial")
    )
    files = delivery.evidence.select_related("file", "created_by").defer("result")
    waiting = awaiting_registration(delivery).count()
    context: dict[str, Any] = {
        "delivery": delivery,
        "unregistered": waiting,
        "lines": delivery.lines.select_related("order_line"),
        "announced": list(delivery.announced.all()),
        "differences": packing_list_differences(delivery, assets),
        "assets": assets,
        "photos": [file for file in files if file.format in ("photo", "document")],
        "photo_form": PhotoForm(),
        "may_add_photos": policies.can(request.user, "upload_evidence", delivery),
        "may_receive": policies.can(request.user, "post", delivery),
        "may_propose": policies.can(request.user, "propose_acceptance", delivery),
        "acceptances": delivery.acceptances.select_related("proposed_by", "decided_by"),
        "steps": [
            row
            for row in buttons(request.user, "delivery", delivery)
            if row["step"].action in ON_DOCK
            and (waiting or row["step"].action != "register-warranty")
        ],
        "trail": trail(delivery)[:40],
    }
    return render(request, "procurement/delivery_detail.html", context)


def order_announce(request: SignedInRequest, pk: int) -> HttpResponse:
    """A delivery that the vendor announced, with the serial numbers of its packing list."""
    order = visible(request.user, "order", pk)
    policies.require_action(request.user, "announce", order)
    form = AnnounceForm(request.POST or None, request.FILES or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                delivery = deliveries.announce_delivery(
                    order_id=pk, by=request.user, **form.cleaned_data
                )
            except DomainError as error:
                status = _kept(form, error)
            else:
                return redirect(delivery)
    context = {
        "order": order,
        "form": form,
        "title": _("Announce a delivery"),
        "submit": _("Announce"),
    }
    return render(request, "procurement/order_form.html", context, status=status)


def _kept(form: Any, error: DomainError) -> int:
    """Show a refusal in the form, so that nothing that was typed or scanned is lost. Returns the page's status."""
    if error.status == 403:
        raise error
    if isinstance(error, InputError) and hasattr(form, "refuse_input"):
        form.refuse_input(error)
    else:
        refuse(form, error)
    return error.status


def _receive_form(
    request: SignedInRequest, pk: int
) -> tuple[PurchaseOrder, Delivery | None, ReceiveForm]:
    order: PurchaseOrder = visible(request.user, "order", pk)
    policies.require_action(request.user, "receive", order)
    announced = request.GET.get("delivery", "")
    delivery = None
    if whole(announced) is not None:
        delivery = get_object_or_404(Delivery.objects.filter(order=order), pk=int(announced))
    form = ReceiveForm(request.POST or None, order=order, delivery=delivery)
    return order, delivery, form


def order_receive(request: SignedInRequest, pk: int) -> HttpResponse:
    """Count a delivery on the dock; `?delivery=` is one that was announced. Sent twice it is posted once."""
    order, delivery, form = _receive_form(request, pk)
    if delivery is not None and delivery.status != DeliveryStatus.EXPECTED:
        messages.info(request, _("This delivery was received already."))
        return redirect(delivery)
    status = 200
    version = delivery.version if delivery else ""
    if request.method == "POST":
        status = 422
        version = version_of(request) or ""
        if form.is_valid():
            try:
                received = deliveries.receive_delivery(
                    order_id=pk,
                    by=request.user,
                    version=version_of(request),
                    **form.service_arguments(),
                )
            except DomainError as error:
                status = _kept(form, error)
            else:
                messages.success(
                    request, _("The delivery is received. Add photos of packaging and labels now.")
                )
                return redirect(received)
    context = {
        "order": order,
        "delivery": delivery,
        "form": form,
        "version": version,
        "announced": list(delivery.announced.all()) if delivery else [],
        "scan": check_scan(form.scanned(), [row.line for row in form.progress], delivery)
        if form.is_bound
        else None,
    }
    return render(request, "procurement/receive.html", context, status=status)


@require_POST
def receive_check(request: SignedInRequest, pk: int) -> HttpResponse:
    """What the scan says so far, for the panel beside the form."""
    _order, delivery, form = _receive_form(request, pk)
    scan = check_scan(form.scanned(), [row.line for row in form.progress], delivery)
    return render(request, "procurement/_scan.html", {"scan": scan})
