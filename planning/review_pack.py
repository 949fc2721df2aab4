"""A frozen snapshot as headings, sentences, tables and charts: the page and the PDF draw the same pack.

Everything comes from the snapshot's data, so a pack opened a year later says what it said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from catalog.reference import accelerator_label
from core import charts
from core.messages import msg
from core.templatetags.ui import money, said
from planning.models.plans import PaymentChoice, SpendKind
from planning.review_parts import DASH, Section, Table
from planning.review_terms import ending
from planning.review_use import learned, recommended, used
from planning.review_work_pack import looked_back
from planning.states import RequestStatus
from planning.workloads import Kind


@dataclass(frozen=True)
class Pack:
    """The whole document."""

    title: str
    organisation: str
    period: str
    as_of: str
    version: str
    tiles: tuple[tuple[str, str, str, str], ...]  # label, figure, note, list of the rows behind it
    sections: tuple[Section, ...]
    holes: tuple[str, ...] = field(default_factory=tuple)


def build_pack(data: Mapping[str, Any], *, number: int) -> Pack:
    """The pack of a snapshot's `data` in the active language."""
    return Pack(
        title=_("Capacity review %(quarter)s") % {"quarter": data["quarter"]},
        organisation=data["organisation"],
        period=_("%(first)s to %(last)s")
        % {"first": _day(data["from"]), "last": _day(data["until"], before=True)},
        as_of=date_format(
            timezone.localtime(datetime.fromisoformat(data["as_of"])), "DATETIME_FORMAT"
        ),
        version=str(number),
        tiles=_tiles(data),
        sections=(
            *looked_back(data),
            *recommended(data),
            _demand(data),
            *used(data),
            *ending(data),
            _budgets(data),
            _orders(data),
            _acceptance(data),
            *learned(data),
            _requests(data),
        ),
        holes=tuple(said(hole) for hole in data["holes"]),
    )


def _day(text: str | None, *, before: bool = False) -> str:
    if not text:
        return DASH
    day = date.fromisoformat(text)
    return date_format(date.fromordinal(day.toordinal() - 1) if before else day, "DATE_FORMAT")


def _count(value: int | None) -> str:
    return DASH if value is None else number_format(value, force_grouping=True)


def _amount(text: str | None, currency: str) -> str:
    return DASH if text is None else money(Decimal(text), currency)


def _label(choices: Any, code: str) -> str:
    try:
        return str(choices(code).label)
    except ValueError:
        return code


def _sum(rows: Any, key: str) -> Decimal:
    return sum((Decimal(row[key]) for row in rows), Decimal(0))


def _tiles(data: Mapping[str, Any]) -> tuple[tuple[str, str, str, str], ...]:
    currency = data["currency"]
    cards = data["cards"]
    accepted = sum(order["accepted"] for order in data["orders"])
    with_base = [row["base"] for row in data["budgets"] if row["base"] is not None]
    left_out = len(data["budgets"]) - len(with_base)
    return (
        (
            _("Requests"),
            _count(len(data["requests"])),
            ngettext("%(n)s card asked for", "%(n)s cards asked for", _asked(data))
            % {"n": _count(_asked(data))},
            "requests",
        ),
        (
            _("Budget available"),
            money(_sum(with_base, "available"), currency) if with_base else DASH,
            said(msg("%(n)s budgets are left out: no exchange rate", n=left_out))
            if left_out
            else "",
            "budgets",
        ),
        (_("Ordered"), _amount(data["ordered_total"], currency), _("without tax"), "orders"),
        (
            _("Cards accepted"),
            _("%(accepted)s of %(delivered)s")
            % {"accepted": _count(accepted), "delivered": _count(len(cards))},
            ngettext("%(n)s open RMA", "%(n)s open RMAs", data["open_rmas"])
            % {"n": data["open_rmas"]},
            "cards",
        ),
    )


def _asked(data: Mapping[str, Any]) -> int:
    return sum(row["cards"] or 0 for row in data["demand"])


