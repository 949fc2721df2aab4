"""What a vendor does with its key: read what is asked, submit, revise and withdraw its own quote. Nothing else."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.messages import msg
from core.models import User
from core.transitions import lock
from procurement.models import Quote, Rfq, RfqInvitation, Vendor, VendorToken
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.quotes import keep_quote, require_active
from procurement.states import QuoteStatus, RfqStatus

LATE_WINDOW = timedelta(
    hours=24
)  # a bid that comes so soon after the deadline is kept and marked late
MAX_FILES = 20


class KeyEnded(DomainError):
    """The key is known and no longer opens anything."""

    status = 403
    code = "key_ended"


@transaction.atomic
def issue_token(*, rfq_id: int, vendor_id: int, by: User) -> str:
    """A new key for an invited vendor, returned this once; the one before stops working.

    Raises NotPermitted, InvalidTransition (not open, past the deadline, vendor blocked) or InputError.
    """
    rfq: Rfq = take(Rfq.objects.all(), rfq_id, action="let_in", by=by)
    invitation = _invitation(rfq, vendor_id)
    require_active(invitation.vendor)
    if rfq.is_due:
        raise InvalidTransition(msg("The deadline has passed: a key would open nothing"))
    _revoke(invitation)
    token = secrets.token_urlsafe(32)
    VendorToken.objects.create(
        invitation=invitation, token_hash=VendorToken.hash_of(token), issued_by=by
    )
    touch(rfq)
    record("rfq.vendor_key_issued", on=rfq, by=by, vendor=invitation.vendor.name)
    return token


@transaction.atomic
def revoke_token(*, rfq_id: int, vendor_id: int, by: User) -> None:
    """Take a vendor's key away. Raises NotPermitted, InvalidTransition or InputError (there is none)."""
    rfq: Rfq = take(Rfq.objects.all(), rfq_id, action="let_in", by=by)
    invitation = _invitation(rfq, vendor_id)
    if not _revoke(invitation):
        raise InputError("vendor_id", msg("This vendor has no key"), value=vendor_id)
    touch(rfq)
    record("rfq.vendor_key_revoked", on=rfq, by=by, vendor=invitation.vendor.name)


def _invitation(rfq: Rfq, vendor_id: int) -> RfqInvitation:
    found = rfq.invitations.select_related("vendor").filter(vendor=vendor_id).first()
    if found is None:
        raise InputError("vendor_id", msg("This vendor was not invited"), value=vendor_id)
    return found


def _revoke(invitation: RfqInvitation) -> int:
    return invitation.tokens.filter(revoked_at=None).update(revoked_at=timezone.now())


def token_of(text: str) -> VendorToken | None:
    """The row of a key that was not revoked; None for any other text."""
    if not text:
        return None
    return (
        VendorToken.objects.filter(token_hash=VendorToken.hash_of(text), revoked_at=None)
        .select_related("invitation__rfq", "invitation__vendor")
        .first()
    )


def require_open(token: VendorToken, *, late: timedelta = timedelta(0)) -> None:
    """Raise KeyEnded unless the RFQ takes quotes now (or took them until `late` ago) from this vendor."""
    rfq, vendor = token.invitation.rfq, token.invitation.vendor
    ended = timezone.now() >= token.ends_at + late
    if ended or rfq.status == RfqStatus.CANCELLED or (not late and rfq.status != RfqStatus.OPEN):
        raise KeyEnded(
            msg(
                "%(rfq)s no longer takes quotes: this key has ended with its deadline",
                rfq=rfq.number,
            )
        )
    if vendor.status != vendor.Status.ACTIVE:
        # The reason is for those who keep the register.
        raise KeyEnded(msg("This key has ended"))


def note_use(token: VendorToken) -> None:
    """When it was last used; not more often than once a minute, and never in a way of its request."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > timedelta(minutes=1):
        VendorToken.objects.filter(pk=token.pk).update(last_used_at=now)


def own_quotes(token: VendorToken) -> Any:
    """Every version of the vendor's own quote on its RFQ."""
    return Quote.objects.filter(
        rfq=token.invitation.rfq_id, vendor=token.invitation.vendor_id
    ).order_by("-revision")


def _take_rfq(token: VendorToken, *, late: timedelta = timedelta(0)) -> Rfq:
    """The key's RFQ, locked; then the key as it stands now is asked again: it may have been taken away, or the vendor
    blocked, between the log-in and the lock. Raises KeyEnded.
    """
    rfq: Rfq = lock(Rfq.objects.all(), token.invitation.rfq_id)
    # A vendor is blocked under a lock of its own, not under the RFQ's.
    lock(Vendor.objects.all(), token.invitation.vendor_id)
    now = (
        VendorToken.objects.filter(pk=token.pk, revoked_at=None)
        .select_related("invitation__rfq", "invitation__vendor")
        .first()
    )
    if now is None:
        raise KeyEnded(msg("This key has ended"))
    require_open(now, late=late)
    token.invitation = now.invitation
    return rfq


@transaction.atomic
def submit_quote(*, token: VendorToken, files: Sequence[File[Any]] = (), **offer: Any) -> Quote:
    """The vendor's quote; a standing one is superseded. One that comes within a day of the deadline is kept as late.

    `offer` is what `keep_quote` takes. Raises KeyEnded or InputError naming the line.
    """
    rfq = _take_rfq(token, late=LATE_WINDOW)
    if len(files) > MAX_FILES:
        raise InputError(
            "files", msg("A quote has at most %(limit)s files", limit=MAX_FILES),
            value=len(files), limit=MAX_FILES,
        )  # fmt: skip
    return keep_quote(rfq, token.invitation.vendor, by=None, files=files, **offer)


@transaction.atomic
def withdraw_own(*, token: VendorToken, reason: str) -> Quote:
    """The vendor takes its standing quote back, before the deadline.

    Raises KeyEnded, InvalidTransition (there is none) or InputError (no reason).
    """
    rfq = _take_rfq(token)
    text = need_reason(reason)
    standing: Quote | None = own_quotes(token).filter(status=QuoteStatus.SUBMITTED).first()
    if standing is None:
        raise InvalidTransition(msg("There is no quote to withdraw"))
    standing.reason = text
    standing.save(update_fields=["reason"])
    move(standing, QuoteStatus.WITHDRAWN, by=None, action="quote.withdrawn_by_vendor", reason=text)
    touch(rfq)
    return standing
