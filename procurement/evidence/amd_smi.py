"""amd-smi: JSON, text and CSV. Its sections move between releases, so a value is found by the end of its path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.messages import msg
from planning.telemetry_formats.values import Cell, classify, integer, number
from procurement.evidence.amd_limits import counted, hot, sound, table
from procurement.evidence.bounded import documents, items, mapping, objects
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Verdict

FORMATS = ("amd_smi_json", "amd_smi_text", "amd_smi_csv")

_BLOCK = re.compile(r"^GPU: (\d{1,3})\s*$")
_PAIR = re.compile(r"^(\s+)([A-Z][A-Z0-9_ ]{0,60}):\s*(.*)$")


def read(document: Document, context: EvidenceContext) -> Report:
    text = document.text()
    if re.search(r'"gpu(?:_data)?"\s*:', text[:200_000]):
        return _amd_json(text, context)
    if re.search(r"^gpu,", text, re.MULTILINE):
        return _amd_csv(document, context)
    return _amd_text(document, context)


def _amd_json(text: str, context: EvidenceContext) -> Report:
    report = Report("amd_smi_json", context)
    found = documents(text, ("gpu_data", "gpu"))
    if not sound(report, found):
        return report
    position = 0
    for each in found:
        entries = (
            each.value
            if isinstance(each.value, list)
            else items(mapping(each.value).get("gpu_data")) or [each.value]
        )
        for entry in objects(entries):
            index = integer(entry.get("gpu"))
            if index is None:
                report.incomplete(
                    "no_gpu_number", msg("A part of the file does not say which card it is about.")
                )
            flat = dict(_flat(entry, "", 0))
            _amd_card(report, index if index is not None else position, flat, f"$[{position}]")
            position += 1
    _amd_end(report)
    return report


def _amd_text(document: Document, context: EvidenceContext) -> Report:
    """Indented blocks. The text has no end mark, so it cannot be shown to be whole and never passes alone."""
    report = Report("amd_smi_text", context, complete=None)
    cards: dict[int, dict[str, str]] = {}
    current: dict[str, str] | None = None
    stack: list[tuple[int, str]] = []
    for each in document.lines():
        block = _BLOCK.match(each.text)
        if block:
            current, stack = cards.setdefault(int(block[1]), {}), []
            continue
        pair = _PAIR.match(each.text)
        if current is None or not pair:
            continue
        while stack and stack[-1][0] >= len(pair[1]):
            stack.pop()
        name = pair[2].strip().lower().replace(" ", "_")
        if pair[3]:
            current.setdefault(".".join([*(n for _, n in stack), name]), pair[3].strip())
        elif len(stack) < 8:
            stack.append((len(pair[1]), name))
    for index, flat in cards.items():
        _amd_card(report, index, flat, f"GPU: {index}")
    report.review_needed("text_has_no_end", msg("The text has no end mark: ask for --json."))
    _amd_end(report)
    return report


def _amd_csv(document: Document, context: EvidenceContext) -> Report:
    """A row a card. Like the text it has no end mark, so it never passes alone."""
    report = Report("amd_smi_csv", context, complete=None)
    short = 0
    for number_, row in table(document, "gpu"):
        index = integer(row.get("gpu"))
        if row.get("") or index is None:
            short += 1
            continue
        _amd_card(report, index, row, line(number_))
    if short:
        report.incomplete("short_rows", msg("%(count)s rows have too few cells.", count=short))
    report.review_needed("text_has_no_end", msg("The text has no end mark: ask for --json."))
    _amd_end(report)
    return report


def _amd_end(report: Report) -> None:
    report.counts |= {
        "cards": len(report.devices),
        "physical_modules": len({d.serial or i for i, d in report.devices.items()}),
    }
    if not report.devices:
        report.incomplete("no_devices", msg("The file names no card."))


def _flat(node: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Leaves by dotted path. {"value": 42, "unit": "%"} is one leaf."""
    if isinstance(node, dict):
        if "value" in node and not isinstance(node["value"], dict | list):
            yield path, str(node["value"])
            return
        for key, value in node.items():
            yield from _flat(value, f"{path}.{key}".strip("."), depth + 1)
    elif isinstance(node, list):
        for i, value in enumerate(node[:256]):
            yield from _flat(value, f"{path}[{i}]", depth + 1)
    elif node is not None:
        yield path, str(node)


