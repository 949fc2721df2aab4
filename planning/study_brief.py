"""The decision brief: one or two pages that a CTO can sign, from a study's stored result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.utils import timezone, translation
from django.utils.translation import gettext as _

from core import charts
from core.charts import Chart
from core.messages import msg, plural
from core.organisation import organisation
from core.pdf import Attachment, render_pdf
from core.templatetags.ui import percent
from core.templatetags.ui import said as say
from planning import study_charts, study_tables, tables
from planning.economics import defaults
from planning.models.studies import StudyBrief
from planning.plan_rows import brief_rows, chosen_row
from planning.study.search.say import said

TURNS = 5  # of what would change the answer
LISTED = 3  # of software advice and of assumptions each: the rest is in the study attached


def render_brief(brief: StudyBrief) -> bytes:
    """PDF bytes; the same study, language and template give the same bytes."""
    study = brief.study
    result = study.result or {}
    owner = study.revision.request
    with translation.override(brief.language), timezone.override(organisation().zone):
        context = {
            "study": study,
            "capacity_request": owner,
            "revision": study.revision,
            "ask": tables.revision_facts(study.revision),
            "cards": study_tables.cards(result),
            "chosen": chosen_row(result, brief.plan_key),
            "rows": brief_rows(result, but=brief.plan_key),
            "time_label": study_tables.time_label(result),
            "chart": study_charts.frontier_chart(result),
            "course": cost_course(result),
            "risk": risk_in_short(result),
            "sides": study_tables.comparison(result),
            "software": study_tables.texts(result["software_first"])[:LISTED],
            "notes": study_tables.texts(result["notes"])[:LISTED],
            "turns": turning_points(result)[:TURNS],
            "versions": study_tables.versions(result),
            "hash": study.result_hash,
        }
        return render_pdf(
            "planning/study_brief.html",
            context,
            brief.language,
            made_at=study.finished_at or study.created_at,
            attachments=[
                Attachment(
                    "study.json",
                    json.dumps(said(result), ensure_ascii=False, indent=1).encode(),
                    _("The whole study"),
                )
            ],
        )


def risk_in_short(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Owning against renting; nothing for a need so short that owning is no question of it."""
    found = study_tables.risk(result)
    if found is None:
        return None
    own = result["risk"].get("own_utilisation", 1.0)  # studies of before do not tell
    return found if own >= defaults.value("advice.own_min_need") else None


def brief_name(brief: StudyBrief) -> str:
    """`decision-brief-R-0042-r1-zh-hans.pdf`."""
    revision = brief.study.revision
    return f"decision-brief-{revision.request.reference}-r{revision.number}-s{brief.study_id}-{brief.language}.pdf"


def cost_course(result: Mapping[str, Any]) -> Chart | None:
    """What will have been paid month by month, for the recommended plans and for buying."""
    keyed = study_tables.by_key(result)
    keys = dict.fromkeys(row["key"] for row in result["recommended"])
    keys |= dict.fromkeys(row["key"] for row in result["comparison"] if row["key"] in keyed)
    rows = [
        (float(month), study_tables.plan_name(keyed[key]), float(paid), None, None)
        for key in keys
        for month, paid in enumerate(keyed[key]["cash"])
    ]
    if not rows:
        return None
    return charts.lines(
        title=_("Paid by month"),
        description=_("A purchase is paid at the order; resale is not counted here."),
        labels=(_("Month"), _("Plan"), _("Paid [%(currency)s]") % {"currency": result["currency"]}),
        rows=rows,
    )


def turning_points(result: Mapping[str, Any]) -> list[str]:
    """What would change the answer: break-even, the next plan's price, the deadline and what is barred."""
    found = []
    risk = result["risk"]
    if risk and "missing" not in risk:
        needed = risk["break_even_utilisation"]
        if needed is None:
            found.append(
                _("Buying does not pay within %(years)s years at today's rent, whatever the utilisation.")
                % {"years": risk["years"]}
            )  # fmt: skip
        else:
            found.append(
                _(
                    "Buying %(name)s pays from a steady utilisation of %(share)s over %(years)s years."
                )
                % {
                    "name": f"{risk['cards']} × {risk['accelerator']}",
                    "share": percent(needed),
                    "years": risk["years"],
                }
            )
    plans = result["plans"]
    if len(plans) > 1:
        first = plans[0]
        other = next(
            (plan for plan in plans if plan["accelerator_slug"] != first["accelerator_slug"]), None
        )
        if other is not None and float(first["cost"]):
            more = float(other["cost"]) / float(first["cost"]) - 1
            found.append(
                _("%(name)s is next: a price %(share)s lower would make it the cheapest.")
                % {
                    "name": study_tables.plan_name(other),
                    "share": percent(more / (1 + more)),
                }
            )
    counts: dict[str, int] = {}
    for row in result["exclusions"]:
        counts[row["code"]] = counts.get(row["code"], 0) + 1
    for code in ("time", "lead_time", "budget", "residence", "region", "export", "accuracy"):
        if counts.get(code):
            found.append(
                say(
                    plural(
                        counts[code],
                        msg(
                            "One option is out for this reason: %(reason)s.",
                            reason=str(study_tables.CODES[code]),
                        ),
                        msg(
                            "%(n)s options are out for this reason: %(reason)s.",
                            n=counts[code],
                            reason=str(study_tables.CODES[code]),
                        ),
                    )
                )
            )
    return found
