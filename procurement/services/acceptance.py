"""Acceptance: units that passed, proposed by one person and signed by another; payment follows from nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from django.db import IntegrityError, transaction
from django.utils import timezone

from catalog.reference import accelerator_slug
from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition, StaleData
from core.files import is_intact
from core.messages import msg
from core.models import User
from core.organisation import quarter_at, today
from core.outbox import notify
from core.sequences import next_number
from planning.models import CapacityRequest
from planning.services.calibration import AcceptanceBenchmark, record_benchmark
from planning.services.requests import record_fulfilment
from planning.states import RequestStatus
from procurement.models import (
    Acceptance,
    AcceptanceUnit,
    Asset,
    BurnInRun,
    Delivery,
    EvidenceFile,
)
from procurement.models.burn_in import ItemResult, Weight
from procurement.selectors.progress import accepted_accelerators
from procurement.selectors.promised import promised_against_measured
from procurement.services.certificates import request_certificates
from procurement.services.measurements import outcome_reference
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.run_proof import lock_delivery, open_points
from procurement.services.warranties import start_warranties
from procurement.states import GONE_ASSET, AcceptanceStatus, AssetStatus, BurnInStatus
from procurement.warranty_rules import StartTrigger


class EvidenceAltered(DomainError):
    """The bytes on disk are not those that were uploaded."""

    code = "evidence_altered"


def _candidates(delivery: Delivery) -> list[Asset]:
    """Units of the delivery that are neither in service nor gone."""
    return list(
        Asset.objects.select_for_update(of=("self",))
        .filter(receipt_line__delivery=delivery)
        .exclude(status__in=[*GONE_ASSET, AssetStatus.IN_SERVICE])
        .order_by("pk")
    )


def _passed_run(asset: Asset) -> BurnInRun | None:
    """The unit's latest run, when it passed."""
    run = asset.runs.order_by("-attempt").first()
    return run if run is not None and run.status == BurnInStatus.PASSED else None


def _files(runs: list[BurnInRun]) -> list[EvidenceFile]:
    """Evidence that the runs rest on."""
    assets = [run.asset_id for run in runs]
    return list(
        EvidenceFile.objects.filter(
            verdicts__asset__in=assets, delivery__in={run.delivery_id for run in runs}
        )
        .select_related("file")
        .distinct()
        .order_by("pk")
    )


def _content_hash(acceptance: Acceptance) -> str:
    """SHA-256 of the units, their runs and results, and the hashes of the evidence."""
    units = []
    for unit in acceptance.units.select_related("asset", "run").order_by("asset_id"):
        results = (
            list(
                unit.run.items.order_by("item__position").values_list(
                    "item__code", "result", "note"
                )
            )
            if unit.run
            else []
        )
        units.append(
            [unit.asset.folded_serial, unit.included, unit.reason, unit.run_id,
             unit.run.covered_seconds if unit.run else None, [list(row) for row in results]]
        )  # fmt: skip
    body = {"units": units, "evidence": [row["sha256"] for row in acceptance.evidence_index]}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@transaction.atomic
