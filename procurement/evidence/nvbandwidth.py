"""nvbandwidth, JSON and text. "Passed" says that a test ran; whether its figures are good is judged here.

Host paths are held against the model's limit and against each other, device paths against the median of their
matrix. One slow row and column is a card; one slow cell is a path whose ends cannot be told apart.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.bounded import documents, items, mapping, objects
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Severity, Verdict, normal_bus

FORMATS = ("nvbandwidth_json", "nvbandwidth_text")

_RUNNING = re.compile(r"^Running (\w{3,80})\.")
_SUM = re.compile(r"^(?:SUM|COUNT|AVG|MEDIAN) (\w{3,80})\s+([\d.eE+-]+)")
_HOST_TESTS = ("host_to_device_memcpy", "device_to_host_memcpy")
_WAIVED = re.compile(r"^Waived:")
_DEVICE = re.compile(r"^Device (\d{1,3}): (.{1,100}?) \(([0-9a-fA-F:.]{5,20})\)")
_ROW = re.compile(r"^\s*(\d{1,3})((?:\s+(?:N/A|-?[\d.]+(?:[eE][+-]?\d+)?))+)\s*$")
_COLUMNS = re.compile(r"^(?:\s+\d{1,3})+\s*$")
_DATA_ERROR = re.compile(r"Invalid value when checking the pattern|\bASSERT", re.IGNORECASE)
_ERROR = re.compile(r"\bCUDA_ERROR_\w+|\bcuda\w+ error|\[Error\]|^ERROR\b|: error\b", re.IGNORECASE)
_END = re.compile(
    r"^Performance can vary with software drivers, hardware clocks, and system topology\."
)
_VERSION = re.compile(r"^(?:nvbandwidth Version|Built from Git version):\s*(\S+)")
_DRIVER = re.compile(r"^Driver Version:\s*(\S+)")
_UNIT = re.compile(r"\((GB/s|ns|us)\)")


@dataclass(frozen=True, slots=True)
class _Test:
    name: str
    status: str
    matrix: tuple[tuple[float | None, ...], ...]
    where: str
    unit: str = "GB/s"
    sum: float | None = None


def read(document: Document, context: EvidenceContext) -> Report:
    window = document.text()[:65536] if not document.plain else document.source.windows()[0]
    if re.search(r'"nvbandwidth"\s*:', window) or '"testcases"' in window:
        return _read_json(document, context)
    return _read_text(document, context)


def _read_json(document: Document, context: EvidenceContext) -> Report:
    report = Report("nvbandwidth_json", context)
    found = documents(document.text(), ("nvbandwidth",))
    if not found:
        report.incomplete("unreadable_json", msg("The JSON could not be read."))
        return report
    tests: list[_Test] = []
    for each in found:
        root = mapping(mapping(each.value).get("nvbandwidth"))
        if not each.sound:
            report.incomplete(
                "damaged_json",
                msg("The JSON is cut off or damaged; only what came before was read."),
            )
        report.counts["garbage_prefix_lines"] = each.lines_before
        report.tool_version = _optional(root.get("git_version")) or report.tool_version
        report.driver_version = _optional(root.get("Driver Version")) or report.driver_version
        if root.get("error"):
            report.finding(
                "tool_error",
                Severity.BLOCKING,
                msg("The tool reports: %(text)s", text=str(root["error"])[:300]),
            )
        tests += [_test(t, i) for i, t in enumerate(objects(root.get("testcases")))]
    _judge(report, tests, {})
    statuses = [test.status.lower() for test in tests]
    report.counts |= {
        "testcases": len(tests),
        "passed": statuses.count("passed"),
        "waived": statuses.count("waived"),
    }
    return report


def _optional(value: Any) -> str | None:
    return str(value)[:60] if value else None


def _test(data: Mapping[str, Any], index: int) -> _Test:
    matrix = tuple(
        tuple(number(cell) if isinstance(cell, str | int | float) else None for cell in items(row))
        for row in items(data.get("bandwidth_matrix"))[:1024]
    )
    description = str(data.get("bandwidth_description", ""))
    unit = _UNIT.search(description)
    return _Test(str(data.get("name", "?"))[:80], str(data.get("status", ""))[:200], matrix,
                 f"$.nvbandwidth.testcases[{index}]", unit[1] if unit else "GB/s", number(data.get("sum")))  # fmt: skip


def _read_text(document: Document, context: EvidenceContext) -> Report:
    report = Report("nvbandwidth_text", context)
    tests: list[_Test] = []
    devices: dict[int, tuple[str, str]] = {}
    name, where, unit, total = "", 0, "GB/s", None
    rows: list[tuple[float | None, ...]] = []
    waived = 0
    ended = False

    def close(finished: bool) -> None:
        if name:
            tests.append(
                _Test(name, "Passed" if finished else "Cut", tuple(rows), line(where), unit, total)
            )

    for each in document.lines():
        text = each.text.rstrip()
        if running := _RUNNING.match(text):
            close(False)
            name, where, unit, total, rows = running[1], each.number, "GB/s", None, []
        elif finished := _SUM.match(text):
            if finished[1] == name:
                total = number(finished[2])
                close(True)
                name = ""
        elif _WAIVED.match(text):
            waived += 1
            name = ""
        elif device := _DEVICE.match(text):
            devices[int(device[1])] = (device[2], normal_bus(device[3]))
        elif _DATA_ERROR.search(text):
            report.finding(
                "data_error",
                Severity.BLOCKING,
                msg("Data came back wrong: %(text)s", text=text[:200]),
                where=line(each.number),
            )
        elif _ERROR.search(text):
            report.finding(
                "tool_error",
                Severity.BLOCKING,
                msg("The tool reports: %(text)s", text=text[:200]),
                where=line(each.number),
            )
        elif name and (row := _ROW.match(text)) and not _COLUMNS.match(text):
            rows.append(tuple(number(cell) for cell in row[2].split()))
        elif name and (stated := _UNIT.search(text)):
            unit = stated[1]
        elif version := _VERSION.match(text):
            report.tool_version = version[1]
        elif driver := _DRIVER.match(text):
            report.driver_version = driver[1]
        ended |= bool(_END.match(text))
    if name:
        close(False)
    if not ended:
        report.incomplete(
            "no_end",
            msg("The note at the end of the tool's output is missing: the file is cut off."),
        )
    _judge(report, tests, devices)
    report.counts |= {"testcases_run": len(tests), "waived_lines": waived}
    if waived:
        report.caution("testcase_waived", msg("%(count)s tests were waived.", count=waived))
    return report


def _judge(report: Report, tests: Sequence[_Test], devices: Mapping[int, tuple[str, str]]) -> None:
    for index, (model, bus) in devices.items():
        report.device(index, index=index, model=model, bus=bus)
    ran = [test for test in tests if test.matrix and test.status.lower() == "passed"]
    for test in tests:
        status = test.status.lower()
        if status == "waived":
            report.caution(
                f"testcase_waived:{test.name}", msg("The test %(name)s was waived.", name=test.name)
            )
            if test.name.startswith(_HOST_TESTS):  # every card has a path to its host
                report.unproven(
                    "host_path_not_measured",
                    msg("A test of the path between host and card was waived."),
                )
        elif status == "cut":
            report.incomplete("test_cut", msg("The test %(name)s has no end.", name=test.name))
        elif status.startswith(("error", "fail")):
            report.finding(
                f"testcase_error:{test.name}",
                Severity.BLOCKING,
                msg("The test %(name)s ended with: %(status)s", name=test.name, status=test.status),
                where=test.where,
            )
        elif status != "passed":
            report.incomplete("unknown_status", msg("A result has no status that is known."))
        elif not test.matrix:
            report.incomplete("no_matrix", msg("The test %(name)s has no figures.", name=test.name))
    if any("latency" in test.name or test.unit != "GB/s" for test in ran):
        report.caution(
            "latency_is_lower_better", msg("Latencies are in ns or us: lower is better.")
        )
    bandwidth = [test for test in ran if test.unit == "GB/s" and "latency" not in test.name]
    _latency(report, ran)
    for test in bandwidth:
        if test.name.startswith(("host_to_device", "device_to_host", "host_to_all", "all_to_host")):
            _host_paths(report, test)
        elif test.name.startswith("device_to_device") and len(test.matrix) > 1:
            _device_paths(report, test)
        elif test.name.startswith("device_local"):
            _local(report, test)
    if not any(test.name.startswith(("host_to_device", "device_to_")) for test in bandwidth):
        report.unproven("no_bandwidth_test", msg("No test of host or device paths ran."))
    report.caution(
        "passed_means_ran", msg("Passed says that a test ran, not that its figures are good.")
    )


def _latency(report: Report, tests: Sequence[_Test]) -> None:
    for test in tests:
        if "latency" in test.name:
            report.metrics.setdefault("latency_ns", [c for row in test.matrix for c in row])


def _host_paths(report: Report, test: _Test) -> None:
    """One figure a card. A half of its peers' is a link with half of its lanes or of an older generation."""
    cells = test.matrix[0]
    policy = report.context.policy
    short = (
        "h2d"
        if test.name.startswith("host_to_device")
        else "d2h"
        if test.name.startswith("device_to_host")
        else test.name
    )
    if test.name.endswith("_ce") and test.name.startswith("host_to_device_memcpy"):
        report.metrics |= {
            "h2d_gbs_per_gpu": list(cells),
            "h2d_gbs": list(cells),
            "h2d_sum_reported": test.sum,
        }
    present = [c for c in cells if c is not None]
    if not present:
        return
    median, spread = statistics.median(present), policy.require("h2d_max_spread")
    both_ways = "bidirectional" in test.name
    for index, value in enumerate(cells):
        log = report.device(index, index=index)
        limit = policy.limit("h2d_min_gbs", log.model)
        if value is None:
            log.note(
                Verdict.INCONCLUSIVE,
                f"no_value {test.name}",
                msg("%(column)s was never shown: nothing is known of it.", column=test.name),
                where=test.where,
            )
            continue
        if short == "h2d":
            log.figures["h2d_gbs"] = value
        if limit is None:
            report.review_needed(
                "h2d_limit_unknown",
                msg(
                    "The file names no model and the contract no limit: host paths were only compared with each other."
                ),
            )
        if (
            limit is not None
            and not both_ways
            and not test.name.startswith(("host_to_all", "all_to_host"))
            and value < limit
        ):
            log.note(
                Verdict.FAIL,
                f"{short}_low",
                msg(
                    "%(name)s: %(value)s GB/s, at least %(limit)s is asked for: too few lanes or an old PCIe link.",
                    name=test.name,
                    value=value,
                    limit=limit,
                ),
                value=value,
                threshold=limit,
                where=test.where,
            )
        elif value < median * (1 - 2 * spread):
            log.note(
                Verdict.FAIL,
                f"{short}_below_peers",
                msg(
                    "%(name)s: %(value)s GB/s beside a median of %(limit)s",
                    name=test.name,
                    value=value,
                    limit=median,
                ),
                value=value,
                threshold=round(median * (1 - 2 * spread), 2),
                where=test.where,
            )
        elif value < median * (1 - spread):
            log.note(
                Verdict.WARN,
                f"{short}_below_peers",
                msg(
                    "%(name)s: %(value)s GB/s beside a median of %(limit)s",
                    name=test.name,
                    value=value,
                    limit=median,
                ),
                value=value,
                threshold=round(median * (1 - spread), 2),
                where=test.where,
            )


