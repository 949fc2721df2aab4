"""State changes through one door: check the table, write only if nobody was faster, leave a trail."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db import models, transaction

from core.audit import record
from core.errors import InvalidTransition, StaleData
from core.messages import msg
from core.models import User

M = TypeVar("M", bound=models.Model)


def lock(queryset: models.QuerySet[M], pk: Any) -> M:
    """The row `pk`, locked until the transaction ends (SQLite has one writer at a time instead)."""
    return queryset.select_for_update(of=("self",)).get(pk=pk)


def advance(
    obj: Any,
    to: str,
    *,
    by: User | None,
    action: str,
    reason: str = "",
    field: str = "status",
    also: dict[str, Any] | None = None,
    **facts: Any,
) -> None:
    """Move `obj` to state `to` if its TRANSITIONS allow it, with the columns in `also`, and record `action`.

    The write is conditional on the state (and version, where the model has one) that was read, so that two callers
    cannot both succeed even where row locks do not exist. Raises InvalidTransition or StaleData.
    """
    before: str = getattr(obj, field)
    allowed: dict[str, set[str]] = obj.TRANSITIONS
    if to not in allowed.get(before, set()):
        raise InvalidTransition(
            msg(
                "%(object)s is in state %(state)s and cannot go to %(target)s",
                object=str(obj),
                state=str(before),
                target=str(to),
            )
        )
    condition: dict[str, Any] = {"pk": obj.pk, field: before}
    changes: dict[str, Any] = {field: to, **(also or {})}
    if hasattr(obj, "version"):
        condition["version"] = obj.version
        changes["version"] = obj.version + 1
    # no savepoint inside a caller's transaction: a failure undoes all of it
    with transaction.atomic(savepoint=False):
        changed = type(obj)._base_manager.filter(**condition).update(**changes)
        if changed:
            for name, value in changes.items():
                setattr(obj, name, value)
            record(action, on=obj, by=by, from_state=before, to_state=to, reason=reason, **facts)
    if not changed:
        raise StaleData()
