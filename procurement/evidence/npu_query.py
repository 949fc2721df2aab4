"""`npu-smi info -t board`, `-t ecc` and the like: names and values of each NPU, serial numbers and ECC among them."""

from __future__ import annotations

import re

from core.messages import msg
from planning.telemetry_formats.values import integer, number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Verdict

FORMATS = ("npu_smi_query_text",)

_PAIR = re.compile(r"^\s*([A-Z][\w ()/%-]{1,60}?)\s*:\s*(.{0,120}?)\s*$")
_DOUBLE = re.compile(r"double bit (?:aggregate )?(?:total )?(?:error|err|isolated)", re.IGNORECASE)
_SINGLE = re.compile(r"single bit (?:aggregate )?(?:total )?(?:error|err|isolated)", re.IGNORECASE)


def read(document: Document, context: EvidenceContext) -> Report:
    """The views have no end mark, so they never pass alone: a person looks at what they add to `npu-smi info`."""
    report = Report("npu_smi_query_text", context, complete=None)
    npu: int | None = None
    counters: dict[tuple[int, int], int] = {}
    for each in document.lines():
        pair = _PAIR.match(each.text)
        if not pair:
            continue
        name, value = pair[1].strip(), pair[2]
        if name == "NPU ID":
            npu = integer(value)
            continue
        if npu is None:
            continue
        log = report.device(npu, index=npu)
        if name == "Serial Number" and value.upper() not in ("NA", "N/A", ""):
            log.serial = value
        elif name in ("Product Name", "Chip Name") and value.upper() not in ("NA", "N/A", ""):
            log.model = value
        elif (double := _DOUBLE.search(name)) or _SINGLE.search(name):
            count = number(value)
            if count is None:
                if value.upper() not in ("NA", "N/A"):
                    log.note(
                        Verdict.INCONCLUSIVE,
                        f"no_value {name}",
                        msg("%(column)s was never shown: nothing is known of it.", column=name),
                        where=line(each.number),
                    )
                continue
            counters[npu, bool(double)] = counters.get((npu, bool(double)), 0) + int(count)
            if count:
                log.note(
                    Verdict.FAIL if double else Verdict.WARN,
                    "ecc_uncorrected" if double else "ecc_corrected",
                    msg("%(code)s counts %(count)s.", code=name, count=int(count)),
                    value=int(count),
                    threshold=0,
                    where=line(each.number),
                )
    report.counts["npus"] = len(report.devices)
    if not report.devices:
        report.incomplete("no_devices", msg("The file names no card."))
    report.review_needed(
        "one_view_only",
        msg("This is one view of the cards: it shows neither load nor health. Add npu-smi info."),
    )
    return report
