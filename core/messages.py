"""Messages that pure code can speak and the edge can translate.

The pure cores import no framework, so they cannot call gettext. They return a :class:`Message`: an English template
(the msgid) and its parameters. The edge (template tag, exception handler, PDF) translates the template into the
reader's language and fills it in. ``makemessages`` here knows ``msg(...)`` as a keyword, so every template is
extracted and the completeness test covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Parameter = str | int | float


@dataclass(frozen=True, slots=True)
class Message:
    """An English template with named ``%(name)s`` placeholders, and the values for them."""

    template: str
    params: Mapping[str, Parameter] = field(default_factory=dict)

    def render(self, translate: Callable[[str], str] = str) -> str:
        """The filled-in sentence, through `translate` (English when none is given)."""
        text = translate(self.template)
        return text % self.params if self.params else text

    def to_json(self) -> dict[str, Any]:
        """Template and parameters, so that a stored message can be read in another language later."""
        return {"template": self.template, "params": dict(self.params)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Message:
        return cls(template=data["template"], params=data.get("params", {}))

    def __str__(self) -> str:
        return self.render()


def msg(template: str, /, **params: Parameter) -> Message:
    """A translatable message. The template must be a literal, or it is not extracted."""
    return Message(template, params)


def plural(count: float, one: Message, many: Message) -> Message:
    """`one` for exactly one, `many` for any other count. Both are written out, so that both are extracted."""
    return one if count == 1 else many
