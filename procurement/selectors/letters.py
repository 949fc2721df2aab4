"""Letters of an award to vendors that were not chosen: to whom they go, and how far they are on their way."""

from __future__ import annotations

from dataclasses import dataclass

from core.models import OutsideMail
from core.outbox import posted
from procurement.models import Award, AwardDocument, Vendor
from procurement.models.awards import DocumentKind

SENT = "award.letter_sent"


@dataclass(frozen=True, slots=True)
class Sending:
    """One letter, and how far it is on its way."""

    document: AwardDocument
    vendor: Vendor
    address: str  # "" when no contact of the vendor has one
    mail: OutsideMail | None  # None: not sent yet

    @property
    def can_go(self) -> bool:
        return self.mail is None and bool(self.address) and self.document.file is not None


def sendings(award: Award) -> list[Sending]:
    """The letters of an award by vendor, in a fixed number of queries."""
    rows = (
        award.documents.filter(kind=DocumentKind.REGRET)
        .select_related("file", "quote__vendor")
        .prefetch_related("quote__vendor__contacts")
        .order_by("quote__vendor__name")
    )
    mails = posted(SENT, on=award)
    found = []
    for row in rows:
        row.award = award
        if row.quote is None:
            continue
        vendor = row.quote.vendor
        addresses = [contact.email for contact in vendor.contacts.all() if contact.email]
        found.append(
            Sending(row, vendor, addresses[0] if addresses else "", mails.get(recipient(vendor)))
        )
    return found


def recipient(vendor: Vendor) -> str:
    """Under which name a vendor stands in the outbox: once, whatever its address."""
    return f"vendor:{vendor.pk}"
