"""What a cell of a tool's output says: a number, nothing, or that the device could not answer.

Missing is never zero: every function returns None for a value that is not there. A driver's error text on a live
field is evidence about the device, so it has a class of its own.
"""

from __future__ import annotations

import math
import re
from enum import Enum

MAX_NUMBER_LENGTH = 64

_NUMBER = re.compile(
    r"\s*\(?([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z%/]*)", re.ASCII
)
_HEX = re.compile(r"\s*0[xX]([0-9a-fA-F]{1,16})\s*$")
_ABSENT = {"", "n/a", "[n/a]", "-", "--", "none", "null", "na", "[n/a", "unknown", "not available"}
_UNSUPPORTED = ("not supported", "has been deprecated")
_FORBIDDEN = ("insufficient permissions", "no permission")
_FAULT = (
    "unknown error",
    "gpu is lost",
    "requires reset",
    "err!",
    "gpu lost",
    "gpu access blocked",
)


class Cell(Enum):
    """The class of a cell's text."""

    VALUE = "value"
    ABSENT = "absent"
    UNSUPPORTED = "unsupported"  # by design of the device or the driver
    FORBIDDEN = "forbidden"  # whoever collected the file lacked the permission
    FAULT = "fault"  # the device itself did not answer


def classify(text: str | None) -> Cell:
    """The class of a cell's text; anything that is none of the known error texts is a value."""
    if text is None:
        return Cell.ABSENT
    lowered = text.strip().lower()
    if any(word in lowered for word in _FAULT):
        return Cell.FAULT
    if any(word in lowered for word in _FORBIDDEN):
        return Cell.FORBIDDEN
    if any(word in lowered for word in _UNSUPPORTED):
        return Cell.UNSUPPORTED
    if lowered in _ABSENT or lowered.startswith("n/a"):
        return Cell.ABSENT
    return Cell.VALUE


def number(text: object) -> float | None:
    """The number at the start of a cell ("81559 MiB", "3.57e+05", "(1700Mhz)", "0x10"), or None.

    NaN, infinities, numbers longer than 64 characters and anything that is neither text nor number: None.
    """
    if text is None or isinstance(text, bool):
        return None
    if isinstance(text, int | float):
        try:
            value = float(text)
        except OverflowError:
            return None
        return value if math.isfinite(value) else None
    if not isinstance(text, str):
        return None
    if len(text) > MAX_NUMBER_LENGTH:
        text = text[: MAX_NUMBER_LENGTH + 1]
        if not re.search(r"[^\d.]", text):
            return None
    hexadecimal = _HEX.match(text)
    if hexadecimal:
        return float(int(hexadecimal[1], 16))
    found = _NUMBER.match(text)
    if not found:
        return None
    value = float(found[1])
    return value if math.isfinite(value) else None


def integer(text: object) -> int | None:
    """The whole number in a cell, or None when there is none or it has a fraction."""
    value = number(text)
    return int(value) if value is not None and value == int(value) else None
