import os
import re
from datetime import date
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.core.cache import cache
from django.template.loader import render_to_string
from django.utils import translation

from core import charts, palette
from core.charts import drawing
from core.errors import InputError

CSS = settings.BASE_DIR / "static" / "css"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _nothing_drawn_yet():
    drawing._drawer(os.getpid()).submit(int).result()  # what another test left to be drawn
    cache.clear()


def cost(**changes):
    rows = changes.pop(
        "rows", [("Own", "Capex", 2e6), ("Own", "Energy", 3e5), ("Rent", "Rent", 4e6)]
    )
    return charts.bars(
        title=changes.pop("title", "Yearly cost"),
        labels=("Plan", "Kind", "Cost [CNY]"),
        rows=rows,
        **changes,
    )


def every_kind():
    day = date(2026, 1, 5)
    return [
        cost(),
        cost(stacked=False, horizontal=False),
        charts.lines(
            title="Latency", labels=("Load", "Plan", "TTFT [s]"), limit=0.8, limit_label="SLO",
            rows=[(1.0, "A", 0.2, 0.1, 0.3), (2.0, "A", None, None, None), (4.0, "A", 0.6, 0.4, 0.9)],
        ),
        charts.lines(title="Price", labels=("Day", "Region", "CNY"), rows=[(day, "cn", 2.0, None, None)]),
        charts.scatter(
            title="Frontier", labels=("Plan", "Kind", "Days", "CNY"), frontier=["A", "B"], log_y=True,
            rows=[("A", "own", 10.0, 5e6), ("B", "rent", 20.0, 3e6)],
        ),
        charts.areas(title="Demand", labels=("Quarter", "Team", "GPUs"), limit=9,
                     rows=[("Q1", "a", 3), ("Q1", "b", 2), ("Q2", "a", 4), ("Q2", "b", None)]),
        charts.gantt(title="Delivery", labels=("Task", "Who", "From", "To"), today=day,
                     rows=[("Ship", "Vendor", day, date(2026, 2, 1))]),
        charts.tornado(title="Drivers", labels=("Factor", "Low", "High"), base=10.0, value_label="CNY",
                       rows=[("MFU", 8.0, 15.0), ("Energy", 9.5, 11.0)]),
    ]  # fmt: skip


def texts(chart):
    return [node.text for node in ElementTree.fromstring(chart.svg).iter(f"{SVG}text")]


def test_every_kind_is_plain_svg_that_the_content_security_policy_allows():
    for chart in every_kind():
        root = ElementTree.fromstring(chart.svg)
        assert root.tag == f"{SVG}svg"
        assert root.find(f"{SVG}title").text.startswith(chart.title)
        names = {name for node in root.iter() for name in node.attrib}
        assert not {n for n in names if n == "style" or n.startswith("on")}
        tags = {node.tag.removeprefix(SVG) for node in root.iter()}
        assert not tags & {"script", "style", "foreignObject", "image", "a"}
        assert "http" not in chart.svg.replace("http://www.w3.org/", "")


def test_drawings_use_only_colours_that_have_a_dark_twin():
    dark = (CSS / "dark.css").read_text()
    used = set()
    for chart in every_kind():
        used |= set(re.findall(r'(fill|stroke)="(#[0-9a-f]{6})"', chart.svg))
    assert {color for _kind, color in used} >= {palette.CATEGORICAL[0], palette.LABEL, palette.GRID}
    missing = {pair for pair in used if f'[{pair[0]}="{pair[1]}"]' not in dark}
    assert not missing


def test_the_palette_is_that_of_the_style_sheet():
    tokens = dict(re.findall(r"--(chart-[\w]+): (#[0-9a-f]{6})", (CSS / "tokens.css").read_text()))
    assert tokens == {
        **{f"chart-{n}": color for n, color in enumerate(palette.CATEGORICAL, 1)},
        "chart-ink": palette.INK,
        "chart-label": palette.LABEL,
        "chart-line": palette.LINE,
        "chart-grid": palette.GRID,
    }


def test_text_is_escaped_and_chinese_is_kept():
    chart = cost(rows=[("自建 <script>&", "Capex", 1.0)], title='<b>"')

    assert "<script>" not in chart.svg
    assert "<b>" not in chart.svg
    assert "自建 <script>&" in texts(chart)


def test_bars_are_as_long_as_their_values():
    chart = cost(rows=[("A", "x", 100.0), ("B", "x", 50.0)])
    bars = [
        node.attrib["d"]
        for node in ElementTree.fromstring(chart.svg).iter(f"{SVG}path")
        if node.attrib.get("fill") == palette.CATEGORICAL[0]
    ]
    widths = [float(re.search(r"h([\d.]+)", path).group(1)) for path in bars]
    assert widths[0] == pytest.approx(2 * widths[1])


def test_the_second_drawing_comes_from_the_cache_and_another_content_does_not():
    first = cost()
    assert first.svg  # drawn beside us: wait for it
    keys = set(cache._cache)
    assert len(keys) == 1
    assert cost() == first
    assert set(cache._cache) == keys
    assert cost(rows=[("Own", "Capex", 2.0)]).svg != first.svg
    assert len(cache._cache) == 2


def test_what_the_cache_holds_is_shown():
    chart = cost()
    assert chart.svg
    (key,) = (k.split(":", 2)[2] for k in cache._cache)
    cache.set(key, "<svg/>")
    assert cost().svg == "<svg/>" != chart.svg


def test_missing_is_a_gap_and_a_dash_never_zero():
    chart = charts.lines(
        title="t",
        labels=("x", "s", "y"),
        rows=[(1, "A", 5.0, 4.0, 6.0), (2, "A", None, None, None)],
    )
    assert chart.cells == [["1", "A", "5", "4", "6"], ["2", "A", "–", "–", "–"]]
    assert chart.columns == ("x", "s", "y", "P10", "P90")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_a_number_is_refused_by_name(value):
    with pytest.raises(InputError) as caught:
        cost(rows=[("A", "x", value)])
    assert caught.value.field == "rows"
    assert str(value) in str(caught.value)


def test_no_rows_a_log_of_zero_and_a_backward_task_are_refused():
    with pytest.raises(InputError):
        cost(rows=[])
    with pytest.raises(InputError) as caught:
        charts.scatter(
            title="t", labels=("n", "g", "x", "y"), rows=[("A", "g", 0.0, 1.0)], log_x=True
        )
    assert caught.value.value == 0.0
    with pytest.raises(InputError):
        charts.gantt(
            title="t",
            labels=("t", "w", "f", "u"),
            rows=[("A", "g", date(2026, 2, 1), date(2026, 1, 1))],
        )


def test_the_largest_swing_of_a_tornado_is_on_top():
    chart = charts.tornado(
        title="t", labels=("f", "low", "high"), base=10.0, value_label="v",
        rows=[("small", 9.0, 11.0), ("large", 5.0, 20.0)],
    )  # fmt: skip
    assert [row[0] for row in chart.rows] == ["large", "small"]


def test_the_component_shows_title_drawing_and_figures():
    with translation.override("zh-hans"):
        html = render_to_string("components/chart.html", {"chart": cost()})
    assert "Yearly cost" in html
    assert "<svg" in html
    assert "以表格显示数据" in html
    assert "4,000,000" in html
