"""Figures in a clause's words, held against what it asks as data and against its other language. Pure.

A figure is a number with a unit of time or per cent, written in digits or words; what is no figure is never guessed at.
Nothing is decided here: where words and data differ, a person is told both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from procurement.precedence import AT_LEAST

MONTH, DAY, WORKING_DAY, HOUR, PERCENT, PLAIN = "month", "day", "working day", "hour", "percent", ""
# Term: the units in which words may tell it, and how many of its own unit one of them is.
UNITS: dict[str, dict[str, Decimal]] = {
    "months": {MONTH: Decimal(1)},
    "doa_days": {DAY: Decimal(1), WORKING_DAY: Decimal(1)},
    "return_days": {DAY: Decimal(1), WORKING_DAY: Decimal(1)},
    "spare_part_years": {MONTH: Decimal(1) / 12},
}
BURN_IN = ("burn_in_permitted", "continuous_use_permitted")


@dataclass(frozen=True, slots=True)
class Told:
    """One figure: number and unit, and the words that say it."""

    value: Decimal
    unit: str
    words: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Words that say another figure than the data, or than the other language (`field` empty).

    `words` are those of `language`; without any the words name no such figure. `other` are the words of the other
    language, `asked` the figure of the data.
    """

    language: str  # en, zh
    words: tuple[str, ...]
    field: str = ""
    asked: int | None = None
    other: tuple[str, ...] = ()


_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()  # fmt: skip
_TENS = {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), 2
    )
}
_WORD = "|".join((*_TENS, *sorted(_ONES[1:], key=len, reverse=True)))
_ENGLISH = re.compile(
    rf"(?<![\w.,])(?P<number>\d[\d,]*(?:\.\d+)?|(?:{_WORD})(?:[- ](?:{_WORD}))?)(?:\s*\(\s*\d+\s*\))?[\s-]*"
    r"(?P<unit>%|per\s?cent\b|(?:working|business)[\s-]+days?\b|calendar[\s-]+days?\b|days?\b|weeks?\b|months?\b"
    r"|years?\b|hours?\b|h\b)",
    re.IGNORECASE,
)
_HAN = "零〇一二两三四五六七八九十百"
_CHINESE = re.compile(
    rf"(?P<percent>百分之\s*(?P<share>[{_HAN}]+|\d+(?:\.\d+)?))|"
    rf"(?P<number>\d[\d,]*(?:\.\d+)?|[{_HAN}]+)\s*(?P<unit>%|％|个?工作日|个?自然日|个月|月|日历日|日|天|个?星期|周|年|个?小时)"
)
# No figures of a term: “24×7”, a calendar's day, “第一” (the first), “之一” (one of).
_NOT = re.compile(
    r"\d+\s*[×xX*]\s*\d+|\d{4}-\d{2}-\d{2}|(?:19|20)\d{2}\s*年(?:\s*\d{1,2}\s*月)?(?:\s*\d{1,2}\s*日)?"
    r"|第[" + _HAN + r"\d]+|之一"
)
_SCALE = {
    "week": (DAY, 7),
    "year": (MONTH, 12),
    "month": (MONTH, 1),
    "day": (DAY, 1),
    "hour": (HOUR, 1),
}
_CHINESE_UNITS = {
    "工作日": (WORKING_DAY, 1), "自然日": (DAY, 1), "日历日": (DAY, 1), "日": (DAY, 1), "天": (DAY, 1),
    "星期": (DAY, 7), "周": (DAY, 7), "月": (MONTH, 1), "年": (MONTH, 12), "小时": (HOUR, 1),
}  # fmt: skip


def figures(text: str, language: str) -> list[Told]:
    """The figures that a text in `language` (en, zh) tells, in order."""
    clean = _NOT.sub(" ", text)
    if language == "en":
        return [_english(match) for match in _ENGLISH.finditer(clean)]
    return [_chinese(match) for match in _CHINESE.finditer(clean)]


def disagreements(
    text_en: str, text_zh: str, asks: Mapping[str, Any], *, burn_in_hours: int | None = None
) -> tuple[Disagreement, ...]:
    """Where the words of a clause say another figure than what it asks as data, or the one language than the other.

    `burn_in_hours`: what the purchasing policy asks of a burn-in, for a clause that is about it.
    """
    told = {"en": figures(text_en, "en"), "zh": figures(text_zh, "zh")}
    found = []
    for language, rows in told.items():
        for field in AT_LEAST:
            if field in asks:
                found += _of_term(field, asks[field], rows, language)
        hours = [row for row in rows if row.unit == HOUR]
        about = any(asks.get(name) for name in BURN_IN)
        if about and burn_in_hours is not None and hours and not _says(hours, burn_in_hours):
            found.append(
                Disagreement(language, _words(hours), field="burn_in_hours", asked=burn_in_hours)
            )
    return (*found, *_between(told["en"], told["zh"]))


def _of_term(field: str, asked: int, rows: Iterable[Told], language: str) -> list[Disagreement]:
    scale = UNITS[field]
    mine = [row for row in rows if row.unit in scale]
    if any(row.value * scale[row.unit] == asked for row in mine):
        return []
    return [Disagreement(language, _words(mine), field=field, asked=asked)]


def _says(rows: Iterable[Told], value: int) -> bool:
    return any(row.value == value for row in rows)


def _between(english: list[Told], chinese: list[Told]) -> list[Disagreement]:
    """Figures that only one of the two languages tells."""

    def only(rows: list[Told], others: list[Told]) -> tuple[str, ...]:
        known = {(row.unit, row.value) for row in others}
        return _words(row for row in rows if (row.unit, row.value) not in known)

    mine, theirs = only(english, chinese), only(chinese, english)
    return [Disagreement("en", mine, other=theirs)] if mine or theirs else []


def _words(rows: Iterable[Told]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.words for row in rows))


def _english(match: re.Match[str]) -> Told:
    words, unit = match["number"].lower(), re.sub(r"[\s-]+", " ", match["unit"].lower())
    if words[0].isdigit():
        value = Decimal(words.rstrip(",").replace(",", ""))
    else:
        value = Decimal(
            sum(_TENS.get(part) or _ONES.index(part) for part in re.split(r"[- ]", words))
        )
    said = " ".join(match[0].split())
    if unit in ("%", "percent", "per cent"):
        return Told(value, PERCENT, said)
    if unit.startswith(("working", "business")):
        return Told(value, WORKING_DAY, said)
    name, scale = _SCALE[
        "hour" if unit == "h" else unit.removeprefix("calendar ").removesuffix("s")
    ]
    return Told(value * scale, name, said)


def _chinese(match: re.Match[str]) -> Told:
    said = match[0].strip()
    if match["percent"]:
        return Told(_han(match["share"]), PERCENT, said)
    unit = match["unit"].removeprefix("个")
    if unit in ("%", "％"):
        return Told(_han(match["number"]), PERCENT, said)
    name, scale = _CHINESE_UNITS[unit]
    return Told(_han(match["number"]) * scale, name, said)


def _han(text: str) -> Decimal:
    """A number below 1,000 in digits or Chinese numerals."""
    if text[0].isdigit():
        return Decimal(text.rstrip(",").replace(",", ""))
    digits = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {
        "〇": 0,
        "两": 2,
    }
    total, last = 0, None
    for sign in text:
        if sign in "十百":
            total += (1 if last is None else last) * (10 if sign == "十" else 100)
            last = None
        else:
            last = digits[sign]
    return Decimal(total + (last or 0))
