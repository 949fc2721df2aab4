"""The whole way over the API: RFQ, quotes, comparison, award, order, receipt, burn-in, acceptance, invoice."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from core.models import User
from core.organisation import today
from procurement.models import EvidenceFile, PurchaseOrder
from procurement.services import evidence
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db
ROOT = "/api/v1/procurement"


def post(user: User, path: str, data: Any = None, expect: int = 200, **headers: str) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    response = client.post(f"{ROOT}/{path}", data or {}, format="json", headers=headers)
    assert response.status_code == expect, response.content
    return response


def get(user: User, path: str, expect: int = 200) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    response = client.get(f"{ROOT}/{path}")
    assert response.status_code == expect, response.content
    return response.json()


def test_from_an_approved_request_to_a_paid_invoice():
    s = b.shop()
    request = b.request(s)
    buyer, cto, engineer = s.procurement, s.cto, s.engineer
    rfq = post(
        buyer, "rfqs/",
        {"title": "Eight H100", "requests": [request.pk], "vendors": [s.vendor.pk, s.rival.pk],
         "deadline": (timezone.now() + timedelta(days=7)).isoformat()},
        201,
    ).json()  # fmt: skip
    draft = post(buyer, f"rfqs/{rfq['id']}/publish/").json()
    assert draft["status"] == "open"
    body = {
        "vendor": s.vendor.pk, "currency": "CNY", "valid_until": str(today() + timedelta(days=60)),
        "lead_time_days": 30, "lines": [b.line()], "warranty": b.WARRANTY,
    }  # fmt: skip
    quote = post(buyer, f"rfqs/{rfq['id']}/quotes/", body, 201).json()
    assert quote["totals"]["gross"] == {"amount": "2260000.00", "currency": "CNY"}
    rival = {**body, "vendor": s.rival.pk, "currency": "USD", "lines": [b.line("36000")],
             "warranty": {**b.WARRANTY, "months": 12}}  # fmt: skip
    post(buyer, f"rfqs/{rfq['id']}/quotes/", rival, 201)
    post(buyer, f"rfqs/{rfq['id']}/close/", {"reason": "Both answered"})
    rows = get(cto, f"rfqs/{rfq['id']}/comparison/")["rows"]
    # 36,000 USD at 7.1 are 255,600 CNY: dearer, and warranted for a third of the time.
    assert [(r["vendor"], r["per_accelerator"], r["per_warranted_year"]) for r in rows] == [
        ("Hengda Integrators", "250000.00 CNY", "83333.33 CNY"),
        ("Northwind Systems", "255600.00 CNY", "255600.00 CNY"),
    ]
    award = post(
        buyer, f"rfqs/{rfq['id']}/awards/", {"quote": quote["id"], "reason": b.REASON}, 201
    )
    post(buyer, f"awards/{award.json()['id']}/approve/", expect=403)
    decided = post(cto, f"awards/{award.json()['id']}/approve/").json()
    order = post(buyer, f"orders/{decided['orders'][0]}/issue/").json()
    b.aged(PurchaseOrder.objects.get(pk=order["id"]))
    receipt = {
        "note_number": "DN-7", "arrived_on": str(today() - b.ARRIVED),
        "lines": [{"position": 1, "quantity": "8",
                   "units": [{"serial": n, "uuid": u} for n, u in zip(b.SERIALS, b.UUIDS, strict=True)]}],
    }  # fmt: skip
    first = post(
        s.operations, f"orders/{order['id']}/receipts/", receipt, 201, **{"Idempotency-Key": "k1"}
    )
    again = post(
        s.operations, f"orders/{order['id']}/receipts/", receipt, 201, **{"Idempotency-Key": "k1"}
    )
    assert again.json() == first.json()
    post(s.operations, f"orders/{order['id']}/receipts/", receipt, 409)
    delivery = first.json()["id"]
    post(engineer, f"deliveries/{delivery}/start-burn-in/", {"site": "Shanghai 1"})

    client = APIClient()
    client.force_authenticate(engineer)
    log = io.BytesIO(b.BURN_PASSED.read_bytes())
    log.name = "burn.log"
    uploaded = client.post(
        f"{ROOT}/deliveries/{delivery}/evidence/", {"file": log}, format="multipart"
    )
    assert uploaded.status_code == 201, uploaded.content
    evidence.read_file(evidence_id=EvidenceFile.objects.get().pk, report=lambda *_: None)
    found = get(engineer, f"evidence/{uploaded.json()['id']}/")
    assert found["verdict"] == "pass"
    assert len(found["verdicts"]) == 8

    post(engineer, f"deliveries/{delivery}/propose-acceptance/", {"reason": "x"}, 409)
    post(engineer, f"deliveries/{delivery}/items/", {"codes": b.PEOPLE_ITEMS, "result": "pass"})
    post(engineer, f"deliveries/{delivery}/items/",
         {"codes": b.REVIEW_ITEMS, "result": "pass", "note": "Compared by hand"})  # fmt: skip
    post(engineer, f"deliveries/{delivery}/complete-ready/")
    proposal = post(engineer, f"deliveries/{delivery}/propose-acceptance/").json()
    post(engineer, f"acceptances/{proposal['id']}/sign/", expect=403)
    signed = post(cto, f"acceptances/{proposal['id']}/sign/").json()
    assert signed["status"] == "accepted"

    invoice = post(
        s.finance, f"orders/{order['id']}/invoices/",
        {"number": "INV-7", "dated_on": str(today()), "currency": "CNY", "stated_tax": "260000",
         "stated_gross": "2260000",
         "lines": [{"position": 1, "quantity": "8", "unit_price": "250000", "tax_rate": "0.13"}]},
        201,
    ).json()  # fmt: skip
    assert post(s.finance, f"invoices/{invoice['id']}/match/").json()["status"] == "matched"
    post(s.finance, f"invoices/{invoice['id']}/approve/", expect=403)
    post(s.finance2, f"invoices/{invoice['id']}/approve/")
    assert (
        post(
            s.finance,
            f"invoices/{invoice['id']}/pay/",
            {"paid_on": str(today()), "amount": invoice["stated_gross"]},
        ).json()["status"]
        == "paid"
    )

    thread = get(s.requester, f"threads/{request.pk}/")
    assert (thread["status"], thread["accepted"], thread["current"]) == ("fulfilled", 8, None)
    get(s.outsider, f"threads/{request.pk}/", 404)
    assert len(get(s.requester, "assets/")["results"]) == 8
    assert get(s.outsider, "assets/")["results"] == []


def test_a_stale_version_is_refused_with_the_difference():
    s = b.shop()
    rfq = b.rfq(s, publish=False)
    client = APIClient()
    client.force_authenticate(s.procurement)
    tag = client.get(f"{ROOT}/rfqs/{rfq.pk}/").headers["ETag"]
    assert (
        client.patch(f"{ROOT}/rfqs/{rfq.pk}/", {"title": "Other"}, format="json").status_code == 200
    )
    response = client.post(
        f"{ROOT}/rfqs/{rfq.pk}/publish/", {}, format="json", headers={"If-Match": tag}
    )
    assert response.status_code == 409
    assert response.json()["changes"] == {"version": ["1", "2"], "title": ["Eight H100", "Other"]}


def test_a_step_that_a_colleague_took_is_told_with_what_it_did():
    s = b.shop()
    rfq = b.rfq(s, publish=False)
    client = APIClient()
    client.force_authenticate(s.procurement)
    address = f"{ROOT}/rfqs/{rfq.pk}/publish/"
    tag = client.get(f"{ROOT}/rfqs/{rfq.pk}/").headers["ETag"]
    assert client.post(address, {}, format="json").status_code == 200
    response = client.post(address, {}, format="json", headers={"If-Match": tag})
    assert (response.status_code, response.json()["code"]) == (409, "stale")
    assert response.json()["changes"]["status"] == ["draft", "open"]
    assert client.post(address, {}, format="json").json()["code"] == "invalid_transition"
