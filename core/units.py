"""What is counted, in words: units that are no SI units, and the large numbers before them."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import get_language, pgettext_lazy

UNITS: dict[str, Promise] = {
    "GPU h": pgettext_lazy("unit", "GPU h"),
    "GPU·h": pgettext_lazy("unit", "GPU·h"),
    "images": pgettext_lazy("unit", "images"),
    "items": pgettext_lazy("unit", "items"),
    "parameters": pgettext_lazy("unit", "parameters"),
    "pcs": pgettext_lazy("unit", "pcs"),
    "requests": pgettext_lazy("unit", "requests"),
    "samples": pgettext_lazy("unit", "samples"),
    "sequences": pgettext_lazy("unit", "sequences"),
    "tokens": pgettext_lazy("unit", "tokens"),
    "tokens/s": pgettext_lazy("unit", "tokens/s"),
    "requests/s": pgettext_lazy("unit", "requests/s"),
}

# From a million on: English counts in thousands, Chinese in ten thousands.
ENGLISH = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
CHINESE = ((1e12, "万亿"), (1e8, "亿"), (1e4, "万"))


def unit_words(unit: str) -> str:
    """`unit` in the reader's language; itself when it is the same in all (GB, W)."""
    return str(UNITS.get(unit, unit))


def scale(number: float) -> tuple[float, str]:
    """What to divide a counted `number` of a million or more by, and the word for it: (1e9, "B"), (1e8, "亿")."""
    steps = CHINESE if (get_language() or "").startswith("zh") else ENGLISH
    return next(((size, word) for size, word in steps if abs(number) >= size), steps[-1])
