"""A scrape of dcgm-exporter as evidence of health. A snapshot; metrics that are not exported prove nothing."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from core.messages import msg
from planning.telemetry_formats.prometheus import Exposition, Sample, exposition
from planning.telemetry_formats.values import integer
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import DeviceLog, Report, line
from procurement.evidence.types import Verdict
from procurement.evidence.xid import judge_xid

FORMATS = ("prometheus_text",)

_P = "DCGM_FI_DEV_"
_XID_COUNT = "DCGM_EXP_XID_ERRORS_COUNT"  # by code, within the exporter's window
_XID, _TEMP, _MEMORY_TEMP = _P + "XID_ERRORS", _P + "GPU_TEMP", _P + "MEMORY_TEMP"
_SM, _UTIL, _REPLAY = _P + "SM_CLOCK", _P + "GPU_UTIL", _P + "PCIE_REPLAY_COUNTER"
_UNCORRECTED = (_P + "ECC_DBE_VOL_TOTAL", _P + "ECC_DBE_VOL_DEV")
_CORRECTED = (_P + "ECC_SBE_VOL_TOTAL", _P + "ECC_SBE_VOL_DEV")
_LIFETIME = (_P + "ECC_DBE_AGG_TOTAL", _P + "UNCORRECTABLE_REMAPPED_ROWS", _P + "RETIRED_DBE")
_REMAP_FAILURE, _REMAPPED = _P + "ROW_REMAP_FAILURE", _P + "UNCORRECTABLE_REMAPPED_ROWS"
_REMAP_PENDING = (_P + "ROW_REMAP_PENDING", _P + "RETIRED_PENDING")
_REASONS = (_P + "CLOCK_THROTTLE_REASONS", _P + "CLOCKS_EVENT_REASONS")
_NVLINK = (
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
)
_HARDWARE_BITS, _SW_THERMAL_BIT = 0x8 | 0x40 | 0x80, 0x20
_SLOW = 0.9  # of the median SM clock of its peers: held down, not merely another step


@dataclass(slots=True)
class _Card:
    log: DeviceLog
    values: dict[str, tuple[float, int]] = field(default_factory=dict)
    blanks: dict[str, int] = field(default_factory=dict)


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("prometheus_text", context)
    facts = Exposition()
    cards: dict[tuple[str, str], _Card] = {}
    names: set[str] = set()
    samples = 0
    for sample in exposition(((each.number, each.text) for each in document.lines()), facts):
        samples += 1
        names.add(sample.name)
        _take(report, cards, sample)
    report.variant = ("dcgm-exporter" if cards else "exposition") + (
        ", OpenMetrics" if facts.openmetrics else ""
    )
    report.counts |= {
        "families": len(facts.families | (names if not facts.families else set())),
        "samples": samples,
        "gpus": len(cards),
    }
    if facts.bad_lines:
        report.incomplete(
            "bad_lines",
            msg(
                "%(count)s lines are not in the exposition format, the first is %(line)s.",
                count=len(facts.bad_lines),
                line=facts.bad_lines[0],
            ),
        )
    if facts.openmetrics and not facts.end_of_file:
        report.incomplete(
            "no_end_of_file", msg("The end mark of OpenMetrics is missing: the scrape is cut off.")
        )
    if not cards:
        report.unproven("no_gpu_metrics", msg("No metric names an accelerator."))
    _judge(report, cards)
    return report


def _take(report: Report, cards: dict[tuple[str, str], _Card], sample: Sample) -> None:
    labels = sample.labels
    uuid = labels.get("UUID") or labels.get("uuid") or ""
    index = labels.get("gpu")
    if not sample.name.startswith(("DCGM_FI_", _XID_COUNT)) or not (uuid or index):
        return
    host = labels.get("Hostname") or labels.get("hostname") or ""
    key = (host, uuid or str(index))
    if key not in cards:
        log = report.device(key, index=integer(index), host=host or None, uuid=uuid or None,
                            bus=labels.get("pci_bus_id"), model=labels.get("modelName"))  # fmt: skip
        cards[key] = _Card(log)
        if host:
            report.hosts.append(host)
        report.driver_version = labels.get("DCGM_FI_DRIVER_VERSION") or report.driver_version
    card = cards[key]
    code = integer(labels.get("xid"))
    if sample.name == _XID_COUNT and code and sample.value:
        verdict, message = judge_xid(code, "")
        card.log.note(
            verdict, f"xid{code}", message, value=code, threshold=0, where=line(sample.number)
        )
    if sample.value is None:
        card.blanks.setdefault(sample.name, sample.number)
    elif sample.name not in card.values or sample.value > card.values[sample.name][0]:
        card.values[sample.name] = (
            sample.value,
            sample.number,
        )  # slices of one card: the worst counts


def _judge(report: Report, cards: dict[tuple[str, str], _Card]) -> None:
    clocks = [
        c.values[_SM][0]
        for c in cards.values()
        if _SM in c.values and c.values.get(_UTIL, (0, 0))[0] >= 50
    ]
    typical = statistics.median(clocks) if len(clocks) > 1 else None
    occupancy: list[float] = []
    for card in cards.values():
        _judge_card(report, card, typical)
        used, free = card.values.get(_P + "FB_USED"), card.values.get(_P + "FB_FREE")
        reserved = card.values.get(_P + "FB_RESERVED", (0.0, 0))
        if used and free and used[0] + free[0] + reserved[0] > 0:
            occupancy.append(100 * used[0] / (used[0] + free[0] + reserved[0]))
    if occupancy:
        report.metrics["mem_occupancy_pct"] = round(statistics.fmean(occupancy), 2)
    if any(_XID in card.values for card in cards.values()):
        report.caution(
            "xid_gauge_is_last_value",
            msg("The XID gauge holds the last code only, and some codes are never exported."),
        )
    report.caution("snapshot", msg("A single scrape has no time range."))
    blanks = [(name, number) for card in cards.values() for name, number in card.blanks.items()]
    if blanks:
        report.caution(
            "blank_value",
            msg(
                "%(count)s values are blanks of the exporter, the first in line %(line)s: missing, not numbers.",
                count=len(blanks),
                line=blanks[0][1],
            ),
        )


def _judge_card(report: Report, card: _Card, typical: float | None) -> None:
    policy, log, values = report.context.policy, card.log, card.values
    xid = values.get(_XID)
    if xid and xid[0]:
        verdict, message = judge_xid(int(xid[0]), "")
        log.note(
            verdict,
            f"last_xid={int(xid[0])}",
            message,
            value=int(xid[0]),
            threshold=0,
            where=line(xid[1]),
        )
    pending = Verdict.FAIL if report.context.sold_as_new else Verdict.WARN
    for name, code, verdict, message in (
        (_REMAP_FAILURE, "row_remap_failure", Verdict.FAIL, msg("Remapping a memory row failed.")),
        *(
            (n, "ecc_uncorrected", Verdict.FAIL, msg("Uncorrectable memory errors"))
            for n in _UNCORRECTED
        ),
        *(
            (n, "ecc_corrected", Verdict.WARN, msg("Corrected memory errors: watch it"))
            for n in _CORRECTED
        ),
        *(
            (n, "used_history", Verdict.WARN, msg("Remapped rows or lifetime uncorrectable errors"))
            for n in _LIFETIME
        ),
        *(
            (n, "remap_pending", pending, msg("A memory row or page waits to be retired."))
            for n in _REMAP_PENDING
        ),
        *((_P + n, "nvlink_errors", Verdict.WARN, msg("NVLink errors")) for n in _NVLINK),
        (_REPLAY, "pcie_replay", Verdict.WARN, msg("PCIe replays")),
    ):
        found = values.get(name)
        if found and found[0] > 0:
            log.note(verdict, code, message, value=found[0], threshold=0, where=line(found[1]))
    bits = max((int(values[name][0]) for name in _REASONS if name in values), default=0)
    if bits & (_HARDWARE_BITS | _SW_THERMAL_BIT):
        log.note(
            Verdict.FAIL if bits & _HARDWARE_BITS else Verdict.WARN,
            "throttle",
            msg("The clocks are held down (0x%(bits)s).", bits=f"{bits:x}"),
            value=bits,
        )
    known = policy.model(log.model) is not None
    for name, key, code, verdict in (
        (_TEMP, "max_temp_c", "temp_max", Verdict.FAIL if known else Verdict.WARN),
        (_MEMORY_TEMP, "max_memory_temp_c", "memory_temp_max", Verdict.WARN),
    ):
        found, limit = values.get(name), policy.require(key, log.model)
        if found and found[0] > limit:
            log.note(
                verdict,
                code,
                msg("It reached %(value)s C; %(limit)s C is allowed.", value=found[0], limit=limit),
                value=found[0],
                threshold=limit,
                where=line(found[1]),
            )
    clock, temp = values.get(_SM), values.get(_TEMP)
    if (
        typical
        and clock
        and temp
        and clock[0] < _SLOW * typical
        and values.get(_UTIL, (0, 0))[0] >= 50
    ):
        hot = temp[0] > policy.require("max_temp_c", log.model)
        log.note(
            Verdict.FAIL if hot else Verdict.WARN,
            "thermal_throttle" if hot else "sm_clock_low",
            msg(
                "The SM clock is %(clock)s MHz at %(temp)s C; its peers run at %(peers)s MHz.",
                clock=clock[0],
                temp=temp[0],
                peers=typical,
            ),
            value=clock[0],
            threshold=round(_SLOW * typical),
            where=line(clock[1]),
        )
    shown_blank = {_REMAP_FAILURE, *_UNCORRECTED, *_REMAP_PENDING} & set(card.blanks)
    for name in (_XID, _TEMP, *sorted(shown_blank)):
        if name not in values:
            log.note(
                Verdict.INCONCLUSIVE,
                f"no_value {name}",
                msg("%(column)s was never shown: nothing is known of it.", column=name),
            )
    if not (_REMAP_FAILURE in values and _REMAPPED in values) and not any(
        n in values for n in _UNCORRECTED
    ):
        log.note(
            Verdict.INCONCLUSIVE,
            "no_memory_health",
            msg("Neither ECC errors nor row remapping are exported: absence is not zero."),
        )
