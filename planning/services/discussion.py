"""Comments with mentions, watching, and papers on a request."""

from __future__ import annotations

import re
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from core.audit import record, record_refusal
from core.errors import InputError, InvalidTransition, NotPermitted
from core.files import store_upload
from core.messages import msg
from core.models import User
from core.outbox import notify
from planning import policies
from planning.models.discussion import RequestAttachment, RequestComment, RequestWatch
from planning.models.requests import CapacityRequest
from planning.selectors.readers import handles, readers
from planning.services.moves import lock_request
from planning.services.watching import watchers

MAX_TEXT = 5_000
MAX_FILES = 20
MAX_FILE_BYTES = 25 * 1024 * 1024
# An @ at the start of a word; what follows is the handle. A full stop that ends a sentence is not part of it.
_MENTION = re.compile(r"(?<![\w@.])@([\w+-]+(?:\.[\w+-]+)*(?:@[\w-]+(?:\.[\w-]+)+)?)", re.ASCII)


@transaction.atomic
def comment(*, request_id: int, text: str, by: User) -> RequestComment:
    """Add a comment. People named with @handle, who must be able to see the request, are told; so are requester and
    watchers.

    Raises NotPermitted or InputError (empty, too long, or someone named who may not see it).
    """
    request = lock_request(request_id)
    if not policies.can_comment(by, request):
        raise NotPermitted(on=request)
    text = text.strip()
    if not text:
        raise InputError("text", msg("Write something first"))
    if len(text) > MAX_TEXT:
        raise InputError(
            "text", msg("%(field)s is longer than %(limit)s characters", field="text", limit=MAX_TEXT),
            value=len(text), limit=MAX_TEXT,
        )  # fmt: skip
    mentioned = _mentioned(request, text)
    row = RequestComment(request=request, author=by, text=text)
    row.save()
    row.mentions.set(mentioned)
    record("request.commented", on=request, by=by, comment=row.pk, mentions=len(mentioned))
    told = {by.pk: by, **{person.pk: person for person in mentioned}}
    notify(
        [person for person in mentioned if person.pk != by.pk],
        "comment.mentioned",
        on=row,
        message=msg("%(name)s mentioned you in %(request)s", name=str(by), request=str(request)),
        url=f"{request.get_absolute_url()}#comments",
    )
    notify(
        [one for one in (request.requester, *watchers(request)) if one.pk not in told],
        "comment.added",
        on=row,
        message=msg("%(name)s commented on %(request)s", name=str(by), request=str(request)),
        url=f"{request.get_absolute_url()}#comments",
    )
    return row


def _mentioned(request: CapacityRequest, text: str) -> list[User]:
    names = dict.fromkeys(name.lower() for name in _MENTION.findall(text))
    if not names:
        return []
    known = handles(readers(request.team))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            "text",
            msg("@%(name)s is nobody who may see this request", name=unknown[0]),
            value=unknown[0],
        )
    return list({known[name].pk: known[name] for name in names}.values())


@transaction.atomic
def watch(*, request_id: int, by: User) -> RequestWatch:
    """Tell `by` of changes from now on. Watching already is no error. The caller has checked that they may see it."""
    request = lock_request(request_id)
    row, created = RequestWatch.objects.get_or_create(request=request, user=by)
    if created:
        record("request.watched", on=request, by=by)
    return row


@transaction.atomic
def unwatch(*, request_id: int, by: User) -> None:
    """No longer tell `by`. Not watching is no error."""
    request = lock_request(request_id)
    gone, _rows = RequestWatch.objects.filter(request=request, user=by).delete()
    if gone:
        record("request.unwatched", on=request, by=by)


@transaction.atomic
def attach(*, request_id: int, upload: File[Any], by: User, note: str = "") -> RequestAttachment:
    """Keep a paper: typed by its content, limited in size, hashed. Raises NotPermitted or InputError."""
    request = lock_request(request_id)
    if not policies.can_comment(by, request):
        raise NotPermitted(on=request)
    held = request.attachments.filter(removed_at=None).count()
    if held >= MAX_FILES:
        raise InputError(
            "file", msg("A request keeps at most %(limit)s files", limit=MAX_FILES),
            value=held + 1, limit=MAX_FILES,
        )  # fmt: skip
    stored = store_upload(upload, by=by, max_bytes=MAX_FILE_BYTES)
    row = RequestAttachment.objects.create(
        request=request, file=stored, note=" ".join(note.split())[:200], added_by=by
    )
    record(
        "request.file_added", on=request, by=by, attachment=row.pk, name=stored.name,
        sha256=stored.sha256, size=stored.size,
    )  # fmt: skip
    return row


@transaction.atomic
def remove_attachment(*, attachment_id: int, by: User) -> RequestAttachment:
    """Hide a paper, by who brought it, while the request is open. Raises NotPermitted or InvalidTransition."""
    request_id = RequestAttachment.objects.values_list("request_id", flat=True).get(
        pk=attachment_id
    )
    request = lock_request(request_id)
    row: RequestAttachment = RequestAttachment.objects.select_related("file").get(pk=attachment_id)
    if row.added_by_id != by.pk:
        raise NotPermitted(on=request)
    if row.removed_at is not None or not request.is_open:
        raise InvalidTransition(msg("This file can no longer be taken away"))
    row.removed_at, row.removed_by = timezone.now(), by
    row.save(update_fields=["removed_at", "removed_by"])
    record(
        "request.file_removed", on=request, by=by, attachment=row.pk, name=row.file.name,
        sha256=row.file.sha256,
    )  # fmt: skip
    return row


def readable_file(
    *, request_id: int, attachment_id: int, by: User, path: str
) -> RequestAttachment | None:
    """The paper, when `by` may see its request; else None, and the attempt on an existing one is recorded."""
    row: RequestAttachment | None = (
        RequestAttachment.objects.filter(pk=attachment_id, request_id=request_id, removed_at=None)
        .select_related("file", "request")
        .first()
    )
    if row is None:
        return None
    if not CapacityRequest.objects.visible_to(by).filter(pk=request_id).exists():
        record_refusal(NotPermitted(on=row.request), by=by, path=path)
        return None
    return row
