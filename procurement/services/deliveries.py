"""Goods on the dock: announced, counted with their serial numbers, posted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.messages import Message, msg
from core.models import User
from core.organisation import local_day, today
from procurement.models import (
    AnnouncedSerial,
    Asset,
    Delivery,
    OrderLine,
    PurchaseOrder,
    PurchasingPolicy,
    ReceiptLine,
)
from procurement.models.assets import AssetKind
from procurement.models.quotes import LineKind
from procurement.selectors.progress import received_quantities
from procurement.serials import UnitEntry, fold, refuse_duplicate_uuids, refuse_duplicates
from procurement.services.invoice_matching import require_invoiced_covered
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.quote_lines import exact
from procurement.services.substitutions import received_as
from procurement.services.warranties import give_warranty, start_invoiced, start_warranties
from procurement.states import AssetStatus, DeliveryStatus
from procurement.warranty_rules import StartTrigger


class AlreadyReceived(DomainError):
    """The delivery note was posted before, or nothing is open any more."""

    code = "already_received"


def rows() -> Any:
    return Delivery.objects.select_related("order__vendor", "vendor")


def _lock_order(order_id: int, *, action: str, by: User) -> PurchaseOrder:
    return take(
        PurchaseOrder.objects.select_related("vendor", "quote__warranty"),
        order_id,
        action=action,
        by=by,
    )


def _note(note_number: str) -> str:
    text = " ".join(note_number.split())
    if not text or len(text) > 80:
        raise InputError("note_number", msg("A delivery note has a number of 1 to 80 characters"))
    return text


def _new_delivery(order: PurchaseOrder, note_number: str, by: User, **fields: Any) -> Delivery:
    note = _note(note_number)
    try:
        with transaction.atomic():
            return Delivery.objects.create(
                order=order,
                vendor=order.vendor,
                note_number=note,
                folded_note=fold(note),
                created_by=by,
                **fields,
            )
    except IntegrityError:
        raise AlreadyReceived(
            msg(
                "Delivery note %(note)s of %(vendor)s is here already",
                note=note,
                vendor=order.vendor.name,
            )
        ) from None


@transaction.atomic
def announce_delivery(
    *,
    order_id: int,
    note_number: str,
    by: User,
    expected_on: date | None = None,
    shipped_on: date | None = None,
    serials: Sequence[str] = (),
) -> Delivery:
    """Note a delivery that the vendor announced, with the serial numbers of its packing list."""
    order = _lock_order(order_id, action="announce", by=by)
    refuse_duplicates(serials, field="serials")
    delivery = _new_delivery(order, note_number, by, expected_on=expected_on, shipped_on=shipped_on)
    AnnouncedSerial.objects.bulk_create(
        AnnouncedSerial(delivery=delivery, serial=serial, folded_serial=fold(serial))
        for serial in serials
    )
    record(
        "delivery.announced", on=delivery, by=by, order=order.number, serials=len(serials),
        expected_on=expected_on.isoformat() if expected_on else None,
    )  # fmt: skip
    return delivery


@transaction.atomic
def receive_delivery(
    *,
    order_id: int,
    note_number: str,
    arrived_on: date,
    lines: Sequence[Mapping[str, Any]],
    by: User,
    delivery_id: int | None = None,
    shipped_on: date | None = None,
    packaging_intact: bool | None = None,
    shock_label_clear: bool | None = None,
    notes: str = "",
    version: int | None = None,
) -> Delivery:
    """Count and post a delivery: an announced one (`delivery_id`) or one that came without notice.

    Each line is a mapping with `position` (of the order line), `quantity` (items), `units` (UnitEntry each, one per
    unit with a serial number), `missing_units` with `missing_reason` for units that came without one, and
    `part_number` as on the box: another one than ordered needs a consented substitution. Everything is refused
    together: assets are made for all units or for none. Raises NotPermitted, InvalidTransition, AlreadyReceived (409)
    or InputError naming positions.
    """
    order = _lock_order(order_id, action="receive", by=by)
    if arrived_on > today():
        raise InputError("arrived_on", ahead(arrived_on), value=arrived_on, limit=today())
    ordered_on = local_day(order.issued_at) if order.issued_at else None
    if ordered_on is not None and arrived_on < ordered_on:
        raise InputError(
            "arrived_on",
            msg(
                "The day of arrival, %(arrived)s, is before the order was issued, on %(issued)s",
                arrived=arrived_on.isoformat(),
                issued=ordered_on.isoformat(),
            ),
            value=arrived_on,
            limit=ordered_on,
        )
    if delivery_id is None:
        delivery = _new_delivery(order, note_number, by, shipped_on=shipped_on)
    else:
        delivery = take(
            rows().filter(order=order), delivery_id, action="post", by=by, version=version
        )
    delivery.arrived_on, delivery.received_by = arrived_on, by
    delivery.shipped_on = shipped_on or delivery.shipped_on
    delivery.packaging_intact = packaging_intact
    delivery.shock_label_clear = shock_label_clear
    delivery.notes = notes
    delivery.save()
    counted = _count(order, lines)
    _refuse_known([unit for *_rest, units in counted for unit in units], counted)
    assets: list[Asset] = []
    for line, receipt, units in counted:
        receipt.delivery = delivery
        receipt.save()
        assets += _make_assets(delivery, receipt, line, units, by=by)
    give_warranty(assets, order=order)
    start_warranties(assets, StartTrigger.DELIVERY, arrived_on)
    if delivery.shipped_on:
        start_warranties(assets, StartTrigger.SHIPMENT, delivery.shipped_on)
    if order.issued_at:
        start_warranties(assets, StartTrigger.ORDER, local_day(order.issued_at))
    move(
        delivery, DeliveryStatus.POSTED, by=by, action="delivery.received", order=order.number,
        quantities={str(line.position): str(receipt.quantity) for line, receipt, _u in counted},
        assets=len(assets),
    )  # fmt: skip
    start_invoiced(order)
    touch(order)
    return delivery


def ahead(arrived_on: date) -> Message:
    """That goods cannot have arrived on a day to come."""
    return msg(
        "The day of arrival, %(value)s, is after today, %(limit)s",
        value=arrived_on.isoformat(),
        limit=today().isoformat(),
    )


Counted = list[tuple[OrderLine, ReceiptLine, Sequence[UnitEntry]]]


def _count(order: PurchaseOrder, lines: Sequence[Mapping[str, Any]]) -> Counted:
    """Check quantities against what is open, under the order's lock."""
    by_position = {line.position: line for line in order.lines.all()}
    received = received_quantities(list(by_position.values()))
    tolerance = PurchasingPolicy.current().over_delivery
    counted: Counted = []
    seen: set[int] = set()
    for given in lines:
        position = given.get("position")
        line = by_position.get(position) if isinstance(position, int) else None
        if line is None or line.position in seen or line.short_closed:
            raise InputError(
                "position",
                msg("Line %(line)s is not an open line of the order", line=str(position)),
                value=position,
            )
        seen.add(line.position)
        quantity = exact("quantity", given.get("quantity"), digits=3, line=line.position)
        if quantity == 0:
            continue
        if line.serialised and quantity % 1:
            raise InputError(
                "quantity",
                msg("Line %(line)s: items with serial numbers are counted in whole numbers",
                    line=line.position),
                value=quantity,
            )  # fmt: skip
        before = received.get(line.pk, Decimal(0))
        limit = line.quantity * (1 + tolerance)
        if before + quantity > limit:
            rest = max(line.quantity - before, Decimal(0))
            text = msg(
                "Line %(line)s: %(value)s came, %(rest)s are open of %(ordered)s ordered",
                line=line.position,
                value=f"{quantity.normalize():f}",
                rest=f"{rest.normalize():f}",
                ordered=f"{line.quantity.normalize():f}",
            )
            if rest == 0:
                raise AlreadyReceived(text)
            raise InputError("quantity", text, value=quantity, limit=rest)
        if line.kind == LineKind.CLOUD:
            raise InputError(
                "position",
                msg("Line %(line)s is a cloud commitment: note what is used of it by month",
                    line=line.position),
                value=line.position,
            )  # fmt: skip
        substitution = received_as(line, str(given.get("part_number") or ""))
        units = tuple(given.get("units", ()))
        missing = int(given.get("missing_units") or 0)
        why = str(given.get("missing_reason", "")).strip()
        expected = int(quantity) * line.units_per_item if line.serialised else 0
        if len(units) + missing != expected or missing < 0:
            raise InputError(
                "units",
                msg(
                    "Line %(line)s: %(units)s serial numbers and %(missing)s missing; %(limit)s units came",
                    line=line.position,
                    units=len(units),
                    missing=missing,
                    limit=expected,
                ),
                value=len(units),
                limit=expected,
            )
        if missing and not why:
            raise InputError(
                "missing_reason",
                msg("Line %(line)s: say why serial numbers are missing", line=line.position),
            )
        counted.append(
            (
                line,
                ReceiptLine(
                    order_line=line,
                    quantity=quantity,
                    substitution=substitution,
                    missing_units=missing,
                    missing_reason=why[:200],
                ),
                units,
            )
        )
    if not counted:
        raise InputError("lines", msg("Nothing was counted"), value=0, limit=1)
    return counted