def _device_paths(report: Report, test: _Test) -> None:
    cells = {
        (i, j): v
        for i, row in enumerate(test.matrix)
        for j, v in enumerate(row)
        if i != j and v is not None
    }
    size = max(len(test.matrix), max((len(row) for row in test.matrix), default=0))
    for index in range(size):
        report.device(index, index=index)
    if not cells:
        report.unproven(
            "no_device_paths", msg("The matrix %(name)s holds no figure.", name=test.name)
        )
        return
    median = statistics.median(cells.values())
    floor = report.context.policy.require("d2d_min_fraction_of_median") * median
    report.metrics.setdefault("d2d_min", min(cells.values()))
    report.metrics.setdefault("d2d_max", max(cells.values()))
    own = {index: [v for key, v in cells.items() if index in key] for index in range(size)}
    bad = {index for index, values in own.items() if values and statistics.median(values) < floor}
    for index in sorted(bad):
        report.device(index).note(
            Verdict.FAIL,
            "d2d_low",
            msg(
                "%(name)s: all paths of this card are near %(value)s GB/s beside a median of %(limit)s",
                name=test.name,
                value=round(statistics.median(own[index]), 1),
                limit=round(median, 1),
            ),
            value=round(statistics.median(own[index]), 2),
            threshold=round(floor, 2),
            where=test.where,
        )
    for index, values in own.items():
        if not values:
            report.device(index).note(
                Verdict.INCONCLUSIVE,
                "no_d2d",
                msg("%(name)s shows no path of this card.", name=test.name),
                where=test.where,
            )
    for (i, j), value in cells.items():
        if value < floor and not {i, j} & bad:
            report.finding(
                "d2d_path_low",
                Severity.BLOCKING,
                msg(
                    "%(name)s: the path %(a)s to %(b)s has %(value)s GB/s beside a median of %(limit)s",
                    name=test.name,
                    a=i,
                    b=j,
                    value=value,
                    limit=round(median, 1),
                ),
                value=value,
                threshold=round(floor, 2),
                where=test.where,
            )
            for index in (i, j):
                report.device(index).note(
                    Verdict.INCONCLUSIVE,
                    "path_low",
                    msg("A path to this card is slow; which end is to blame is not known."),
                    where=test.where,
                )


def _local(report: Report, test: _Test) -> None:
    """Memory bandwidth of the card itself. A copy reaches less than STREAM triad: below is for a person to judge."""
    policy = report.context.policy
    for index, value in enumerate(test.matrix[0]):
        log = report.device(index, index=index)
        rated = policy.limit("hbm_gbs", log.model)
        if value is None:
            continue
        log.figures["local_copy_gbs"] = value
        if rated and value < policy.require("hbm_min_fraction") * rated:
            log.note(
                Verdict.WARN,
                "memory_bandwidth_low",
                msg(
                    "A local copy reaches %(value)s GB/s of %(limit)s GB/s.",
                    value=value,
                    limit=rated,
                ),
                value=value,
                threshold=rated,
                where=test.where,
            )
