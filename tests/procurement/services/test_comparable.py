"""Side by side at the quantities asked for: price breaks, and what is missing with a visible assumption."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework.test import APIClient

from core.money import Money
from procurement.selectors.comparable import comparables
from procurement.selectors.comparison import compare
from procurement.services import rfqs
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
STEPS = [
    {"from_quantity": 1, "to_quantity": 9, "unit_price": "260000"},
    {"from_quantity": 10, "to_quantity": None, "unit_price": "250000"},
]


@pytest.fixture
def s():
    return b.shop()


def closed(s, rfq):
    rfq = rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="all are in")
    found = compare(rfq)
    return found, comparables(found)


def test_a_complete_quote_at_the_asked_quantity_is_what_it_is(s):
    rfq = b.rfq(s)
    quote = b.quote(s, rfq)
    found, shown = closed(s, rfq)
    assert shown[quote.pk].net == found.rows[0].net
    assert shown[quote.pk].assumptions == ()


def test_price_breaks_count_at_the_quantity_asked_for(s):
    rfq = b.rfq(s)  # asks for 8
    line = b.line(None, "10", breaks=STEPS)
    quote = b.quote(s, rfq, lines=[line, b.line("100", rfq_line=None)])
    found, shown = closed(s, rfq)
    assert found.rows[0].net == Money(Decimal("2500800.00"), "CNY")
    assert shown[quote.pk].net == Money(Decimal("2080800.00"), "CNY")  # 8 x 260000 + 800
    assert "price breaks" in str(shown[quote.pk].assumptions[0])


def test_what_a_vendor_lacks_is_taken_at_its_own_price(s):
    rfq = b.rfq(s)
    quote = b.quote(s, rfq, s.rival, lines=[b.line("1000", "6")])  # USD at 7.1
    found, shown = closed(s, rfq)
    assert found.rows[0].net == Money(Decimal("42600.00"), "CNY")
    assert shown[quote.pk].net == Money(Decimal("56800.00"), "CNY")
    (told,) = shown[quote.pk].assumptions
    assert "2 missing accelerators" in str(told)
    assert "own price" in str(told)
    assert "7,100.00" in str(told) or "7100.00" in str(told)
    assert found.rows[0].rank is None  # still incomplete


def test_what_a_vendor_does_not_offer_at_all_is_taken_at_the_dearest_other_offer(s):
    rfq = b.rfq(s)
    none = b.quote(s, rfq, lines=[b.line("500", "1", rfq_line=None)])
    b.quote(s, rfq, s.rival, "1000")
    _found, shown = closed(s, rfq)
    assert shown[none.pk].net == Money(Decimal(500 + 8 * 7100).quantize(Decimal("0.01")), "CNY")
    assert "dearest other" in str(shown[none.pk].assumptions[0])


def test_where_nobody_offers_a_line_nothing_is_assumed(s):
    rfq = b.rfq(s)
    none = b.quote(s, rfq, lines=[b.line("500", "1", rfq_line=None)])
    _found, shown = closed(s, rfq)
    assert shown[none.pk].net is None
    assert "nobody" in str(shown[none.pk].assumptions[0])


def test_the_assumptions_are_shown_on_page_and_api(s, client):
    rfq = b.rfq(s)
    b.quote(s, rfq, lines=[b.line("250000", "6")])
    closed(s, rfq)
    client.force_login(s.procurement)
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    assert "2,000,000.00" in page
    assert "own price" in page
    api = APIClient()
    api.force_authenticate(s.procurement)
    (row,) = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").data["rows"]
    assert row["comparable_net"] == {"amount": "2000000.00", "currency": "CNY"}
    assert "own price" in row["assumptions"][0]


@pytest.mark.slow
def test_twenty_vendors_with_two_hundred_lines_ask_the_database_as_often_as_two(s, client):
    def queries(vendors: int, lines: int) -> int:
        many = [b.vendor(s, f"V{vendors}-{n}", "CNY" if n % 2 else "USD") for n in range(vendors)]
        rfq = b.rfq(s, vendor_ids=[v.pk for v in many])
        parts = [b.line("9", rfq_line=None, description=f"P{k}") for k in range(lines - 1)]
        for v in many:
            b.quote(s, rfq, v, lines=[b.line(None, "10", breaks=STEPS), *parts])
        rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
        client.force_login(s.procurement)
        address = reverse("rfq-compare", args=[rfq.pk])
        client.get(address)
        with CaptureQueriesContext(connection) as seen:
            assert client.get(address).status_code == 200
        return len(seen)

    assert queries(20, 200) <= queries(2, 3)
