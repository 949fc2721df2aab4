"""When the tools in an evidence file ran, as far as it says, and what speaks against that. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from core.messages import Message, msg
from procurement.evidence.stamps import locale_stamp
from procurement.evidence.types import Evidence

# Most logs name no zone: a moment in them is anywhere within this of the same figures in UTC.
ZONE = timedelta(hours=14)
_FIRST = ("first_summary_at", "first", "timestamp")
_LAST = ("last_summary_at", "last", "timestamp")


def last_moment(evidence: Evidence) -> datetime | None:
    """The latest moment that the file shows, taken for UTC where it names no zone; None when it shows none."""
    return max(_moments(evidence.metrics, _LAST), default=None)


def first_moment(evidence: Evidence) -> datetime | None:
    """The earliest moment that the file shows; None when it shows none."""
    return min(_moments(evidence.metrics, _FIRST), default=None)


def time_doubts(evidence: Evidence, *, arrived_on: date | None, now: datetime) -> list[Message]:
    """Why the file cannot speak of units that arrived on `arrived_on`: it ended before, or lies in the future."""
    last = last_moment(evidence)
    if last is None:
        return []
    shown = last.date().isoformat()
    if arrived_on is not None and (last + ZONE).date() < arrived_on:
        return [
            msg(
                "The log ends on %(ended)s, before the delivery arrived on %(arrived)s: it proves nothing about it",
                ended=shown,
                arrived=arrived_on.isoformat(),
            )
        ]
    if last - ZONE > now:
        return [msg("The log ends on %(ended)s, which has not come yet", ended=shown)]
    return []


def seconds_since_arrival(
    evidence: Evidence, *, arrived_at: datetime | None, until: datetime
) -> int | None:
    """How long units that arrived at `arrived_at` can have run at most when the log ended, or was uploaded (`until`).

    None when the arrival is not known. [s]
    """
    if arrived_at is None:
        return None
    last = last_moment(evidence)
    end = until if last is None else min(last + ZONE, until)
    return max(int((end - arrived_at).total_seconds()), 0)


def _moments(metrics: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[datetime]:
    for name in names:
        moment = _moment(metrics.get(name))
        if moment:
            yield moment
            return
    for part in metrics.values():  # of a file with several hosts: one mapping each
        if isinstance(part, Mapping):
            yield from _moments(part, names)


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        stamp = locale_stamp(value)
        if stamp is None:
            return None
        found = stamp.moment
    return found if found.tzinfo else found.replace(tzinfo=UTC)
