"""`nvidia-smi -q -x`. Every such file has a DOCTYPE, which is allowed; entities never are. --loop writes several."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from core.messages import msg
from planning.telemetry_formats.values import integer
from procurement.evidence.bounded import refuse_entities, xml_root
from procurement.evidence.document import Document
from procurement.evidence.nvidia_smi_rules import judge_states
from procurement.evidence.nvidia_smi_state import State
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.remarks import judge_remark
from procurement.evidence.report import Report

FORMATS = ("nvidia_smi_q_xml",)

_DOCUMENT = re.compile(r"<nvidia_smi_log\b.*?</nvidia_smi_log\s*>", re.DOTALL)
_GPU = re.compile(r"<gpu id=\"[^\"<>]{1,40}\">.*?</gpu>", re.DOTALL)
_DTD = re.compile(r"<!DOCTYPE nvidia_smi_log SYSTEM \"(nvsmi_device_v\d+\.dtd)\">")
_ATTACHED = re.compile(r"<attached_gpus>\s*(\d{1,4})\s*</attached_gpus>")
_DRIVER = re.compile(r"<driver_version>\s*([\w.]{1,40})\s*</driver_version>")


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("nvidia_smi_q_xml", context)
    text = document.text()
    refuse_entities(text)
    doctype = _DTD.search(text)
    if doctype:
        report.variant = doctype[1]
        report.caution(
            "doctype_present",
            msg("The file names an external DTD, as every such file does; it was not fetched."),
        )
    for number, line in enumerate(text[: text.find("<")].splitlines(), 1):
        judge_remark(report, line.strip(), number, document.host)
    driver = _DRIVER.search(text)
    report.driver_version = driver[1] if driver else None
    parts = _DOCUMENT.findall(text)
    if not parts or text.count("<nvidia_smi_log") > len(parts):
        _cut(report)
    states: list[State] = []
    attached: int | None = None
    for number, part in enumerate(parts or [text]):
        found, declared = _cards(report, part)
        attached = declared if attached is None else attached
        states = _later(states, found) if number else found
    if len(parts) > 1:
        report.counts["documents"] = len(parts)
    judge_states(report, states, attached)
    return report


def _cut(report: Report) -> None:
    report.incomplete(
        "truncated_xml", msg("The XML is cut off or damaged; only whole cards were read.")
    )


def _cards(report: Report, part: str) -> tuple[list[State], int | None]:
    root = xml_root(part)
    if root is not None and root.tag == "nvidia_smi_log":
        cards = root.findall("gpu")
        attached = integer(root.findtext("attached_gpus"))
        return [
            _state(card, f"/nvidia_smi_log/gpu[{i}]") for i, card in enumerate(cards, 1)
        ], attached
    _cut(report)
    declared = _ATTACHED.search(part)
    whole = [card for text in _GPU.findall(part) if (card := xml_root(text)) is not None]
    states = [_state(card, f"/nvidia_smi_log/gpu[{i}]") for i, card in enumerate(whole, 1)]
    return states, int(declared[1]) if declared else None


def _state(card: Element, where: str) -> State:
    values = dict(_leaves(card, "", where))
    bus = card.get("id")
    if bus:
        values.setdefault("pci/pci bus id", (bus, where))
    return State(values, where, closed=True)


def _leaves(element: Element, path: str, where: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for child in element:
        name = path + child.tag.replace("_", " ").lower()
        if len(child):
            yield from _leaves(child, name + "/", f"{where}/{child.tag}")
        else:
            yield name, ((child.text or "").strip(), f"{where}/{child.tag}")


def _later(before: list[State], after: list[State]) -> list[State]:
    """A later document of --loop. Counters only grow, so the later state holds; a fault seen earlier stays."""
    known = {state.text("uuid"): state for state in before}
    merged = []
    for state in after:
        earlier = known.pop(state.text("uuid"), None)
        if earlier is not None:
            faults = {path: (text, where) for path, text, where in earlier.faults()}
            state = State({**state.values, **faults}, state.where, state.closed)
        merged.append(state)
    return [*merged, *known.values()]
