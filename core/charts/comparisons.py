"""Charts that set things side by side: bars, a scatter with its frontier, a tornado."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.charts.drawing import (
    WIDTH,
    Chart,
    Number,
    as_number,
    checked,
    draw,
    in_order,
    inline,
    number_format_of,
    records,
    require_positive,
)
from core.palette import LINE


def bars(
    *,
    title: str,
    description: str = "",
    labels: tuple[str, str, str],
    rows: Iterable[tuple[str, str, Number]],
    stacked: bool = True,
    horizontal: bool = True,
) -> Chart:
    """Bars. Rows are (category, series, value); one series leaves the legend out. Order is the order of the rows."""
    kept = checked(rows)

    def build() -> Any:
        import altair as alt

        series = in_order(row[1] for row in kept)
        categories = in_order(row[0] for row in kept)
        number = alt.Axis(format=number_format_of(row[2] for row in kept))
        amount_title, category_title = labels[2], labels[0]
        color = alt.Color("series:N", sort=series, legend=alt.Legend() if len(series) > 1 else None)
        order = alt.Order("rank:Q")
        data = inline(
            [{"category": c, "series": s, "value": v, "rank": series.index(s)} for c, s, v in kept]
        )
        if horizontal:
            channels: dict[str, Any] = {
                "y": alt.Y("category:N", sort=categories, title=None),
                "x": alt.X(
                    "value:Q", title=amount_title, axis=number, stack="zero" if stacked else None
                ),
            }
            height: Any
            offset, height = "yOffset", alt.Step(28 if stacked or len(series) == 1 else 18)
        else:
            channels = {
                "x": alt.X(
                    "category:N", sort=categories, title=category_title, axis=alt.Axis(labelAngle=0)
                ),
                "y": alt.Y(
                    "value:Q", title=amount_title, axis=number, stack="zero" if stacked else None
                ),
            }
            offset, height = "xOffset", 240
        if not stacked and len(series) > 1:
            kind = alt.YOffset if horizontal else alt.XOffset
            channels[offset] = kind("series:N", sort=series)
        chart = alt.Chart(data).mark_bar().encode(color=color, order=order, **channels)
        return chart.properties(width=WIDTH, height=height)

    return draw(
        "bars", title=title, description=description, columns=labels, rows=kept, build=build,
        stacked=stacked, horizontal=horizontal,
    )  # fmt: skip


def scatter(
    *,
    title: str,
    description: str = "",
    labels: tuple[str, str, str, str],
    rows: Iterable[tuple[str, str, float, float]],
    frontier: Iterable[str] = (),
    bands: Iterable[tuple[Number, Number]] | None = None,
    band_labels: tuple[str, str] = ("P10", "P90"),
    equal: str = "",
    log_x: bool = False,
    log_y: bool = False,
) -> Chart:
    """Points. Rows are (name, group, x, y); those named in `frontier` are joined by a line and carry their name.

    `bands` has (low, high) of y for each row, None where there is none: upright strokes behind the points. `equal`
    names a line on which y is x; both axes then span the same figures.
    """
    kept = checked(rows)
    best = list(frontier)
    spans = None if bands is None else checked(bands)
    if spans is not None and len(spans) != len(kept):
        raise ValueError(f"{len(spans)} bands for {len(kept)} points")
    whole = [row for row in spans or () if None not in row]
    figures = [v for row in kept for v in row[2:]] + [v for row in whole for v in row]
    if log_x:
        require_positive([row[2] for row in kept], "log_x")
    if log_y:
        require_positive([*(row[3] for row in kept), *(v for row in whole for v in row)], "log_y")

    def build() -> Any:
        import altair as alt

        def axis(cls: Any, name: str, index: int, logarithmic: bool) -> Any:
            scale = alt.Scale(type="log") if logarithmic else alt.Scale(zero=False, padding=24)
            if equal and figures:
                least, most = (as_number(f(map(as_number, figures))) for f in (min, max))
                scale = (
                    alt.Scale(type="log", domain=[least / 1.3, most * 1.3], nice=False)
                    if logarithmic
                    else alt.Scale(domain=[least, most], nice=True)
                )
            values = [row[index] for row in kept]
            return cls(
                f"{name}:Q",
                title=labels[index],
                scale=scale,
                axis=alt.Axis(format=number_format_of(values)),
            )

        x, y = axis(alt.X, "x", 2, log_x), axis(alt.Y, "y", 3, log_y)
        groups = in_order(row[1] for row in kept)
        color = alt.Color(
            "group:N",
            sort=groups,
            legend=alt.Legend(symbolType="circle") if len(groups) > 1 else None,
        )
        data = records(kept, "name", "group", "x", "y")
        layers: list[Any] = []
        if equal and figures:
            ends = (min(map(as_number, figures)), max(map(as_number, figures)))
            line = inline([{"x": at, "y": at, "label": equal} for at in ends])
            layers.append(
                alt.Chart(line)
                .mark_line(color=LINE, strokeWidth=1.5, strokeDash=[4, 3])
                .encode(x=x, y=y)
            )
        if whole:
            strokes = inline(
                [
                    {"x": row[2], "y": span[0], "high": span[1], "group": row[1]}
                    for row, span in zip(kept, spans or (), strict=True)
                    if None not in span
                ]
            )
            layers.append(
                alt.Chart(strokes)
                .mark_rule(strokeWidth=3, opacity=0.28)
                .encode(x=x, y=y, y2="high:Q", color=color)
            )
        chosen = [row for row in kept if row[0] in best]
        joined = records(chosen, "name", "group", "x", "y")
        if len(chosen) > 1:
            layers.append(
                alt.Chart(joined)
                .mark_line(color=LINE, strokeWidth=1.5, strokeDash=[4, 3], interpolate="step-after")
                .encode(x=x, y=y, order="x:Q")
            )
        layers.append(
            alt.Chart(data).mark_point(size=70, opacity=0.9).encode(x=x, y=y, color=color)
        )
        if chosen:
            layers.append(
                alt.Chart(joined)
                .mark_text(align="left", dx=8, dy=-8, fontSize=11, limit=180)
                .encode(x=x, y=y, text="name:N")
            )
        return alt.layer(*layers).properties(width=WIDTH, height=300)

    columns: tuple[str, ...] = labels
    shown = kept
    if spans is not None:
        columns = (*labels, *band_labels)
        shown = tuple((*row, *span) for row, span in zip(kept, spans, strict=True))
    return draw(
        "scatter", title=title, description=description, columns=columns, rows=shown, build=build,
        frontier=best, equal=equal, log_x=log_x, log_y=log_y,
    )  # fmt: skip


def tornado(
    *,
    title: str,
    description: str = "",
    labels: tuple[str, str, str],
    rows: Iterable[tuple[str, float, float]],
    base: float,
    value_label: str,
) -> Chart:
    """What moves the result most. Rows are (factor, result at its low end, at its high end); largest swing on top."""
    kept = tuple(sorted(checked(rows), key=lambda row: -abs(as_number(row[2]) - as_number(row[1]))))
    checked([("base", base)])

    def build() -> Any:
        import altair as alt

        factors = in_order(row[0] for row in kept)
        ends = (labels[1], labels[2])
        data = inline(
            [
                {"factor": row[0], "end": end, "base": base, "value": value}
                for row in kept
                for end, value in zip(ends, row[1:], strict=True)
            ]
        )
        axis = alt.Axis(format=number_format_of([base, *(v for row in kept for v in row[1:])]))
        drawn = (
            alt.Chart(data)
            .mark_bar()
            .encode(
                y=alt.Y("factor:N", sort=factors, title=None),
                x=alt.X("base:Q", title=value_label, scale=alt.Scale(zero=False), axis=axis),
                x2="value:Q",
                color=alt.Color("end:N", sort=list(ends), legend=alt.Legend()),
            )
        )
        rule = (
            alt.Chart(inline([{"base": base}]))
            .mark_rule()
            .encode(x=alt.X("base:Q", title=value_label))
        )
        return alt.layer(drawn, rule).properties(width=WIDTH, height=alt.Step(26))

    return draw(
        "tornado", title=title, description=description, columns=labels, rows=kept, build=build,
        base=base, value_label=value_label,
    )  # fmt: skip
