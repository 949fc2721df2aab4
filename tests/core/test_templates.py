"""What the Content-Security-Policy forbids is not in any template, and every page stands on a known base."""

import re

import pytest
from django.conf import settings
from django.template.loader import get_template

TEMPLATES = settings.BASE_DIR / "templates"
FILES = sorted(TEMPLATES.rglob("*.html"))
BASES = {"base.html", "entrance.html", "print.html"}
# Folders of fragments, which extend nothing; a file elsewhere may be one too, if its name says so.
FRAGMENTS = ("components/", "allauth/elements/")

FORBIDDEN = {
    "style attribute": re.compile(r"<[a-z][^>]*\sstyle\s*=", re.I),
    "style element": re.compile(r"<style\b", re.I),
    "event handler": re.compile(r"<[a-z][^>]*\son[a-z]+\s*=", re.I),
    "hx-on": re.compile(r"\shx-on[:\w-]*\s*=", re.I),
    "javascript address": re.compile(r"javascript:", re.I),
    "hx js values": re.compile(r"""hx-(vals|headers)\s*=\s*["']\s*js:""", re.I),
    "htmx trigger filter (needs eval)": re.compile(r"""hx-trigger\s*=\s*["'][^"']*\[""", re.I),
    "script with code": re.compile(r"<script(?![^>]*\bsrc=)[^>]*>", re.I),
    "address of another site": re.compile(r"""(src|href|action)\s*=\s*["'](https?:)?//""", re.I),
}


def offences(html):
    """Names of what is forbidden in `html`."""
    return [name for name, pattern in FORBIDDEN.items() if pattern.search(html)]


@pytest.mark.parametrize(
    "html",
    [
        '<p style="color:red">', "<style>p{}</style>", '<a onclick="x()">', '<a hx-on:click="x">',
        '<a href="javascript:x">',
        """<a hx-vals='js:{a:1}'>""", '<a hx-trigger="click[x]">', "<script>1</script>", '<img src="//example.com/x">',
    ],
)  # fmt: skip
def test_the_search_finds_what_it_should(html):
    assert offences(html)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_no_template_needs_an_exception_from_the_policy(path):
    assert offences(path.read_text(encoding="utf-8")) == []


# What HTML allows and XML does not; a document with it takes the slow parser (core/pdf.py).
NOT_XML = {
    "tag left open": re.compile(
        r"<(?:area|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b(?:[^>{]|{[{%](?:(?![%}]}).)*[%}]})*(?<!/)>",
        re.I,
    ),
    "entity of HTML": re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[a-z]+;", re.I),
    "attribute without a value": re.compile(
        r"<[a-z][^>{]*\s(?:checked|disabled|hidden|open|selected)(?=[\s/>])", re.I
    ),
    "filter that writes open tags": re.compile(r"\|\s*(?:linebreaksbr|linebreaks|urlize|safe)\b"),
}


def _printed():
    """Every template that ends up in a document: what extends print.html, and all that they include."""
    found = {TEMPLATES / "print.html"}
    waiting = [path for path in FILES if "print.html" in _bases(path)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            named = re.findall(
                r"""{%\s*include\s+["']([^"']+)["']""", path.read_text(encoding="utf-8")
            )
            waiting += [TEMPLATES / name for name in named]
    return sorted(found)


def not_xml(html):
    return [name for name, pattern in NOT_XML.items() if pattern.search(html)]


@pytest.mark.parametrize(
    "html",
    ["a<br>b", '<img src="x" alt="{% translate \'a > b\' %}">', "&nbsp;", "{{ text|linebreaksbr }}", "<p hidden>"],
)  # fmt: skip
def test_the_search_for_what_is_no_xml_finds_it(html):
    assert not_xml(html)


def test_every_template_of_a_document_is_well_formed():
    printed = _printed()
    assert len(printed) > 7
    found = {path.name: not_xml(path.read_text(encoding="utf-8")) for path in printed}
    assert {name: problems for name, problems in found.items() if problems} == {}


def _bases(path):
    """Every template above `path`, nearest first."""
    found = []
    text = path.read_text(encoding="utf-8")
    while match := re.search(r"""{%\s*extends\s+["']([^"']+)["']""", text):
        found.append(match.group(1))
        text = get_template(match.group(1)).template.source
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_every_page_extends_a_known_base(path):
    name = path.relative_to(TEMPLATES).as_posix()
    if name in BASES or name.startswith(FRAGMENTS) or re.search(r"(^|/)_|_fragment\.html$", name):
        return
    assert BASES & set(_bases(path)), (
        f"{name} extends no base; name a fragment _x.html or x_fragment.html"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TEMPLATES)))
def test_every_template_compiles(path):
    get_template(path.relative_to(TEMPLATES).as_posix())
