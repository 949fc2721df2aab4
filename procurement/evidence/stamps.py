"""Dates as tools print them in the locale of whoever ran them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

# By their beginnings, in English, German, French, Spanish and Italian.
_MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "jan ene gen", "feb fév fev", "mar mär mrz", "apr avr abr", "may mai mag", "jun juin giu", "jul juil lug",
            "aug aoû ago", "sep set", "oct okt ott", "nov", "dec dez déc dic",
        ),
        1,
    )
    for word in words.split()
}  # fmt: skip
_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:\s*([AaPp])[Mm]\b)?")
_DAY_FIRST = re.compile(r"(?<![\d:])(\d{1,2})\.?\s+(?:de\s+)?([^\W\d_]{3,12})\b")
_MONTH_FIRST = re.compile(r"\b([^\W\d_]{3,12})\.?\s+(\d{1,2})(?![\d:])\b")
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
    year = _YEAR.search(text)
    if year is None:
        return None
    # "Mon 02 Mar 2026": the day stands between two words; only one of them is a month.
    for pattern, word, day in ((_DAY_FIRST, 2, 1), (_MONTH_FIRST, 1, 2)):
        for found in pattern.finditer(text):
            month = _month(found[word])
            if month:
                return int(year[1]), month, int(found[day])
    return None


def _month(word: str) -> int | None:
    folded = word.lower()
    return _MONTHS.get(folded[:4]) or _MONTHS.get(folded[:3])
