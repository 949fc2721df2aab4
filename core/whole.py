"""Whole numbers as forms and addresses send them."""

from __future__ import annotations

from collections.abc import Iterable

MOST_DIGITS = 18  # what a 64-bit integer of the database holds


def whole(raw: str) -> int | None:
    """A whole number as a form sent it; None for anything else, also for more digits than a key can have."""
    return int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= MOST_DIGITS else None


def wholes(raws: Iterable[str]) -> list[int]:
    """Those of `raws` that are whole numbers, in order."""
    return [number for raw in raws if (number := whole(raw)) is not None]
