"""The portfolio as a page and the API show it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from core import charts
from core.charts import Chart
from core.messages import msg
from core.templatetags.ui import money, percent, said, significant
from planning.selectors.placement import Placed
from planning.selectors.portfolio import DAYS, Pool, Portfolio

CHARTS = 3  # pools drawn, largest first
STEP = 7  # days between points of a drawing


def context(found: Portfolio) -> dict[str, Any]:
    """Tiles, one row for each pool, drawings of the largest."""
    alone, left = found.total("sum_of_peaks"), found.total("to_buy")
    return {
        "tiles": [
            (_("On order or accepted"), str(sum(one.bound for one in found.pools))),
            (_("Each team for itself"), str(alone)),
            (_("Together"), str(found.total("peak_of_sums"))),
            (_("Carried by idle owned cards"), str(found.total("met_by_idle"))),
            (_("Left to buy or rent"), str(left)),
        ],
        "rows": [_row(one) for one in found.pools],
        "charts": [_chart(one, found) for one in found.pools[:CHARTS]],
    }


def _row(one: Pool) -> dict[str, Any]:
    pooled = one.pooled
    return {
        "name": one.name,
        "alone": pooled.sum_of_peaks,
        "together": pooled.peak_of_sums,
        "shared": percent(pooled.shared_saving),
        "bound": one.bound,
        "owned": one.owned,
        "idle": one.idle,
        "met": pooled.met_by_idle,
        "left": pooled.to_buy,
        "saved": money(pooled.saved),
        "messages": [said(text) for text in pooled.messages],
        "wanted": one.wanted,
    }


def _chart(one: Pool, found: Portfolio) -> Chart:
    return charts.areas(
        title=_("%(name)s: cards wanted by team") % {"name": one.name},
        description=_(
            "Requests with a chosen plan, the highest day of each week; the line is what is owned and free."
        ),
        labels=(_("Day"), _("Team"), _("Cards")),
        rows=[
            (found.start + timedelta(days=day), team, float(series[day : day + STEP].max()))
            for team, series in one.by_team.items()
            for day in range(0, DAYS, STEP)
        ],
        limit=float(one.idle) if one.owned else None,
        limit_label=_("owned and free") if one.owned else "",
    )


def as_json(found: Portfolio) -> dict[str, Any]:
    """For the API."""
    return {
        "start": found.start.isoformat(),
        "days": DAYS,
        "pools": [
            {
                "accelerator": one.accelerator,
                "sum_of_peaks": one.pooled.sum_of_peaks,
                "peak_of_sums": one.pooled.peak_of_sums,
                "on_order_or_accepted": one.bound,
                "owned": one.owned,
                "idle_owned": one.idle,
                "met_by_idle": one.pooled.met_by_idle,
                "to_buy": one.pooled.to_buy,
                "saved": None if one.pooled.saved is None else str(one.pooled.saved.amount),
                "currency": one.currency,
                "messages": [said(text) for text in one.pooled.messages],
                "requests": [
                    {
                        "request": want.request.pk,
                        "team": want.request.team.slug,
                        "cards": want.plan.cards,
                        "on_order_or_accepted": want.bound,
                        "first": want.first.isoformat(),
                        "last": want.last.isoformat(),
                    }
                    for want in one.wanted
                ],
            }
            for one in found.pools
        ],
        "without_plan": [request.pk for request in found.without_plan],
    }


def placement_context(found: Placed) -> dict[str, Any]:
    """Which request goes where, what binds, what found no place."""
    left_out = []
    if found.beyond:
        left_out.append(said(msg("%(n)s requests beyond the largest ones", n=found.beyond)))
    answer = found.placement
    if answer is None:
        return {"left_out": left_out}
    return {
        "cost": money(answer.sheet.total),
        "rows": [
            {
                "request": found.requests[one.workload],
                "pool": one.pool,
                "cards": significant(max(one.cards)),
            }
            for one in answer.assignments
        ],
        "binding": [said(one.message) for one in answer.binding],
        "shortfalls": [f"{one.workload}: {said(one.reason)}" for one in answer.shortfalls],
        "left_out": left_out,
    }


def placement_json(found: Placed) -> dict[str, Any]:
    """For the API."""
    answer = found.placement
    return {
        "currency": None if answer is None else answer.sheet.currency,
        "cost": None if answer is None else str(answer.sheet.total.amount),
        "assignments": []
        if answer is None
        else [
            {"request": found.requests[one.workload].pk, "pool": one.pool, "cards": list(one.cards)}
            for one in answer.assignments
        ],
        "binding": [] if answer is None else [said(one.message) for one in answer.binding],
        "shortfalls": []
        if answer is None
        else [
            {"request": found.requests[one.workload].pk, "reason": said(one.reason)}
            for one in answer.shortfalls
        ],
        "beyond": found.beyond,
    }
