"""Messages that pure code can speak and the edge can translate.

The pure cores import no framework, so they cannot call gettext. They return a :class:`Message`: an English template
(the msgid) and its parameters. The edge (template tag, exception handler, PDF) translates the template into the
reader's language and fills it in. ``makemessages`` here knows ``msg(...)`` as a keyword, so every template is
extracted and the completeness test covers it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Parameter: TypeAlias = "str | int | float | Message"


# What is counted: after the number one, English says it in the singular, and its verb too.
_COUNTED = (
    "accelerators budgets bytes candidates cards characters checkpoints days decisions devices drafts entries errors "
    "experts figures files heads hours iterations jobs layers layouts lines matters months offers options orders "
    "outcomes people points prices racks ranks records replicas requests rows rules runs samples scenarios sequences "
    "servers sizes slots tests times tokens units values vendors votes warnings ways weeks years"
)
_VERBS = {"are": "is", "were": "was", "have": "has", "do": "does", "wait": "waits", "end": "ends"}
_COUNT = re.compile(
    r"(?<!Line )(%\((\w+)\)s (?:[a-z]+[- ]){0,2}?)("
    + "|".join(_COUNTED.split())
    + r")\b( (?:"
    + "|".join(_VERBS)
    + r")\b)?"
)
_SINGULAR = {"entries": "entry", "people": "person"}


def english_singular(template: str, params: Mapping[str, Any]) -> str:
    """The English `template` with "%(n)s servers are" as "%(n)s server is" wherever its count is exactly one."""

    def one(found: re.Match[str]) -> str:
        if str(params.get(found[2])) != "1":
            return found[0]
        verb = found[4].strip() if found[4] else ""
        noun = _SINGULAR.get(found[3], found[3].removesuffix("s"))
        return f"{found[1]}{noun}{' ' + _VERBS[verb] if verb else ''}"

    return _COUNT.sub(one, template)


_MISSING = re.compile(r"^(%\((\w+)\)s) is( missing)")


def _plural_verb(found: re.Match[str], params: Mapping[str, Any]) -> str:
    """“Training tokens are missing”: the name of a field may be a plural."""
    last = str(params.get(found[2])).lower().split()[-1:]
    plural = bool(last) and last[0] in _COUNTED.split() and "_" not in str(params.get(found[2]))
    return f"{found[1]} {'are' if plural else 'is'}{found[3]}"


@dataclass(frozen=True, slots=True)
class Message:
    """An English template with named ``%(name)s`` placeholders, and the values for them."""

    template: str
    params: Mapping[str, Parameter] = field(default_factory=dict)

    def render(self, translate: Callable[[str], str] = str) -> str:
        """The filled-in sentence, through `translate` (English when none is given)."""
        text = translate(self.template)
        if text == self.template:
            text = english_singular(text, self.params)
        params = {
            name: value.render(translate) if isinstance(value, Message) else value
            for name, value in self.params.items()
        }
        if text == self.template:
            text = _MISSING.sub(lambda found: _plural_verb(found, params), text)
        return text % params if params else text

    def to_json(self) -> dict[str, Any]:
        """Template and parameters, so that a stored message can be read in another language later."""
        params = {
            name: value.to_json() if isinstance(value, Message) else value
            for name, value in self.params.items()
        }
        return {"template": self.template, "params": params}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Message:
        params = {
            name: cls.from_json(value) if isinstance(value, Mapping) else value
            for name, value in data.get("params", {}).items()
        }
        return cls(template=data["template"], params=params)

    def __str__(self) -> str:
        return self.render()


def msg(template: str, /, **params: Parameter) -> Message:
    """A translatable message. The template must be a literal, or it is not extracted."""
    return Message(template, params)


def plural(count: float, one: Message, many: Message) -> Message:
    """`one` for exactly one, `many` for any other count. Both are written out, so that both are extracted."""
    return one if count == 1 else many


def shown(value: object, most: int = 100) -> str:
    """`value` as an error names it: its first `most` characters, without halves of characters."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**most:
        return f"{str(value)[:20]}…"
    text = str(value)
    text = text if len(text) <= most else text[: most - 1] + "…"
    return text.encode("utf-8", "replace").decode("utf-8")
