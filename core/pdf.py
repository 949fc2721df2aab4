"""Documents: a template that extends print.html becomes the bytes of a tagged PDF (PDF/UA-1).

The same input gives the same bytes: dates and identifier come from the caller and the content, never from the clock.
Nothing is fetched from a network: style sheets and images come from the static files, by `static:` addresses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils import timezone, translation
from weasyprint import HTML
from weasyprint import Attachment as EmbeddedFile
from weasyprint.urls import URLFetcher, URLFetcherResponse

from core.models import Organisation
from core.organisation import organisation

CONTENT_TYPES = {".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}


class RefusedAddress(ValueError):
    """A document asked for something that is not part of the product."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file inside the PDF, e.g. the figures as CSV."""

    name: str
    content: bytes
    description: str = ""


class StaticFilesOnly(URLFetcher):  # type: ignore[misc]
    """Serves `static:` from the product's static files and `data:`; refuses every other address."""

    def __init__(self) -> None:
        super().__init__(allowed_protocols={"data"}, allow_redirects=False)

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        if url.startswith("data:"):
            return super().fetch(url, headers)
        scheme, _, name = url.partition(":")
        path = finders.find(name.lstrip("/")) if scheme == "static" else None
        if not path:
            raise RefusedAddress(f"Documents read static files and data only, not {url[:80]}")
        found = Path(path)
        content_type = CONTENT_TYPES.get(found.suffix, "application/octet-stream")
        return URLFetcherResponse(url, found.read_bytes(), {"Content-Type": content_type})


def render_pdf(
    template: str,
    context: Mapping[str, Any],
    language: str,
    *,
    made_at: datetime,
    letterhead: Organisation | None = None,
    attachments: Iterable[Attachment] = (),
    archive: bool = False,
) -> bytes:
    """`template` in `language` as PDF, dated `made_at` (aware), times in the organisation's zone.

    `archive`: PDF/A-3a, which keeps for decades with its files inside; else PDF/UA-1. Both are tagged.

    Raises ValueError for a naive `made_at`, NotSetUp when there is no organisation. Takes seconds and some hundred MB
    for long documents: call it in a task, outside a transaction.
    """
    if timezone.is_naive(made_at):
        raise ValueError("made_at must carry a time zone")
    sender = letterhead or organisation()
    with translation.override(language), timezone.override(sender.zone):
        html = render_to_string(
            template,
            {
                **context,
                "letterhead": sender,
                "made_at": made_at,
                "made_at_iso": made_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            },
        )
    embedded = [
        EmbeddedFile(
            string=file.content,
            name=file.name,
            description=file.description or file.name,
            created=made_at,
            modified=made_at,
        )
        for file in attachments
    ]
    document = HTML(string=html, base_url="static:/", url_fetcher=StaticFilesOnly())
    pdf: bytes = document.write_pdf(
        pdf_variant="pdf/a-3a" if archive else "pdf/ua-1",
        pdf_identifier=hashlib.sha256(html.encode()).hexdigest()[:32].encode(),
        attachments=embedded,
    )
    return pdf
