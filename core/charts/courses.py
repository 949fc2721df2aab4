"""Charts over time, load or a calendar: lines with bands, stacked areas, a gantt."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

from core.charts.drawing import (
    WIDTH,
    Chart,
    Number,
    checked,
    day,
    draw,
    in_order,
    inline,
    number_format_of,
    records,
    require_positive,
    x_channel,
)
from core.errors import InputError
from core.messages import msg
from core.palette import LABEL


def lines(
    *,
    title: str,
    description: str = "",
    labels: tuple[str, str, str],
    rows: Iterable[tuple[date | str | float, str, Number, Number, Number]],
    band_labels: tuple[str, str] = ("P10", "P90"),
    limit: float | None = None,
    limit_label: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> Chart:
    """Lines with bands. Rows are (x, series, y, low, high); low and high may be None. `limit` draws a dashed rule."""
    kept = checked(rows)
    if log_y:
        require_positive([v for row in kept for v in row[2:]], "log_y")
    if log_x:
        require_positive([row[0] for row in kept], "log_x")

    def build() -> Any:
        import altair as alt

        data = records(kept, "x", "series", "y", "low", "high")
        series = in_order(row[1] for row in kept)
        x = x_channel(alt, [row[0] for row in kept], title=labels[0], log_x=log_x)
        figures = [v for row in kept for v in row[2:]] + [limit]
        y_scale = alt.Scale(type="log") if log_y else alt.Scale(zero=True)
        y_axis = alt.Axis(format=number_format_of(figures))
        color = alt.Color(
            "series:N",
            sort=series,
            legend=alt.Legend() if len(series) > 1 else None,
        )
        y = alt.Y("y:Q", title=labels[2], scale=y_scale, axis=y_axis)
        base = alt.Chart(data)
        layers: list[Any] = []
        if any(row[3] is not None and row[4] is not None for row in kept):
            layers.append(
                base.mark_area(opacity=0.16).encode(
                    x=x,
                    y=alt.Y("low:Q", title=labels[2], scale=y_scale, axis=y_axis),
                    y2="high:Q",
                    color=color,
                )
            )
        # A layer per mark: the line breaks at a gap, and its points show a lone value between two gaps.
        layers.append(
            base.mark_line(invalid="break-paths-show-domains").encode(x=x, y=y, color=color)
        )
        layers.append(base.mark_point(size=28).encode(x=x, y=y, color=color))
        if limit is not None:
            rule = inline([{"limit": limit, "label": limit_label}])
            layers.append(
                alt.Chart(rule)
                .mark_rule(strokeDash=[5, 4], color=LABEL)
                .encode(y=alt.Y("limit:Q", title=labels[2]))
            )
            if limit_label:
                layers.append(
                    alt.Chart(rule)
                    .mark_text(align="left", baseline="bottom", dx=4, dy=-3, color=LABEL)
                    .encode(x=alt.value(0), y="limit:Q", text="label:N")
                )
        return alt.layer(*layers).properties(width=WIDTH, height=260)

    columns: tuple[str, ...] = (*labels, *band_labels)
    shown = kept
    if all(row[3] is None and row[4] is None for row in kept):
        columns, shown = labels, tuple(row[:3] for row in kept)
    return draw(
        "lines", title=title, description=description, columns=columns, rows=shown, build=build,
        limit=limit, limit_label=limit_label, log_x=log_x, log_y=log_y,
    )  # fmt: skip


def areas(
    *,
    title: str,
    description: str = "",
    labels: tuple[str, str, str],
    rows: Iterable[tuple[date | str | float, str, Number]],
    limit: float | None = None,
    limit_label: str = "",
) -> Chart:
    """Stacked areas over dates, numbers or ordered categories. Rows are (x, series, value). `limit` draws a rule."""
    kept = checked(rows)

    def build() -> Any:
        import altair as alt

        series = in_order(row[1] for row in kept)
        data = inline(
            [{"x": day(x), "series": s, "y": v, "rank": series.index(s)} for x, s, v in kept]
        )
        y_axis = alt.Axis(format=number_format_of(row[2] for row in kept))
        stack = (
            alt.Chart(data)
            .mark_area(opacity=0.85)
            .encode(
                x=x_channel(alt, [row[0] for row in kept], title=labels[0], log_x=False),
                y=alt.Y("y:Q", title=labels[2], stack="zero", axis=y_axis),
                color=alt.Color(
                    "series:N", sort=series, legend=alt.Legend() if len(series) > 1 else None
                ),
                order="rank:Q",
            )
        )
        layers: list[Any] = [stack]
        if limit is not None:
            rule = inline([{"limit": limit, "label": limit_label}])
            layers.append(
                alt.Chart(rule)
                .mark_rule(strokeDash=[5, 4])
                .encode(y=alt.Y("limit:Q", title=labels[2]))
            )
            if limit_label:
                layers.append(
                    alt.Chart(rule)
                    .mark_text(align="left", baseline="bottom", dx=4, dy=-3)
                    .encode(x=alt.value(0), y="limit:Q", text="label:N")
                )
        return alt.layer(*layers).properties(width=WIDTH, height=240)

    return draw(
        "areas", title=title, description=description, columns=labels, rows=kept, build=build,
        limit=limit, limit_label=limit_label,
    )  # fmt: skip


def gantt(
    *,
    title: str,
    description: str = "",
    labels: tuple[str, str, str, str],
    rows: Iterable[tuple[str, str, date, date]],
    today: date | None = None,
) -> Chart:
    """Bars over a calendar. Rows are (task, group, first day, day after the last); `today` draws a rule."""
    kept = checked(rows)
    for task, _group, start, end in kept:
        if isinstance(start, date) and isinstance(end, date) and end < start:
            raise InputError(
                "rows",
                msg(
                    "%(task)s ends on %(end)s, before its start on %(start)s",
                    task=str(task),
                    end=end.isoformat(),
                    start=start.isoformat(),
                ),
                value=end.isoformat(),
                limit=start.isoformat(),
            )

    def build() -> Any:
        import altair as alt

        groups = in_order(row[1] for row in kept)
        tasks = in_order(row[0] for row in kept)
        axis = alt.Axis(format="%Y-%m-%d", labelOverlap=True, tickCount=6)
        x = alt.X("start:T", title=None, scale=alt.Scale(type="utc"), axis=axis)
        drawn = (
            alt.Chart(records(kept, "task", "group", "start", "end"))
            .mark_bar(cornerRadius=3, height=14)
            .encode(
                x=x,
                x2="end:T",
                y=alt.Y("task:N", sort=tasks, title=None),
                color=alt.Color(
                    "group:N", sort=groups, legend=alt.Legend() if len(groups) > 1 else None
                ),
            )
        )
        layers: list[Any] = [drawn]
        if today is not None:
            mark = inline([{"today": today.isoformat()}])
            layers.append(
                alt.Chart(mark).mark_rule(strokeDash=[4, 3]).encode(x=alt.X("today:T", title=None))
            )
        return alt.layer(*layers).properties(width=WIDTH, height=alt.Step(26))

    return draw(
        "gantt",
        title=title,
        description=description,
        columns=labels,
        rows=kept,
        build=build,
        today=today,
    )
