"""Quotes at the quantities asked for: price breaks where they apply, what is missing filled in, each step in words.

The comparable amount is for looking at quotes side by side. It changes no rank: an incomplete quote has none, and only
what a vendor offered is ever awarded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from procurement.models import PriceBreak, QuoteLine
from procurement.selectors.comparison import Comparison, Row
from procurement.totals import Break, line_amount, packs_needed, price_at


@dataclass(frozen=True, slots=True)
class Comparable:
    """Net in the base currency, and every assumption behind it; None where nothing can be assumed."""

    net: Money | None
    assumptions: tuple[Message, ...]


def comparables(comparison: Comparison) -> dict[int, Comparable]:
    """The comparable amount of each quote, by id, in two queries."""
    asked = list(comparison.rfq.lines.all())
    ids = [row.quote.pk for row in comparison.rows]
    breaks: dict[int, list[Break]] = defaultdict(list)
    steps = PriceBreak.objects.filter(line__quote__in=ids, line__rfq_line__isnull=False)
    for step in steps.order_by("from_quantity"):
        breaks[step.line_id].append(step.step)
    prices = {
        line.pk: {
            row.quote.pk: price
            for row in comparison.rows
            if (price := _per_card(row, line, comparison.currency)) is not None
        }
        for line in asked
    }
    return {
        row.quote.pk: _comparable(row, asked, breaks, prices, comparison.currency)
        for row in comparison.rows
    }


def _answers(row: Row, asked: Any) -> list[QuoteLine]:
    return [line for line in row.answering if line.rfq_line_id == asked.pk]


def _in_base(row: Row, amount: Decimal, base: str) -> Decimal | None:
    """`amount` of the quote's currency in the base currency, unrounded."""
    if row.quote.currency == base:
        return amount
    return None if row.rate is None else amount * row.rate.rate


def _per_card(row: Row, asked: Any, base: str) -> Decimal | None:
    """What the quote takes for one accelerator of an asked line, in the base currency."""
    lines = _answers(row, asked)
    cards = sum(line.accelerators for line in lines)
    if not cards:
        return None
    total = sum((line.quantity * line.unit_price for line in lines), Decimal(0))
    return _in_base(row, total / cards, base)


def _comparable(
    row: Row,
    asked: Sequence[Any],
    breaks: dict[int, list[Break]],
    prices: dict[int, dict[int, Decimal]],
    base: str,
) -> Comparable:
    if row.net is None:
        return Comparable(None, ())
    total, told = row.net.amount, []
    for line in asked:
        lines = _answers(row, line)
        cards = sum(one.accelerators for one in lines)
        if len(lines) == 1 and breaks.get(lines[0].pk) and lines[0].accelerators_per_item:
            change = _at_asked(row, line, lines[0], breaks[lines[0].pk])
            if change is not None:
                amount, cards, words = change
                changed = _in_base(row, amount, base)
                if changed is None:  # no rate: nothing can be said
                    return Comparable(None, ())
                total += changed
                told.append(words)
        if cards >= line.accelerators:
            continue
        missing = line.accelerators - cards
        own, others = prices[line.pk].get(row.quote.pk), prices[line.pk]
        price = own if own is not None else max(others.values(), default=None)
        if price is None:
            told.append(
                msg(
                    "Line %(line)s: nobody offers it, so nothing can be assumed", line=line.position
                )
            )
            return Comparable(None, tuple(told))
        total += missing * price
        shown = str(Money(price, base).rounded())
        told.append(
            msg("Line %(line)s: %(n)s missing accelerators are taken at %(price)s, this vendor's own price",
                line=line.position, n=missing, price=shown)
            if own is not None
            else msg("Line %(line)s: %(n)s missing accelerators are taken at %(price)s, the dearest other offer",
                     line=line.position, n=missing, price=shown)
        )  # fmt: skip
    return Comparable(Money(total, base).rounded(), tuple(told))


def _at_asked(
    row: Row, asked: Any, line: QuoteLine, steps: Sequence[Break]
) -> tuple[Decimal, int, Message] | None:
    """By how much the line changes at the quantity asked for, its accelerators then, and the words; else None."""
    items = packs_needed(asked.accelerators, line.accelerators_per_item)
    if items == line.quantity:
        return None
    try:
        price = price_at(Decimal(items), steps)
    except InputError:
        return None  # the vendor has no price for so few
    currency = row.quote.currency
    change = (
        line_amount(Decimal(items), price, currency).amount
        - line_amount(line.quantity, line.unit_price, currency).amount
    )
    words = msg(
        "Line %(line)s: %(n)s items at %(price)s by its price breaks, instead of %(m)s offered",
        line=asked.position, n=items, price=f"{price.normalize():f} {currency}",
        m=f"{line.quantity.normalize():f}",
    )  # fmt: skip
    return change, items * line.accelerators_per_item, words
