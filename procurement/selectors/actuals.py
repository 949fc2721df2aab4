"""A quarter's deliveries and acceptance as values, for the capacity review."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from statistics import fmean

from django.db.models import Prefetch, Sum

from core.models import Organisation
from core.money import Money
from core.quarters import Quarter
from planning.actuals import (
    CardResult,
    OpenRfq,
    OpenRma,
    OrderLine,
    QuarterActuals,
    VendorScore,
)
from procurement.models import Asset, BurnInRun, Delivery, PurchaseOrder, Rfq, Rma
from procurement.models.assets import AssetKind
from procurement.models.deliveries import ReceiptLine
from procurement.models.orders import OrderLine as OrderLineRow
from procurement.selectors.ending import commitments_left, warranty_ends
from procurement.states import (
    AssetStatus,
    BurnInStatus,
    DeliveryStatus,
    OrderStatus,
    RfqStatus,
    RmaStatus,
)

STANDING_ORDERS = (OrderStatus.ISSUED, OrderStatus.ACKNOWLEDGED, OrderStatus.CLOSED)
ENDED_RMAS = (RmaStatus.RESOLVED, RmaStatus.DENIED, RmaStatus.WITHDRAWN)
VERDICTS = {BurnInStatus.PASSED: "pass", BurnInStatus.FAILED: "fail"}
ACCEPTED = (AssetStatus.IN_SERVICE, AssetStatus.RETIRED)
FAILED = (AssetStatus.DEFECTIVE, AssetStatus.AT_VENDOR, AssetStatus.REPLACED)
HOUR = 3600


def quarter_actuals(*, period: Quarter, organisation: Organisation) -> QuarterActuals:
    """Orders that stood in the quarter and the cards received until its end, in a fixed number of queries."""
    _start, end = period.span(organisation.zone)
    orders = list(
        PurchaseOrder.objects.filter(status__in=STANDING_ORDERS, issued_at__lt=end)
        .select_related("vendor")
        .prefetch_related(
            Prefetch("lines", OrderLineRow.objects.select_related("request__team")),
            Prefetch(
                "lines__receipts",
                ReceiptLine.objects.filter(delivery__status=DeliveryStatus.POSTED).select_related(
                    "delivery"
                ),
            ),
        )
        .order_by("issued_at", "pk")
    )
    cards = list(
        Asset.objects.filter(kind=AssetKind.ACCELERATOR, received_on__lt=period.end)
        .exclude(status=AssetStatus.VOIDED)
        .select_related("receipt_line__order_line__order__vendor", "request__team")
        .prefetch_related(
            Prefetch("runs", BurnInRun.objects.order_by("-attempt"), to_attr="run_list"),
        )
        .order_by("pk")
    )
    by_line: dict[int, list[Asset]] = defaultdict(list)
    for card in cards:
        if card.receipt_line is not None:
            by_line[card.receipt_line.order_line_id].append(card)
    warranties, holes = warranty_ends(period)
    rfqs, rmas = _open_rfqs(), _open_rmas()
    return QuarterActuals(
        orders=tuple(
            _line(order, line, by_line[line.pk])
            for order in orders
            for line in order.lines.all()
            if line.accelerators_per_item
        ),
        cards=tuple(_card(card) for card in cards),
        vendors=_vendors(period),
        warranties=warranties,
        commitments=commitments_left(end),
        holes=holes,
        rfqs=rfqs,
        rmas=rmas,
        open_rfqs=len(rfqs),
        open_rmas=len(rmas),
    )


def _open_rfqs() -> tuple[OpenRfq, ...]:
    rows = (
        Rfq.objects.filter(status__in=[RfqStatus.OPEN, RfqStatus.CLOSED, RfqStatus.OPENED])
        .annotate(cards=Sum("lines__accelerators"))
        .order_by("pk")
        .values_list("number", "title", "status", "cards", "deadline")
    )
    return tuple(
        OpenRfq(number, title, status, cards or 0, deadline.isoformat(timespec="minutes"))
        for number, title, status, cards, deadline in rows
    )


def _open_rmas() -> tuple[OpenRma, ...]:
    rows = Rma.objects.exclude(status__in=ENDED_RMAS).select_related("vendor", "asset")
    return tuple(
        OpenRma(row.number, row.vendor.name, row.asset.serial, row.status, row.fault_on)
        for row in rows.order_by("pk")
    )


def _line(order: PurchaseOrder, line: OrderLineRow, cards: list[Asset]) -> OrderLine:
    receipts = list(line.receipts.all())
    arrivals = [r.delivery.arrived_on for r in receipts if r.delivery.arrived_on is not None]
    received = sum((r.quantity for r in receipts), Decimal(0))
    request = line.request
    return OrderLine(
        order=str(order),
        request=request.reference if request else "",
        team=request.team.name if request else "",
        vendor=order.vendor.name,
        accelerator=line.accelerator_slug,
        ordered=int(line.quantity * line.accelerators_per_item),
        received=int(received * line.accelerators_per_item),
        accepted=sum(1 for card in cards if card.status in ACCEPTED),
        failed=sum(1 for card in cards if card.status in FAILED),
        amount=Money(line.quantity * line.unit_price, order.currency).rounded().amount,
        currency=order.currency,
        promised_on=order.promised_on or order.expected_on,
        first_received_on=min(arrivals, default=None),
    )


def _card(card: Asset) -> CardResult:
    runs: list[BurnInRun] = card.run_list  # type: ignore[attr-defined]
    run = runs[0] if runs else None
    line = card.receipt_line
    order = line.order_line.order if line is not None else None
    return CardResult(
        serial=card.serial,
        accelerator=card.accelerator_slug,
        order=str(order) if order else "",
        vendor=order.vendor.name if order else "",
        state=card.status,
        verdict=VERDICTS.get(BurnInStatus(run.status), "inconclusive") if run else "",
        covered_hours=run.covered_seconds / HOUR if run else None,
        reason=run.reason if run else "",
        team=card.request.team.name if card.request else "",
    )


def _vendors(period: Quarter) -> tuple[VendorScore, ...]:
    """What arrived within the quarter, by vendor: cards, failures, mean days late."""
    deliveries = (
        Delivery.objects.filter(
            status=DeliveryStatus.POSTED, arrived_on__gte=period.start, arrived_on__lt=period.end
        )
        .select_related("vendor", "order")
        .prefetch_related(
            Prefetch(
                "lines__assets",
                Asset.objects.filter(kind=AssetKind.ACCELERATOR),
                to_attr="card_list",
            )
        )
    )
    groups: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        groups[delivery.vendor.name].append(delivery)
    found = []
    for name, rows in sorted(groups.items()):
        cards = [card for row in rows for line in row.lines.all() for card in line.card_list]  # type: ignore[attr-defined]
        late = [
            max((row.arrived_on - due).days, 0)
            for row in rows
            if row.arrived_on is not None
            and (due := row.expected_on or row.order.promised_on or row.order.expected_on)
            is not None
        ]
        found.append(
            VendorScore(
                vendor=name,
                delivered=len(cards),
                failed=sum(1 for card in cards if card.status in FAILED),
                days_late=fmean(late) if late else None,
            )
        )
    return tuple(found)
