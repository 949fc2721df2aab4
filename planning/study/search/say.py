"""A stored result with its messages said: what a command or an API prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.messages import Message


def said(value: Any, say: Callable[[Message], str] = str) -> Any:
    """`value` with every stored message replaced by its text."""
    if isinstance(value, dict):
        if value.keys() == {"template", "params"}:
            return say(Message.from_json(value))
        return {key: said(inner, say) for key, inner in value.items()}
    if isinstance(value, list):
        return [said(inner, say) for inner in value]
    return value