def propose_acceptance(
    *, delivery_id: int, by: User, exclusions: Mapping[int, str] | None = None, reason: str = ""
) -> Acceptance:
    """Propose to accept every unit whose latest run passed. Each other unit is left out with its reason.

    `exclusions` maps asset id to a reason and may also leave out units that passed; `reason` stands for all that
    have none of their own. Raises InvalidTransition when no unit passed or another proposal waits.
    """
    delivery = lock_delivery(delivery_id, action="propose_acceptance", by=by)
    given = {pk: text.strip() for pk, text in (exclusions or {}).items()}
    assets = _candidates(delivery)
    unknown = set(given) - {asset.pk for asset in assets}
    if unknown:
        raise InputError(
            "exclusions", msg("A unit is not open in this delivery"), value=sorted(unknown)
        )
    units: list[AcceptanceUnit] = []
    runs: list[BurnInRun] = []
    for asset in assets:
        run = _passed_run(asset) if asset.status == AssetStatus.BURNED_IN else None
        if run is not None and asset.pk not in given:
            runs.append(run)
            units.append(AcceptanceUnit(asset=asset, run=run, included=True))
            continue
        why = given.get(asset.pk) or reason.strip()
        if not why:
            raise InputError(
                "reason",
                msg("Say why %(serial)s is left out", serial=asset.serial),
                value=asset.serial,
            )
        units.append(AcceptanceUnit(asset=asset, run=run, included=False, reason=why[:300]))
    if not runs:
        raise InvalidTransition(msg("No unit of this delivery has passed its burn-in"))
    year = quarter_at().year
    try:
        with transaction.atomic():
            acceptance = Acceptance.objects.create(
                number=f"AC-{year}-{next_number(f'acceptance:{year}'):04d}",
                delivery=delivery,
                proposed_by=by,
                created_by=by,
                evidence_index=[
                    {"id": file.pk, "name": file.file.name, "sha256": file.sha256,
                     "format": file.format, "verdict": file.verdict}
                    for file in _files(runs)
                ],
            )  # fmt: skip
    except IntegrityError:
        raise InvalidTransition(msg("A proposal for this delivery waits for signature")) from None
    for unit in units:
        unit.acceptance = acceptance
    try:
        with transaction.atomic():
            AcceptanceUnit.objects.bulk_create(units)
    except IntegrityError:
        raise InvalidTransition(msg("A run was accepted before")) from None
    acceptance.content_hash = _content_hash(acceptance)
    acceptance.save(update_fields=["content_hash"])
    record(
        "acceptance.proposed", on=acceptance, by=by,
        included=[unit.asset.serial for unit in units if unit.included],
        excluded={unit.asset.serial: unit.reason for unit in units if not unit.included},
        content_hash=acceptance.content_hash,
    )  # fmt: skip
    return acceptance


def _take(acceptance_id: int, *, action: str, by: User, version: int | None) -> Acceptance:
    delivery_id = Acceptance.objects.values_list("delivery_id", flat=True).get(pk=acceptance_id)
    delivery = Delivery.objects.select_for_update().get(pk=delivery_id)
    acceptance = take(
        Acceptance.objects.select_related("delivery"), acceptance_id, action=action, by=by,
        version=version,
    )  # fmt: skip
    acceptance.delivery = delivery
    return acceptance


@transaction.atomic
def sign_acceptance(*, acceptance_id: int, by: User, version: int | None = None) -> Acceptance:
    """Sign as the second person: units go into service, warranties by acceptance start, the quantity is payable.

    Everything the proposal rests on is checked again under the locks. Raises NotPermitted, StaleData (something
    changed since the draft), InvalidTransition (an item is open after all) or EvidenceAltered.
    """
    acceptance = _take(acceptance_id, action="sign_acceptance", by=by, version=version)
    if _content_hash(acceptance) != acceptance.content_hash:
        raise StaleData(msg("Results changed since the proposal: withdraw it and propose again"))
    units = list(acceptance.units.select_related("run", "asset").order_by("asset_id"))
    included = [unit for unit in units if unit.included]
    assets = {
        asset.pk: asset
        for asset in Asset.objects.select_for_update(of=("self",))
        .filter(pk__in=[unit.asset_id for unit in included])
        .select_related("request")
        .order_by("pk")
    }
    for unit in included:
        _require_proven(unit, assets[unit.asset_id])
    files = list(
        EvidenceFile.objects.filter(
            pk__in=[row["id"] for row in acceptance.evidence_index]
        ).select_related("file")
    )
    for file in files:
        if file.flags and _is_twin(file):
            raise InvalidTransition(
                msg(
                    "%(name)s was uploaded for another server too: it proves neither",
                    name=str(file),
                )
            )
        if not is_intact(file.file):
            raise EvidenceAltered(
                msg("The content of %(name)s is not what was uploaded", name=str(file))
            )
    now = timezone.now()
    EvidenceFile.objects.filter(pk__in=[f.pk for f in files], locked_at=None).update(locked_at=now)
    for asset in assets.values():
        asset.in_service_at = asset.in_service_at or now
        asset.out_of_service_at = None
        asset.save(update_fields=["in_service_at", "out_of_service_at"])
        move(
            asset, AssetStatus.IN_SERVICE, by=by, action="asset.accepted",
            certificate=acceptance.number,
        )  # fmt: skip
    start_warranties(assets.values(), StartTrigger.ACCEPTANCE, today())
    acceptance.decided_by, acceptance.decided_at = by, now
    acceptance.save(update_fields=["decided_by", "decided_at"])
    everything = len(included) == len(units)
    move(
        acceptance,
        AcceptanceStatus.ACCEPTED if everything else AcceptanceStatus.PART_ACCEPTED,
        by=by,
        action="acceptance.signed",
        accepted=len(included),
        excluded=len(units) - len(included),
    )
    touch(acceptance.delivery)
    _teach(acceptance, included)
    request_certificates(acceptance, by=by)
    _tell_requests(acceptance, {asset.request_id for asset in assets.values()})
    return acceptance


