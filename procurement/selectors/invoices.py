"""Each line of an invoice beside what it is matched against."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from core.money import Money
from procurement.models import Invoice, InvoiceLine, Milestone, PurchasingPolicy
from procurement.selectors.milestones import MilestoneState, milestone_states
from procurement.selectors.progress import LineProgress, line_progress
from procurement.states import COUNTED_INVOICE


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """One line of an invoice beside its order line: three ways, with what differs."""

    line: InvoiceLine
    progress: LineProgress
    net: Money
    free: Decimal  # accepted and on no other matched invoice
    quantity_differs: bool
    price_differs: bool
    tax_differs: bool


def matched_lines(invoice: Invoice) -> list[MatchedLine]:
    """Each line with ordered, received, accepted and invoiced, in a fixed number of queries."""
    progress = line_progress(invoice.order)
    tolerance = PurchasingPolicy.current().price_tolerance
    nets = invoice.totals().lines
    found = []
    for line, shown in zip(invoice.lines.select_related("order_line"), nets, strict=True):
        row = progress[line.order_line_id]
        own = line.quantity if invoice.status in COUNTED_INVOICE else Decimal(0)
        free = max(row.accepted - (row.matched - own), Decimal(0))
        found.append(
            MatchedLine(
                line=line,
                progress=row,
                net=shown.net,
                free=free,
                quantity_differs=line.quantity > free,
                price_differs=line.unit_price > row.line.unit_price * (1 + tolerance),
                tax_differs=line.tax_rate != row.line.tax_rate,
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class BilledPart:
    """What an invoice asks of one milestone, beside what is open."""

    milestone: Milestone
    state: MilestoneState | None  # None: the milestone was retired after this invoice was voided
    amount: Money
    others: Money | None  # on other invoices that matched

    @property
    def differs(self) -> bool:
        if self.state is None or self.others is None:
            return False
        free = self.state.amount if self.state.is_open else self.state.opened
        return self.amount > free - self.others


def billed_parts(invoice: Invoice) -> list[BilledPart]:
    """Each milestone on the invoice; none where it is for accepted quantities."""
    parts = list(invoice.parts.select_related("milestone"))
    if not parts:
        return []
    states = {state.milestone.pk: state for state in milestone_states(invoice.order)}
    found = []
    for part in parts:
        state, amount = states.get(part.milestone_id), Money(part.amount, invoice.currency)
        own = amount if invoice.status in COUNTED_INVOICE else Money(Decimal(0), invoice.currency)
        others = None if state is None else state.matched - own
        found.append(BilledPart(part.milestone, state, amount, others))
    return found
