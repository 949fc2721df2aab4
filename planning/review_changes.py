"""What a correction changed: figure by figure between two snapshots of a review. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# What names a row of each list; lists without one are compared by place.
KEYS: Mapping[str, tuple[str, ...]] = {
    "requests": ("reference",),
    "demand": ("team", "kind"),
    "budgets": ("team", "kind"),
    "orders": ("order", "accelerator"),
    "cards": ("serial",),
    "vendors": ("vendor",),
    "rfqs": ("rfq",),
    "rmas": ("rma",),
    "use": ("team", "accelerator", "ownership"),
    "queues": ("team",),
    "supply": ("accelerator",),
    "terms": ("what", "source", "accelerator", "kind", "last_day"),
    "forecast": ("pool",),
    "recommendations": ("pool",),
    "calibration": ("work",),
    "calibration_months": ("work", "month"),
}
LEFT_OUT = frozenset({"as_of", "schema", "holes", "use_days", "lines", "past", "weeks"})


@dataclass(frozen=True, slots=True)
class Change:
    """One figure. None: there was none."""

    part: str  # orders
    row: str  # PO-2026-0001 · h100
    field: str
    before: str | None
    after: str | None


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Differences in the order of the newer snapshot."""
    found: list[Change] = []
    for part in [*after, *(name for name in before if name not in after)]:
        if part in LEFT_OUT:
            continue
        old, new = before.get(part), after.get(part)
        if part in KEYS and isinstance(old or [], list) and isinstance(new or [], list):
            found += _rows(part, _named(part, old or []), _named(part, new or []))
        else:
            found += _values(part, "", _flat(part, old), _flat(part, new))
    return found


def _named(part: str, rows: list[Any]) -> dict[str, dict[str, Any]]:
    named: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = " · ".join(str(row.get(key) or "–") for key in KEYS[part])
        while name in named:
            name += "'"
        named[name] = row
    return named


def _rows(
    part: str, old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]
) -> Iterator[Change]:
    for name in [*new, *(n for n in old if n not in new)]:
        yield from _values(
            part,
            name,
            dict(_fields(old.get(name, {}))),
            dict(_fields(new.get(name, {}))),
        )


def _fields(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if name not in LEFT_OUT:
            yield from _flat(name, value).items()


def _flat(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {
            f"{name}.{k}": v for key, inner in value.items() for k, v in _flat(key, inner).items()
        }
    return {name: value}


def _values(
    part: str, row: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[Change]:
    for field in [*new, *(name for name in old if name not in new)]:
        if old.get(field) != new.get(field):
            yield Change(part, row, field, _text(old.get(field)), _text(new.get(field)))


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return f"{value:.4g}" if isinstance(value, float) else str(value)[:200]
