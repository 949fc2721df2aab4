"""Money: an exact amount and its currency, always together. Pure: standard library only.

Amounts are rounded once, at the line total, half up, to the currency's minor unit. Adding two currencies raises;
conversion takes an explicit, dated rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

from core.errors import DomainError, InputError
from core.messages import msg

# Minor-unit digits that differ from two (ISO 4217).
MINOR_DIGITS: dict[str, int] = {
    "JPY": 0,
    "KRW": 0,
    "VND": 0,
    "CLP": 0,
    "ISK": 0,
    "KWD": 3,
    "BHD": 3,
    "OMR": 3,
    "JOD": 3,
    "TND": 3,
}
CURRENCIES: tuple[str, ...] = (
    "CNY", "USD", "EUR", "JPY", "GBP", "HKD", "TWD", "KRW", "SGD", "CHF", "AUD", "CAD", "INR",
    "KWD", "AED", "SEK", "NOK", "DKK",
)  # fmt: skip


def trimmed(value: Decimal) -> Decimal:
    """`value` without the zeros behind its point, and never in powers of ten: 10, where normalize() writes 1E+1."""
    return Decimal(f"{value.normalize():f}")


def minor_digits(currency: str) -> int:
    """Digits after the point in which `currency` is paid."""
    return MINOR_DIGITS.get(currency, 2)


@lru_cache(maxsize=64)
def minor_unit(currency: str) -> Decimal:
    """The smallest amount that can be paid in `currency`."""
    return Decimal(1).scaleb(-minor_digits(currency))


def round_amount(amount: Decimal, currency: str) -> Decimal:
    """`amount` at the currency's minor unit, half up."""
    return amount.quantize(minor_unit(currency), rounding=ROUND_HALF_UP)


LARGEST_AMOUNT = Decimal(1_000_000_000_000)  # no price or amount that a person gives reaches it


def check_amount(
    field: str, amount: Decimal, *, above_zero: bool = False, places: int | None = 2
) -> Decimal:
    """`amount` as given: from 0 (or above it) to below LARGEST_AMOUNT, with at most `places` decimals (None: any).

    Raises InputError naming field, value and limit; nothing is rounded in silence.
    """
    if not amount.is_finite() or not 0 <= amount < LARGEST_AMOUNT or (above_zero and amount == 0):
        words = {"field": field, "value": str(amount), "limit": str(LARGEST_AMOUNT)}
        raise InputError(
            field,
            msg("%(field)s is %(value)s; it must be above 0 and below %(limit)s", **words)
            if above_zero
            else msg("%(field)s is %(value)s; it must be 0 or more and below %(limit)s", **words),
            value=amount,
            limit=f"{'>' if above_zero else '>='} 0, < {LARGEST_AMOUNT}",
        )
    exponent = amount.normalize().as_tuple().exponent
    if places is not None and isinstance(exponent, int) and -exponent > places:
        raise InputError(
            field,
            msg("%(field)s is %(value)s; it takes at most %(limit)s decimal places", field=field,
                value=str(amount), limit=places),
            value=amount, limit=places,
        )  # fmt: skip
    return amount


class CurrencyMismatch(DomainError):
    """Two currencies met without a rate."""

    code = "currency_mismatch"


WHOLE_FROM = 1000  # an estimated amount from here on is said in whole units


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """One `base` costs `rate` of `quote` on `as_of`."""

    base: str
    quote: str
    rate: Decimal
    as_of: date
    source: str = ""

    def __post_init__(self) -> None:
        if self.rate <= 0:
            raise InputError(
                "rate",
                msg("An exchange rate must be above 0, got %(value)s", value=str(self.rate)),
                value=self.rate,
                limit="> 0",
            )


@dataclass(frozen=True, slots=True, order=False)
class Money:
    """An exact amount in one currency."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        if not isinstance(self.amount, Decimal):
            raise TypeError("Money takes a Decimal")
        if len(self.currency) != 3 or not self.currency.isupper():
            raise InputError(
                "currency",
                msg("%(value)s is not an ISO 4217 currency code", value=self.currency),
                value=self.currency,
            )

    def _check(self, other: Money) -> None:
        if self.currency != other.currency:
            raise CurrencyMismatch(
                msg(
                    "%(left)s and %(right)s cannot be added without an exchange rate",
                    left=self.currency,
                    right=other.currency,
                )
            )

    def __add__(self, other: Money) -> Money:
        self._check(other)
        return Money(self.amount + other.amount, self.currency)

    def __sub__(self, other: Money) -> Money:
        self._check(other)
        return Money(self.amount - other.amount, self.currency)

    def __neg__(self) -> Money:
        return Money(-self.amount, self.currency)

    def __mul__(self, factor: Decimal | int) -> Money:
        return Money(self.amount * factor, self.currency)

    def __lt__(self, other: Money) -> bool:
        self._check(other)
        return self.amount < other.amount

    def __le__(self, other: Money) -> bool:
        self._check(other)
        return self.amount <= other.amount

    def rounded(self) -> Money:
        """At the currency's minor unit, half up."""
        return Money(round_amount(self.amount, self.currency), self.currency)

    def convert(self, rate: ExchangeRate) -> Money:
        """In the rate's other currency, rounded once."""
        if rate.base == self.currency:
            return Money(self.amount * rate.rate, rate.quote).rounded()
        if rate.quote == self.currency:
            return Money(self.amount / rate.rate, rate.base).rounded()
        raise CurrencyMismatch(
            msg(
                "No rate from %(currency)s: the rate given is %(base)s/%(quote)s",
                currency=self.currency,
                base=rate.base,
                quote=rate.quote,
            )
        )

    def __str__(self) -> str:
        return f"{self.rounded().amount:,} {self.currency}"

    def about(self) -> str:
        """An estimated amount: from a thousand on in whole units, for nobody knows its hundredths."""
        if abs(self.amount) < WHOLE_FROM:
            return str(self)
        return f"{self.amount.quantize(Decimal(1)):,} {self.currency}"


def total(items: Iterable[Money], currency: str) -> Money:
    """Sum of `items`, all in `currency`; zero of that currency when there are none."""
    result = Money(Decimal(0), currency)
    for item in items:
        result = result + item
    return result


def money_json(value: Money | None) -> dict[str, str] | None:
    """An amount and its currency, as strings."""
    return None if value is None else {"amount": str(value.amount), "currency": value.currency}
