"""What rocm-smi and amd-smi are held against alike: heat, counters, and whether their JSON was whole."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from core.messages import msg
from procurement.evidence.bounded import JsonDocument
from procurement.evidence.document import Document
from procurement.evidence.report import DeviceLog, Report
from procurement.evidence.types import Verdict


def table(document: Document, first: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows below the header whose first column is `first`, with their lines. "" is set in a row of another width."""
    names: list[str] = []
    for each in document.lines():
        cells = [cell.strip() for cell in next(csv.reader([each.text]), [])]
        if cells and cells[0] == first:
            names = cells
        elif names and any(cells):
            row = dict(zip(names, cells, strict=False))
            yield each.number, row | ({"": "width"} if len(cells) != len(names) else {})


def sound(report: Report, found: list[JsonDocument]) -> bool:
    if not found:
        report.incomplete("unreadable_json", msg("The JSON could not be read."))
        return False
    if any(not each.sound for each in found):
        report.incomplete(
            "damaged_json", msg("The JSON is cut off or damaged; only what came before was read.")
        )
    return True


def hot(
    report: Report, log: DeviceLog, junction: float | None, memory: float | None, where: str
) -> None:
    limit = report.context.policy.require("max_junction_temp_c", log.model)
    if junction is not None and junction > limit:
        log.note(
            Verdict.FAIL,
            "junction_temp",
            msg("Junction at %(value)s C; %(limit)s C is allowed.", value=junction, limit=limit),
            value=junction,
            threshold=limit,
            where=where,
        )
    most = report.context.policy.require("max_memory_temp_c", log.model)
    if memory is not None and memory > most:
        log.note(
            Verdict.WARN,
            "memory_temp_max",
            msg("It reached %(value)s C; %(limit)s C is allowed.", value=memory, limit=most),
            value=memory,
            threshold=most,
            where=where,
        )


def counted(log: DeviceLog, count: float | None, code: str, verdict: Verdict, where: str) -> None:
    if count:
        log.note(
            verdict,
            code,
            msg("%(code)s counts %(count)s.", code=code, count=int(count)),
            value=int(count),
            threshold=0,
            where=where,
        )
