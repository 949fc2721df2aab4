"""Documents: a template that extends print.html becomes the bytes of a tagged PDF (PDF/UA-1).

The same input gives the same bytes: dates and identifier come from the caller and the content, never from the clock.
Nothing is fetched from a network: style sheets and images come from the static files, by `static:` addresses.
"""

from __future__ import annotations

import gc
import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

import cssselect2
import pydyf
import structlog
from defusedxml.ElementTree import fromstring
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils import timezone, translation
from weasyprint import HTML
from weasyprint import Attachment as EmbeddedFile
from weasyprint.urls import URLFetcher, URLFetcherResponse

from core.charts.slim import SVG
from core.models import Organisation
from core.organisation import organisation

log = structlog.get_logger(__name__)

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


class WellFormed(HTML):  # type: ignore[misc]
    """A document whose tree is read already: Expat takes a tenth of the time of an HTML parser written in Python."""

    def __init__(self, root: Element, *, base_url: str, url_fetcher: URLFetcher) -> None:
        self.base_url, self.url_fetcher, self.media_type = base_url, url_fetcher, "print"
        self.wrapper_element = cssselect2.ElementWrapper.from_html_root(root, content_language=None)
        self.etree_element = self.wrapper_element.etree_element


def _document(html: str) -> HTML:
    """`html` ready to be laid out. Our templates are well-formed; what is not (a control character in a name) is read
    as browsers read it, ten times slower, and logged."""
    options: dict[str, Any] = {"base_url": "static:/", "url_fetcher": StaticFilesOnly()}
    try:
        root = fromstring(html)
    except ParseError as error:
        title = html.partition("<title>")[2].partition("</title>")[0]
        log.warning("pdf.not_well_formed", title=title, error=str(error))
        return HTML(string=html, **options)
    # as an HTML parser does: a drawing belongs to SVG, whether it says so or not
    for drawing in list(root.iter("svg")):
        for node in drawing.iter():
            if not node.tag.startswith("{"):
                node.tag = f"{{{SVG}}}{node.tag}"
    return WellFormed(root, **options)


class _Written(pydyf.Object):  # type: ignore[misc]
    """An object of the PDF as the bytes that it will be."""

    def __init__(self, of: pydyf.Object) -> None:
        self.number, self.offset, self.generation, self.free = (
            of.number, of.offset, of.generation, of.free,
        )  # fmt: skip
        self._data: bytes = of.data
        self._compressible: bool = of.compressible

    @property
    def data(self) -> bytes:
        return self._data

    @property
    def compressible(self) -> bool:
        return self._compressible


def _write_once(_document: Any, pdf: pydyf.PDF) -> None:
    """Turn each object into bytes now: the writer asks for them twice, for the file and for its checksum."""
    pdf.objects[:] = [
        _Written(item) if item.free != "f" and item is not pdf.info else item
        for item in pdf.objects
    ]


_rendering = threading.Lock()


@contextmanager
def _alone_without_collections() -> Iterator[None]:
    """One document at a time, and without the garbage collector for its seconds: it walks over millions of live boxes
    again and again, a sixth of the time, and finds next to nothing.

    The collector is the whole process's, so a second thread waits; layout is Python, two at once would gain nothing.
    """
    with _rendering:
        was_on = gc.isenabled()
        try:
            gc.disable()
            yield
        finally:
            if was_on:
                gc.enable()


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
    with _alone_without_collections():
        pdf: bytes = _document(html).write_pdf(
            pdf_variant="pdf/a-3a" if archive else "pdf/ua-1",
            pdf_identifier=hashlib.sha256(html.encode()).hexdigest()[:32].encode(),
            attachments=embedded,
            finisher=_write_once,
        )
    return pdf
