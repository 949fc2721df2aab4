"""Proving and life afterwards over the API: promised throughput, places, labels, cover, files of proof."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from core.models import User
from core.organisation import today
from procurement.certificate import render_certificate
from procurement.models import Asset
from procurement.services.certificates import attach_certificate
from tests.procurement import builders as b
from tests.procurement.api.test_straight_path import ROOT, get, post

pytestmark = pytest.mark.django_db


def test_promised_throughput_over_the_api():
    s = b.shop()
    rfq = b.rfq(s)
    body = {
        "vendor": s.vendor.pk, "currency": "CNY", "valid_until": str(today() + timedelta(days=60)),
        "lead_time_days": 30, "warranty": b.WARRANTY,
        "lines": [b.line(promises=[{"benchmark": "gpu_burn", "value": "600", "unit": "TFLOPS", "per": "card"}])],
    }  # fmt: skip
    quote = post(s.procurement, f"rfqs/{rfq.pk}/quotes/", body, 201).json()
    assert quote["lines"][0]["promises"] == [
        {"benchmark": "gpu_burn", "name": "", "value": "600.000000", "unit": "Tflop/s", "per": "card",
         "tolerance_rate": "0.03000", "blocking": True}
    ]  # fmt: skip
    b.quote(s, rfq, s.rival, "36000")
    b.rfqs.close_rfq(rfq_id=rfq.pk, by=s.procurement, reason="Both have answered")
    award = b.awards.propose_award(
        rfq_id=rfq.pk, quote_id=quote["id"], reason=b.REASON, by=s.procurement
    )
    order = b.awards.approve_award(award_id=award.pk, by=s.cto).orders.get()
    order = b.aged(b.orders.issue_order(order_id=order.pk, by=s.procurement))
    delivery = b.received(s, order)
    b.burning(s, delivery)
    file = b.upload(s, delivery)
    place = f"deliveries/{delivery.pk}/performance/"
    [told] = get(s.procurement, place)["promises"]
    assert (told["state"], told["units_short"], told["units"][0]["evidence"]) == (
        "missed",
        8,
        file.pk,
    )
    assert float(told["shortfall_money"]["amount"]) > 0
    [without] = get(s.engineer, place)["promises"]  # operations do not read prices
    assert without["shortfall_money"] is None
    assert without["shortfall_rate"] == told["shortfall_rate"]
    get(s.outsider, place, 404)
    noted = {"evidence_id": file.pk, "serial": b.SERIALS[0], "benchmark": "hpl", "value": "41"}
    step = f"deliveries/{delivery.pk}/note-measurement/"
    post(s.engineer, step, noted)
    post(s.procurement, step, noted, 403)


def test_life_after_acceptance_over_the_api():
    s = b.shop()
    delivery = b.burned_in(s, b.BURN_FAULTY)
    made = b.accepted(s, delivery)
    served = [u.asset_id for u in made.units.filter(included=True)]
    post(s.engineer, "assets/place/", {"assets": served, "site": "Shanghai 2", "rack": "B7"})
    assert set(s_place(served)) == {("Shanghai 2", "B7")}
    post(s.procurement, "assets/place/", {"assets": served, "site": "Elsewhere"}, 403)
    post(s.outsider, "assets/place/", {"assets": served[:1], "site": "Elsewhere"}, 422)
    post(s.engineer, "assets/place/", {"assets": [*served, 10**6], "site": "Elsewhere"}, 422)
    assert set(s_place(served)) == {("Shanghai 2", "B7")}  # all of them or none
    labels = raw(s.engineer, "assets/labels/?status=in_service")
    assert labels.content.startswith(b"%PDF")
    cover = get(s.engineer, "assets/cover/?state=not_started")["units"]
    assert {row["state"] for row in cover} == {"not_started"}
    covered = get(s.engineer, f"assets/cover/?on={today() + timedelta(days=10)}&state=covered")[
        "units"
    ]
    assert {row["id"] for row in covered} == set(served)
    get(s.engineer, "assets/cover/?state=maybe", 422)
    get(s.engineer, "assets/cover/?on=tomorrow", 422)
    assert get(s.outsider, "assets/cover/")["units"] == []
    file = delivery.evidence.first()
    assert b"".join(raw(s.engineer, f"evidence/{file.pk}/file/").streaming_content)
    get(s.outsider, f"evidence/{file.pk}/file/", 404)
    rma = delivery.lines.get().assets.exclude(rmas=None).first().rmas.get()
    assert b"".join(raw(s.engineer, f"rmas/{rma.pk}/bundle/").streaming_content).startswith(b"PK")
    get(s.outsider, f"rmas/{rma.pk}/bundle/", 404)
    get(s.engineer, f"acceptances/{made.pk}/certificate/en/", 404)  # not drawn yet
    row = made.certificates.get(language="en")
    attach_certificate(certificate_id=row.pk, content=render_certificate(row), name="a.pdf")
    got = raw(s.engineer, f"acceptances/{made.pk}/certificate/en/")
    assert b"".join(got.streaming_content).startswith(b"%PDF")


def s_place(ids):
    return Asset.objects.filter(pk__in=ids).values_list("site", "rack")


def raw(user: User, path: str) -> Any:
    client = APIClient()
    client.force_authenticate(user)
    response = client.get(f"{ROOT}/{path}")
    assert response.status_code == 200, response
    return response
