"""Every warranty term of several quotes side by side."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.text import capfirst

from procurement.models import Quote, WarrantyTerms
from procurement.selectors.quote_changes import shown_value


def warranty_rows(quotes: Sequence[Quote]) -> list[tuple[str, list[str]]]:
    """(term, what each quote says of it), in the order of the terms; no query where the warranties are at hand."""
    return [
        (
            str(capfirst(field.verbose_name)),
            [shown_value(quote.warranty, field) for quote in quotes],
        )
        for field in WarrantyTerms._meta.concrete_fields
        if field.name not in ("id", "quote")
    ]
