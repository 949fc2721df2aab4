"""Default constants of the economics engine: each has a range, a unit, a source, a date and a status, in one data file.

``status`` is ``read`` (seen in the source), ``derived`` (arithmetic on read figures), ``recalled`` (not re-read) or
``chosen`` (a planning assumption of this product). Every one of them is an input that a user may replace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Default:
    """One constant and how far it is known."""

    name: str
    low: float
    value: float
    high: float
    unit: str
    source: str
    as_of: str
    status: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """One constant that is a series: a residual by year, a price by tier."""

    name: str
    low: tuple[float, ...]
    value: tuple[float, ...]
    high: tuple[float, ...]
    unit: str
    source: str
    as_of: str
    status: str
    note: str = ""


def _load() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("defaults.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def _curve(name: str, entry: dict[str, Any]) -> Curve:
    series = {key: tuple(entry[key]) for key in ("low", "value", "high")}
    return Curve(name=name, **{**entry, **series})


_DATA = _load()
VERSION: str = _DATA["version"]
DEFAULTS: Mapping[str, Default] = MappingProxyType(
    {name: Default(name=name, **entry) for name, entry in _DATA["constants"].items()}
)
CURVES: Mapping[str, Curve] = MappingProxyType(
    {name: _curve(name, entry) for name, entry in _DATA["curves"].items()}
)


def value(name: str) -> float:
    """The default of the constant `name`, in its unit."""
    return DEFAULTS[name].value


def curve(name: str) -> tuple[float, ...]:
    """The default of the series `name`, in its unit."""
    return CURVES[name].value
