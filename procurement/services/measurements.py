"""Throughput as files show it: found by readers for the units they name, or typed in beside a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from planning.services.calibration import withdraw_benchmark
from procurement.evidence.types import Evidence, Severity, Verdict
from procurement.log_times import last_moment
from procurement.models import (
    Acceptance,
    Asset,
    Delivery,
    EvidenceFile,
    Measurement,
    PerformancePromise,
    UnitVerdict,
)
from procurement.models.assets import AssetKind
from procurement.models.evidence import EvidenceState
from procurement.promises import BENCHMARKS, PLACES, checked_text, exact_number, in_unit, unit_for
from procurement.serials import fold
from procurement.services.moves import touch
from procurement.services.run_proof import lock_delivery, open_runs, refresh_runs

STEP = Decimal(1).scaleb(-PLACES)
# A run that fails for its speed or its length alone measured that speed. Any other fault voids its figures.
SPEED_ONLY = frozenset(
    {
        "bandwidth_below_policy", "below_promise", "performance_drop", "slower_than_peers", "too_short", "h2d_low",
        "d2h_low", "h2d_below_peers", "d2h_below_peers", "d2d_low", "d2d_path_low", "path_low", "memory_bandwidth_low",
    }
)  # fmt: skip
# A file with one of these verdicts as a whole gives no figures, neither to a reader nor to a person.
NO_EVIDENCE = frozenset({Verdict.REJECT.value, Verdict.RETEST.value, Verdict.FAIL.value})
AGAINST = frozenset({"fail", "inconclusive", "retest", "reject", "not_tested"})
# Figure of a device → benchmark.
OF_DEVICE = {
    "gpu_burn": (("mean_gflops", "gpu_burn"),),
    "nvbandwidth_json": (("h2d_gbs", "host_to_device"),),
    "nvbandwidth_text": (("h2d_gbs", "host_to_device"),),
    "amd_rvs": (("h2d_gbs", "host_to_device"),),
}


def is_sound(found: Evidence) -> bool:
    """Whether the figures of a run are figures at all: it is whole, and no more than its speed speaks against it."""
    if found.complete is not True or found.verdict in (Verdict.REJECT, Verdict.RETEST):
        return False
    blocking = {
        finding.code
        for finding in found.findings
        if finding.severity is Severity.BLOCKING and finding.device is None
    }
    return not blocking - SPEED_ONLY


def _is_sound_for(reasons: Iterable[tuple[str, str]]) -> bool:
    """Whether nothing but speed or length speaks against a device; `reasons` as (rule, verdict)."""
    return all(rule in SPEED_ONLY for rule, verdict in reasons if verdict in AGAINST)


def measure(evidence: EvidenceFile, found: Evidence) -> list[Measurement]:
    """Write what `found` shows units of the delivery to do; what a reader found in this file before is replaced.

    So is what a person typed in for the same unit and benchmark beside this file. Call it with the delivery locked.

    A figure of a card goes to the card that the file names by serial number or UUID. A file without such names
    (HPL, NCCL, MLPerf) speaks of the server it was uploaded for; uploaded for none, it is nobody's figure.
    """
    Measurement.objects.filter(evidence=evidence, recorded_by=None).delete()
    if not is_sound(found) or evidence.flags:
        tell_withdrawn(evidence)  # what was typed in beside it
        return []
    rows: dict[tuple[int, str, str], Measurement] = {}
    when = _measured_at(evidence, found)

    def keep(asset_id: int, benchmark: str, value: Any, unit: str, name: str = "") -> None:
        number = _figure(value)
        if number is not None:
            rows.setdefault(
                (asset_id, benchmark, name),
                Measurement(
                    evidence=evidence, delivery_id=evidence.delivery_id, asset_id=asset_id, benchmark=benchmark,
                    name=name, value=number, unit=unit, measured_at=when,
                ),
            )  # fmt: skip

    for verdict in UnitVerdict.objects.filter(evidence=evidence).order_by("pk"):
        if not _is_sound_for((reason["rule"], reason["verdict"]) for reason in verdict.reasons):
            continue
        for figure, benchmark in OF_DEVICE.get(found.format, ()):
            keep(
                verdict.asset_id,
                benchmark,
                verdict.figures.get(figure),
                BENCHMARKS[benchmark].units[0],
            )
    node = evidence.node_id
    all_sound = _is_sound_for(
        (reason.code, reason.verdict.value) for device in found.devices for reason in device.reasons
    )
    if node is not None and all_sound:
        for benchmark, value, unit in _of_run(found):
            keep(node, benchmark, value, unit)
    _drop_typed(evidence, rows)
    return Measurement.objects.bulk_create(rows.values())


def tell_withdrawn(evidence: EvidenceFile) -> None:
    """Let fall what rests on figures of a file that no longer stands: flagged, altered, or read anew as no evidence.

    The figures themselves stay as rows and count nowhere (:meth:`MeasurementQuerySet.that_count`). The trail of the
    delivery names each, the open runs are judged anew, and what a signed acceptance taught the calibration from them
    is left out, with the reason. Call it with the delivery locked, once the file bears what speaks against it.
    """
    rows = Measurement.objects.filter(evidence=evidence)
    lost = list(
        rows.exclude(pk__in=rows.that_count())
        .select_related("asset")
        .order_by("asset__serial", "pk")
    )
    if not lost:
        return
    delivery = evidence.delivery
    record(
        "measurement.withdrawn", on=delivery, by=None, file=str(evidence), sha256=evidence.sha256,
        figures=[
            f"{row.asset.serial} {row.name or row.benchmark} {row.value.normalize():f} {row.unit}" for row in lost[:64]
        ],
        count=len(lost),
    )  # fmt: skip
    refresh_runs(open_runs(delivery))
    benchmarks = {row.benchmark for row in lost}
    for acceptance in Acceptance.objects.filter(delivery=delivery, decided_at__isnull=False):
        if any(entry["id"] == evidence.pk for entry in acceptance.evidence_index):
            promises = PerformancePromise.objects.filter(
                line__order_lines__receipts__delivery=delivery, benchmark__in=benchmarks
            ).distinct()
            for promise in promises:
                for position in promise.line.order_lines.values_list("position", flat=True):
                    withdraw_benchmark(
                        outcome_reference(acceptance, position, promise),
                        reason=f"{evidence} {evidence.sha256[:12]}",
                    )


def outcome_reference(acceptance: Acceptance, position: int, promise: PerformancePromise) -> str:
    """The name under which the calibration keeps what an acceptance showed of a promise."""
    return f"{acceptance.number} {position} #{promise.pk} {promise.label}"


def _measured_at(evidence: EvidenceFile, found: Evidence | None) -> datetime:
    """The end of the run as the file tells it, taken for UTC where it names no zone; else when the file came.

    Never after the file came: Measurement.is_of_run tells the two apart.
    """
    end = None if found is None else last_moment(found)
    return evidence.created_at if end is None else min(end, evidence.created_at)


def _drop_typed(evidence: EvidenceFile, rows: Mapping[tuple[int, str, str], Measurement]) -> None:
    """Take back figures typed in beside `evidence` that a reader now finds in it; each is told in the trail."""
    typed = Measurement.objects.filter(evidence=evidence).exclude(recorded_by=None)
    for old in typed.select_related("asset", "recorded_by"):
        new = rows.get((old.asset_id, old.benchmark, old.name))
        if new is None:
            continue
        record(
            "measurement.replaced", on=evidence.delivery, by=None, serial=old.asset.serial,
            benchmark=old.name or old.benchmark, value=[str(old.value), str(new.value)], unit=[old.unit, new.unit],
            file=str(evidence), sha256=evidence.sha256, typed_by=str(old.recorded_by),
        )  # fmt: skip
        old.delete()


def _of_run(found: Evidence) -> Iterable[tuple[str, Any, str]]:
    """(benchmark, value, unit) that a file shows for the server it is of."""
    metrics = found.metrics
    if found.format == "hpl" and found.variant != "HPL-MxP":
        yield "hpl", metrics.get("gflops"), "Gflop/s"
    elif found.format == "nccl_tests" and metrics.get("collective") == "all_reduce":
        yield "nccl_busbw", metrics.get("busbw_at_largest_oop"), "GB/s"
    elif found.format == "mlperf_loadgen_summary":
        tokens = metrics.get("tokens_per_s")
        if tokens is not None:
            yield "mlperf", tokens, "tokens/s"
        else:
            yield "mlperf", metrics.get("samples_per_s"), "samples/s"
    elif found.format in ("nvbandwidth_json", "nvbandwidth_text"):
        paths = [value for value in metrics.get("h2d_gbs_per_gpu") or () if value is not None]
        yield "host_to_device", min(paths, default=None), "GB/s"
        yield "device_to_device", metrics.get("d2d_min"), "GB/s"
    elif found.format == "gpu_burn" and not any(device.uuid for device in found.devices):
        speeds = [device.figures.get("mean_gflops") for device in found.devices]
        if speeds and all(isinstance(speed, int | float) for speed in speeds):
            yield "gpu_burn", sum(Decimal(str(speed)) for speed in speeds), "Gflop/s"


def _figure(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    number = Decimal(str(value))
    if not number.is_finite() or not 0 < number < Decimal(10) ** 13:
        return None
    return number.quantize(STEP, rounding=ROUND_HALF_UP)


@transaction.atomic
def note_measurement(
    *,
    delivery_id: int,
    evidence_id: int,
    serial: str,
    benchmark: str,
    value: Decimal | str,
    by: User,
    unit: str = "",
    name: str = "",
    note: str = "",
) -> Measurement:
    """A figure that a person reads from a file which no reader takes it from; the file is named with it.

    Raises NotPermitted, InputError (no such file, unit or benchmark, not a figure) or InvalidTransition (the file is
    locked, flagged, or no evidence by its verdict, or a reader's figure of the unit and benchmark stands in the
    delivery: what was measured is not typed over, whatever the figure is called).
    """
    delivery = lock_delivery(delivery_id, action="upload_evidence", by=by)
    evidence = EvidenceFile.objects.filter(pk=evidence_id, delivery=delivery).first()
    if evidence is None or evidence.state != EvidenceState.READ:
        raise InputError(
            "evidence_id", msg("This is no file of the delivery that was read"), value=evidence_id
        )
    if evidence.locked_at is not None:
        raise InvalidTransition(
            msg("%(name)s is locked: a signature rests on it", name=str(evidence))
        )
    if evidence.flags or evidence.verdict in NO_EVIDENCE:
        raise InvalidTransition(
            msg("%(name)s is flagged or failed: no figure is taken from it", name=str(evidence))
        )
    asset = Asset.objects.filter(
        receipt_line__delivery=delivery, folded_serial=fold(serial),
        kind__in=(AssetKind.ACCELERATOR, AssetKind.NODE),
    ).exclude(status="voided").first()  # fmt: skip
    if asset is None:
        raise InputError(
            "serial", msg("%(serial)s is no card or server of this delivery", serial=serial), value=serial
        )  # fmt: skip
    known = BENCHMARKS.get(benchmark)
    if known is None:
        raise InputError("benchmark", msg("%(value)s is no benchmark", value=benchmark), value=benchmark,
                         limit=", ".join(BENCHMARKS))  # fmt: skip
    words = checked_text("name", name, 120)
    said = checked_text("note", note, 300)
    if not words and benchmark == "other":
        raise InputError("name", msg("Say which benchmark it is"))
    shown = unit_for(known, unit)
    number = exact_number("value", value, places=PLACES)
    if number <= 0:
        raise InputError(
            "value", msg("%(field)s must be above 0", field="value"), value=str(value), limit="> 0"
        )
    _require_not_read(delivery, asset, benchmark, shown)
    there = Measurement.objects.filter(
        evidence=evidence, asset=asset, benchmark=benchmark, name=words
    ).first()
    before = None if there is None else str(there.value)
    row, _new = Measurement.objects.update_or_create(
        evidence=evidence, asset=asset, benchmark=benchmark, name=words,
        defaults={
            "delivery": delivery, "value": number, "unit": shown, "recorded_by": by, "note": said,
            "measured_at": _measured_at(evidence, Evidence.from_json(evidence.result) if evidence.result else None),
        },
    )  # fmt: skip
    touch(delivery)
    record(
        "measurement.noted", on=delivery, by=by, serial=asset.serial, benchmark=words or benchmark,
        value=[before, str(number)], unit=shown, file=str(evidence), sha256=evidence.sha256, reason=said,
    )  # fmt: skip
    refresh_runs(open_runs(delivery))
    return row


def _require_not_read(delivery: Delivery, asset: Asset, benchmark: str, unit: str) -> None:
    """Raise InvalidTransition where a reader's figure of the unit, its server or a card in it stands in the delivery.

    Figures in units that do not compare (samples/s and tokens/s) are not of the same measurement.
    """
    same = Q(asset=asset) | Q(asset__parent=asset)
    if asset.parent_id is not None:
        same |= Q(asset=asset.parent_id)
    found = (
        Measurement.objects.filter(
            same, delivery=delivery, benchmark=benchmark, recorded_by=None
        ).that_count()
    ).select_related("evidence__file")
    for row in found.order_by("pk"):
        if in_unit(row.value, row.unit, unit) is not None:
            raise InvalidTransition(
                msg("The reader found %(value)s in %(name)s", name=str(row.evidence),
                    value=f"{row.value.normalize():f} {row.unit}")
            )  # fmt: skip


__all__ = ["is_sound", "measure", "note_measurement", "outcome_reference", "tell_withdrawn"]
