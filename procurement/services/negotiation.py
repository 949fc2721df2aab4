"""Noting what a vendor gave way on, after the opening."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import transaction
from django.db.models import Max

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.money import minor_digits
from core.organisation import local_day, today
from procurement.models import Concession, Rfq
from procurement.models.negotiation import MOST_ROUNDS, Subject
from procurement.services.conflicts import refuse_conflict
from procurement.services.moves import take, touch
from procurement.services.quote_lines import exact
from procurement.states import QuoteStatus


@transaction.atomic
def record_concession(
    *,
    rfq_id: int,
    vendor_id: int,
    subject: str,
    from_value: str,
    to_value: str,
    conceded_by: str,
    agreed_on: date,
    by: User,
    round: int = 1,
    amount: Decimal | str | None = None,
    version: int | None = None,
) -> Rfq:
    """Note one concession of one round; `amount` is what it is worth in the quote's currency, None when not known.

    A quote's binding terms change by a new version of it, never by this. Raises NotPermitted, InvalidTransition (not
    opened, or decided) or InputError.
    """
    rfq = take(Rfq.objects.all(), rfq_id, action="record_concession", by=by, version=version)
    refuse_conflict(rfq, acting=by)
    quote = rfq.quotes.filter(vendor=vendor_id, status=QuoteStatus.SUBMITTED).first()
    if quote is None:
        raise InputError(
            "vendor_id", msg("This vendor has no standing quote here"), value=vendor_id
        )
    if subject not in Subject.values:
        raise InputError(
            "subject",
            msg("%(value)s is not one of %(choices)s", value=subject,
                choices=", ".join(Subject.values)),
            value=subject,
        )  # fmt: skip
    last = rfq.concessions.aggregate(last=Max("round"))["last"] or 0
    limit = min(last + 1, MOST_ROUNDS)
    if not 1 <= round <= limit:
        raise InputError(
            "round", msg("Round %(value)s: rounds go from 1 to %(limit)s here", value=round, limit=limit),
            value=round, limit=limit,
        )  # fmt: skip
    texts = {
        "from_value": (from_value, 200),
        "to_value": (to_value, 200),
        "conceded_by": (conceded_by, 120),
    }
    for field, (text, most) in texts.items():
        if not 1 <= len(text.strip()) <= most:
            raise InputError(
                field, msg("Between 1 and %(limit)s characters", limit=most), value=len(text), limit=most
            )  # fmt: skip
    opened = local_day(rfq.opened_at) if rfq.opened_at else today()
    if not opened <= agreed_on <= today():
        raise InputError(
            "agreed_on",
            msg("The day is between the opening, %(opened)s, and today", opened=opened.isoformat()),
            value=agreed_on, limit=today(),
        )  # fmt: skip
    worth = None
    if amount not in (None, ""):
        worth = exact("amount", amount, digits=minor_digits(quote.currency), line=1)
        if worth == 0:
            raise InputError(
                "amount", msg("Leave the worth empty when it is not known; it is never 0"), value=0
            )
    row = Concession.objects.create(
        rfq=rfq,
        vendor=quote.vendor,
        round=round,
        subject=subject,
        from_value=from_value.strip(),
        to_value=to_value.strip(),
        amount=worth,
        currency=quote.currency,
        conceded_by=conceded_by.strip(),
        agreed_on=agreed_on,
        recorded_by=by,
    )
    touch(rfq)
    # Whoever sees the trail may not read prices: it names vendor, round and subject.
    record(
        "rfq.concession_recorded", on=rfq, by=by, vendor=quote.vendor.name, round=round, subject=subject,
        concession=row.pk,
    )  # fmt: skip
    return rfq
