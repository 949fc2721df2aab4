"""A study's plans side by side, as a decider reads them: in the brief, the inbox and on the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from core.templatetags.ui import percent
from planning import study_orders, study_tables
from planning.models import PlanChoice, Study


def bases(plans: Iterable[PlanChoice]) -> dict[int, dict[str, Any]]:
    """What each plan was chosen from, by the choice's id: the plan, the recommended ones, reuse/rent/buy. One query.

    A choice without a study (or from before studies) is not in it.
    """
    chosen = [plan for plan in plans if plan.study_id is not None]
    studies = Study.objects.in_bulk([plan.study_id for plan in chosen if plan.study_id])
    found = {}
    for plan in chosen:
        study = studies[plan.study_id or 0]
        if study.result is None or "schema" not in study.result:
            continue
        row = chosen_row(study.result, plan.plan_key)
        if row is not None:
            found[plan.pk] = {
                "study": study,
                "chosen": row,
                "rows": brief_rows(study.result, but=plan.plan_key),
                "sides": study_tables.comparison(study.result),
                "time_label": study_tables.time_label(study.result),
            }
    return found


def chosen_row(result: Mapping[str, Any], key: str) -> dict[str, Any] | None:
    """The plan that was chosen, as a row; None while none is, or for a plan from before the study."""
    plan = study_tables.by_key(result).get(key)
    if plan is None:
        return None
    roles = [str(study_tables.ROLES[role]) for role in plan["roles"]]
    why = _against_cheapest(result, plan)
    return _row(study_tables.plan_card(result, plan), roles, [why] if why else [])


def _against_cheapest(result: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """How the plan stands to the cheapest that meets the need; empty when it is that one."""
    keyed = study_tables.by_key(result)
    first = next((row["key"] for row in result["recommended"] if row["role"] == "cheapest"), "")
    if first not in keyed or first == plan["key"]:
        return ""
    base, cost = Decimal(keyed[first]["cost"]), Decimal(plan["cost"])
    if not base or keyed[first]["currency"] != plan["currency"]:
        return ""
    share = percent(float((cost - base) / base))
    values = {"share": share, "name": study_tables.plan_name(keyed[first])}
    return (
        _("%(share)s above the cheapest, %(name)s") % values
        if cost > base
        else _("%(share)s to the cheapest that meets the need, %(name)s") % values
    )


def brief_rows(result: Mapping[str, Any], but: str = "") -> list[dict[str, Any]]:
    """The recommended plans but one, each once: roles, name, cost with its spread, time with its spread, regret."""
    found: dict[str, dict[str, Any]] = {}
    for card in study_tables.cards(result):
        if card.plan["key"] == but:
            continue
        row = found.setdefault(card.plan["key"], {"roles": [], "card": card, "why": []})
        row["roles"].append(card.role)
        row["why"].append(card.why)
    return [_row(row["card"], row["roles"], row["why"]) for row in found.values()]


def _row(card: study_tables.Card, roles: list[str], why: list[str]) -> dict[str, Any]:
    return {
        "roles": " · ".join(roles),
        "name": card.name,
        "place": card.place,
        "cost": card.cost,
        "amount": card.amount,
        "tax": card.tax,
        "tax_short": study_tables.tax_short(card.plan),
        "extra": _extra(card),
        "time": card.time,
        "time_spread": card.facts[2][1],
        "warnings": study_tables.misses(card.plan),
        "spread": card.facts[0][1],
        "regret": card.facts[3][1],
        "why": "; ".join(why),
    }


def _extra(card: study_tables.Card) -> list[str]:
    """What a decider must know of the plan: how a mix is split, by when a purchase is ordered and what binds it."""
    if card.plan.get("order"):
        order = study_orders.order_row(card.plan)
        return [
            _("Order by %(day)s; ready if ordered today: %(ready)s. What binds first: %(binds)s.")
            % {"day": order["last"], "ready": order["ready"], "binds": order["binds"]}
        ]
    return card.notes[:1] if card.plan.get("funnel") else []
