"""JSON that every store and every answer can keep."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from core.errors import InputError
from core.messages import Message, msg, shown

DEEPEST = 64  # levels


class JSONProblem(ValueError):
    """What is wrong with a JSON text, in words that may be shown, and where."""

    def __init__(
        self, message: Message, *, path: str = "", value: str = "", limit: str = "JSON"
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.value = value
        self.limit = limit

    def named(self, field: str) -> InputError:
        """The same as a refusal of `field`, or of the place in it."""
        return InputError(self.path or field, self.message, value=self.value, limit=self.limit)


def read_json(text: str) -> Any:
    """The value that `text` holds.

    Raises
    ------
    JSONProblem
        If it is no JSON, is nested too deeply, or holds a number that is none (NaN, 1e999), half of a character or NUL.
    """
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except JSONProblem:
        raise
    except RecursionError:
        raise _too_deep("") from None
    except ValueError as error:
        problem = str(error)[:200]
        raise JSONProblem(msg("This is not valid JSON: %(problem)s", problem=problem)) from None
    check_json(data)
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names are all different: of two values one would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        text = msg("%(field)s is told twice", field=shown(twice))
        raise JSONProblem(text, path=shown(twice), value=shown(twice), limit="1")
    return found


def check_json(data: Any, path: str = "", depth: int = 0) -> None:
    """Raise :class:`JSONProblem` where parsed JSON holds what cannot be kept."""
    if depth > DEEPEST:
        raise _too_deep(path)
    if isinstance(data, str):
        _check_text(data, path)
    elif isinstance(data, float) and not math.isfinite(data):
        text = msg("%(field)s: %(value)s is not a number", field=path or "JSON", value=str(data))
        raise JSONProblem(text, path=path, value=str(data), limit="number")
    elif isinstance(data, Mapping):
        for key, value in data.items():
            _check_text(str(key), path)
            inner = f"{path}.{key}" if path else str(key)
            check_json(value, shown(inner, 200), depth + 1)
    elif isinstance(data, list | tuple):
        for value in data:
            check_json(value, path, depth + 1)


def _too_deep(path: str) -> JSONProblem:
    return JSONProblem(
        msg("The JSON is nested too deeply"), path=path.split(".")[0], limit=str(DEEPEST)
    )


def _check_text(text: str, path: str) -> None:
    if "\0" in text:
        problem = msg("The JSON holds a NUL character")
        raise JSONProblem(problem, path=path, value=shown(text.replace("\0", "␀")), limit="text")
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = msg("The JSON holds half of a character (a lone surrogate)")
        raise JSONProblem(problem, path=path, value=shown(text), limit="text") from None
