"""Documents that a worker draws once: certificates, memos, letters. The first that is kept stays."""

from __future__ import annotations

from typing import Any

from core.audit import record
from core.files import store_bytes
from core.models import StoredFile
from procurement.models import AcceptanceCertificate, AwardDocument, RfqDocument


def keep(
    row: AcceptanceCertificate | AwardDocument | RfqDocument,
    content: bytes,
    *,
    name: str,
    action: str,
    on: Any,
    **facts: Any,
) -> StoredFile:
    """Keep `content` as the file of the locked `row` and note `action` with `facts` on `on`; drawing it again changes
    nothing. The file that stands."""
    if row.file is None:
        row.file = store_bytes(content, name=name, content_type="application/pdf")
        row.save(update_fields=["file"])
        record(action, on=on, by=None, language=row.language, sha256=row.file.sha256, **facts)
    return row.file
