"""Template helpers of the design system: messages, amounts, units, states. Loaded as built-ins."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Context as Digits
from decimal import Decimal
from typing import Any

from django import template
from django.template.base import Parser, Token
from django.template.context import Context
from django.template.defaulttags import CsrfTokenNode
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from core import labels, policies, units
from core.background import stage_of
from core.messages import Message, Parameter
from core.models import Job, User
from core.money import CURRENCIES, Money, minor_digits, round_amount
from core.once import FIELD
from core.units import unit_words

register = template.Library()


class FormTokenNode(CsrfTokenNode):
    """Django's token against forged forms, and one of our own against forms sent twice (core/once.py)."""

    def render(self, context: Context) -> SafeString:
        field = super().render(context)
        if not field:
            return SafeString()
        return format_html(
            '{}<input type="hidden" name="{}" value="{}">', field, FIELD, secrets.token_urlsafe(16)
        )


@register.tag
def csrf_token(parser: Parser, token: Token) -> FormTokenNode:
    """Stands in for Django's own tag, so that no form can be written without its one-time token."""
    return FormTokenNode()


SI = (
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
)
# Units that take an SI prefix; everything else is a word for what is counted.
SI_UNITS = frozenset(
    {"", "B", "B/s", "b/s", "FLOP", "FLOP/s", "OP/s", "W", "Wh", "J", "s", "m", "Hz"}
)
COUNTED_IN_FULL = 1e6
ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
TONES = ("neutral", "info", "good", "warn", "bad")


_LINE = re.compile(r"line (\d{1,12})")


@register.filter
def said(value: Message | Mapping[str, Any] | None) -> str:
    """A core.messages.Message (or its stored JSON) in the reader's language."""
    if not value:
        return ""
    message = value if isinstance(value, Message) else Message.from_json(value)
    return Message(message.template, _written(message.params)).render(gettext)


@register.filter
def place(where: str | None) -> str:
    """A place in a file, "line 12" in the reader's language; a JSON path is the same in every one."""
    found = _LINE.fullmatch(where or "")
    return gettext("line %(n)s") % {"n": found[1]} if found else where or ""


@register.filter
def stage(job: Job) -> str:
    """Where a job stands, in the reader's language; while nobody works on it, that it is kept."""
    return said(stage_of(job))


