"""What stands in a budget for documents in another currency, and at which rate it stands there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import F

from planning.models.budgets import Bucket, EntryKind, LedgerEntry

ZERO = Decimal(0)
BUCKETS = (Bucket.APPROVED, Bucket.COMMITTED)


@dataclass(frozen=True, slots=True)
class Exposure:
    """What is bound for one request in one sum of one budget, of documents in one other currency."""

    budget_id: int
    request_id: int
    bucket: str
    currency: str  # of the documents
    original: Decimal  # still bound, in it
    amount: Decimal  # what stands for it, in the budget's currency


@dataclass(slots=True)
class _Part:
    original: Decimal = ZERO
    amount: Decimal = ZERO


def exposures(entries: Iterable[LedgerEntry]) -> list[Exposure]:
    """From entries of the bound sums and of what was spent, with their budgets.

    What a payment in the same currency took back, took back its own amount of it; anything else takes back its share
    of all that stands. Parts at or below zero are left out.
    """
    books: dict[tuple[int, int, str], dict[str, _Part]] = defaultdict(lambda: defaultdict(_Part))
    taken: dict[int, dict[str, _Part]] = {}
    rows = sorted(entries, key=lambda entry: entry.pk)
    paid = {
        (row.request_id, row.source, row.revision): (row.original_currency, row.original_amount, row.amount)
        for row in rows
        if row.bucket == Bucket.ACTUAL and row.kind == EntryKind.ACTUAL
    }  # fmt: skip
    for row in rows:
        if row.bucket not in BUCKETS or row.request_id is None:
            continue
        parts = books[row.budget_id, row.request_id, row.bucket]
        if row.kind == EntryKind.REVALUED:
            parts[row.original_currency].amount += row.amount
        elif row.kind == EntryKind.REVERSED and row.reverses_id in taken:
            for currency, part in taken[row.reverses_id].items():
                parts[currency].original += part.original
                parts[currency].amount += part.amount
        elif row.amount < 0 and row.original_currency == row.budget.currency:
            taken[row.pk] = _take(parts, row, paid.get((row.request_id, row.source, row.revision)))
        elif row.original_currency != row.budget.currency:
            parts[row.original_currency].original += row.original_amount
            parts[row.original_currency].amount += row.amount
        else:
            parts[row.budget.currency].amount += row.amount
    return [
        Exposure(*key, currency, part.original, part.amount)
        for key, parts in books.items()
        for currency, part in parts.items()
        if part.original > 0 and part.amount > 0
    ]


def _take(
    parts: dict[str, _Part], row: LedgerEntry, paid: tuple[str, Decimal, Decimal] | None
) -> dict[str, _Part]:
    """Take `row` (negative) out of the parts; returns what was taken of each."""
    out: dict[str, _Part] = {}
    rest = -row.amount
    if paid is not None and paid[0] in parts and paid[0] != row.budget.currency and paid[2]:
        part = parts[paid[0]]
        amount = min(rest, part.amount)
        original = min(paid[1] * rest / paid[2], part.original)
        out[paid[0]] = _Part(original, amount)
        part.original -= original
        part.amount -= amount
        rest -= amount
    whole = sum((part.amount for part in parts.values()), ZERO)
    if rest > 0 and whole > 0:
        share = min(rest / whole, Decimal(1))
        for currency, part in parts.items():
            taken = _Part(part.original * share, part.amount * share)
            part.original -= taken.original
            part.amount -= taken.amount
            before = out.get(currency, _Part())
            out[currency] = _Part(before.original + taken.original, before.amount + taken.amount)
    return out


def open_exposures(request_id: int | None = None) -> list[Exposure]:
    """Of all open budgets, or of one request. One query.

    What stands in an open budget follows from the whole life of its request: a payment or a mistake in a quarter that
    is closed since may have changed it. What is told is of open budgets alone.
    """
    rows = LedgerEntry.objects.filter(
        request__isnull=False, bucket__in=[*BUCKETS, Bucket.ACTUAL]
    ).select_related("budget")
    if request_id is not None:
        rows = rows.filter(request=request_id)
    else:
        foreign = LedgerEntry.objects.exclude(original_currency=F("budget__currency")).filter(
            bucket__in=BUCKETS, request__isnull=False, budget__closed_at=None
        )
        rows = rows.filter(request__in=foreign.values("request"))
    entries = list(rows)
    closed = {row.budget_id for row in entries if row.budget.closed_at is not None}
    return [row for row in exposures(entries) if row.budget_id not in closed]
