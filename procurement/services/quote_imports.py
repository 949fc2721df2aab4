"""A quote by table: read and shown row by row before anything is recorded, then recorded whole or not at all.

What takes longer than a moment is read and recorded by a worker. Of a sealed bid the report holds no price: whoever
uploads has the file, and the product shows no price to anybody before the opening.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from django.core.files.base import File
from django.db import transaction

from core import jobs
from core.audit import record
from core.errors import DomainError, InputError, NotPermitted
from core.files import TEXT, check_upload, store_upload
from core.imports import ENCODINGS, MAX_BYTES, EncodingNeeded, refused_first
from core.jobs import Progress
from core.messages import Message, msg
from core.models import User
from core.stale import check_version
from core.transitions import advance, lock
from procurement.models import Quote, QuoteImport, Rfq, Vendor
from procurement.policies import require_action
from procurement.promises import checked_promises
from procurement.quote_table import Line, QuoteTable, read_quote
from procurement.requirements import check_answers
from procurement.services.quote_lines import check_alternative, checked_line
from procurement.services.quotes import WARRANTY_FIELDS, record_quote

ACCEPTED = frozenset({TEXT, "application/zip"})
INLINE_BYTES = 100_000  # a larger file is read by a worker [B]
AT_ONCE = 500  # more lines are recorded by a worker
ADD, REFUSED = "add", "refused"
CHECK_TASK = "procurement.tasks.check_quote_import"
APPLY_TASK = "procurement.tasks.apply_quote_import"
HEAD = ("currency", "valid_until", "lead_time_days")  # a quote cannot do without
HEAD_FIELDS = (
    *HEAD, "tax_mode", "partial_delivery", "reference", "incoterm", "payment_terms", "notes", "answers",
)  # fmt: skip
# column of the table → field; the others bear the same name. Both named here must be told somewhere.
WARRANTY_IN_FILE = {"warranty_months": "months", "warranty_start": "start_trigger"}
OTHER_TERMS = frozenset(WARRANTY_FIELDS) - set(WARRANTY_IN_FILE.values())
SHOWN = ("description", "quantity", "rfq_line", "kind", "bundle", "alternative_to")
PRICE_FIELDS = frozenset({"unit_price", "list_price", "discount_rate", "quantity"})
PRICES = ("unit_price", "list_price", "discount_percent", "price_breaks", "tax_percent")
S = QuoteImport.Status


def _own(pk: int, by: User) -> QuoteImport:
    row = lock(QuoteImport.objects.select_related("file", "rfq", "vendor"), pk)
    if row.created_by_id != by.pk:
        raise NotPermitted(on=row)
    return row


def start_import(
    *,
    rfq_id: int,
    vendor_id: int,
    upload: File[Any],
    by: User,
    head: Mapping[str, Any] | None = None,
    warranty: Mapping[str, Any] | None = None,
    encoding: str = "",
) -> QuoteImport:
    """Keep a vendor's table and read it; nothing is recorded yet. A large one is read by a worker.

    `head` and `warranty` are what the form says; what the file says goes before. Raises NotPermitted,
    InvalidTransition or InputError.
    """
    rfq = Rfq.objects.get(pk=rfq_id)
    require_action(by, "record_quote", rfq)
    vendor = Vendor.objects.filter(pk=vendor_id, invitations__rfq=rfq).first()
    if vendor is None:
        raise InputError("vendor_id", msg("This vendor was not invited"), value=vendor_id)
    if encoding and encoding not in ENCODINGS:
        raise InputError("encoding", msg("Choose one of the encodings offered"), value=encoding)
    check_upload(upload, allowed=ACCEPTED, max_bytes=MAX_BYTES)
    with transaction.atomic():
        row = QuoteImport.objects.create(
            rfq=rfq, vendor=vendor, encoding=encoding, created_by=by,
            file=store_upload(upload, by=by, allowed=ACCEPTED, max_bytes=MAX_BYTES),
            head=_plain(head or {}), warranty=_plain(warranty or {}),
        )  # fmt: skip
        record(
            "quote_import.started", on=row, by=by, rfq=rfq.number, vendor=vendor.name,
            sha256=row.file.sha256,
        )  # fmt: skip
        return _check(row, by)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON values; what is not told is left out."""
    return {
        name: value.isoformat() if isinstance(value, date) else value
        for name, value in values.items()
        if value not in (None, "")
    }


