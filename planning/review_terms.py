"""The chapter of a pack on what runs out: reservations, cloud commitments, warranties."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from catalog.reference import accelerator_label
from core import charts
from planning.models.plans import PaymentChoice
from planning.review_parts import DASH, Section, Table

# Kinds of assets as procurement stores them in a snapshot; what else may come is shown as it is.
UNITS = {
    "accelerator": gettext_lazy("Accelerator"),
    "node": gettext_lazy("Server"),
    "other": gettext_lazy("Other"),
}


def ending(data: Mapping[str, Any]) -> tuple[Section, ...]:
    """What ends; snapshots from before it was read have no such chapter."""
    rows = data.get("terms")
    if rows is None:
        return ()
    until = date.fromisoformat(data["until"])
    by_kind = {
        what: [row for row in rows if row["what"] == what]
        for what in ("reservation", "commitment", "warranty")
    }
    return (
        Section(
            title=_("Terms that end"),
            sources=("terms",),
            sentences=_sentences(by_kind, until),
            charts=_courses(by_kind["warranty"], by_kind["reservation"]),
            tables=(
                *_reservations(by_kind["reservation"]),
                *_commitments(by_kind["commitment"]),
                *_warranties(by_kind["warranty"]),
            ),
            empty="" if rows else _("No reservation and no warranty ends up to half a year after the quarter."),
        ),
    )  # fmt: skip


def _sentences(by_kind: Mapping[str, Sequence[Mapping[str, Any]]], until: date) -> tuple[str, ...]:
    over = sum(
        row["number"] for row in by_kind["warranty"] if date.fromisoformat(row["last_day"]) < until
    )
    soon = sum(row["number"] for row in by_kind["warranty"]) - over
    cards = sum(row["number"] for row in by_kind["reservation"] if row["last_day"] is not None)
    found = []
    if cards:
        text = ngettext(
            "Reservations of %(n)s card end in the quarter or the half year after it.",
            "Reservations of %(n)s cards end in the quarter or the half year after it.", cards,
        )  # fmt: skip
        found.append(text % {"n": number_format(cards)})
    if over:
        text = ngettext(
            "The last warranty of %(n)s unit ended in the quarter.",
            "The last warranty of %(n)s units ended in the quarter.", over,
        )  # fmt: skip
        found.append(text % {"n": number_format(over)})
    if soon:
        text = ngettext(
            "%(n)s unit loses its last warranty in the half year after: claim what is open, or extend it.",
            "%(n)s units lose their last warranty in the half year after: claim what is open, or extend it.", soon,
        )  # fmt: skip
        found.append(text % {"n": number_format(soon)})
    return tuple(found)


def _courses(*lists: Sequence[Mapping[str, Any]]) -> tuple[charts.Chart, ...]:
    """Units and cards by the month in which their term ends."""
    words = {"warranty": _("Units under warranty"), "reservation": _("Reserved cards")}
    counts: Counter[tuple[str, str]] = Counter()
    for row in (row for rows in lists for row in rows if row["last_day"]):
        counts[row["last_day"][:7], words[row["what"]]] += row["number"]
    if not counts:
        return ()
    return (
        charts.bars(
            title=_("What ends, month by month"),
            labels=(_("Month"), _("What"), _("Number")),
            rows=[(month, what, n) for (month, what), n in sorted(counts.items())],
        ),
    )


def _day(text: str | None) -> str:
    return date_format(date.fromisoformat(text), "DATE_FORMAT") if text else DASH


def _reservations(rows: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    if not rows:
        return ()
    labels = dict(PaymentChoice.choices)
    return (
        Table(
            _("Reservations that end"),
            (
                (_("Request"), ""), (_("Team"), ""), (_("Accelerator"), ""), (_("Payment"), ""), (_("Cards"), "num"),
                (_("Last day"), ""),
            ),
            tuple(
                (
                    row["source"], row["team"], accelerator_label(row["accelerator"]),
                    str(labels.get(row["kind"], row["kind"])), number_format(row["number"]), _day(row["last_day"]),
                )
                for row in rows
            ),
            "terms", tuple({"source": row["source"], "last_day": row["last_day"] or ""} for row in rows),
        ),
    )  # fmt: skip


def _commitments(rows: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    if not rows:
        return ()
    return (
        Table(
            _("Cloud commitments that are not used up"),
            (
                (pgettext("purchase", "Order"), ""), (_("Vendor"), ""), (_("Team"), ""), (_("Accelerator"), ""),
                (_("Left"), "num"), (_("Lasts until, at the pace so far"), ""),
            ),
            tuple(
                (
                    row["source"], row["vendor"], row["team"] or DASH, accelerator_label(row["accelerator"]) or DASH,
                    f"{number_format(row['number'])} {row['unit']}", _day(row["last_day"]),
                )
                for row in rows
            ),
            "terms", tuple({"source": row["source"], "last_day": row["last_day"] or ""} for row in rows),
        ),
    )  # fmt: skip


def _warranties(rows: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    if not rows:
        return ()
    return (
        Table(
            _("Warranties that end"),
            (
                (pgettext("purchase", "Order"), ""), (_("Vendor"), ""), (_("Device"), ""),
                (_("Units"), "num"), (_("Last covered day"), ""),
            ),
            tuple(
                (
                    row["source"] or DASH, row["vendor"] or DASH,
                    accelerator_label(row["accelerator"]) or str(UNITS.get(row["kind"], row["kind"])),
                    number_format(row["number"]), _day(row["last_day"]),
                )
                for row in rows
            ),
            "terms", tuple({"source": row["source"], "last_day": row["last_day"] or ""} for row in rows),
        ),
    )  # fmt: skip
