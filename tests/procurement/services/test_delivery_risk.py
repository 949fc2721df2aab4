"""The risk of a late delivery is told on comparison, order and thread before it slips, with what it rests on."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.organisation import today
from procurement.models import Delivery, PurchaseOrder, ReceiptLine
from procurement.selectors.delivery_risk import (
    PROMISED,
    QUOTED,
    Effect,
    order_risk,
    quote_risks,
    slip_history,
)
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
LATE = (2, 4, 4, 9, 30)


@pytest.fixture
def s():
    return b.shop()


def history(s, slips=LATE, vendor=None, promised=False) -> PurchaseOrder:
    """An order of the vendor with a delivery for each of `slips`: days after the day it promised."""
    order = b.issued(s)
    due = today() - timedelta(days=60)
    PurchaseOrder.objects.filter(pk=order.pk).update(
        expected_on=due, promised_on=due if promised else None, status="closed"
    )
    line = order.lines.get()
    for n, days in enumerate(slips):
        delivery = Delivery.objects.create(
            order=order, vendor=order.vendor, note_number=f"H{order.pk}-{n}", folded_note=f"h{order.pk}-{n}",
            status="posted", arrived_on=due + timedelta(days=days), received_by=s.operations,
        )  # fmt: skip
        ReceiptLine.objects.create(delivery=delivery, order_line=line, quantity=1)
    return order


def asked(s, days: int):
    """A request that is needed in so many days."""
    return b.request(s, need_by=today() + timedelta(days=days))


def test_points_are_deliveries_by_vendor_and_model(s):
    order = history(s)
    found = slip_history(QUOTED)
    slug = order.lines.get().accelerator_slug
    assert sorted(found.by_vendor[s.vendor.pk].days) == list(LATE)
    assert found.by_both[s.vendor.pk, slug].days == found.by_model[slug].days
    assert slip_history(PROMISED).by_vendor == {}
    assert slip_history(QUOTED, before=order.pk).by_vendor == {}


def test_an_order_that_is_due_and_did_not_come_counts_with_its_days_so_far(s):
    history(s)
    waiting = b.issued(s)
    PurchaseOrder.objects.filter(pk=waiting.pk).update(expected_on=today() - timedelta(days=50))
    slips = slip_history(QUOTED).by_vendor[s.vendor.pk]
    assert (max(slips.days), slips.points, slips.open) == (50, 6, 1)


def test_a_quote_shows_what_its_vendor_took_and_which_team_it_would_fail(s):
    history(s)
    rfq = b.rfq(s, asked(s, 32))  # quoted: 30 days
    mine, other = b.quote(s, rfq), b.quote(s, rfq, s.rival, "36000")
    risks = quote_risks([mine, other], rfq.lines.all())
    risk = risks[mine.pk]
    assert risk.forecast.basis == "vendor_model"
    assert risk.forecast.likely == today() + timedelta(days=34)
    assert risk.forecast.cautious == today() + timedelta(days=60)
    (effect,) = risk.effects
    assert (effect.as_promised, effect.likely, effect.cautious, effect.tone) == (-2, 2, 28, "bad")
    assert risks[other.pk].forecast.basis == "model"  # of any vendor: this one has no history
    assert "by any vendor" in str(risks[other.pk].basis)


def test_in_time_for_most_but_not_for_all_is_a_warning(s):
    history(s)
    rfq = b.rfq(s, asked(s, 40))
    quote = b.quote(s, rfq)
    (effect,) = quote_risks([quote], rfq.lines.all())[quote.pk].effects
    assert (effect.likely, effect.cautious, effect.tone) == (-6, 20, "warn")


def test_without_history_only_the_promise_is_told(s):
    rfq = b.rfq(s)
    quote = b.quote(s, rfq)
    risk = quote_risks([quote], rfq.lines.all())[quote.pk]
    assert (risk.forecast.likely, risk.forecast.slips.points) == (None, 0)
    assert risk.effects[0].likely is None
    assert "too few" in str(risk.basis)
    assert risk.to_json()["likely"] is None


def test_an_order_is_foretold_until_it_comes_and_never_by_itself(s):
    history(s, promised=True)
    order = b.issued(s)
    PurchaseOrder.objects.filter(pk=order.pk).update(
        status="acknowledged", promised_on=today() + timedelta(days=10)
    )
    order.refresh_from_db()
    risk = order_risk(order)
    assert risk.forecast.due == today() + timedelta(days=10)
    assert risk.forecast.likely == today() + timedelta(days=14)
    b.received(s, order)
    assert order_risk(PurchaseOrder.objects.get(pk=order.pk)) is None


def test_it_is_shown_before_the_slip_on_comparison_order_thread_and_api(s, client):
    history(s)
    rfq = b.rfq(s, asked(s, 32))
    b.quote(s, rfq)
    client.force_login(s.procurement)
    api = APIClient()
    api.force_authenticate(s.procurement)
    text = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    assert "likely 2 days late" in text
    rows = api.get(f"/api/v1/procurement/rfqs/{rfq.pk}/comparison/").data["rows"]
    assert rows[0]["delivery_risk"]["effects"][0]["late_days_likely"] == 2
    assert rows[0]["delivery_risk"]["points"] == 5

    order = b.issued(s)
    request = order.lines.get().request
    due = request.current.need_by - timedelta(days=1)
    PurchaseOrder.objects.filter(pk=order.pk).update(expected_on=due)
    assert "likely 3 days late" in client.get(order.get_absolute_url()).text
    shown = api.get(f"/api/v1/procurement/orders/{order.pk}/").data["delivery_risk"]
    assert shown["effects"][0]["late_days_likely"] == 3
    client.force_login(s.requester)  # who asked for it sees it coming too
    page = client.get(reverse("request-thread", args=[request.pk])).text
    assert "likely 3 days late" in page


@pytest.mark.parametrize(
    ("days", "told", "tone"),
    [
        ((3, 40, 90), "likely 40 days late", "bad"),
        ((3, None, None), "promised 3 days late", "bad"),
        ((1, None, None), "promised 1 day late", "bad"),
        ((3, -5, 12), "one in ten is 12 days late or more", "warn"),
        ((3, -9, -5), "promised 3 days late, likely in time", "warn"),
        ((-3, None, None), "in time as promised", ""),
        ((-3, -2, -1), "in time", "good"),
    ],
)
def test_what_is_likely_is_told_before_what_was_promised(days, told, tone):
    effect = Effect(None, date(2027, 1, 1), *days)
    assert (str(effect.told), effect.tone) == (told, tone)


def test_page_and_thread_tell_the_likely_days_of_an_order_that_is_promised_late(s, client):
    history(s, slips=(37,) * 5)
    order = b.issued(s)
    request = order.lines.get().request
    PurchaseOrder.objects.filter(pk=order.pk).update(
        expected_on=request.current.need_by + timedelta(days=3)
    )
    client.force_login(s.procurement)
    for address in (order.get_absolute_url(), reverse("request-thread", args=[request.pk])):
        page = client.get(address).text
        assert "likely 40 days late" in page
        assert "promised 3 days late" not in page


def test_the_comparison_asks_the_same_for_few_and_many_quotes(s):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    history(s)
    vendors = [b.vendor(s, f"V{n}", "CNY") for n in range(6)]
    rfq = b.rfq(s, vendor_ids=[v.pk for v in vendors])
    quotes = [b.quote(s, rfq, v) for v in vendors]
    counts = []
    for some in (quotes[:1], quotes):
        with CaptureQueriesContext(connection) as seen:
            quote_risks(some, rfq.lines.all())
        counts.append(len(seen))
    assert counts[0] == counts[1]
