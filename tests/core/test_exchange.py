from datetime import date
from decimal import Decimal

import pytest

from core.exchange import MissingRate, convert, rate_on
from core.models import ExchangeRate
from core.money import Money

pytestmark = pytest.mark.django_db


def test_the_latest_rate_on_or_before_the_day_holds():
    for day, rate in ((date(2026, 1, 1), "7.0"), (date(2026, 6, 1), "7.2")):
        ExchangeRate.objects.create(
            base="USD", quote="CNY", rate=Decimal(rate), as_of=day, source="test"
        )
    assert rate_on("USD", "CNY", date(2026, 5, 31)).rate == Decimal("7.0")
    assert rate_on("CNY", "USD", date(2026, 6, 1)).rate == Decimal("7.2")
    assert convert(Money(Decimal(100), "USD"), "CNY", date(2026, 6, 2)) == Money(
        Decimal("720.00"), "CNY"
    )


def test_a_missing_rate_is_an_error_never_one():
    with pytest.raises(MissingRate) as caught:
        convert(Money(Decimal(1), "EUR"), "CNY", date(2026, 1, 1))
    assert caught.value.message.params == {"base": "EUR", "quote": "CNY", "day": "2026-01-01"}
