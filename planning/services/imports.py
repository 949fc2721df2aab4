"""A table of requests: shown row by row before anything is filed, then filed as drafts, all or none by choice."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.files.base import File
from django.db import transaction

from core import jobs
from core.audit import in_batch, record
from core.errors import DomainError, InputError, NotPermitted
from core.files import TEXT, check_upload, store_upload
from core.imports import (
    ENCODINGS,
    MAX_BYTES,
    EncodingNeeded,
    Preview,
    Row,
    Table,
    parse_date,
    read_table,
)
from core.jobs import Progress
from core.messages import Message, msg
from core.models import Team, User
from core.roles import Role, has_role_anywhere
from core.stale import check_version
from core.transitions import advance, lock
from planning import policies
from planning.models.bulk import RequestImport
from planning.models.requests import CapacityRequest, Origin, RequestRevision
from planning.services.request_content import checked_content, checked_title, new_draft
from planning.workloads import FIELDS, Kind, WorkloadErrors

ACCEPTED = frozenset({TEXT, "application/zip"})
HEAD = ("team", "kind", "title")
TERMS = tuple(name for name in RequestRevision.CONTENT if name != "workload")
WORKLOAD = tuple(
    dict.fromkeys(
        field.name for fields in FIELDS.values() for field in fields
        if field.type not in ("config", "series")
    )
)  # fmt: skip
# An export of the list has these too; they say what was and are not read.
IGNORED = ("reference", "status", "requester", "revision", "plan", "amount", "tax", "currency")
COLUMNS = (*HEAD, *TERMS, *WORKLOAD, *IGNORED)
REQUIRED = (*HEAD, "need_by")
MAX_IMPORT = 500
AT_ONCE = 25  # more rows are filed in the background
ADD, REFUSED = "add", "refused"
_TRUE = frozenset({"yes", "true", "1", "y", "是"})
_FALSE = frozenset({"", "no", "false", "0", "n", "否"})


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one row."""

    line: int
    cells: Mapping[str, str]
    fate: str  # ADD or REFUSED
    messages: tuple[Message, ...] = ()
    team: Team | None = None
    content: Mapping[str, Any] | None = None


def may_import(user: User) -> bool:
    """Whoever may file requests for some team."""
    return has_role_anywhere(user, Role.REQUESTER, Role.APPROVER)


def _own(pk: int, by: User) -> RequestImport:
    row = lock(RequestImport.objects.select_related("file"), pk)
    if row.created_by_id != by.pk:
        raise NotPermitted(on=row)
    return row


def start_import(*, upload: File[Any], encoding: str = "", by: User) -> RequestImport:
    """Keep an uploaded table for preview; nothing is filed yet. Raises NotPermitted or InputError.

    The file is read before the transaction: a large one must not keep everybody else from writing.
    """
    if not may_import(by):
        raise NotPermitted()
    check_upload(upload, allowed=ACCEPTED, max_bytes=MAX_BYTES)
    row = RequestImport(encoding=encoding, created_by=by)
    with contextlib.suppress(EncodingNeeded):
        table = _table(row, upload.read())
        row.encoding, row.delimiter = table.encoding, table.delimiter
    upload.seek(0)
    with transaction.atomic():
        row.file = store_upload(upload, by=by, allowed=ACCEPTED, max_bytes=MAX_BYTES)
        row.save()
        record("request_import.started", on=row, by=by, sha256=row.file.sha256)
    return row


@transaction.atomic
def choose_encoding(*, pk: int, encoding: str, by: User) -> RequestImport:
    """Say how the file is to be read. Raises NotPermitted or InputError when it does not read so."""
    row = _own(pk, by)
    if encoding not in ENCODINGS:
        raise InputError("encoding", msg("Choose one of the encodings offered"), value=encoding)
    row.encoding, row.delimiter = encoding, ""
    table = _read(row)
    row.delimiter = table.delimiter
    row.save(update_fields=["encoding", "delimiter"])
    return row


def preview(row: RequestImport, by: User) -> Preview[Fate]:
    """The fate of every row if `by` applied the import now. Writes nothing."""
    try:
        table = _read(row)
    except EncodingNeeded as needed:
        return Preview([], {}, choices=needed.choices)
    teams = {team.slug: team for team in Team.objects.filter(active=True)}
    fates = [_fate(line, teams, by) for line in table.rows]
    counted = Counter(fate.fate for fate in fates)
    return Preview(fates, {name: counted[name] for name in (ADD, REFUSED)}, table.unknown_columns)


def _read(row: RequestImport) -> Table:
    with row.file.file.open("rb") as content:
        return _table(row, content.read())


def _table(row: RequestImport, content: bytes) -> Table:
    table = read_table(
        content,
        columns=COLUMNS,
        required=REQUIRED,
        encoding="" if row.encoding == "xlsx" else row.encoding,
        delimiter=row.delimiter,
    )
    if len(table.rows) > MAX_IMPORT:
        raise InputError(
            "file", msg("The file has more than %(limit)s rows; split it", limit=MAX_IMPORT),
            value=len(table.rows), limit=MAX_IMPORT,
        )  # fmt: skip
    return table


