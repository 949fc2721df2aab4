"""Warranty rows of assets: made at receipt, started by their event, never overwritten."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from procurement.milestones import PaymentEvent
from procurement.models import (
    Asset,
    AssetWarranty,
    InvoiceLine,
    InvoicePart,
    OrderLine,
    PurchaseOrder,
)
from procurement.models.assets import AssetKind, WarrantyBasis
from procurement.selectors.precedence import held_terms
from procurement.states import DeliveryStatus, InvoiceStatus
from procurement.warranty_rules import StartTrigger, last_covered_day

EVERYTHING = Decimal("Infinity")


def give_warranty(assets: Iterable[Asset], *, order: PurchaseOrder) -> None:
    """Give each new asset the terms that the order holds: of its quote, or of a clause that goes before it."""
    terms = held_terms(order)
    AssetWarranty.objects.bulk_create(
        AssetWarranty(
            asset=asset,
            basis=WarrantyBasis.ORDER,
            source=order.quote,
            start_trigger=terms["start_trigger"],
            months=terms["months"],
            service_level=order.quote.warranty.service_level,
            doa_days=terms["doa_days"],
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


def start_invoiced(order: PurchaseOrder) -> int:
    """Start the warranties of `order` that run from the vendor's invoice, with the day of that invoice, whichever of
    invoice and goods came first. Returns how many.

    Invoices are for the items in the order in which these came: of 8 received and 4 invoiced, the first 4 start.
    """
    lines = order.lines.filter(
        receipts__assets__warranties__start_trigger=StartTrigger.INVOICE.value,
        receipts__assets__warranties__starts_on=None,
    ).distinct()
    count = 0
    for line in lines:
        invoiced = _invoiced_items(line)
        by_day: dict[date, list[Asset]] = {}
        for item, asset in _items(line):
            day = next((day for day, upto in invoiced if item <= upto), None)
            if day is not None:
                by_day.setdefault(day, []).append(asset)
        for day, assets in by_day.items():
            count += start_warranties(assets, StartTrigger.INVOICE, day)
    return count


def _invoiced_items(line: OrderLine) -> list[tuple[date, Decimal]]:
    """Days of the line's invoices, each with the items of the line invoiced up to then; oldest first.

    An invoice against a milestone is for all items, save a payment in advance: that is asked for before there are
    goods, and counts only where nothing else is ever invoiced.
    """
    rows = (
        InvoiceLine.objects.filter(order_line=line)
        .exclude(invoice__status=InvoiceStatus.VOID)
        .order_by("invoice__dated_on", "invoice")
        .values_list("invoice__dated_on", "quantity")
    )
    found: list[tuple[date, Decimal]] = []
    upto = Decimal(0)
    for day, quantity in rows:
        upto += quantity
        found.append((day, upto))
    parts = InvoicePart.objects.filter(invoice__order=line.order_id).exclude(
        invoice__status=InvoiceStatus.VOID
    )
    if line.order.milestones.standing().exclude(event=PaymentEvent.ORDER).exists():
        parts = parts.exclude(milestone__event=PaymentEvent.ORDER)
    first = parts.order_by("invoice__dated_on").values_list("invoice__dated_on", flat=True).first()
    if first is not None:
        found.append((first, EVERYTHING))
    return found


def _items(line: OrderLine) -> list[tuple[Decimal, Asset]]:
    """The units received for a line, each with the number of its item, from 1, as they came."""
    found = []
    before = Decimal(0)
    receipts = (
        line.receipts.filter(delivery__status=DeliveryStatus.POSTED)
        .order_by("delivery__arrived_on", "pk")
        .prefetch_related("assets")
    )
    for receipt in receipts:
        units = 0
        for asset in sorted(receipt.assets.all(), key=lambda asset: asset.pk):
            # A server is made just before its first card; a replacement comes after all and is the last item's.
            number = before + units // max(line.units_per_item, 1) + 1
            found.append((min(number, before + receipt.quantity), asset))
            units += asset.kind != AssetKind.NODE
        before += receipt.quantity
    return found


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
