"""What capacity there is and will be. The app that keeps orders and cards registers sources of values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date

from planning.capacity import Supply

Source = Callable[[date], Iterable[Supply]]
Lead = Callable[[str], int | None]
Bound = Callable[[Collection[int]], Mapping[tuple[int, str], int]]
_sources: list[Source] = []
_leads: list[Lead] = []
_bound: list[Bound] = []


def register(source: Source) -> None:
    """Ask `source` for cards that stand or are on order; the same one twice counts once."""
    if source not in _sources:
        _sources.append(source)


def register_lead(source: Lead) -> None:
    """Ask `source` how many days an order of an accelerator took; the same one twice counts once."""
    if source not in _leads:
        _leads.append(source)


def register_bound(source: Bound) -> None:
    """Ask `source` which cards are bought for requests already; the same one twice counts once."""
    if source not in _bound:
        _bound.append(source)


def bound_cards(requests: Collection[int]) -> Mapping[tuple[int, str], int]:
    """Cards on order or accepted for each request, by its id and the accelerator."""
    found: Counter[tuple[int, str]] = Counter()
    for source in _bound if requests else ():
        found.update(source(requests))
    return found


def card_supply(on: date) -> list[Supply]:
    """Cards in service and on order, as known on the day."""
    return [supply for source in _sources for supply in source(on)]


def lead_days(accelerator: str) -> int | None:
    """Days from order to service; None: nobody knows."""
    known = [days for source in _leads if (days := source(accelerator)) is not None]
    return max(known, default=None)
