"""Exchange rates: explicit, dated, and refused when missing. A unit price is converted without rounding."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import InputError
from core.messages import msg
from core.money import ExchangeRate, Money
from planning.economics.types import Offer


@dataclass(frozen=True, slots=True)
class RateTable:
    """The rates that one study uses; they are stored with it."""

    rates: tuple[ExchangeRate, ...] = ()

    def find(self, base: str, quote: str) -> ExchangeRate:
        """The rate between `base` and `quote`, either way round; refused when there is none.

        Where several are given for one pair, the latest counts.
        """
        pair = {base, quote}
        found = [rate for rate in self.rates if {rate.base, rate.quote} == pair]
        if not found:
            raise InputError(
                "exchange_rate",
                msg(
                    "There is no exchange rate between %(base)s and %(quote)s",
                    base=base,
                    quote=quote,
                ),
                value=f"{base}/{quote}",
                limit="a dated rate",
            )
        return max(found, key=lambda rate: rate.as_of)

    def unit_price(self, price: Money, currency: str) -> Money:
        """`price` in `currency`, exact and not rounded (a price per GB or second has small digits)."""
        if price.currency == currency:
            return price
        rate = self.find(price.currency, currency)
        if rate.base == price.currency:
            return Money(price.amount * rate.rate, currency)
        return Money(price.amount / rate.rate, currency)

    def offer(self, offer: Offer, currency: str) -> Offer:
        """`offer` with all its prices in `currency`."""
        if offer.price.currency == currency:
            return offer
        upfront = None if offer.upfront is None else self.unit_price(offer.upfront, currency)
        return offer.priced(self.unit_price(offer.price, currency), upfront)
