"""Filters that people keep: the query of a list under a name."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.http import QueryDict  # noqa: TID251 - parses a query, answers nothing

from core.audit import record
from core.errors import InputError, NotPermitted
from core.messages import msg
from core.models import User
from planning.models.bulk import SavedFilter

KEPT = ("q", "team", "status", "kind")


@transaction.atomic
def save_filter(*, name: str, query: str, shared: bool, by: User) -> SavedFilter:
    """Keep what a list is filtered by; fields that are no filter are left out. Raises InputError."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise InputError(
            "name",
            msg("A name has 1 to %(limit)s characters", limit=80),
            value=name[:100],
            limit=80,
        )
    given = QueryDict(query)
    kept = QueryDict(mutable=True)
    for field in KEPT:
        if given.get(field):
            kept[field] = given[field]
    if not kept or len(kept.urlencode()) > 500:
        raise InputError("query", msg("Filter the list first"), value=query[:100])
    try:
        with transaction.atomic():
            row = SavedFilter.objects.create(
                owner=by, name=name, query=kept.urlencode(), shared=shared
            )
    except IntegrityError:
        raise InputError("name", msg("You have a filter of this name"), value=name) from None
    record("saved_filter.saved", on=row, by=by, query=row.query, shared=shared)
    return row


@transaction.atomic
def delete_filter(*, pk: int, by: User) -> None:
    """Delete one's own filter. Raises NotPermitted."""
    row = SavedFilter.objects.select_for_update().get(pk=pk)
    if row.owner_id != by.pk:
        raise NotPermitted(on=row)
    record("saved_filter.deleted", on=row, by=by, query=row.query)
    row.delete()
