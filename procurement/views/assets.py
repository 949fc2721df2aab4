"""Assets: where each unit is, what became of it, and under which warranty."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.audit import trail
from core.http import SignedInRequest
from procurement.models import Asset, AssetWarranty
from procurement.selectors.assets import found_serials
from procurement.states import AssetStatus
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
