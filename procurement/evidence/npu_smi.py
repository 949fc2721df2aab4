"""`npu-smi info` of Ascend: two lines a chip. Column sets and widths differ by version; A3 has two chips an NPU."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Verdict

FORMATS = ("npu_smi_info_text",)

_VERSION = re.compile(r"npu-smi\s+(\S{1,30})\s+Version:\s*(\S{1,30})")
_CELLS = re.compile(r"^\|(.*)\|$")
_FIRST = re.compile(r"^(\d{1,4})\s+(\S{1,40})$")
_SECOND = re.compile(r"^(\d{1,4})(?:\s+(\d{1,5}))?$")
_BUS = re.compile(r"^(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d$")
_HBM = re.compile(r"(\S+)\s*/\s*(\S+)\s*$")
_ABSENT_NPU = re.compile(r"No running processes found in NPU\s+(\d{1,4})")
_FRAME = re.compile(r"^\+[-=+]+\+$")
# none, general, major, urgent, absent: what hiascend.com calls them
_HEALTH = {
    "ok": Verdict.PASS,
    "warning": Verdict.WARN,
    "alarm": Verdict.FAIL,
    "critical": Verdict.FAIL,
    "unknown": Verdict.FAIL,
}


@dataclass(slots=True)
class _Chip:
    npu: int
    model: str
    health: str
    power: str
    temp: str
    line: int


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("npu_smi_info_text", context)
    waiting: _Chip | None = None
    health: Counter[str] = Counter()
    chips: list[tuple[int, int | None]] = []
    processes = False
    mentioned: set[int] = set()
    damaged = 0
    last_frame = last = 0
    for each in document.lines():
        text = each.text.strip()
        if version := _VERSION.search(text):
            report.tool_version = version[2]
            continue
        if _FRAME.match(text):
            last_frame = last = each.number
            continue
        inside = _CELLS.match(text)
        if not inside:
            damaged += text.startswith(("|", "+")) or (bool(text) and bool(chips) and not processes)
            continue
        last = each.number
        cells = [cell.strip() for cell in inside[1].split("|")]
        processes |= cells[0].split() == ["NPU", "Chip"]
        if absent := _ABSENT_NPU.search(text):
            mentioned.add(int(absent[1]))
        elif processes or cells[0].startswith(("NPU", "Chip")) or len(cells) != 3:
            damaged += not processes and len(cells) not in (1, 3)
            continue
        elif (first := _FIRST.match(cells[0])) and not _BUS.match(cells[1]):
            damaged += waiting is not None
            power, temp = [*cells[2].split(), "", ""][:2]
            waiting = _Chip(int(first[1]), first[2], cells[1], power, temp, each.number)
        elif (second := _SECOND.match(cells[0])) and waiting and _BUS.match(cells[1]):
            health[waiting.health] += 1
            phy = int(second[2]) if second[2] else None
            chips.append((waiting.npu, phy))
            _judge(report, waiting, int(second[1]), phy, cells, len(chips) - 1)
            waiting = None
        else:
            damaged += 1
    npus = {npu for npu, _ in chips}
    report.counts |= {"npus": len(npus), "chips": len(chips), "health": dict(health)}
    if damaged or waiting:
        report.incomplete("damaged_table", msg("The table holds rows that cannot be read."))
    if not processes or last_frame < last:
        report.incomplete(
            "table_cut", msg("The table of processes at the end is missing: the file is cut off.")
        )
    # Training cards count from 0 without a gap; inference cards are numbered by their slot.
    slots = any(log.model and log.model.startswith("310") for log in report.devices.values())
    gaps = bool(npus) and not slots and npus != set(range(max(npus) + 1))
    if mentioned - npus or gaps:
        report.incomplete(
            "npus_missing", msg("The numbers of the cards have gaps: some rows are missing.")
        )
    if not chips:
        report.incomplete("no_devices", msg("The file names no card."))
    report.caution("no_serial", msg("This view shows no serial number: add npu-smi info -t board."))
    report.caution("no_ecc", msg("This view shows no ECC counters: add npu-smi info -t ecc."))
    return report


def _judge(
    report: Report,
    chip: _Chip,
    number_in_npu: int,
    phy: int | None,
    cells: list[str],
    position: int,
) -> None:
    index = phy if phy is not None else chip.npu if number_in_npu == 0 else position
    log = report.device((chip.npu, number_in_npu), index=index, bus=cells[1], model=chip.model)
    power = number(chip.power)
    log.figures |= {
        "npu": chip.npu,
        "chip": number_in_npu,
        "health": chip.health,
        "power_w": power,
        "temp_c": number(chip.temp),
    }
    memory = _HBM.search(cells[2])
    if memory:
        log.figures |= {"hbm_used_mb": number(memory[1]), "hbm_total_mb": number(memory[2])}
    verdict = _HEALTH.get(chip.health.lower())
    where = line(chip.line)
    if verdict is None:
        log.note(
            Verdict.INCONCLUSIVE,
            "health_unreadable",
            msg("The health %(health)s is not known.", health=chip.health or "?"),
            value=chip.health,
            threshold="OK",
            where=where,
        )
    elif verdict is not Verdict.PASS:
        log.note(
            verdict,
            f"health {chip.health}",
            msg("The tool reports the health %(health)s.", health=chip.health),
            value=chip.health,
            threshold="OK",
            where=where,
        )
    if number(chip.temp) is None and verdict is Verdict.PASS:
        log.note(
            Verdict.INCONCLUSIVE, "no_temperature", msg("The temperature is missing."), where=where
        )
    if (
        power is None
        and number_in_npu == 0
        and chip.power.upper() not in ("NA", "N/A")
        and verdict is Verdict.PASS
    ):
        log.note(Verdict.INCONCLUSIVE, "no_power", msg("The power is missing."), where=where)
