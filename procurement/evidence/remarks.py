"""Lines that nvidia-smi prints when a card does not answer. Each is evidence, not noise."""

from __future__ import annotations

import re

from core.messages import msg
from planning.telemetry_formats.values import Cell, classify
from procurement.evidence.report import Report, line
from procurement.evidence.types import Severity

_BUS = re.compile(r"(?:GPU ?)?((?:[0-9A-Fa-f]{4,8}:)[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
_HANDLE = re.compile(r"Unable to determine the device handle", re.IGNORECASE)
_INFOROM = re.compile(r"infoROM is corrupted", re.IGNORECASE)
_DRIVER = re.compile(
    r"NVIDIA-SMI has failed|Failed to initialize NVML|No devices were found", re.IGNORECASE
)


_CRASH = re.compile(
    r"Process received signal|exited on signal|Segmentation fault|core dumped|srun: error:|slurmstepd: error:"
    r"|ORTE has lost communication|mpirun has detected an error|BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"
)


def judge_crash(report: Report, text: str, number: int) -> bool:
    """A process of the run died, whatever else it printed: the run proves nothing. True when the line says so."""
    if not _CRASH.search(text):
        return False
    report.unproven(
        "process_crashed",
        msg("A process of the run died: %(text)s (line %(line)s)", text=text.strip()[:160], line=number),
    )  # fmt: skip
    return True


def judge_remark(
    report: Report, text: str, number: int, host: str | None, *, force: bool = False
) -> bool:
    """Record what a line says about a card or the driver. True when it said something."""
    bus = _BUS.search(text)
    device = bus[1] if bus else None
    if _HANDLE.search(text) or (force and classify(text) is Cell.FAULT):
        report.finding(
            "gpu_lost",
            Severity.BLOCKING,
            msg("A card does not answer: %(text)s", text=text[:200]),
            where=line(number),
            host=host,
            device=device,
        )
    elif _INFOROM.search(text):
        report.finding(
            "inforom_corrupted",
            Severity.BLOCKING,
            msg("A card's InfoROM is corrupted: %(text)s", text=text[:200]),
            where=line(number),
            host=host,
            device=device,
        )
    elif _DRIVER.search(text):
        report.finding(
            "driver_failed",
            Severity.BLOCKING,
            msg("The driver does not work: %(text)s", text=text[:200]),
            where=line(number),
            host=host,
        )
    else:
        return False
    return True
