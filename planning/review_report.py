"""A review's PDF: the pack of one snapshot in one language, with its figures embedded as CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any

from django.template.loader import render_to_string
from django.utils import timezone, translation

from core.exports import Cell, csv_cell
from core.organisation import organisation
from core.pdf import Attachment, render_pdf
from planning.models.reviews import BOTH, LANGUAGES, ReviewReport
from planning.review_pack import build_pack
from planning.review_rows import LISTS, fields_of, frozen_rows
from planning.selectors.reviews import BUCKETS

TEMPLATE = "planning/review_pack.html"
AMOUNTS = frozenset({*BUCKETS, "amount", "base_amount"})


def render_report(report: ReviewReport) -> bytes:
    """PDF bytes; the same snapshot, language and template give the same bytes."""
    snapshot = report.snapshot
    data = snapshot.data
    languages = LANGUAGES if report.language == BOTH else (report.language,)
    context = pack_context(
        data, number=snapshot.number, data_hash=snapshot.data_hash, languages=languages,
        zone=organisation().zone,
    )  # fmt: skip
    with translation.override(languages[0]):
        return render_pdf(
            TEMPLATE,
            context,
            languages[0],
            made_at=datetime.fromisoformat(data["as_of"]),
            attachments=attachments_of(data, context["pack"].title),
        )


def pack_context(
    data: Mapping[str, Any], *, number: int, data_hash: str, languages: Sequence[str], zone: tzinfo
) -> dict[str, Any]:
    """What `TEMPLATE` draws: the pack once in each of `languages`, and the first one as `pack`."""
    parts = []
    for place, language in enumerate(languages, 1):
        with translation.override(language), timezone.override(zone):
            pack = build_pack(data, number=number)
            body = render_to_string(
                "planning/_review_pack_body.html",
                {
                    "pack": pack,
                    "data_hash": data_hash,
                    "prefix": f"p{place}",
                    "another": place > 1,
                    "made_at": datetime.fromisoformat(data["as_of"]),
                },
            )
        parts.append((language, pack, body))
    return {"parts": parts, "pack": parts[0][1]}


def attachments_of(data: Mapping[str, Any], title: str) -> list[Attachment]:
    """The lists of a snapshot as CSV files."""
    return [
        Attachment(f"{name}.csv", rows_csv(frozen_rows(data, name)), title)
        for name in LISTS
        if data.get(name)
    ]


def report_name(report: ReviewReport) -> str:
    """`capacity-review-2027Q1-v1-zh-hans.pdf`."""
    snapshot = report.snapshot
    return f"capacity-review-{snapshot.review.code}-v{snapshot.number}-{report.language}.pdf"


def rows_csv(rows: list[dict[str, Any]]) -> bytes:
    """Rows as CSV with a BOM, so that a spreadsheet reads the Chinese; nested values as JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    names = fields_of(rows)
    writer.writerow(names)
    for row in rows:
        writer.writerow([csv_cell(_cell(name, row.get(name))) for name in names])
    return ("\ufeff" + out.getvalue()).encode()


def _cell(name: str, value: Any) -> Cell:
    """Amounts are stored as text and are numbers here: a minus sign is no formula."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and name in AMOUNTS:
        return Decimal(value)
    return value
