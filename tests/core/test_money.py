from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.money import CurrencyMismatch, ExchangeRate, Money, round_amount, total


def test_two_currencies_do_not_add_up():
    with pytest.raises(CurrencyMismatch):
        Money(Decimal(1), "CNY") + Money(Decimal(1), "USD")


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [
        ("0.005", "CNY", "0.01"),
        ("1.5", "JPY", "2"),
        ("1.0005", "KWD", "1.001"),
        ("-0.005", "USD", "-0.01"),
    ],
)
def test_rounding_is_half_up_at_the_minor_unit(amount, currency, expected):
    assert round_amount(Decimal(amount), currency) == Decimal(expected)


def test_conversion_uses_the_rate_in_either_direction():
    rate = ExchangeRate("USD", "CNY", Decimal("7.1"), date(2026, 1, 1))
    assert Money(Decimal(4000), "USD").convert(rate) == Money(Decimal("28400.00"), "CNY")
    assert Money(Decimal("28400"), "CNY").convert(rate) == Money(Decimal("4000.00"), "USD")


@given(st.lists(st.decimals(-(10**9), 10**9, places=2), max_size=50))
def test_a_total_is_the_sum_of_its_items(amounts):
    assert total((Money(a, "CNY") for a in amounts), "CNY").amount == sum(amounts, Decimal(0))
