"""A request to estimate or to study, as a value: what is to run, on what, and what the answer must respect.

The JSON is one flat object: the workload's own fields (``planning.study.workloads``) and the options and constraints
(``planning.study.options``) side by side, with ``schema`` and ``kind``. docs/estimate-schema.md describes it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

from core.errors import InputError
from core.messages import msg, shown
from planning.estimators.config_precision import stated_cache, stated_weights
from planning.study.fields import Field, WorkloadErrors, check_value, is_empty
from planning.study.model import Model, model_of
from planning.study.options import (
    LATENCY_SECONDS,
    all_field_names,
    constraint_fields,
    option_fields,
    request_fields,
)
from planning.study.workloads import (
    FIELDS,
    MODEL_FIELDS,
    NEEDS_MODEL,
    TOKEN_INFERENCE,
    Kind,
    problems,
)

SCHEMA = "headroom/estimate-1"


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the answer must respect. None: not told."""

    need_by: date | None = None
    start: date | None = None
    duration_days: int | None = None
    data_residence: str = "anywhere"
    region: str = ""
    budget: Decimal | None = None
    currency: str | None = None
    vendors: tuple[str, ...] = ()
    stage: str | None = None
    latency_class: str | None = None
    latency_seconds: float | None = None  # of the class when only that was told
    latency_metric: str = "ttft"
    latency_percentile: str = "p95"
    tpot_seconds: float | None = None
    accuracy_loss_limit: float | None = None  # share: 0.01 is one per cent
    interruptible: bool = False
    checkpoint_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """One request, checked and normalised. `workload` is as a request's revision stores it, in SI units."""

    kind: Kind
    workload: Mapping[str, Any]
    model: Model | None  # None: GPU hours
    accelerators: tuple[str, ...] = ()  # as they were called; empty: the whole catalogue
    count: int | None = None  # accelerators altogether
    options: Mapping[str, Any] = field(default_factory=dict)  # only what was told
    constraints: Constraints = Constraints()


def parse_request(data: Mapping[str, Any]) -> StudyRequest:
    """The request that a JSON object states.

    Raises
    ------
    InputError
        Naming the field, the value and the limit; for an unknown field, the nearest known one.
    WorkloadErrors
        If several values are wrong: every one of them.
    """
    if not isinstance(data, Mapping):
        raise InputError("request", msg("The request must be a JSON object"), limit="JSON object")
    schema = data.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise InputError(
            "schema",
            msg("schema is %(value)s; this reads %(limit)s", value=shown(schema), limit=SCHEMA),
            value=shown(schema),
            limit=SCHEMA,
        )
    kind = _kind(data)
    given = {name: value for name, value in data.items() if name not in ("schema", "kind")}
    known = request_fields(kind)
    shape = given.pop("architecture", None) if kind in NEEDS_MODEL else None
    errors = [_unknown(name, value, known) for name, value in given.items() if name not in known]
    told = {name: value for name, value in given.items() if name in known}

    of_workload = {f.name for f in FIELDS[kind]} - {"accelerator"}
    workload, wrong = problems(
        kind,
        {name: value for name, value in told.items() if name in of_workload},
        model_given=shape is not None,
    )
    errors += wrong
    options = _read(option_fields(kind), told, errors)
    limits = _read(constraint_fields(kind), told, errors, defaults=True)
    cache = _cache_of_config(kind, workload, options, errors)
    if cache is not None:
        options["kv_precision"] = cache
    model = None
    wrong_fields = {error.field.partition(".")[0] for error in errors}
    if kind in NEEDS_MODEL and not wrong_fields.intersection(MODEL_FIELDS):
        try:
            model = model_of(workload, shape, cache=cache)
        except InputError as error:
            errors.append(error)
    errors += _contradictions(limits)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise WorkloadErrors(errors)
    if limits.get("latency_seconds") is None:
        limits["latency_seconds"] = LATENCY_SECONDS.get(limits.get("latency_class") or "")
    accelerators = options.pop("accelerator", ())
    count = (
        workload.get("accelerators")
        if kind == Kind.GPU_HOURS
        else options.pop("accelerators", None)
    )
    return StudyRequest(kind, workload, model, accelerators, count, options, Constraints(**limits))


