"""Vendors, RFQs, orders, deliveries and burn-ins in any state, made through the real services."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from core.models import ExchangeRate, User
from core.organisation import today
from core.roles import Role
from planning.models import CapacityRequest
from procurement.models import (
    Acceptance,
    Award,
    BurnInRun,
    Delivery,
    EvidenceFile,
    PurchaseOrder,
    Quote,
    Rfq,
    Vendor,
)
from procurement.serials import UnitEntry
from procurement.services import (
    acceptance,
    awards,
    burn_in,
    deliveries,
    evidence,
    orders,
    quotes,
    rfqs,
    vendors,
)
from tests.factories import MembershipFactory
from tests.planning import builders as planning
from tests.planning.builders import World, person

SAMPLES = Path(__file__).parent.parent / "data" / "evidence"
DATA = Path(__file__).parents[2] / "procurement" / "data"
STAMP = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d UTC \d{4}")
STAMP_FORM = "%a %b %e %H:%M:%S UTC %Y"


def ending(log: bytes, end: datetime) -> bytes:
    """A gpu-burn log as if it had ended at `end`: a log from before the delivery proves nothing about it."""

    def moment(stamp: bytes) -> datetime:
        return datetime.strptime(stamp.decode(), "%a %b %d %H:%M:%S UTC %Y").replace(tzinfo=UTC)

    shift = end - max(moment(found) for found in STAMP.findall(log))
    return STAMP.sub(lambda m: (moment(m[0]) + shift).strftime(STAMP_FORM).encode(), log)


_FOLDER = tempfile.TemporaryDirectory(prefix="evidence-")


def _recent(name: str) -> Path:
    path = Path(_FOLDER.name) / name
    path.write_bytes(ending((SAMPLES / name).read_bytes(), timezone.now().replace(microsecond=0)))
    return path


BURN_PASSED = _recent("08_gpu_burn_72h_ok_carriage_returns.log")
BURN_FAULTY = _recent("09_gpu_burn_72h_faulty_and_slow.log")
# The devices that both logs name, in order.
UUIDS = (
    "GPU-aeb881b9-1e82-8d13-e31d-4710aac0b014",
    "GPU-506a2f4a-aab1-bb5c-ca7a-2617b79d18bc",
    "GPU-92e95e2f-9871-74b6-9112-241b0b3b89fe",
    "GPU-3b8ab1b1-b7c9-a306-d915-1ac778c1db1f",
    "GPU-b3281972-5bfe-c02c-cddb-e9348354a1df",
    "GPU-4ca4be0d-8e6a-7143-62c0-d5b249bc33a1",
    "GPU-d4042ca2-c38a-e0df-fd42-31a5708ac47b",
    "GPU-8e95ad69-70c5-f145-1d91-6181e717957f",
)
SERIALS = tuple(f"165300000000{n}" for n in range(1, 9))
REASON = "Longest warranty for the money; delivery in time."


@dataclass
class Shop(World):
    """A World with the second people that separation of duties asks for, and two vendors."""

    buyer2: User = None  # type: ignore[assignment]
    engineer: User = None  # type: ignore[assignment]
    vendor: Vendor = None  # type: ignore[assignment]
    rival: Vendor = None  # type: ignore[assignment]


def shop(**organisation: object) -> Shop:
    w = planning.world(**organisation)
    burn_in.load_checklists()
    ExchangeRate.objects.create(
        base="USD",
        quote="CNY",
        rate=Decimal("7.1"),
        as_of=today() - timedelta(days=1),
        source="test",
    )
    s = Shop(
        **vars(w),
        buyer2=person(Role.PROCUREMENT, None, name="Petra Procurement"),
        engineer=person(Role.OPERATIONS, None, name="Ed Engineer"),
    )
    s.vendor = vendor(s, "Hengda Integrators", "CNY")
    s.rival = vendor(s, "Northwind Systems", "USD")
    return s


def vendor(s: Shop, name: str, currency: str, **fields: Any) -> Vendor:
    return vendors.create_vendor(
        by=s.procurement, name=name, channel=fields.pop("channel", "integrator"), currency=currency,
        time_zone=fields.pop("time_zone", "Asia/Shanghai"), **fields,
    )  # fmt: skip


def request(s: Shop, amount: str = "3000000", **fields: Any) -> CapacityRequest:
    """An approved request for 8 H100 cards."""
    return planning.approved(s, amount, **fields)


def rfq(s: Shop, *requests: CapacityRequest, publish: bool = True, **fields: Any) -> Rfq:
    asked = requests or (request(s),)
    values: dict[str, Any] = {
        "title": "Eight H100",
        "deadline": timezone.now() + timedelta(days=7),
        "vendor_ids": [s.vendor.pk, s.rival.pk],
        "by": s.procurement,
        **fields,
    }
    made = rfqs.create_rfq(request_ids=[r.pk for r in asked], **values)
    if publish:
        made = rfqs.publish_rfq(rfq_id=made.pk, by=s.procurement)
    return made


def pass_deadline(of: Rfq) -> None:
    """As if the deadline had passed."""
    Rfq.objects.filter(pk=of.pk).update(deadline=timezone.now() - timedelta(minutes=1))


def line(price: str = "250000", quantity: str = "8", **fields: Any) -> dict[str, Any]:
    return {
        "description": "H100 SXM 80 GB",
        "kind": "accelerator",
        "manufacturer": "NVIDIA",
        "quantity": quantity,
        "unit_price": price,
        "tax_rate": "0.13",
        "serialised": True,
        "accelerators_per_item": 1,
        "rfq_line": 1,
        **fields,
    }


WARRANTY = {
    "start_trigger": "acceptance",
    "months": 36,
    "advance_replacement": True,
    "burn_in_permitted": True,
    "new_parts_only": True,
    "replacement_new": True,
    "doa_days": 30,
}


def quote(
    s: Shop, on: Rfq, vendor: Vendor | None = None, price: str = "250000", **fields: Any
) -> Quote:
    vendor = vendor or s.vendor
    values: dict[str, Any] = {
        "currency": vendor.currency,
        "valid_until": today() + timedelta(days=60),
        "lead_time_days": 30,
        "lines": [line(price)],
        "warranty": WARRANTY,
        **fields,
    }
    return quotes.record_quote(rfq_id=on.pk, vendor_id=vendor.pk, by=s.procurement, **values)


def opened(s: Shop, **fields: Any) -> Rfq:
    """An RFQ with two opened quotes."""
    made = rfq(s, **fields)
    quote(s, made)
    quote(s, made, s.rival, "36000", warranty={**WARRANTY, "months": 12})
    return rfqs.close_rfq(rfq_id=made.pk, by=s.procurement, reason="Both have answered")


def proposed(s: Shop, **fields: Any) -> Award:
    made = opened(s, **fields)
    chosen = made.quotes.get(vendor=s.vendor)
    return awards.propose_award(rfq_id=made.pk, quote_id=chosen.pk, reason=REASON, by=s.procurement)


def awarded(s: Shop, **fields: Any) -> Award:
    return awards.approve_award(award_id=proposed(s, **fields).pk, by=s.cto)


def issued(s: Shop, **fields: Any) -> PurchaseOrder:
    order = awarded(s, **fields).orders.get()
    return aged(orders.issue_order(order_id=order.pk, by=s.procurement))


def aged(order: PurchaseOrder) -> PurchaseOrder:
    """As if issued ten days ago: goods come days after their order, and a burn-in takes three."""
    order.issued_at = timezone.now() - timedelta(days=10)
    PurchaseOrder.objects.filter(pk=order.pk).update(issued_at=order.issued_at)
    return order


def units(
    serials: Sequence[str] = SERIALS, uuids: Sequence[str] = UUIDS, **fields: str
) -> list[UnitEntry]:
    padded = [*uuids, *[""] * len(serials)]
    return [
        UnitEntry(serial, uuid, **fields) for serial, uuid in zip(serials, padded, strict=False)
    ]


ARRIVED = timedelta(days=4)  # that long ago


def received(s: Shop, order: PurchaseOrder | None = None, **fields: Any) -> Delivery:
    order = aged(order or issued(s))
    values: dict[str, Any] = {
        "note_number": "DN-1",
        "arrived_on": today() - ARRIVED,
        "lines": [{"position": 1, "quantity": "8", "units": units()}],
        "by": s.operations,
        **fields,
    }
    return deliveries.receive_delivery(order_id=order.pk, **values)


def burning(s: Shop, delivery: Delivery | None = None) -> list[BurnInRun]:
    delivery = delivery or received(s)
    return burn_in.start_burn_in(
        delivery_id=delivery.pk, by=s.engineer, site="Shanghai 1", rack="A1"
    )


def upload(s: Shop, delivery: Delivery, path: Path | None = None, **fields: Any) -> EvidenceFile:
    """Upload a file and read it at once."""
    source = path or BURN_PASSED
    content = fields.pop("content", None) or source.read_bytes()
    kept = evidence.upload_evidence(
        delivery_id=delivery.pk,
        upload=SimpleUploadedFile(source.name, content),
        by=s.engineer,
        **fields,
    )
    return evidence.read_file(evidence_id=kept.pk, report=lambda _percent, _stage: None)


# What people decide on a card and on a server when no file but gpu-burn's speaks of it.
CHECKLISTS = {
    row["slug"]: row["items"] for row in json.loads((DATA / "checklists.json").read_text("utf-8"))
}  # the newest of each, as they stand in the file
PEOPLE_ITEMS, SERVER_ITEMS = (
    tuple(
        item["code"]
        for item in CHECKLISTS[slug]
        if item["weight"] != "information"
        and (
            item["decided_by"] == "person"
            or (item["decided_by"] == "either" and "gpu_burn" not in item["formats"])
        )
    )
    for slug in ("card", "server")
)
REVIEW_ITEMS = ("A1.5", "A2.2")


def tick(s: Shop, delivery: Delivery) -> None:
    """Everything that people decide passes."""
    burn_in.decide_items(delivery_id=delivery.pk, codes=PEOPLE_ITEMS, result="pass", by=s.engineer)
    burn_in.decide_items(
        delivery_id=delivery.pk, codes=REVIEW_ITEMS, result="pass", by=s.engineer,
        note="Compared label, order and tool by hand",
    )  # fmt: skip


def tick_all(s: Shop, delivery: Delivery) -> None:
    """As `tick`, for a delivery that came with its servers too."""
    tick(s, delivery)
    only = [code for code in SERVER_ITEMS if code not in PEOPLE_ITEMS]
    burn_in.decide_items(
        delivery_id=delivery.pk, codes=only, result="pass", by=s.engineer, note="Seen"
    )


def burned_in(s: Shop, path: Path = BURN_PASSED) -> Delivery:
    """A delivery whose runs ended as the log says: passed, or failed for the faulty cards."""
    delivery = received(s)
    burning(s, delivery)
    upload(s, delivery, path)
    tick(s, delivery)
    burn_in.complete_ready(delivery_id=delivery.pk, by=s.engineer)
    return delivery


def proposed_acceptance(s: Shop, delivery: Delivery | None = None) -> Acceptance:
    delivery = delivery or burned_in(s)
    return acceptance.propose_acceptance(
        delivery_id=delivery.pk, by=s.engineer, reason="Failed its burn-in"
    )


def accepted(s: Shop, delivery: Delivery | None = None) -> Acceptance:
    return acceptance.sign_acceptance(acceptance_id=proposed_acceptance(s, delivery).pk, by=s.cto)


__all__ = ["MembershipFactory", "person", "planning"]