def _refuse_known(units: Sequence[UnitEntry], counted: Counted) -> None:
    """Refuse serials and UUIDs that are twice in this delivery or were ever here before."""
    refuse_duplicates([unit.serial for unit in units])
    refuse_duplicate_uuids(units)
    here = Asset.objects.exclude(status=AssetStatus.VOIDED)
    for line, _receipt, entries in counted:
        positions = {fold(unit.serial): n for n, unit in enumerate(entries, 1)}
        found = here.filter(
            folded_manufacturer=fold(line.manufacturer), folded_serial__in=positions
        ).first()
        if found is not None:
            raise InputError(
                "units",
                msg(
                    "Line %(line)s: serial number %(serial)s, at position %(position)s, was received before, on "
                    "%(day)s",
                    line=line.position,
                    serial=found.serial,
                    position=positions[found.folded_serial],
                    day=found.received_on.isoformat(),
                ),
                value=found.serial,
            )
        uuids = {key: n for n, unit in enumerate(entries, 1) if (key := normal_uuid(unit.uuid))}
        found = here.filter(uuid__in=uuids).first() if uuids else None
        if found is not None:
            position = uuids[found.uuid or ""]
            raise InputError(
                "units",
                msg(
                    "Line %(line)s: device UUID %(uuid)s, at position %(position)s (%(serial)s), belongs to unit "
                    "%(other)s, received on %(day)s",
                    line=line.position,
                    uuid=entries[position - 1].uuid.strip(),
                    position=position,
                    serial=entries[position - 1].serial,
                    other=found.serial,
                    day=found.received_on.isoformat(),
                ),
                value=entries[position - 1].uuid,
            )


