from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from core.errors import InputError
from core.money import ExchangeRate, Money
from planning.economics import billing
from planning.economics.exchange import RateTable
from planning.economics.types import PricePeriod


def period(start: str, end: str | None, price: str = "1") -> PricePeriod:
    last = None if end is None else date.fromisoformat(end)
    return PricePeriod(date.fromisoformat(start), last, Money(Decimal(price), "USD"))


def test_hours_are_rounded_up_and_a_minimum_counts_at_each_start():
    assert billing.billed_seconds(1.5, 3600) == 7200
    assert billing.billed_seconds(1.5, 1) == 5400
    assert billing.billed_seconds(0.1, 1, 3600, 3) == 3 * 3600


def test_float_noise_does_not_buy_another_hour():
    assert billing.billed_seconds(0.1 * 3 * 10, 3600) == 3 * 3600
    assert billing.billed_seconds(np.nextafter(72.0, 73.0), 3600) == 72 * 3600


def test_commitments_are_renewed_until_they_cover_the_span():
    year = 8760 * 3600
    assert billing.committed_seconds([1.0, 8760.0, 8761.0], 12).tolist() == [year, year, 2 * year]
    assert billing.committed_seconds(100.0, 0) == 0
    assert billing.terms_needed([100.0, 9000.0], [0, 12]).tolist() == [1, 2]


def test_price_on_a_day_and_the_refusals():
    periods = [period("2026-06-01", None, "2"), period("2026-01-01", "2026-06-01", "3")]
    assert billing.price_on(periods, date(2026, 5, 31)).amount == 3
    assert billing.price_on(periods, date(2026, 6, 1)).amount == 2
    with pytest.raises(InputError) as error:
        billing.price_on(periods, date(2025, 1, 1))
    assert error.value.value == date(2025, 1, 1)


@pytest.mark.parametrize(
    "periods",
    [
        [period("2026-01-01", "2026-07-01"), period("2026-06-01", None)],
        [period("2026-01-01", None), period("2026-06-01", None)],
        [period("2026-01-01", "2025-01-01")],
        [period("2026-01-01", None, "-1")],
    ],
)
def test_overlapping_or_broken_price_periods_are_refused(periods):
    with pytest.raises(InputError) as error:
        billing.check_periods(periods)
    assert error.value.field.startswith("price_periods")


def test_tiers_that_end_refuse_what_is_beyond():
    with pytest.raises(InputError):
        billing.tiered_amount(Decimal(11), ((Decimal(10), Decimal(1)),))


def test_the_latest_rate_counts_and_a_missing_one_is_refused():
    table = RateTable(
        (
            ExchangeRate("USD", "CNY", Decimal("7.30"), date(2025, 1, 1)),
            ExchangeRate("USD", "CNY", Decimal("7.15"), date(2026, 11, 1)),
        )
    )
    assert table.unit_price(Money(Decimal("0.0085"), "USD"), "CNY").amount == Decimal("0.060775")
    back = table.unit_price(Money(Decimal("7.15"), "CNY"), "USD")
    assert back.amount == 1
    with pytest.raises(InputError) as error:
        table.unit_price(Money(Decimal(1), "USD"), "EUR")
    assert error.value.field == "exchange_rate"
    assert error.value.value == "USD/EUR"
