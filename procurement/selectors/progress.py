"""How far each line of an order is: received, accepted, invoiced, paid. Computed from rows, never stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from core.organisation import day_start
from procurement.models import (
    AcceptanceUnit,
    DrawDown,
    Invoice,
    InvoiceLine,
    OrderLine,
    PurchaseOrder,
    ReceiptLine,
)
from procurement.models.assets import AssetKind
from procurement.states import (
    COUNTED_INVOICE,
    AcceptanceStatus,
    DeliveryStatus,
    InvoiceStatus,
    OrderStatus,
)

SIGNED = (AcceptanceStatus.ACCEPTED, AcceptanceStatus.PART_ACCEPTED)
ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class LineProgress:
    """One line, in items as ordered."""

    line: OrderLine
    ordered: Decimal
    received: Decimal
    accepted: (
        Decimal  # units accepted ÷ units of one item; for lines without serial numbers: received
    )
    accepted_units: int  # accelerators or other units with a serial number
    invoiced: Decimal  # on invoices that are not void
    matched: Decimal  # on invoices that matched
    paid: Decimal

    @property
    def open(self) -> Decimal:
        """Still to come; at least 0."""
        return max(self.ordered - self.received, ZERO)

    @property
    def payable(self) -> Decimal:
        """Accepted and not yet on a matched invoice."""
        return max(self.accepted - self.matched, ZERO)

    @property
    def received_share(self) -> float:
        """Of this line, at most 1: too many here does not make up for another line. [1]"""
        return float(min(self.received / self.ordered, Decimal(1)))


def accepted_units(lines: Iterable[Any], until: date | None = None) -> dict[int, int]:
    """Order line id → units accepted (up to the end of day `until`). A replacement counts only where the unit it
    replaces was never accepted."""
    signed = AcceptanceUnit.objects.filter(included=True, acceptance__status__in=SIGNED)
    if until is not None:
        signed = signed.filter(acceptance__decided_at__lt=day_start(until + timedelta(days=1)))
    before = signed.filter(asset=OuterRef("asset__replaces"))
    rows = (
        signed.filter(asset__receipt_line__order_line__in=lines)
        .filter(
            Q(asset__kind=AssetKind.ACCELERATOR)
            | Q(asset__receipt_line__order_line__accelerators_per_item=0)
        )
        .exclude(Exists(before))
        .order_by()
        .values_list("asset__receipt_line__order_line")
        .annotate(n=Count("asset", distinct=True))
    )
    return {line: n for line, n in rows if line is not None}


def received_quantities(lines: Iterable[Any], until: date | None = None) -> dict[int, Decimal]:
    """Order line id → items on posted deliveries (that arrived on `until` at the latest), or drawn of a commitment."""
    posted = ReceiptLine.objects.filter(
        order_line__in=lines, delivery__status=DeliveryStatus.POSTED
    )
    drawn = DrawDown.objects.filter(order_line__in=lines)
    if until is not None:
        posted = posted.filter(delivery__arrived_on__lte=until)
        # A month counts once it is over.
        drawn = drawn.filter(month__lt=(until + timedelta(days=1)).replace(day=1))
    found: dict[int, Decimal] = {}
    for rows in (posted, drawn):
        sums = rows.order_by().values_list("order_line").annotate(total=Sum("quantity"))
        for line, quantity in sums:
            found[line] = found.get(line, ZERO) + quantity
    return found


def _invoiced(lines: Iterable[Any]) -> dict[int, tuple[Decimal, Decimal, Decimal]]:
    rows = (
        InvoiceLine.objects.filter(order_line__in=lines)
        .exclude(invoice__status=InvoiceStatus.VOID)
        .order_by()
        .values_list("order_line")
        .annotate(
            total=Sum("quantity"),
            matched=Sum("quantity", filter=Q(invoice__status__in=COUNTED_INVOICE)),
            paid=Sum("quantity", filter=Q(invoice__status=InvoiceStatus.PAID)),
        )
    )
    return {line: (total, matched or ZERO, paid or ZERO) for line, total, matched, paid in rows}


def line_progress(*orders: PurchaseOrder) -> dict[int, LineProgress]:
    """Progress by line id, in order of position, in a fixed number of queries."""
    lines = list(OrderLine.objects.filter(order__in=orders).order_by("order", "position"))
    received = received_quantities(lines)
    units = accepted_units(lines)
    invoiced = _invoiced(lines)
    found = {}
    for line in lines:
        got = received.get(line.pk, ZERO)
        accepted_n = units.get(line.pk, 0)
        total, matched, paid = invoiced.get(line.pk, (ZERO, ZERO, ZERO))
        found[line.pk] = LineProgress(
            line=line,
            ordered=line.quantity,
            received=got,
            accepted=Decimal(accepted_n) / line.units_per_item if line.serialised else got,
            accepted_units=accepted_n,
            invoiced=total,
            matched=matched,
            paid=paid,
        )
    return found


def receipt_state(order: PurchaseOrder, progress: Iterable[LineProgress]) -> str:
    """`none`, `part` or `all`: whether every line was received in full. Never set by hand."""
    rows = list(progress)
    if all(row.received >= row.ordered or row.line.short_closed for row in rows):
        return "all"
    return "part" if any(row.received for row in rows) else "none"


def open_invoices(order: PurchaseOrder) -> QuerySet[Invoice]:
    """Invoices that are not void."""
    return order.invoices.exclude(status=InvoiceStatus.VOID)


def invoice_ids(order: PurchaseOrder) -> list[int]:
    return list(order.invoices.values_list("pk", flat=True))


def invoice_source(pk: int) -> str:
    """Under which name an invoice stands in the budget's ledger."""
    return f"invoice:{pk}"


def accepted_accelerators(request_id: int) -> int:
    """Accelerators accepted for a request, over all its orders."""
    lines = OrderLine.objects.filter(request=request_id, accelerators_per_item__gt=0).exclude(
        order__status=OrderStatus.CANCELLED
    )
    return sum(accepted_units(lines.values("pk")).values())