def _cache_of_config(
    kind: Kind,
    workload: Mapping[str, Any],
    options: Mapping[str, Any],
    errors: list[InputError],
) -> str | None:
    """The precision of the cache that a config states; None where a person told one, or serves other weights."""
    if kind not in TOKEN_INFERENCE or "config" not in workload or "kv_precision" in options:
        return None
    if any(error.field in ("config", "weight_precision", "kv_precision") for error in errors):
        return None
    try:
        if stated_weights(workload["config"]) != workload.get("weight_precision"):
            return None
        return stated_cache(workload["config"])
    except InputError as error:
        if error.field == "kv_precision":
            errors.append(error)
        return None


def _kind(data: Mapping[str, Any]) -> Kind:
    value = data.get("kind")
    if not isinstance(value, str) or value not in set(Kind):
        limit = ", ".join(Kind)
        if value is None:
            raise InputError(
                "kind", msg("kind is missing; it is one of %(limit)s", limit=limit), limit=limit
            )
        raise InputError(
            "kind",
            msg("%(field)s: %(value)s is none of %(limit)s", field="kind", value=shown(value), limit=limit),
            value=shown(value),
            limit=limit,
        )  # fmt: skip
    return Kind(value)


def _unknown(name: str, value: object, known: Mapping[str, Field]) -> InputError:
    short = shown(value)
    if name in all_field_names():
        text = msg("%(field)s is not asked for this kind of workload", field=name)
        return InputError(name, text, value=short)
    near = difflib.get_close_matches(name, [*known, "architecture"], n=1, cutoff=0.5)
    if near:
        text = msg(
            "%(field)s is not a field of this request; did you mean %(nearest)s?",
            field=name,
            nearest=near[0],
        )
        return InputError(name, text, value=short, limit=near[0])
    text = msg("%(field)s is not a field of this request", field=name)
    return InputError(name, text, value=short, limit=", ".join(sorted(known)))


def _read(
    declared: tuple[Field, ...],
    told: Mapping[str, Any],
    errors: list[InputError],
    *,
    defaults: bool = False,
) -> dict[str, Any]:
    """The values of `declared` that were told (with `defaults`, those too); what is wrong goes to `errors`."""
    read: dict[str, Any] = {}
    for declaration in declared:
        value = told.get(declaration.name)
        if is_empty(value):
            if defaults and declaration.default is not None:
                read[declaration.name] = declaration.default
            continue
        try:
            read[declaration.name] = check_value(declaration, value)
        except InputError as error:
            errors.append(error)
    return read


def _contradictions(limits: Mapping[str, Any]) -> list[InputError]:
    errors = []
    if limits.get("budget") is not None and not limits.get("currency"):
        errors.append(
            InputError("currency", msg("A budget needs its currency"), value=str(limits["budget"]))
        )
    start, need_by = limits.get("start"), limits.get("need_by")
    if start and need_by and start > need_by:
        errors.append(
            InputError(
                "start",
                msg("The start is after the day by which it is needed"),
                value=start.isoformat(),
                limit=need_by.isoformat(),
            )
        )
    return errors


def request_json(request: StudyRequest) -> dict[str, Any]:
    """The request as JSON that :func:`parse_request` reads back to an equal one. Defaults are told."""
    data: dict[str, Any] = {"schema": SCHEMA, "kind": str(request.kind)}
    data |= dict(request.workload)
    if request.model is not None and request.model.shape is not None:
        data["architecture"] = dict(request.model.shape)
    if request.accelerators:
        data["accelerator"] = list(request.accelerators)
    if request.count is not None:
        data["accelerators"] = request.count
    data |= dict(request.options)
    asked = {declaration.name for declaration in constraint_fields(request.kind)}
    for name in Constraints.__dataclass_fields__:
        value = getattr(request.constraints, name)
        if name in asked and value not in (None, "", ()):
            data[name] = _plain(value)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
