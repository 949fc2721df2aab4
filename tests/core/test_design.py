"""The colours can be read: WCAG 2.2 AA, computed from the style sheets themselves."""

import re

import pytest
from django.conf import settings

CSS = settings.BASE_DIR / "static" / "css"


def tokens(*files):
    """Colour tokens of the sheets, later ones winning."""
    found = {}
    for name in files:
        found |= dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", (CSS / name).read_text()))
    return found


def luminance(color):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


TEXT = [
    *((ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in ("page", "surface", "sunken")),
    *((ink, "hover") for ink in ("ink", "ink-2")),
    *(("accent", ground) for ground in ("page", "surface", "accent-soft")),
    *((f"{tone}-ink", f"{tone}-soft") for tone in ("neutral", "info", "good", "warn", "bad")),
    *((f"{tone}-ink", "surface") for tone in ("good", "warn", "bad")),
    ("on-accent", "accent-solid"),
    ("on-accent", "accent-solid-hover"),
    ("surface", "bad-ink"),
    ("chart-label", "surface"),
]  # fmt: skip
SHAPES = [("field-line", "surface"), ("focus", "page"), ("focus", "surface")] + [
    (f"chart-{n}", "surface") for n in range(1, 9)
]


def test_the_formula_gives_the_published_extremes():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(
    "sheets", [("tokens.css",), ("tokens.css", "dark.css")], ids=["light", "dark"]
)
def test_text_has_a_contrast_of_4_5_and_shapes_of_3(sheets):
    colors = tokens(*sheets)
    weak = {
        (one, other): round(contrast(colors[one], colors[other]), 2)
        for pairs, least in ((TEXT, 4.5), (SHAPES, 3.0))
        for one, other in pairs
        if contrast(colors[one], colors[other]) < least
    }
    assert not weak


def test_the_dark_sheet_redefines_every_colour():
    assert set(tokens("dark.css")) == set(tokens("tokens.css"))


def test_only_the_token_sheets_name_colours():
    for name in ("base.css", "components.css", "print.css"):
        named = set(re.findall(r"#[0-9a-fA-F]{3,8}\b(?!-)", (CSS / name).read_text()))
        assert named <= {"#fff", "#problem", "#505868"}, (name, named)