def _check(row: QuoteImport, by: User) -> QuoteImport:
    """Read it now when it is small, else by a worker."""
    if row.file.size <= INLINE_BYTES:
        check_import(pk=row.pk)
    else:
        row.job = jobs.submit(
            CHECK_TASK, row.pk, key=f"quote-import:{row.pk}:{row.version}", owner=by
        )
        row.save(update_fields=["job"])
    row.refresh_from_db()
    return row


@transaction.atomic
def check_import(*, pk: int, progress: Progress | None = None) -> None:
    """Say what becomes of every row; records nothing. Safe to repeat."""
    row = lock(QuoteImport.objects.select_related("file", "rfq", "vendor"), pk)
    if row.status != S.CHECKING:
        return
    if progress is not None:
        progress(10, msg("Reading the rows"))
    row.report = _report(row)
    row.encoding = row.report.pop("encoding", row.encoding)
    row.delimiter = row.report.pop("delimiter", row.delimiter)
    row.save(update_fields=["report", "encoding", "delimiter"])
    advance(row, S.PREVIEW, by=None, action="quote_import.checked")


def _read(row: QuoteImport) -> QuoteTable:
    with row.file.file.open("rb") as content:
        return read_quote(
            content.read(),
            encoding="" if row.encoding == "xlsx" else row.encoding,
            delimiter=row.delimiter,
            hide_prices=row.rfq.prices_hidden,
        )


def _report(row: QuoteImport) -> dict[str, Any]:
    try:
        read = _read(row)
    except EncodingNeeded as needed:
        return {"choices": needed.choices}
    except InputError as error:
        return {"problems": [error.message.to_json()]}
    judge(row.rfq, row.vendor, read.lines)
    refused = sum(bool(line.errors) for line in read.lines)
    problems = read.problems + _head_problems(row, _head(row, read))
    asked = {one.position: one.asked for one in row.rfq.requirements.all()}
    try:
        check_answers(read.head.get("answers", ()), asked)
    except InputError as error:
        problems.append(error.message)
    if not read.lines:
        problems.append(msg("The file holds no rows"))
    # Deposits, fees and extensions are prices too, and so is what an answer promises.
    unshown = {"answers", *(OTHER_TERMS if row.rfq.prices_hidden else ())}
    shown = SHOWN if row.rfq.prices_hidden else (*SHOWN, *PRICES)
    return {
        "counts": {ADD: len(read.lines) - refused, REFUSED: refused},
        "problems": [one.to_json() for one in problems],
        "unknown_columns": list(read.table.unknown_columns),
        "headings": dict(read.table.headings),
        "head": {name: value for name, value in _head(row, read).items() if name not in unshown},
        "encoding": read.table.encoding,
        "delimiter": read.table.delimiter,
        "rows": [
            [
                line.row,
                REFUSED if line.errors else ADD,
                [error.to_json() for error in line.errors],
                {name: line.cells[name] for name in shown if line.cells.get(name)},
            ]
            for line in read.lines
        ],
    }


def rows_refused_first(row: QuoteImport) -> list[Any]:
    """Rows of the report: where in the file, fate, messages and shown cells."""
    return refused_first(row.report.get("rows", []), lambda one: one[1] == REFUSED)


def judge(rfq: Rfq, vendor: Vendor, lines: list[Line]) -> None:
    """Add to each line what a quote would refuse it for: all that is wrong with its cells, else its first fault."""
    asked = {line.position: line for line in rfq.lines.all()}
    draft = Quote(rfq=rfq, vendor=vendor)
    instead = [line.given.get("alternative_to") for line in lines]
    for position, line in enumerate(lines, 1):
        if line.errors:
            continue
        try:
            found, _steps = checked_line(draft, position, line.given, asked)
            check_alternative(found, instead)
            checked_promises(position, line.given.get("promises") or ())
        except InputError as error:
            telling = error.field in PRICE_FIELDS and error.value not in (None, "")
            line.errors.append(
                msg(
                    "Line %(line)s: %(field)s cannot be kept as it is",
                    line=position,
                    field=error.field,
                )
                if telling and rfq.prices_hidden
                else error.message
            )


def _head(row: QuoteImport, read: QuoteTable) -> dict[str, Any]:
    return {**row.head, **read.head}


def _head_problems(row: QuoteImport, head: Mapping[str, Any]) -> list[Message]:
    known = {**head, **_warranty(row, head)}
    return [
        msg("%(field)s is missing: neither the file nor the form says it", field=name)
        for name in (*HEAD, *WARRANTY_IN_FILE.values())
        if known.get(name) in (None, "")
    ]


