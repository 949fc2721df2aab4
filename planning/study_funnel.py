"""The mixes of a study as a page shows them: the split, a week of it, the saving against each pure mode, the risk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core import charts
from core.charts import Chart
from core.messages import msg
from core.templatetags.ui import percent, said, significant
from planning.study_tables import amount, place, plan_name

SHOWN = 2  # mixes in full: the others differ by accelerator only


def funnels(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The recommended mixes, else the cheapest one."""
    mixes = [plan for plan in result["plans"] if plan.get("funnel")]
    mixes.sort(key=lambda plan: not plan["roles"])  # stable: then by cost
    recommended = [plan for plan in mixes if plan["roles"]]
    return [_funnel(plan) for plan in (recommended or mixes[:1])[:SHOWN]]


def _funnel(plan: Mapping[str, Any]) -> dict[str, Any]:
    found, currency = plan["funnel"], plan["currency"]
    facts = [
        (_("Reserved cards"), str(found["reserved_cards"])),
        (_("Cards at the peak"), str(found["peak_cards"])),
        (_("On-demand card-hours"), significant(found["on_demand_card_hours"], 4)),
    ]
    if found["spot_card_hours"]:
        facts.append((_("Spot card-hours"), significant(found["spot_card_hours"], 4)))
    if found["months"]:
        facts.append((_("Commitment"), said(msg("%(n)s months", n=found["months"]))))
        facts.append((_("Reserved and idle"), percent(found["idle_share"], 1)))
    facts += [
        (label, f"{amount(found['prices'][name], currency)}")
        for name, label in (
            ("reserved", _("Reserved card-hour")),
            ("on_demand", _("On-demand card-hour")),
            ("spot", _("Spot card-hour")),
        )
        if found["prices"][name] is not None
    ]
    return {
        "name": plan_name(plan),
        "place": place(plan),
        "cost": amount(plan["cost"], currency),
        "facts": facts,
        "pure": [
            (
                said(one["label"]),
                amount(one["cost"], currency) if one["cost"] is not None else said(one["refused"]),
                percent(one["saving"], 1) if one["saving"] is not None else "–",
            )
            for one in found["pure"]
        ],
        "risk": [
            (
                _("as forecast")
                if not row["demand_change"]
                else f"{'+' if row['demand_change'] > 0 else ''}{percent(row['demand_change'])}",
                amount(row["cost"], currency),
                amount(row["regret"], currency),
                percent(row["idle_share"], 1),
            )
            for row in found["over_reservation"]
        ]
        if found["reserved_cards"]
        else [],
        "chart": _week(found),
    }


def _week(found: Mapping[str, Any]) -> Chart:
    """The busiest week of the split, hour by hour."""
    names = (_("Reserved"), _("On demand"), _("Spot"))
    used = [i for i in range(3) if any(row[i] for row in found["week"])]
    return charts.areas(
        title=_("Cards in use over the last week"),
        description=_("The week in which the load has grown most."),
        labels=(_("Hour of the week"), _("How it is paid"), _("Cards")),
        rows=[
            (float(hour), names[i], float(row[i]))
            for i in used
            for hour, row in enumerate(found["week"])
        ],
    )
