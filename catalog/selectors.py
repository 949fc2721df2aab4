"""Reads that other apps and the pages share. Each costs a fixed number of queries, whatever the catalogue holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from django.db.models import Count, Max, Min, QuerySet

from catalog.models import (
    Accelerator,
    LeaseOffer,
    ModelArchitecture,
    OfferPrice,
    PriceRecord,
    ServerPlatform,
    TcoDefault,
)
from catalog.models.offers import OfferPriceQuerySet


def accelerators() -> QuerySet[Accelerator]:
    """Accelerators with their current and shipped figures: one query."""
    return Accelerator.objects.select_related("current", "reference")


def accelerators_by_slug(slugs: Iterable[str] | None = None) -> dict[str, Accelerator]:
    """Accelerators (those named, or all) with figures, by slug: one query."""
    rows = accelerators()
    if slugs is not None:
        rows = rows.filter(slug__in=list(slugs))
    return {row.slug: row for row in rows}


def accelerator_row(accelerator: Accelerator) -> dict[str, Any]:
    """One accelerator as the reference files state it (see ``catalog.reference.AcceleratorRow``), corrections in."""
    spec = accelerator.current
    if spec is None:
        raise LookupError(f"{accelerator.slug} has no figures")
    identity = (
        "slug",
        "name",
        "vendor",
        "generation",
        "architecture",
        "year",
        "devices_per_board",
        "aliases",
    )
    return {name: getattr(accelerator, name) for name in identity} | spec.figures | _told(spec)


def accelerator_rows() -> dict[str, dict[str, Any]]:
    """Every accelerator as a row of plain values, the organisation's corrections in: one query."""
    return {row.slug: accelerator_row(row) for row in accelerators()}


def architectures() -> QuerySet[ModelArchitecture]:
    """Models with their current and shipped shapes: one query."""
    return ModelArchitecture.objects.select_related("current", "reference")


def architecture_row(architecture: ModelArchitecture) -> dict[str, Any]:
    """One model as the reference files state it (see ``catalog.reference.ArchitectureRow``), corrections in."""
    spec = architecture.current
    if spec is None:
        raise LookupError(f"{architecture.slug} has no shape")
    identity = ("slug", "name", "family", "kind", "licence")
    return {name: getattr(architecture, name) for name in identity} | spec.figures | _told(spec)


def architecture_rows() -> dict[str, dict[str, Any]]:
    """Every model as a row of plain values, corrections in: one query."""
    return {row.slug: architecture_row(row) for row in architectures()}


def _told(spec: Any) -> dict[str, Any]:
    return {
        name: getattr(spec, name)
        for name in ("source", "source_url", "as_of", "confidence", "notes")
    }


def latest_prices(
    *,
    accelerator_slugs: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    complete_only: bool = True,
    on: date | None = None,
) -> QuerySet[OfferPrice]:
    """The newest price of each offer, kind and term, with offer and accelerator: one query.

    `complete_only` leaves out prices that cover the accelerators without their host. `on`: as known on that day.
    """
    rows = OfferPrice.objects.latest(on=on).select_related("offer", "offer__accelerator")
    if complete_only:
        rows = rows.filter(offer__complete=True)
    if accelerator_slugs is not None:
        rows = rows.filter(offer__accelerator__slug__in=list(accelerator_slugs))
    if kinds is not None:
        rows = rows.filter(kind__in=list(kinds))
    return rows.order_by("offer__accelerator__slug", "offer__cloud", "offer__region", "pk")


def offer_prices(*, history: bool = False) -> OfferPriceQuerySet:
    """The newest price of each offer (all prices with `history`) with its price per accelerator-hour: one query."""
    rows = OfferPrice.objects.all() if history else OfferPrice.objects.latest()
    listed: OfferPriceQuerySet = (
        rows.with_unit_price()
        .select_related("offer", "offer__accelerator")
        .order_by("offer__accelerator__name", "unit_price", "pk")
    )
    return listed


def price_history(accelerator: Accelerator) -> QuerySet[OfferPrice]:
    """Every cloud price ever noted for an accelerator, newest first."""
    return (
        OfferPrice.objects.filter(offer__accelerator=accelerator)
        .select_related("offer")
        .with_unit_price()
        .order_by("-as_of", "offer__cloud", "offer__region", "pk")
    )


def hardware_prices() -> QuerySet[PriceRecord]:
    """Street prices of cards and platforms, newest first: one query."""
    return PriceRecord.objects.select_related("accelerator", "platform").order_by("-as_of", "-pk")


def leases() -> QuerySet[LeaseOffer]:
    """Quotations of lessors, newest first: one query."""
    return LeaseOffer.objects.select_related("platform__accelerator").order_by("-as_of", "-pk")


def platforms() -> QuerySet[ServerPlatform]:
    """Server platforms with figures and accelerator: one query."""
    return ServerPlatform.objects.select_related("current", "reference", "accelerator")


def tco_defaults() -> QuerySet[TcoDefault]:
    """Cost defaults with their current and shipped values: one query."""
    return TcoDefault.objects.select_related("current", "reference")


def tco_values() -> dict[str, tuple[Any, Any, Any]]:
    """key → (low, value, high) as the organisation holds them now: one query."""
    return {
        row.key: (row.current.low, row.current.value, row.current.high)
        for row in tco_defaults()
        if row.current is not None
    }


def price_span(kind: str = OfferPrice.Kind.ON_DEMAND) -> dict[int, dict[str, Any]]:
    """accelerator id → lowest and highest current price per accelerator-hour in USD, and offers: one query."""
    rows = (
        OfferPrice.objects.latest()
        .with_unit_price()
        .filter(kind=kind, currency="USD", offer__complete=True)
        .values("offer__accelerator_id")
        .annotate(
            low=Min("unit_price"), high=Max("unit_price"), offers=Count("offer", distinct=True)
        )
        .order_by()
    )
    return {row["offer__accelerator_id"]: row for row in rows}


def newest_figure() -> date | None:
    """The date of the newest figure of an accelerator that holds now; None without a catalogue: one query."""
    newest: date | None = Accelerator.objects.aggregate(newest=Max("current__as_of"))["newest"]
    return newest
