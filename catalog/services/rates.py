"""Dated exchange rates: finance adds one; none is ever changed."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import IntegrityError, transaction
from django.db.models import Q

from catalog import changes, policies
from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import ExchangeRate, User
from core.money import CURRENCIES
from core.organisation import today
from core.policies import require

PLACES = 8
LARGEST = Decimal(10) ** 10


@transaction.atomic
def add_rate(
    *, base: str, quote: str, rate: Decimal, as_of: date, source: str, by: User
) -> ExchangeRate:
    """One `base` costs `rate` of `quote` on `as_of`. Holds from that day until a later row.

    Raises NotPermitted, or InputError: unknown or equal currencies, a rate that cannot be, a day to come, no source,
    or a day that has a rate for the pair already (in either direction).
    """
    require(policies.can_add_rate(by))
    for field, code in (("base", base), ("quote", quote)):
        if code not in CURRENCIES:
            raise InputError(
                field, msg("%(value)s is not a currency used here", value=code), value=code
            )
    if base == quote:
        raise InputError("quote", msg("An exchange rate needs two currencies"), value=quote)
    exponent = rate.as_tuple().exponent
    if not isinstance(exponent, int) or not 0 < rate < LARGEST:
        raise InputError(
            "rate",
            msg("An exchange rate must be above 0, got %(value)s", value=str(rate)),
            value=rate,
            limit="> 0",
        )
    if -exponent > PLACES:
        raise InputError(
            "rate",
            msg("The rate has more than %(limit)s decimal places", limit=PLACES),
            value=rate,
            limit=PLACES,
        )
    if as_of > today():
        raise InputError(
            "as_of",
            msg("The rate is of %(value)s, a day to come", value=as_of.isoformat()),
            value=as_of,
            limit=today(),
        )
    if not source.strip():
        raise InputError("source", msg("Say where the rate comes from"))
    held = ExchangeRate.objects.filter(
        Q(base=base, quote=quote) | Q(base=quote, quote=base), as_of=as_of
    ).first()
    if held is not None:
        raise InputError(
            "as_of",
            msg(
                "%(rate)s is held for this day already; rates are never overwritten",
                rate=str(held),
            ),
            value=as_of,
        )
    try:
        with transaction.atomic():
            row = ExchangeRate.objects.create(
                base=base, quote=quote, rate=rate, as_of=as_of, source=source.strip()
            )
    except IntegrityError as error:
        raise InputError("as_of", msg("Someone added a rate for this day just now")) from error
    record("exchange_rate.added", on=row, by=by, rate=str(rate), as_of=as_of.isoformat())
    changes.tell()
    return row
