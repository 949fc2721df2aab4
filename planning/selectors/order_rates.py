"""What was ordered and spent at the rates at which it was ordered: a rate that moves is no more ordered.

Re-valuation brings what is bound to the rate of a day. Whatever is measured against an approval or an order leaves that
out, also of what is cut, paid or carried later: it takes its share of the re-valuation along.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from planning.models.budgets import Bucket, EntryKind, LedgerEntry

ZERO = Decimal(0)


@dataclass(slots=True)
class _Stood:
    amount: Decimal = ZERO
    ordered: Decimal = ZERO  # without what rates moved


def at_order_rates(entries: Iterable[LedgerEntry]) -> list[tuple[LedgerEntry, Decimal]]:
    """Each entry of the bound sums and of what was spent, re-valuations aside, with its amount as if nothing had been
    re-valued; in its budget's currency, not rounded. Give all such entries of a request."""
    stood: dict[tuple[int, int | None, str], _Stood] = defaultdict(_Stood)
    moved: dict[tuple[int | None, str, int], Decimal] = defaultdict(Decimal)  # taken along
    carried: dict[tuple[int | None, str, str], Decimal] = {}
    found: dict[int, Decimal] = {}
    out = []
    for row in sorted(entries, key=lambda entry: entry.pk):
        at = stood[row.budget_id, row.request_id, row.bucket]
        if row.kind == EntryKind.REVALUED:
            at.amount += row.amount
            continue
        document = (row.request_id, row.source, row.revision)
        leg = (row.request_id, row.source, row.bucket)
        if row.kind == EntryKind.REVERSED and row.reverses_id in found:
            ordered = -found[row.reverses_id]
        elif row.bucket == Bucket.ACTUAL:
            ordered = row.amount - moved.pop(document, ZERO)
        elif row.amount < 0 and at.amount > 0:
            ordered = row.amount * at.ordered / at.amount
            if row.kind == EntryKind.CARRIED:
                carried[leg] = -ordered
            else:
                moved[document] += ordered - row.amount
        elif row.kind == EntryKind.CARRIED and leg in carried:
            ordered = carried.pop(leg)
        else:
            ordered = row.amount
        at.amount += row.amount
        at.ordered += ordered
        found[row.pk] = ordered
        out.append((row, ordered))
    return out
