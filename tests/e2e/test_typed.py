"""What was typed is kept over an ended session (static/js/typed.js), on pages of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

JS = Path(__file__).resolve().parents[2] / "static/js"
SCRIPT = "".join((JS / name).read_text(encoding="utf-8") for name in ("fields.js", "typed.js"))
NOTES = (
    "<template id=typed-again><div><div>Again.</div></div></template><template id=typed-files>Files.</template>\
<template id=typed-elsewhere>No field:</template><div id=problem></div>"
)
FORM = """<form method=post action=/do><input name=title value=old><input name=untouched value={untouched}>
<textarea name=why></textarea><input type=checkbox name=tick value=a><input type=checkbox name=tick value=b checked>
<select name=one><option value=x>x</option><option value=y>y</option></select>
<input type=hidden name=version value={version}>
<input type=file name=paper>{more}<button>Send</button></form>"""
pytestmark = pytest.mark.e2e


class Site:
    """Pages of one person, or of nobody."""

    def __init__(self, page: Page) -> None:
        self.page, self.user, self.form = (
            page,
            "7",
            FORM.format(untouched="u", version=3, more="<input name=gone>"),
        )
        page.route("**/*", self.answer)

    def answer(self, route: Route) -> None:
        path = route.request.url.split("headroom.test", 1)[1]
        signed = f'<body data-user="{self.user}">' if self.user else "<body>"
        main = self.form if path == "/form" and self.user else f"page {path}"
        route.fulfill(
            content_type="text/html",
            body=f"<html>{signed}<main>{NOTES}{main}</main><script>{SCRIPT}</script></body></html>",
        )

    def go(self, path: str = "/form") -> None:
        self.page.goto(f"http://headroom.test{path}")

    def type(self) -> None:
        self.page.fill("[name=title]", "新标题")
        self.page.fill("[name=why]", "two\nlines")
        self.page.fill("[name=gone]", "kept in words")
        self.page.uncheck("[value=b]")
        self.page.check("[value=a]")
        self.page.select_option("select", "y")

    def send(self) -> None:
        with self.page.expect_navigation():
            self.page.click("button")


@pytest.fixture
def site(page: Page) -> Site:
    made = Site(page)
    made.go()
    made.type()
    return made


def test_what_was_typed_stands_on_its_page_again_after_the_sign_in(site: Site) -> None:
    page = site.page
    site.user = ""
    site.send()
    site.user, site.form = "7", FORM.format(untouched="newer", version=4, more="")
    site.go()
    assert page.input_value("[name=title]") == "新标题"
    assert page.input_value("[name=why]") == "two\nlines"
    assert (page.is_checked("[value=a]"), page.is_checked("[value=b]")) == (True, False)
    assert page.input_value("select") == "y"
    assert page.input_value("[name=untouched]") == "newer"
    assert page.input_value("[name=version]") == "3"  # the server tells what changed since
    assert "gone: kept in words" in page.inner_text("main")
    site.go()
    assert page.input_value("[name=title]") == "old"


def test_a_form_that_arrived_is_forgotten(site: Site) -> None:
    site.send()
    site.user = ""
    site.go("/login")
    site.user = "7"
    site.go()
    assert site.page.input_value("[name=title]") == "old"


def test_nothing_is_shown_to_another_person(site: Site) -> None:
    site.user = ""
    site.send()
    site.user = "8"
    site.go()
    assert site.page.input_value("[name=title]") == "old"
    site.user = "7"
    site.go()
    assert site.page.input_value("[name=title]") == "old"


def test_a_sign_out_forgets_also_what_was_lost_before(site: Site) -> None:
    site.user = ""
    site.send()  # the session had ended
    site.user = "7"
    site.go("/elsewhere")
    out = "<form method=post action=/out data-sign-out><button id=out>Out</button></form>"
    site.page.evaluate(f"document.body.insertAdjacentHTML('beforeend', '{out}')")
    assert site.page.evaluate("Object.keys(sessionStorage).length") > 0
    site.user = ""
    with site.page.expect_navigation():
        site.page.click("#out")
    assert site.page.evaluate("Object.keys(sessionStorage)") == []


def test_a_log_out_forgets_what_was_typed(site: Site) -> None:
    site.user = ""
    site.go("/login")
    assert site.page.evaluate("Object.keys(sessionStorage)") == []
