"""How much the ranking of a comparison hangs on its weights, in words and figures for page, API and memo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from procurement.models.rfqs import CriterionKind
from procurement.selectors.comparison import Comparison, Row
from procurement.sensitivity import Sensitivity, WeightRange, sensitivity

COLOURS = ("#2f6f4f", "#9aa3b2")  # of the winner, of the others


@dataclass(frozen=True, slots=True)
class RankingSensitivity:
    """The pure result with the rows it is about."""

    found: Sensitivity
    rows: tuple[Row, ...]

    @property
    def winner(self) -> Row:
        return self.rows[0]

    @property
    def ranges(self) -> list[tuple[str, WeightRange]]:
        return [(str(CriterionKind(row.criterion).label), row) for row in self.found.ranges]

    @property
    def meters(self) -> list[dict[str, Any]]:
        """Rows for components/meters.html, largest share first."""
        pairs = sorted(zip(self.rows, self.found.wins, strict=True), key=lambda pair: -pair[1])
        return [
            {
                "label": row.quote.vendor.name,
                "text": f"{share * 100:.0f} %",
                "width": round(share * 100, 1),
                "color": COLOURS[0] if row.rank == 1 else COLOURS[1],
            }
            for row, share in pairs
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "winner": self.winner.quote.vendor.name,
            "ranges": [
                {
                    "criterion": row.criterion,
                    "weight": row.weight,
                    "from": f"{row.low:.1f}",
                    "to": f"{row.high:.1f}",
                }
                for row in self.found.ranges
            ],
            "weightings": self.found.weightings,
            "step": self.found.step,
            "shares": [
                {"vendor": row.quote.vendor.name, "share": f"{share:.4f}"}
                for row, share in zip(self.rows, self.found.wins, strict=True)
            ],
        }


def ranking_sensitivity(comparison: Comparison) -> RankingSensitivity | None:
    """None where fewer than two complete quotes, or criteria, are ranked."""
    rows = tuple(row for row in comparison.rows if row.rank is not None)
    scores = [{str(kind): float(score) for kind, score in row.scores.items()} for row in rows]
    found = sensitivity(scores, comparison.weights, 0)
    return None if found is None else RankingSensitivity(found, rows)
