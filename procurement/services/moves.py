"""The step every service of this app takes first and last: lock the row, ask who may, move it to its next state."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models
from django.utils import timezone

from core import transitions
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from core.stale import check_version
from procurement.policies import require_action

M = TypeVar("M", bound=models.Model)


def take(
    rows: models.QuerySet[M],
    pk: Any,
    *,
    action: str,
    by: User | None,
    version: int | None = None,
) -> M:
    """The row, locked, after asking whether `by` (None: the system) may do `action` now. Where it moved on since the
    caller read it, what changed is said, not only that the step is over.

    Raises NotPermitted, InvalidTransition or StaleData.
    """
    obj = transitions.lock(rows, pk)
    try:
        require_action(by, action, obj)
    except InvalidTransition:
        check_version(obj, version)
        raise
    check_version(obj, version)
    return obj


def move(
    obj: Any, to: str, *, by: User | None, action: str, reason: str = "", **facts: Any
) -> None:
    """Advance `obj` and note since when it is there. Raises InvalidTransition or StaleData."""
    transitions.advance(obj, to, by=by, action=action, reason=reason, **facts)
    if hasattr(obj, "status_since"):
        obj.status_since = timezone.now()
        type(obj)._base_manager.filter(pk=obj.pk).update(status_since=obj.status_since)


def touch(obj: Any) -> None:
    """A change without a change of state: raise the version, so that a page opened before it is stale."""
    obj.version += 1
    type(obj)._base_manager.filter(pk=obj.pk).update(version=obj.version)


def need_reason(reason: str, *, field: str = "reason", least: int = 1) -> str:
    """`reason` without outer spaces. Raises InputError when it is shorter than `least` characters."""
    text = reason.strip()
    if not text:
        raise InputError(field, msg("Give a reason"), value=0, limit=least)
    if len(text) < least:
        raise InputError(
            field,
            msg(
                "The reason has %(value)s characters; at least %(limit)s are asked for",
                value=len(text),
                limit=least,
            ),
            value=len(text),
            limit=least,
        )
    return text
