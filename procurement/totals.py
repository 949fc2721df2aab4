"""Totals of a commercial document (quote, order, invoice): exact, as printed. Pure: standard library and core.money.

A line amount is quantity times unit price, rounded once to the currency's minor unit. Tax is either computed per
line, or once per rate on the document's sum; never a mix. The gross total is always the sum of what is shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from enum import StrEnum
from typing import NamedTuple

from core.errors import InputError
from core.messages import msg
from core.money import Money, minor_unit, round_amount, trimmed


class TaxMode(StrEnum):
    """Where tax is rounded."""

    LINE = "line"
    DOCUMENT = "document"


class PricedLine(NamedTuple):
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
    lines: Sequence[PricedLine], *, currency: str, tax_mode: TaxMode, shown: bool = True
) -> DocumentTotals:
    """Totals of `lines`. Raises InputError for a negative quantity, price or rate.

    Where the lines themselves are not `shown`, only the sums are told, and sooner.
    """
    unit, per_line = minor_unit(currency), tax_mode is TaxMode.LINE
    rates: dict[Decimal, Decimal] = {}  # as they are told
    nets: list[Decimal] = []
    taxed: list[Decimal] = []
    bases: dict[Decimal, Decimal] = {}
    line_taxes: dict[Decimal, Decimal] = {}
    for number, line in enumerate(lines, 1):
        quantity, price, told = line.quantity, line.unit_price, line.tax_rate
        if quantity < 0 or price < 0 or told < 0:
            raise _negative(number, line)
        rate = rates.get(told)
        if rate is None:
            rate = rates[told] = trimmed(told)
        net = (quantity * price).quantize(unit, ROUND_HALF_UP)
        bases[rate] = bases[rate] + net if rate in bases else net
        nets.append(net)
        if per_line:
            tax = (net * rate).quantize(unit, ROUND_HALF_UP)
            line_taxes[rate] = line_taxes[rate] + tax if rate in line_taxes else tax
            taxed.append(tax)
    taxes = tuple(
        TaxTotal(
            rate,
            Money(base, currency),
            Money(line_taxes[rate], currency)
            if per_line
            else (Money(base, currency) * rate).rounded(),
        )
        for rate, base in sorted(bases.items())
    )
    zero = Money(round_amount(Decimal(0), currency), currency)
    net_sum = Money(sum(bases.values(), zero.amount), currency)
    tax_sum = sum((entry.tax for entry in taxes), zero)
    each = (
        tuple(
            LineTotal(Money(net, currency), Money(tax, currency) if per_line else None)
            for net, tax in zip(nets, taxed if per_line else nets, strict=True)
        )
        if shown
        else ()
    )
    return DocumentTotals(each, taxes, net_sum, tax_sum, net_sum + tax_sum)


def _negative(number: int, line: PricedLine) -> InputError:
    """Which figure of the line is below 0."""
    name = next(name for name in ("quantity", "unit_price", "tax_rate") if getattr(line, name) < 0)
    value = getattr(line, name)
    return InputError(
        name,
        msg("Line %(line)s: %(field)s is %(value)s; it must not be negative", line=number, field=name,
            value=str(value)),
        value=value, limit=0,
    )  # fmt: skip


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
