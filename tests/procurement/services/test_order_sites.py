"""An order knows where it goes, and its cards count there in the calendar before they come."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted, StaleData
from core.models import AuditEntry
from core.organisation import today
from planning.capacity import ON_ORDER
from planning.models import PlanChoice, Site
from planning.selectors.capacity import calendar
from procurement.models import Asset
from procurement.selectors.supply import card_supply
from procurement.services import orders
from procurement.services.order_sites import deliver_to
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


def site(name: str, **fields) -> Site:
    return Site.objects.create(
        **{
            "name": name,
            "power_kw": 100,
            "cooling_kw": 100,
            "racks": 10,
            "kw_per_rack": 10,
            **fields,
        }
    )


@pytest.fixture
def s():
    return b.shop()


def api(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


def coming() -> list[tuple[str, int]]:
    return [(row.place, row.cards) for row in card_supply(today()) if row.kind == ON_ORDER]


def test_an_order_without_a_site_counts_at_no_place_and_with_one_there(s):
    site("Shanghai")
    order = b.issued(s)
    orders.acknowledge_order(
        order_id=order.pk, promised_on=today() + timedelta(days=30), by=s.procurement
    )
    assert coming() == [("", 8)]
    deliver_to(order_id=order.pk, site=" Shanghai ", by=s.procurement)
    assert coming() == [("Shanghai", 8)]
    found = calendar(s.cto, place="Shanghai")
    assert max(month.on_order for pool in found.pools for month in pool.months) == 8
    entry = AuditEntry.objects.get(action="order.site_set")
    assert entry.data["changes"] == {"site": ["", "Shanghai"]}


def test_the_plans_of_its_requests_say_first(s):
    site("Beijing")
    site("Closed", active=False)
    award = b.proposed(s)
    PlanChoice.objects.update(summary={"place": "Beijing"})
    from procurement.services import awards

    awards.approve_award(award_id=award.pk, by=s.cto)
    assert award.orders.get().site.name == "Beijing"


def test_the_site_said_at_the_award_goes_onto_order_memo_and_units(s, client):
    site("Beijing")
    site("Shanghai")
    rfq = b.opened(s)
    client.force_login(s.procurement)
    page = client.get(reverse("rfq-compare", args=[rfq.pk])).text
    assert "Delivered to" in page
    told = {"quote": rfq.quotes.get(vendor=s.vendor).pk, "reason": b.REASON, "site": "Nowhere"}
    address = f"/api/v1/procurement/rfqs/{rfq.pk}/awards/"
    refused = api(s.procurement).post(address, told, format="json")
    assert refused.status_code == 422
    assert "Beijing, Shanghai" in refused.text
    answer = api(s.procurement).post(address, {**told, "site": "Shanghai"}, format="json")
    assert (answer.status_code, answer.json()["site"]) == (201, "Shanghai")
    PlanChoice.objects.update(summary={"place": "Beijing"})  # what the award says comes first
    assert "Shanghai" in client.get(rfq.get_absolute_url()).text
    made = b.awards.approve_award(award_id=answer.json()["id"], by=s.cto)
    assert made.record["award"]["site"] == "Shanghai"
    order = orders.issue_order(order_id=made.orders.get().pk, by=s.procurement)
    assert order.site.name == "Shanghai"
    delivery = b.received(s, b.aged(order))
    units = Asset.objects.filter(receipt_line__delivery=delivery)
    assert set(units.values_list("site", flat=True)) == {"Shanghai"}


def test_a_site_that_is_not_or_takes_nothing_or_is_set_already_is_refused_by_name(s):
    site("Shanghai")
    site("Full", active=False)
    order = b.issued(s)
    for name in ("Full", "Nowhere", ""):
        with pytest.raises(InputError, match="Shanghai"):
            deliver_to(order_id=order.pk, site=name, by=s.procurement)
    deliver_to(order_id=order.pk, site="Shanghai", by=s.procurement)
    with pytest.raises(InputError, match="already"):
        deliver_to(order_id=order.pk, site="Shanghai", by=s.procurement)


def test_who_may_say_it_and_when(s):
    site("Shanghai")
    site("Beijing")
    order = b.issued(s)
    for person in (s.requester, s.finance, s.operations, s.outsider, s.cto):
        with pytest.raises(NotPermitted):
            deliver_to(order_id=order.pk, site="Shanghai", by=person)
    version = order.version
    deliver_to(order_id=order.pk, site="Shanghai", by=s.procurement, version=version)
    with pytest.raises(StaleData) as error:
        deliver_to(order_id=order.pk, site="Beijing", by=s.procurement, version=version)
    assert error.value.changes["site"] == ("", "Shanghai")
    type(order).objects.filter(pk=order.pk).update(status="closed")
    with pytest.raises(InvalidTransition):
        deliver_to(order_id=order.pk, site="Beijing", by=s.procurement)


def test_by_page_and_api(s, client):
    site("Shanghai")
    order = b.issued(s)
    client.force_login(s.procurement)
    page = client.get(order.get_absolute_url()).content.decode()
    assert "nobody said" in page
    assert '<option value="Shanghai">' in page
    step = reverse("procurement-step", args=["order", order.pk, "deliver-to"])
    assert client.post(step, {"site": "Shanghai", "version": order.version}).status_code == 302
    assert "Shanghai</a>" in client.get(order.get_absolute_url()).content.decode()
    site("Beijing")
    address = f"/api/v1/procurement/orders/{order.pk}/"
    assert api(s.auditor).get(address).json()["site"] == "Shanghai"
    answer = api(s.procurement).post(f"{address}deliver-to/", {"site": "Beijing"}, format="json")
    assert (answer.status_code, answer.json()["site"]) == (200, "Beijing")
    for person, status in ((s.operations, 403), (s.finance, 403), (s.outsider, 404)):
        refused = api(person).post(f"{address}deliver-to/", {"site": "Shanghai"}, format="json")
        assert refused.status_code == status
