"""Chapters of a pack on use, supply, forecast, recommendations and calibration, from a snapshot's data.

Snapshots from before these figures existed have none of the keys: their packs have none of the chapters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from catalog.reference import accelerator_label
from core import charts
from core.messages import Message
from core.templatetags.ui import money, percent, quantity, said, significant, span
from planning.calibration_charts import courses
from planning.models.calibration import work_label
from planning.models.telemetry import Ownership
from planning.review_parts import DASH, Section, Table
from planning.selectors.calibration import Score

SUPPLIED = ("delivered", "in_service", "owned", "reserved", "cloud", "on_order")
MOST_CHARTS = 24  # forecasts drawn, largest pools first


def action_words() -> dict[str, str]:
    return {
        "grow": _("Grow"),
        "hold": pgettext("capacity", "Hold"),
        "shrink": _("Shrink"),
        "fix": _("Fix utilisation first"),
        "move": _("Move from another pool"),
        "renew": _("Renew the reservation"),
        "drop": _("Drop the reservation"),
        "unknown": _("Not enough is known"),
    }


def pool_words(key: str) -> str:
    """The name of a pool (`team · accelerator · ownership`, as a snapshot keeps it) as people read it."""
    parts = key.split(" · ")
    if len(parts) != 3:
        return key
    team, slug, ownership = parts
    owned = Ownership(ownership).label if ownership in Ownership.values else ownership
    return f"{team} · {accelerator_label(slug)} · {owned}"


def pool_choices(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Pools of recommendations for a choice: the key, and the name with what is recommended."""
    words = action_words()
    found = []
    for row in rows:
        cards = f" {number_format(row['change'])}" if row["change"] else ""
        found.append((row["pool"], f"{pool_words(row['pool'])}: {words[row['action']]}{cards}"))
    return found


def line_words(line: Mapping[str, Any]) -> str:
    """A step of the arithmetic; the other pool that it may speak of by its name."""
    found = Message.from_json(dict(line))
    params = {k: pool_words(str(v)) if k == "other" else v for k, v in found.params.items()}
    return said(Message(found.template, params))


def recommended(data: Mapping[str, Any]) -> tuple[Section, ...]:
    """The recommendation for each pool with its arithmetic."""
    rows = data.get("recommendations")
    if rows is None:
        return ()
    words = action_words()
    tables = [
        Table(
            _("Recommendation for each pool"),
            (
                (_("Pool"), ""), (_("Cards"), "num"), (_("GPU utilisation"), "num"), (_("Recommendation"), ""),
                (_("By cards"), "num"), (_("A quarter's wait costs"), "num"),
            ),
            tuple(
                (
                    pool_words(row["pool"]), number_format(row["cards"]), percent(row["utilization"]),
                    words[row["action"]] + (f" ({pool_words(row['to'])})" if row["to"] else ""),
                    number_format(row["change"]) if row["change"] else DASH,
                    DASH if row["waiting"] is None else money(Decimal(row["waiting"]), data["currency"]),
                )
                for row in rows
            ),
            "recommendations", tuple({"pool": row["pool"]} for row in rows),
        ),
        Table(
            _("The arithmetic"),
            ((_("Pool"), ""), (_("How the recommendation comes about"), "")),
            tuple(
                (pool_words(row["pool"]), " ".join(line_words(line) for line in row["lines"]))
                for row in rows
            ),
            "forecast", tuple({"pool": row["pool"]} for row in rows),
        ),
    ]  # fmt: skip
    return (
        Section(
            title=_("Recommendations"),
            sources=("recommendations", "forecast", "use", "queues"),
            sentences=(
                _(
                    "Utilisation before hardware, cards that are there before cards that are bought."
                ),
            ),
            tables=tuple(tables) if rows else (),
            empty=_("No pool has telemetry, so nothing is recommended.") if not rows else "",
        ),
    )


