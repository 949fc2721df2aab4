"""Cards in service and on order, and how long orders took: what planning's calendar and portfolio ask for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import date, timedelta
from statistics import median

from django.db.models import Count, Min, Value
from django.db.models.functions import Coalesce, NullIf

from core.organisation import organisation
from planning.capacity import ON_ORDER, OWNED, Supply
from procurement.models import Asset, OrderLine
from procurement.models.assets import AssetKind
from procurement.selectors.progress import accepted_units
from procurement.states import AssetStatus, OrderStatus

# From the dock to service: install, 72 hours of burn-in, acceptance.
PROVING_DAYS = 7
BINDING = (OrderStatus.ISSUED, OrderStatus.ACKNOWLEDGED)


def card_supply(on: date) -> Iterable[Supply]:
    """Accelerators in service by kind, and what binding orders still owe with the day it can be in service."""
    in_service = (
        Asset.objects.filter(kind=AssetKind.ACCELERATOR, status=AssetStatus.IN_SERVICE)
        .exclude(accelerator_slug="")
        .order_by()
        .annotate(where=Coalesce(NullIf("site", Value("")), "parent__site", Value("")))
        .values_list("accelerator_slug", "where")
        .annotate(n=Count("pk"))
    )
    for slug, where, cards in in_service:
        yield Supply(slug, cards, OWNED, on, place=where)
    lines = list(
        OrderLine.objects.filter(
            order__status__in=BINDING, accelerators_per_item__gt=0, short_closed=False
        )
        .exclude(accelerator_slug="")
        .select_related("order__site")
    )
    accepted = accepted_units(lines)
    for line in lines:
        owed = int(line.quantity * line.accelerators_per_item) - accepted.get(line.pk, 0)
        if owed <= 0:
            continue
        promised = line.order.promised_on
        late = promised is not None and promised < on
        first = None if promised is None else max(promised, on) + timedelta(days=PROVING_DAYS)
        where = line.order.site.name if line.order.site is not None else ""
        yield Supply(
            line.accelerator_slug,
            owed,
            ON_ORDER,
            first,
            label=str(line.order),
            late=late,
            place=where,
        )


def bound_cards(requests: Collection[int]) -> Mapping[tuple[int, str], int]:
    """By request and accelerator: cards on orders that bind, and those accepted where nothing more will come."""
    lines = list(
        OrderLine.objects.filter(
            request__in=requests, order__status__in=(*BINDING, OrderStatus.CLOSED), accelerators_per_item__gt=0
        ).select_related("order")
    )  # fmt: skip
    accepted = accepted_units(lines)
    found: Counter[tuple[int, str]] = Counter()
    for line in lines:
        over = line.short_closed or line.order.status == OrderStatus.CLOSED
        ordered = int(line.quantity * line.accelerators_per_item)
        if line.request_id is not None:
            found[line.request_id, line.accelerator_slug] += (
                accepted.get(line.pk, 0) if over else ordered
            )
    return found


def lead_days(accelerator: str) -> int | None:
    """Median days from the issue of an order to the first card of it in service; None without an order that came."""
    zone = organisation().zone
    rows = (
        OrderLine.objects.filter(
            accelerator_slug=accelerator, order__issued_at__isnull=False,
            receipts__assets__in_service_at__isnull=False,
        )
        .order_by()
        .values_list("order__issued_at")
        .annotate(came=Min("receipts__assets__in_service_at"))
    )  # fmt: skip
    spans = [
        (came.astimezone(zone).date() - issued.astimezone(zone).date()).days
        for issued, came in rows
        if issued is not None
    ]
    return math.ceil(median(spans)) if spans else None
