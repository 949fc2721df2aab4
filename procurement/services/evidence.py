"""Evidence files: stored with their hash, read in the background, bound to units by serial number or UUID."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from catalog.models import Accelerator
from core.audit import record
from core.errors import DomainError, InputError
from core.files import EVIDENCE_TYPES, store_upload
from core.jobs import submit
from core.messages import Message, msg
from core.models import User
from core.organisation import day_start
from procurement.coverage import BROKEN_CLOCK, covered_seconds
from procurement.evidence.bmc_log import FORMATS as OF_SERVER
from procurement.evidence.isolated import MEMORY_BYTES, read_isolated
from procurement.evidence.policy import default_policy
from procurement.evidence.types import DeviceEvidence, Evidence, Reason, Severity, Verdict
from procurement.evidence.verdict import worst
from procurement.identity import (
    MODEL_DIFFERS,
    contradicts,
    expected_identity,
    ordered_name,
)
from procurement.log_times import seconds_since_arrival, time_doubts
from procurement.models import Asset, Delivery, EvidenceFile, UnitVerdict
from procurement.models.assets import AssetKind
from procurement.models.evidence import EvidenceState, VerdictChoice
from procurement.models.quotes import LineKind
from procurement.serials import fold
from procurement.services.assets import name_device
from procurement.services.measurements import measure, tell_withdrawn
from procurement.services.run_proof import OPEN_RUN, lock_delivery, open_runs, refresh_runs
from procurement.states import DeliveryStatus

# Kept, hashed and locked like every file, but for people to look at: no tool wrote them.
LOOKED_AT = {"image/png": "photo", "image/jpeg": "photo", "application/pdf": "document"}
READ_TASK = "procurement.tasks.read_evidence_file"


class SameFile(DomainError):
    """The same bytes are here already, for the same server."""

    code = "same_file"


@transaction.atomic
def upload_evidence(
    *, delivery_id: int, upload: File[Any], by: User, node_id: int | None = None
) -> EvidenceFile:
    """Keep a file and queue its reading. Raises SameFile (409) or InputError (type, size, another delivery's server).

    The same file for another server or delivery is kept and flagged on both: one log does not prove two servers.
    """
    delivery = lock_delivery(delivery_id, action="upload_evidence", by=by)
    node = None
    if node_id is not None:
        node = Asset.objects.filter(
            pk=node_id, kind=AssetKind.NODE, receipt_line__delivery=delivery
        ).first()
        if node is None:
            raise InputError("node_id", msg("This server is not of this delivery"), value=node_id)
    stored = store_upload(upload, by=by, allowed=EVIDENCE_TYPES, field="file")
    try:
        with transaction.atomic():
            evidence = EvidenceFile.objects.create(
                delivery=delivery, node=node, file=stored, sha256=stored.sha256, created_by=by
            )
    except IntegrityError:
        raise SameFile(msg("%(name)s was uploaded for this already", name=stored.name)) from None
    record(
        "evidence.uploaded", on=evidence, by=by, name=stored.name, sha256=stored.sha256,
        size=stored.size, delivery=delivery.note_number,
    )  # fmt: skip
    if stored.content_type in LOOKED_AT:
        evidence.state, evidence.read_at = EvidenceState.READ, timezone.now()
        evidence.format = LOOKED_AT[stored.content_type]
        evidence.verdict = VerdictChoice.NOT_APPLICABLE
        evidence.save(update_fields=["state", "read_at", "format", "verdict"])
        _flag_twins(evidence)
        return evidence
    if delivery.status != DeliveryStatus.POSTED:
        raise InputError(
            "file", msg("Before the receipt only photos and documents are kept"), value=stored.name
        )
    evidence.job = submit(READ_TASK, evidence.pk, key=f"evidence:{evidence.pk}", owner=by)
    evidence.save(update_fields=["job"])
    return evidence


def context_for(delivery: Delivery) -> dict[str, Any]:
    """What readers judge by, as JSON: the policy that the order pinned, what was ordered, the window of the burn-in."""
    line = (
        delivery.order.lines.filter(accelerators_per_item__gt=0, receipts__delivery=delivery)
        .order_by("position")
        .first()
    )
    order: dict[str, Any] = {"condition": "new", "tell_unknown": True}
    if line is not None:
        known = Accelerator.objects.filter(slug=line.accelerator_slug).first()
        if known is not None:
            order["ordered_model"] = known.name
        order |= expected_identity(line.accelerator_slug)
        order["vbios_seen"] = vbios_seen(line.accelerator_slug, before=delivery)
        if line.kind == LineKind.ACCELERATOR and line.part_number:
            order["expected_part_number"] = line.part_number
    runs = delivery.runs.filter(status__in=OPEN_RUN, required_seconds__gt=0)
    first = runs.order_by("clock_from").first()
    if first is not None:
        end = first.clock_from + timedelta(seconds=first.required_seconds)
        order |= {"window_start": first.clock_from.isoformat(), "window_end": end.isoformat()}
    agreed = delivery.order.burn_in_hours
    standard = default_policy().require("min_hours")
    return {
        "policy": delivery.order.evidence_policy,
        "policy_used": {"min_hours": agreed} if agreed not in (None, standard) else {},
        "order_context": order,
    }


def vbios_seen(slug: str, *, before: Delivery) -> list[str]:
    """VBIOS versions that cards of this model show in files of earlier deliveries and that are in service, sorted."""
    rows = UnitVerdict.objects.filter(
        asset__accelerator_slug=slug, asset__in_service_at__isnull=False, figures__has_key="vbios"
    ).exclude(evidence__delivery=before)
    return sorted({str(version) for version in rows.values_list("figures__vbios", flat=True)})[:50]


def read_file(*, evidence_id: int, report: Callable[[int, Message], None]) -> EvidenceFile:
    """Read one file, judge it, bind its devices to delivered units, and update the open runs. Safe to repeat."""
    evidence = EvidenceFile.objects.select_related("file", "delivery__order").get(pk=evidence_id)
    report(5, msg("Reading the file"))
    # Outside the transaction: a file of hundreds of MB takes a while. In a child: nothing in it takes this worker down.
    found = read_isolated(
        Path(evidence.file.file.path),
        context=context_for(evidence.delivery),
        memory_bytes=MEMORY_BYTES,
    )
    report(80, msg("Binding devices to serial numbers"))
    with transaction.atomic():
        Delivery.objects.select_for_update().get(pk=evidence.delivery_id)
        evidence = EvidenceFile.objects.select_related("file", "delivery", "node").get(
            pk=evidence_id
        )
        if evidence.locked_at is not None:
            return evidence
        evidence.state = EvidenceState.READ
        evidence.format = found.format
        evidence.verdict = found.verdict.value
        evidence.result = found.to_json()
        evidence.policy_version = found.policy_version
        evidence.reader_version = found.reader_version
        evidence.read_at = timezone.now()
        evidence.save()
        named = _bind(evidence, found)
        if named:
            _bind_again(evidence, named)
        _flag_twins(evidence)
        measure(evidence, found)
        record(
            "evidence.read", on=evidence, by=None, format=found.format, verdict=found.verdict.value,
            devices=len(found.devices), bound=evidence.verdicts.count(),
        )  # fmt: skip
        refresh_runs(open_runs(evidence.delivery))
    return evidence


def arrival(delivery: Delivery) -> datetime | None:
    """The beginning of the day of arrival on the organisation's clock: nothing ran before it."""
    return None if delivery.arrived_on is None else day_start(delivery.arrived_on)


@dataclass
class _Bound:
    asset: Asset
    by: str
    devices: list[DeviceEvidence] = field(default_factory=list)


def _units(delivery: Delivery) -> dict[tuple[str, str], Asset]:
    """Delivered units by ("serial", folded) and ("uuid", folded)."""
    found: dict[tuple[str, str], Asset] = {}
    for asset in Asset.objects.filter(receipt_line__delivery=delivery).exclude(status="voided"):
        found["serial", asset.folded_serial] = asset
        if asset.uuid:
            found["uuid", asset.uuid] = asset
    return found


def _bind(evidence: EvidenceFile, found: Evidence) -> list[Asset]:
    """Write the verdicts of `found` per unit and the flags of the file. Returns units whose UUID became known."""
    units = _units(evidence.delivery)
    bound: dict[int, _Bound] = {}
    named: list[Asset] = []
    doubts = time_doubts(
        found, arrived_on=evidence.delivery.arrived_on, now=evidence.read_at or timezone.now()
    )
    flags: list[Message] = doubts + [
        caution.message for caution in found.cautions if caution.code in BROKEN_CLOCK
    ]
    foreign: list[str] = []
    nameless = 0
    for device in found.devices:
        asset, how = _match(device, units)
        if asset is None:
            identity = device.serial or device.uuid
            if identity is None:
                nameless += 1
            else:
                foreign.append(identity)
            continue
        if evidence.node_id is not None and asset.parent_id not in (None, evidence.node_id):
            flags.append(
                msg("%(serial)s is in another server than this file is for", serial=asset.serial)
            )
            continue
        uuid = fold(device.uuid or "")
        if how == "serial" and uuid:
            taken = Asset.objects.filter(uuid=uuid).exclude(pk=asset.pk).first()
            if taken is not None:
                flags.append(
                    msg(
                        "%(serial)s shows the UUID of %(other)s: one of them was relabelled",
                        serial=asset.serial,
                        other=taken.serial,
                    )
                )
                continue
            if asset.uuid is None:
                name_device(asset, uuid, evidence_sha256=evidence.sha256)
                units["uuid", uuid] = asset
                named.append(asset)
            elif asset.uuid != uuid:
                flags.append(
                    msg(
                        "%(serial)s shows another UUID than the one noted for it",
                        serial=asset.serial,
                    )
                )
                continue
        bound.setdefault(asset.pk, _Bound(asset, how)).devices.append(device)
    if found.format in OF_SERVER:
        if evidence.node is None:
            flags.append(
                msg("The log names no server: upload it for the one that it was read from")
            )
        else:
            bound[evidence.node.pk] = _Bound(evidence.node, "server", [_server_as_device(found)])
    since = seconds_since_arrival(
        found, arrived_at=arrival(evidence.delivery), until=evidence.created_at
    )
    if since is not None and not doubts and evidence.delivery.arrived_on is not None:
        if any(
            since < covered_seconds(found, device)
            for entry in bound.values()
            for device in entry.devices
        ):
            flags.append(
                msg(
                    "Part of the log is older than the arrival on %(arrived)s: of its hours at most %(hours)s count",
                    arrived=evidence.delivery.arrived_on.isoformat(),
                    hours=f"{since // 360 / 10:.1f}",
                )
            )
    for asset, identity in _elsewhere(evidence.delivery, foreign):
        flags.append(
            msg(
                "%(identity)s is a unit of another delivery: %(asset)s, received on %(day)s",
                identity=identity,
                asset=asset.serial,
                day=asset.received_on.isoformat(),
            )
        )
    if foreign:
        flags.append(
            msg(
                "%(n)s devices of the file were not delivered here: %(serials)s",
                n=len(foreign),
                serials=", ".join(foreign[:8]),
            )
        )
    if nameless:
        flags.append(
            msg(
                "%(n)s devices have neither serial number nor UUID: they prove nothing about a unit",
                n=nameless,
            )
        )
    UnitVerdict.objects.filter(evidence=evidence).delete()
    UnitVerdict.objects.bulk_create(
        _verdict(evidence, found, entry, doubts) for entry in bound.values()
    )
    evidence.flags = [flag.to_json() for flag in flags]
    evidence.save(update_fields=["flags"])
    return named


def _server_as_device(found: Evidence) -> DeviceEvidence:
    """What an event log says of the one server that it was read from: its findings are the server's reasons."""
    weight = {Severity.BLOCKING: Verdict.FAIL, Severity.REVIEW: Verdict.WARN}
    reasons = tuple(
        Reason(
            finding.code, finding.message, weight[finding.severity], finding.value, finding.threshold, finding.where
        )
        for finding in found.findings
        if finding.severity in weight
    )  # fmt: skip
    return DeviceEvidence(
        verdict=found.verdict, host=next(iter(found.hosts), None), reasons=reasons
    )


def _elsewhere(delivery: Delivery, identities: list[str]) -> list[tuple[Asset, str]]:
    """Units of other deliveries that bear one of the serial numbers or UUIDs, at most eight."""
    by_name = {fold(identity): identity for identity in identities}
    found = (
        Asset.objects.filter(Q(folded_serial__in=by_name) | Q(uuid__in=by_name))
        .exclude(receipt_line__delivery=delivery)
        .exclude(status="voided")
        .order_by("pk")[:8]
    )
    return [
        (asset, by_name.get(asset.folded_serial) or by_name.get(asset.uuid or "", ""))
        for asset in found
    ]


def _match(device: DeviceEvidence, units: dict[tuple[str, str], Asset]) -> tuple[Asset | None, str]:
    """The unit a device is, by its serial number, else by its UUID; never by its index."""
    if device.serial:
        return units.get(("serial", fold(device.serial))), "serial"
    if device.uuid:
        return units.get(("uuid", fold(device.uuid))), "uuid"
    return None, ""


def _verdict(
    evidence: EvidenceFile, found: Evidence, entry: _Bound, time_against: list[Message]
) -> UnitVerdict:
    verdict = worst(device.verdict for device in entry.devices)
    reasons = [reason.to_json() for device in entry.devices for reason in device.reasons]
    # What concerns the file as a whole (unsafe content, a missing part, a device lost without a name) holds for each
    # of its units: none passes on such a file.
    doubts = [
        finding
        for finding in found.findings
        if finding.severity is Severity.BLOCKING and finding.device is None
    ]
    if found.verdict in (Verdict.REJECT, Verdict.RETEST):
        verdict = worst([verdict, found.verdict])
    elif verdict in (Verdict.PASS, Verdict.WARN):
        review = any(
            finding.severity is Severity.REVIEW and finding.device is None
            for finding in found.findings
        )
        verdict = worst([verdict, found.run_verdict, *([Verdict.WARN] if review else [])])
        if doubts or found.complete is False or found.verdict is Verdict.INCONCLUSIVE:
            verdict = worst([verdict, Verdict.INCONCLUSIVE])
    reasons += [
        {**doubt.to_json(), "rule": doubt.code, "verdict": verdict.value} for doubt in doubts
    ]
    if time_against and verdict in (Verdict.PASS, Verdict.WARN):
        verdict = Verdict.INCONCLUSIVE
    reasons += [
        Reason("log_time", message, Verdict.INCONCLUSIVE).to_json() for message in time_against
    ]
    covered = min(covered_seconds(found, device) for device in entry.devices)
    first = entry.devices[0]
    other = next(
        (d.model for d in entry.devices if contradicts(d.model, entry.asset.accelerator_slug)), None
    )
    if other is not None:
        ordered = ordered_name(entry.asset.accelerator_slug)
        differs = Reason(
            MODEL_DIFFERS,
            msg("%(model)s is not the ordered %(wanted)s.", model=other, wanted=ordered),
            Verdict.INCONCLUSIVE,
        )
        reasons.append({**differs.to_json(), "shown": other, "ordered": ordered})
        verdict = worst([verdict, Verdict.INCONCLUSIVE])
    elsewhen = seconds_since_arrival(
        found, arrived_at=arrival(evidence.delivery), until=evidence.created_at
    )
    if elsewhen is not None and elsewhen < covered:
        covered = elsewhen
    return UnitVerdict(
        evidence=evidence,
        asset=entry.asset,
        bound_by=entry.by,
        verdict=verdict.value,
        reasons=reasons,
        figures={"host": first.host, "index": first.index, **dict(first.figures)},
        covered_seconds=0 if time_against or other is not None else covered,
    )


def _bind_again(evidence: EvidenceFile, named: Iterable[Asset]) -> None:
    """Files read before a UUID was known may speak of its unit after all."""
    others = EvidenceFile.objects.filter(
        delivery=evidence.delivery_id, state=EvidenceState.READ, locked_at=None
    ).exclude(pk=evidence.pk)
    uuids = {asset.uuid for asset in named}
    for other in others.select_related("delivery", "node", "file"):
        if other.result and uuids & {fold(gpu.get("uuid") or "") for gpu in other.result["gpus"]}:
            again = Evidence.from_json(other.result)
            _bind(other, again)
            _flag_twins(other)
            measure(other, again)


def _flag_twins(evidence: EvidenceFile) -> None:
    """Flag the same bytes under another server or delivery, on both rows."""
    twins = list(
        EvidenceFile.objects.filter(sha256=evidence.sha256)
        .exclude(pk=evidence.pk)
        .select_related("delivery", "node", "file")
    )
    for twin in twins:
        for one, other in ((evidence, twin), (twin, evidence)):
            text = msg(
                "The same file was uploaded for %(place)s too",
                place=str(other.node or other.delivery.note_number),
            ).to_json()
            if text not in one.flags and one.locked_at is None:
                one.flags = [*one.flags, text]
                one.save(update_fields=["flags"])
                tell_withdrawn(one)
    if twins:
        record("evidence.flagged", on=evidence, by=None, twins=[twin.pk for twin in twins])
