"""Fiscal quarters: half-open spans of local dates, named by the year in which the fiscal year ends. Pure."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, datetime, time
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True, order=True)
class Quarter:
    """Quarter `q` (1-4) of fiscal year `year`; the fiscal year starts in month `start_month` (1-12).

    With a start in October, 2026-10-01 is in 2027Q1: the year is named after the one in which it ends.
    """

    year: int
    q: int
    start_month: int = 1

    def __post_init__(self) -> None:
        if self.q not in (1, 2, 3, 4):
            raise ValueError(f"quarter must be 1 to 4, got {self.q}")
        if not 1 <= self.start_month <= 12:
            raise ValueError(f"start_month must be 1 to 12, got {self.start_month}")

    @classmethod
    def of(cls, day: date, start_month: int = 1) -> Quarter:
        """The quarter in which the local date `day` lies."""
        months = (day.month - start_month) % 12
        year = day.year + (1 if start_month > 1 and day.month >= start_month else 0)
        return cls(year, months // 3 + 1, start_month)

    @classmethod
    def at(cls, instant: datetime, zone: ZoneInfo, start_month: int = 1) -> Quarter:
        """The quarter in which the aware `instant` lies in `zone`."""
        return cls.of(instant.astimezone(zone).date(), start_month)

    @classmethod
    def parse(cls, text: str, start_month: int = 1) -> Quarter:
        """From ``2027Q1``."""
        year, _, q = text.upper().partition("Q")
        return cls(int(year), int(q), start_month)

    @property
    def start(self) -> date:
        """First day."""
        months = self.start_month - 1 + (self.q - 1) * 3
        first_year = self.year - (1 if self.start_month > 1 else 0)
        return date(first_year + months // 12, months % 12 + 1, 1)

    @property
    def end(self) -> date:
        """First day after (half-open)."""
        return self.next().start

    def next(self) -> Quarter:
        return self.shift(1)

    def previous(self) -> Quarter:
        return self.shift(-1)

    def shift(self, quarters: int) -> Quarter:
        index = self.year * 4 + (self.q - 1) + quarters
        return Quarter(index // 4, index % 4 + 1, self.start_month)

    def span(self, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Aware instants [start, end) in `zone`."""
        return (
            datetime.combine(self.start, time.min, tzinfo=zone),
            datetime.combine(self.end, time.min, tzinfo=zone),
        )

    def __str__(self) -> str:
        return f"{self.year}Q{self.q}"


def months_later(day: date, months: int) -> date:
    """The same day `months` later (earlier when negative); the last one of a shorter month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
