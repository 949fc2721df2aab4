"""The calibration in force, and what the outcomes say about estimates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.db import OperationalError, ProgrammingError

from planning.calibration.shrinkage import Factor
from planning.models.calibration import CalibrationVersion, MeasuredOutcome


def in_force() -> CalibrationVersion | None:
    """The version that estimates use; None also without a database."""
    try:
        return CalibrationVersion.objects.filter(active=True).first()
    except (OperationalError, ProgrammingError):
        return None


def factor_for(version: CalibrationVersion, accelerator: str, work: str) -> Factor:
    """The factor of a cell; what all cells share where it has no outcomes."""
    for row in version.cells():
        if (row["accelerator"], row["work"]) == (accelerator, work):
            return factor_of(row)
    return factor_of(version.result["elsewhere"])


def factor_of(row: dict[str, Any]) -> Factor:
    """A stored factor."""
    return Factor(row["factor"], row["low"], row["high"], int(row["outcomes"]))


@dataclass(frozen=True, slots=True)
class Score:
    """How well estimates of one class did. Shares."""

    work: str
    month: str  # 2026-11; empty: all
    outcomes: int
    median_error: float
    within: float | None  # of those with a band, the share between P10 and P90
    banded: int


def scores(outcomes: Iterable[MeasuredOutcome]) -> list[Score]:
    """By class of work: all months, then each month."""
    groups: dict[tuple[str, str], list[MeasuredOutcome]] = defaultdict(list)
    for row in outcomes:
        work = row.work or row.kind
        groups[work, ""].append(row)
        groups[work, f"{row.measured_at:%Y-%m}"].append(row)
    found = []
    for (work, month), rows in sorted(groups.items()):
        banded = [row.within for row in rows if row.within is not None]
        found.append(
            Score(
                work, month, len(rows),
                median(abs(row.measured / row.estimated - 1) for row in rows),
                sum(banded) / len(banded) if banded else None, len(banded),
            )
        )  # fmt: skip
    return found
