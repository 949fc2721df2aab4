"""All cards of a delivery that burn in, as their samples show them: a constant number of queries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from procurement.models import BurnInRun, Delivery, LiveCard, LiveFeed
from procurement.outliers import outliers
from procurement.states import BurnInStatus

OPEN = (BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class LiveRow:
    """One card. `card` is None when no sample of it has come."""

    run: BurnInRun
    card: LiveCard | None
    silent_for: timedelta | None  # longer than allowed; None: not silent
    strange: tuple[str, ...]  # figures that differ from the batch

    @property
    def problems(self) -> dict[str, int]:
        found: dict[str, int] = self.card.worst.get("problems", {}) if self.card else {}
        return found

    @property
    def state(self) -> str:
        if self.card is None:
            return "none"
        if self.problems:
            return "problem"
        if self.silent_for is not None:
            return "silent"
        return "sealed" if self.card.sealed_id else "running"

    @property
    def share(self) -> float:
        """Of the required hours, at most 1. [1]"""
        if self.card is None or not self.run.required_seconds:
            return 0.0
        return min(1.0, self.card.seconds / self.run.required_seconds)


@dataclass(frozen=True, slots=True)
class LiveBoard:
    """Problems first, then silent cards, then those unlike their batch, then the rest by serial number."""

    feed: LiveFeed | None
    rows: tuple[LiveRow, ...]
    at: datetime

    def count(self, state: str) -> int:
        return sum(row.state == state for row in self.rows)

    @property
    def remaining(self) -> timedelta | None:
        """Until the last card has its hours, if nothing breaks; None while a card has sent nothing."""
        if not self.rows or any(row.card is None for row in self.rows):
            return None
        return max(row.card.remaining for row in self.rows if row.card)

    @property
    def strange(self) -> int:
        """Cards of which a figure differs from the batch."""
        return sum(bool(row.strange) for row in self.rows)

    @property
    def restarts(self) -> int:
        return sum(row.card.restarts for row in self.rows if row.card)


_ORDER = {"problem": 0, "silent": 1, "none": 3, "running": 4, "sealed": 5}
_STRANGE = 2
_COMPARED = ("temp_c", "power_w", "sm_mhz")


def live_board(delivery: Delivery, now: datetime) -> LiveBoard:
    """Every open run of `delivery` with its newest sample."""
    feed = LiveFeed.objects.filter(delivery=delivery).first()
    runs = list(
        BurnInRun.objects.filter(delivery=delivery, status__in=OPEN, required_seconds__gt=0)
        .select_related("asset__parent", "live")
        .order_by("asset__serial")
    )
    figures: dict[str, dict[int, float]] = {name: {} for name in _COMPARED}
    cards: dict[int, LiveCard] = {}
    for run in runs:
        card = getattr(run, "live", None)
        if card is None:
            continue
        cards[run.pk] = card
        card.run = run
        for name in _COMPARED:
            if name in card.figures:
                figures[name][run.pk] = card.figures[name]
    far = {name: outliers(values) for name, values in figures.items()}
    rows = []
    for run in runs:
        found = cards.get(run.pk)
        silence = now - found.last_at if found else None
        late = bool(found and feed and not found.sealed_id and found.is_silent(feed, now))
        strange = tuple(name for name in _COMPARED if run.pk in far[name])
        rows.append(LiveRow(run, found, silence if late else None, strange))
    rows.sort(key=lambda row: (_place(row), row.run.asset.serial))
    return LiveBoard(feed, tuple(rows), now)


def _place(row: LiveRow) -> int:
    place = _ORDER[row.state]
    return min(place, _STRANGE) if row.strange else place


def live_json(board: LiveBoard) -> dict[str, Any]:
    """The board for the API."""
    feed = board.feed
    return {
        "at": board.at.isoformat(),
        "interval_seconds": feed.interval_seconds if feed else None,
        "allowed_gap_seconds": int(feed.allowed_gap.total_seconds()) if feed else None,
        "samples": feed.samples if feed else 0,
        "last_push_at": feed.last_at.isoformat() if feed and feed.last_at else None,
        "unknown_devices": feed.unknown if feed else [],
        "remaining_seconds": int(board.remaining.total_seconds())
        if board.remaining is not None
        else None,
        "cards": [
            {
                "run": row.run.pk,
                "serial": row.run.asset.serial,
                "state": row.state,
                "since": row.card.since.isoformat() if row.card else None,
                "last_at": row.card.last_at.isoformat() if row.card else None,
                "seconds": row.card.seconds if row.card else 0,
                "required_seconds": row.run.required_seconds,
                "restarts": row.card.restarts if row.card else 0,
                "figures": row.card.figures if row.card else {},
                "worst": row.card.worst if row.card else {},
                "differs_in": list(row.strange),
            }
            for row in board.rows
        ],
    }
