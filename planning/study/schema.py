"""The JSON schema of requests and answers, made from the declarations that the reader itself uses."""

from __future__ import annotations

from typing import Any

from planning.study import profiles
from planning.study.fields import Field
from planning.study.load_series import LEAST_HOURS, MOST_HOURS
from planning.study.options import request_fields
from planning.study.request import SCHEMA
from planning.study.workloads import FIELDS, NEEDS_MODEL, Kind

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_WITHOUT_END = {"type": ["number", "null"], "description": "null: grows without end"}
_NAME_OR_NONE = {"type": ["string", "null"]}


def estimate_schema() -> dict[str, Any]:
    """Request, answer and refusal of the estimate, as JSON Schema 2020-12."""
    return {
        "$schema": _DRAFT,
        "$id": SCHEMA,
        "title": "Estimate: request, answer, refusal",
        "oneOf": [
            {"$ref": "#/$defs/request"},
            {"$ref": "#/$defs/answer"},
            {"$ref": "#/$defs/refusal"},
        ],
        "$defs": {
            "request": {"oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in Kind]},
            **{str(kind): _request(kind) for kind in Kind},
            "answer": _answer(),
            "refusal": _refusal(),
            "estimate": _estimate(),
            "band": _object(
                {
                    "p10": _WITHOUT_END,
                    "p50": _WITHOUT_END,
                    "p90": _WITHOUT_END,
                    "unit": _TEXT,
                    "grade": {"$ref": "#/$defs/grade"},
                }
            ),
            "grade": {"enum": ["measured", "published", "extrapolated"]},
        },
    }  # fmt: skip


def _request(kind: Kind) -> dict[str, Any]:
    fields = request_fields(kind)
    properties: dict[str, Any] = {"schema": {"const": SCHEMA}, "kind": {"const": str(kind)}}
    properties |= {name: _field(field) for name, field in fields.items()}
    if kind in NEEDS_MODEL:
        properties["architecture"] = {
            "type": "object",
            "description": "The model's shape, instead of model, parameters or config",
        }
    required = ["kind", *(name for name, field in fields.items() if field.required)]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _loads(count: int, description: str) -> dict[str, Any]:
    items = {"type": "number", "minimum": 0}
    return {
        "type": "array", "items": items, "minItems": count, "maxItems": count, "description": description,
    }  # fmt: skip


def load_schemas() -> dict[str, dict[str, Any]]:
    """How load is told by the hour and by the month, for the API's own description of a workload (OpenAPI 3.0, which
    knows one type at a time and `nullable`)."""
    fields = {field.name: field for field in FIELDS[Kind.ONLINE_INFERENCE]}
    series = _field(fields["load_series"])
    shapes = [one for one in series["anyOf"] if one["type"] != "null"]
    months = _field(fields["load_months"])
    return {
        "load_series": {"description": series["description"], "nullable": True, "anyOf": shapes},
        "load_months": {
            "description": months["description"], "nullable": True,
            "anyOf": [_loads(profiles.MONTHS, "Loads, January first"), _TEXT],
        },
    }  # fmt: skip


def _field(field: Field) -> dict[str, Any]:
    shape: dict[str, Any] = {"description": str(field.label)}
    if field.unit:
        shape["description"] += f" [{field.unit}]"
    if field.help is not None:
        shape["description"] += f". {field.help}"
    if field.default is not None:
        shape["default"] = field.default
    if field.type in ("count", "number", "share"):
        number: dict[str, Any] = {"type": "integer" if field.type == "count" else "number"}
        if field.minimum is not None:
            number |= {"minimum": field.minimum, "maximum": field.maximum}
        written = {
            "type": "string",
            "description": 'As people write it: "7B", "1.5T", "40k", "5 %"',
        }
        return shape | {"anyOf": [number, written, {"type": "null"}]}
    if field.type == "choice":
        return shape | {"enum": [*(code for code, _label in field.choices), "", None]}
    if field.type == "flag":
        return shape | {"type": ["boolean", "string", "null"]}
    if field.type == "months":
        return shape | {
            "type": ["array", "string", "null"],
            "items": {"type": "number", "minimum": 0},
            "minItems": profiles.MONTHS,
            "maxItems": profiles.MONTHS,
        }
    if field.type == "texts":
        return shape | {"type": ["string", "array", "null"], "items": _TEXT}
    if field.type == "series":
        return shape | {
            "anyOf": [
                {"type": "string", "description": "CSV: time,value[,unit], times with their offset; or a week as text"},
                _loads(profiles.HOURS, "Loads of one day, for every day of the week"),
                _loads(profiles.WEEK, "Loads of a week, Monday 0:00 first"),
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {
                        "start": {"type": "string", "format": "date-time"}, "zone": _TEXT, "unit": _TEXT,
                        "source": _TEXT,
                        "values": {"type": "array", "items": {"type": "number", "minimum": 0},
                                   "minItems": LEAST_HOURS, "maxItems": MOST_HOURS},
                    },
                    "required": ["start", "values"],
                    "additionalProperties": False,
                },
            ]
        }  # fmt: skip
    if field.type == "config":
        return shape | {"type": ["object", "string", "null"]}
    if field.type == "amount":
        return shape | {"type": ["string", "number", "null"]}
    if field.type == "date":
        return shape | {"type": ["string", "null"], "format": "date"}
    return shape | {"type": ["string", "null"]}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _answer() -> dict[str, Any]:
    catalogue = {"origin": {"enum": ["database", "shipped"]}, "as_of": _NAME_OR_NONE}
    return _object(
        {
            "schema": {"const": SCHEMA},
            "request": {"$ref": "#/$defs/request"},
            "catalogue": _object(catalogue),
            "ranked_by": _NAME_OR_NONE,
            "compared": {"type": "integer"},
            "estimates": _list({"$ref": "#/$defs/estimate"}),
            "refused": _list(_object({"accelerator": _TEXT, "reason": _TEXT})),
            "notes": _list(_TEXT),
        }
    )


