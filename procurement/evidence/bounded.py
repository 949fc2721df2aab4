"""JSON and XML from strangers, read in bounded time and memory.

What is built to exhaust a parser (deep nesting, numbers of a million digits, entities) is rejected. What is merely
cut off is closed at the last whole value, so that a failure seen before the cut still counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from core.messages import Message, msg

MAX_DEPTH = 64
MAX_DIGITS = 400
MAX_NODES = 2_000_000
MAX_FAILURES = 8  # places where decoding is tried in vain: each may cost the length of the text
MAX_STARTS = 24

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS}}}")
# Remains of JSON outside the values that were read: a line of brackets only, or a key.
_FRAGMENT = re.compile(r'^[\s\[\]{},]*[\[\]{}][\s\[\]{},]*$|"[^"\n]{0,200}"\s*:', re.MULTILINE)
_CLOSERS = {"{": "}", "[": "]"}


class HostileInputError(ValueError):
    """The input is built to exhaust or to deceive a parser. It is rejected, with the reason."""

    def __init__(self, code: str, message: Message) -> None:
        super().__init__(code)
        self.code = code
        self.message = message


@dataclass(slots=True)
class JsonDocument:
    """A value found in text, and what was odd about it."""

    value: Any
    truncated: bool = False
    duplicate_keys: bool = False
    not_numbers: bool = False  # NaN or Infinity, which JSON does not know
    lines_before: int = 0  # log lines before the value
    notes: set[str] = field(default_factory=set)

    @property
    def sound(self) -> bool:
        return not (self.truncated or self.duplicate_keys or self.not_numbers)


def documents(text: str, keys: tuple[str, ...]) -> list[JsonDocument]:
    """The JSON values in `text` that are, or hold at their first level, one of `keys`; log lines may lie between.

    Raises :class:`HostileInputError` for nesting or numbers that no tool writes.
    """
    _refuse_bombs(text)
    found: list[JsonDocument] = []
    position = failures = 0
    while (start := _next_start(text, position, keys)) is not None and failures < MAX_FAILURES:
        document, end = _decode_at(text, start)
        if document is None:
            position, failures = start + 1, failures + 1
            continue
        between = text[position:start]
        document.lines_before = between.count("\n")
        document.truncated |= bool(_FRAGMENT.search(between))
        found.append(document)
        position = end
    if found:
        found[-1].truncated |= bool(_FRAGMENT.search(text[position:]))
    return found


def _next_start(text: str, position: int, keys: tuple[str, ...]) -> int | None:
    """Where the value that holds the next of the keys begins: the outermost bracket before it that can be decoded."""
    pattern = "|".join(re.escape(f'"{key}"') for key in keys)
    key = re.compile(rf"(?:{pattern})\s*:").search(text, position)
    if not key:
        return None
    starts = [m.start() for m in re.finditer(r"[\[{]", text[position : key.start()])][:MAX_STARTS]
    decoder = json.JSONDecoder()
    for start in starts:
        try:
            value, end = decoder.raw_decode(text, position + start)
        except (ValueError, RecursionError):
            continue
        if position + start <= key.start() < end and isinstance(value, dict | list):
            return position + start
    # Nothing decodes: cut off. Begin at the bracket that opens a line, or at the last one before the key.
    for start in starts:
        line_start = text.rfind("\n", 0, position + start) + 1
        if not text[line_start : position + start].strip():
            return position + start
    return position + starts[-1] if starts else None


def _decode_at(text: str, start: int) -> tuple[JsonDocument | None, int]:
    document = JsonDocument(None)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        document.duplicate_keys |= len(made) != len(items)
        return made

    def constant(_: str) -> None:
        document.not_numbers = True

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant)
    try:
        document.value, end = decoder.raw_decode(text, start)
    except ValueError:
        closed = _closed(text[start:])
        if closed is None:
            return None, start
        document.truncated = True
        try:
            document.value = decoder.decode(closed)
        except ValueError:
            return None, start
        end = len(text)
    return document, end


def _closed(text: str) -> str | None:
    """`text` up to its last whole member, with the brackets that are open there closed."""
    stack: list[str] = []
    cut, open_at_cut = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in _CLOSERS:
            stack.append(mark)
            cut, open_at_cut = token.end(), "".join(stack)
        elif mark in "]}":
            if not stack or _CLOSERS[stack.pop()] != mark:
                break
            if not stack:
                return None
            cut, open_at_cut = token.end(), "".join(stack)
        elif mark == ",":
            cut, open_at_cut = token.start(), "".join(stack)
    if not open_at_cut:
        return None
    return text[:cut] + "".join(_CLOSERS[mark] for mark in reversed(open_at_cut))


def _refuse_bombs(text: str) -> None:
    outside = _STRING.sub('""', text)
    if _LONG_NUMBER.search(outside):
        raise HostileInputError(
            "huge_number",
            msg("A number of over %(digits)s digits is no measurement.", digits=MAX_DIGITS),
        )
    depth = nodes = 0
    for mark in re.finditer(r"[\[\]{}]", outside):
        depth = depth + 1 if mark[0] in "[{" else max(0, depth - 1)
        nodes += 1
        if depth > MAX_DEPTH:
            raise HostileInputError(
                "deep_json",
                msg("Nesting deeper than %(depth)s levels is refused.", depth=MAX_DEPTH),
            )
        if nodes > MAX_NODES:
            raise HostileInputError("too_many_nodes", msg("The JSON has too many parts."))


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """`value` when it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in an array."""
    return (item for item in items(value) if isinstance(item, dict))


def refuse_entities(text: str) -> None:
    """Raise :class:`HostileInputError` for entity declarations, an internal subset or absurd nesting."""
    if re.search(r"<!ENTITY|<!DOCTYPE[^>\[]{0,1000}\[", text):
        raise HostileInputError(
            "xml_entities", msg("The XML declares entities or an internal subset: refused.")
        )
    depth = 0
    for tag in re.finditer(r"<(/?)[A-Za-z_][^<>]{0,4096}?(/?)>", text):
        depth += -1 if tag[1] else 0 if tag[2] else 1
        if depth > MAX_DEPTH:
            raise HostileInputError(
                "deep_xml", msg("Nesting deeper than %(depth)s levels is refused.", depth=MAX_DEPTH)
            )


def xml_root(text: str) -> Element | None:
    """The root of an XML document, or None when it is malformed. A DOCTYPE is allowed, entities never are."""
    try:
        root: Element = fromstring(text, forbid_dtd=False, forbid_entities=True)
    except DefusedXmlException as error:
        raise HostileInputError(
            "xml_entities", msg("The XML declares entities or an internal subset: refused.")
        ) from error
    except (ParseError, ValueError):
        return None
    return root