def used(data: Mapping[str, Any]) -> tuple[Section, ...]:
    """Supply, use and queues, forecast."""
    if "use" not in data:
        return ()
    return (_supply(data), _use(data), _forecast(data))


def _supply(data: Mapping[str, Any]) -> Section:
    rows = data["supply"]
    drawn = [
        (accelerator_label(row["accelerator"]) or DASH, label, row[name])
        for row in rows
        for name, label in (
            ("in_service", _("In service")),
            ("reserved", str(Ownership.RESERVED.label)),
            ("cloud", str(Ownership.CLOUD.label)),
            ("on_order", _("On order")),
        )
        if row[name]
    ]
    return Section(
        title=_("Supply"),
        sources=("supply", "cards", "orders", "use"),
        charts=(
            charts.bars(
                title=_("Cards by accelerator"),
                labels=(_("Accelerator"), _("State"), _("Cards")),
                rows=drawn,
            ),
        )
        if drawn
        else (),
        tables=(
            Table(
                _("Supply by accelerator"),
                (
                    (_("Accelerator"), ""), (_("Delivered"), "num"), (_("In service"), "num"),
                    (_("With telemetry, owned"), "num"), (_("reserved"), "num"), (_("on demand or spot"), "num"),
                    (_("On order"), "num"), (_("Promised"), ""),
                ),
                tuple(
                    (
                        accelerator_label(row["accelerator"]) or DASH,
                        *(number_format(row[name]) for name in SUPPLIED),
                        row["promised"] or DASH,
                    )
                    for row in rows
                ),
                "supply", tuple({"accelerator": row["accelerator"]} for row in rows),
            ),
        )
        if rows
        else (),
        empty="" if rows else _("No card is known."),
    )  # fmt: skip


def _use(data: Mapping[str, Any]) -> Section:
    rows, queues = data["use"], data["queues"]
    days = [
        (date.fromisoformat(day), name, share * 100, None, None)
        for day, utilization, memory in data["use_days"]
        for name, share in ((_("Utilisation"), utilization), (_("Memory in use"), memory))
        if share is not None
    ]
    tables = []
    if rows:
        tables.append(
            Table(
                _("Use by pool"),
                (
                    (_("Team"), ""), (_("Accelerator"), ""), (_("Ownership"), ""), (_("Cards"), "num"),
                    (_("GPU utilisation"), "num"), (_("Memory in use"), "num"), (_("Energy"), "num"),
                    (_("Idle cards"), "num"), (_("Hours with samples"), "num"),
                ),
                tuple(
                    (
                        row["team"] or DASH, accelerator_label(row["accelerator"]) or DASH,
                        str(Ownership(row["ownership"]).label),
                        number_format(row["cards"]), percent(row["utilization"]), percent(row["memory"]),
                        DASH if row["energy_kwh"] is None else quantity(row["energy_kwh"] * 1000, "Wh"),
                        number_format(row["idle"]), percent(row["covered"]),
                    )
                    for row in rows
                ),
                "use",
                tuple({n: row[n] for n in ("team", "accelerator", "ownership")} for row in rows),
            )
        )  # fmt: skip
    if queues:
        tables.append(
            Table(
                _("Waiting for cards"),
                (
                    (_("Team"), ""), (_("Jobs"), "num"), (_("Mean"), "num"), (_("Median"), "num"),
                    (_("p90"), "num"), (_("Longest"), "num"), (_("Interrupted"), "num"), (_("MFU"), "num"),
                ),
                tuple(
                    (
                        row["team"] or _("All"), number_format(row["jobs"]), span(row["mean"]), span(row["p50"]),
                        span(row["p90"]), span(row["longest"]), number_format(row["interrupted"]), percent(row["mfu"]),
                    )
                    for row in queues
                ),
                "queues", tuple({"team": row["team"]} for row in queues),
            )
        )  # fmt: skip
    cost = data["cost_per_useful_hour"]
    return Section(
        title=_("Use and queues"),
        sources=("use", "use_days", "queues"),
        sentences=(
            (
                _(
                    "A useful hour cost %(amount)s: cloud bills, and purchases spread over their years; "
                    "power and staff are not in it."
                )
                if data.get("cost_per_useful_hour_basis") == "spread"
                else _(
                    "A useful hour cost %(amount)s: all that was spent in the quarter, purchases in full."
                )
            )
            % {"amount": money(Decimal(cost), data["currency"])},
        )
        if cost
        else (),
        charts=(
            charts.lines(
                title=_("Utilisation and memory, day by day"),
                labels=(_("Day"), _("Figure"), _("Share [%]")),
                rows=days,
            ),
        )
        if days
        else (),
        tables=tuple(tables),
        empty="" if rows or queues else _("No source told what cards did in this span."),
    )


