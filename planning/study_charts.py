"""The picture of a study: cost against time or latency; where all take as long, cost alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core import charts
from core.charts import Chart
from core.templatetags.ui import percent
from planning.study_tables import mode_label, plan_name

WIDE = 8  # an axis whose values differ by more gets a logarithm
ALIKE = 1.01  # times within this are one and the same
BARS = 12
APART = 0.07  # of the axis: names nearer than this would be printed on each other


def frontier_chart(result: Mapping[str, Any]) -> Chart | None:
    """Cost against time or latency; the plans that nothing beats in both are joined and named, colour is accuracy loss
    or payment. None without plans."""
    plans = result["plans"]
    if not plans:
        return None
    times = [plan["seconds"]["p50"] for plan in plans]
    if max(times) <= min(times) * ALIKE:
        return _costs(result)
    per_hour = result["axis"] == "time"
    unit = 3600.0 if per_hour else 0.001
    losses = {plan["accuracy_loss"] for plan in plans}

    def group(plan: Mapping[str, Any]) -> str:
        if len(losses) > 1:
            return _("Accuracy loss %(loss)s") % {"loss": percent(plan["accuracy_loss"], 1)}
        return mode_label(plan["mode"])

    names: dict[str, str] = {}
    rows = []
    for plan in plans:
        name = f"{plan['cards']} × {plan['accelerator']}"
        while name in names.values():
            name += " "
        names[plan["key"]] = name
        rows.append((name, group(plan), plan["seconds"]["p50"] / unit, float(plan["cost"])))
    log_x, log_y = _wide([row[2] for row in rows]), _wide([row[3] for row in rows])
    x = _("Time [h]") if per_hour else _("Latency [ms]")
    return charts.scatter(
        title=_("Cost against time") if per_hour else _("Cost against latency"),
        description=_("Plans on the line are beaten by none: whatever is cheaper is slower."),
        labels=(
            _("Plan"),
            _("Group"),
            x,
            _("Cost [%(currency)s]") % {"currency": result["currency"]},
        ),
        rows=rows,
        frontier=_named(plans, rows, names, log_x=log_x, log_y=log_y),
        log_x=log_x,
        log_y=log_y,
    )


def _named(
    plans: list[Mapping[str, Any]],
    rows: list[tuple[str, str, float, float]],
    names: Mapping[str, str],
    *,
    log_x: bool,
    log_y: bool,
) -> list[str]:
    """Names of the plans that none beats in cost and time, fastest first; of those that lie on each other one."""

    def scaled(told: list[float], logarithmic: bool) -> dict[str, float]:
        values = [math.log(value) if logarithmic else value for value in told]
        low, high = min(values), max(values)
        return {
            row[0]: (value - low) / ((high - low) or 1.0)
            for row, value in zip(rows, values, strict=True)
        }

    across = scaled([row[2] for row in rows], log_x)
    up = scaled([row[3] for row in rows], log_y)
    recommended = [names[plan["key"]] for plan in plans if plan["roles"]]
    best: list[str] = []
    least = math.inf
    for name, _group, _time, cost in sorted(rows, key=lambda row: (row[2], row[3])):
        if cost < least:
            least = cost
            best.append(name)
    kept: list[str] = []
    for name in sorted(best, key=lambda one: one not in recommended):  # stable: recommended first
        if all(abs(across[name] - across[one]) + abs(up[name] - up[one]) > APART for one in kept):
            kept.append(name)
    return [name for name in best if name in kept]


def _costs(result: Mapping[str, Any]) -> Chart:
    """What each plan costs, where none is faster than another."""
    return charts.bars(
        title=_("Cost of the cheapest plans"),
        description=_("All of them take the same time."),
        labels=(
            _("Plan"),
            _("How it is paid"),
            _("Cost [%(currency)s]") % {"currency": result["currency"]},
        ),
        rows=[
            (f"{number}. {plan_name(plan)}", mode_label(plan["mode"]), float(plan["cost"]))
            for number, plan in enumerate(result["plans"][:BARS], start=1)
        ],
    )


def _wide(values: list[float]) -> bool:
    """Whether an axis needs a logarithm to show all of its values."""
    return min(values) > 0 and max(values) / min(values) > WIDE
