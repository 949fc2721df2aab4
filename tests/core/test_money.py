from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.money import (
    CurrencyMismatch,
    ExchangeRate,
    Money,
    check_amount,
    round_amount,
    total,
)


@pytest.mark.parametrize(
    ("amount", "options", "limit"),
    [
        ("0", {"above_zero": True}, "> 0, < 1000000000000"),
        ("-0.01", {}, ">= 0, < 1000000000000"),
        ("1e12", {}, ">= 0, < 1000000000000"),
        ("NaN", {}, ">= 0, < 1000000000000"),
        ("Infinity", {"places": None}, ">= 0, < 1000000000000"),
        ("1.234", {}, "2"),
        ("0.0000001", {"places": 6, "above_zero": True}, "6"),
    ],
)
def test_an_amount_that_cannot_be_is_refused_with_field_value_and_limit(amount, options, limit):
    with pytest.raises(InputError) as caught:
        check_amount("monthly", Decimal(amount), **options)
    assert (caught.value.field, str(caught.value.limit)) == ("monthly", limit)
    words = ("monthly", str(Decimal(amount)), limit.rpartition(" ")[2])
    assert all(part in str(caught.value) for part in words)


def test_an_amount_that_can_be_is_given_back_as_it_is():
    for amount, places in (
        ("0", 2),
        ("1.2300", 2),
        ("999999999999.99", 2),
        ("0.000001", 6),
        ("0.1234567", None),
    ):
        assert check_amount("x", Decimal(amount), places=places) == Decimal(amount)


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