def _forecast(data: Mapping[str, Any]) -> Section:
    rows = sorted(data["forecast"], key=lambda row: (-row["busy"], row["pool"]))
    return Section(
        title=_("Forecast of the next quarter"),
        sources=("forecast",),
        sentences=(
            _("From the daily use of each pool; the error is what the same forecast would have had in the past."),
        )
        if rows
        else (),
        charts=tuple(_course(row) for row in rows[:MOST_CHARTS]),
        tables=(
            Table(
                _("Busy cards, mean of the quarter"),
                (
                    (_("Pool"), ""), ("P10", "num"), (_("Expected"), "num"), ("P90", "num"),
                    (_("Highest day"), "num"), (_("Back-tested error"), "num"), (_("Tests"), "num"),
                ),
                tuple(
                    (
                        pool_words(row["pool"]),
                        significant(row["low"]), significant(row["busy"]), significant(row["high"]),
                        significant(row["peak"]), percent(row["error"]), number_format(row["tests"]),
                    )
                    for row in rows
                ),
                "forecast", tuple({"pool": row["pool"]} for row in rows),
            ),
        )
        if rows
        else (),
        empty="" if rows else _("Fewer than four weeks of days are known: too few to forecast."),
    )  # fmt: skip


def _course(row: Mapping[str, Any]) -> charts.Chart:
    past, weeks = row["past"][-26:], row["weeks"]
    spread = (row["high"] - row["low"]) / 2
    known = [
        (n - len(past), _("Measured"), v, None, None) for n, v in enumerate(past) if v is not None
    ]
    ahead = [
        (n, _("Forecast"), v, max(v - spread, 0.0), v + spread)
        for n, v in enumerate(weeks)
        if v is not None
    ]
    return charts.lines(
        title=_("Busy cards by week: %(pool)s") % {"pool": pool_words(row["pool"])},
        labels=(_("Weeks from the end of the quarter"), _("Figure"), _("Cards")),
        rows=[*known, *ahead],
    )


def learned(data: Mapping[str, Any]) -> tuple[Section, ...]:
    """How well estimates did."""
    rows = data.get("calibration")
    if rows is None:
        return ()
    version = data["calibration_version"]
    return (
        Section(
            title=_("Calibration"),
            sources=("calibration", "calibration_months"),
            charts=tuple(courses([Score(**row) for row in data.get("calibration_months", ())])),
            sentences=(
                _("In force: version %(number)s") % {"number": version}
                if version is not None
                else _("In force: the published efficiencies"),
            ),
            tables=(
                Table(
                    _("How well estimates did"),
                    (
                        (_("Class of work"), ""), (_("Outcomes"), "num"), (_("Median error"), "num"),
                        (_("Between P10 and P90"), "num"),
                    ),
                    tuple(
                        (
                            work_label(row["work"]), number_format(row["outcomes"]), percent(row["median_error"], 1),
                            percent(row["within"]),
                        )
                        for row in rows
                    ),
                    "calibration", tuple({"work": row["work"]} for row in rows),
                ),
            )
            if rows
            else (),
            empty="" if rows else _("No outcome was held against its estimate yet."),
        ),
    )  # fmt: skip
