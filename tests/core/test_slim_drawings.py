"""A drawing with the same ink in fewer elements."""

import re
from xml.etree import ElementTree

from core.charts.slim import slim

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" class="marks" viewBox="0 0 9 9">'
SVG = "{http://www.w3.org/2000/svg}"
DISC = "M3,0A3,3,0,1,1,-3,0A3,3,0,1,1,3,0"


def drawn(*parts, outer='fill="none"'):
    return slim(f"{HEAD}<g {outer}>{''.join(parts)}</g></svg>")


def shapes(svg):
    return [
        (node.tag.removeprefix(SVG), dict(node.attrib))
        for node in ElementTree.fromstring(svg).iter()
        if node.tag.removeprefix(SVG) in ("path", "line", "text")
    ]


def test_what_paints_nothing_goes_and_the_root_stays_as_it_was():
    svg = drawn(
        '<path class="background" d="M0,0h9v9h-9Z"/>',
        '<g role="graphics-object"><g><path d="M0,0h1" stroke="#000" aria-hidden="true"/></g></g>',
        '<g><path d="M1,1h1" fill="#111" display="none"/></g>',
    )

    assert svg.startswith(HEAD)
    assert shapes(svg) == [("path", {"d": "M0,0h1", "stroke": "#000"})]
    assert svg.count("<g") == 1


def test_a_background_is_kept_where_a_group_above_gives_it_a_colour():
    assert len(shapes(drawn('<path d="M0,0h9v9h-9Z"/>', outer='fill="#eee"'))) == 1


def test_grid_lines_of_one_look_are_one_path_and_others_are_not():
    def line(at, color):
        return f'<line transform="translate(0,{at})" x2="500" y2="0" stroke="{color}" opacity="1"/>'

    svg = drawn(line("10.12345", "#eee"), line(20, "#eee"), line(30, "#000"))

    assert shapes(svg) == [
        ("path", {"d": "M0,10.12l500,0M0,20l500,0", "stroke": "#eee"}),
        ("line", {"transform": "translate(0,30)", "x2": "500", "y2": "0", "stroke": "#000"}),
    ]


def test_points_are_round_ends_as_wide_as_the_points_were():
    dots = "".join(
        f'<path transform="translate({x},2)" d="{DISC}" fill="#3d63c9" stroke-width="2" opacity="0.7"/>'
        for x in (1, 5)
    )

    assert shapes(drawn(dots)) == [(
        "path",
        {"d": "M1,2h0M5,2h0", "stroke": "#3d63c9", "stroke-width": "6", "stroke-opacity": "0.7",
         "stroke-linecap": "round"},
    )]  # fmt: skip


def test_an_outline_and_its_filling_fade_together():
    both = '<path d="M0,0h5v5Z" fill="#111" stroke="#222" opacity="0.5"/>'
    one = '<path d="M0,0h5v5Z" fill="#111" opacity="0.5"/>'

    assert [look for _tag, look in shapes(drawn(both, one))] == [
        {"d": "M0,0h5v5Z", "fill": "#111", "stroke": "#222", "opacity": "0.5"},
        {"d": "M0,0h5v5Z", "fill": "#111", "fill-opacity": "0.5"},
    ]


def test_the_font_is_said_once_and_a_text_of_another_size_keeps_its_own():
    same = drawn(*['<text font-family="A, B" font-size="12px">x</text>'] * 2)
    other = drawn(
        '<text font-family="A" font-size="12px">x</text>',
        '<text font-family="A" font-size="9px">y</text>',
    )

    assert same.count("font-family") == same.count("font-size") == 1
    assert re.findall(r'font-size="(\w+)"', other) == ["12px", "9px"]
    assert ">x<" in other and ">y<" in other  # noqa: PT018 - both texts


def test_what_is_no_xml_is_left_alone():
    broken = f"{HEAD}<text>\x0b</text></svg>"
    assert slim(broken) == broken
