"""What is owned and free. The app that keeps the cards registers a source; without one nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date

from planning.models import Site
from planning.study.search.snapshot import IdleStock

Source = Callable[[date], Iterable[IdleStock]]
_sources: list[Source] = []


def register(source: Source) -> None:
    """Ask `source` for stock from now on; the same one twice counts once."""
    if source not in _sources:
        _sources.append(source)


def idle_stock(on: date) -> list[IdleStock]:
    """Accelerators that are owned, by kind and place, and how many of them are free on the day; the country of a place
    is that of the site of its name."""
    found = [stock for source in _sources for stock in source(on)]
    countries = dict(Site.objects.values_list("name", "country")) if found else {}
    return sorted(
        (replace(stock, country=countries.get(stock.name, "")) for stock in found),
        key=lambda stock: (stock.accelerator, stock.name),
    )


_utilisation: list[Callable[[date], float | None]] = []


def register_utilisation(source: Callable[[date], float | None]) -> None:
    """Ask `source` how busy owned accelerators are; the same one twice counts once."""
    if source not in _utilisation:
        _utilisation.append(source)


def owned_utilisation(on: date) -> float | None:
    """Mean utilisation of the accelerators owned already; None: nobody knows. Share"""
    known = [share for source in _utilisation if (share := source(on)) is not None]
    return sum(known) / len(known) if known else None
