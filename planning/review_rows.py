"""The frozen rows behind a figure: one list of a snapshot, all of it or the rows that a figure is made of. Pure.

Names of lists and fields are those of the CSV files inside the PDF, so that both can be laid side by side.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from planning.review_pack import Pack
from planning.review_parts import Section, Table

LISTS = {
    "earlier_actions": _("Earlier actions"), "plans": _("Plans of teams"), "recommendations": _("Recommendations"),
    "requests": _("Requests"), "demand": _("Demand"), "supply": _("Supply"), "terms": _("Terms that end"),
    "use": _("Use"), "use_days": _("Use by day"), "queues": _("Queues"), "forecast": _("Forecast"),
    "budgets": _("Budgets"), "orders": _("Orders"), "cards": _("Cards"), "vendors": _("Vendors"), "rfqs": _("RFQs"),
    "rmas": _("Returns"), "calibration": _("Calibration"), "calibration_months": _("Calibration by month"),
}  # fmt: skip
USE_DAYS = ("day", "utilization", "memory")


def frozen_rows(
    data: Mapping[str, Any], name: str, where: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Rows of list `name` whose fields are as `where` says, as text; fields that the list does not have are ignored.

    Raises KeyError for a name that is no list of snapshots, or that this snapshot is too old to have.
    """
    if name not in LISTS:
        raise KeyError(name)
    rows = [
        dict(zip(USE_DAYS, row, strict=True)) if isinstance(row, list) else dict(row)
        for row in data[name]
    ]
    fields = fields_of(rows)
    asked = {field: value for field, value in (where or {}).items() if field in fields}
    return [row for row in rows if all(cell(row.get(f)) == v for f, v in asked.items())]


def fields_of(rows: list[dict[str, Any]]) -> list[str]:
    """Fields in the order in which they were frozen."""
    return list(dict.fromkeys(field for row in rows for field in row))


def cell(value: Any) -> str:
    """A frozen value as text: nothing for what is not known, JSON for what is nested."""
    if value is None:
        return ""
    if isinstance(value, dict | list | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def with_links(pack: Pack, data: Mapping[str, Any], base: str, version: int) -> Pack:
    """`pack` for the page: the first cell of each row, and each tile, leads to its rows under `base`."""

    def address(name: str, where: Mapping[str, str] | None = None) -> str:
        return f"{base}{name}/?{urlencode({'version': version, **(where or {})})}"

    def table(one: Table) -> Table:
        if not one.wheres or one.source not in data:
            return one
        rows = tuple(
            (
                format_html('<a href="{}">{}</a>', address(one.source, where), row[0] or "–"),
                *row[1:],
            )
            for row, where in zip(one.rows, one.wheres, strict=True)
        )
        return replace(one, rows=rows)

    def section(one: Section) -> Section:
        found = tuple(
            (str(LISTS[name]), address(name), len(data[name]))
            for name in one.sources
            if name in data
        )
        return replace(one, tables=tuple(table(t) for t in one.tables), behind=found)

    return replace(
        pack,
        tiles=tuple(
            (label, figure, note, address(name) if name in data else "")
            for label, figure, note, name in pack.tiles
        ),
        sections=tuple(section(one) for one in pack.sections),
    )
