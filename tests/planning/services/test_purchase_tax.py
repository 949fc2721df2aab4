"""The organisation's tax on purchases: who sets it, what is refused, and where deciders see it."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.urls import reverse

from catalog.models import TcoDefault
from catalog.services.loading import load_reference
from catalog.services.revisions import TCO, correct
from core.errors import InputError, NotPermitted
from core.models import AuditEntry, Organisation
from core.organisation import today
from planning.services.purchase_tax import purchase_tax, set_purchase_tax
from planning.services.studies import inputs_of, setting_for
from planning.study.search.purchase_tax import PurchaseTax
from planning.tables import plan_facts
from tests.planning import builders


@pytest.fixture
def w(db):
    return builders.world()


def test_administrators_and_finance_set_it_and_nobody_else(w):
    for person in (w.requester, w.lead, w.cto, w.procurement, w.operations, w.auditor, w.superuser):
        with pytest.raises(NotPermitted):
            set_purchase_tax(rate=Decimal("0.06"), reclaimed=True, by=person)
    for person in (w.admin, w.finance):
        set_purchase_tax(rate=Decimal("0.09"), reclaimed=False, by=person)

    assert purchase_tax() == PurchaseTax(0.09, reclaimed=False)
    entry = AuditEntry.objects.filter(action="organisation.purchase_tax_set").first()
    assert entry.data["changes"]["purchase_tax_rate"][1] == "0.09"
    for rate in (Decimal("-0.01"), Decimal(1), Decimal("NaN")):
        with pytest.raises(InputError) as caught:
            set_purchase_tax(rate=rate, reclaimed=True, by=w.admin)
        assert caught.value.field == "rate"


def test_without_a_rate_of_its_own_the_country_s_usual_one_counts_where_it_is_known(w):
    assert purchase_tax() == PurchaseTax(0.13, reclaimed=True, rents=0.06)
    Organisation.objects.update(time_zone="America/New_York")
    assert purchase_tax() is None
    Organisation.objects.update(purchase_tax_rate=Decimal("0.0825"))
    assert purchase_tax() == PurchaseTax(0.0825, reclaimed=True)
    assert setting_for(builders.draft(w).current).tax == PurchaseTax(0.0825, reclaimed=True)


def test_by_page_and_by_api(w, client):
    client.force_login(w.finance)
    address = reverse("purchase-tax")
    assert "13 %" in client.get(address).content.decode().replace("\xa0", " ")
    assert client.post(address, {"rate": "130"}).status_code == 422
    assert client.post(address, {"rate": "9", "reclaimed": "on"}).status_code == 302
    api = reverse("api-purchase-tax")
    assert client.get(api).json() == {
        "rate": "0.0900", "rents": None, "reclaimed": True, "counted": "0.0900",
        "counted_rents": "0.0900",
    }  # fmt: skip
    assert client.post(address, {"rate": "13", "rents": "6", "reclaimed": "on"}).status_code == 302
    assert client.get(api).json()["counted_rents"] == "0.0600"
    assert "6 %" in client.get(address).content.decode().replace("\xa0", " ")
    answer = client.put(api, {"rate": None, "reclaimed": False}, "application/json")
    assert answer.json() == {
        "rate": None,
        "rents": None,
        "reclaimed": False,
        "counted": "0.1300",
        "counted_rents": "0.0600",
    }
    refused = client.put(api, {"rate": "1.5", "reclaimed": True}, "application/json")
    assert refused.status_code == 422
    assert "rate" in refused.content.decode()

    client.force_login(w.requester)
    assert client.get(address).status_code == 403
    assert (
        client.put(api, {"rate": "0.1", "reclaimed": True}, "application/json").status_code == 403
    )


def test_a_chosen_plan_shows_the_tax_within_what_is_approved(w, client):
    tax = {"amount": "130000.00", "rate": 0.13, "reclaimed": True}
    found = builders.in_review(w, "1130000", plan_summary={"tax": tax})

    plan = found.current.plan
    assert plan.tax.amount == Decimal("130000.00")
    assert ("Of which tax", "130,000.00 CNY", "13 %, reclaimed later") in [
        tuple(part.replace("\xa0", " ") for part in row) for row in plan_facts(plan)
    ]
    client.force_login(w.lead)
    page = client.get(reverse("approval-list")).content.decode()
    assert "130,000.00" in page


def test_a_study_of_before_knows_of_no_tax(w):
    from planning.services.studies import request_study

    study = request_study(revision_id=builders.draft(w).current.pk, by=w.requester)
    study.refresh_from_db()
    assert inputs_of(study).setting.tax == PurchaseTax(0.13, reclaimed=True, rents=0.06)
    study.inputs = {k: v for k, v in study.inputs.items() if k != "purchase_tax"}
    assert inputs_of(study).setting.tax is None


def test_a_rate_that_was_corrected_in_the_catalogue_is_the_usual_one(w, client):
    load_reference()
    row = TcoDefault.objects.get(key="vat.china")
    correct(
        TCO, pk=row.pk, changes={"low": 0.06, "value": 0.09}, reason="It was lowered", source="Ministry",
        as_of=today(), confidence="read", by=w.procurement,
    )  # fmt: skip

    assert purchase_tax() == PurchaseTax(0.09, reclaimed=True, rents=0.06)
    assert setting_for(builders.draft(w).current).tax == purchase_tax()
    client.force_login(w.finance)
    assert client.get(reverse("api-purchase-tax")).json()["counted"] == "0.0900"


def test_ten_per_cent_is_written_as_ten(w, client):
    set_purchase_tax(rate=Decimal("0.1"), reclaimed=True, by=w.admin)
    client.force_login(w.admin)
    page = client.get(reverse("purchase-tax")).content.decode()
    assert 'value="10"' in page
    assert "1E+1" not in page


def test_a_rate_on_rents_alone_needs_one_on_purchases_unless_the_usual_one_is_known(w):
    set_purchase_tax(rate=None, rents=Decimal("0.09"), reclaimed=True, by=w.finance)
    assert purchase_tax() == PurchaseTax(0.13, reclaimed=True, rents=0.09)
    Organisation.objects.update(time_zone="America/New_York", rent_tax_rate=None)
    with pytest.raises(InputError) as caught:
        set_purchase_tax(rate=None, rents=Decimal("0.09"), reclaimed=True, by=w.finance)
    assert caught.value.field == "rate"
    with pytest.raises(InputError) as caught:
        set_purchase_tax(rate=Decimal("0.1"), rents=Decimal(1), reclaimed=True, by=w.finance)
    assert caught.value.field == "rents"
