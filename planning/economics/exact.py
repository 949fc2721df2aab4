"""The one border between the float search and exact money.

Hours, bytes and watts come in as floats, become decimals by their shortest text, and meet prices here. Every line is
rounded once, half up, to the minor unit; totals are sums of rounded lines. `pricing` does the same in arrays of
floats; a property test holds the two together to the cent.
"""

from __future__ import annotations

from decimal import Decimal

from core.messages import Message, msg
from core.money import Money
from planning.economics import billing, checks
from planning.economics.types import SECONDS_PER_HOUR, CostLine, CostSheet, Offer, sheet

LINE_LABELS: dict[str, Message] = {
    "usage": msg("Use"),
    "commitment_unused": msg("Committed but not used"),
    "upfront": msg("Paid up front"),
    "tax": msg("Tax"),
}


def to_decimal(value: float) -> Decimal:
    """`value` as the decimal that its shortest text says (0.1 is 0.1)."""
    return Decimal(repr(float(value)))


def times(price: Money, quantity: float) -> Money:
    """`price` per unit for `quantity` units, rounded once. Negative quantities are refused."""
    checks.non_negative("quantity", quantity)
    return (price * to_decimal(quantity)).rounded()


def line(name: str, label: Message, price: Money, quantity: float, unit: str) -> CostLine:
    """A cost line of `quantity` units at `price` each."""
    return CostLine(name, label, times(price, quantity), float(quantity), unit)


def charge(
    offer: Offer,
    *,
    accelerators: int,
    hours: float,
    starts: int = 1,
    span_hours: float | None = None,
) -> CostSheet:
    """What `offer` bills for `accelerators` cards used `hours` in `starts` runs, by named lines.

    Whole instances are paid. With a commitment, the terms that cover `span_hours` (default: the hours) are paid in
    full: what is not used is a line of its own. Tax stands apart.

    Raises
    ------
    InputError
        On no card, negative hours, fewer than one start, or a span shorter than the use.
    """
    if accelerators < 1:
        raise checks.refuse("accelerators", accelerators, ">= 1")
    if starts < 1:
        raise checks.refuse("starts", starts, ">= 1")
    checks.non_negative("hours", hours)
    span = hours if span_hours is None else span_hours
    if not span >= hours:
        raise checks.refuse("span_hours", span, f">= {hours:g}")
    instances = int(billing.instances_needed(accelerators, offer.accelerators))
    used = int(
        billing.billed_seconds(hours, offer.billing_unit.seconds, offer.minimum_seconds, starts)
    )
    committed = int(billing.committed_seconds(span, offer.commitment_months))
    terms = int(billing.terms_needed(span, offer.commitment_months))

    def at_price(seconds: int) -> Money:
        amount = offer.price.amount * (seconds * instances) / SECONDS_PER_HOUR
        return Money(amount, offer.price.currency).rounded()

    unused = max(committed - used, 0)
    lines = [
        _line("usage", at_price(used), used * instances / SECONDS_PER_HOUR, "instance-hour"),
        _line(
            "commitment_unused",
            at_price(unused),
            unused * instances / SECONDS_PER_HOUR,
            "instance-hour",
        ),
    ]
    if offer.upfront is not None:
        paid = (offer.upfront * (instances * terms)).rounded()
        lines.append(_line("upfront", paid, instances * terms, "instance-term"))
    before_tax = CostSheet(tuple(lines), offer.price.currency).total
    lines.append(_line("tax", (before_tax * offer.tax_rate).rounded(), None, ""))
    return sheet(lines, offer.price.currency)


def _line(name: str, amount: Money, quantity: float | None, unit: str) -> CostLine:
    return CostLine(name, LINE_LABELS[name], amount, quantity, unit)
