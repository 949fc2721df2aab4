"""Quotes and their comparison: currencies, validity, price breaks, what is missing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import ExchangeRate
from core.organisation import today
from procurement.models import (
    Quote,
)
from procurement.selectors.comparison import compare
from procurement.services import (
    orders,
    quotes,
    rfqs,
    vendors,
)
from procurement.services.quotes import QuoteExpired
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def test_a_bid_in_another_currency_is_ranked_by_the_rate_of_the_opening(s):
    ExchangeRate.objects.create(base="EUR", quote="CNY", rate="6.3", as_of=today(), source="test")
    euro = b.vendor(s, "Europe", "EUR")
    rfq = b.rfq(s, vendor_ids=[s.rival.pk, euro.pk])
    b.quote(s, rfq, s.rival, "100", warranty=b.WARRANTY)  # 710 CNY
    b.quote(s, rfq, euro, "101")  # 636.30 CNY
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="both in")
    rfq.refresh_from_db()
    assert [row.quote.vendor.name for row in compare(rfq).rows] == ["Europe", "Northwind Systems"]

    ExchangeRate.objects.filter(base="EUR").delete()
    ExchangeRate.objects.create(base="EUR", quote="CNY", rate="9", as_of=today(), source="later")

    assert [row.quote.vendor.name for row in compare(rfq).rows] == ["Europe", "Northwind Systems"]


def test_without_a_rate_the_bids_stay_closed_and_nothing_is_taken_for_one(s):
    yen = b.vendor(s, "Kyoto", "JPY")
    rfq = b.rfq(s, vendor_ids=[yen.pk])
    b.quote(s, rfq, yen, "5000000")
    assert rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in").status == "closed"
    ExchangeRate.objects.create(base="JPY", quote="CNY", rate="0.05", as_of=today(), source="test")
    assert rfqs.open_bids(rfq_id=rfq.pk, by=s.procurement).status == "opened"


def test_five_thousand_cheaper_for_one_year_loses_to_three_years(s):
    rfq = b.rfq(s, weights={"warranty_price": 100})
    b.quote(s, rfq, price="250000", warranty={**b.WARRANTY, "months": 12})
    b.quote(s, rfq, s.rival, "255000", currency="CNY", warranty={**b.WARRANTY, "months": 36})
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    rfq.refresh_from_db()
    found = compare(rfq)
    assert found.best.quote.vendor == s.rival
    assert found.cheapest.quote.vendor == s.vendor


def test_a_line_without_a_price_is_refused_and_never_zero(s):
    rfq = b.rfq(s)
    with pytest.raises(InputError, match="missing price is not 0"):
        b.quote(s, rfq, lines=[b.line(None)])
    with pytest.raises(InputError, match="not as a float"):
        b.quote(s, rfq, lines=[b.line(0.1)])  # type: ignore[arg-type]


def test_an_unanswered_line_has_no_price_and_no_rank(s):
    rfq = b.rfq(s)
    b.quote(s, rfq, lines=[b.line(quantity="4")])
    rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="in")
    rfq.refresh_from_db()
    (row,) = compare(rfq).rows
    assert (row.rank, row.score, row.is_complete) == (None, None, False)
    assert "4 of 8 accelerators offered" in str(row.notes[0])


def test_a_price_break_gives_the_price_of_one_at_that_quantity(s):
    rfq = b.rfq(s)
    steps = [
        {"from_quantity": 1, "to_quantity": 7, "unit_price": "300000"},
        {"from_quantity": 8, "to_quantity": None, "unit_price": "250000"},
    ]
    quote = b.quote(s, rfq, lines=[b.line(None, breaks=steps)])
    assert quote.lines.get().unit_price == Decimal("250000")
    assert quote.totals().net.amount == Decimal("2000000")
    with pytest.raises(InputError, match="follow on each other"):
        b.quote(s, rfq, lines=[b.line(None, breaks=[steps[0], {**steps[1], "from_quantity": 9}])])


def test_an_expired_quote_is_neither_awarded_nor_ordered_and_extended_by_a_new_version(s):
    award = b.awarded(s)
    order = award.orders.get()
    with time_machine.travel(datetime.now(UTC) + timedelta(days=70)):
        with pytest.raises(QuoteExpired, match="expired"):
            orders.issue_order(order_id=order.pk, by=s.procurement)
        old = Quote.objects.get(pk=order.quote_id)
        new = quotes.extend_quote(
            quote_id=old.pk, valid_until=today() + timedelta(days=30), by=s.procurement
        )
        assert (new.revision, new.totals().gross) == (2, old.totals().gross)
        assert orders.issue_order(order_id=order.pk, by=s.procurement).quote == new


def test_the_last_valid_day_ends_where_the_vendor_is(s):
    far = b.vendor(s, "Honolulu Compute", "USD", time_zone="Pacific/Honolulu")
    rfq = b.rfq(s, vendor_ids=[far.pk])
    quote = b.quote(s, rfq, far, "36000", valid_until=date(2099, 1, 1))
    with time_machine.travel(datetime(2099, 1, 2, 9, 59, tzinfo=UTC)):
        assert not quote.is_expired
    with time_machine.travel(datetime(2099, 1, 2, 10, 0, tzinfo=UTC)):
        assert quote.is_expired


def test_a_blocked_vendor_gets_no_quote_award_or_order(s):
    award = b.awarded(s)
    vendors.block_vendor(vendor_id=s.vendor.pk, by=s.procurement, reason="Relabelled cards")
    with pytest.raises(InvalidTransition, match="blocked"):
        orders.issue_order(order_id=award.orders.get().pk, by=s.procurement)
    both = b.person("procurement", None)
    b.MembershipFactory(user=both, team=None, role="finance")
    other = b.vendor(s, "Other", "CNY")
    vendors.block_vendor(vendor_id=other.pk, by=both, reason="x")
    with pytest.raises(NotPermitted, match="blocked a vendor does not unblock"):
        vendors.unblock_vendor(vendor_id=other.pk, by=both, reason="y")


def test_what_changed_since_is_what_happened_since_and_not_before(s):
    """A quote raises the RFQ's version without an entry of its own there: the publication before is no news."""

    rfq = b.rfq(s)
    opened = rfq.version
    b.quote(s, rfq)
    with pytest.raises(StaleData) as caught:
        rfqs.extend_rfq(
            rfq_id=rfq.pk, deadline=rfq.deadline + timedelta(days=7), reason="asked for",
            by=s.procurement, version=opened,
        )  # fmt: skip
    assert set(caught.value.changes) == {"version"}
