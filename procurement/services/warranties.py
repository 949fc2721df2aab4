"""Warranty rows of assets: made at receipt, started by their event, never overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from procurement.models import Asset, AssetWarranty, PurchaseOrder
from procurement.models.assets import WarrantyBasis
from procurement.warranty_rules import StartTrigger, last_covered_day


def give_warranty(assets: Iterable[Asset], *, order: PurchaseOrder) -> None:
    """Give each new asset the terms of the quote that the order rests on."""
    terms = order.quote.warranty
    AssetWarranty.objects.bulk_create(
        AssetWarranty(
            asset=asset,
            basis=WarrantyBasis.ORDER,
            source=order.quote,
            start_trigger=terms.start_trigger,
            months=terms.months,
            service_level=terms.service_level,
            doa_days=terms.doa_days,
        )
        for asset in assets
    )


def start_warranties(assets: Iterable[Asset], trigger: StartTrigger, day: date) -> int:
    """Start those warranties of `assets` that run from `trigger` and have not started. Returns how many."""
    rows = AssetWarranty.objects.filter(
        asset__in=list(assets), start_trigger=trigger.value, starts_on=None
    )
    count = 0
    for row in rows:
        row.starts_on, row.ends_on = day, last_covered_day(day, row.months)
        row.save(update_fields=["starts_on", "ends_on"])
        count += 1
    return count


def take_over_warranty(successor: Asset, original: Asset) -> None:
    """The successor has what is left of the original's warranty; not less than the contract gave.

    Where the original's term had not started (it failed before acceptance), the successor gets the full terms.
    """
    for row in original.warranties.all():
        AssetWarranty.objects.create(
            asset=successor,
            basis=WarrantyBasis.REPLACEMENT,
            source=row.source,
            start_trigger=row.start_trigger,
            months=row.months,
            service_level=row.service_level,
            doa_days=row.doa_days,
            starts_on=row.starts_on,
            ends_on=row.ends_on,
        )


def is_covered(asset: Asset, day: date) -> bool:
    """Whether any warranty of the asset covers `day`."""
    return any(row.covers(day) for row in asset.warranties.all())
