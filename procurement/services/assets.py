"""Assets: put in place, moved, found faulty, retired."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from uuid import uuid4

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from core.organisation import today
from procurement.models import Asset, Rma
from procurement.services.moves import move, need_reason, take
from procurement.services.rmas import draft_rma
from procurement.services.warranties import start_warranties
from procurement.states import OPEN_RMA, AssetStatus, BurnInStatus
from procurement.warranty_rules import StartTrigger


@transaction.atomic
def install_assets(
    *, asset_ids: Sequence[int], site: str, by: User, rack: str = "", rack_unit: str = ""
) -> list[Asset]:
    """Put units into place, all of them or none. Warranties that run from power-on start today."""
    if not asset_ids:
        raise InputError("asset_ids", msg("Choose at least one unit"), value=0, limit=1)
    if not site.strip():
        raise InputError("site", msg("Say where the units are"))
    batch = uuid4()
    installed = []
    for pk in sorted(set(asset_ids)):
        asset = take(Asset.objects.select_related("request"), pk, action="install", by=by)
        asset.site, asset.rack, asset.rack_unit = site.strip()[:80], rack[:40], rack_unit[:20]
        asset.save(update_fields=["site", "rack", "rack_unit"])
        move(
            asset, AssetStatus.INSTALLED, by=by, action="asset.installed", batch=batch,
            site=asset.site, rack=asset.rack, rack_unit=asset.rack_unit,
        )  # fmt: skip
        installed.append(asset)
    start_warranties(installed, StartTrigger.POWER_ON, today())
    return installed


@transaction.atomic
def report_fault(
    *, asset_id: int, fault: str, by: User, fault_on: date | None = None, version: int | None = None
) -> Rma:
    """Take a faulty unit out of service and draft its RMA."""
    asset = take(
        Asset.objects.select_related("request", "receipt_line__delivery__vendor"), asset_id,
        action="report_fault", by=by, version=version,
    )  # fmt: skip
    text = need_reason(fault, field="fault")
    if asset.runs.filter(status__in=[BurnInStatus.RUNNING, BurnInStatus.INTERRUPTED]).exists():
        raise InvalidTransition(
            msg("%(serial)s is burning in: fail its run instead", serial=asset.serial)
        )
    day = fault_on or today()
    if day > today() or day < asset.received_on:
        raise InputError(
            "fault_on",
            msg("The day of the fault is before the receipt or ahead"),
            value=day,
            limit=today(),
        )
    if asset.in_service_at is not None:
        asset.out_of_service_at = timezone.now()
        asset.save(update_fields=["out_of_service_at"])
    move(asset, AssetStatus.DEFECTIVE, by=by, action="asset.found_defective", reason=text)
    return draft_rma(asset, fault=text, fault_on=day, run=None, by=by)


@transaction.atomic
def retire_asset(*, asset_id: int, reason: str, by: User, version: int | None = None) -> Asset:
    """Take a unit out of the fleet for good."""
    asset = take(
        Asset.objects.select_related("request"), asset_id, action="retire", by=by, version=version
    )
    text = need_reason(reason)
    if asset.rmas.filter(status__in=OPEN_RMA).exists():
        raise InputError("reason", msg("An RMA of this unit is open"))
    asset.out_of_service_at = asset.out_of_service_at or timezone.now()
    asset.save(update_fields=["out_of_service_at"])
    move(asset, AssetStatus.RETIRED, by=by, action="asset.retired", reason=text)
    return asset


def name_device(asset: Asset, uuid: str, *, evidence_sha256: str) -> None:
    """Note the device UUID that evidence gave for a serial number; the system does it while reading a file."""
    asset.uuid = uuid
    asset.save(update_fields=["uuid"])
    record("asset.device_named", on=asset, by=None, uuid=uuid, evidence=evidence_sha256)
