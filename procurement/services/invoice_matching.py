"""What an invoice says beside what was ordered, received and accepted: line by line, or milestone by milestone."""

from __future__ import annotations

from decimal import Decimal

from core.errors import InvalidTransition
from core.messages import Message, msg
from core.money import Money, minor_unit
from procurement.milestones import PaymentEvent
from procurement.models import Invoice, InvoicePart, PurchaseOrder, PurchasingPolicy
from procurement.selectors.milestones import MilestoneState, milestone_states
from procurement.selectors.progress import line_progress

EVENTS = {
    PaymentEvent.ORDER: msg("the order"),
    PaymentEvent.DELIVERY: msg("what was delivered"),
    PaymentEvent.ACCEPTANCE: msg("what was accepted"),
    PaymentEvent.RETENTION: msg("the end of the retention"),
}


class BelowInvoiced(InvalidTransition):
    """Less would be left than matched invoices rest on."""

    def __init__(self, message: Message, *, invoiced: Decimal) -> None:
        super().__init__(message)
        self.invoiced = invoiced


def differences(invoice: Invoice) -> tuple[list[Message], bool]:
    """What does not match, with both values; and whether something is among it that nobody may override."""
    parts = list(invoice.parts.select_related("milestone"))
    return _milestone_differences(invoice, parts) if parts else _line_differences(invoice)


def _line_differences(invoice: Invoice) -> tuple[list[Message], bool]:
    """What does not match, line and field with both values; and whether a quantity is among it."""
    progress = line_progress(invoice.order)
    tolerance = PurchasingPolicy.current().price_tolerance
    found: list[Message] = []
    quantity = False
    for line in invoice.lines.select_related("order_line"):
        ordered = line.order_line
        free = progress[ordered.pk].payable
        if line.quantity > free:
            quantity = True
            found.append(
                msg(
                    "Line %(line)s: quantity %(value)s; accepted and not yet invoiced are %(limit)s",
                    line=ordered.position,
                    value=f"{line.quantity.normalize():f}",
                    limit=f"{free.normalize():f}",
                )
            )
        if line.unit_price > ordered.unit_price * (1 + tolerance):
            found.append(
                msg(
                    "Line %(line)s: unit price %(value)s; ordered at %(limit)s",
                    line=ordered.position,
                    value=f"{line.unit_price.normalize():f}",
                    limit=f"{ordered.unit_price.normalize():f}",
                )
            )
        if line.tax_rate != ordered.tax_rate:
            found.append(
                msg(
                    "Line %(line)s: tax rate %(value)s; ordered with %(limit)s",
                    line=ordered.position,
                    value=f"{line.tax_rate.normalize():f}",
                    limit=f"{ordered.tax_rate.normalize():f}",
                )
            )
    totals = invoice.totals()
    slack = minor_unit(invoice.currency) * max(len(totals.lines), 1)
    if abs(invoice.stated_tax - totals.tax.amount) > slack:
        found.append(
            msg(
                "Tax %(value)s as printed; computed are %(limit)s",
                value=str(Money(invoice.stated_tax, invoice.currency)),
                limit=str(totals.tax),
            )
        )
    if invoice.stated_gross != totals.net.amount + invoice.stated_tax:
        found.append(
            msg(
                "Total %(value)s as printed; lines and tax add up to %(limit)s",
                value=str(invoice.gross),
                limit=str(Money(totals.net.amount + invoice.stated_tax, invoice.currency)),
            )
        )
    return found, quantity


def _milestone_differences(
    invoice: Invoice, parts: list[InvoicePart]
) -> tuple[list[Message], bool]:
    """A milestone is billed once its event came, and by no more than it is; what is not open is never overridden."""
    states = {state.milestone.pk: state for state in milestone_states(invoice.order)}
    tolerance = PurchasingPolicy.current().price_tolerance
    found: list[Message] = []
    blocked = False
    expected_tax = Decimal(0)
    for part in parts:
        state = states[part.milestone_id]
        billed = Money(part.amount, invoice.currency)
        expected_tax += _tax_share(state, billed)
        if billed.amount > state.rest.amount + state.amount.amount * tolerance:
            found.append(
                msg(
                    "Milestone %(line)s: %(value)s invoiced; %(limit)s of it are not invoiced yet",
                    line=state.milestone.position,
                    value=str(billed),
                    limit=str(state.rest),
                )
            )
        if not state.is_open and billed > state.free:
            blocked = True
            found.append(
                msg(
                    "Milestone %(line)s: %(value)s invoiced; opened by %(event)s and not yet invoiced are %(limit)s",
                    line=state.milestone.position,
                    value=str(billed),
                    event=EVENTS[PaymentEvent(state.milestone.event)],
                    limit=str(state.free),
                )
            )
    if abs(invoice.stated_tax - expected_tax) > minor_unit(invoice.currency) * len(parts):
        found.append(
            msg(
                "Tax %(value)s as printed; computed are %(limit)s",
                value=str(Money(invoice.stated_tax, invoice.currency)),
                limit=str(Money(expected_tax, invoice.currency)),
            )
        )
    whole = Money(sum((part.amount for part in parts), Decimal(0)), invoice.currency)
    if invoice.gross != whole:
        found.append(
            msg(
                "Total %(value)s as printed; the milestones invoiced add up to %(limit)s",
                value=str(invoice.gross),
                limit=str(whole),
            )
        )
    return found, blocked


def require_invoiced_covered(order: PurchaseOrder) -> None:
    """What is on matched invoices rests on what was received, drawn and accepted, as these stand now.

    For steps that take some of it back, after they did. Raises BelowInvoiced naming line or milestone, what is
    invoiced of it, and what would be left.
    """
    for row in line_progress(order).values():
        if row.matched > row.accepted:
            raise BelowInvoiced(
                msg(
                    "Line %(line)s: %(limit)s are invoiced; %(value)s would be left of what was accepted",
                    line=row.line.position,
                    limit=f"{row.matched.normalize():f}",
                    value=f"{row.accepted.normalize():f}",
                ),
                invoiced=row.matched,
            )
    for state in milestone_states(order):
        # Open in full, it may bear more than its amount: a price difference that was let go.
        if not state.is_open and state.matched > state.opened:
            raise BelowInvoiced(
                msg(
                    "Milestone %(line)s: %(limit)s are invoiced; %(value)s would be left opened by %(event)s",
                    line=state.milestone.position,
                    limit=str(state.matched),
                    value=str(state.opened),
                    event=EVENTS[PaymentEvent(state.milestone.event)],
                ),
                invoiced=state.matched.amount,
            )


def _tax_share(state: MilestoneState, billed: Money) -> Decimal:
    """The tax inside `billed`, rounded once; the milestone's own tax when it is billed whole."""
    if billed == state.amount or state.amount.amount == 0:
        return state.part.tax.amount
    share = Money(billed.amount * state.part.tax.amount / state.amount.amount, billed.currency)
    return share.rounded().amount
