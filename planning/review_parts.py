"""What a pack is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core import charts

DASH = "–"


@dataclass(frozen=True)
class Table:
    """A titled table of ready text. `columns` are (label, "" or "num").

    `source` is the list of the snapshot that it is drawn from; `wheres`, one for each row, say which of its rows:
    field and value.
    """

    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str | None, ...], ...]
    source: str = ""
    wheres: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Section:
    """One chapter: what it says in a sentence or two, then its charts and tables."""

    title: str
    sentences: tuple[str, ...] = ()
    charts: tuple[charts.Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    empty: str = ""
    sources: tuple[str, ...] = ()  # lists of the snapshot behind its figures
    behind: tuple[tuple[str, str, int], ...] = ()  # on the page: list, its address, its rows
