"""Payment terms: read, checked, and split exactly in every currency."""

from decimal import Decimal

import pytest

from core.errors import InputError
from core.money import Money
from procurement.milestones import (
    PaymentEvent,
    check_terms,
    opened_amount,
    parts_of,
    read_terms,
    write_terms,
)

THIRDS = [
    {"event": "order", "percent": "33.333"},
    {"event": "delivery", "percent": "33.333"},
    {"event": "retention", "percent": "33.334", "days": 365},
]


@pytest.mark.parametrize(
    ("currency", "net", "tax"),
    [("JPY", "1000001", "100000"), ("CNY", "100.01", "13.01"), ("KWD", "10.001", "0.501")],
)
def test_parts_add_up_to_the_last_minor_unit(currency, net, tax):
    terms = check_terms(THIRDS)
    parts = parts_of(Money(Decimal(net), currency), Money(Decimal(tax), currency), terms)
    assert sum(part.net.amount for part in parts) == Decimal(net)
    assert sum(part.tax.amount for part in parts) == Decimal(tax)
    assert sum(part.gross.amount for part in parts) == Decimal(net) + Decimal(tax)
    for part in parts:
        assert part.gross == part.gross.rounded()


def test_known_parts():
    parts = parts_of(Money(Decimal("100"), "JPY"), Money(Decimal("10"), "JPY"), check_terms(THIRDS))
    assert [(p.net.amount, p.tax.amount) for p in parts] == [(33, 3), (33, 3), (34, 4)]


def test_what_is_open_in_part_is_rounded_down():
    whole = Money(Decimal("100.00"), "CNY")
    assert opened_amount(whole, Decimal(2) / 3).amount == Decimal("66.66")
    assert opened_amount(whole, Decimal(1)) == whole


@pytest.mark.parametrize(
    ("terms", "says"),
    [
        ([{"event": "order", "percent": "99.9"}], "99.9 %"),
        ([{"event": "order", "percent": "0"}], "term 1"),
        ([{"event": "order", "percent": 100.0}], "as text"),
        ([{"event": "order", "percent": "NaN"}], "term 1"),
        ([{"event": "order", "percent": "100.0001"}], "term 1"),
        ([{"event": "moon", "percent": "100"}], "moon"),
        ([{"event": "order", "percent": "100", "days": -1}], "-1"),
        ([{"event": "order", "percent": "100", "days": 3651}], "3650"),
        ([{"event": "retention", "percent": "100"}], "how many days"),
        ([{"event": "order", "percent": "1"}] * 61, "at most 60"),
    ],
)
def test_terms_that_cannot_be_are_refused_by_name(terms, says):
    with pytest.raises(InputError, match=r"[Pp]ayment term") as refused:
        check_terms(terms)
    assert says in str(refused.value)
    assert refused.value.field == "payments"


def test_terms_are_read_as_people_write_them_and_written_back():
    text = "30% order\n60 到货 +14\n\n10 retention 365 last part"
    terms = check_terms(read_terms(text))
    assert [(t.event, t.percent, t.days, t.label) for t in terms] == [
        (PaymentEvent.ORDER, 30, 0, ""),
        (PaymentEvent.DELIVERY, 60, 14, ""),
        (PaymentEvent.RETENTION, 10, 365, "last part"),
    ]
    assert check_terms(read_terms(write_terms(terms))) == terms
    with pytest.raises(InputError, match="term 2"):
        read_terms("30 order\nthe rest later")
