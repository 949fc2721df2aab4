"""How many days deliveries slip, and what that does to a promised day. Pure: standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

MIN_POINTS = 5  # fewer deliveries tell no quantile
LIKELY, CAUTIOUS = 0.5, 0.9


@dataclass(frozen=True, slots=True)
class Slips:
    """Days from the promised day to the arrival; below 0 is early.

    `open` of them are orders still to come: for these the days are a least.
    """

    days: tuple[int, ...]
    open: int = 0

    @property
    def points(self) -> int:
        return len(self.days)

    @property
    def is_enough(self) -> bool:
        return self.points >= MIN_POINTS

    def at(self, share: float) -> int:
        """The least slip that `share` of the deliveries did not pass (nearest rank). [d]"""
        ordered = sorted(self.days)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True, slots=True)
class Forecast:
    """When goods promised for `due` will come by what came before; no quantile below MIN_POINTS."""

    due: date
    basis: str  # vendor_model, vendor, model, or none
    slips: Slips
    likely: date | None  # half came by then
    cautious: date | None  # nine of ten came by then

    def late_days(self, need_by: date) -> tuple[int, int | None, int | None]:
        """Days after `need_by` as promised, likely and cautious; 0 and below: in time."""
        return (
            (self.due - need_by).days,
            None if self.likely is None else (self.likely - need_by).days,
            None if self.cautious is None else (self.cautious - need_by).days,
        )


def forecast(due: date, choices: Sequence[tuple[str, Slips]], today: date) -> Forecast:
    """The forecast by the first of `choices` (basis and slips, the nearest first) that has enough points.

    What has not come by now comes tomorrow at the earliest.
    """
    for basis, slips in choices:
        if slips.is_enough:
            soonest = today + timedelta(days=1)
            likely = max(due + timedelta(days=slips.at(LIKELY)), soonest)
            cautious = max(due + timedelta(days=slips.at(CAUTIOUS)), likely)
            return Forecast(due, basis, slips, likely, cautious)
    most = max((slips for _basis, slips in choices), key=lambda one: one.points, default=Slips(()))
    return Forecast(due, "none", most, None, None)
