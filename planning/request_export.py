"""The list of requests as a table that can be read in again."""

from __future__ import annotations

from typing import Any

from core.exports import Cell, Column
from planning.models import CapacityRequest
from planning.services.imports import TERMS, WORKLOAD


def _term(name: str) -> Column[CapacityRequest]:
    return Column(name, lambda row: getattr(row.current, name))


def _workload(name: str) -> Column[CapacityRequest]:
    return Column(name, lambda row: _cell(row.current.workload.get(name)))


def _cell(value: Any) -> Cell:
    """Lists as people type them."""
    return ", ".join(str(item) for item in value) if isinstance(value, list) else value


def _plan(name: str) -> Any:
    return lambda row: getattr(getattr(row.current, "plan", None), name, None)


def _tax(row: CapacityRequest) -> Cell:
    """Of the amount; empty where none was counted."""
    tax = getattr(getattr(row.current, "plan", None), "tax", None)
    return None if tax is None else tax.amount


COLUMNS: tuple[Column[CapacityRequest], ...] = (
    Column("reference", lambda row: row.reference),
    Column("team", lambda row: row.team.slug),
    Column("kind", lambda row: row.kind),
    Column("title", lambda row: row.title),
    Column("status", lambda row: row.status),
    Column("requester", lambda row: row.requester.email),
    Column("revision", lambda row: row.revision_number),
    *(_term(name) for name in TERMS),
    *(_workload(name) for name in WORKLOAD),
    Column("plan", lambda row: str(row.current.plan) if hasattr(row.current, "plan") else None),
    Column("amount", _plan("amount")),
    Column("tax", lambda row: _tax(row)),
    Column("currency", _plan("currency")),
)
