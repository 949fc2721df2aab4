"""Labels of units as PDF: serial number, model, place, and a QR code that opens the unit's page."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime

import qrcode
import qrcode.image.svg
from django.conf import settings

from core.pdf import render_pdf
from procurement.models import Asset

MAX_LABELS = 500


def qr_address(text: str) -> str:
    """A QR code of `text` as a data address of SVG."""
    code = qrcode.QRCode(border=1, error_correction=qrcode.constants.ERROR_CORRECT_M)
    code.add_data(text)
    image = code.make_image(image_factory=qrcode.image.svg.SvgPathImage)
    return "data:image/svg+xml;base64," + base64.b64encode(image.to_string()).decode()


def render_labels(assets: Iterable[Asset], language: str, *, made_at: datetime) -> bytes:
    """24 labels a page (A4, 70 x 37 mm)."""
    site = settings.SITE_URL.rstrip("/")
    labels = [(asset, qr_address(f"{site}{asset.get_absolute_url()}")) for asset in assets]
    pages = [labels[i : i + 24] for i in range(0, len(labels), 24)]
    return render_pdf("procurement/labels.html", {"pages": pages}, language, made_at=made_at)
