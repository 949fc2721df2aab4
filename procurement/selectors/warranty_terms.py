"""Every warranty term of several quotes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.text import capfirst

from procurement.models import Quote, WarrantyTerms
from procurement.selectors.quote_changes import shown_value


def warranty_rows(quotes: Sequence[Quote]) -> list[tuple[str, list[str]]]:
    """(term, what each quote says of it), in the order of the terms; no query where the warranties are at hand."""
    found = []
    for field in WarrantyTerms._meta.concrete_fields:
        if field.name in ("id", "quote"):
            continue
        shown: dict[Any, str] = {}  # most quotes say the same of most terms
        row = []
        for quote in quotes:
            value = getattr(quote.warranty, field.attname)
            if value not in shown:
                shown[value] = shown_value(quote.warranty, field)
            row.append(shown[value])
        found.append((str(capfirst(field.verbose_name)), row))
    return found