def _fate(row: Row, teams: Mapping[str, Team], by: User) -> Fate:
    """Every error of a row, not only the first."""
    cells = row.cells
    errors: list[Message] = [row.problem] if row.problem else []
    team = teams.get(cells["team"].strip())
    if team is None or not policies.can_create(by, team.pk):
        # one answer for both, so that a file does not tell which teams exist
        errors.append(msg("You may file no requests for a team %(team)s", team=cells["team"]))
    kind = cells["kind"].strip()
    if kind not in Kind.values:
        errors.append(
            msg("%(field)s: %(value)s is none of %(limit)s", field="kind", value=kind,
                limit=", ".join(Kind.values))
        )  # fmt: skip
    try:
        checked_title(cells["title"])
    except InputError as error:
        errors.append(error.message)
    content = None
    if kind in Kind.values:
        terms, wrong = _terms(cells)
        errors += wrong
        workload = {name: cells[name] for name in WORKLOAD if cells.get(name, "").strip()}
        try:
            content = checked_content(kind, workload, terms)
        except WorkloadErrors as several:
            errors += [one.message for one in several.errors if isinstance(one, DomainError)]
        except InputError as error:
            errors.append(error.message)
    if errors:
        distinct = {str(error): error for error in errors}
        return Fate(row.line, cells, REFUSED, tuple(distinct.values()))
    return Fate(row.line, cells, ADD, (), team, content)


def _terms(cells: Mapping[str, str]) -> tuple[dict[str, Any], list[Message]]:
    """The conditions as the service takes them; an empty cell is a value not given."""
    terms: dict[str, Any] = {}
    errors: list[Message] = []
    for name in TERMS:
        text = cells.get(name, "").strip()
        if not text:
            continue
        try:
            terms[name] = _term(name, text)
        except InputError as error:
            errors.append(error.message)
    return terms, errors


def _term(name: str, text: str) -> Any:
    if name in ("need_by", "start"):
        return parse_date(name, text)
    if name in ("duration_days", "checkpoint_seconds"):
        if not text.isascii() or not text.isdecimal():
            raise InputError(
                name, msg("%(field)s: %(value)s is not a whole number", field=name, value=text),
                value=text,
            )  # fmt: skip
        return int(text)
    if name == "interruptible":
        if text.lower() not in _TRUE | _FALSE:
            raise InputError(
                name, msg("%(field)s: %(value)s is neither yes nor no", field=name, value=text),
                value=text,
            )  # fmt: skip
        return text.lower() in _TRUE
    if name == "accuracy_loss_limit":
        try:
            return float(text)
        except ValueError:
            raise InputError(
                name, msg("%(field)s: %(value)s is not a number", field=name, value=text),
                value=text,
            ) from None  # fmt: skip
    return text


@transaction.atomic
def apply_import(
    *, pk: int, by: User, all_or_nothing: bool = True, seen: int | None = None
) -> RequestImport:
    """File the rows as drafts: at once when they are few, else in the background. Once only.

    Raises NotPermitted, StaleData, InvalidTransition, or InputError (encoding not chosen, a refused row where all or
    none was asked for, nothing to file).
    """
    row = _own(pk, by)
    check_version(row, seen)
    shown = preview(row, by)
    _check(shown, all_or_nothing)
    row.all_or_nothing, row.batch = all_or_nothing, uuid.uuid4()
    row.save(update_fields=["all_or_nothing", "batch"])
    advance(row, RequestImport.Status.APPLYING, by=by, action="request_import.applying")
    if shown.counts[ADD] <= AT_ONCE:
        file_rows(pk=pk)
        row.refresh_from_db()
    else:
        row.job = jobs.submit(
            "planning.tasks.apply_request_import", pk, key=f"request-import:{pk}:{row.batch}", owner=by
        )  # fmt: skip
        row.save(update_fields=["job"])
    return row


def _check(shown: Preview[Fate], all_or_nothing: bool) -> None:
    if shown.choices is not None:
        raise InputError("encoding", msg("Choose the encoding first"))
    if all_or_nothing and shown.counts[REFUSED]:
        raise InputError(
            "file", msg("%(n)s rows are refused, so none is filed", n=shown.counts[REFUSED]),
            value=shown.counts[REFUSED], limit=0,
        )  # fmt: skip
    if not shown.counts[ADD]:
        raise InputError("file", msg("No row can be filed"), value=0, limit=1)


@transaction.atomic
def file_rows(*, pk: int, progress: Progress | None = None) -> None:
    """File the rows of an import that is being applied; rows and trail in one transaction. Safe to repeat."""
    row = lock(RequestImport.objects.select_related("file", "created_by"), pk)
    if row.status != RequestImport.Status.APPLYING:
        return
    by = row.created_by
    shown = preview(row, by)  # again: rights and the catalogue may have changed since
    _check(shown, row.all_or_nothing)
    if progress is not None:
        progress(30, msg("Filing the rows"))
    with in_batch(row.batch):
        for fate in shown.fates:
            if fate.team is not None and fate.content is not None:
                _file(row, fate, fate.team, fate.content, by)
        row.counts = shown.counts
        row.save(update_fields=["counts"])
        advance(
            row, RequestImport.Status.APPLIED, by=by, action="request_import.applied",
            rows=shown.counts,
        )  # fmt: skip


def _file(
    row: RequestImport, fate: Fate, team: Team, content: Mapping[str, Any], by: User
) -> CapacityRequest:
    request = new_draft(
        team=team,
        kind=fate.cells["kind"].strip(),
        title=fate.cells["title"],
        content=content,
        origin=Origin.IMPORTED,
        by=by,
    )
    record(
        "request.created", on=request, by=by, kind=request.kind, line=fate.line, imported_by=row.pk
    )
    return request


@transaction.atomic
def give_up_import(*, pk: int) -> None:
    """The rows could not be filed: back to the preview, so that the reasons show."""
    row = lock(RequestImport.objects.all(), pk)
    if row.status == RequestImport.Status.APPLYING:
        advance(row, RequestImport.Status.PREVIEW, by=None, action="request_import.refused")


@transaction.atomic
def discard_import(*, pk: int, by: User) -> RequestImport:
    """Put an import aside without using it. Raises NotPermitted or InvalidTransition."""
    row = _own(pk, by)
    advance(row, RequestImport.Status.DISCARDED, by=by, action="request_import.discarded")
    return row
