"""A drawing by Vega with the same ink in a fifth of the elements: what a page loads and what WeasyPrint works through.

Vega wraps every mark in groups, adds a background and a foreground that paint nothing, draws each grid line and each
point as an element of its own, and gives a point its opacity by a group. Nothing that is seen changes here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from xml.etree.ElementTree import Element, ParseError, tostring

from defusedxml.ElementTree import fromstring

SVG = "http://www.w3.org/2000/svg"
G, LINE, PATH, TEXT = "g", "line", "path", "text"
DROPPED = {"role", "class", "pointer-events"}  # the root keeps its own
NOTHING = {"", "none", "transparent"}
# A text says these only where it differs from the one around it.
COMMON = {"font-family", "font-size"}

_SHIFT = re.compile(r"^translate\((-?[\d.e-]+),(-?[\d.e-]+)\)$")
_FLOAT = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_CIRCLE = re.compile(
    r"^M([\d.]+),0A\1,\1,0,1,1,-\1,0A\1,\1,0,1,1,\1,0Z?$",
)


def slim(svg: str) -> str:
    """`svg` as written by Vega, without what paints nothing. What is no XML comes back as it is."""
    declared = f' xmlns="{SVG}"'
    try:
        root = fromstring(svg.replace(declared, "", 1))
    except ParseError:  # a control character in a name: drawn by browsers all the same
        return svg
    root[:] = _children(root, painted=False)
    _hoist(root)
    return tostring(root, encoding="unicode").replace("<svg", f"<svg{declared}", 1)


def _children(parent: Element, *, painted: bool) -> list[Element]:
    """The slim children of `parent`. `painted`: whether a fill or stroke comes down from a group above."""
    found: list[Element] = []
    for node in parent:
        if node.tag not in (G, LINE, PATH, TEXT):
            found.append(node)  # definitions, images: as they are
            continue
        if node.get("display") == "none":
            continue
        _clean(node)
        own = _paints(node, "fill") or _paints(node, "stroke")
        if node.tag == PATH and not (painted or own):
            continue
        if node.tag == G:
            node[:] = _children(node, painted=painted or own)
            if not len(node):
                continue
            if not node.attrib:
                found.extend(node)
                continue
        found.append(node)
    return _joined(found, painted=painted)


def _clean(node: Element) -> None:
    """Drop what only scripts and screen readers would read, and what says the default; round what is not seen."""
    for name in [n for n in node.attrib if n in DROPPED or n.startswith("aria-")]:
        del node.attrib[name]
    if node.get("transform") in ("translate(0,0)", ""):
        del node.attrib["transform"]
    if node.get("opacity") == "1":
        del node.attrib["opacity"]
    for name in ("transform", "d", "x2", "y2"):
        if name in node.attrib:
            node.set(name, _FLOAT.sub(_rounded, node.attrib[name]))
    fill, stroke = _paints(node, "fill"), _paints(node, "stroke")
    if not stroke and node.tag == PATH and "stroke-width" in node.attrib:
        del node.attrib["stroke-width"]
    if node.tag in (PATH, LINE) and "opacity" in node.attrib and fill != stroke:
        # one paint only: its own opacity looks the same and needs no group
        node.set("fill-opacity" if fill else "stroke-opacity", node.attrib.pop("opacity"))


def _rounded(match: re.Match[str]) -> str:
    return _short(float(match.group()))


def _short(value: float) -> str:
    """At most two decimals. [px]"""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _paints(node: Element, paint: str) -> bool:
    return node.get(paint, "none") not in NOTHING


def _joined(nodes: list[Element], *, painted: bool) -> list[Element]:
    """Runs of lines, or of round points, of one look as one path each."""
    if painted:
        return nodes
    found: list[Element] = []
    for (draw, look), run in groupby(nodes, key=_look):
        members = list(run)
        if draw is None or len(members) < 2:
            found.extend(members)
            continue
        path = Element(PATH, {"d": "".join(draw(node) for node in members), **dict(look)})
        found.append(path)
    return found


Drawer = Callable[[Element], str]


def _look(node: Element) -> tuple[Drawer | None, tuple[tuple[str, str], ...]]:
    """How `node` joins its neighbours, and what they must have in common with it."""
    look = {k: v for k, v in node.attrib.items() if k not in ("transform", "d", "x2", "y2")}
    if len(node) or "opacity" in look or not _SHIFT.match(node.get("transform", "")):
        return None, ((str(id(node)), ""),)
    if node.tag == LINE and not look.keys() & {"x1", "y1"}:
        return _segment, tuple(sorted(look.items()))
    circle = _CIRCLE.match(node.get("d", "")) if node.tag == PATH else None
    if circle and _paints(node, "fill") and not _paints(node, "stroke"):
        # a line of no length with round ends is a disc
        dot = {"stroke": look.pop("fill"), "stroke-width": _short(2 * float(circle.group(1)))}
        if "fill-opacity" in look:
            dot["stroke-opacity"] = look.pop("fill-opacity")
        return _dot, tuple(sorted({**look, **dot, "stroke-linecap": "round"}.items()))
    return None, ((str(id(node)), ""),)


def _place(node: Element) -> tuple[str, str]:
    match = _SHIFT.match(node.get("transform", ""))
    assert match  # noqa: S101 - _look let only these through
    return match.group(1), match.group(2)


def _segment(node: Element) -> str:
    x, y = _place(node)
    return f"M{x},{y}l{node.get('x2', '0')},{node.get('y2', '0')}"


def _dot(node: Element) -> str:
    x, y = _place(node)
    return f"M{x},{y}h0"


def _hoist(root: Element) -> None:
    """What all texts say alike is said once, on the drawing's outer group."""
    texts = list(root.iter(TEXT))
    outer = root.find(G)
    if not texts or outer is None:
        return
    for name in COMMON:
        values = {node.get(name) for node in texts}
        if len(values) == 1 and None not in values:
            outer.set(name, values.pop() or "")
            for node in texts:
                del node.attrib[name]
