"""rocm-smi and amd-smi, JSON and text. Two dies of one module share a serial; that is no duplicate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.messages import msg
from planning.telemetry_formats.values import Cell, classify, integer, number
from procurement.evidence.bounded import JsonDocument, documents, items, mapping, objects
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import DeviceLog, Report
from procurement.evidence.types import Verdict

FORMATS = ("rocm_smi_json", "rocm_smi_text", "amd_smi_json", "amd_smi_text")

_CARD = re.compile(r"^card(\d{1,3})$")
_CONCISE = re.compile(r"^GPU\[(\d{1,3})\]\s*:\s*(.{1,100}?):\s*(.{0,200})$")
_BLOCK = re.compile(r"^GPU: (\d{1,3})\s*$")
_PAIR = re.compile(r"^(\s+)([A-Z][A-Z0-9_ ]{0,60}):\s*(.*)$")
_SECONDARY = re.compile(r"secondary die", re.IGNORECASE)
_LOADED = 90
_SLOW = 0.9  # of the highest clock of its kind


def read(document: Document, context: EvidenceContext) -> Report:
    text = document.text()
    if re.search(r'"card\d{1,3}"\s*:', text[:200_000]):
        return _rocm_json(text, context)
    if re.search(r'"gpu(?:_data)?"\s*:', text[:200_000]):
        return _amd_json(text, context)
    return _rocm_text(document, context) if "GPU[" in text else _amd_text(document, context)


def _sound(report: Report, found: list[JsonDocument]) -> bool:
    if not found:
        report.incomplete("unreadable_json", msg("The JSON could not be read."))
        return False
    if any(not each.sound for each in found):
        report.incomplete(
            "damaged_json", msg("The JSON is cut off or damaged; only what came before was read.")
        )
    return True


def _rocm_json(text: str, context: EvidenceContext) -> Report:
    report = Report("rocm_smi_json", context)
    found = documents(text, tuple(f"card{i}" for i in range(64)))
    if not _sound(report, found):
        return report
    root = mapping(found[0].value)
    report.counts["garbage_prefix_lines"] = len(
        [x for x in text.split("{", 1)[0].splitlines() if x.strip()]
    )
    driver = mapping(root.get("system")).get("Driver version")
    report.driver_version = str(driver) if driver else None
    cards = {
        int(m[1]): {str(k): str(v) for k, v in mapping(card).items()}
        for name, card in root.items()
        if (m := _CARD.match(name))
    }
    _rocm_cards(report, cards, "$.card%s")
    report.caution(
        "rocm_smi_deprecated",
        msg("rocm-smi is deprecated for amd-smi, and this file says nothing of ECC errors."),
    )
    return report


def _rocm_text(document: Document, context: EvidenceContext) -> Report:
    report = Report("rocm_smi_text", context)
    cards: dict[int, dict[str, str]] = {}
    ended = False
    for each in document.lines():
        found = _CONCISE.match(each.text.strip())
        if found:
            cards.setdefault(int(found[1]), {}).setdefault(found[2].strip(), found[3].strip())
        ended = bool(re.match(r"^=+ ?End of ROCm SMI Log", each.text.strip())) or (
            ended and not each.text.strip()
        )
    if not ended:
        report.incomplete("no_end", msg("The end mark is missing: the file is cut off."))
    _rocm_cards(report, cards, "GPU[%s]")
    report.caution(
        "rocm_smi_deprecated",
        msg("rocm-smi is deprecated for amd-smi, and this file says nothing of ECC errors."),
    )
    return report


def _rocm_cards(report: Report, cards: Mapping[int, Mapping[str, str]], where: str) -> None:
    serials: set[str] = set()
    for index, card in cards.items():
        serial = _value(card, "Serial Number")
        model = _value(card, "Device Name", "Card series", "Card Series", "Card model")
        log = report.device(
            index, index=index, serial=serial, bus=_value(card, "PCI Bus"), model=model
        )
        unique = _value(card, "Unique ID")
        if unique:
            log.figures["unique_id"] = unique
        serials.add(serial or f"card{index}")
        _rocm_card(report, card, log, where % index)
    tops: dict[str | None, float] = {}
    for log in report.devices.values():
        clock = log.figures.get("sclk_mhz")
        if isinstance(clock, float):
            tops[log.model] = max(tops.get(log.model, 0.0), clock)
    for index, log in report.devices.items():
        known = report.context.policy.model(log.model)
        _slow(
            log,
            number(known.identity.get("max_sclk_mhz")) if known else None,
            tops.get(log.model),
            where % index,
        )
    report.counts |= {"cards": len(cards), "physical_modules": len(serials)}
    if not cards:
        report.incomplete("no_devices", msg("The file names no card."))


def _rocm_card(report: Report, card: Mapping[str, str], log: DeviceLog, where: str) -> None:
    junction = number(_value(card, "Temperature (Sensor junction) (C)", "temperature_hotspot (C)"))
    memory = number(_value(card, "Temperature (Sensor memory) (C)"))
    clock = number(_value(card, "sclk clock speed:", "sclk clock speed", "current_gfxclk (MHz)"))
    use = number(_value(card, "GPU use (%)"))
    power_keys = [
        key for key in card if "Graphics Package Power" in key and not key.startswith("Max")
    ]
    power = next((number(card[key]) for key in power_keys if number(card[key]) is not None), None)
    log.figures |= {"junction_c": junction, "sclk_mhz": clock, "use_pct": use, "power_w": power}
    if any("Current Socket" in key for key in power_keys):
        report.caution(
            "power_key_differs",
            msg("The key of the power figure changes between cards or versions."),
        )
    if any(_SECONDARY.search(card[key]) for key in power_keys):
        log.note(
            Verdict.PASS,
            "secondary_die",
            msg("A second die of a module shows no power of its own."),
            where=where,
        )
    elif power is None:
        log.note(Verdict.INCONCLUSIVE, "no_power", msg("The power is missing."), where=where)
    if junction is None:
        log.note(
            Verdict.INCONCLUSIVE, "no_temperature", msg("The temperature is missing."), where=where
        )
    _hot(report, log, junction, memory, where)
    _counter(log, number(_value(card, "PCIe Replay Count")), "pcie_replay", Verdict.WARN, where)
    overdrive = number(_value(card, "GPU OverDrive value (%)"))
    if overdrive:
        log.note(
            Verdict.FAIL,
            "overdrive",
            msg("The card is overclocked by %(value)s %%.", value=overdrive),
            value=overdrive,
            threshold=0,
            where=where,
        )
    for key, text in card.items():
        if classify(text) is Cell.FAULT:
            log.note(
                Verdict.FAIL,
                "no_answer",
                msg("The driver got no answer for %(column)s: %(text)s", column=key, text=text),
                value=text,
                where=where,
            )
    if _value(card, "Serial Number") is None:
        report.caution(
            "no_serial", msg("A card shows no serial number: bind it by its unique id or bus.")
        )


def _value(card: Mapping[str, str], *keys: str) -> str | None:
    return next(
        (card[key].strip() for key in keys if key in card and classify(card[key]) is Cell.VALUE),
        None,
    )


def _hot(
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


def _slow(log: DeviceLog, rated: float | None, peers: float | None, where: str) -> None:
    clock, use = log.figures.get("sclk_mhz"), log.figures.get("use_pct")
    best = rated or peers
    if (
        isinstance(clock, float)
        and isinstance(use, float)
        and best
        and use >= _LOADED
        and clock < _SLOW * best
    ):
        log.note(
            Verdict.FAIL,
            "clock_low",
            msg("The clock is %(value)s of %(limit)s MHz under load.", value=clock, limit=best),
            value=clock,
            threshold=best,
            where=where,
        )


def _counter(log: DeviceLog, count: float | None, code: str, verdict: Verdict, where: str) -> None:
    if count:
        log.note(
            verdict,
            code,
            msg("%(code)s counts %(count)s.", code=code, count=int(count)),
            value=int(count),
            threshold=0,
            where=where,
        )


def _amd_json(text: str, context: EvidenceContext) -> Report:
    report = Report("amd_smi_json", context)
    found = documents(text, ("gpu_data", "gpu"))
    if not _sound(report, found):
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
    hot = number(_last(flat, "temperature.hotspot", "temperature.junction", "hotspot"))
    memory = number(_last(flat, "temperature.mem", "temperature.vram"))
    log.figures |= {
        "junction_c": hot,
        "power_w": number(_last(flat, "power.socket_power", "socket_power")),
        "use_pct": number(_last(flat, "usage.gfx_activity", "gfx_activity")),
    }
    _hot(report, log, hot, memory, where)
    uncorrectable = number(_last(flat, "total_uncorrectable_count", "total_uncorrectable"))
    _counter(log, uncorrectable, "ecc_uncorrected", Verdict.FAIL, where)
    _counter(
        log,
        number(_last(flat, "total_deferred_count", "total_deferred")),
        "ecc_deferred",
        Verdict.WARN,
        where,
    )
    _counter(
        log,
        number(_last(flat, "total_correctable_count", "total_correctable")),
        "ecc_corrected",
        Verdict.WARN,
        where,
    )
    _counter(
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
