"""A study's result as lines of plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core.messages import msg, plural
from core.templatetags.ui import said, span
from planning import study_tables

SHOWN = 12


def result_lines(result: Mapping[str, Any]) -> Iterator[str]:
    """What is recommended, the plans, what could not be priced, and how much was looked at."""
    counts = result["counts"]
    yield said(
        msg(
            "%(candidates)s candidates on %(accelerators)s accelerators and %(offers)s offers; %(met)s meet the need.",
            candidates=counts["candidates"],
            accelerators=counts["accelerators"],
            offers=counts["offers"],
            met=counts["met"],
        )
    )
    yield ""
    for card in study_tables.cards(result):
        yield f"{card.role}: {card.name} – {card.cost}, {card.time}"
        yield f"  {card.place}. {card.why}."
        if card.amount:
            yield "  " + " · ".join(
                x for x in (f"{card.amount_label}: {card.amount}", card.tax) if x
            )
    plans = result["plans"] or result["nearest"]
    if plans:
        yield ""
        if not result["plans"]:
            yield said(msg("Nothing meets the need. Nearest:"))
        yield from _table(result, study_tables.plan_rows(plans)[:SHOWN])
    yield ""
    for row in study_tables.codes_in(result):
        yield f"{row[1]}: {row[2]}"
    for text in (*result["software_first"], *result["notes"]):
        yield f"- {said(text)}"
    if result["unpriced"]:
        yield said(
            plural(
                len(result["unpriced"]),
                msg("%(n)s entry of the catalogue could not be priced.", n=len(result["unpriced"])),
                msg(
                    "%(n)s entries of the catalogue could not be priced.", n=len(result["unpriced"])
                ),
            )
        )


def _table(result: Mapping[str, Any], rows: list[dict[str, Any]]) -> Iterator[str]:
    heads = [
        said(msg("Plan")),
        said(msg("Cost")),
        study_tables.time_label(result),
        said(msg("Where")),
    ]
    lines = [heads] + [
        [row["name"], row["cost"], span(row["plan"]["seconds"]["p50"]), row["place"]]
        for row in rows
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    for line in lines:
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