def _last(flat: Mapping[str, str], *names: str) -> str | None:
    """The value whose path ends in one of the names: the sections move between releases."""
    for name in names:
        for path, text in flat.items():
            if (path == name or path.endswith("." + name)) and classify(text) is Cell.VALUE:
                return text.strip()
    return None


def _amd_card(report: Report, index: int, flat: Mapping[str, str], where: str) -> None:
    serial = _last(
        flat, "board.product_serial", "product_serial", "asic.asic_serial", "asic_serial"
    )
    log = report.device(index, index=index)
    log.serial = log.serial or serial
    log.uuid = log.uuid or _last(flat, "uuid")
    log.bus = log.bus or _last(flat, "bus.bdf", "bdf")
    log.model = log.model or _last(flat, "asic.market_name", "board.product_name", "market_name")
    if report.driver_version is None:
        report.driver_version = _last(flat, "driver.version")
    hotspot = number(_last(flat, "temperature.hotspot", "temperature.junction", "hotspot"))
    memory = number(_last(flat, "temperature.mem", "temperature.vram"))
    log.figures |= {
        "junction_c": hotspot,
        "power_w": number(_last(flat, "power.socket_power", "socket_power")),
        "use_pct": number(_last(flat, "usage.gfx_activity", "gfx_activity")),
    }
    hot(report, log, hotspot, memory, where)
    if hotspot is None and any(path.endswith(("hotspot", "junction")) for path in flat):
        log.note(
            Verdict.INCONCLUSIVE, "no_temperature", msg("The temperature is missing."), where=where
        )
    uncorrectable = number(_last(flat, "total_uncorrectable_count", "total_uncorrectable"))
    counted(log, uncorrectable, "ecc_uncorrected", Verdict.FAIL, where)
    counted(
        log,
        number(_last(flat, "total_deferred_count", "total_deferred")),
        "ecc_deferred",
        Verdict.WARN,
        where,
    )
    counted(
        log,
        number(_last(flat, "total_correctable_count", "total_correctable")),
        "ecc_corrected",
        Verdict.WARN,
        where,
    )
    counted(
        log,
        number(_last(flat, "pcie.replay_count", "replay_count")),
        "pcie_replay",
        Verdict.WARN,
        where,
    )
    exceeded = _last(flat, "bad_page_threshold_exceeded")
    if exceeded and exceeded.lower() not in ("no", "false", "0"):
        log.note(
            Verdict.FAIL,
            "bad_pages",
            msg("The limit of bad memory pages was exceeded: %(text)s", text=exceeded),
            value=exceeded,
            threshold="No",
            where=where,
        )
    pending = _last(flat, "pending", "bad_pages.pending")
    if pending and number(pending):
        log.note(
            Verdict.WARN,
            "bad_pages_pending",
            msg("Memory pages wait to be retired."),
            value=pending,
            where=where,
        )
    pages = sum(
        "bad_page" in path and text.strip().upper() in ("RETIRED", "PENDING", "UNRESERVABLE")
        for path, text in flat.items()
    )
    counted(log, float(pages), "bad_pages_listed", Verdict.WARN, where)
    throttled = _last(flat, "power.throttle_status", "throttle_status")
    if throttled and throttled.upper() not in ("UNTHROTTLED", "0", "FALSE"):
        log.note(
            Verdict.WARN,
            "throttle",
            msg("The clocks are held down: %(reason)s", reason=throttled),
            value=throttled,
            where=where,
        )
    for path, text in flat.items():
        if classify(text) is Cell.FAULT:
            log.note(
                Verdict.FAIL,
                "no_answer",
                msg("The driver got no answer for %(column)s: %(text)s", column=path, text=text),
                value=text,
                where=where,
            )
        if (
            path.endswith("_violation_status")
            and text.upper() in ("ACTIVE", "TRUE")
            and any(w in path for w in ("thermal", "prochot"))
        ):
            log.note(
                Verdict.FAIL,
                "throttle",
                msg("The clocks are held down: %(reason)s", reason=path),
                value=text,
                where=where,
            )
    if uncorrectable is None:
        log.note(
            Verdict.INCONCLUSIVE,
            "no_ecc",
            msg("No ECC counters are shown: memory errors would not be seen."),
            where=where,
        )
    if log.serial is None:
        report.caution(
            "no_serial", msg("A card shows no serial number: bind it by its unique id or bus.")
        )
