"""Default constants of the economics engine: each has a range, a unit, a source, a date and a status, in one data file.

``status`` is ``read`` (seen in the source), ``derived`` (arithmetic on read figures), ``recalled`` (not re-read) or
``chosen`` (a planning assumption of this product). Every one of them is an input that a user may replace; those that
an organisation corrected in its catalogue count within :func:`corrected`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
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


@dataclass(frozen=True, slots=True)
class _InForce:
    """Corrections by name, and the version of all together: told once, asked for with every case."""

    rows: Mapping[str, Default | Curve]
    stamp: str


_SHIPPED = _InForce(MappingProxyType({}), VERSION)
_CORRECTED: ContextVar[_InForce] = ContextVar("corrected", default=_SHIPPED)


@contextmanager
def corrected(rows: Iterable[Default | Curve]) -> Iterator[None]:
    """Within, these stand in place of the defaults of their names. Names that are not known change nothing."""
    by_name = MappingProxyType({row.name: row for row in rows})
    token = _CORRECTED.set(_InForce(by_name, _stamp(by_name)))
    try:
        yield
    finally:
        _CORRECTED.reset(token)


def stamp() -> str:
    """The version of what is in force; corrections add their number and a hash of their figures."""
    return _CORRECTED.get().stamp


def _stamp(rows: Mapping[str, Default | Curve]) -> str:
    if not rows:
        return VERSION
    figures = json.dumps(
        [[name, rows[name].low, rows[name].value, rows[name].high] for name in sorted(rows)]
    )
    return f"{VERSION}+{len(rows)}.{hashlib.sha256(figures.encode()).hexdigest()[:8]}"


def known(name: str) -> Default:
    """The constant `name` as it is in force, with its range and source."""
    found = _CORRECTED.get().rows.get(name)
    return found if isinstance(found, Default) else DEFAULTS[name]


def known_curve(name: str) -> Curve:
    """The series `name` as it is in force."""
    found = _CORRECTED.get().rows.get(name)
    return found if isinstance(found, Curve) else CURVES[name]


def value(name: str) -> float:
    """The default of the constant `name`, in its unit."""
    return known(name).value


def curve(name: str) -> tuple[float, ...]:
    """The default of the series `name`, in its unit."""
    return known_curve(name).value
