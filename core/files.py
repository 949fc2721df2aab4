"""Uploads: typed by content, limited in size, hashed, stored under a name of our own."""

from __future__ import annotations

import hashlib
import unicodedata
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage
from django.db import DatabaseError
from django.http import FileResponse, Http404
from django.utils import timezone
from django.utils.http import content_disposition_header

from core.errors import InputError
from core.messages import msg
from core.models import StoredFile, User

# What may be uploaded, found by the first bytes, never by the name. Text is what decodes and has no NUL.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"PK\x03\x04", "application/zip"),  # xlsx, docx and plain archives
    (b"\x1f\x8b", "application/gzip"),
)
TEXT = "text/plain"
SUFFIX = ".bin"  # of every stored file, whatever it holds
DOCUMENT_TYPES = frozenset({"application/pdf", "image/png", "image/jpeg", "application/zip", TEXT})
EVIDENCE_TYPES = frozenset({TEXT, "application/gzip", "application/pdf", "image/png", "image/jpeg"})
MARKUP = (b"<svg", b"<html", b"<!doctype html", b"<script")


def sniff(head: bytes) -> str:
    """Content type from the first bytes; empty when unknown. Markup that a browser would run is named as such."""
    for signature, content_type in SIGNATURES:
        if head.startswith(signature):
            return content_type
    lowered = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if any(mark in lowered[:1024] for mark in MARKUP):
        return "text/html"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return TEXT  # UTF-16 console output
    if b"\0" in head:
        return ""
    return TEXT


def safe_name(name: str) -> str:
    """The last path part of `name`, without control characters, at most 200 characters; keeps any script."""
    base = PurePosixPath(name.replace("\\", "/")).name
    cleaned = "".join(ch for ch in base if unicodedata.category(ch)[0] != "C").strip(" .")
    return cleaned[-200:] or "file"


def check_upload(
    upload: File[Any],
    *,
    allowed: frozenset[str] = DOCUMENT_TYPES,
    max_bytes: int | None = None,
    field: str = "file",
) -> str:
    """The content type of an upload that may be kept. Raises InputError naming field, value and limit."""
    limit = max_bytes or settings.MAX_UPLOAD_BYTES
    size = upload.size or 0
    if size == 0:
        raise InputError(
            field, msg("The file %(name)s is empty", name=upload.name or ""), value=0, limit=1
        )
    if size > limit:
        raise InputError(
            field,
            msg(
                "The file %(name)s has %(size)s bytes; the limit is %(limit)s",
                name=upload.name or "",
                size=size,
                limit=limit,
            ),
            value=size,
            limit=limit,
        )
    head = upload.read(4096)
    upload.seek(0)
    content_type = sniff(head)
    if content_type not in allowed:
        raise InputError(
            field,
            msg(
                "The file %(name)s is of type %(type)s, which is not accepted here",
                name=upload.name or "",
                type=content_type or "?",
            ),
            value=content_type,
            limit=", ".join(sorted(allowed)),
        )
    return content_type


def store_upload(
    upload: File[Any],
    *,
    by: User | None,
    allowed: frozenset[str] = DOCUMENT_TYPES,
    max_bytes: int | None = None,
    field: str = "file",
) -> StoredFile:
    """Check and keep an uploaded file. Raises InputError naming field, value and limit."""
    content_type = check_upload(upload, allowed=allowed, max_bytes=max_bytes, field=field)
    stored = StoredFile(
        name=safe_name(upload.name or "file"),
        content_type=content_type,
        size=upload.size or 0,
        sha256=sha256_of(upload),
        uploaded_by=by,
    )
    return _keep(stored, upload)


def sha256_of(upload: File[Any]) -> str:
    """Hexadecimal SHA-256 of an upload, which stands at its beginning again."""
    digest = hashlib.sha256()
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()


def store_bytes(
    content: bytes, *, name: str, content_type: str, by: User | None = None
) -> StoredFile:
    """Keep a file that the product made (a PDF, an export)."""
    stored = StoredFile(
        name=safe_name(name),
        content_type=content_type,
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        uploaded_by=by,
    )
    return _keep(stored, ContentFile(content))


def _keep(stored: StoredFile, content: File[Any]) -> StoredFile:
    """Bytes and row, or neither: what a full disk cut short takes no room."""
    stored.file.save(f"{uuid.uuid4().hex}{SUFFIX}", content, save=False)
    try:
        stored.save()
    except DatabaseError:
        stored.file.delete(save=False)
        raise
    return stored


def sweep_orphans() -> int:
    """Delete files that no row owns: what a refused upload left behind. Returns how many.

    Files younger than a day may belong to a transaction that is still open.
    """
    storage = StoredFile._meta.get_field("file").storage
    oldest = timezone.now() - timedelta(days=1)
    gone = 0
    for folder in _folders(storage, ""):
        names = [f"{folder}/{name}" if folder else name for name in storage.listdir(folder)[1]]
        owned = set(StoredFile.objects.filter(file__in=names).values_list("file", flat=True))
        for name in names:
            ours = name.endswith(SUFFIX) and name not in owned
            if ours and storage.get_modified_time(name) < oldest:
                storage.delete(name)
                gone += 1
    return gone


def _folders(storage: Storage, folder: str) -> Iterator[str]:
    yield folder
    for name in storage.listdir(folder)[0]:
        yield from _folders(storage, f"{folder}/{name}" if folder else name)


def is_intact(stored: StoredFile) -> bool:
    """Whether the bytes on disk still have the hash recorded at upload."""
    digest = hashlib.sha256()
    with stored.file.open("rb") as content:
        for chunk in iter(lambda: content.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest() == stored.sha256


def download(stored: StoredFile) -> FileResponse:
    """An attachment that no browser renders. The caller has checked that the reader may have it."""
    response = FileResponse(stored.file.open("rb"), content_type="application/octet-stream")
    if stored.content_type == "application/pdf":
        response["Content-Type"] = "application/pdf"
    response["Content-Disposition"] = content_disposition_header(True, stored.name) or "attachment"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def download_made(stored: StoredFile | None) -> FileResponse:
    """`download` of a file that a task makes; Http404 until it is there."""
    if stored is None:
        raise Http404
    return download(stored)
