"""What every chart shares: the result, the checks, the theme, the drawing and its cache."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime
from html import escape
from typing import Any

from django.core.cache import cache
from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString, mark_safe

from core.charts.slim import slim
from core.errors import InputError
from core.messages import msg
from core.palette import CATEGORICAL, GRID, INK, LABEL, LINE
from core.templatetags.ui import significant

Number = float | int | None
Cell = str | float | int | date | None
WIDTH = 500  # px of the plot; the page scales the drawing
FONT = "Liberation Sans, Arial, Noto Sans CJK SC, PingFang SC, Microsoft YaHei, sans-serif"
REVISION = 3  # part of the cache key: raise it when the theme below changes
KEEP_SECONDS = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing and what it shows. `rows` hold the plotted figures, one cell per column."""

    title: str
    description: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    drawn: Callable[[], str] = field(compare=False, repr=False)  # waits until the drawing is there

    @property
    def svg(self) -> str:
        return self.drawn()

    @property
    def drawing(self) -> SafeString:
        """The SVG for a template. Vega escapes every text that it writes."""
        return mark_safe(self.svg)  # noqa: S308 - made by vl-convert from escaped text

    @property
    def heads(self) -> list[tuple[str, str]]:
        """(label, "num" or "") per column, as components/table.html takes them."""
        return [
            (label, "num" if any(isinstance(row[i], int | float) for row in self.rows) else "")
            for i, label in enumerate(self.columns)
        ]

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text, numbers at four significant digits."""
        return [[_text(value) for value in row] for row in self.rows]


def _text(value: Cell) -> str:
    if value is None:
        return "–"
    if isinstance(value, date):
        return date_format(value, "SHORT_DATE_FORMAT")
    if isinstance(value, str):
        return value
    if float(value).is_integer():
        return number_format(int(value), force_grouping=True)
    return significant(value, 4)


def checked(rows: Iterable[Sequence[Any]]) -> tuple[tuple[Cell, ...], ...]:
    """The rows as tuples; raises InputError when there are none, or a number is not finite."""
    kept = tuple(tuple(row) for row in rows)
    if not kept:
        raise InputError("rows", msg("A chart needs at least one row"), value=0, limit=1)
    for row in kept:
        for value in row:
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(
                    "rows", msg("A chart cannot show %(value)s", value=str(value)), value=value
                )
    return kept


def day(value: Cell) -> Cell:
    """Dates as the text that Vega reads as UTC; other values as they are."""
    if isinstance(value, datetime):
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else value


def records(rows: Iterable[Sequence[Cell]], *names: str) -> Any:
    """Rows as inline data with named fields."""
    return inline([{n: day(v) for n, v in zip(names, row, strict=True)} for row in rows])


# The data of the declaration in progress, by name. Altair copies and checks what it holds, many times over; it does
# not need to hold the figures.
_data: ContextVar[dict[str, list[dict[str, Any]]]] = ContextVar("chart_data")


def inline(values: list[dict[str, Any]]) -> Any:
    """Data that goes into the drawing with the declaration."""
    import altair as alt

    data = _data.get()
    name = f"rows-{len(data)}"
    data[name] = values
    return alt.NamedData(name=name)


def _theme() -> dict[str, Any]:
    quiet = {
        "labelColor": LABEL,
        "titleColor": LABEL,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    }
    return {
        "aria": False,  # the drawing as a whole is one image with one label; its parts would speak English
        "background": None,
        "padding": {"left": 16, "right": 12, "top": 5, "bottom": 5},  # fonts here and in a browser differ in width
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **quiet, "grid": False, "domainColor": LINE, "tickColor": LINE, "gridColor": GRID, "titlePadding": 8,
            "labelLimit": 220,
        },
        "axisQuantitative": {"grid": True, "domain": False, "ticks": False, "tickCount": 6},
        "axisTemporal": {"grid": True, "domain": False},
        "axisXPoint": {"labelOverlap": "greedy"},
        "axisXBand": {"labelOverlap": "greedy"},
        "legend": {**quiet, "orient": "top", "title": None, "symbolType": "square", "symbolStrokeWidth": 0,
            "symbolOpacity": 1, "labelLimit": 200},
        "range": {"category": list(CATEGORICAL)},
        "bar": {"color": CATEGORICAL[0]},
        "line": {"strokeWidth": 2},
        "text": {"color": INK, "fontSize": 12},
        "rule": {"color": INK},
        "point": {"filled": True, "size": 60},
    }  # fmt: skip


def draw(
    kind: str,
    *,
    title: str,
    description: str,
    columns: Sequence[str],
    rows: tuple[tuple[Cell, ...], ...],
    build: Callable[[], Any],
    **options: object,
) -> Chart:
    """The chart, from the cache when the same one was drawn before; else drawn beside what the caller does next."""
    content = json.dumps(
        [REVISION, kind, [str(c) for c in columns], rows, title, description, options],
        ensure_ascii=False,
        default=str,
        sort_keys=True,
    )
    key = f"chart:{hashlib.sha256(content.encode()).hexdigest()}"
    kept: str | None = cache.get(key)
    if kept is not None:
        drawn: Callable[[], str] = lambda: kept  # noqa: E731
    else:
        spec, label = _declared(build), f"{title}. {description}".strip()
        drawn = _drawer(os.getpid()).submit(_draw, key, spec, label).result
    return Chart(str(title), str(description), tuple(str(c) for c in columns), rows, drawn)


@functools.cache
def _drawer(_process: int) -> ThreadPoolExecutor:
    """One thread: Vega's engine draws one chart at a time, and leaves the interpreter to others meanwhile.

    By process, because a thread does not survive a fork."""
    return ThreadPoolExecutor(1, thread_name_prefix="charts")


def _declared(build: Callable[[], Any]) -> dict[str, Any]:
    """The declaration as Vega-Lite, with its figures. Unchecked: it is our code, and the tests draw every kind."""
    from altair.utils import schemapi

    data: dict[str, list[dict[str, Any]]] = {}
    token = _data.set(data)
    try:
        with schemapi.debug_mode(False):
            spec: dict[str, Any] = build().to_dict(validate=False)
    finally:
        _data.reset(token)
    return {**spec, "datasets": data, "config": _theme()}


def _draw(key: str, spec: dict[str, Any], label: str) -> str:
    import vl_convert

    svg = slim(vl_convert.vegalite_to_svg(spec))
    # The title is the drawing's name for a screen reader and the alternative text in a tagged PDF.
    opening, rest = svg.split(">", 1)
    svg = f'<svg role="img"{opening.removeprefix("<svg")}><title>{escape(label)}</title>{rest}'
    cache.set(key, svg, KEEP_SECONDS)
    return svg


def number_format_of(values: Iterable[Cell]) -> str:
    """Axis number format: SI prefixes from ten thousand on."""
    largest = max((abs(v) for v in values if isinstance(v, int | float)), default=0)
    return "~s" if largest >= 10_000 else ",~r"


def in_order(values: Iterable[Cell]) -> list[Any]:
    return list(dict.fromkeys(day(v) for v in values))


def x_channel(alt: Any, values: Sequence[Cell], *, title: str, log_x: bool) -> Any:
    """The shared x channel: dates, numbers, or (text) categories in the order given."""
    if any(isinstance(v, date) for v in values):
        return alt.X(
            "x:T",
            title=title,
            scale=alt.Scale(type="utc"),
            axis=alt.Axis(format="%Y-%m-%d", labelOverlap=True),
        )
    if any(isinstance(v, str) for v in values):
        return alt.X(
            "x:N",
            sort=in_order(values),
            title=title,
            axis=alt.Axis(labelAngle=0),
            scale=alt.Scale(),
        )
    scale = alt.Scale(type="log") if log_x else alt.Scale(zero=False)
    return alt.X("x:Q", title=title, scale=scale, axis=alt.Axis(format=number_format_of(values)))  # fmt: skip


def require_positive(values: Iterable[Cell], axis: str) -> None:
    for value in values:
        if isinstance(value, int | float) and value <= 0:
            raise InputError(
                axis,
                msg("A logarithmic axis needs values above 0, got %(value)s", value=value),
                value=value,
                limit="> 0",
            )


def as_number(value: Cell) -> float:
    if not isinstance(value, int | float):
        raise InputError(
            "rows", msg("A chart cannot show %(value)s", value=str(value)), value=value
        )
    return float(value)
