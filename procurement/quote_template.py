"""The lines of an RFQ as a table for vendors to fill in: the same file by page, by API and for a vendor's key."""

from __future__ import annotations

from typing import Any

from procurement.models import Rfq
from procurement.quote_table import template_columns, template_rows


def quote_template(rfq: Rfq, language: str) -> dict[str, Any]:
    """Name, columns and rows of the file as `core.exports.export_response` takes them; Chinese for zh…."""
    return {
        "name": f"{rfq.number}-quote",
        "columns": template_columns(language),
        "rows": template_rows(
            rfq.lines.all(), warranty_months=rfq.warranty_months, warranty_start=rfq.warranty_start
        ),
    }
