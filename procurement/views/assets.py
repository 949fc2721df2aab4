"""Assets, returns, invoices, and the thread of a request."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.files import download
from core.http import SignedInRequest
from planning.models import CapacityRequest
from procurement import policies
from procurement.models import Asset, AssetWarranty, EvidenceFile, Invoice, Rma
from procurement.selectors.assets import found_serials
from procurement.selectors.thread import request_thread
from procurement.services import rmas
from procurement.states import AssetStatus, RmaStatus
from procurement.views.common import PAGE, buttons, visible


def asset_list(request: SignedInRequest) -> HttpResponse:
    """Units the reader may see; a pasted list of serial numbers answers what was found and what was not.

    A long list is sent by POST, which changes nothing: addresses have a limit.
    """
    rows = (
        Asset.objects.visible_to(request.user)
        .select_related("request__team", "parent", "receipt_line__delivery__vendor")
        .prefetch_related(Prefetch("warranties", AssetWarranty.objects.order_by("id")))
    )
    state = request.GET.get("state", "")
    pasted = request.POST.get("serials", request.GET.get("serials", ""))
    missing: tuple[str, ...] = ()
    if state in AssetStatus.values:
        rows = rows.filter(status=state)
    if pasted.strip():
        ids, missing = found_serials(rows, pasted)
        rows = rows.filter(pk__in=ids)
    size = 1000 if request.method == "POST" else PAGE
    context = {
        "page": Paginator(rows, size).get_page(request.GET.get("page")),
        "state": state,
        "states": AssetStatus.choices,
        "pasted": pasted,
        "missing": missing,
    }
    return render(request, "procurement/asset_list.html", context)


@require_safe
def asset_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    asset = visible(
        request.user, "asset", pk,
        Asset.objects.select_related(
            "request__team", "parent", "replaces", "receipt_line__delivery__vendor",
            "receipt_line__order_line__order",
        ),
    )  # fmt: skip
    context = {
        "asset": asset,
        "successor": Asset.objects.filter(replaces=asset).first(),
        "warranties": asset.warranties.select_related("source__vendor", "source__rfq"),
        "runs": asset.runs.select_related("operator", "asset"),
        "rmas": asset.rmas.select_related("vendor"),
        "children": asset.children.order_by("slot", "serial"),
        "verdicts": asset.verdicts.select_related("evidence__file").order_by("-evidence_id")[:40],
        "certificates": asset.acceptance_units.filter(included=True, void=False).select_related("acceptance"),
        "steps": buttons(request.user, "asset", asset),
        "trail": trail(asset)[:60],
    }  # fmt: skip
    return render(request, "procurement/asset_detail.html", context)


@require_safe
def rma_list(request: SignedInRequest) -> HttpResponse:
    rows = Rma.objects.visible_to(request.user).select_related("asset", "vendor", "replacement")
    state = request.GET.get("state", "")
    if state in RmaStatus.values:
        rows = rows.filter(status=state)
    context = {
        "page": Paginator(rows, PAGE).get_page(request.GET.get("page")),
        "state": state,
        "states": RmaStatus.choices,
    }
    return render(request, "procurement/rma_list.html", context)


@require_safe
def rma_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    rma = visible(
        request.user, "rma", pk,
        Rma.objects.select_related("asset__request", "asset__receipt_line__delivery", "vendor", "run", "replacement"),
    )  # fmt: skip
    attached = list(rma.evidence.select_related("file"))
    context = {
        "rma": rma,
        "evidence": attached,
        "available": EvidenceFile.objects.visible_to(request.user)
        .filter(delivery=rma.asset.receipt_line.delivery_id)
        .exclude(pk__in=[file.pk for file in attached])
        .select_related("file")
        if policies.can(request.user, "file_rma", rma)
        else [],
        "steps": buttons(request.user, "rma", rma),
        "trail": trail(rma, rma.asset)[:60],
    }
    return render(request, "procurement/rma_detail.html", context)


@require_POST
def rma_evidence(request: SignedInRequest, pk: int) -> HttpResponse:
    visible(request.user, "rma", pk)
    ids = [int(value) for value in request.POST.getlist("evidence") if value.isdecimal()]
    rmas.attach_evidence(rma_id=pk, evidence_ids=ids, by=request.user)
    return redirect("rma-detail", pk=pk)


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


@require_safe
def thread(request: SignedInRequest, pk: int) -> HttpResponse:
    """One request from need to accepted GPU-hours."""
    found = get_object_or_404(
        CapacityRequest.objects.visible_to(request.user).with_current(), pk=pk
    )
    thread_ = request_thread(found, request.user)
    context = {
        "capacity_request": found,
        "thread": thread_,
        "trail": trail(found)[:30],
    }
    return render(request, "procurement/thread.html", context)
