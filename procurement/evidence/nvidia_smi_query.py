"""`nvidia-smi -q` as text: a tree by indentation in which keys repeat, one block a card."""

from __future__ import annotations

import re

from core.messages import msg
from planning.telemetry_formats.values import integer
from procurement.evidence.document import Document
from procurement.evidence.nvidia_smi_rules import judge_states
from procurement.evidence.nvidia_smi_state import State
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.remarks import judge_remark
from procurement.evidence.report import Report, line

FORMATS = ("nvidia_smi_q_text",)

_BLOCK = re.compile(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")
_PAIR = re.compile(r"^(\s*)(\S(?:.{0,120}?\S)?)\s*:(?:\s+(.*?))?\s*$")
_KEY = re.compile(r"^(\s+)(\S(?:.{0,120}\S)?)\s*$")
_LOG = re.compile(r"^=+NVSMI LOG=+")
_MAX_DEPTH = 12


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("nvidia_smi_q_text", context)
    blocks: list[tuple[str, int, dict[str, tuple[str, str]]]] = []
    stack: list[tuple[int, str]] = []
    attached: int | None = None
    logs = 0
    for each in document.lines():
        text = each.text.expandtabs(4)
        if judge_remark(report, text.strip(), each.number, each.host):
            continue
        if _LOG.match(text):
            logs += 1
            continue
        block = _BLOCK.match(text)
        if block:
            blocks.append((block[1], each.number, {}))
            stack = []
            continue
        pair = _PAIR.match(text)
        if not blocks:
            if pair:
                attached = _header(report, pair[2].lower(), pair[3] or "", attached)
            continue
        key = pair or _KEY.match(text)
        if not key:
            continue
        depth = len(key[1])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        path = "/".join([*(name for _, name in stack), key[2].lower()])
        if pair and pair[3]:
            blocks[-1][2].setdefault(path, (pair[3], line(each.number)))
        elif len(stack) < _MAX_DEPTH:
            stack.append((depth, key[2].lower()))
            if key[2] == "Processes":
                blocks[-1][2].setdefault("processes", ("None", line(each.number)))
    states = [
        State({"pci/bus id": (bus, line(number))} | values, line(number), "processes" in values)
        for bus, number, values in blocks
    ]
    if logs > 1:
        states = _last_of_each(report, states)
    judge_states(report, states, attached)
    return report


def _header(report: Report, key: str, value: str, attached: int | None) -> int | None:
    if key == "driver version":
        report.driver_version = value
    elif key == "attached gpus":
        return integer(value)
    elif key == "timestamp":
        report.metrics["timestamp"] = value
    return attached


def _last_of_each(report: Report, states: list[State]) -> list[State]:
    """Several logs in one file: a fault in any of them counts, so every state is kept once by what it says."""
    report.caution(
        "several_logs", msg("The file holds several logs; the last state of each card was read.")
    )
    latest: dict[str, State] = {}
    for state in states:
        before = latest.get(state.text("uuid") or state.where)
        merged = state
        if before:
            bad = {p: v for p, v in before.values.items() if v[0].strip().lower() in ("yes",)}
            merged = State({**state.values, **bad}, state.where, state.closed and before.closed)
        latest[state.text("uuid") or state.where] = merged
    return list(latest.values())
