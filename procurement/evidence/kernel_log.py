"""Kernel logs: XID by card, SXid by switch, and the events that end a burn-in. Quotes of the phrase are ignored."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from core.messages import msg
from procurement.evidence.document import Document
from procurement.evidence.kernel_lines import KernelLine, kernel_lines
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import DeviceLog, Report, line
from procurement.evidence.types import Severity, Verdict, normal_bus
from procurement.evidence.xid import INFORMATIVE, judge_xid

FORMATS = ("kernel_log_xid",)

_BUS = r"(?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?|[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)"
_XID = re.compile(
    rf"NVRM: Xid \({_BUS}\): (\d{{1,5}}),\s*(.*)$"
)  # the comma guards against a code cut off
_XID_CUT = re.compile(r"NVRM: Xid \((?:PCI:)?[0-9a-fA-F:.]*(?:\)(?:: ?\d{0,5})?)?$")
_XID_ANYWHERE = re.compile(r"Xid \(")
_GPU_AT = re.compile(rf"NVRM: GPU at {_BUS}: (GPU-[0-9a-fA-F-]{{8,64}})")
_SERIAL = re.compile(r"NVRM: GPU Board Serial Number: (\w{4,32})")
_OFF_BUS = re.compile(rf"NVRM: (?:The NVIDIA )?GPU {_BUS}.{{0,40}}has fallen off the bus")
_INIT_FAILED = re.compile(rf"NVRM: GPU {_BUS}: RmInitAdapter failed")
_SXID = re.compile(rf"nvidia-nvswitch(\d{{1,3}}): SXid \({_BUS}\): (\d{{1,6}}), (.*)$")
_AER = re.compile(
    rf"AER: (?:Multiple )?(Uncorrect(?:ed|able)|Correct(?:ed|able)) (?:\((Fatal|Non-Fatal)\) )?error.{{0,40}}?: {_BUS}"
)
_NODE_EVENTS = (
    ("kernel_panic", Severity.BLOCKING, re.compile(r"Kernel panic - not syncing|\bOops: ")),
    ("memory_uncorrected", Severity.BLOCKING, re.compile(r"EDAC \S+: \d+ UE |Uncorrected hardware memory error")),
    ("machine_check", Severity.REVIEW, re.compile(r"mce: \[Hardware Error\]")),
    ("lockup", Severity.REVIEW, re.compile(r"soft lockup|hard LOCKUP|blocked for more than \d+ seconds")),
    ("out_of_memory", Severity.REVIEW, re.compile(r"Out of memory: Killed process|invoked oom-killer")),
)  # fmt: skip
_BOOT = re.compile(r"^Linux version \d")
_SAME_EVENT_SECONDS = 60.0


@dataclass(slots=True)
class _State:
    xid_lines: int = 0
    events: int = 0
    sxid_lines: int = 0
    sxid: set[tuple[str | None, str, int]] = field(default_factory=set)
    unread: int = 0  # lines of the driver with an XID in an unknown form
    weighed: set[tuple[str | None, str, int]] = field(default_factory=set)
    unweighed: dict[tuple[str | None, str, int], tuple[int, str]] = field(default_factory=dict)
    by_host: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    codes: set[int] = field(default_factory=set)
    last_seen: dict[tuple[str | None, str, int], tuple[float | None, str]] = field(
        default_factory=dict
    )
    identities: dict[tuple[str | None, str], tuple[str | None, str | None]] = field(
        default_factory=dict
    )
    last_bus: dict[str | None, str] = field(default_factory=dict)
    last_event: dict[str | None, tuple[str, int]] = field(default_factory=dict)
    forms: Counter[str] = field(default_factory=Counter)
    boots: int = 0
    node_events: Counter[str] = field(default_factory=Counter)
    cut: int | None = None
    last_number: int = 0
    clock: dict[tuple[str | None, str], float] = field(default_factory=dict)
    absolute: tuple[float, float] | None = None  # first and last moment whose zone is known


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("kernel_log_xid", context, complete=None)
    state = _State()
    for each in kernel_lines(document):
        state.last_number = each.number
        _clock(report, state, each)
        if each.kernel:
            state.forms[each.form] += 1
            _kernel(report, state, each)
        elif _XID_ANYWHERE.search(each.text):
            if each.form == "journal cut":
                report.incomplete("truncated_last_line", msg("A journal entry is cut off."))
            else:
                report.caution(
                    "decoy", msg("A line quotes an XID but is not from the kernel: it was ignored.")
                )
    _finish(report, state)
    return report


def _clock(report: Report, state: _State, each: KernelLine) -> None:
    if each.host and each.host not in report.hosts and len(report.hosts) < 5000:
        report.hosts.append(each.host)
    if each.seconds is None or each.form == "monotonic":
        return
    if each.zoned:
        low, high = state.absolute or (each.seconds, each.seconds)
        state.absolute = (min(low, each.seconds), max(high, each.seconds))
    key = (each.host, each.form)
    if each.seconds < state.clock.get(key, each.seconds) - 3600 and each.form != "syslog":
        report.unproven("clock_backwards", msg("The clock of the log runs backwards."))
    state.clock[key] = each.seconds


def _kernel(report: Report, state: _State, each: KernelLine) -> None:
    text = each.text
    if each.repeated:
        _repeat(report, state, each)
    elif found := _XID.search(text):
        _xid(report, state, each, normal_bus(found[1]), int(found[2]), found[3])
    elif _XID_CUT.search(text):
        state.cut = each.number
    elif _XID_ANYWHERE.search(text) and "SXid (" not in text:
        state.unread += 1
        report.unproven(
            "xid_not_read",
            msg(
                "A line of the driver tells an XID in a form that is not known (line %(line)s).",
                line=each.number,
            ),
        )
    elif found := _GPU_AT.search(text):
        bus = normal_bus(found[1])
        state.last_bus[each.host] = bus
        serial = state.identities.get((each.host, bus), (None, None))[1]
        state.identities[each.host, bus] = (found[2], serial)
    elif found := _SERIAL.search(text):
        bus = state.last_bus.get(each.host, "")
        if bus:
            uuid = state.identities.get((each.host, bus), (None, None))[0]
            state.identities[each.host, bus] = (uuid, found[1])
    elif found := _SXID.search(text):
        _sxid(report, state, each, normal_bus(found[2]) + ".0", int(found[3]), found[4])
    elif found := _OFF_BUS.search(text):
        _device(report, each.host, normal_bus(found[1])).note(
            Verdict.FAIL,
            "fallen_off_bus",
            msg("GPU has fallen off the bus"),
            where=line(each.number),
        )
    elif found := _INIT_FAILED.search(text):
        _device(report, each.host, normal_bus(found[1])).note(
            Verdict.FAIL,
            "init_failed",
            msg("The driver could not initialise the card."),
            where=line(each.number),
        )
    elif found := _AER.search(text):
        _aer(report, each, found)
    else:
        _node(report, state, each)


def _device(report: Report, host: str | None, bus: str) -> DeviceLog:
    return report.device((host, bus), host=host, bus=bus)


def _xid(report: Report, state: _State, each: KernelLine, bus: str, code: int, text: str) -> None:
    state.xid_lines += 1
    state.codes.add(code)
    state.by_host[each.host or ""][str(code)] += 1
    key = (each.host, bus, code)
    before = state.last_seen.get(key)
    state.last_seen[key] = (each.seconds, text)
    same = (
        before is not None
        and before[1] == text
        and (
            each.seconds is None
            or before[0] is None
            or abs(each.seconds - before[0]) <= _SAME_EVENT_SECONDS
        )
    )
    state.events += not same
    state.last_event[each.host] = (bus, code)
    verdict, message = judge_xid(code, text)
    log = _device(report, each.host, bus)
    log.figures[f"xid{code}"] = int(log.figures.get(f"xid{code}") or 0) + 1
    if code != INFORMATIVE:
        log.note(verdict, f"xid{code}", message, value=code, where=line(each.number))
    else:
        log.figures["recovery_action"] = text[:200]
        log.figures.setdefault("recovery_line", each.number)


def _repeat(report: Report, state: _State, each: KernelLine) -> None:
    found = state.last_event.get(each.host)
    if found is None:
        return
    bus, code = found
    state.by_host[each.host or ""][str(code)] += each.repeated
    log = _device(report, each.host, bus)
    log.figures[f"xid{code}"] = int(log.figures.get(f"xid{code}") or 0) + each.repeated
    report.caution(
        "repeat_counter_expanded",
        msg("A line says that the one before came several times: they were counted."),
    )


def _sxid(report: Report, state: _State, each: KernelLine, bus: str, code: int, text: str) -> None:
    """Three lines an event; the one that says Fatal or Non-fatal counts."""
    state.sxid_lines += 1
    weight = re.match(r"(Fatal|Non-?fatal)\b", text, re.IGNORECASE)
    if not weight:
        state.unweighed.setdefault((each.host, bus, code), (each.number, text))
        return
    state.weighed.add((each.host, bus, code))
    fatal = weight[1].lower() == "fatal"
    state.sxid.add((each.host, bus, each.number))
    report.finding(
        f"nvswitch_sxid_{code}_{'fatal' if fatal else 'non_fatal'}",
        Severity.BLOCKING if fatal else Severity.REVIEW,
        msg("NVSwitch %(device)s: SXid %(code)s, %(text)s", device=bus, code=code, text=text[:200]),
        value=code,
        where=line(each.number),
        host=each.host,
        device=bus,
    )


def _aer(report: Report, each: KernelLine, found: re.Match[str]) -> None:
    bus = normal_bus(found[3])
    corrected = found[1].lower().startswith("correct")
    known = report.devices.get((each.host, bus))
    if corrected:
        report.caution("pcie_corrected", msg("The kernel reports corrected PCIe errors."))
    elif known:
        known.note(
            Verdict.FAIL if found[2] == "Fatal" else Verdict.WARN,
            "pcie_aer",
            msg("Uncorrected PCIe error"),
            where=line(each.number),
        )
    else:
        report.finding(
            "pcie_aer",
            Severity.BLOCKING,
            msg("Uncorrected PCIe error at %(device)s", device=bus),
            where=line(each.number),
            host=each.host,
            device=bus,
        )


def _node(report: Report, state: _State, each: KernelLine) -> None:
    if _BOOT.match(each.text):
        state.boots += 1
    for code, severity, pattern in _NODE_EVENTS:
        if pattern.search(each.text):
            state.node_events[code] += 1
            if state.node_events[code] == 1:
                report.finding(
                    code,
                    severity,
                    msg("The kernel reports: %(text)s", text=each.text[:200]),
                    where=line(each.number),
                    host=each.host,
                )


def _finish(report: Report, state: _State) -> None:
    for (host, bus), (uuid, serial) in state.identities.items():
        log = report.devices.get((host, bus))
        if log:
            log.uuid, log.serial = uuid, serial
    for log in report.devices.values():
        where = log.figures.pop("recovery_line", None)
        if where is not None:
            verdict = Verdict.WARN if not log.reasons else Verdict.PASS  # it speaks of another XID
            log.note(
                verdict,
                "xid154",
                msg("The driver asks for: %(action)s", action=str(log.figures["recovery_action"])),
                value=INFORMATIVE,
                where=line(int(where)),
            )
    for (host, bus, code), (number, text) in state.unweighed.items():
        if (host, bus, code) not in state.weighed:  # the line that says how grave it is was lost
            report.finding(
                f"nvswitch_sxid_{code}",
                Severity.REVIEW,
                msg(
                    "NVSwitch %(device)s: SXid %(code)s, %(text)s",
                    device=bus,
                    code=code,
                    text=text[:200],
                ),
                value=code,
                where=line(number),
                host=host,
                device=bus,
            )
    report.counts |= {
        "xid_lines": state.xid_lines,
        "xid_events_after_dedup": state.events,
        "sxid_lines": state.sxid_lines,
        "sxid_events": len(state.sxid),
        "distinct_xids": sorted(state.codes),
        "boots": state.boots,
        "xid_events": {host: dict(codes) for host, codes in state.by_host.items()},
        "xid_not_read": state.unread,
        "kernel_lines": sum(state.forms.values()),
    }
    report.variant = ", ".join(sorted(state.forms))
    _cautions(report, state)
    if not report.devices and not report.findings:
        window = report.context.window
        if (
            window
            and state.absolute
            and state.absolute[0] <= window[0]
            and state.absolute[1] >= window[1]
        ):
            report.caution(
                "covers_window",
                msg("The log covers the burn-in and holds no error of a card or a switch."),
            )
        else:
            report.unproven(
                "coverage_unknown",
                msg("No error is in the log, but nothing shows that it covers the whole time."),
            )


def _cautions(report: Report, state: _State) -> None:
    if state.cut is not None:
        report.complete = False
        report.caution(
            "truncated_last_line",
            msg(
                "Line %(number)s is cut off inside an XID: its code was not read.", number=state.cut
            ),
        )
    if state.forms["dmesg -T"] or state.forms["syslog"]:
        report.caution("no_timezone", msg("The times have no zone: ask for the host's."))
    if state.forms["syslog"]:
        report.caution("year_missing", msg("The times have no year."))
    if state.forms["dmesg -T"] or state.forms["monotonic"]:
        report.caution(
            "dmesg_ring_buffer",
            msg("A ring buffer forgets: the absence of early lines proves nothing."),
        )
    if state.forms["monotonic"]:
        report.caution("no_wall_clock", msg("Some lines carry seconds since boot only."))
    if state.boots > 1:
        report.review_needed(
            "reboot_in_log",
            msg("The node was started %(count)s times within the log.", count=state.boots),
        )
