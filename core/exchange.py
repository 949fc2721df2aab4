"""Dated exchange rates: find the one that holds on a day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db.models import Q

from core.errors import DomainError
from core.messages import msg
from core.models import ExchangeRate as Row
from core.money import ExchangeRate, Money


class MissingRate(DomainError):
    """No rate between two currencies on or before a day. Never replaced by 1."""

    status = 422
    code = "missing_rate"


def rate_on(base: str, quote: str, day: date) -> ExchangeRate:
    """The latest rate on or before `day`, in either direction; 1 only for a currency against itself.

    Raises MissingRate.
    """
    if base == quote:
        return ExchangeRate(base, quote, Decimal(1), day, "identity")
    row = (
        Row.objects.filter(Q(base=base, quote=quote) | Q(base=quote, quote=base), as_of__lte=day)
        .order_by("-as_of", "base")
        .first()
    )
    if row is None:
        raise MissingRate(
            msg(
                "There is no exchange rate between %(base)s and %(quote)s on or before %(day)s",
                base=base,
                quote=quote,
                day=day.isoformat(),
            )
        )
    return ExchangeRate(row.base, row.quote, row.rate, row.as_of, row.source)


def convert(money: Money, currency: str, day: date) -> Money:
    """`money` in `currency` at the rate that holds on `day`. Raises MissingRate."""
    if money.currency == currency:
        return money
    return money.convert(rate_on(money.currency, currency, day))