def _demand(data: Mapping[str, Any]) -> Section:
    rows = data["demand"]
    currency = data["currency"]
    without = sum(row["without_plan"] for row in rows)
    drawn = [(row["team"], _label(Kind, row["kind"]), row["cards"]) for row in rows if row["cards"]]
    return Section(
        title=_("Demand"),
        sources=("requests", "demand"),
        sentences=tuple(
            s
            for s in (
                ngettext(
                    "%(n)s request has no plan yet; its cards are not counted.",
                    "%(n)s requests have no plan yet; their cards are not counted.",
                    without,
                )
                % {"n": without}
                if without
                else "",
            )
            if s
        ),
        charts=(
            charts.bars(
                title=_("Cards asked for, by team and kind of work"),
                labels=(_("Team"), _("Kind"), _("Cards")),
                rows=drawn,
            ),
        )
        if drawn
        else (),
        tables=(
            Table(
                _("Demand by team"),
                (
                    (_("Team"), ""),
                    (_("Kind"), ""),
                    (_("Requests"), "num"),
                    (_("Cards"), "num"),
                    (_("Amount"), "num"),
                ),
                tuple(
                    (
                        row["team"],
                        _label(Kind, row["kind"]),
                        _count(row["requests"]),
                        _count(row["cards"]),
                        _amount(row["amount"], currency),
                    )
                    for row in rows
                ),
                "requests",
                tuple({"team": row["team"], "kind": row["kind"]} for row in rows),
            ),
        )
        if rows
        else (),
        empty=_("No request lived in this quarter.") if not rows else "",
    )


def _budgets(data: Mapping[str, Any]) -> Section:
    rows = data["budgets"]
    labels = {
        "actual": pgettext("ledger", "Actual"),
        "committed": _("Ordered, not yet paid"),
        "approved": _("Approved, not ordered"),
        "available": _("Available"),
    }
    drawn = [
        (
            f"{row['team']} · {_label(SpendKind, row['kind'])}",
            text,
            max(float(row["base"][bucket]), 0.0),
        )
        for row in rows
        if row["base"] is not None
        for bucket, text in labels.items()
    ]
    over = [row for row in rows if Decimal(row["available"]) < 0]
    return Section(
        title=_("Budget"),
        sources=("budgets",),
        sentences=tuple(
            _("%(team)s is over its budget by %(amount)s.")
            % {
                "team": row["team"],
                "amount": _amount(str(-Decimal(row["available"])), row["currency"]),
            }
            for row in over
        ),
        charts=(
            charts.bars(
                title=_("Where each budget stands (%(currency)s)") % {"currency": data["currency"]},
                labels=(_("Budget"), _("Part"), data["currency"]),
                rows=drawn,
            ),
        )
        if any(value for _category, _series, value in drawn)
        else (),
        tables=(
            Table(
                _("Budgets"),
                (
                    (_("Team"), ""),
                    (_("Kind"), ""),
                    (_("Allotted"), "num"),
                    (_("Asked for"), "num"),
                    (_("Approved, not ordered"), "num"),
                    (_("Ordered"), "num"),
                    (pgettext("ledger", "Actual"), "num"),
                    (_("Available"), "num"),
                ),
                tuple(
                    (
                        row["team"],
                        _label(SpendKind, row["kind"]),
                        *(
                            _amount(row[bucket], row["currency"])
                            for bucket in (
                                "allotted",
                                "reserved",
                                "approved",
                                "committed",
                                "actual",
                                "available",
                            )
                        ),
                    )
                    for row in rows
                ),
                "budgets",
                tuple({"team": row["team"], "kind": row["kind"]} for row in rows),
            ),
        )
        if rows
        else (),
        empty=_("No budget was set for this quarter.") if not rows else "",
    )


