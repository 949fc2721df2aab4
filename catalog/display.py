"""How catalogue figures are written for people: exact, grouped, with unit; a dash when not known."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from catalog.labels import source_words
from catalog.models import Confidence

DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "fp4")
INTEGER_DTYPES = ("int8", "int4")
_TONES = {
    Confidence.MEASURED: "good",
    Confidence.READ: "info",
    Confidence.RECALLED: "warn",
}


def plain(value: float | Decimal | None, places: int = 2) -> str:
    """`value` grouped, with at most `places` decimals and no idle zeros."""
    if value is None:
        return "–"
    rounded = round(Decimal(str(value)), places)
    text = f"{rounded:f}"
    decimals = len(text.partition(".")[2].rstrip("0"))
    return str(number_format(rounded, decimal_pos=decimals, force_grouping=True))


def quantity(value: float | None, scale: float, unit: str, places: int = 2) -> str:
    """`value` in units of `scale`: quantity(80e9, 1e9, "GB") is "80 GB"."""
    return "–" if value is None else f"{plain(value / scale, places)} {unit}"


def gigabytes(value: float | None) -> str:
    return quantity(value, 1e9, "GB")


def bandwidth(value: float | None) -> str:
    return quantity(value, 1e9, "GB/s")


def rate(value: float | None, dtype: str = "bf16") -> str:
    """A peak rate in TFLOPS, or TOPS for integers."""
    return quantity(value, 1e12, "TOPS" if dtype in INTEGER_DTYPES else "TFLOPS")


def watts(value: float | None) -> str:
    return quantity(value, 1, "W", 0)


def kilowatts(value: float | None) -> str:
    return quantity(value, 1e3, "kW", 1)


def params(value: int | None) -> str:
    """A number of parameters: 8.03 B, 110 M."""
    if value is None:
        return "–"
    return quantity(value, 1e9, "B") if value >= 1e9 else quantity(value, 1e6, "M", 1)


def kibibytes(value: float | None) -> str:
    return quantity(value, 1024, "KiB", 1)


def tokens(value: int | None) -> str:
    return "–" if value is None else plain(value, 0)


def series_ends(value: Any) -> str:
    """One number, or the first and the last of a series."""
    if not isinstance(value, list):
        return plain(value, 6)
    return f"{plain(value[0], 6)} … {plain(value[-1], 6)}"


def yes_no(value: bool | None) -> str:
    return (
        "–" if value is None else pgettext("answer", "yes") if value else pgettext("answer", "no")
    )


def series(value: Any) -> str:
    """One number, or one a year or tier."""
    values: Iterable[float] = value if isinstance(value, list) else [value]
    return " / ".join(plain(number, 6) for number in values)


def confidence(row: Any) -> SafeString:
    """How far a row is known, as a small coloured word."""
    known = Confidence(row.confidence)
    return format_html(
        '<span class="badge {}" title="{}">{}</span>',
        _TONES.get(known, "neutral"),
        known.meaning,
        known.label,
    )


def source(row: Any) -> SafeString:
    """Source (a link when there is an address) and date."""
    dated = row.dated
    if row.source_url:
        return format_html(
            '<a href="{}" rel="noopener noreferrer">{}</a> <small>{}</small>',
            row.source_url, source_words(row.source), dated,
        )  # fmt: skip
    return format_html("{} <small>{}</small>", source_words(row.source), dated)


def corrected() -> SafeString:
    """The mark of a row that the organisation corrected."""
    return format_html('<span class="badge info plain">{}</span>', _("corrected"))


def span_of_money(low: Decimal, high: Decimal, currency: str) -> str:
    """A price range, or one price when both ends agree."""
    if low == high:
        return f"{plain(low)} {currency}"
    return f"{plain(low)} – {plain(high)} {currency}"
