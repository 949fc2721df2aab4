"""Warranties that end and cloud commitments that run out, as values for the capacity review."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Exists, Max, OuterRef, Sum

from core.messages import Message, msg
from core.quarters import Quarter, months_later
from planning.actuals import TERMS_AHEAD, CommitmentLeft, WarrantyEnd
from procurement.models import Asset, AssetWarranty, OrderLine, PurchaseOrder
from procurement.models.quotes import LineKind
from procurement.states import GONE_ASSET, OrderStatus

BINDING = (OrderStatus.ISSUED, OrderStatus.ACKNOWLEDGED)


def warranty_ends(period: Quarter) -> tuple[tuple[WarrantyEnd, ...], tuple[Message, ...]]:
    """Units by order and the day on which their last cover ends: within the quarter, or up to `TERMS_AHEAD` after it.

    Beside them what cannot be told, in words: covers that have not begun and units without any. Four queries.
    """
    units = (
        Asset.objects.exclude(status__in=GONE_ASSET)
        .filter(received_on__lt=period.end)
        .annotate(
            last=Max("warranties__ends_on"),
            waits=Exists(AssetWarranty.objects.filter(asset=OuterRef("pk"), starts_on=None)),
        )
    )
    counts: Counter[tuple[int | None, str | None, str, str, date]] = Counter()
    ending = units.filter(
        waits=False, last__gte=period.start, last__lt=period.end + TERMS_AHEAD
    ).order_by()
    for row in ending.values_list(
        "receipt_line__order_line__order", "request__team__name", "kind", "accelerator_slug", "last"
    ):
        counts[row] += 1
    orders = PurchaseOrder.objects.select_related("vendor").in_bulk(
        {order for order, *_rest in counts if order is not None}
    )
    found = [
        WarrantyEnd(
            order=str(orders[order]) if order is not None else "",
            vendor=orders[order].vendor.name if order is not None else "",
            team=team or "", kind=kind, accelerator=slug, units=n, last_day=last,
        )
        for (order, team, kind, slug, last), n in counts.items()
    ]  # fmt: skip
    holes = []
    if waiting := units.filter(waits=True).count():
        holes.append(
            msg(
                "The warranty of %(n)s units has not begun, so the day on which it ends is not known.",
                n=waiting,
            )
        )
    if bare := units.filter(waits=False, last=None).count():
        holes.append(msg("No warranty is recorded for %(n)s units.", n=bare))
    found.sort(key=lambda row: (row.last_day, row.order, row.team, row.kind, row.accelerator))
    return tuple(found), tuple(holes)


def commitments_left(before: datetime) -> tuple[CommitmentLeft, ...]:
    """Cloud lines of binding orders issued `before` that are not used up, by the day on which they will be."""
    lines = (
        OrderLine.objects.filter(
            order__status__in=BINDING, kind=LineKind.CLOUD, short_closed=False,
            order__issued_at__lt=before,
        )
        .select_related("order__vendor", "request__team")
        .annotate(drawn=Sum("draws__quantity"), months=Count("draws"), newest=Max("draws__month"))
        .order_by("order_id", "position")
    )  # fmt: skip
    found = []
    for line in lines:
        left = line.quantity - (line.drawn or Decimal(0))
        if left <= 0:
            continue
        last = None
        if line.drawn and line.newest is not None:
            months = math.ceil(left / (line.drawn / line.months))
            # beyond ten years the pace tells nothing
            last = (
                months_later(line.newest, months + 1) - timedelta(days=1) if months <= 120 else None
            )
        found.append(
            CommitmentLeft(
                order=str(line.order), vendor=line.order.vendor.name,
                team=line.request.team.name if line.request else "",
                accelerator=line.accelerator_slug, unit=line.unit, committed=line.quantity, left=left, last_day=last,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda row: (row.last_day is None, row.last_day or date.min)))
