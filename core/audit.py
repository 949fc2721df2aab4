"""The audit trail: one call, in the same transaction as the change it speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.db import models
from django.utils import translation

from core.errors import NotPermitted
from core.models import AuditEntry, Team, User

# Request or task id of the act in progress; set by the middleware and by the task wrapper.
act: ContextVar[str] = ContextVar("act", default="")
# The batch of the act in progress, when it touches many objects.
_batch: ContextVar[UUID | None] = ContextVar("batch", default=None)


@contextmanager
def in_batch(batch: UUID | None) -> Iterator[None]:
    """Entries made inside carry `batch`, so that one act on many objects reads as one."""
    token = _batch.set(batch)
    try:
        yield
    finally:
        _batch.reset(token)


# The entries of the act in progress that are written together at its end; None: each at once.
_gathered: ContextVar[list[AuditEntry] | None] = ContextVar("gathered", default=None)


@contextmanager
def gathered() -> Iterator[None]:
    """Write the entries made inside in one statement when the block ends; none when it fails. For steps that keep
    others waiting."""
    if _gathered.get() is not None:
        yield
        return
    entries: list[AuditEntry] = []
    token = _gathered.set(entries)
    try:
        yield
    finally:
        _gathered.reset(token)
    AuditEntry.objects.bulk_create(entries)


def object_type(obj: models.Model) -> str:
    """`app_label.model`, the name under which the trail knows `obj`."""
    return obj._meta.label_lower


def neutral_label(obj: models.Model) -> str:
    """What the trail calls `obj`: the same words whoever acts, never in the language of the one who happened to."""
    with translation.override("en"):
        return str(getattr(obj, "trail_label", "") or obj)[:200]


def record(
    action: str,
    *,
    on: models.Model,
    by: User | None,
    from_state: str = "",
    to_state: str = "",
    reason: str = "",
    on_behalf_of: User | None = None,
    team: Team | None = None,
    batch: UUID | None = None,
    **facts: Any,
) -> AuditEntry:
    """Write down that `by` (None: the system) did `action` (noun.past) to `on`. Facts must be JSON values."""
    if team is None:
        team = getattr(on, "team", None)
    entry = AuditEntry(
        action=action,
        actor=by,
        on_behalf_of=on_behalf_of,
        object_type=object_type(on),
        object_id=str(on.pk),
        object_version=_version(on),
        object_label=neutral_label(on),
        team=team,
        from_state=from_state,
        to_state=to_state,
        reason=reason,
        data=facts,
        context=act.get(),
        batch=batch or _batch.get(),
    )
    together = _gathered.get()
    if together is None:
        entry.save(force_insert=True)
    else:
        together.append(entry)
    return entry


def _version(on: models.Model) -> int | None:
    version = getattr(on, "version", None)
    return version if isinstance(version, int) else None


def trail(*objects: models.Model) -> models.QuerySet[AuditEntry]:
    """Entries about `objects`, newest first."""
    query = models.Q(pk__in=[])
    for obj in objects:
        query |= models.Q(object_type=object_type(obj), object_id=str(obj.pk))
    return AuditEntry.objects.filter(query).select_related("actor", "on_behalf_of")


def record_refusal(error: NotPermitted, *, by: User, path: str) -> None:
    """Write down a step that was refused. Called at the edge, after the step's own transaction was rolled back."""
    on = error.on if isinstance(error.on, models.Model) else by
    record("permission.denied", on=on, by=by, reason=str(error), path=path)
