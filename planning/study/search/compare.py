"""Two studies of the same thing side by side: what changed in the answer, and which prices and rates moved."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

MOVED = 40  # prices listed, largest change first
RATE_MOVES = 0.01  # an exchange rate that moved by less leaves a study as it is: chosen


def compare(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    market_before: Mapping[str, Any],
    market_after: Mapping[str, Any],
) -> dict[str, Any]:
    """Differences of two results and of the markets they saw, as JSON values."""
    return {
        "inputs": _inputs(before, after),
        "recommended": [
            _recommended(before, after, role) for role in ("cheapest", "fastest", "safest")
        ],
        "plans": _plans(before, after),
        **market_changes(market_before, market_after),
    }


def _inputs(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = []
    pairs = {
        "on": (before["catalogue"]["on"], after["catalogue"]["on"]),
        "as_of": (before["catalogue"]["as_of"], after["catalogue"]["as_of"]),
        "catalogue": (before["catalogue"]["hash"][:16], after["catalogue"]["hash"][:16]),
        "estimator": (before["constants"]["estimator"], after["constants"]["estimator"]),
        "economics": (before["constants"]["economics"], after["constants"]["economics"]),
        "purchase_tax": (before.get("purchase_tax"), after.get("purchase_tax")),
        "seed": (before["seed"], after["seed"]),
        "met": (before["counts"]["met"], after["counts"]["met"]),
    }
    for name in sorted(set(before["request"]) | set(after["request"])):
        pairs[f"request.{name}"] = (before["request"].get(name), after["request"].get(name))
    for name, (old, new) in pairs.items():
        if old != new:
            rows.append({"name": name, "before": _short_value(old), "after": _short_value(new)})
    return rows


def _short_value(value: Any) -> Any:
    """A series of hours is told by its length, start and hash: nobody compares 8,760 numbers by eye."""
    if not isinstance(value, Mapping) or "values" not in value:
        return value
    digest = hashlib.sha256(repr(list(value["values"])).encode()).hexdigest()[:8]
    return f"{len(value['values'])} h, {str(value.get('start'))[:10]}, {digest}"


def _find(result: Mapping[str, Any], role: str) -> Mapping[str, Any] | None:
    return next((plan for plan in result["plans"] if role in plan["roles"]), None)


def _short(plan: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if plan is None:
        return None
    names = (
        "key",
        "accelerator",
        "cards",
        "mode",
        "provider",
        "region",
        "cost",
        "amount",
        "currency",
    )
    return {name: plan[name] for name in names} | {"seconds": plan["seconds"]["p50"]}


def _recommended(before: Mapping[str, Any], after: Mapping[str, Any], role: str) -> dict[str, Any]:
    old, new = _find(before, role), _find(after, role)
    return {
        "role": role,
        "before": _short(old),
        "after": _short(new),
        "same": old is not None and new is not None and old["key"] == new["key"],
        "change": change(old["cost"], new["cost"])
        if old is not None and new is not None and old["currency"] == new["currency"]
        else None,
    }


def _plans(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    old = {plan["key"]: plan for plan in before["plans"]}
    new = {plan["key"]: plan for plan in after["plans"]}
    moved = [
        {"before": _short(old[key]), "after": _short(new[key]), "change": change(old[key]["cost"], new[key]["cost"])}
        for key in old
        if key in new and old[key]["cost"] != new[key]["cost"]
    ]  # fmt: skip
    return {
        "gone": [_short(plan) for key, plan in old.items() if key not in new],
        "come": [_short(plan) for key, plan in new.items() if key not in old],
        "moved": moved,
    }


def change(before: str, after: str) -> float | None:
    """Relative change; None from zero. Share"""
    old, new = Decimal(before), Decimal(after)
    return float(new / old - 1) if old else None


def market_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], accelerators: Collection[str] = ()
) -> dict[str, Any]:
    """What moved from one stored snapshot to another: offers, servers, figures, cost defaults and rates; with
    `accelerators`, of those only. Owned stock and the day are no price and are left out."""
    wanted = frozenset(accelerators)

    def about(slug: str) -> bool:
        return not wanted or slug in wanted

    def offers(market: Mapping[str, Any]) -> dict[tuple[Any, ...], Any]:
        """By place, accelerator and mode; rows are those of :mod:`snapshot`."""
        return {(*row[:4], row[5]): row for row in market["offers"] if about(row[3])}

    def named(market: Mapping[str, Any], part: str, key: str) -> dict[str, Any]:
        return {row["slug"]: row for row in market.get(part, ()) if about(row[key])}

    def leases(market: Mapping[str, Any]) -> dict[str, Any]:
        about_them = {row["slug"] for row in market["platforms"] if about(row["accelerator"])}
        return {
            f"{row['lessor']}:{row['platform']}:{row['months']}": row
            for row in market.get("leases", ())
            if row["platform"] in about_them
        }

    def costs(market: Mapping[str, Any]) -> dict[str, Any]:
        return {row["name"]: row for row in market.get("costs", ())}

    old, new = offers(before), offers(after)
    moved = [
        {
            "provider": key[0], "region": key[1], "instance": key[2], "accelerator": key[3], "mode": key[4],
            "before": old[key][6], "after": new[key][6], "currency": new[key][7],
            "change": change(old[key][6], new[key][6]),
        }
        for key in old
        if key in new and (Decimal(old[key][6]), old[key][7]) != (Decimal(new[key][6]), new[key][7])
    ]  # fmt: skip
    moved.sort(key=lambda row: -abs(row["change"] or 0.0))
    servers = named(before, "platforms", "accelerator"), named(after, "platforms", "accelerator")
    cards = named(before, "accelerators", "slug"), named(after, "accelerators", "slug")
    return {
        "offers_gone": len(old.keys() - new.keys()),
        "offers_come": len(new.keys() - old.keys()),
        "offers_moved": len(moved),
        "servers_changed": _differing(*servers, ("price", "currency", "max_power_kw", "accelerators")),
        "figures_changed": _differing(*cards, ()),
        "prices": moved[:MOVED],
        "leases_changed": _differing(leases(before), leases(after), ()),
        "costs_changed": _differing(costs(before), costs(after), ("low", "value", "high")),
        "rates": _rates(before, after),
    }  # fmt: skip


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]) -> int:
    """Entries that came, went or differ in `names` (empty: in anything)."""

    def facts(row: Mapping[str, Any]) -> Any:
        return {name: row[name] for name in names or row}

    return sum(
        key not in before or key not in after or facts(before[key]) != facts(after[key])
        for key in before.keys() | after.keys()
    )


def _rates(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    first, second = (
        {(row[0], row[1]): row for row in market["rates"]} for market in (before, after)
    )
    return [
        {"base": pair[0], "quote": pair[1], "before": first[pair][2], "after": second[pair][2],
         "before_as_of": first[pair][3], "after_as_of": second[pair][3]}
        for pair in first
        if pair in second and Decimal(first[pair][2]) != Decimal(second[pair][2])
    ]  # fmt: skip


def outdates(changes: Mapping[str, Any], currency: str) -> bool:
    """Whether a study in `currency` would answer otherwise for what changed in its market."""
    counted = (
        "offers_gone", "offers_come", "offers_moved", "servers_changed", "figures_changed", "costs_changed",
        "leases_changed",
    )  # fmt: skip
    return any(changes[name] for name in counted) or any(
        currency in (row["base"], row["quote"])
        and abs(change(row["before"], row["after"]) or 0.0) >= RATE_MOVES
        for row in changes["rates"]
    )
