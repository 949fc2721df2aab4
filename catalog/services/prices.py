"""Bring in prices: one at a time, or a file that is shown row by row before it is applied."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django.core.files.base import File
from django.db import IntegrityError, transaction

from catalog import changes, policies
from catalog.models import CloudOffer, OfferPrice, PriceImport, PriceRecord
from catalog.services.price_rows import ADD, COLUMNS, REFUSED, UNCHANGED, Fate, plan
from core.audit import record
from core.errors import InputError, StaleData
from core.files import TEXT, check_upload, store_upload
from core.imports import ENCODINGS, MAX_BYTES, EncodingNeeded, Preview, Row, Table, read_table
from core.messages import msg
from core.models import User
from core.organisation import today
from core.policies import require
from core.stale import check_version
from core.transitions import advance, lock

ACCEPTED = frozenset({TEXT, "application/zip"})


def start_import(*, target: str, upload: File[Any], encoding: str = "", by: User) -> PriceImport:
    """Keep an uploaded price file for preview. Raises NotPermitted or InputError; nothing is priced yet.

    The file is read before the transaction: a large one must not keep everybody else from writing.
    """
    require(policies.can_import_prices(by))
    if target not in PriceImport.Target.values:
        raise InputError(
            "target", msg("%(value)s is no kind of price file", value=target), value=target
        )
    check_upload(upload, allowed=ACCEPTED, max_bytes=MAX_BYTES)
    row = PriceImport(target=target, encoding=encoding, created_by=by)
    with contextlib.suppress(EncodingNeeded):
        table = _table(row, upload.read())
        row.encoding, row.delimiter = table.encoding, table.delimiter
    upload.seek(0)
    with transaction.atomic():
        row.file = store_upload(upload, by=by, allowed=ACCEPTED, max_bytes=MAX_BYTES)
        row.save()
        record("price_import.started", on=row, by=by, target=target, sha256=row.file.sha256)
    return row


@transaction.atomic
def choose_encoding(*, pk: int, encoding: str, by: User) -> PriceImport:
    """Say how the file is to be read. Raises NotPermitted or InputError when it does not read so."""
    require(policies.can_import_prices(by))
    row = lock(PriceImport.objects.all(), pk)
    if encoding not in ENCODINGS:
        raise InputError("encoding", msg("Choose one of the encodings offered"), value=encoding)
    row.encoding, row.delimiter = encoding, ""
    table = _read(row)
    row.encoding, row.delimiter = table.encoding, table.delimiter
    row.save(update_fields=["encoding", "delimiter"])
    return row


def preview(row: PriceImport) -> Preview[Fate]:
    """The fate of every row if the import were applied now."""
    try:
        table = _read(row)
    except EncodingNeeded as needed:
        return Preview([], {}, choices=needed.choices)
    fates = plan(row.target, table.rows, today=today())
    return Preview(fates, _counts(fates), table.unknown_columns)


@transaction.atomic
def apply_import(*, pk: int, by: User, seen: int | None = None) -> PriceImport:
    """Add every price that is new; refused rows are left out and counted. Once only.

    Raises NotPermitted, InvalidTransition (applied before), StaleData (a concurrent import was faster).
    """
    require(policies.can_import_prices(by))
    row = lock(PriceImport.objects.select_related("file"), pk)
    check_version(row, seen)
    shown = preview(row)
    if shown.choices is not None:
        raise InputError("encoding", msg("Choose the encoding first"))
    _save(shown.fates)
    changes.tell()
    row.counts = shown.counts
    row.save(update_fields=["counts"])
    advance(
        row, PriceImport.Status.APPLIED, by=by, action="price_import.applied", rows=shown.counts
    )
    return row


@transaction.atomic
def discard_import(*, pk: int, by: User) -> PriceImport:
    """Put an import aside without using it. Raises NotPermitted or InvalidTransition."""
    require(policies.can_import_prices(by))
    row = lock(PriceImport.objects.all(), pk)
    advance(row, PriceImport.Status.DISCARDED, by=by, action="price_import.discarded")
    return row


@transaction.atomic
def add_price(
    *, target: str, cells: Mapping[str, str], by: User
) -> tuple[OfferPrice | PriceRecord | None, bool]:
    """Add one price given as the cells of a row. (price, True), or (None, False) when it is held already.

    Raises NotPermitted, or InputError for what a file's row would be refused for.
    """
    require(policies.can_import_prices(by))
    (fate,) = plan(target, [Row(1, cells)], today=today())
    if fate.fate == REFUSED:
        raise InputError("price", fate.message)
    if fate.fate == UNCHANGED:
        return None, False
    _save([fate])
    changes.tell()
    record("price.added", on=fate.price, by=by, source=fate.price.source)
    return fate.price, True


def _read(row: PriceImport) -> Table:
    with row.file.file.open("rb") as content:
        return _table(row, content.read())


def _table(row: PriceImport, content: bytes) -> Table:
    columns, required = COLUMNS[PriceImport.Target(row.target)]
    return read_table(
        content,
        columns=columns,
        required=required,
        encoding="" if row.encoding == "xlsx" else row.encoding,
        delimiter=row.delimiter,
    )


def _counts(fates: list[Fate]) -> dict[str, int]:
    counted = Counter(fate.fate for fate in fates)
    return {name: counted[name] for name in (ADD, UNCHANGED, REFUSED)}


def _save(fates: list[Fate]) -> None:
    """Insert what is new: offers first, once each, then their prices."""
    prices = [fate.price for fate in fates if fate.fate == ADD]
    offers: dict[int, CloudOffer] = {}
    for fate in fates:
        if fate.fate == ADD and fate.offer is not None and fate.offer.pk is None:
            offers[id(fate.offer)] = fate.offer
    try:
        with transaction.atomic():
            for offer in offers.values():
                offer.save()
            for price in prices:
                if isinstance(price, OfferPrice):
                    price.offer_id = price.offer.pk
            OfferPrice.objects.bulk_create(
                [price for price in prices if isinstance(price, OfferPrice)], batch_size=500
            )
            PriceRecord.objects.bulk_create(
                [price for price in prices if isinstance(price, PriceRecord)], batch_size=500
            )
    except IntegrityError as error:
        raise StaleData(msg("Someone added the same prices just now. Look again.")) from error
