"""What a pack is made of."""

from __future__ import annotations

from dataclasses import dataclass

from core import charts

DASH = "–"


@dataclass(frozen=True)
class Table:
    """A titled table of ready text. `columns` are (label, "" or "num")."""

    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True)
class Section:
    """One chapter: what it says in a sentence or two, then its charts and tables."""

    title: str
    sentences: tuple[str, ...] = ()
    charts: tuple[charts.Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    empty: str = ""