def _orders(data: Mapping[str, Any]) -> Section:
    rows = data["orders"]
    return Section(
        title=_("Orders and deliveries"),
        sources=("orders", "rfqs"),
        sentences=(
            ngettext("%(n)s RFQ is open.", "%(n)s RFQs are open.", data["open_rfqs"])
            % {"n": data["open_rfqs"]},
        ),
        tables=(
            Table(
                _("Orders"),
                (
                    (pgettext("purchase", "Order"), ""),
                    (_("Vendor"), ""),
                    (_("Accelerator"), ""),
                    (_("Ordered"), "num"),
                    (_("Received"), "num"),
                    (_("Accepted"), "num"),
                    (_("Amount without tax"), "num"),
                    (_("Promised"), ""),
                    (_("First received"), ""),
                ),
                tuple(
                    (
                        " · ".join(part for part in (row["order"], row["request"]) if part),
                        row["vendor"],
                        accelerator_label(row["accelerator"]),
                        _count(row["ordered"]),
                        _count(row["received"]),
                        _count(row["accepted"]),
                        _amount(row["amount"], row["currency"]),
                        row["promised_on"] or DASH,
                        row["first_received_on"] or DASH,
                    )
                    for row in rows
                ),
                "orders",
                tuple({"order": row["order"], "accelerator": row["accelerator"]} for row in rows),
            ),
        )
        if rows
        else (),
        empty=_("No order stood in this quarter.") if not rows else "",
    )


def _acceptance(data: Mapping[str, Any]) -> Section:
    cards = data["cards"]
    verdicts: Mapping[str, int] = data["verdicts"]
    words = {
        "pass": _("Passed"),
        "warn": _("Needs a look"),
        "fail": _("Failed"),
        "retest": _("To be tested again"),
        "inconclusive": _("Inconclusive"),
        "reject": _("Evidence refused"),
        "none": _("No evidence yet"),
    }
    failed = [card for card in cards if card["verdict"] == "fail"]
    vendors = data["vendors"]
    tables = []
    if failed:
        tables.append(
            Table(
                _("Cards that failed"),
                (
                    (_("Serial number"), ""),
                    (_("Accelerator"), ""),
                    (pgettext("purchase", "Order"), ""),
                    (_("Vendor"), ""),
                    (_("Reason"), ""),
                ),
                tuple(
                    (
                        c["serial"],
                        accelerator_label(c["accelerator"]),
                        c["order"],
                        c["vendor"],
                        c["reason"] or DASH,
                    )
                    for c in failed
                ),
                "cards",
                tuple({"serial": c["serial"]} for c in failed),
            )
        )
    if vendors:
        tables.append(
            Table(
                _("Vendors"),
                (
                    (_("Vendor"), ""),
                    (_("Delivered"), "num"),
                    (_("Failed"), "num"),
                    (_("Days late"), "num"),
                ),
                tuple(
                    (
                        v["vendor"],
                        _count(v["delivered"]),
                        _count(v["failed"]),
                        DASH if v["days_late"] is None else number_format(v["days_late"], 1),
                    )
                    for v in vendors
                ),
                "cards",
                tuple({"vendor": v["vendor"]} for v in vendors),
            )
        )
    return Section(
        title=_("Acceptance"),
        sources=("cards", "vendors", "rmas"),
        charts=(
            charts.bars(
                title=_("Burn-in verdicts"),
                labels=(_("Verdict"), _("Cards"), _("Cards")),
                rows=[(words.get(v, v), _("Cards"), n) for v, n in sorted(verdicts.items())],
            ),
        )
        if cards
        else (),
        tables=tuple(tables),
        empty=_("No card was delivered in this quarter.") if not cards else "",
    )


def _requests(data: Mapping[str, Any]) -> Section:
    rows = data["requests"]
    return Section(
        title=_("Requests in detail"),
        sources=("requests",),
        tables=(
            Table(
                _("Requests"),
                (
                    (_("Number"), ""),
                    (_("Title"), ""),
                    (_("Team"), ""),
                    (_("State"), ""),
                    (_("Plan"), ""),
                    (_("Amount"), "num"),
                ),
                tuple(
                    (
                        row["reference"],
                        row["title"],
                        row["team"],
                        _label(RequestStatus, row["status"]),
                        f"{_count(row['cards'])} × {accelerator_label(row['accelerator'])}"
                        f" · {_label(PaymentChoice, row['mode'])}"
                        if row["cards"] is not None
                        else DASH,
                        _amount(row["amount"], data["currency"]),
                    )
                    for row in rows
                ),
                "requests",
                tuple({"reference": row["reference"]} for row in rows),
            ),
        )
        if rows
        else (),
        empty=_("No request lived in this quarter.") if not rows else "",
    )
