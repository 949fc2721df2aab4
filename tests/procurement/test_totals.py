from decimal import Decimal as D

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.money import Money
from procurement.totals import (
    Break,
    PricedLine,
    TaxMode,
    allocate,
    check_breaks,
    document_totals,
    line_amount,
    packs_needed,
    price_at,
)


def totals(lines, currency="EUR", mode=TaxMode.DOCUMENT):
    return document_totals(
        [PricedLine(D(q), D(p), D(r)) for q, p, r in lines], currency=currency, tax_mode=mode
    )


def test_tax_on_the_document_or_on_each_line_never_a_mix():
    lines = [("1", "10.74", "0.21"), ("2", "0.83", "0.21")]

    whole, each = totals(lines), totals(lines, mode=TaxMode.LINE)

    assert (whole.net.amount, whole.tax.amount, whole.gross.amount) == (
        D("12.40"),
        D("2.60"),
        D("15.00"),
    )
    assert (each.net.amount, each.tax.amount, each.gross.amount) == (
        D("12.40"),
        D("2.61"),
        D("15.01"),
    )
    assert [line.tax.amount for line in each.lines] == [D("2.26"), D("0.35")]


def test_a_price_per_gpu_second_keeps_six_places():
    assert line_amount(D("12000"), D("0.000417"), "USD") == Money(D("5.00"), "USD")


@pytest.mark.parametrize(
    ("currency", "net", "tax"),
    [("JPY", "1235", "124"), ("CNY", "1234.57", "123.46"), ("KWD", "1234.568", "123.457")],
)
def test_minor_units_of_three_currencies(currency, net, tax):
    found = totals([("1", "1234.5678", "0.1")], currency)

    assert (str(found.net.amount), str(found.tax.amount)) == (net, tax)
    assert found.gross == found.net + found.tax


def test_the_same_subtotal_has_the_same_document_tax_in_one_line_and_in_twenty_two():
    one = totals([("1", "2411.42", "0.16")])
    many = totals([("1", "109.61", "0.16")] * 22)

    assert one.net == many.net
    assert one.tax == many.tax
    by_line = totals([("1", "109.61", "0.16")] * 22, mode=TaxMode.LINE)
    assert by_line.tax.amount == sum(line.tax.amount for line in by_line.lines)


amounts = st.decimals(min_value=0, max_value=10**6, places=6, allow_nan=False)


@given(
    st.lists(
        st.tuples(amounts, amounts, st.sampled_from(["0", "0.06", "0.13"])), min_size=1, max_size=12
    ),
    st.sampled_from(["JPY", "CNY", "KWD"]),
    st.sampled_from(list(TaxMode)),
)
def test_the_total_is_always_the_sum_of_what_is_shown(lines, currency, mode):
    found = totals([(q, p, r) for q, p, r in lines], currency, mode)

    assert found.net.amount == sum(line.net.amount for line in found.lines)
    assert found.tax.amount == sum(tax.tax.amount for tax in found.taxes)
    assert found.gross.amount == found.net.amount + found.tax.amount


def test_a_negative_quantity_names_line_and_field():
    with pytest.raises(InputError, match="Line 2: quantity is -1"):
        totals([("1", "1", "0"), ("-1", "1", "0")])


@given(
    st.integers(min_value=0, max_value=10**9),
    st.lists(st.integers(min_value=0, max_value=10**6), min_size=1, max_size=9),
    st.sampled_from(["JPY", "CNY", "KWD"]),
)
def test_an_amount_is_split_exactly(minor, weights, currency):
    unit = {"JPY": D(1), "CNY": D("0.01"), "KWD": D("0.001")}[currency]
    whole = Money(minor * unit, currency)

    parts = allocate(whole, [D(weight) for weight in weights])

    assert sum(part.amount for part in parts) == whole.amount
    assert all(part.amount >= 0 and part.amount % unit == 0 for part in parts)


def test_price_breaks_must_follow_on_each_other():
    good = [Break(10, None, D("9")), Break(1, 9, D("10"))]
    assert [step.from_quantity for step in check_breaks(good)] == [1, 10]
    assert price_at(D("9"), check_breaks(good)) == D("10")
    assert price_at(D("10"), check_breaks(good)) == D("9")
    for bad in (
        [Break(1, 9, D("10")), Break(11, None, D("9"))],  # gap
        [Break(1, 10, D("10")), Break(10, None, D("9"))],  # overlap
        [Break(1, 9, D("10")), Break(1, None, D("9"))],  # duplicate
        [Break(1, 9, D("10"))],  # no open end
        [Break(5, 4, D("10"))],  # covers nothing
    ):
        with pytest.raises(InputError):
            check_breaks(bad)


def test_below_the_first_break_there_is_no_price_and_not_zero():
    with pytest.raises(InputError, match="no price"):
        price_at(D("4"), [Break(5, None, D("1"))])


def test_forty_cards_in_servers_of_eight_are_five_servers():
    assert packs_needed(40, 8) == 5
    assert packs_needed(41, 8) == 6
