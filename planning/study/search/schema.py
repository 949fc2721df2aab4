"""The JSON schema of a study's result, as the command and the API give it."""

from __future__ import annotations

from typing import Any

from planning.study.schema import estimate_schema
from planning.study.search.run import SCHEMA

_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "number"}
_WHOLE: dict[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_DECIMAL: dict[str, Any] = {"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}
_DAY: dict[str, Any] = {"type": "string", "format": "date"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_SPREAD: dict[str, Any] = {
    "type": "object",
    "properties": {"p10": _NUMBER, "p50": _NUMBER, "p90": _NUMBER},
    "required": ["p10", "p50", "p90"],
    "additionalProperties": False,
}


def _or_none(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(properties: dict[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def study_schema() -> dict[str, Any]:
    """The result of a study, as JSON Schema 2020-12. Its request is the one of the estimate."""
    estimate = estimate_schema()["$defs"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        "title": "Result of a study",
        "$ref": "#/$defs/result",
        "$defs": {
            **{name: part for name, part in estimate.items() if name not in ("answer", "refusal")},
            "result": _result(),
            "plan": _plan(),
            "exclusion": _exclusion(),
            "side": _side(),
        },
    }


def _result() -> dict[str, Any]:
    catalogue = {
        "on": _DAY,
        "as_of": _or_none(_DAY),
        "origin": {"enum": ["database", "shipped", "test"]},
        "hash": _TEXT,
    }
    rate = {"base": _TEXT, "quote": _TEXT, "rate": _DECIMAL, "as_of": _DAY, "source": _TEXT}
    counts = ("accelerators", "offers", "evaluated", "ways", "priced", "candidates", "met")
    point = {"key": _TEXT, "cost": _DECIMAL, "seconds": _NUMBER, "accuracy_loss": _SHARE}
    pick = {"role": {"enum": ["cheapest", "fastest", "safest"]}, "key": _TEXT, "why": _TEXT}
    balance = {
        "key": _TEXT, "compute": _SHARE, "memory": _SHARE, "bandwidth": _SHARE, "idle": _TEXTS,
    }  # fmt: skip
    figure: dict[str, Any] = {"anyOf": [_NUMBER, _list(_NUMBER)]}
    cost = {
        "name": _TEXT, "unit": _TEXT, "source": _TEXT, "as_of": _TEXT, "value": figure, "shipped": figure,
    }  # fmt: skip
    return _object(
        {
            "schema": {"const": SCHEMA},
            "request": {"$ref": "#/$defs/request"},
            "axis": {"enum": ["time", "latency"]},
            "currency": _TEXT,
            "budget": _or_none(_DECIMAL),
            "limit_seconds": _or_none(_NUMBER),
            "catalogue": _object(catalogue),
            "rates": _list(_object(rate)),
            "constants": _object({"estimator": _TEXT, "economics": _TEXT}),
            "purchase_tax": _or_none(
                _object({"rate": _SHARE, "rents": _SHARE, "reclaimed": {"type": "boolean"}})
            ),
            "costs": _list(_object(cost)),
            "seed": {"type": "integer"},
            "counts": _object(dict.fromkeys(counts, _WHOLE)),
            "plans": _list({"$ref": "#/$defs/plan"}),
            "nearest": _list({"$ref": "#/$defs/plan"}),
            "frontier": _list(_object(point)),
            "recommended": _list(_object(pick)),
            "comparison": _list({"$ref": "#/$defs/side"}),
            "balance": _list(_object(balance)),
            "software_first": _TEXTS,
            "advice": _TEXTS,
            "risk": _or_none({"type": "object"}),
            "exclusions": _list({"$ref": "#/$defs/exclusion"}),
            "unpriced": _list(_object({"subject": _TEXT, "reason": _TEXT})),
            "notes": _TEXTS,
        }
    )


def _plan() -> dict[str, Any]:
    line = {
        "name": _TEXT, "label": _TEXT, "amount": _DECIMAL, "quantity": _or_none(_NUMBER), "unit": _TEXT,
    }  # fmt: skip
    tax = {"amount": _DECIMAL, "rate": _SHARE, "reclaimed": {"type": "boolean"}}
    return _object(
        {
            "key": {"type": "string", "maxLength": 160},
            "roles": _list({"enum": ["cheapest", "fastest", "safest"]}),
            "kind": {"enum": ["offer", "mix", "purchase", "lease", "stock"]},
            "accelerator_slug": _TEXT,
            "accelerator": _TEXT,
            "vendor": _TEXT,
            "cards": {"type": "integer", "minimum": 1},
            "servers": _or_none({"type": "integer", "minimum": 1}),
            "mode": {
                "enum": [
                    "on_demand", "spot", "reserved_1y", "reserved_3y", "subscription", "owned", "colocated", "leased",
                    "reused", "mixed",
                ]
            },
            "spend_kind": {"enum": ["cloud", "purchase"]},
            "amount": _DECIMAL,
            "cost": _DECIMAL,
            "searched_cost": _DECIMAL,
            "currency": _TEXT,
            "lines": _list(_object(line)),
            "order_lines": _list(_object(line)),
            "tax": _or_none(_object(tax)),
            "doubts": _TEXTS,
            "notes": _TEXTS,
            "provider": _TEXT,
            "region": _TEXT,
            "instance": _TEXT,
            "price": _or_none(_TEXT),
            "price_currency": _TEXT,
            "price_as_of": _DAY,
            "source": _TEXT,
            "confidence": _TEXT,
            "cards_each": {"type": "integer", "minimum": 1},
            "hours": _NUMBER,
            "cash": _list(_DECIMAL),
            "seconds": _SPREAD,
            "cost_spread": _SPREAD,
            "regret": _object({"mean": _NUMBER, "p90": _NUMBER}),
            "accuracy_loss": _SHARE,
            "precision": _TEXT,
            "layout": {"type": "object", "additionalProperties": {"type": ["integer", "string"]}},
            "memory_bytes": _or_none(_NUMBER),
            "capacity_bytes": _NUMBER,
            "summary": {"type": "object"},
            "funnel": _or_none(_funnel()),
            "order": _or_none(_order()),
            "estimate": _or_none({"$ref": "#/$defs/estimate"}),
        }
    )  # fmt: skip


def _funnel() -> dict[str, Any]:
    """The split of a mix."""
    pure = {
        "name": _TEXT, "label": _TEXT, "cost": _or_none(_DECIMAL), "saving": _or_none(_NUMBER),
        "refused": _or_none(_TEXT),
    }  # fmt: skip
    risk = {
        "demand_change": _NUMBER, "cost": _DECIMAL, "best": _DECIMAL, "regret": _DECIMAL, "idle_share": _SHARE,
    }  # fmt: skip
    return _object(
        {
            "reserved_cards": _WHOLE,
            "peak_cards": _WHOLE,
            "on_demand_card_hours": _NUMBER,
            "spot_card_hours": _NUMBER,
            "idle_share": _SHARE,
            "critical_ratio": _NUMBER,
            "months": _WHOLE,
            "prices": _object({"reserved": _DECIMAL, "on_demand": _DECIMAL, "spot": _or_none(_DECIMAL)}),
            "pure": _list(_object(pure)),
            "over_reservation": _list(_object(risk)),
            "week": _list(_list(_WHOLE)),
        }
    )  # fmt: skip


def _order() -> dict[str, Any]:
    """The three numbers of a purchase that must agree."""
    flag: dict[str, Any] = {"type": "boolean"}
    room = {"name": _TEXT, "servers": _or_none(_WHOLE), "binds": _TEXT, "message": _TEXT}
    return _object(
        {
            "servers": _WHOLE,
            "lead_weeks": _NUMBER,
            "acceptance_days": _NUMBER,
            "ready": _DAY,
            "last_order": _or_none(_DAY),
            "budget": _or_none(_DECIMAL),
            "fits_date": flag,
            "fits_site": _or_none(flag),
            "fits_budget": _or_none(flag),
            "room": _TEXT,
            "binds": _TEXT,
            "messages": _TEXTS,
            "rooms": _list(_object(room)),
        }
    )


def _exclusion() -> dict[str, Any]:
    return _object(
        {
            "subject": {"enum": ["accelerator", "offer", "purchase", "lease", "stock", "payment"]},
            "accelerator": _TEXT,
            "provider": _TEXT,
            "region": _TEXT,
            "instance": _TEXT,
            "mode": _TEXT,
            "code": _TEXT,
            "reason": _TEXT,
            "change": _or_none(_TEXT),
        }
    )


def _side() -> dict[str, Any]:
    told = {
        "accelerator": _TEXT,
        "cards": _WHOLE,
        "mode": _TEXT,
        "cost": _DECIMAL,
        "amount": _DECIMAL,
        "currency": _TEXT,
        "seconds": _NUMBER,
        "meets": {"type": "boolean"},
        "meets_p90": {"type": "boolean"},
        "notes": _TEXTS,
        "inputs": _list(_object({"name": _TEXT, "version": _TEXT, "source": _TEXT})),
        "missing": _TEXT,
    }
    sides = {"enum": ["reuse", "rent", "buy"]}
    return _object(
        {"side": sides, "title": _TEXT, "key": _or_none(_TEXT), **told}, optional=tuple(told)
    )
