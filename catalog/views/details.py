"""One accelerator, model, platform or cost default: figures, their sources, corrections and prices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from catalog import display, figures, policies, selectors, tables
from catalog.labels import source_words, tco_label
from catalog.models import OfferPrice, PriceRecord
from catalog.traps import traps_of
from core.audit import trail
from core.http import SignedInRequest

Columns = list[tuple[str, str]]
HISTORY = 60  # newest prices on the page; the export has all


def _common(
    request: SignedInRequest, of: Any, listing: tables.Listing, name: str
) -> dict[str, Any]:
    """What every detail page shows: provenance, revisions, the trail, and whether one may correct."""
    revisions = getattr(of, "specs", None) or of.values
    return {
        "of": of,
        "spec": of.current,
        "crumbs": [(_("Catalogue"), reverse("catalog-home")), (listing.title, reverse(name))],
        "told": provenance(of.current),
        "revisions": [_revision(row) for row in revisions.select_related("author").order_by("-number")],
        "revision_columns": [
            (_("Revision"), ""), (_("Stated by"), ""), (_("As of"), "nowrap"), (_("Confidence"), ""),
            (_("Source"), "wrap"), (_("Reason or note"), "wrap"), (_("Who"), ""),
        ],
        "trail": trail(of)[:20],
        "can_correct": policies.can_correct(request.user),
    }  # fmt: skip


def _revision(row: Any) -> list[Any]:
    told = row.reason or row.notes or None
    return [
        row.number, row.get_origin_display(), row.dated, display.confidence(row),
        source_words(row.source), told, row.author,
    ]  # fmt: skip


def provenance(spec: Any) -> list[figures.Fact]:
    """Source, date and confidence of what is shown."""
    return [
        (_("Source"), display.source(spec), ""),
        (_("Confidence"), display.confidence(spec), ""),
        (_("Notes"), spec.notes, ""),
    ]


def offer_columns() -> Columns:
    return [
        (_("Cloud"), ""), (_("Region"), "nowrap"), (_("Instance"), ""), (_("Price kind"), ""),
        (_("Per accelerator-hour"), "num"), (_("As of"), "nowrap"), (_("Confidence"), ""), (_("Source"), "wrap"),
    ]  # fmt: skip


def offer_rows(prices: Iterable[OfferPrice]) -> list[list[Any]]:
    return [
        [
            price.offer.cloud,
            price.offer.region,
            price.offer.instance_type,
            price.get_kind_display(),
            f"{display.plain(price.per_accelerator, 4)} {price.currency}",
            price.dated,
            display.confidence(price),
            source_words(price.source),
        ]
        for price in prices
    ]


def hardware_columns() -> Columns:
    return [
        (_("As of"), "nowrap"), (_("Unit price"), "num"), (_("Condition"), ""), (_("Confidence"), ""),
        (_("Source"), "wrap"),
    ]  # fmt: skip


def hardware_rows(prices: Iterable[PriceRecord]) -> list[list[Any]]:
    return [
        [
            price.dated,
            display.span_of_money(price.low, price.high, price.currency),
            price.get_condition_display(),
            display.confidence(price),
            source_words(price.source),
        ]
        for price in prices
    ]


@require_safe
def accelerator_detail(request: SignedInRequest, slug: str) -> HttpResponse:
    card = get_object_or_404(selectors.accelerators(), slug=slug)
    spec, shipped = card.current, card.reference
    assert spec is not None  # noqa: S101 - every accelerator is made with its first revision
    assert shipped is not None  # noqa: S101
    spec.accelerator = shipped.accelerator = card
    latest = selectors.offer_prices().filter(offer__accelerator=card)
    history = selectors.price_history(card)
    context = _common(request, card, tables.ACCELERATORS, "accelerator-list") | {
        "facts": figures.accelerator_facts(spec),
        "rates": figures.rate_rows(spec),
        "rate_columns": [
            (_("Number format"), ""), (_("Dense"), "num"), (_("Marketing figure"), "num"), (_("Ratio"), "num"),
            (_("Note"), ""),
        ],
        "traps": traps_of(card.slug),
        "differences": figures.differences(
            figures.accelerator_facts(shipped) + figures.rate_facts(shipped),
            figures.accelerator_facts(spec) + figures.rate_facts(spec),
        ),
        "offers": offer_rows(latest.order_by("kind", "unit_price", "pk")),
        "offer_columns": offer_columns(),
        "history": offer_rows(history[:HISTORY]),
        "history_limit": HISTORY,
        "hardware": hardware_rows(card.price_records.order_by("-as_of", "-pk")[:HISTORY]),
        "hardware_columns": hardware_columns(),
        "platforms": card.platforms.all(),
    }  # fmt: skip
    return render(request, "catalog/accelerator_detail.html", context)


@require_safe
def model_detail(request: SignedInRequest, slug: str) -> HttpResponse:
    model = get_object_or_404(selectors.architectures(), slug=slug)
    spec, shipped = model.current, model.reference
    assert spec is not None  # noqa: S101 - every model is made with its first revision
    assert shipped is not None  # noqa: S101
    spec.architecture = shipped.architecture = model
    context = _common(request, model, tables.MODELS, "model-list") | {
        "facts": figures.model_facts(spec),
        "counts": figures.count_rows(spec),
        "count_columns": [
            (_("Parameters"), ""), (_("Published"), "num"), (_("From the shape"), "num"), (_("Difference"), "num"),
        ],
        "tiles": figures.model_tiles(spec),
        "memory": figures.memory_rows(spec),
        "memory_columns": [
            (_("Context, tokens"), ""), (_("KV cache, FP16"), "num"), (_("KV cache, FP8"), "num"),
        ],
        "differences": figures.differences(figures.model_facts(shipped), figures.model_facts(spec)),
    }  # fmt: skip
    return render(request, "catalog/model_detail.html", context)


@require_safe
def platform_detail(request: SignedInRequest, slug: str) -> HttpResponse:
    platform = get_object_or_404(selectors.platforms(), slug=slug)
    assert platform.current is not None  # noqa: S101 - every platform is made with its first revision
    assert platform.reference is not None  # noqa: S101
    context = _common(request, platform, tables.PLATFORMS, "platform-list") | {
        "facts": figures.platform_facts(platform.current),
        "hardware": hardware_rows(platform.price_records.order_by("-as_of", "-pk")[:HISTORY]),
        "hardware_columns": hardware_columns(),
        "differences": figures.differences(
            figures.platform_facts(platform.reference), figures.platform_facts(platform.current)
        ),
    }
    return render(request, "catalog/platform_detail.html", context)


@require_safe
def tco_detail(request: SignedInRequest, pk: int) -> HttpResponse:
    default = get_object_or_404(selectors.tco_defaults(), pk=pk)
    spec, shipped = default.current, default.reference
    assert spec is not None  # noqa: S101 - every default is made with its first revision
    assert shipped is not None  # noqa: S101
    spec.default = shipped.default = default
    context = _common(request, default, tables.TCO, "tco-list") | {
        "label": tco_label(default.key),
        "facts": figures.tco_facts(spec),
        "differences": figures.differences(figures.tco_facts(shipped), figures.tco_facts(spec)),
    }
    return render(request, "catalog/tco_detail.html", context)
