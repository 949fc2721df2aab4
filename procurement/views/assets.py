"""Assets: where each unit is, what became of it, and under which warranty."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from core.audit import trail
from core.errors import DomainError
from core.exports import Column, export_response
from core.http import SignedInRequest
from core.organisation import today
from core.refused import say_refusal
from core.whole import wholes
from procurement.asset_labels import MAX_LABELS, render_labels
from procurement.filters import AssetFilter
from procurement.forms.fields import InstallForm
from procurement.models import Asset, Rma
from procurement.selectors.assets import found_serials
from procurement.selectors.cover import Cover, cover_filter, cover_of, with_cover
from procurement.selectors.failures import failure_board
from procurement.services.moving import place_assets
from procurement.states import AssetStatus
from procurement.views.common import PAGE, buttons, sees_proof, visible

WAITING = (AssetStatus.RECEIVED, AssetStatus.INSTALLED, AssetStatus.BURNED_IN)
OUT = (AssetStatus.DEFECTIVE, AssetStatus.AT_VENDOR)
SEARCH_LIMIT = 2000  # serials of one pasted list that are shown on one page


def _rows(request: SignedInRequest) -> Any:
    rows = Asset.objects.visible_to(request.user).select_related(
        "request__team", "parent", "receipt_line__delivery__vendor",
        "receipt_line__order_line__order",
    )  # fmt: skip
    return with_cover(rows, today())


@require_safe
def asset_list(request: SignedInRequest) -> HttpResponse:
    """Units the reader may see; the address keeps the filter."""
    found = AssetFilter(request.GET, queryset=_rows(request), request=request)
    page = Paginator(found.qs, PAGE).get_page(request.GET.get("page"))
    visible_rows = Asset.objects.visible_to(request.user).order_by()
    states = dict(visible_rows.values_list("status").annotate(n=Count("pk")))

    def number(*wanted: str) -> int:
        return sum(states.get(state, 0) for state in wanted)

    covers = with_cover(visible_rows, today())
    bare = cover_filter(covers, Cover.NONE, today()).count()
    soon = cover_filter(covers, Cover.EXPIRING, today()).count()
    context = {
        "filter": found,
        "page": page,
        "rows": _shown(page.object_list),
        "tiles": [
            (_("In service"), number(AssetStatus.IN_SERVICE), "?status=in_service", "", ""),
            (_("Waiting for acceptance"), number(*WAITING), "", "", ""),
            (_("Defective or at the vendor"), number(*OUT), "?status=defective", "", ""),
            (
                _("Without warranty"),
                bare,
                "?cover=none",
                "bad" if bare else "",
                ngettext("%(n)s ends within 90 days", "%(n)s end within 90 days", soon) % {"n": soon},
            ),
        ],
        "install": InstallForm(),
    }  # fmt: skip
    return render(request, "procurement/asset_list.html", context)


def _shown(assets: Any) -> list[tuple[Any, Cover]]:
    day = today()
    return [(asset, cover_of(asset, day)) for asset in assets]


def asset_search(request: SignedInRequest) -> HttpResponse:
    """Which units of a pasted list are here, and which are not. Sent by POST, for addresses have a limit; it changes
    nothing."""
    pasted = request.POST.get("serials", "")
    context: dict[str, Any] = {"pasted": pasted, "install": InstallForm()}
    if pasted.strip():
        rows = _rows(request)
        ids, missing = found_serials(rows, pasted)
        context |= {
            "rows": _shown(rows.filter(pk__in=ids[:SEARCH_LIMIT]).order_by("serial")),
            "found": len(ids),
            "cut": max(len(ids) - SEARCH_LIMIT, 0),
            "missing": missing,
        }
    return render(request, "procurement/asset_search.html", context)


COLUMNS: tuple[Column[Any], ...] = (
    Column("serial", lambda a: a.serial),
    Column("uuid", lambda a: a.uuid),
    Column("kind", lambda a: a.kind),
    Column("manufacturer", lambda a: a.manufacturer),
    Column("model", lambda a: a.model),
    Column("status", lambda a: a.status),
    Column("status_since", lambda a: a.status_since),
    Column("site", lambda a: a.site),
    Column("rack", lambda a: a.rack),
    Column("rack_unit", lambda a: a.rack_unit),
    Column("server", lambda a: a.parent.serial if a.parent else None),
    Column("slot", lambda a: a.slot),
    Column("team", lambda a: a.request.team.slug if a.request else None),
    Column("request", lambda a: a.request.reference if a.request else None),
    Column("vendor", lambda a: a.receipt_line.delivery.vendor.name if a.receipt_line else None),
    Column("order", lambda a: a.receipt_line.order_line.order.number if a.receipt_line else None),
    Column("delivery_note", lambda a: a.receipt_line.delivery.note_number if a.receipt_line else None),
    Column("received_on", lambda a: a.received_on),
    Column("in_service_at", lambda a: a.in_service_at),
    Column("out_of_service_at", lambda a: a.out_of_service_at),
    Column("warranty", lambda a: cover_of(a, today()).value),
    Column("covered_until", lambda a: a.covered_until or a.cover_ended),
)  # fmt: skip


@require_safe
def asset_export(request: SignedInRequest, kind: str) -> HttpResponseBase:
    """The filtered list as CSV or XLSX."""
    found = AssetFilter(request.GET, queryset=_rows(request), request=request)
    return export_response(
        kind, name="assets", columns=COLUMNS, rows=found.qs.iterator(chunk_size=500)
    )


@require_safe
def asset_labels(request: SignedInRequest) -> HttpResponse:
    """Labels of the filtered list, at most 500, as PDF."""
    found = AssetFilter(request.GET, queryset=_rows(request), request=request)
    content = render_labels(
        found.qs.order_by("serial")[:MAX_LABELS],
        get_language() or settings.LANGUAGE_CODE,
        made_at=timezone.now(),
    )
    return HttpResponse(
        content,
        content_type="application/pdf",
        headers={"Content-Disposition": 'attachment; filename="labels.pdf"'},
    )


@require_safe
def asset_failures(request: SignedInRequest) -> HttpResponse:
    """How often units failed, by model and batch with intervals, and how long vendors take."""
    board = failure_board(
        Asset.objects.visible_to(request.user), Rma.objects.visible_to(request.user), timezone.now()
    )
    context = {
        "tables": [(_("By model"), board.models), (_("By batch"), board.batches)],
        "vendors": board.vendors,
    }
    return render(request, "procurement/failures.html", context)


@require_POST
def asset_place(request: SignedInRequest) -> HttpResponse:
    """Put the chosen units in a place: those just received are installed, those installed are moved. All or none."""
    form = InstallForm(request.POST)
    ids = set(wholes(request.POST.getlist("units")))
    chosen = Asset.objects.visible_to(request.user).filter(pk__in=ids)
    if not form.is_valid() or not chosen:
        messages.error(request, _("Choose units and say at which site they are."))
        return redirect("asset-list")
    try:
        placed = place_assets(
            asset_ids=[asset.pk for asset in chosen], by=request.user, **form.cleaned_data
        )
    except DomainError as error:
        if error.status == 403:
            raise
        say_refusal(request, error)
    else:
        text = ngettext("%(n)s unit has a new place.", "%(n)s units have a new place.", len(placed))
        messages.success(request, text % {"n": len(placed)})
    return redirect("asset-list")


@require_safe
def asset_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One unit: identity, place, warranty, burn-ins, evidence, returns, history."""
    asset = visible(request.user, "asset", pk, _rows(request))
    context = {
        "asset": asset,
        "sees_proof": sees_proof(request.user, asset),
        "cover": cover_of(asset, today()),
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
