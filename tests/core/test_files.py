"""Uploads are typed by content and served as attachments."""

import contextlib
import os

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction

from core.errors import InputError
from core.files import download, is_intact, safe_name, store_bytes, store_upload, sweep_orphans
from core.messages import msg

pytestmark = pytest.mark.django_db
PDF = b"%PDF-1.7\n%%EOF\n"


def upload(name, content):
    return SimpleUploadedFile(name, content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("drawing.pdf", b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>"),
        ("page.png", b"<!doctype html><script>alert(1)</script>"),
        ("empty.pdf", b""),
        ("program.png", b"\x7fELF\x02\x01\x01\x00\x00"),
    ],
)
def test_what_is_not_a_document_is_refused_whatever_its_name(name, content):
    with pytest.raises(InputError) as caught:
        store_upload(upload(name, content), by=None)
    assert caught.value.field == "file"


def test_too_large_names_the_limit():
    with pytest.raises(InputError) as caught:
        store_upload(upload("big.txt", b"x" * 11), by=None, max_bytes=10)
    assert (caught.value.value, caught.value.limit) == (11, 10)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../x.pdf", "x.pdf"),
        ("C:\\temp\\a.pdf", "a.pdf"),
        ("报价单 2026.pdf", "报价单 2026.pdf"),
        ("..", "file"),
        ("a\x00b\n.txt", "ab.txt"),
    ],
)
def test_names_lose_paths_and_control_characters_and_keep_their_script(given, kept):
    assert safe_name(given) == kept


def test_a_pdf_named_png_is_what_it_is_and_downloads_as_attachment(make_user):
    stored = store_upload(upload("报价.png", PDF), by=make_user())
    response = download(stored)
    assert stored.content_type == "application/pdf"
    assert response["Content-Disposition"].startswith("attachment")
    assert "%E6%8A%A5%E4%BB%B7" in response["Content-Disposition"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert b"".join(response.streaming_content) == PDF


def test_a_changed_byte_on_disk_is_noticed():
    stored = store_upload(upload("log.txt", b"GPU 0: OK\n"), by=None)
    assert is_intact(stored)
    with open(stored.file.path, "wb") as raw:
        raw.write(b"GPU 0: KO\n")
    assert not is_intact(stored)


def test_files_that_no_row_owns_go_after_a_day(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    kept = store_bytes(b"kept", name="a.txt", content_type="text/plain")
    with contextlib.suppress(InputError), transaction.atomic():
        orphan = store_bytes(b"orphan", name="b.txt", content_type="text/plain").file.name
        raise InputError("file", msg("refused"))
    storage = kept.file.storage
    assert storage.exists(orphan)
    assert sweep_orphans() == 0, "it may belong to a transaction that is still open"
    for name in (kept.file.name, orphan):
        os.utime(storage.path(name), (0, 0))
    assert sweep_orphans() == 1
    assert storage.exists(kept.file.name)
    assert not storage.exists(orphan)
