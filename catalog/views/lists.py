"""The lists of the catalogue: one page, one export, one set of filters each."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from catalog import policies, tables
from core.exports import export_response
from core.http import SignedInRequest

PAGE_SIZE = 50


@require_safe
def home(request: SignedInRequest) -> HttpResponse:
    return redirect("accelerator-list")


def _listing(
    request: SignedInRequest, listing: tables.Listing, name: str, **extra: Any
) -> HttpResponseBase:
    """The page, or with `export=csv|xlsx` the file: the same rows in the same order, not cut into pages."""
    found = listing.filterset(request.GET, queryset=listing.rows())
    if kind := request.GET.get("export", ""):
        rows = found.qs.iterator(chunk_size=500)
        return export_response(kind, name=listing.name, columns=listing.exported, rows=rows)
    page = Paginator(found.qs, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "listing": listing,
        "filter_form": found.form,
        "page": page,
        "headers": [_header(request, shown) for shown in listing.shown],
        "rows": [[(shown, shown.cell(row)) for shown in listing.shown] for row in page],
        "tabs": tables.tabs(name),
    }
    return render(request, "catalog/list.html", context | extra)


def _header(request: SignedInRequest, shown: tables.Shown) -> dict[str, Any]:
    """A column head: where a click leads and which way the list is sorted by it now."""
    now = request.GET.get("sort", "")
    direction = {shown.sort: "ascending", f"-{shown.sort}": "descending"}.get(now, "")
    if not shown.sort:
        return {"label": shown.label, "kind": shown.kind, "direction": "", "url": ""}
    query = request.GET.copy()
    query.pop("page", None)
    # Figures are looked up from the top first, names from the beginning.
    first, second = shown.sort, f"-{shown.sort}"
    if shown.kind == "num":
        first, second = second, first
    query["sort"] = second if now == first else first
    return {
        "label": shown.label,
        "kind": shown.kind,
        "direction": direction,
        "url": f"?{query.urlencode()}",
    }


@require_safe
def accelerator_list(request: SignedInRequest) -> HttpResponseBase:
    return _listing(request, tables.ACCELERATORS, "accelerator-list", comparable=True)


@require_safe
def model_list(request: SignedInRequest) -> HttpResponseBase:
    return _listing(request, tables.MODELS, "model-list")


@require_safe
def offer_list(request: SignedInRequest) -> HttpResponseBase:
    can_import = policies.can_import_prices(request.user)
    return _listing(request, tables.OFFERS, "offer-list", can_import=can_import)


@require_safe
def hardware_price_list(request: SignedInRequest) -> HttpResponseBase:
    can_import = policies.can_import_prices(request.user)
    return _listing(request, tables.HARDWARE, "hardware-price-list", can_import=can_import)


@require_safe
def lease_list(request: SignedInRequest) -> HttpResponseBase:
    can_add_lease = policies.can_import_prices(request.user)
    return _listing(request, tables.LEASES, "lease-list", can_add_lease=can_add_lease)


@require_safe
def platform_list(request: SignedInRequest) -> HttpResponseBase:
    return _listing(request, tables.PLATFORMS, "platform-list")


@require_safe
def tco_list(request: SignedInRequest) -> HttpResponseBase:
    return _listing(request, tables.TCO, "tco-list")


@require_safe
def rate_list(request: SignedInRequest) -> HttpResponseBase:
    can_add_rate = policies.can_add_rate(request.user)
    return _listing(request, tables.RATES, "rate-list", can_add_rate=can_add_rate)
