"""The numbers of a load, drawn as bars (static/js/bars.js), in a page of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

SCRIPT = (Path(__file__).resolve().parents[2] / "static/js/bars.js").read_text(encoding="utf-8")
STYLE = ".bars-stage{display:grid;grid-auto-flow:column;height:100px;width:120px}.bar{position:relative}"
pytestmark = pytest.mark.e2e


def show(page: Page, text: str) -> None:
    heads = "|".join("abcd")
    page.set_content(
        f"<style>{STYLE}</style><textarea data-bars-columns=4 data-bars-heads='{heads}'>{text}</textarea>"
    )
    page.add_script_tag(content=SCRIPT)


def heights(page: Page) -> list[float]:
    found = page.eval_on_selector_all(
        ".bar > div", "all => all.map(x => parseFloat(x.style.height))"
    )
    return [round(height, 3) for height in found]


def field(page: Page) -> list[float]:
    return [float(word) for word in page.input_value("textarea").split()]


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("10 20 50 100", [10, 20, 50, 100]),
        ("10 20 50 60", [10, 20, 50, 60]),
        ("100 200 50 400", [25, 50, 12.5, 100]),
        ("0.1 0.2 0.05 0.4", [25, 50, 12.5, 100]),
        ("1e-5 2e-05 0 4E-5", [25, 50, 0, 100]),
        ("1,2;3\n4", [1, 2, 3, 4]),
        ("5 -5 5 5", [0, 0, 0, 0]),
        ("5 x 5 5", [0, 0, 0, 0]),
        ("5 5 5", [0, 0, 0, 0]),
        ("", [0, 0, 0, 0]),
    ],
)
def test_what_is_typed_is_drawn_or_left_alone(page: Page, text: str, drawn: list[float]) -> None:
    show(page, text)
    assert heights(page) == drawn
    assert page.input_value("textarea") == text


def test_a_small_number_stays_when_another_bar_is_moved(page: Page) -> None:
    show(page, "1 1000000 2000000 0")
    page.focus(".bar")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    assert field(page) == [0.00005, 0, 100, 0]
    show(page, "0.001 0.002 0.004 0")
    page.focus(".bar")
    page.keyboard.press("End")
    assert field(page) == [100, 50, 100, 0]


def test_a_pointer_draws_and_one_that_is_taken_away_draws_nothing(page: Page) -> None:
    show(page, "10 20 30 40")
    stage = page.locator(".bars-stage").bounding_box()
    assert stage is not None
    page.mouse.move(stage["x"] + 5, stage["y"] + 20)
    page.mouse.down()
    assert heights(page)[0] == pytest.approx(80, abs=2)
    page.dispatch_event(".bars-stage", "pointercancel")
    page.mouse.up()
    assert heights(page) == [10, 20, 30, 40]
    assert field(page) == [10, 20, 30, 40]
    page.mouse.down()
    page.mouse.up()
    assert field(page) == [pytest.approx(80, abs=2), 20, 30, 40]