def _written(params: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Days among the parameters as the reader writes them: pure code can only say 2027-01-31."""
    found: dict[str, Parameter] = {}
    for name, value in params.items():
        if isinstance(value, Message):
            found[name] = Message(value.template, _written(value.params))
        elif isinstance(value, str) and ISO_DAY.fullmatch(value):
            found[name] = _day(value)
        else:
            found[name] = value
    return found


def _day(text: str) -> str:
    try:
        return date_format(date.fromisoformat(text))
    except ValueError:  # 2027-02-30, as somebody typed it
        return text


@register.filter
def cells(values: Iterable[str]) -> SafeString:
    """The cells of one row of a wide table: at once, where a loop of the template would take its time for each."""
    return format_html_join("", '<td class="wrap">{}</td>', ((value,) for value in values))


@register.filter
def broken_lines(text: str | None) -> SafeString:
    """`text` with its line breaks, for documents: `linebreaksbr` writes tags that no XML parser reads (core/pdf)."""
    return format_html_join(
        SafeString("<br />"), "{}", ((line,) for line in str(text or "").splitlines())
    )


register.filter("unit", unit_words)


@register.filter
def watch_token(job: Job) -> str:
    """What lets a reader of this page follow `job`."""
    return policies.watch_token(job)


@register.filter
def job_title(job: Job) -> str:
    """What `job` does, in words."""
    return labels.job_label(job.task)


@register.filter
def may_cancel(user: User, job: Job) -> bool:
    """Whether the reader may stop `job`."""
    return policies.can_cancel_job(user, job)


@register.filter
def money(value: Money | Decimal | None, currency: str = "") -> str:
    """`1,234.50 CNY`, at the currency's minor unit. A dash when unknown: missing is never zero."""
    if value is None:
        return "–"
    if isinstance(value, Money):
        return money(value.amount, value.currency)
    amount = round_amount(Decimal(value), currency)
    text = number_format(
        amount, decimal_pos=minor_digits(currency), use_l10n=True, force_grouping=True
    )
    return f"{text} {currency}".strip()


@register.filter
def exact(value: Decimal | str | int | None) -> str:
    """A counted quantity or a unit price as it is: grouped, no places but those that count. A dash when unknown."""
    if value is None:
        return "–"
    plain = f"{Decimal(value).normalize():f}"
    places = len(plain.partition(".")[2])
    return number_format(Decimal(plain), decimal_pos=places, use_l10n=True, force_grouping=True)


@register.filter
def quantity(value: float | None, unit: str = "") -> str:
    """A figure in the unit a person would use: `3.35 TB/s`, `600 tokens`, `1.5 T tokens`, `24,000.00 CNY`.

    SI units take a prefix at three significant digits. What is counted (tokens, requests) keeps its digits below a
    million; above, English counts in M, B and T, Chinese in 万 and 亿 (docs/glossary.md). A currency is money.
    """
    if value is None:
        return "–"
    if unit in CURRENCIES:
        return money(Decimal(str(value)), unit)
    number = float(value)
    if number == 0:
        return f"0 {unit_words(unit)}".strip()
    if unit and unit not in SI_UNITS:
        return _counted(number, unit)
    scale, prefix = next(((s, p) for s, p in SI if abs(number) >= s), SI[-1])
    return f"{significant(number / scale)} {prefix}{unit}".strip()


def _counted(number: float, unit: str) -> str:
    """What is counted: in full below a million, then in millions and more as the language counts them."""
    words = unit_words(unit)
    if abs(number) >= COUNTED_IN_FULL:
        size, word = units.scale(number)
        text = f"{plain(significant(number / size))} {word}"
    elif abs(number) >= 100:
        text = number_format(round(number), force_grouping=True)
    else:
        text = plain(significant(number))
    return f"{text} {words}"


def plain(text: str) -> str:
    """A written number without zeros that only fill places: 5.00 → 5."""
    return text.rstrip("0").rstrip(".") if "." in text else text


_ALL_DIGITS = Digits(prec=400)  # any float in full; the usual 28 digits refuse 1e30


@register.filter
def significant(value: float | None, digits: int = 3) -> str:
    """`value` at `digits` significant digits, grouped, without an exponent."""
    if value is None:
        return "–"
    number = float(value)
    if number == 0:
        return "0"
    from math import floor, log10

    places = max(digits - 1 - floor(log10(abs(number))), 0)
    return number_format(
        Decimal(repr(round(number, places))).quantize(
            Decimal(1).scaleb(-places), context=_ALL_DIGITS
        ),
        force_grouping=True,
    )


@register.filter
def percent(value: float | None, digits: int = 0) -> str:
    """A share (1 = 100 %) as per cent."""
    if value is None:
        return "–"
    return f"{number_format(round(float(value) * 100, digits), decimal_pos=digits)} %"


@register.filter
def span(seconds: float | timedelta | None, shown: Callable[[float], str] = significant) -> str:
    """A length of time in the unit a person would use: ms, s, min, h, days."""
    if seconds is None:
        return "–"
    value = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    if value < 1:
        return f"{shown(value * 1000)} ms"
    if value < 120:
        return gettext("%(n)s s") % {"n": shown(value)}
    if value < 2 * 3600:
        return gettext("%(n)s min") % {"n": shown(value / 60)}
    if value < 72 * 3600:
        return gettext("%(n)s h") % {"n": shown(value / 3600)}
    days = value / 86400
    return ngettext("%(n)s day", "%(n)s days", round(days)) % {"n": shown(days)}


@register.filter
def ago(moment: datetime | None) -> str:
    """How long ago, in words and whole units."""
    if moment is None:
        return "–"
    past = max((timezone.now() - moment).total_seconds(), 0)
    if past < 1:
        return gettext("just now")
    return gettext("%(span)s ago") % {"span": span(past, lambda value: str(round(value)))}


@register.filter
def item(mapping: Mapping[Any, Any], key: Any) -> Any:
    """`mapping[key]`, or None."""
    return mapping.get(key) if mapping else None


@register.simple_tag(takes_context=True)
def url_with(context: dict[str, Any], **changes: Any) -> str:
    """The current address with query parameters set (or removed, when empty)."""
    query = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = value
    return f"?{query.urlencode()}"
