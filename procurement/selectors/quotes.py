"""A quote as it is shown: each line with its amount, bundles with their sums, the exact totals."""

from __future__ import annotations

from dataclasses import dataclass

from core.money import Money, total
from procurement.models import Quote, QuoteLine
from procurement.totals import DocumentTotals, LineTotal, line_amount


@dataclass(frozen=True, slots=True)
class QuoteLines:
    """`lines` with their totals, alternatives included; `totals` without them."""

    lines: list[tuple[QuoteLine, LineTotal]]
    bundles: list[tuple[str, Money]]  # net, by name, in order of appearance
    totals: DocumentTotals


def quote_lines(quote: Quote) -> QuoteLines:
    """Lines, breaks and totals of one quote in three queries."""
    rows = list(quote.lines.prefetch_related("breaks", "promises").select_related("rfq_line"))
    offered = [row for row in rows if row.alternative_to is None]
    totals = quote.totals(offered)
    shown = {row.pk: amount for row, amount in zip(offered, totals.lines, strict=True)}
    sums: dict[str, list[Money]] = {}
    for row in offered:
        if row.bundle:
            sums.setdefault(row.bundle, []).append(shown[row.pk].net)
    return QuoteLines(
        [(row, shown.get(row.pk) or _aside(row, quote.currency)) for row in rows],
        [(name, total(parts, quote.currency)) for name, parts in sums.items()],
        totals,
    )


def _aside(row: QuoteLine, currency: str) -> LineTotal:
    """Of an alternative: its amount, which is in no sum."""
    return LineTotal(line_amount(row.quantity, row.unit_price, currency), None)
