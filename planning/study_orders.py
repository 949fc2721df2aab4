"""The purchases of a study as a page and the brief show them: cards, room, last day to order, what binds first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.templatetags.ui import said
from planning.study_tables import plan_name

BINDS = {
    "date": gettext_lazy("The date"), "budget": gettext_lazy("The budget"), "power": gettext_lazy("Power of the room"),
    "cooling": gettext_lazy("Cooling of the room"), "racks": gettext_lazy("Number of racks"),
    "rack_power": gettext_lazy("Power of one rack"), "rack_units": gettext_lazy("Height of one rack"),
    "floor": gettext_lazy("Floor load"), "liquid_cooling": gettext_lazy("Liquid cooling"),
}  # fmt: skip


def orders(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every purchase among the plans shown."""
    plans = [plan for plan in [*result["plans"], *result["nearest"]] if plan.get("order")]
    return [order_row(plan) for plan in plans]


def order_row(plan: Mapping[str, Any]) -> dict[str, Any]:
    """One purchase in words."""
    order = plan["order"]
    last = order["last_order"]
    return {
        "name": plan_name(plan),
        "servers": _("%(n)s × %(server)s") % {"n": order["servers"], "server": plan["instance"]},
        "room": order["room"] or _("A colocation"),
        "last": _("no date was told") if last is None else _day(last),
        "late": not order["fits_date"],
        "ready": _day(order["ready"]),
        "binds": str(BINDS.get(order["binds"], order["binds"])) or _("Nothing known"),
        "messages": [said(text) for text in order["messages"]],
    }


def _day(text: str) -> str:
    return str(date_format(date.fromisoformat(text), "DATE_FORMAT"))


def rooms(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each own room and how many of each server that a plan would buy it carries."""
    found: dict[str, dict[str, str]] = {}
    for plan in [*result["plans"], *result["nearest"]]:
        for room in (plan.get("order") or {}).get("rooms", ()):
            carries = said(room["message"]) if room["servers"] is None else str(room["servers"])
            found.setdefault(room["name"], {})[plan["instance"]] = carries
    return [
        (
            name,
            " · ".join(
                _("%(n)s × %(server)s") % {"n": n, "server": server}
                for server, n in servers.items()
            ),
        )
        for name, servers in found.items()
    ]
