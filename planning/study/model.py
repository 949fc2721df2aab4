"""Which model a request means: a name in the catalogue, a config.json, an inline shape, or a parameter count."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any

from core.errors import InputError, out_of_range
from core.messages import Message, msg, shown
from core.strict_json import JSONProblem, check_json
from planning.estimators.architecture import (
    architecture_from_count,
    total_parameters,
    validate,
)
from planning.estimators.config_fields import NESTED
from planning.estimators.config_precision import stated_weights_or_stored
from planning.estimators.huggingface import architecture_from_config
from planning.estimators.types import Architecture

LARGEST_NUMBER = 1e18  # of any field; the shape's own limits are narrower
LONGEST_NAME = 120
_TOLD_ELSEWHERE = ("assumed",)  # fields of an Architecture that a request cannot tell


@dataclass(frozen=True, slots=True)
class Model:
    """The model as told. Exactly one of `name` and `architecture` is known before the catalogue is asked."""

    name: str = ""  # in the catalogue
    architecture: Architecture | None = None
    shape: Mapping[str, Any] | None = None  # the inline shape as told


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What is known of a model: its shape, and for one that does not work on tokens, its forward pass. [FLOP]"""

    architecture: Architecture
    forward_flops: float | None = None  # of one pass over one sample
    on_tokens: bool = True  # False: `architecture` holds its size alone
    network: str = "transformer"  # what it is mostly made of (planning.estimators.samples.NETWORKS)
    usual_passes: float = 1.0  # that follow each other for one sample
    equal_passes: bool = True  # False: the first pass does nearly all the work


FindModel = Callable[[str], KnownModel]  # raises InputError for a model it does not know


def model_of(
    workload: Mapping[str, Any], shape: object = None, *, cache: str | None = None
) -> Model:
    """The model that a normalised workload names, or that `shape` spells out. Raises InputError.

    `cache`: the precision of the KV cache where it is taken from the config, to be said.
    """
    if shape is not None:
        return Model(
            architecture=architecture_from_shape(shape), shape=dict(typing.cast(Any, shape))
        )
    if "config" in workload:
        config = workload["config"]
        read = _with_weights(architecture_from_config(config), workload)
        if cache is not None:
            said = msg(
                "The KV cache is in %(stated)s, as the configuration states.", stated=cache.upper()
            )
            read = replace(read, assumed=(*read.assumed, said))
        return Model(architecture=read)
    if "parameters" in workload:
        return Model(architecture=architecture_from_count(workload["parameters"]))
    return Model(name=workload["model"])


def config_words(config: Mapping[str, Any]) -> Message:
    """What was understood of a pasted config: size, depth, type, heads, context, data type. Raises InputError."""
    shape = architecture_from_config(config)
    inner: Mapping[str, Any] = next(
        (config[key] for key in NESTED if isinstance(config.get(key), Mapping)), config
    )
    stored = stated_weights_or_stored(config)
    count = total_parameters(shape)
    parts: dict[str, Any] = {
        "size": round(count / 1e9, 1) if count >= 1e9 else round(count / 1e9, 3),
        "layers": shape.layers,
        "type": str(inner.get("model_type") or config.get("model_type") or shape.name)[:40],
        "heads": _heads(shape),
        "dtype": "–" if stored is None else stored.upper(),
    }
    if shape.max_context is None:
        return msg("%(size)s B, %(layers)s layers, %(type)s, %(heads)s, %(dtype)s", **parts)
    return msg(
        "%(size)s B, %(layers)s layers, %(type)s, %(heads)s, context %(context)s, %(dtype)s",
        **parts,
        context=shape.max_context,
    )


def _heads(shape: Architecture) -> Message:
    """How many heads of keys and values the attention keeps."""
    if shape.mla is not None:
        return msg("MLA")
    if shape.kv_heads == shape.heads:
        return msg("MHA %(heads)s", heads=shape.heads)
    return msg("GQA %(kv)s", kv=shape.kv_heads)


def _with_weights(shape: Architecture, workload: Mapping[str, Any]) -> Architecture:
    """The shape, with a word on the precision where the config states one for its weights."""
    told = workload.get("weight_precision")
    try:
        stated = stated_weights_or_stored(workload["config"])
    except InputError:  # told otherwise, else it would have been refused before
        stated = None
    if told is None or stated is None:
        return shape
    said = (
        msg("The weights are in %(stated)s, as the configuration states.", stated=stated.upper())
        if told == stated
        else msg(
            "The configuration states weights in %(stated)s; the estimate takes %(told)s, as told.",
            stated=stated.upper(),
            told=str(told).upper(),
        )
    )
    return replace(shape, assumed=(*shape.assumed, said))


def known_model(model: Model, find: FindModel) -> KnownModel:
    """What is known of `model`, asking the catalogue by `find` where only a name was told. Raises InputError."""
    return find(model.name) if model.architecture is None else KnownModel(model.architecture)


def architecture_from_shape(shape: object) -> Architecture:
    """An architecture spelled out field by field, as ``planning.estimators.types.Architecture`` names them.

    Raises
    ------
    InputError
        Naming the field (``architecture.heads``), the value and the limit.
    """
    try:
        check_json(shape, "architecture")
    except JSONProblem as problem:
        raise problem.named("architecture") from None
    read: Architecture = _dataclass_from(
        Architecture, {"name": "model"} | _mapping(shape), "architecture"
    )
    try:
        return validate(read)
    except InputError as error:
        raise InputError(
            f"architecture.{error.field}", error.message, value=error.value, limit=error.limit
        ) from None


def _mapping(value: object, where: str = "architecture") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(
            where, msg("%(field)s must be a JSON object", field=where), limit="JSON object"
        )
    return dict(value)


def _dataclass_from(cls: Any, data: Mapping[str, Any], where: str) -> Any:
    hints = typing.get_type_hints(cls)
    known = {f.name: f for f in fields(cls) if f.name not in _TOLD_ELSEWHERE}
    for name in data:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.5)
            limit = near[0] if near else ", ".join(known)
            text = msg(
                "%(field)s is not a field of a model's shape; known are: %(limit)s",
                field=f"{where}.{name}",
                limit=limit,
            )
            raise InputError(f"{where}.{name}", text, value=shown(data[name]), limit=limit)
    values: dict[str, Any] = {}
    for name, declared in known.items():
        path = f"{where}.{name}"
        if data.get(name) is None:
            if declared.default is MISSING and declared.default_factory is MISSING:
                raise InputError(path, msg("%(field)s is missing", field=path))
            continue
        values[name] = _value(hints[name], data[name], path)
    return cls(**values)


def _value(hint: Any, value: Any, path: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    wanted = next(option for option in options if option is not type(None))
    if is_dataclass(wanted):
        return _dataclass_from(wanted, _mapping(value, path), path)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    good = {
        int: number and whole,
        float: number,
        bool: isinstance(value, bool),
        str: isinstance(value, str),
    }
    if not good[wanted]:
        kind = {int: "whole number", float: "number", bool: "true, false", str: "text"}[wanted]
        text = msg(
            "%(field)s is %(value)s; it must be: %(limit)s",
            field=path,
            value=shown(value),
            limit=kind,
        )
        raise InputError(path, text, value=shown(value), limit=kind)
    if number and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise out_of_range(path, value, -LARGEST_NUMBER, LARGEST_NUMBER, shown=shown(value))
    if wanted is str and len(value) > LONGEST_NAME:
        text = msg("%(field)s is longer than %(limit)s characters", field=path, limit=LONGEST_NAME)
        raise InputError(path, text, value=shown(value), limit=LONGEST_NAME)
    return wanted(value)