def _estimate() -> dict[str, Any]:
    band: dict[str, Any] = {"$ref": "#/$defs/band"}
    count = {"type": "integer", "minimum": 1}
    share = {"type": "number", "minimum": 0, "maximum": 1}
    part = _object({"name": _TEXT, "bytes": _NUMBER, "note": _NAME_OR_NONE})
    saturation = _object({"compute": share, "memory": share, "bandwidth": share})
    return _object(
        {
            "accelerator": _object(
                {
                    "slug": _TEXT,
                    "name": _TEXT,
                    "vendor": _TEXT,
                    "hbm_bytes": _NUMBER,
                    "visible_bytes": _NUMBER,
                    "hbm_bandwidth": _NUMBER,
                    "peak_flops": {"type": "object", "additionalProperties": _NUMBER},
                    "tdp": {"type": ["number", "null"]},
                }
            ),
            "kind": _TEXT,
            "accelerators": _object({"total": count, "replicas": count, "per_replica": count}),
            "fits": {"enum": ["fits", "tight", "out_of_memory"]},
            "grade": {"$ref": "#/$defs/grade"},
            "memory": _object(
                {
                    "parts": _list(part),
                    "total": {"anyOf": [band, {"type": "null"}]},
                    "capacity_bytes": _NUMBER,
                }
            ),
            "figures": {"type": "object", "additionalProperties": band},
            "saturation": {"anyOf": [saturation, {"type": "null"}]},
            "layout": {"type": "object", "additionalProperties": {"type": ["integer", "string"]}},
            "warnings": _list(_TEXT),
            "assumptions": _list(_TEXT),
            "remedies": _list(_TEXT),
            "trace": _list(
                _object(
                    {
                        "name": _TEXT,
                        "formula": _TEXT,
                        "inputs": {
                            "type": "object",
                            "additionalProperties": {"type": ["number", "string", "null"]},
                        },
                        "result": {"type": ["number", "null"]},
                        "unit": _TEXT,
                    }
                )
            ),
            "fleet": {"anyOf": [_fleet(), {"type": "null"}]},
            "constants_version": _TEXT,
        }
    )


def _fleet() -> dict[str, Any]:
    """Latencies of a service's fleet in seconds, by percentile."""
    times = {"type": "object", "additionalProperties": _WITHOUT_END}
    mean = {"type": ["number", "null"]}
    at = _object(
        {
            "load": _NUMBER,
            "tpot": mean,
            "in_flight": mean,
            "wait": times,
            "ttft": times,
            "end_to_end": times,
        }
    )
    other = {"anyOf": [at, {"type": "null"}]}
    return _object(
        {
            "planned": at,
            "with_model_error": at,
            "model_error": _NUMBER,
            "average": other,
            "full": other,
        }
    )


def _refusal() -> dict[str, Any]:
    error = _object(
        {
            "code": _TEXT,
            "field": _NAME_OR_NONE,
            "value": {},
            "limit": {},
            "message": _TEXT,
        }
    )
    return {
        "type": "object",
        "properties": {"error": error, "errors": _list(error)},
        "required": ["error"],
        "additionalProperties": False,
    }
