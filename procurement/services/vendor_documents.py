"""Papers of vendors: certificates, licences, contracts, and the days they hold until."""

from __future__ import annotations

from datetime import date
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.files import store_upload
from core.messages import msg
from core.models import User
from procurement.models import Vendor, VendorDocument
from procurement.models.vendors import DocumentKind
from procurement.services.moves import need_reason, take, touch


@transaction.atomic
def add_document(
    *,
    vendor_id: int,
    by: User,
    kind: str,
    title: str,
    number: str = "",
    issued_on: date | None = None,
    expires_on: date | None = None,
    file: File[Any] | None = None,
    version: int | None = None,
) -> Vendor:
    """Keep a paper of a vendor. Raises NotPermitted, InvalidTransition (blocked), StaleData or InputError."""
    vendor = take(Vendor.objects.all(), vendor_id, action="edit", by=by, version=version)
    if kind not in DocumentKind.values:
        choices = ", ".join(DocumentKind.values)
        raise InputError(
            "kind", msg("%(value)s is not one of %(choices)s", value=kind, choices=choices),
            value=kind, limit=choices,
        )  # fmt: skip
    text = " ".join(title.split())
    if not text or len(text) > 160:
        raise InputError(
            "title", msg("A title has 1 to 160 characters"), value=len(text), limit=160
        )
    if issued_on is not None and expires_on is not None and expires_on < issued_on:
        raise InputError(
            "expires_on", msg("It cannot run out before it was issued"), value=expires_on,
            limit=issued_on,
        )  # fmt: skip
    document = VendorDocument.objects.create(
        vendor=vendor, kind=kind, title=text, number=number.strip()[:80], issued_on=issued_on,
        expires_on=expires_on, added_by=by,
        file=store_upload(file, by=by) if file is not None else None,
    )  # fmt: skip
    touch(vendor)
    record(
        "vendor.document_added", on=vendor, by=by, title=text, kind=kind, document=document.pk,
        expires_on=expires_on.isoformat() if expires_on else None,
        sha256=document.file.sha256 if document.file else None,
    )  # fmt: skip
    return vendor


@transaction.atomic
def retire_document(*, vendor_id: int, document_id: int, reason: str, by: User) -> Vendor:
    """Take a paper out of use, with a reason; it stays readable.

    Raises NotPermitted, InvalidTransition (out of use already) or InputError.
    """
    vendor = take(Vendor.objects.all(), vendor_id, action="edit", by=by)
    text = need_reason(reason)
    document = vendor.documents.select_for_update().filter(pk=document_id).first()
    if document is None:
        raise InputError("document_id", msg("The vendor has no such document"), value=document_id)
    if document.retired_at is not None:
        raise InvalidTransition(msg("%(title)s is out of use already", title=document.title))
    document.retired_at = timezone.now()
    document.save(update_fields=["retired_at"])
    touch(vendor)
    record(
        "vendor.document_retired", on=vendor, by=by, reason=text, title=document.title,
        document=document.pk,
    )  # fmt: skip
    return vendor
