"""Quotations of lessors: added, never changed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import IntegrityError, transaction

from catalog import changes, policies
from catalog.models import Confidence, LeaseOffer, ServerPlatform
from catalog.models.leases import MOST_MONTHS
from core.audit import record
from core.errors import InputError
from core.messages import Message, msg
from core.models import User
from core.money import CURRENCIES, check_amount
from core.organisation import today
from core.policies import require


@transaction.atomic
def add_lease(
    *,
    platform: str,
    lessor: str,
    monthly: Decimal,
    term_months: int,
    currency: str,
    source: str,
    by: User,
    deposit: Decimal | None = None,
    buyout: Decimal | None = None,
    as_of: date | None = None,
    valid_until: date | None = None,
    source_url: str = "",
    notes: str = "",
) -> LeaseOffer:
    """Add what a lessor asks for one server (its slug) a month. Deposit and buy-out: None is not quoted.

    Raises NotPermitted, or InputError at the field: an unknown server or currency, a rate not above 0, a negative
    deposit or buy-out, a term outside 1 to 120 months, a day to come, an end before it, or the same quotation again.
    """
    require(policies.can_import_prices(by))
    found = ServerPlatform.objects.filter(slug=platform).first()
    if found is None:
        raise InputError(
            "platform",
            msg("%(value)s is no server of the catalogue", value=platform),
            value=platform,
        )
    if currency not in CURRENCIES:
        raise _refused(
            "currency", msg("%(value)s is not a currency used here", value=currency), currency
        )
    for name, amount, least in (
        ("monthly", monthly, True),
        ("deposit", deposit, False),
        ("buyout", buyout, False),
    ):
        if amount is not None:
            check_amount(name, amount, above_zero=least)
    if not 1 <= term_months <= MOST_MONTHS:
        limit = f"1 … {MOST_MONTHS}"
        raise InputError(
            "term_months",
            msg("%(field)s is %(value)s; it must be within %(limit)s", field="term_months", value=term_months,
                limit=limit),
            value=term_months, limit=limit,
        )  # fmt: skip
    for name, text in (("lessor", lessor), ("source", source)):
        if not text.strip():
            raise _refused(name, msg("%(field)s is missing", field=name), text)
    day = as_of or today()
    if day > today():
        raise _refused(
            "as_of", msg("The quotation is of %(value)s, a day to come", value=day.isoformat()), day
        )
    if valid_until is not None and valid_until < day:
        raise InputError(
            "valid_until",
            msg("It ends on %(end)s, before the day it was made, %(day)s", end=valid_until.isoformat(),
                day=day.isoformat()),
            value=valid_until, limit=day,
        )  # fmt: skip
    try:
        with transaction.atomic():
            row = LeaseOffer.objects.create(
                platform=found, lessor=lessor.strip(), monthly=monthly, term_months=term_months, deposit=deposit,
                buyout=buyout, currency=currency, as_of=day, valid_until=valid_until, source=source.strip(),
                source_url=source_url, notes=notes.strip(), confidence=Confidence.READ,
            )  # fmt: skip
    except IntegrityError as error:
        raise _refused("source", msg("This quotation is held already"), source) from error
    record(
        "lease.added",
        on=row,
        by=by,
        monthly=str(monthly),
        currency=currency,
        months=term_months,
        source=row.source,
    )
    changes.tell()
    return row


def _refused(name: str, message: Message, value: object) -> InputError:
    return InputError(name, message, value=value)
