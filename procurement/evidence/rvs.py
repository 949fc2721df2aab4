"""AMD's RVS: stress (gst), power (iet) and PCIe (pebb, pbqt). Rows with (*) or without a target are interim."""

from __future__ import annotations

import re
from collections import defaultdict

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import DeviceLog, Report, line
from procurement.evidence.types import Severity, Verdict

FORMATS = ("amd_rvs",)

_LINE = re.compile(r"^\[(RESULT|ERROR|WARN|INFO)\s*\]\s*\[\s*([\d.]+)\s*\]\s*(.*)$")
_BEGINNING = "[RESULT] ["  # a line cut off within this was a line
_FRAGMENT = re.compile(r"\[RESULT|GPU::|\bGFLOPS\b|Power\(W\)|\bpass: |\bGBps\b|^\S{0,20}\] ")
_MODULE = re.compile(r"^Module name\s*:\s*(\w{1,40})")
_GPU = re.compile(r"\[GPU:: ?(\d{1,8})(?: - (\d{1,8}) - ([0-9a-fA-F:.]{7,16}))?\]")
_GST = re.compile(r"\bGFLOPS ([\d.]{1,20})(?: Target GFLOPS: ([\d.]{1,20}) met: (TRUE|FALSE))?")
_PASS = re.compile(r"\bpass: (TRUE|FALSE)\b", re.IGNORECASE)
_POWER = re.compile(r"\bPower\(W\) ([\d.]{1,12})")
_PCIE = re.compile(r"h2d::(true|false) d2h::(true|false) ([\d.]{1,12}) GBps(.*)$")
_MEMORY = re.compile(r"\bmem Test (\d{1,3}) : (.{0,80})", re.IGNORECASE)


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("amd_rvs", context)
    module = ""
    modules: set[str] = set()
    tested: defaultdict[str, set[str]] = defaultdict(set)
    counts = {"met_true": 0, "met_false": 0, "iet_true": 0, "iet_false": 0, "interim": 0}
    damaged = 0
    started = True  # whether every result stands below the name of its module
    ordered, latest = True, 0.0
    lines = [(each.number, each.text.strip()) for each in document.lines() if each.text.strip()]
    addresses = _addresses(lines)
    for where, text in lines:
        found = _LINE.match(text)
        if not found:
            begun = text.strip()
            damaged += bool(_FRAGMENT.search(text)) or (
                bool(begun) and _BEGINNING.startswith(begun)
            )
            continue
        body = found[3]
        moment = number(found[2])
        if moment is not None and moment < latest:
            ordered = False
        latest = max(latest, moment or 0.0)
        if found[1] == "ERROR":
            report.finding(
                "tool_error",
                Severity.BLOCKING,
                msg("The tool reports: %(text)s", text=body[:200]),
                where=line(where),
            )
        if named := _MODULE.match(body):
            module = named[1].lower()
            modules.add(module)
            continue
        gpu = _GPU.search(body)
        if gpu:
            rvs_id = gpu[2] or gpu[1]
            started &= bool(module)
            log = _device(report, rvs_id, addresses)
            _result(log, body, module, where, counts, tested, rvs_id)
    report.counts |= counts
    if damaged:
        report.incomplete("damaged_lines", msg("%(count)s lines could not be read.", count=damaged))
    if not started:
        report.incomplete(
            "no_start", msg("Results stand above the name of their module: the start is cut off.")
        )
    if not ordered:
        report.incomplete("clock_backwards", msg("The times of the lines run backwards."))
    _coverage(report, modules, tested)
    report.caution(
        "rvs_ids", msg("GST and IET print RVS's own ids; only PCIe rows tie them to an address.")
    )
    report.caution("seconds_since_boot", msg("The times are seconds since boot."))
    return report