def _warranty(row: QuoteImport, head: Mapping[str, Any]) -> dict[str, Any]:
    told = {to: head[name] for name, to in WARRANTY_IN_FILE.items() if name in head}
    told |= {name: head[name] for name in OTHER_TERMS if name in head}
    return {**row.warranty, **told}


@transaction.atomic
def choose_encoding(*, pk: int, encoding: str, by: User) -> QuoteImport:
    """Say how the file is to be read, and read it again. Raises NotPermitted, InvalidTransition or InputError."""
    row = _own(pk, by)
    if encoding not in ENCODINGS:
        raise InputError("encoding", msg("Choose one of the encodings offered"), value=encoding)
    advance(row, S.CHECKING, by=by, action="quote_import.encoding_chosen", encoding=encoding)
    row.encoding, row.delimiter = encoding, ""
    row.save(update_fields=["encoding", "delimiter"])
    return _check(row, by)


@transaction.atomic
def apply_import(*, pk: int, by: User, seen: int | None = None) -> QuoteImport:
    """Record the quote: at once when its lines are few, else by a worker. Once only, all rows or none.

    Raises NotPermitted, StaleData, InvalidTransition or InputError (a row is refused, the encoding is not chosen).
    """
    row = _own(pk, by)
    check_version(row, seen)
    require_action(by, "record_quote", row.rfq)
    _whole_or_none(row.report)
    advance(row, S.APPLYING, by=by, action="quote_import.applying")
    if row.report["counts"][ADD] <= AT_ONCE:
        write_import(pk=pk)
    else:
        row.job = jobs.submit(APPLY_TASK, pk, key=f"quote-import:{pk}:{row.version}", owner=by)
        row.save(update_fields=["job"])
    row.refresh_from_db()
    return row


def _whole_or_none(report: Mapping[str, Any]) -> None:
    if report.get("choices"):
        raise InputError("encoding", msg("Choose the encoding first"))
    if report.get("problems"):
        raise InputError("file", Message.from_json(report["problems"][0]))
    refused = report["counts"][REFUSED]
    if refused:
        raise InputError(
            "file", msg("%(n)s rows are refused, so no line is recorded", n=refused),
            value=refused, limit=0,
        )  # fmt: skip


@transaction.atomic
def write_import(*, pk: int, progress: Progress | None = None) -> None:
    """Record the quote of an import that is being applied. Safe to repeat."""
    row = lock(QuoteImport.objects.select_related("file", "rfq", "vendor", "created_by"), pk)
    if row.status != S.APPLYING:
        return
    if progress is not None:
        progress(10, msg("Reading the rows"))
    read = _read(row)
    if progress is not None:
        progress(30, msg("Recording the lines"))
    head = _head(row, read)
    head["valid_until"] = date.fromisoformat(head["valid_until"])
    row.quote = record_quote(
        rfq_id=row.rfq_id,
        vendor_id=row.vendor_id,
        by=row.created_by,
        lines=[line.given for line in read.lines],
        warranty=_warranty(row, head),
        kept_files=[row.file],
        imported_from=row.pk,
        **{name: head[name] for name in HEAD_FIELDS if name in head},
    )
    row.save(update_fields=["quote"])
    advance(row, S.APPLIED, by=row.created_by, action="quote_import.applied", lines=len(read.lines))


@transaction.atomic
def give_up_import(*, pk: int, error: DomainError | None = None) -> None:
    """The quote could not be recorded: back to the preview, which says why."""
    row = lock(QuoteImport.objects.all(), pk)
    if row.status == S.APPLYING:
        if error is not None:
            row.report["refused"] = error.message.to_json()
            row.save(update_fields=["report"])
        advance(row, S.PREVIEW, by=None, action="quote_import.refused")


@transaction.atomic
def import_again(*, pk: int, upload: File[Any], by: User) -> QuoteImport:
    """A corrected table in place of one that was read: same vendor, and what the form said of the first.

    The first is put aside. Raises NotPermitted, InvalidTransition or InputError.
    """
    row = _own(pk, by)
    made = start_import(
        rfq_id=row.rfq_id, vendor_id=row.vendor_id, upload=upload, by=by, head=row.head,
        warranty=row.warranty,
    )  # fmt: skip
    discard_import(pk=pk, by=by)
    return made


@transaction.atomic
def discard_import(*, pk: int, by: User) -> QuoteImport:
    """Put a table aside without recording it. Raises NotPermitted or InvalidTransition."""
    row = _own(pk, by)
    advance(row, S.DISCARDED, by=by, action="quote_import.discarded")
    return row
