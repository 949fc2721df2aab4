"""Dates as tools print them in the locale of whoever ran them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

_MONTHS = {m: i for i, m in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:\s*([AaPp])[Mm]\b)?")
_WESTERN = re.compile(
    r"\b([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2})\b|\b(\d{1,2})\s+([A-Z][a-z]{2})[a-z]*\b"
)
_CJK = re.compile(r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*日")
_ISO = re.compile(r"(\d{4})[-/](\d{2})[-/](\d{2})")
_YEAR = re.compile(r"\b(20\d{2}|19\d{2})\b")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A local moment without a known zone; `text` is ISO 8601, with Z only when the tool printed UTC."""

    moment: datetime
    text: str
    raw: str


def locale_stamp(text: str) -> Stamp | None:
    """A moment from "Thu Mar  5 08:00:00 UTC 2026", with AM/PM, in ISO form or in Chinese; None if it is not one."""
    time = _TIME.search(text)
    if not time:
        return None
    hour, minute, second = int(time[1]), int(time[2]), int(time[3])
    if time[4]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if time[4] in "Pp" else 0)
    elif "下午" in text and hour < 12:
        hour += 12
    date = _date(text)
    if date is None:
        return None
    try:
        moment = datetime(*date, hour, minute, second)
    except ValueError:
        return None
    zone = "Z" if re.search(r"\b(UTC|GMT)\b", text) else ""
    return Stamp(moment, moment.isoformat() + zone, text.strip())


def _date(text: str) -> tuple[int, int, int] | None:
    for pattern in (_CJK, _ISO):
        found = pattern.search(text)
        if found:
            return int(found[1]), int(found[2]), int(found[3])
    year, western = _YEAR.search(text), None
    for western in _WESTERN.finditer(text):
        month = _MONTHS.get((western[1] or western[4]).lower())
        if month and year:
            return int(year[1]), month, int(western[2] or western[3])
    return None
