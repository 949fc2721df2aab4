"""Returns: drafted on a failure, filed with locked evidence, until the replacement has burned in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date

from django.db import IntegrityError, transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from core.organisation import quarter_at, today
from core.sequences import next_number
from procurement.models import Asset, BurnInRun, EvidenceFile, Rma
from procurement.models.rmas import ClaimBasis, Outcome
from procurement.serials import UnitEntry, fold
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.warranties import is_covered, take_over_warranty
from procurement.states import OPEN_RMA, AssetStatus, BurnInStatus, RmaStatus


def draft_rma(
    asset: Asset, *, fault: str, fault_on: date, run: BurnInRun | None, by: User | None
) -> Rma:
    """A draft RMA of a defective unit; the open one when there is one. The unit is locked by the caller."""
    existing = asset.rmas.filter(status__in=OPEN_RMA).first()
    if existing is not None:
        return existing
    if asset.receipt_line is None:
        raise InputError("asset", msg("%(serial)s came with no delivery", serial=asset.serial))
    year = quarter_at().year
    rma = Rma.objects.create(
        number=f"RMA-{year}-{next_number(f'rma:{year}'):04d}",
        asset=asset,
        vendor=asset.receipt_line.delivery.vendor,
        run=run,
        fault=fault,
        fault_on=fault_on,
        created_by=by,
    )
    files = EvidenceFile.objects.filter(verdicts__asset=asset).distinct()
    rma.evidence.set(files)
    record("rma.drafted", on=rma, by=by, serial=asset.serial, fault=fault, files=files.count())
    return rma


def _take(rma_id: int, *, action: str, by: User | None, version: int | None = None) -> Rma:
    """The RMA with its unit locked first: runs and deliveries lock units too."""
    asset_id = Rma.objects.values_list("asset_id", flat=True).get(pk=rma_id)
    asset = (
        Asset.objects.select_for_update(of=("self",))
        .select_related("request", "receipt_line__delivery", "parent")
        .get(pk=asset_id)
    )
    rma = take(Rma.objects.select_related("vendor"), rma_id, action=action, by=by, version=version)
    rma.asset = asset
    return rma


@transaction.atomic
def attach_evidence(*, rma_id: int, evidence_ids: Sequence[int], by: User) -> Rma:
    """Add evidence files of the unit's delivery to a draft."""
    rma = _take(rma_id, action="file_rma", by=by)
    receipt = rma.asset.receipt_line
    files = list(
        EvidenceFile.objects.filter(
            pk__in=evidence_ids, delivery=receipt.delivery if receipt else None
        )
    )
    if len(files) != len(set(evidence_ids)):
        raise InputError("evidence_ids", msg("A file is not evidence of this unit's delivery"))
    rma.evidence.add(*files)
    touch(rma)
    record("rma.evidence_attached", on=rma, by=by, files=[file.sha256 for file in files])
    return rma


@transaction.atomic
def file_rma(*, rma_id: int, by: User, reason: str = "", version: int | None = None) -> Rma:
    """File the claim: evidence is locked and its bundle hashed. The claim must stand on the day of the fault.

    A denied claim may be filed again (a dispute), with a reason.
    """
    rma = _take(rma_id, action="file_rma", by=by, version=version)
    if rma.status == RmaStatus.DENIED:
        reason = need_reason(reason)
    asset = rma.asset
    if asset.in_service_at is None:
        rma.basis = ClaimBasis.NOT_ACCEPTED
    elif is_covered(asset, rma.fault_on):
        rma.basis = ClaimBasis.WARRANTY
    else:
        raise InvalidTransition(
            msg(
                "%(serial)s was under no warranty on the day of the fault, %(day)s",
                serial=asset.serial,
                day=rma.fault_on.isoformat(),
            )
        )
    files = list(rma.evidence.order_by("pk"))
    if not files:
        raise InputError(
            "evidence", msg("Attach evidence before you file the claim"), value=0, limit=1
        )
    now = timezone.now()
    EvidenceFile.objects.filter(pk__in=[f.pk for f in files], locked_at=None).update(locked_at=now)
    rma.bundle_sha256 = hashlib.sha256(
        "".join(sorted(f.sha256 for f in files)).encode()
    ).hexdigest()
    rma.filed_at = now
    rma.save(update_fields=["basis", "bundle_sha256", "filed_at"])
    move(
        rma, RmaStatus.FILED, by=by, action="rma.filed", reason=reason, basis=rma.basis,
        bundle=rma.bundle_sha256,
    )  # fmt: skip
    return rma


@transaction.atomic
def authorise_rma(
    *, rma_id: int, vendor_number: str, by: User, answer: str = "", version: int | None = None
) -> Rma:
    """The vendor agreed, under its own number."""
    rma = _take(rma_id, action="authorise_rma", by=by, version=version)
    if not vendor_number.strip():
        raise InputError("vendor_number", msg("Note the vendor's RMA number"))
    rma.vendor_number, rma.vendor_answer = vendor_number.strip()[:60], answer
    rma.save(update_fields=["vendor_number", "vendor_answer"])
    move(rma, RmaStatus.AUTHORISED, by=by, action="rma.authorised", vendor_number=rma.vendor_number)
    return rma


@transaction.atomic
def deny_rma(*, rma_id: int, reason: str, by: User, version: int | None = None) -> Rma:
    """The vendor refused; the reason is its own."""
    rma = _take(rma_id, action="deny_rma", by=by, version=version)
    rma.vendor_answer = need_reason(reason)
    rma.save(update_fields=["vendor_answer"])
    move(rma, RmaStatus.DENIED, by=by, action="rma.denied", reason=rma.vendor_answer)
    return rma


