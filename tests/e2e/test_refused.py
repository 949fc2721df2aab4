"""A refused form stands as it was filled in, with its errors listed (static/js/refused.js), on a page of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page

JS = Path(__file__).resolve().parents[2] / "static/js"
SCRIPT = "".join((JS / name).read_text(encoding="utf-8") for name in ("fields.js", "refused.js"))
KEPT = {
    "page": "/inbox/", "action": "/decide/7/", "at": 0,
    "values": {"reason": ["too dear"], "cap": ["1e9"], "tick": ["b"], "many": ["x", "gone"], "one": ["y"]},
    "errors": {"cap": ["Above the most, 100."]},
}  # fmt: skip
FORMS = """<form method=post action=/decide/8/><input name=reason></form>
<details><form method=post action=/decide/7/><label>Reason <input name=reason></label>
<div class=field><label for=cap>Cap</label><input id=cap name=cap></div>
<input type=checkbox name=tick value=a checked><input type=checkbox name=tick value=b>
<input type=checkbox name=off checked><select multiple name=many><option>x<option>z</select>
<select name=one><option>x<option>y</select><input type=file name=paper><button>Send</button></form></details>"""
SUMMARY = (
    "<template id=error-summary><div data-error-summary tabindex=-1><ul></ul></div></template>"
)
pytestmark = pytest.mark.e2e


def test_what_was_refused_stands_in_its_form_and_its_errors_lead_to_their_fields(
    page: Page,
) -> None:
    told = f"<script id=refused type=application/json>{json.dumps(KEPT)}</script>"
    body = f"<main id=main><div id=problem></div>{SUMMARY}{told}{FORMS}</main><script>{SCRIPT}</script>"
    page.route("**/*", lambda route: route.fulfill(content_type="text/html", body=body))
    page.goto("http://headroom.test/inbox/")

    form = page.locator("form[action='/decide/7/']")
    assert page.locator("form[action='/decide/8/'] [name=reason]").input_value() == ""
    assert form.locator("[name=reason]").input_value() == "too dear"
    assert form.locator("[name=cap]").get_attribute("aria-invalid") == "true"
    assert [form.locator(f"[value={value}]").is_checked() for value in "ab"] == [False, True]
    assert not form.locator("[name=off]").is_checked()
    assert form.locator("[name=many]").evaluate(
        "e => [...e.selectedOptions].map(o => o.value)"
    ) == ["x"]
    assert form.locator("[name=one]").input_value() == "y"
    assert page.locator("details").get_attribute("open") is not None
    link = page.locator("[data-error-summary] a")
    assert link.inner_text() == "Cap: Above the most, 100."
    link.click()
    assert page.evaluate("document.activeElement.name") == "cap"
