"""Cards by day: what there is against what is wanted. Pure: values in, values out.

All spans have both ends included; a `last` of None is open. Probabilities weigh what is asked for and not decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby, pairwise

OWNED, RESERVED, ON_ORDER = "owned", "reserved", "on_order"
RUNNING, APPROVED, REQUESTED = "running", "approved", "requested"
# Kept back for repair and upgrades, of what stands. [1]
MAINTENANCE = 0.05


@dataclass(frozen=True, slots=True)
class Supply:
    """Cards that are or will be there. `first` None: nobody knows when, so they count on no day."""

    accelerator: str
    cards: int
    kind: str
    first: date | None
    last: date | None = None
    label: str = ""
    late: bool = False  # the promised day is past
    place: str = ""  # site or region; "": nobody told


@dataclass(frozen=True, slots=True)
class Demand:
    """Cards that are held or wanted, and how likely. [1]"""

    accelerator: str
    cards: int
    kind: str
    first: date
    last: date | None
    probability: float = 1.0
    label: str = ""
    team: str = ""
    place: str = ""  # site or region; "": nobody told


@dataclass(frozen=True, slots=True)
class Month:
    """One month of a pool: the least supply, and means and peaks of demand. Cards."""

    first: date
    owned: int
    reserved: int
    on_order: int
    buffer: int
    running: float  # mean
    approved: float
    requested: float  # weighed
    peak: float  # highest day of running + approved + weighed requests
    sure_peak: int  # highest day of running + approved

    @property
    def usable(self) -> int:
        """Least cards on any day of the month, after the maintenance buffer."""
        return self.owned + self.reserved + self.on_order - self.buffer

    @property
    def mean(self) -> float:
        return self.running + self.approved + self.requested

    @property
    def short(self) -> int:
        """Cards missing on the worst day; 0 where it suffices."""
        return max(math.ceil(self.peak - self.usable - 1e-9), 0)


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive days on which more is wanted than there is."""

    first: date
    last: date
    missing: int  # on the worst day
    sure: bool  # already without what is only requested
    order_by: (
        date | None
    )  # the last day on which an order would still arrive; None: no lead time is known


@dataclass(frozen=True, slots=True)
class Pool:
    """One accelerator over the months."""

    accelerator: str
    months: tuple[Month, ...]
    windows: tuple[Window, ...]
    supply: tuple[Supply, ...]
    demand: tuple[Demand, ...]
    expiring: tuple[Supply, ...]  # end within the horizon
    undated: int  # cards on order of which nobody knows when they come
    lead_days: int | None


def daily(
    spans: Iterable[tuple[date | None, date | None, float]], first: date, days: int
) -> list[float]:
    """Sum of the spans on each day from `first` on."""
    steps = [0.0] * (days + 1)
    for start, last, value in spans:
        if start is None:
            continue
        begin = max((start - first).days, 0)
        end = days if last is None else min((last - first).days + 1, days)
        if begin < end:
            steps[begin] += value
            steps[end] -= value
    found, running = [], 0.0
    for step in steps[:days]:
        running += step
        found.append(running)
    return found


def maintenance(cards: float) -> int:
    """Cards of `cards` that are kept back."""
    return math.ceil(cards * MAINTENANCE)


def month_starts(first: date, months: int) -> list[date]:
    """First days of `months` months from the month of `first`, and of the one after."""
    index = first.year * 12 + first.month - 1
    return [date((index + n) // 12, (index + n) % 12 + 1, 1) for n in range(months + 1)]


def pool(
    accelerator: str,
    supply: Sequence[Supply],
    demand: Sequence[Demand],
    *,
    first: date,
    months: int,
    lead_days: int | None,
) -> Pool:
    """The pool from the month of `first` on. Days before `first` do not count."""
    starts = month_starts(first, months)
    days = (starts[-1] - first).days
    by_kind = {
        kind: daily(((s.first, s.last, s.cards) for s in supply if s.kind == kind), first, days)
        for kind in (OWNED, RESERVED, ON_ORDER)
    }
    wanted = {
        kind: daily(
            ((d.first, d.last, d.cards * d.probability) for d in demand if d.kind == kind),
            first,
            days,
        )
        for kind in (RUNNING, APPROVED, REQUESTED)
    }
    usable = []
    for day in range(days):
        cards = sum(values[day] for values in by_kind.values())
        usable.append(cards - maintenance(cards))
    sure = [wanted[RUNNING][day] + wanted[APPROVED][day] for day in range(days)]
    total = [sure[day] + wanted[REQUESTED][day] for day in range(days)]
    rows = []
    for start, following in pairwise(starts):
        span = range(max((start - first).days, 0), (following - first).days)
        worst = min(span, key=lambda day: usable[day])
        owned, reserved, coming = (
            int(by_kind[kind][worst]) for kind in (OWNED, RESERVED, ON_ORDER)
        )
        rows.append(
            Month(
                first=start,
                owned=owned,
                reserved=reserved,
                on_order=coming,
                buffer=maintenance(owned + reserved + coming),
                **{
                    kind: sum(values[day] for day in span) / len(span)
                    for kind, values in wanted.items()
                },
                peak=max(total[day] for day in span),
                sure_peak=round(max(sure[day] for day in span)),
            )
        )
    horizon = first + timedelta(days=days)
    return Pool(
        accelerator=accelerator,
        months=tuple(rows),
        windows=tuple(_windows(first, usable, sure, total, lead_days)),
        supply=tuple(supply),
        demand=tuple(demand),
        expiring=tuple(
            sorted(
                (s for s in supply if s.last is not None and first <= s.last < horizon),
                key=lambda s: s.last or horizon,
            )
        ),
        undated=sum(s.cards for s in supply if s.first is None),
        lead_days=lead_days,
    )


def _windows(
    first: date,
    usable: Sequence[float],
    sure: Sequence[float],
    total: Sequence[float],
    lead_days: int | None,
) -> Iterable[Window]:
    short = [total[day] > usable[day] + 1e-9 for day in range(len(usable))]
    for is_short, group in groupby(range(len(usable)), key=lambda day: short[day]):
        span = list(group)
        if not is_short:
            continue
        begin = first + timedelta(days=span[0])
        yield Window(
            first=begin,
            last=first + timedelta(days=span[-1]),
            missing=math.ceil(max(total[day] - usable[day] for day in span) - 1e-9),
            sure=any(sure[day] > usable[day] + 1e-9 for day in span),
            order_by=None if lead_days is None else begin - timedelta(days=lead_days),
        )