@transaction.atomic
def ship_rma(*, rma_id: int, tracking: str, by: User, version: int | None = None) -> Rma:
    """The unit is on its way to the vendor."""
    rma = _take(rma_id, action="ship_rma", by=by, version=version)
    rma.tracking, rma.shipped_at = tracking.strip()[:80], timezone.now()
    rma.save(update_fields=["tracking", "shipped_at"])
    move(rma.asset, AssetStatus.AT_VENDOR, by=by, action="asset.sent_to_vendor")
    move(rma, RmaStatus.SHIPPED, by=by, action="rma.shipped", tracking=rma.tracking)
    return rma


@transaction.atomic
def receive_replacement(
    *, rma_id: int, unit: UnitEntry, by: User, received_on: date | None = None,
    version: int | None = None,
) -> Rma:  # fmt: skip
    """A replacement came (also in advance of the return): a new asset in the old one's place, to burn in itself."""
    rma = _take(rma_id, action="receive_replacement", by=by, version=version)
    original = rma.asset
    uuid = fold(unit.uuid) or None
    if not fold(unit.serial):
        raise InputError("serial", msg("The replacement needs a serial number"))
    try:
        with transaction.atomic():
            successor = Asset.objects.create(
                kind=original.kind,
                manufacturer=original.manufacturer,
                folded_manufacturer=original.folded_manufacturer,
                serial=unit.serial.strip(),
                folded_serial=fold(unit.serial),
                uuid=uuid,
                model=original.model,
                accelerator_slug=original.accelerator_slug,
                receipt_line=original.receipt_line,
                request=original.request,
                parent=original.parent,
                slot=unit.slot or original.slot,
                received_on=received_on or today(),
                replaces=original,
                created_by=by,
            )
    except IntegrityError:
        raise InputError(
            "serial",
            msg("Serial number %(serial)s was received before", serial=unit.serial),
            value=unit.serial,
        ) from None
    take_over_warranty(successor, original)
    record("asset.received", on=successor, by=by, replaces=original.serial, rma=rma.number)
    original.out_of_service_at = original.out_of_service_at or timezone.now()
    original.save(update_fields=["out_of_service_at"])
    move(original, AssetStatus.REPLACED, by=by, action="asset.replaced", successor=successor.serial)
    rma.replacement, rma.outcome = successor, Outcome.REPLACED
    rma.save(update_fields=["replacement", "outcome"])
    move(
        rma, RmaStatus.REPLACEMENT_IN, by=by, action="rma.replacement_received",
        serial=successor.serial,
    )  # fmt: skip
    return rma


@transaction.atomic
def receive_repaired(
    *, rma_id: int, outcome: str, note: str, by: User, version: int | None = None
) -> Rma:
    """The same unit came back, repaired or with no fault found; it burns in again before it serves."""
    rma = _take(rma_id, action="receive_repaired", by=by, version=version)
    if outcome not in (Outcome.REPAIRED, Outcome.NO_FAULT):
        raise InputError(
            "outcome",
            msg("A unit that comes back was repaired, or no fault was found"),
            value=outcome,
        )
    text = need_reason(note, field="note")
    move(rma.asset, AssetStatus.INSTALLED, by=by, action="asset.came_back", reason=text)
    _resolve(rma, outcome, by=by, reason=text)
    return rma


@transaction.atomic
def credit_rma(*, rma_id: int, note: str, by: User, version: int | None = None) -> Rma:
    """The vendor pays instead of replacing; the unit is written off."""
    rma = _take(rma_id, action="credit_rma", by=by, version=version)
    text = need_reason(note, field="note")
    asset = rma.asset
    asset.out_of_service_at = asset.out_of_service_at or timezone.now()
    asset.save(update_fields=["out_of_service_at"])
    move(asset, AssetStatus.RETIRED, by=by, action="asset.written_off", reason=text)
    _resolve(rma, Outcome.CREDITED, by=by, reason=text)
    return rma


def _resolve(rma: Rma, outcome: str, *, by: User | None, reason: str = "") -> None:
    rma.outcome, rma.resolved_at = outcome, timezone.now()
    rma.save(update_fields=["outcome", "resolved_at"])
    move(rma, RmaStatus.RESOLVED, by=by, action="rma.resolved", reason=reason, outcome=outcome)


def resolve_by_burn_in(run: BurnInRun) -> None:
    """The system's step: a replacement that passed its burn-in ends the RMA it came by."""
    rma = Rma.objects.filter(replacement=run.asset, status=RmaStatus.REPLACEMENT_IN).first()
    if rma is not None and run.status == BurnInStatus.PASSED:
        _resolve(rma, Outcome.REPLACED, by=None)


@transaction.atomic
def withdraw_rma(*, rma_id: int, reason: str, by: User, version: int | None = None) -> Rma:
    """Drop a draft or denied claim. A unit that was never accepted may be burnt in again."""
    rma = _take(rma_id, action="withdraw_rma", by=by, version=version)
    text = need_reason(reason)
    if rma.asset.status == AssetStatus.DEFECTIVE:
        move(rma.asset, AssetStatus.INSTALLED, by=by, action="asset.claim_withdrawn", reason=text)
    move(rma, RmaStatus.WITHDRAWN, by=by, action="rma.withdrawn", reason=text)
    return rma
