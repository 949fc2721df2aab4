"""How far each milestone of an order is: opened by its event, billed, paid. Computed from rows, never stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from core.money import Money, money_json
from core.organisation import local_day, today
from procurement.milestones import Part, PaymentEvent, opened_amount, parts_of
from procurement.models import InvoicePart, Milestone, OrderLine, PurchaseOrder
from procurement.selectors.progress import accepted_units, line_progress, received_quantities
from procurement.states import COUNTED_INVOICE, InvoiceStatus
from procurement.totals import DocumentTotals, allocate

ZERO, ONE = Decimal(0), Decimal(1)


@dataclass(frozen=True, slots=True)
class MilestoneState:
    """One milestone in the order's currency, with tax."""

    milestone: Milestone
    part: Part
    opened: Money  # what its event allows to be invoiced today
    billed: Money  # on invoices that are not void
    matched: Money  # on invoices that matched
    paid: Money

    @property
    def amount(self) -> Money:
        return self.part.gross

    @property
    def free(self) -> Money:
        """Opened and on no matched invoice; never below 0."""
        return max(self.opened - self.matched, Money(ZERO, self.opened.currency))

    @property
    def rest(self) -> Money:
        """Of the whole milestone, on no matched invoice; below 0 after an amendment that lowered the price."""
        return self.amount - self.matched

    @property
    def is_open(self) -> bool:
        """Whether its event has come in full."""
        return self.opened >= self.amount

    @property
    def stage(self) -> str:
        if self.paid >= self.amount:
            return "paid"
        if self.billed >= self.amount:
            return "billed"
        if self.is_open:
            return "open"
        return "part_open" if self.opened.amount > 0 else "waiting"

    def to_json(self) -> dict[str, Any]:
        return self.milestone.term.to_json() | {
            "position": self.milestone.position,
            "net": money_json(self.part.net),
            "tax": money_json(self.part.tax),
            "amount": money_json(self.amount),
            "opened": money_json(self.opened),
            "billed": money_json(self.billed),
            "matched": money_json(self.matched),
            "paid": money_json(self.paid),
            "stage": self.stage,
        }


def milestone_states(
    order: PurchaseOrder, totals: DocumentTotals | None = None
) -> list[MilestoneState]:
    """Every standing milestone of `order`, in order; none where it is paid by accepted quantity."""
    rows = list(order.milestones.standing())
    if not rows:
        return []
    lines = list(order.lines.all())
    totals = totals or order.totals(lines)
    parts = parts_of(totals.net, totals.tax, [row.term for row in rows])
    values = [shown.net.amount for shown in totals.lines]
    shares: dict[tuple[PaymentEvent, int], Decimal] = {}
    zero = Money(ZERO, order.currency)
    sums = _sums(rows, order.currency)
    found = []
    for row, part in zip(rows, parts, strict=True):
        event = PaymentEvent(row.event)
        key = (
            PaymentEvent.ACCEPTANCE if event == PaymentEvent.RETENTION else event,
            row.days,
        )
        if key not in shares:
            shares[key] = share_done(
                order, lines, values, key[0], today() - timedelta(days=row.days)
            )
        billed, matched, paid = sums.get(row.pk, (zero, zero, zero))
        found.append(
            MilestoneState(row, part, opened_amount(part.gross, shares[key]), billed, matched, paid)
        )
    return found


def unfinished(order: PurchaseOrder) -> list[int]:
    """Positions of lines that are not received and paid in full; with milestones unpaid, those of all lines."""
    progress = line_progress(order).values()
    states = milestone_states(order)
    if not states:
        return [row.line.position for row in progress if row.paid < row.ordered]
    short = [row.line.position for row in progress if row.accepted < row.ordered]
    unpaid = any(state.stage != "paid" for state in states)
    return short or [row.line.position for row in progress] if unpaid else short


def share_done(
    order: PurchaseOrder,
    lines: list[OrderLine],
    values: list[Decimal],
    event: PaymentEvent,
    day: date,
) -> Decimal:
    """Share [1] of the order's value for which `event` came on `day` at the latest; exactly 1 when all of it."""
    if order.issued_at is None or local_day(order.issued_at) > day:
        return ZERO
    if event == PaymentEvent.ORDER:
        return ONE
    received = received_quantities(lines, day)
    units = accepted_units(lines, day) if event == PaymentEvent.ACCEPTANCE else {}
    done = []
    for line in lines:
        quantity = received.get(line.pk, ZERO)
        if event == PaymentEvent.ACCEPTANCE and line.serialised:
            quantity = Decimal(units.get(line.pk, 0)) / line.units_per_item
        done.append(min(quantity / line.quantity, ONE))
    if all(share >= 1 for share in done):
        return ONE
    whole = sum(values, ZERO)
    if whole == 0:
        return ZERO
    return sum((share * value for share, value in zip(done, values, strict=True)), ZERO) / whole


def _sums(rows: Iterable[Milestone], currency: str) -> dict[int, tuple[Money, Money, Money]]:
    """Milestone id → billed, matched, paid. A part payment counts for the parts of its invoice in proportion."""
    found: dict[int, tuple[Money, Money, Money]] = {}
    zero = Money(ZERO, currency)
    by_invoice: dict[int, list[InvoicePart]] = {}
    parts = (
        InvoicePart.objects.filter(milestone__in=[row.pk for row in rows])
        .exclude(invoice__status=InvoiceStatus.VOID)
        .select_related("invoice")
        .order_by("invoice", "milestone__position")
    )
    for part in parts:
        by_invoice.setdefault(part.invoice_id, []).append(part)
    for together in by_invoice.values():
        invoice = together[0].invoice
        amounts = [part.amount for part in together]
        if invoice.status == InvoiceStatus.PAID:
            paid = [Money(amount, currency) for amount in amounts]
        else:
            paid = list(allocate(Money(invoice.paid_amount or ZERO, currency), amounts))
        for part, done in zip(together, paid, strict=True):
            billed, matched, before = found.get(part.milestone_id, (zero, zero, zero))
            amount = Money(part.amount, currency)
            counts = invoice.status in COUNTED_INVOICE
            found[part.milestone_id] = (
                billed + amount,
                matched + amount if counts else matched,
                before + done,
            )
    return found
