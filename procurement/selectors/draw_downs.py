"""Cloud commitments of an order: months drawn, what is left, and how long it lasts at this pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from procurement.models import DrawDown
from procurement.models.quotes import LineKind
from procurement.selectors.progress import LineProgress


@dataclass(frozen=True, slots=True)
class Commitment:
    """One cloud line, in its unit."""

    row: LineProgress
    draws: list[DrawDown]

    @property
    def left(self) -> Decimal:
        return self.row.open

    @property
    def months_left(self) -> Decimal | None:
        """At the mean of the months drawn; None before the first."""
        if not self.draws:
            return None
        mean = sum((draw.quantity for draw in self.draws), Decimal(0)) / len(self.draws)
        return (self.left / mean).quantize(Decimal("0.1"))

    def to_json(self) -> dict[str, Any]:
        return {
            "position": self.row.line.position,
            "unit": self.row.line.unit,
            "committed": f"{self.row.ordered:.3f}",
            "drawn": f"{self.row.received:.3f}",
            "left": f"{self.left:.3f}",
            "months_left": None if self.months_left is None else str(self.months_left),
            "months": [
                {"month": draw.month.strftime("%Y-%m"), "quantity": f"{draw.quantity:.3f}"}
                for draw in self.draws
            ],
        }


def commitments(progress: Iterable[LineProgress]) -> list[Commitment]:
    """Cloud lines among `progress`, in one query."""
    rows = [row for row in progress if row.line.kind == LineKind.CLOUD]
    if not rows:
        return []
    draws: dict[int, list[DrawDown]] = {}
    for draw in DrawDown.objects.filter(order_line__in=[row.line.pk for row in rows]):
        draws.setdefault(draw.order_line_id, []).append(draw)
    return [Commitment(row, draws.get(row.line.pk, [])) for row in rows]
