"""A warranty that starts with a registration starts when a person notes it, and is asked for before it is too late."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, NotPermitted
from core.models import AuditEntry, Notice
from core.organisation import today
from procurement.models import AssetWarranty, WarrantyTerms
from procurement.services.registrations import awaiting_registration, register_warranty
from procurement.services.reminders import remind_of_registrations
from procurement.warranty_rules import last_covered_day
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db


@pytest.fixture
def s():
    return b.shop()


def came(s, **terms):
    """A delivery whose units wait for their registration."""
    order = b.issued(s)
    WarrantyTerms.objects.filter(quote=order.quote).update(start_trigger="registration", **terms)
    order.refresh_from_db()
    return b.received(s, order)


def api(user):
    client = APIClient()
    client.force_authenticate(user)
    return client


def test_noted_by_page_for_some_and_by_api_for_the_rest(s, client):
    delivery = came(s)
    waiting = list(awaiting_registration(delivery).select_related("asset").order_by("asset"))
    first = waiting[0].asset.serial
    client.force_login(s.operations)
    page = client.get(delivery.get_absolute_url()).content.decode()
    assert f"The warranty of {len(waiting)} units starts only when they are registered" in page
    step = reverse("procurement-step", args=["delivery", delivery.pk, "register-warranty"])
    values = {"registered_on": today().isoformat(), "registration": "REG-1", "serials": first}
    assert client.post(step, {**values, "version": delivery.version}).status_code == 302
    row = AssetWarranty.objects.get(pk=waiting[0].pk)
    assert (row.starts_on, row.registration) == (today(), "REG-1")
    assert row.ends_on == last_covered_day(today(), row.months)
    assert awaiting_registration(delivery).count() == len(waiting) - 1
    entry = AuditEntry.objects.get(action="delivery.registered")
    assert entry.data["serials"] == [first]
    address = f"/api/v1/procurement/deliveries/{delivery.pk}/register-warranty/"
    answer = api(s.procurement).post(address, {"registered_on": today().isoformat()}, format="json")
    assert answer.status_code == 200, answer.content
    assert not awaiting_registration(delivery).exists()
    page = client.get(delivery.get_absolute_url()).content.decode()
    assert "register-warranty" not in page


def test_what_is_refused_starts_nothing(s):
    delivery = came(s)
    for values, field in (
        ({"registered_on": delivery.arrived_on - timedelta(days=1)}, "registered_on"),
        ({"registered_on": today() + timedelta(days=1)}, "registered_on"),
        ({"registered_on": today(), "serials": f"{b.SERIALS[0]}, NONE-1"}, "serials"),
        ({"registered_on": today(), "registration": "x" * 81}, "registration"),
    ):
        with pytest.raises(InputError) as error:
            register_warranty(delivery_id=delivery.pk, by=s.operations, **values)
        assert error.value.field == field
    assert not AssetWarranty.objects.exclude(starts_on=None).exists()
    register_warranty(delivery_id=delivery.pk, registered_on=today(), by=s.operations)
    with pytest.raises(InputError, match="No warranty of this delivery"):
        register_warranty(delivery_id=delivery.pk, registered_on=today(), by=s.operations)


def test_who_notes_it(s):
    delivery = came(s)
    for person in (s.cto, s.finance, s.requester, s.outsider):
        with pytest.raises(NotPermitted):
            register_warranty(delivery_id=delivery.pk, registered_on=today(), by=person)
    address = f"/api/v1/procurement/deliveries/{delivery.pk}/register-warranty/"
    for person, status in ((s.finance, 403), (s.outsider, 404)):
        values = {"registered_on": today().isoformat()}
        assert api(person).post(address, values, format="json").status_code == status


def marks():
    return set(
        Notice.objects.filter(event="warranty.unregistered").values_list("revision", flat=True)
    )


def test_it_is_told_before_the_term_ends_and_each_mark_once(s):
    delivery = came(s, registration_days=30)
    last = delivery.arrived_on + timedelta(days=30)
    assert remind_of_registrations(last - timedelta(days=15)) == 0
    for days, mark in (
        (14, "14"),
        (8, "14"),
        (7, "7"),
        (1, "1"),
        (0, "1"),
        (-1, "over"),
        (-9, "over"),
    ):
        assert remind_of_registrations(last - timedelta(days=days)) == 1
        assert f"30/{mark}" in marks()
    assert len(marks()) == 4
    register_warranty(delivery_id=delivery.pk, registered_on=today(), by=s.operations)
    assert remind_of_registrations(last) == 0


def test_without_a_term_it_is_told_a_week_after_the_delivery_and_once(s):
    delivery = came(s)
    assert remind_of_registrations(delivery.arrived_on + timedelta(days=6)) == 0
    for days in (7, 8, 90):
        assert remind_of_registrations(delivery.arrived_on + timedelta(days=days)) == 1
    assert len(marks()) == 1