def _addresses(lines: list[tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """RVS id to (index, bus), which only the rows of pebb and pbqt print."""
    found = {}
    for _, text in lines:
        gpu = _GPU.search(text)
        if gpu and gpu[2]:
            found[gpu[2]] = (int(gpu[1]), gpu[3])
    return found


def _device(report: Report, rvs_id: str, addresses: dict[str, tuple[int, str]]) -> DeviceLog:
    index, bus = addresses.get(rvs_id, (None, None))
    log = report.device(rvs_id, index=index, bus=bus)
    log.figures.setdefault("rvs_gpu_id", rvs_id)
    return log


def _result(
    log: DeviceLog,
    body: str,
    module: str,
    where: int,
    counts: dict[str, int],
    tested: defaultdict[str, set[str]],
    rvs_id: str,
) -> None:
    speed, passed, power, pcie = (
        _GST.search(body),
        _PASS.search(body),
        _POWER.search(body),
        _PCIE.search(body),
    )
    if speed and speed[3]:
        met = speed[3] == "TRUE"
        counts["met_true" if met else "met_false"] += 1
        tested["gst"].add(rvs_id)
        value, target = number(speed[1]), number(speed[2])
        log.figures["gst_gflops"] = value
        if not met or (value is not None and target is not None and value < target):
            log.note(
                Verdict.FAIL,
                "gst_below_target",
                msg(
                    "gst: %(value)s GFLOPS, the target is %(limit)s",
                    value=value or 0,
                    limit=target or 0,
                ),
                value=value,
                threshold=target,
                where=line(where),
            )
    elif speed:
        counts["interim"] += 1
    elif passed:
        good = passed[1].upper() == "TRUE"
        name = module or "iet"
        if name == "iet":
            counts["iet_true" if good else "iet_false"] += 1
        tested[name].add(rvs_id)
        if not good:
            log.note(
                Verdict.FAIL,
                f"{name}_failed",
                msg("%(name)s: pass is FALSE", name=name),
                value="FALSE",
                threshold="TRUE",
                where=line(where),
            )
    elif power:
        log.figures["power_w"] = number(power[1])
    elif pcie:
        if "(*)" in pcie[4]:
            counts["interim"] += 1
            return
        tested[module or "pebb"].add(rvs_id)
        for way, on in (("h2d_gbs", pcie[1]), ("d2h_gbs", pcie[2])):
            if on == "true":
                log.figures[way] = number(pcie[3])
        if number(pcie[3]) == 0:
            log.note(
                Verdict.FAIL,
                "pcie_zero",
                msg("No data moved over PCIe."),
                value=0,
                where=line(where),
            )
    elif re.search(r"\bfail", body, re.IGNORECASE) or (
        (memory := _MEMORY.search(body)) and "error" in memory[2].lower()
    ):
        log.note(
            Verdict.FAIL,
            f"{module or 'rvs'}_failed",
            msg("The tool reports: %(text)s", text=body[:200]),
            where=line(where),
        )


def _coverage(report: Report, modules: set[str], tested: defaultdict[str, set[str]]) -> None:
    """Stress and power must have run, and every module on every card: RVS prints no end to check instead."""
    if not report.devices:
        report.incomplete("no_devices", msg("The file names no card."))
    for needed in ("gst", "iet"):
        if needed not in tested:
            report.unproven(
                f"not_run {needed}", msg("The module %(name)s has no result.", name=needed)
            )
    for module in sorted(
        {*modules, *tested} & {"gst", "iet", "pebb", "pbqt", "mem", "babel", "gpup"}
    ):
        if module in ("gpup",):
            continue
        for rvs_id, log in report.devices.items():
            if tested.get(module) and rvs_id not in tested[module]:
                log.note(
                    Verdict.INCONCLUSIVE,
                    f"not_run {module}",
                    msg("The module %(name)s has no result for this card.", name=module),
                )
        if not tested.get(module):
            report.unproven(
                f"not_run {module}", msg("The module %(name)s has no result.", name=module)
            )
