"""Quotations of lessors: who adds them, what is refused where, and which of them stand."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, transaction
from django.urls import reverse

from catalog.models import LeaseOffer, ServerPlatform
from catalog.services.leases import add_lease
from catalog.services.loading import load_reference
from core.errors import InputError, NotPermitted
from core.models import AuditEntry
from core.organisation import today
from core.roles import Role
from planning.services.snapshots import snapshot

SERVER = "dgx-h100-hgx-h100-8-gpu"
QUOTE = {
    "platform": SERVER, "lessor": "Lessor", "monthly": Decimal(12000), "term_months": 36, "currency": "USD",
    "source": "Q-17",
}  # fmt: skip


@pytest.fixture
def buyer(db, organisation, make_user):
    load_reference()
    return make_user(Role.PROCUREMENT)


def test_those_who_add_prices_add_leases_and_nobody_else(buyer, make_user):
    for role in (Role.REQUESTER, Role.APPROVER, Role.AUDITOR):
        with pytest.raises(NotPermitted):
            add_lease(**QUOTE, by=make_user(role))
    row = add_lease(**QUOTE, deposit=Decimal(24000), by=buyer)
    assert (row.buyout, row.deposit, row.as_of) == (None, Decimal(24000), today())
    assert AuditEntry.objects.get(action="lease.added").data["months"] == 36


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"platform": "no-such"}, "platform"),
        ({"currency": "XXX"}, "currency"),
        ({"monthly": Decimal(-1)}, "monthly"),
        ({"monthly": Decimal(0)}, "monthly"),
        ({"monthly": Decimal("1.234")}, "monthly"),
        ({"monthly": Decimal(10) ** 12}, "monthly"),
        ({"deposit": Decimal(-1)}, "deposit"),
        ({"deposit": Decimal("0.001")}, "deposit"),
        ({"buyout": Decimal("NaN")}, "buyout"),
        ({"term_months": 0}, "term_months"),
        ({"term_months": 121}, "term_months"),
        ({"lessor": " "}, "lessor"),
        ({"source": ""}, "source"),
        ({"as_of": date(2100, 1, 1)}, "as_of"),
        ({"valid_until": date(2020, 1, 1)}, "valid_until"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_its_field(buyer, changes, field):
    with pytest.raises(InputError) as caught:
        add_lease(**{**QUOTE, **changes}, by=buyer)
    assert caught.value.field == field
    assert not LeaseOffer.objects.exists()


def test_the_newest_valid_one_stands_and_comes_into_studies(buyer):
    before = today() - timedelta(days=9)
    add_lease(**QUOTE, as_of=before, by=buyer)
    add_lease(**{**QUOTE, "monthly": Decimal(11000)}, by=buyer)
    add_lease(**{**QUOTE, "lessor": "Late", "as_of": before, "valid_until": before}, by=buyer)
    bare = ServerPlatform.objects.exclude(price_records__isnull=False).first()
    with pytest.raises(InputError) as caught:
        add_lease(**QUOTE, as_of=before, by=buyer)
    assert caught.value.field == "source"

    found = snapshot(today())
    assert [(one.lessor, one.monthly.amount) for one in found.leases] == [
        ("Lessor", Decimal(11000))
    ]
    if bare is not None:
        add_lease(**{**QUOTE, "platform": bare.slug}, by=buyer)
        assert any(str(bare) in one.subject for one in snapshot(today()).unpriced)


def test_by_page_and_by_api(buyer, make_user, client):
    client.force_login(buyer)
    form = {**QUOTE, "monthly": "12000", "as_of": str(today()), "buyout": "50000"}
    assert client.get(reverse("lease-add")).status_code == 200
    bad = client.post(reverse("lease-add"), {**form, "monthly": "-5"})
    assert bad.status_code == 422
    assert bad.context["form"].errors["monthly"]
    assert client.post(reverse("lease-add"), form).status_code == 302
    page = client.get(reverse("lease-list")).content.decode()
    assert "Lessor" in page
    assert reverse("lease-add") in page

    api = reverse("api-leases")
    made = client.post(api, {**QUOTE, "monthly": "9000", "lessor": "Other"}, "application/json")
    assert made.status_code == 201, made.content
    assert client.get(api).json()["count"] == 2
    refused = client.post(api, {**QUOTE, "term_months": 500}, "application/json")
    assert refused.status_code == 422
    assert "term_months" in refused.content.decode()
    client.force_login(make_user(Role.REQUESTER))
    assert client.post(api, {**QUOTE, "source": "x"}, "application/json").status_code == 403
    assert client.get(reverse("lease-add")).status_code == 403
    assert reverse("lease-add") not in client.get(reverse("lease-list")).content.decode()


def test_a_row_is_never_changed(buyer, request):
    row = add_lease(**QUOTE, by=buyer)
    if request.config.getoption("nomigrations", default=False):
        pytest.skip("triggers come with migrations")
    with pytest.raises(DatabaseError), transaction.atomic():
        LeaseOffer.objects.filter(pk=row.pk)._raw_delete("default")
