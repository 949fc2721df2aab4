"""rocm-smi: JSON, text and CSV. Two dies of one module share a serial; that is no duplicate."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.messages import msg
from planning.telemetry_formats.values import Cell, classify, number
from procurement.evidence.amd_limits import counted, hot, sound, table
from procurement.evidence.bounded import documents, mapping
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import DeviceLog, Report
from procurement.evidence.types import Verdict

FORMATS = ("rocm_smi_json", "rocm_smi_text", "rocm_smi_csv")

_CARD = re.compile(r"^card(\d{1,3})$")
_CONCISE = re.compile(r"^GPU\[(\d{1,3})\]\s*:\s*(.{1,100}?):\s*(.{0,200})$")
_SECONDARY = re.compile(r"secondary die", re.IGNORECASE)
_LOADED = 90
_SLOW = 0.9  # of the highest clock of its kind


def read(document: Document, context: EvidenceContext) -> Report:
    text = document.text()
    if re.search(r'"card\d{1,3}"\s*:', text[:200_000]):
        return _rocm_json(text, context)
    if re.search(r"^device,", text, re.MULTILINE):
        return _rocm_csv(document, context)
    return _rocm_text(document, context)


def _rocm_json(text: str, context: EvidenceContext) -> Report:
    report = Report("rocm_smi_json", context)
    found = documents(text, tuple(f"card{i}" for i in range(64)))
    if not sound(report, found):
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
    strange = [
        name
        for name, part in root.items()
        if isinstance(part, dict) and not _CARD.match(name) and name != "system"
    ]
    if strange or sorted(cards) != list(range(len(cards))):
        report.incomplete(
            "cards_missing",
            msg("A card is missing, or a part of the file has a name that is not known."),
        )
    _rocm_cards(report, cards, "$.card%s")
    report.caution(
        "rocm_smi_deprecated",
        msg("rocm-smi is deprecated for amd-smi, and this file says nothing of ECC errors."),
    )
    return report


def _rocm_csv(document: Document, context: EvidenceContext) -> Report:
    report = Report("rocm_smi_csv", context, complete=None)
    cards: dict[int, dict[str, str]] = {}
    strange = 0
    for _, row in table(document, "device"):
        name = _CARD.match(row.pop("device", ""))
        if row.get("") or not name:
            strange += row.get("device") != "system"
        else:
            cards.setdefault(int(name[1]), row)
    if strange or sorted(cards) != list(range(len(cards))):
        report.incomplete(
            "cards_missing",
            msg("A card is missing, or a part of the file has a name that is not known."),
        )
    _rocm_cards(report, cards, "card%s")
    report.review_needed("text_has_no_end", msg("The text has no end mark: ask for --json."))
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
    _modules(report)
    report.counts |= {"cards": len(cards), "physical_modules": len(serials)}
    if not cards:
        report.incomplete("no_devices", msg("The file names no card."))


def _modules(report: Report) -> None:
    """Dies of one module bear one id and one serial number, and one of them is its first: anything else is a mix-up."""
    serials: dict[str, set[str | None]] = {}
    firsts = set()
    for log in report.devices.values():
        unique = log.figures.get("unique_id")
        if unique:
            serials.setdefault(str(unique), set()).add(log.serial)
        if not any(reason.code == "secondary_die" for reason in log.reasons.values()):
            firsts.add(log.serial)
    for log in report.devices.values():
        second = any(reason.code == "secondary_die" for reason in log.reasons.values())
        unique = str(log.figures.get("unique_id") or "")
        if len(serials.get(unique, ())) > 1 or (second and log.serial not in firsts):
            log.note(
                Verdict.INCONCLUSIVE,
                "identity_damaged",
                msg("Its id and its serial number do not belong to one module."),
                value=log.serial,
            )


_UNCORRECTED = re.compile(r"uncorrect|\bUE\b|double.?bit", re.IGNORECASE)
_RETIRED = re.compile(r"(?:retired|unreservable|pending|bad).{0,12}page", re.IGNORECASE)


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
    hot(report, log, junction, memory, where)
    counted(log, number(_value(card, "PCIe Replay Count")), "pcie_replay", Verdict.WARN, where)
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
        # Only some versions and options show these; where they stand they count.
        if _UNCORRECTED.search(key):
            counted(log, number(text), "ecc_uncorrected", Verdict.FAIL, where)
        elif _RETIRED.search(key):
            counted(log, number(text), "bad_pages", Verdict.WARN, where)
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
