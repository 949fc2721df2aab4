"""What differs: two studies, a study and today's market, a study and the same question with other numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog.reference import accelerator_label
from core.messages import msg, plural
from core.templatetags.ui import percent, said, significant, span
from planning.study_tables import (
    ROLES,
    amount,
    by_key,
    comparison,
    mode_label,
    plan_name,
    tax_in,
    tax_words,
)

DIFFERENCES = {
    "on": gettext_lazy("Computed for"), "as_of": gettext_lazy("Newest price"), "catalogue": gettext_lazy("Catalogue"),
    "estimator": gettext_lazy("Estimator constants"), "economics": gettext_lazy("Cost defaults"),
    "purchase_tax": gettext_lazy("Tax on purchases"), "seed": gettext_lazy("Seed"),
    "met": gettext_lazy("Ways that meet the need"),
}  # fmt: skip


def comparison_rows(found: Mapping[str, Any]) -> dict[str, Any]:
    """The differences of two studies as tables of a page."""
    return {
        "inputs": [
            (
                str(DIFFERENCES.get(row["name"], row["name"].removeprefix("request."))),
                _told(row["name"], row["before"]),
                _told(row["name"], row["after"]),
            )
            for row in found["inputs"]
        ],
        "recommended": [
            {
                "role": str(ROLES[row["role"]]),
                "before": _short(row["before"]),
                "after": _short(row["after"]),
                "same": row["same"],
                "change": _signed(row["change"]),
            }
            for row in found["recommended"]
        ],
        "gone": [_short(row) for row in found["plans"]["gone"]],
        "come": [_short(row) for row in found["plans"]["come"]],
        "moved": [
            {"name": _short(row["before"])["name"], "before": _short(row["before"])["cost"],
             "after": _short(row["after"])["cost"], "change": _signed(row["change"])}
            for row in found["plans"]["moved"]
        ],
        "prices": _moved_prices(found),
        "rates": _moved_rates(found),
        "moves": _moves(found),
    }  # fmt: skip


def _told(name: str, value: Any) -> str:
    """An input in words."""
    return tax_words(value) if name == "purchase_tax" else _plain(value)


def _moved_prices(found: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "name": f"{accelerator_label(row['accelerator'])} · {mode_label(row['mode'])}",
            "place": " · ".join((row["provider"], row["region"], row["instance"])),
            "before": f"{row['before']} {row['currency']}",
            "after": f"{row['after']} {row['currency']}",
            "change": _signed(row["change"]),
        }
        for row in found["prices"]
    ]


def _moved_rates(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (
            f"{row['base']} / {row['quote']}",
            f"{row['before']} ({row['before_as_of']})",
            f"{row['after']} ({row['after_as_of']})",
        )
        for row in found["rates"]
    ]


def market_moves(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """What moved on the market since a study, for its banner; nothing where it moved back."""
    if found is None:
        return {"text": _("Since then they moved back to what they were.")}
    return {
        "text": _moves(found),
        "prices": _moved_prices(found),
        "rates": _moved_rates(found),
    }


def _moves(found: Mapping[str, Any]) -> str:
    """How many of what moved, each in words; empty where nothing did."""
    counts = {name: int(found[name]) for name in (
        "offers_moved", "offers_come", "offers_gone", "servers_changed", "figures_changed", "costs_changed",
        "leases_changed",
    )}  # fmt: skip
    told = {
        "offers_moved": (msg("One offer changed its price"),
                         msg("%(n)s offers changed their price", n=counts["offers_moved"])),
        "offers_come": (msg("One offer is new"), msg("%(n)s offers are new", n=counts["offers_come"])),
        "offers_gone": (msg("One offer is gone"), msg("%(n)s offers are gone", n=counts["offers_gone"])),
        "servers_changed": (msg("One server price changed"),
                            msg("%(n)s server prices changed", n=counts["servers_changed"])),
        "figures_changed": (msg("One accelerator has other figures"),
                            msg("%(n)s accelerators have other figures", n=counts["figures_changed"])),
        "costs_changed": (msg("One cost default was corrected"),
                          msg("%(n)s cost defaults were corrected", n=counts["costs_changed"])),
        "leases_changed": (msg("One lease was quoted or ended"),
                           msg("%(n)s leases were quoted or ended", n=counts["leases_changed"])),
    }  # fmt: skip
    return " · ".join(said(plural(n, *told[name])) for name, n in counts.items() if n)


def _short(plan: Mapping[str, Any] | None) -> dict[str, str]:
    if plan is None:
        return {"name": "–", "place": "", "cost": "–", "time": "–"}
    return {
        "name": plan_name(plan),
        "place": " · ".join(part for part in (plan["provider"], plan["region"]) if part),
        "cost": amount(plan["cost"], plan["currency"]),
        "time": span(plan["seconds"]),
    }


def _signed(share: float | None) -> str:
    return "–" if share is None else f"{'+' if share > 0 else ''}{percent(share, 1)}"


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return significant(value, 6) if isinstance(value, float) else str(value)


def _paid(new: Mapping[str, Any] | None) -> str:
    """What is to be paid where that is more than the cost, and the tax in it."""
    if new is None or new["amount"] == new["cost"]:
        return ""
    told = _("to be paid: %(amount)s") % {"amount": amount(new["amount"], new["currency"])}
    return " · ".join(part for part in (told, tax_in(new)) if part)


def what_if(result: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """The turned question's answer beside the study's own."""
    rows = []
    keyed = by_key(result)
    for role in ("cheapest", "fastest"):
        own = next(
            (keyed[row["key"]] for row in result["recommended"] if row["role"] == role), None
        )
        new = found[role]
        rows.append(
            {
                "role": str(ROLES[role]),
                "before": plan_name(own) if own else "–",
                "before_cost": amount(own["cost"], own["currency"]) if own else "–",
                "name": plan_name(new) if new else _("Nothing meets the need"),
                "cost": amount(new["cost"], found["currency"]) if new else "–",
                "time": span(new["seconds"]) if new else "–",
                "paid": _paid(new),
                "change": _signed(float(new["cost"]) / float(own["cost"]) - 1)
                if new and own and float(own["cost"])
                else "",
            }
        )
    return {"rows": rows, "sides": comparison(found), "candidates": found["candidates"]}
