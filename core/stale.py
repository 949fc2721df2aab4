"""What happened to a row since the page was opened on which somebody acts: one way for every page and the API.

Every entry of a row's trail holds the version that the row then had, so those above the one that was seen are what the
reader does not know. States that the row went to and `changes` ({field: [before, after]}) are told as a difference.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext

from core.audit import object_type, trail
from core.errors import StaleData
from core.labels import state_label
from core.models import AuditEntry

FAR = 200  # entries that are told at the most
UNTYPED = frozenset({"csrfmiddlewaretoken", "once", "version", "seen_hash", "next"})


def check_version(obj: Any, seen: int | None) -> None:
    """Raise StaleData with what differs when the caller saw another version than the one now locked. None: the caller
    saw none."""
    if seen is not None and obj.version != seen:
        raise since(obj, seen)


def since(obj: Any, seen: int) -> StaleData:
    """The refusal of a step that was taken on version `seen`."""
    entries = _unseen(obj, seen)
    found: dict[str, tuple[str, str]] = {}
    for entry in reversed(entries):
        for name, (old, new) in _moves(entry).items():
            found[name] = (found[name][0] if name in found else old, new)
    changes = {"version": (str(seen), str(obj.version))}
    changes |= {name: pair for name, pair in found.items() if pair[0] != pair[1]}
    return StaleData(changes=changes, on=obj, happened=entries)


def _unseen(obj: models.Model, seen: int) -> list[AuditEntry]:
    """Newest first."""
    return list(trail(obj).filter(object_version__gt=seen).order_by("-pk")[:FAR])


def _moves(entry: AuditEntry) -> dict[str, tuple[str, str]]:
    moved = {}
    changes = entry.data.get("changes")
    for name, pair in changes.items() if isinstance(changes, dict) else ():
        if isinstance(pair, list | tuple) and len(pair) == 2:
            moved[str(name)] = (_plain(pair[0]), _plain(pair[1]))
    if entry.to_state:
        moved["status"] = (entry.from_state, entry.to_state)
    return moved


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def rows(error: StaleData) -> list[tuple[str, str, str]]:
    """Rows of components/diff_table.html: fields and states in words, the number of the version only where nothing else
    is known to differ."""
    named = {name: pair for name, pair in error.changes.items() if name != "version"}
    return [
        (_label(error.on, name), _said(error.on, name, old), _said(error.on, name, new))
        for name, (old, new) in (named or error.changes).items()
    ]


def typed(request: HttpRequest, error: StaleData) -> list[tuple[str, str]]:
    """What was filled in and not saved, to be copied: (field, value). A name that only the form knows is not shown."""
    return [
        (
            _label(error.on, name) if _field(error.on, name) else gettext("Value"),
            _said(error.on, name, value),
        )
        for name, values in request.POST.lists()
        for value in values
        if value.strip() and name not in UNTYPED and "password" not in name
    ]


def _field(on: object, name: str) -> Any:
    if not isinstance(on, models.Model):
        return None
    try:
        return on._meta.get_field(name)
    except FieldDoesNotExist:
        return None


def _label(on: object, name: str) -> str:
    field = _field(on, name)
    text = str(getattr(field, "verbose_name", name)).replace("_", " ")
    return text[:1].upper() + text[1:]


def _said(on: object, name: str, value: str) -> str:
    if name == "status" and isinstance(on, models.Model):
        return state_label(object_type(on), value)
    choices = dict(getattr(_field(on, name), "flatchoices", ()))
    return str(choices.get(value, value))