def normal_uuid(text: str) -> str | None:
    """A device UUID for storage and comparison; None when there is none."""
    cleaned = fold(text)
    return cleaned or None


def _make_assets(
    delivery: Delivery,
    receipt: ReceiptLine,
    line: OrderLine,
    units: Sequence[UnitEntry],
    *,
    by: User,
) -> list[Asset]:
    made: list[Asset] = []
    nodes: dict[str, Asset] = {}
    common: dict[str, Any] = {
        "manufacturer": line.manufacturer,
        "folded_manufacturer": fold(line.manufacturer),
        "model": receipt.substitution.description if receipt.substitution else line.description,
        "receipt_line": receipt,
        "request_id": line.request_id,
        "received_on": delivery.arrived_on,
        "created_by": by,
    }
    # Where it goes by the order, until somebody says the rack; a card in a server is where its server is.
    site = "" if line.order.site is None else line.order.site.name
    carries = line.accelerators_per_item > 0
    for unit in units:
        node = None
        if carries and unit.node_serial:
            node = nodes.get(fold(unit.node_serial))
            if node is None:
                node = _node(unit.node_serial, {**common, "site": site})
                nodes[fold(unit.node_serial)] = node
                made.append(node)
        made.append(
            Asset.objects.create(
                kind=AssetKind.ACCELERATOR if carries else AssetKind.OTHER,
                serial=unit.serial,
                folded_serial=fold(unit.serial),
                uuid=normal_uuid(unit.uuid),
                accelerator_slug=line.accelerator_slug,
                parent=node,
                slot=unit.slot,
                site="" if node else site,
                **common,
            )
        )
    return made


def _node(serial: str, common: Mapping[str, Any]) -> Asset:
    try:
        with transaction.atomic():
            return Asset.objects.create(
                kind=AssetKind.NODE, serial=serial, folded_serial=fold(serial), **common
            )
    except IntegrityError:
        raise InputError(
            "units",
            msg("Server serial number %(serial)s was received before", serial=serial),
            value=serial,
        ) from None


@transaction.atomic
def turn_away_delivery(
    *, delivery_id: int, reason: str, by: User, version: int | None = None
) -> Delivery:
    """Refuse an announced delivery at the dock; it does not count as received."""
    delivery: Delivery = take(rows(), delivery_id, action="turn_away", by=by, version=version)
    delivery.reason = need_reason(reason)
    delivery.save(update_fields=["reason"])
    move(
        delivery, DeliveryStatus.REJECTED, by=by, action="delivery.turned_away",
        reason=delivery.reason,
    )  # fmt: skip
    return delivery


@transaction.atomic
def reverse_delivery(
    *, delivery_id: int, reason: str, by: User, version: int | None = None
) -> Delivery:
    """Undo a posted delivery of which nothing was installed; its assets are voided, their serials free again.

    Raises NotPermitted, InvalidTransition (units installed, or invoiced goods or milestones rest on it) or InputError.
    """
    order_id = Delivery.objects.values_list("order_id", flat=True).get(pk=delivery_id)
    order = PurchaseOrder.objects.select_for_update().get(pk=order_id)
    delivery: Delivery = take(rows(), delivery_id, action="reverse", by=by, version=version)
    delivery.reason = need_reason(reason)
    assets = list(
        Asset.objects.select_for_update().filter(receipt_line__delivery=delivery).order_by("pk")
    )
    if any(asset.status != AssetStatus.RECEIVED for asset in assets):
        raise InvalidTransition(msg("Units of this delivery were installed: it cannot be reversed"))
    invoiced = order.lines.filter(
        receipts__delivery=delivery,
        invoice_lines__invoice__status__in=["matched", "approved", "paid"],
    )
    if invoiced.exists():
        raise InvalidTransition(msg("Goods of this delivery are on a matched invoice"))
    for asset in assets:
        move(asset, AssetStatus.VOIDED, by=by, action="asset.voided", reason=delivery.reason)
        Asset.objects.filter(pk=asset.pk).update(uuid=None)
    delivery.save(update_fields=["reason"])
    move(
        delivery, DeliveryStatus.REVERSED, by=by, action="delivery.reversed", reason=delivery.reason
    )
    require_invoiced_covered(order)
    touch(order)
    return delivery
