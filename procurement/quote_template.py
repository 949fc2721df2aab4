"""The table that an RFQ produces for its vendors: asked lines, terms and criteria, headed in the vendor's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import translation

from core.templatetags.ui import said
from procurement.models import Rfq
from procurement.quote_table import template_columns, template_rows
from procurement.requirements import blank_answers


def quote_template(rfq: Rfq, language: str) -> dict[str, Any]:
    """Name, columns and rows of the table; `language` is that of headings and criteria (zh…: Chinese, else English)."""
    return {
        "name": f"{rfq.number}-quote",
        "columns": template_columns(language),
        "rows": _rows(rfq, language),
    }


def _rows(rfq: Rfq, language: str) -> list[Mapping[str, Any]]:
    asked = list(rfq.requirements.all())
    with translation.override("zh-hans" if language.lower().startswith("zh") else "en"):
        requirements = "; ".join(f"{row.position}. {said(row.words)}" for row in asked)
    head = {
        "warranty_months": rfq.warranty_months,
        "warranty_start": rfq.warranty_start,
        "requirements": requirements,
        "answers": blank_answers(row.position for row in asked),
    }
    return template_rows(rfq.lines.all(), head)