def _teach(acceptance: Acceptance, included: Sequence[AcceptanceUnit]) -> None:
    """Give the calibration each promised benchmark with the median of the accepted units, once for the acceptance."""
    taken = [pk for u in included for pk in (u.asset_id, u.asset.parent_id) if pk is not None]
    for result in promised_against_measured(acceptance.delivery, assets=taken):
        measured, slug = result.median_measured, accelerator_slug(result.line.accelerator_slug)
        if measured is None or slug is None:
            continue
        record_benchmark(
            AcceptanceBenchmark(
                reference=outcome_reference(acceptance, result.line.position, result.promise),
                accelerator_slug=slug,
                promised=float(result.alike[0].promised),
                measured=float(measured),
                tolerance=float(result.promise.tolerance_rate),
                unit=result.promise.unit,
                measured_at=max(u.source.measured_at for u in result.alike if u.source),
                vendor=acceptance.delivery.vendor.name,
            )
        )


def _require_proven(unit: AcceptanceUnit, asset: Asset) -> None:
    """The unit's own, latest run passed, covers the hours and has nothing open."""
    run = unit.run
    if run is None or run.asset_id != asset.pk or asset.status != AssetStatus.BURNED_IN:
        raise StaleData(msg("%(serial)s is no longer as it was proposed", serial=asset.serial))
    latest = _passed_run(asset)
    if latest is None or latest.pk != run.pk:
        raise StaleData(msg("%(serial)s has a newer run", serial=asset.serial))
    failed = run.items.filter(result=ItemResult.FAIL, item__weight=Weight.BLOCKING).exists()
    if failed or open_points(run):
        raise InvalidTransition(
            msg("%(serial)s has open items: it cannot be accepted", serial=asset.serial)
        )


def _is_twin(file: EvidenceFile) -> bool:
    return EvidenceFile.objects.filter(sha256=file.sha256).exclude(pk=file.pk).exists()


def _tell_requests(acceptance: Acceptance, request_ids: set[int | None]) -> None:
    """Report the accepted count to each request, and tell its requester."""
    requests = CapacityRequest.objects.filter(
        pk__in=[pk for pk in request_ids if pk is not None]
    ).select_related("requester")
    for request in requests.order_by("pk"):
        count = accepted_accelerators(request.pk)
        if request.status == RequestStatus.SOURCING:
            record_fulfilment(request_id=request.pk, accepted=count, by=None)
        notify(
            [request.requester],
            "acceptance.signed",
            on=acceptance,
            message=msg(
                "%(n)s accelerators are accepted for %(request)s", n=count, request=str(request)
            ),
            url=f"/procurement/threads/{request.pk}/",
            revision=str(request.pk),
        )


def _void_units(acceptance: Acceptance) -> None:
    acceptance.units.update(void=True)


@transaction.atomic
def refuse_acceptance(
    *, acceptance_id: int, reason: str, by: User, version: int | None = None
) -> Acceptance:
    """Decide against the proposal; the units stay as they are and may be proposed again."""
    acceptance = _take(acceptance_id, action="refuse_acceptance", by=by, version=version)
    return _end(acceptance, AcceptanceStatus.REFUSED, "acceptance.refused", reason, by)


@transaction.atomic
def withdraw_acceptance(
    *, acceptance_id: int, reason: str, by: User, version: int | None = None
) -> Acceptance:
    """Take a proposal back before it is signed."""
    acceptance = _take(acceptance_id, action="withdraw_acceptance", by=by, version=version)
    return _end(acceptance, AcceptanceStatus.WITHDRAWN, "acceptance.withdrawn", reason, by)


def _end(acceptance: Acceptance, to: str, action: str, reason: str, by: User) -> Acceptance:
    acceptance.reason = need_reason(reason)
    _void_units(acceptance)  # before the decision: with it the database freezes them
    acceptance.decided_by, acceptance.decided_at = by, timezone.now()
    acceptance.save(update_fields=["reason", "decided_by", "decided_at"])
    move(acceptance, to, by=by, action=action, reason=acceptance.reason)
    return acceptance
