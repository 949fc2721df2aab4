"""A criterion of throughput answered by what the vendor promised on its lines: same benchmark, same unit. Pure.

A figure of all is the sum over the lines, one of a card or server the lowest of theirs; a line that promises nothing
leaves the criterion open. A server's figure is its cards' together only where the benchmark's figures add up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from procurement.per import Per
from procurement.promises import BENCHMARKS, benchmark_of, in_unit
from procurement.requirements import PLACES, Required, RequirementKind

OWN_NAME = ("other", "mlperf")  # told apart by the vendor's words


@dataclass(frozen=True, slots=True)
class Promised:
    """One promised figure of a line."""

    benchmark: str  # slug
    name: str  # as the vendor calls it
    value: Decimal
    unit: str
    per: Per


@dataclass(frozen=True, slots=True)
class PromisingLine:
    """A line of a quote that answers one of the RFQ (`position`), with what it promises."""

    position: int
    items: Decimal
    cards_per_item: int
    is_server: bool
    promises: tuple[Promised, ...]


def promised_value(asked: Required, lines: Iterable[PromisingLine]) -> Decimal | None:
    """The promised figure of what the criterion asks, in its unit; None where it is not promised of every line."""
    if asked.kind != RequirementKind.THROUGHPUT:
        return None
    found = [
        _of_line(asked, line) for line in lines if not asked.lines or line.position in asked.lines
    ]
    known = [value for value in found if value is not None]
    if not known or len(known) != len(found):
        return None
    value = sum(known, Decimal(0)) if asked.per == Per.WHOLE else min(known)
    return value.quantize(PLACES, rounding=ROUND_FLOOR)


def _of_line(asked: Required, line: PromisingLine) -> Decimal | None:
    same = [row for row in line.promises if _is_same(asked.benchmark, row)]
    for row in sorted(
        same, key=lambda row: row.per != asked.per
    ):  # its own figure before one that is worked out
        value = in_unit(row.value, row.unit, asked.unit)
        if value is None:
            continue
        told = _as_asked(value, row, asked.per, line)
        if told is not None:
            return told
    return None


def _as_asked(value: Decimal, row: Promised, wanted: Per, line: PromisingLine) -> Decimal | None:
    cards = line.cards_per_item
    if row.per == wanted:
        return value
    if not BENCHMARKS[row.benchmark].adds_up or not cards:
        return None
    if wanted == Per.WHOLE:
        return value * line.items * (cards if row.per == Per.CARD else 1)
    if wanted == Per.CARD:
        return value / cards
    return value * cards if line.is_server else None


def _is_same(asked: str, row: Promised) -> bool:
    slug = benchmark_of(asked)
    if slug not in OWN_NAME:
        return slug == row.benchmark
    return bool(row.name) and _folded(asked) == _folded(row.name)


def _folded(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())
