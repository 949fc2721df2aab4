"""Colours of drawings: the light values of static/css/tokens.css, written into SVG because print needs fixed colours.

dark.css maps each to its dark twin by attribute selector, so a drawing needs no second rendering. Pure.
"""

CATEGORICAL = (
    "#3d63c9", "#168a7d", "#c07a12", "#c2456d", "#7a58c0", "#6b7a90", "#5d8a27", "#a2603a",
)  # fmt: skip
INK = "#1f2430"
LABEL = "#535c6c"
LINE = "#a5adba"
GRID = "#e3e6ec"
GROUND = "#ffffff"
