"""Totals of a commercial document (quote, order, invoice): exact, as printed. Pure: standard library and core.money.

A line amount is quantity times unit price, rounded once to the currency's minor unit. Tax is either computed per
line, or once per rate on the document's sum; never a mix. The gross total is always the sum of what is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum

from core.errors import InputError
from core.messages import msg
from core.money import Money, minor_unit, round_amount, trimmed


class TaxMode(StrEnum):
    """Where tax is rounded."""

    LINE = "line"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class PricedLine:
    """Quantity [unit of the line], price per unit and tax rate [1] of one line."""

    quantity: Decimal
    unit_price: Decimal
    tax_rate: Decimal


@dataclass(frozen=True, slots=True)
class LineTotal:
    """What one line shows. `tax` is None where tax is computed on the document."""

    net: Money
    tax: Money | None


@dataclass(frozen=True, slots=True)
class TaxTotal:
    """Tax at one rate, and the net amount it was computed on."""

    rate: Decimal
    base: Money
    tax: Money


@dataclass(frozen=True, slots=True)
class DocumentTotals:
    """Lines in order, tax by rate (ascending), and the three sums."""

    lines: tuple[LineTotal, ...]
    taxes: tuple[TaxTotal, ...]
    net: Money
    tax: Money
    gross: Money


def line_amount(quantity: Decimal, unit_price: Decimal, currency: str) -> Money:
    """Quantity times unit price, rounded once, half up, to the minor unit."""
    return Money(round_amount(quantity * unit_price, currency), currency)


def document_totals(
    lines: Sequence[PricedLine], *, currency: str, tax_mode: TaxMode
) -> DocumentTotals:
    """Totals of `lines`. Raises InputError for a negative quantity, price or rate."""
    for number, line in enumerate(lines, 1):
        for name, value in (
            ("quantity", line.quantity),
            ("unit_price", line.unit_price),
            ("tax_rate", line.tax_rate),
        ):
            if value < 0:
                raise InputError(
                    name,
                    msg(
                        "Line %(line)s: %(field)s is %(value)s; it must not be negative",
                        line=number,
                        field=name,
                        value=str(value),
                    ),
                    value=value,
                    limit=0,
                )
    zero = Money(round_amount(Decimal(0), currency), currency)
    shown: list[LineTotal] = []
    bases: dict[Decimal, Money] = {}
    line_taxes: dict[Decimal, Money] = {}
    for line in lines:
        net = line_amount(line.quantity, line.unit_price, currency)
        tax = None
        rate = trimmed(line.tax_rate)
        if tax_mode is TaxMode.LINE:
            tax = (net * rate).rounded()
            line_taxes[rate] = line_taxes.get(rate, zero) + tax
        bases[rate] = bases.get(rate, zero) + net
        shown.append(LineTotal(net, tax))
    taxes = tuple(
        TaxTotal(
            rate,
            base,
            line_taxes[rate] if tax_mode is TaxMode.LINE else (base * rate).rounded(),
        )
        for rate, base in sorted(bases.items())
    )
    net = zero
    for base in bases.values():
        net = net + base
    tax_sum = zero
    for entry in taxes:
        tax_sum = tax_sum + entry.tax
    return DocumentTotals(tuple(shown), taxes, net, tax_sum, net + tax_sum)


def allocate(total: Money, weights: Sequence[Decimal]) -> tuple[Money, ...]:
    """`total` split in proportion to `weights`, exactly: parts are whole minor units and add up to it.

    What rounding leaves goes to the parts with the largest remainders, the first of equals. Weights of 0 in all
    places split evenly. Raises InputError when there are no weights or one is negative.
    """
    if not weights or min(weights) < 0:
        raise InputError("weights", msg("An amount is split by weights of at least 0, one or more"))
    if not any(weights):
        weights = [Decimal(1)] * len(weights)
    unit = minor_unit(total.currency)
    exact = [total.amount * weight / sum(weights) for weight in weights]
    parts = [share.quantize(unit, rounding=ROUND_FLOOR) for share in exact]
    rest = int((total.amount - sum(parts)) / unit)
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    for index in by_remainder[:rest]:
        parts[index] += unit
    return tuple(Money(part, total.currency) for part in parts)


@dataclass(frozen=True, slots=True)
class Break:
    """A price per unit that holds from one quantity to another, both included; `to_quantity` None: and above."""

    from_quantity: int
    to_quantity: int | None
    unit_price: Decimal


def check_breaks(breaks: Sequence[Break]) -> tuple[Break, ...]:
    """The breaks in order. Raises InputError for a gap, an overlap, a duplicate, or no open end."""
    ordered = tuple(sorted(breaks, key=lambda step: step.from_quantity))
    for step in ordered:
        if step.from_quantity < 1 or (
            step.to_quantity is not None and step.to_quantity < step.from_quantity
        ):
            raise InputError(
                "price_breaks",
                msg(
                    "A price break from %(start)s to %(end)s covers no quantity",
                    start=step.from_quantity,
                    end=step.to_quantity or "∞",
                ),
                value=step.from_quantity,
            )
    for before, after in itertools.pairwise(ordered):
        if before.to_quantity is None or after.from_quantity != before.to_quantity + 1:
            raise InputError(
                "price_breaks",
                msg(
                    "Price breaks must follow on each other: one ends at %(end)s, the next starts at %(start)s",
                    end=before.to_quantity or "∞",
                    start=after.from_quantity,
                ),
                value=after.from_quantity,
                limit=(before.to_quantity or 0) + 1,
            )
    if ordered and ordered[-1].to_quantity is not None:
        raise InputError(
            "price_breaks",
            msg(
                "The last price break ends at %(end)s; leave its end open",
                end=ordered[-1].to_quantity,
            ),
            value=ordered[-1].to_quantity,
        )
    return ordered


def price_at(quantity: Decimal, breaks: Sequence[Break]) -> Decimal:
    """Price per unit at `quantity`. Raises InputError below the first break: there is no price, never zero."""
    for step in breaks:
        if step.from_quantity <= quantity and (
            step.to_quantity is None or quantity < step.to_quantity + 1
        ):
            return step.unit_price
    raise InputError(
        "quantity",
        msg("There is no price for a quantity of %(value)s", value=str(quantity)),
        value=quantity,
        limit=min((step.from_quantity for step in breaks), default=None),
    )


def packs_needed(units: int, units_per_item: int) -> int:
    """Whole items that hold at least `units`: 40 cards in servers of 8 are 5 servers."""
    if units_per_item < 1:
        raise InputError(
            "units_per_item",
            msg("An item must hold at least one unit, got %(value)s", value=units_per_item),
            value=units_per_item,
            limit=1,
        )
    return -(-units // units_per_item)
