"""CUDA's bandwidthTest. Deprecated; its PASS says that the copies were right, nothing of their speed."""

from __future__ import annotations

import re

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Severity, Verdict

FORMATS = ("cuda_bandwidthtest",)

_DEVICE = re.compile(r"^\s*Device (\d{1,3}):\s*(.{1,100}?)\s*$")
_SECTION = re.compile(
    r"^\s*(Host to Device|Device to Host|Device to Device) Bandwidth, (\d+) Device"
)
_ROW = re.compile(r"^\s*(\d{1,15})\s+([\d.]{1,12})\s*$")
_RESULT = re.compile(r"^Result = (PASS|FAIL)")
_UNIT = re.compile(r"Bandwidth\((GB|MB)/s\)")
_CSV = re.compile(
    r"^bandwidthTest-(H2D|D2H|D2D)(?:-(Pinned|Paged))?, Bandwidth = ([\d.]{1,12}) (GB|MB)/s, .*NumDevsUsed = (\d{1,3})"
)
_SHORT = {"Host to Device": "h2d", "Device to Host": "d2h", "Device to Device": "d2d"}


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("cuda_bandwidthtest", context)
    section, scale, result = "", 1.0, ""
    best: dict[str, tuple[float, int]] = {}
    pageable = False
    for each in document.lines():
        text = each.text
        if device := _DEVICE.match(text):
            report.device(int(device[1]), index=int(device[1]), model=device[2])
        elif found := _SECTION.match(text):
            section = _SHORT[found[1]]
        elif unit := _UNIT.search(text):
            scale = 1.0 if unit[1] == "GB" else 0.001
        elif row := _ROW.match(text):
            value = number(row[2])
            if section and value is not None and value * scale > best.get(section, (0.0, 0))[0]:
                best[section] = (round(value * scale, 4), each.number)
        elif csv := _CSV.match(text):
            value = number(csv[3])
            if value is not None:
                value = round(value * (1.0 if csv[4] == "GB" else 0.001), 4)
                if value > best.get(csv[1].lower(), (0.0, 0))[0]:
                    best[csv[1].lower()] = (value, each.number)
            pageable |= csv[2] == "Paged"
        elif outcome := _RESULT.match(text):
            result = outcome[1]
            if result == "FAIL":
                report.finding(
                    "wrong_copies",
                    Severity.BLOCKING,
                    msg("The tool says FAIL: copies were wrong."),
                    where=line(each.number),
                )
        pageable |= "PAGEABLE Memory" in text
    report.metrics |= {f"{name}_gbs": value for name, (value, _) in best.items()}
    for key in _SHORT.values():
        if key not in best:
            report.incomplete(f"no_{key}", msg("The part %(what)s is missing.", what=key))
    if not result:
        report.incomplete("no_result", msg("The result line is missing: the file is cut off."))
    if not report.devices:
        report.incomplete("no_devices", msg("The file names no card."))
    elif len(report.devices) > 1:
        report.unproven(
            "several_devices",
            msg("The figures of several cards are added up: run it on each card."),
        )
    if pageable:
        report.unproven(
            "pageable_memory", msg("The copies used pageable memory: PCIe was not measured.")
        )
    _judge(report, best)
    report.caution(
        "pass_is_correctness_only",
        msg("Result = PASS says that the copies were right, not that they were fast."),
    )
    report.caution("tool_deprecated", msg("NVIDIA withdrew this tool: use nvbandwidth."))
    return report


def _judge(report: Report, best: dict[str, tuple[float, int]]) -> None:
    policy = report.context.policy
    for log in report.devices.values():
        limit, rated = policy.limit("h2d_min_gbs", log.model), policy.limit("hbm_gbs", log.model)
        if limit is None:
            log.note(Verdict.WARN, "h2d_limit_unknown", msg("No limit is known for this model."))
        for key in ("h2d", "d2h"):
            value, where = best.get(key, (None, 0))
            if value is not None and limit is not None and value < limit:
                log.note(
                    Verdict.WARN,
                    f"{key}_low",
                    msg(
                        "%(name)s: %(value)s GB/s, at least %(limit)s is asked for: too few lanes or an old PCIe link.",
                        name=key,
                        value=value,
                        limit=limit,
                    ),
                    value=value,
                    threshold=limit,
                    where=line(where),
                )
        value, where = best.get("d2d", (None, 0))
        if value is not None and rated and value < policy.require("hbm_min_fraction") * rated:
            log.note(
                Verdict.WARN,
                "d2d_low",
                msg(
                    "d2d: %(value)s GB/s is %(percent)s %% of %(limit)s GB/s; small buffers read low.",
                    value=value,
                    percent=round(100 * value / rated),
                    limit=rated,
                ),
                value=value,
                threshold=rated,
                where=line(where),
            )
