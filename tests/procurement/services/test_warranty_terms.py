"""Every term of a warranty gets in by form, table and API, and is shown in the comparison."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from core.organisation import today
from procurement.forms.quotes import WarrantyForm
from procurement.models import WarrantyTerms
from procurement.quote_table import HEADINGS
from procurement.services import quote_imports
from procurement.services.quotes import LATER_TERMS, WARRANTY_FIELDS, compute_hash
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
TERMS = {
    "warrantor": "reseller", "service_level": "depot", "labour_months": "24", "doa_new": "no",
    "authorised_channel": "是",
    "exclusions": "人为损坏；heavy use", "cloud_sla": "99.5 %", "advance_months": "12", "no_fault_fee": "271828.18 CNY",
}  # fmt: skip


@pytest.fixture
def s():
    return b.shop()


def test_form_and_table_know_every_term():
    assert set(WarrantyForm.base_fields) == set(WARRANTY_FIELDS)
    assert set(WARRANTY_FIELDS) - {"months", "start_trigger"} <= set(HEADINGS)
    assert LATER_TERMS < set(WARRANTY_FIELDS)


def imported(s, rfq):
    head = {
        "description": "H100", "quantity": "8", "unit_price": "250000", "rfq_line": "1", "kind": "accelerator",
        "accelerators_per_item": "1", "tax_percent": "13", "serialised": "yes", "currency": "CNY",
        "valid_until": "2099-12-31", "lead_time_days": "30", "warranty_months": "36", "warranty_start": "invoice",
        **TERMS,
    }  # fmt: skip
    titles = [HEADINGS[name][1] if name in HEADINGS else name for name in head]
    text = f"{';'.join(titles)}\n{';'.join(head.values())}\n"
    return quote_imports.start_import(
        rfq_id=rfq.pk, vendor_id=s.vendor.pk, upload=SimpleUploadedFile("q.csv", text.encode()),
        by=s.procurement,
    )  # fmt: skip


def test_a_table_tells_terms_and_the_flags_are_computed(s):
    found = imported(s, b.rfq(s))
    assert found.report["problems"] == []
    found = quote_imports.apply_import(pk=found.pk, by=s.procurement)
    warranty = WarrantyTerms.objects.get(quote=found.quote)
    assert (warranty.warrantor, warranty.service_level, warranty.labour_months) == (
        "reseller",
        "depot",
        24,
    )
    assert (warranty.doa_new, warranty.authorised_channel, warranty.advance_months) == (
        False,
        True,
        12,
    )

    api = APIClient()
    api.force_login(s.procurement)
    row = api.get(f"/api/v1/procurement/rfqs/{found.rfq_id}/comparison/").json()["rows"][0]
    codes = {flag["code"] for flag in row["flags"]}
    assert {
        "starts_with_invoice", "heavy_use_excluded", "human_damage", "burn_in_not_stated", "seller_only",
        "doa_refurbished", "no_fault_fee",
    } <= codes  # fmt: skip
    assert row["warranty"]["cloud_sla"] == "99.5 %"


def test_the_report_of_a_sealed_table_keeps_no_fee(s):
    assert "271828" not in str(imported(s, b.rfq(s, sealed=True)).report)


def test_the_api_takes_every_term_and_the_comparison_shows_it(s, client):
    rfq = b.rfq(s)
    api = APIClient()
    api.force_login(s.procurement)
    body = {
        "vendor": s.vendor.pk, "currency": "CNY", "valid_until": (today() + timedelta(days=30)).isoformat(),
        "lead_time_days": 30, "lines": [b.line()],
        "warranty": {**b.WARRANTY, "service_level": "depot", "replacement_warranty": "rest, at least 90 d"},
    }  # fmt: skip
    made = api.post(f"/api/v1/procurement/rfqs/{rfq.pk}/quotes/", body, format="json")
    assert made.status_code == 201, made.content
    assert set(made.json()["warranty"]) == set(WARRANTY_FIELDS)
    client.force_login(s.procurement)
    page = client.get(f"/procurement/rfqs/{rfq.pk}/compare/").text
    assert "rest, at least 90 d" in page
    assert "Exchange at a depot" in page


def test_terms_that_are_asked_for_later_keep_old_hashes(s):
    quote = b.quote(s, b.rfq(s))
    assert compute_hash(quote) == quote.content_hash
    quote.warranty.authorised_channel = True
    assert compute_hash(quote) != quote.content_hash
