from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.money import ExchangeRate, Money
from planning.economics import exact, pricing
from planning.economics.exchange import RateTable
from planning.economics.types import BillingUnit, Offer, PaymentMode

RATES = RateTable((ExchangeRate("USD", "CNY", Decimal("7.15"), date(2026, 11, 1)),))


def offer(price: str = "2.00", mode: PaymentMode = PaymentMode.ON_DEMAND, **other) -> Offer:
    values = {
        "provider": "aws",
        "region": "us-east-1",
        "instance": "p5.48xlarge",
        "accelerator": "h100",
        "accelerators": 8,
        "as_of": date(2026, 11, 1),
    }
    return Offer(price=Money(Decimal(price), "USD"), mode=mode, **{**values, **other})


def test_whole_instances_are_paid_and_lines_add_up():
    bill = exact.charge(offer("55.04", tax_rate=Decimal("0.06")), accelerators=12, hours=72)
    assert bill.amount("usage").amount == Decimal("7925.76")  # two instances
    assert bill.amount("tax").amount == Decimal("475.55")
    assert bill.total.amount == sum(line.amount.amount for line in bill.lines) == Decimal("8401.31")
    assert bill.before_tax.amount == Decimal("7925.76")


def test_a_commitment_is_paid_in_full_and_its_idle_part_is_a_line():
    reserved = offer("1", PaymentMode.RESERVED_1Y, commitment_months=12)
    bill = exact.charge(reserved, accelerators=8, hours=760)
    assert bill.amount("usage").amount == 760
    assert bill.amount("commitment_unused").amount == 8000
    upfront = offer(
        "0", PaymentMode.RESERVED_1Y, commitment_months=12, upfront=Money(Decimal(5000), "USD")
    )
    assert exact.charge(upfront, accelerators=16, hours=9000).total.amount == 20_000


def test_money_keeps_the_decimal_that_was_meant():
    assert exact.times(Money(Decimal("0.1"), "USD"), 0.1 * 3).amount == Decimal("0.03")
    assert exact.times(Money(Decimal("1.005"), "USD"), 1.0).amount == Decimal("1.01")


offers = st.builds(
    lambda price, cards, unit, minimum, months, upfront, tax: offer(
        str(price),
        accelerators=cards,
        billing_unit=unit,
        minimum_seconds=minimum,
        commitment_months=months,
        upfront=None if upfront is None else Money(upfront, "USD"),
        tax_rate=tax,
    ),
    price=st.decimals("0", "200", places=4),
    cards=st.sampled_from([1, 2, 4, 8, 72]),
    unit=st.sampled_from(list(BillingUnit)),
    minimum=st.sampled_from([0, 60, 3600, 86_400]),
    months=st.sampled_from([0, 0, 1, 12, 36]),
    upfront=st.none() | st.decimals("0", "100000", places=2),
    tax=st.sampled_from([Decimal("0"), Decimal("0.06"), Decimal("0.13"), Decimal("0.0875")]),
)


@given(
    offers,
    st.integers(1, 2048),
    st.floats(0, 20_000, allow_nan=False),
    st.integers(1, 50),
    st.sampled_from(["USD", "CNY"]),
)
def test_float_search_and_exact_money_agree_to_the_cent(one, cards, hours, starts, currency):
    table = pricing.price_table([one], currency, RATES)
    vector = pricing.price_candidates(table, 0, cards, hours, starts=starts)
    bill = exact.charge(table.offers[0], accelerators=cards, hours=hours, starts=starts)
    assert round(float(vector.total) * 100) == int(bill.total.amount * 100)
    for name in ("usage", "commitment_unused", "upfront", "tax"):
        assert round(float(getattr(vector, name)) * 100) == int(bill.amount(name).amount * 100)


@given(offers, st.integers(1, 512), st.floats(0, 9000), st.decimals("0", "50", places=2))
def test_raising_a_price_never_lowers_a_cost(one, cards, hours, more):
    dearer = one.priced(one.price + Money(more, "USD"), one.upfront)
    before = exact.charge(one, accelerators=cards, hours=hours).total
    assert before <= exact.charge(dearer, accelerators=cards, hours=hours).total


def test_modes_of_a_place_are_priced_side_by_side():
    table = pricing.price_table(
        [
            offer("10"),
            offer("4", PaymentMode.SPOT),
            offer("5", PaymentMode.RESERVED_3Y, commitment_months=36),
            offer("12"),
            offer("9", region="eu-west-1"),
        ],
        "USD",
        RATES,
    )
    places = pricing.place_table(table)
    costs = pricing.price_modes(
        table,
        places,
        [0, 1],
        [8, 8],
        [100.0, 100.0],
        hours_by_mode={PaymentMode.SPOT: [120.0, 120.0]},
    )
    assert costs[PaymentMode.ON_DEMAND].tolist() == [1000.0, 900.0]
    assert costs[PaymentMode.SPOT].tolist() == [480.0, np.inf]
    assert costs[PaymentMode.RESERVED_3Y].tolist() == [5 * 26_280, np.inf]
    assert np.isinf(costs[PaymentMode.OWNED]).all()


def test_a_mode_that_would_never_end_costs_infinity_and_the_others_do_not():
    table = pricing.price_table([offer("10"), offer("4", PaymentMode.SPOT)], "USD", RATES)
    costs = pricing.price_modes(
        table,
        pricing.place_table(table),
        [0, 0],
        8,
        100.0,
        hours_by_mode={PaymentMode.SPOT: [np.inf, 110.0]},
    )
    assert costs[PaymentMode.SPOT].tolist() == [np.inf, 440.0]
    assert costs[PaymentMode.ON_DEMAND].tolist() == [1000.0, 1000.0]


def test_a_hundred_thousand_candidates_are_priced_as_one_by_one():
    rng = np.random.default_rng(7)
    table = pricing.price_table([offer(f"{p:.4f}") for p in rng.uniform(1, 90, 300)], "USD", RATES)
    index = rng.integers(0, 300, 100_000)
    cards = rng.integers(1, 1024, 100_000)
    hours = rng.uniform(0.1, 5000, 100_000)
    priced = pricing.price_candidates(table, index, cards, hours)
    for i in rng.integers(0, 100_000, 200):
        bill = exact.charge(
            table.offers[index[i]], accelerators=int(cards[i]), hours=float(hours[i])
        )
        assert round(priced.total[i] * 100) == int(bill.total.amount * 100)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hours": [1.0, -2.0]}, "hours[1]"),
        ({"accelerators": [1, 0]}, "accelerators[1]"),
        ({"span_hours": [1.0, 0.5]}, "span_hours[1]"),
    ],
)
def test_a_bad_candidate_is_named(change, field):
    table = pricing.price_table([offer()], "USD", RATES)
    values = {"accelerators": [8, 8], "hours": [1.0, 1.0], **change}
    with pytest.raises(InputError) as error:
        pricing.price_candidates(table, 0, **values)
    assert error.value.field == field


@pytest.mark.parametrize(
    "bad",
    [
        {"price": "-1"},
        {"accelerators": 0},
        {"tax_rate": Decimal("-0.1")},
        {"reclaim_per_month": 1.5},
    ],
)
def test_a_bad_offer_is_refused(bad):
    with pytest.raises(InputError) as error:
        offer(**bad)
    assert error.value.field in bad


def test_a_price_without_a_rate_is_refused():
    with pytest.raises(InputError) as error:
        pricing.price_table([offer()], "EUR", RATES)
    assert error.value.field == "exchange_rate"
