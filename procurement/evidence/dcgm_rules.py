"""What a result of `dcgmi diag` means, shared by the JSON and the table reader.

The tool prints an internal warning as "Fail", and a Pass over memory it could not allocate, so the error's id,
severity and category decide. Ids: dcgm_errors.h of DCGM; which of them end an acceptance is practice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.messages import msg
from procurement.evidence.report import DeviceLog, Report
from procurement.evidence.types import Severity, Verdict

_NAMES = {
    4: "VOLATILE_DBE_DETECTED", 5: "VOLATILE_SBE_DETECTED", 6: "PENDING_PAGE_RETIREMENTS",
    7: "RETIRED_PAGES_LIMIT", 8: "RETIRED_PAGES_DBE_LIMIT", 9: "CORRUPT_INFOROM",
    10: "CLOCKS_EVENT_THERMAL", 12: "CLOCKS_EVENT_POWER", 13: "NVLINK_ERROR_THRESHOLD",
    14: "NVLINK_DOWN", 15: "NVSWITCH_FATAL_ERROR", 16: "NVSWITCH_NON_FATAL_ERROR",
    18: "NO_ACCESS_TO_FILE", 20: "DEVICE_COUNT_MISMATCH", 22: "CANNOT_OPEN_LIB",
    23: "DENYLISTED_DRIVER", 25: "GRAPHICS_PROCESSES", 28: "BAD_CUDA_ENV", 29: "PERSISTENCE_MODE",
    30: "LOW_BANDWIDTH", 31: "HIGH_LATENCY", 40: "THERMAL_VIOLATIONS", 41: "THERMAL_VIOLATIONS_TS",
    42: "TEMP_VIOLATION", 43: "CLOCKS_EVENT_VIOLATION", 44: "INTERNAL", 45: "PCIE_GENERATION",
    46: "PCIE_WIDTH", 47: "ABORTED", 48: "TEST_DISABLED", 49: "CANNOT_GET_STAT", 50: "STRESS_LEVEL",
    51: "CUDA_API", 52: "FAULTY_MEMORY", 55: "ECC_DISABLED", 56: "MEMORY_ALLOC", 57: "CUDA_DBE",
    58: "MEMORY_MISMATCH", 60: "ECC_UNSUPPORTED", 62: "MEMORY_BANDWIDTH", 63: "TARGET_POWER",
    66: "CUDA_CONTEXT", 68: "CONCURRENT_GPUS", 70: "NVLINK_CRC_ERROR_THRESHOLD",
    71: "NVLINK_ERROR_CRITICAL", 72: "ENFORCED_POWER_LIMIT", 79: "L1TAG_MISCOMPARE",
    80: "ROW_REMAP_FAILURE", 81: "UNCONTAINED_ERROR", 83: "DBE_PENDING_PAGE_RETIREMENTS",
    84: "UNCORRECTABLE_ROW_REMAP", 85: "PENDING_ROW_REMAP", 86: "BROKEN_P2P_MEMORY_DEVICE",
    87: "BROKEN_P2P_WRITER_DEVICE", 95: "EUD_TEST_FAILED", 96: "FILE_CREATE_PERMISSIONS",
    98: "PCIE_H_REPLAY_VIOLATION", 101: "XID_ERROR", 102: "SBE_VIOLATION", 103: "DBE_VIOLATION",
    104: "PCIE_REPLAY_VIOLATION", 106: "DBE_THRESHOLD_VIOLATION", 108: "CUDA_FM_NOT_INITIALIZED",
    109: "SXID_ERROR", 110: "GFLOPS_THRESHOLD_VIOLATION", 111: "NAN_VALUE",
    118: "SRAM_THRESHOLD", 120: "FALLEN_OFF_BUS", 132: "ROW_REMAP_LIMIT",
}  # fmt: skip
_FAULT = {
    4,
    8,
    9,
    14,
    15,
    52,
    57,
    58,
    79,
    80,
    81,
    86,
    87,
    95,
    101,
    103,
    106,
    109,
    111,
    118,
    120,
    132,
}
_REPEAT = {10, 30, 40, 41, 42, 43, 45, 46, 50, 62, 63, 70, 72, 110, 119, 121}
_WATCH = {5, 7, 84, 85, 98, 102, 104}
_CONFIGURATION = {18, 22, 23, 25, 28, 29, 55, 96, 108, 124}
_NOT_TESTED = {48, 56, 68, 117, 130}
_CATEGORY_CONFIGURATION, _SEVERITY_CONFIGURATION = 3, 5

_CONFIGURATION_TEXT = re.compile(
    r"persistence mode|graphics process|environment variable|denylist|fabric ?manager.{0,40}not",
    re.IGNORECASE,
)
_ALLOCATION_TEXT = re.compile(
    r"(?:unable|failed|could ?n.t|cannot|insufficient).{0,60}allocat|MEMORY_ALLOC|"
    r"allocat\w+.{0,40}(?:fail|insufficient)",
    re.IGNORECASE,
)
_COVERAGE = re.compile(r"Allocated \d+ bytes \((\d+(?:\.\d+)?)\s?%\)")
# NVIDIA/DCGM#272: nvbandwidth starts before the memory copies of the test before it have died away.
_DEFECT_VERSION = re.compile(r"^4\.5\.0\b")
_DEFECT_TEXT = re.compile(
    r"memory copy utilization.{0,80}greater than 10|MCUTIL\s*>\s*10", re.IGNORECASE
)

_MEMORY_TESTS = {"memory", "memtest", "gpu memory", "memory test"}
_DEPLOYMENT = "deployment"
# Checks that load no card, under the names of DCGM 2.x to 4.x.
_SOFTWARE = {
    "software", "denylist", "blacklist", "nvml library", "cuda main library", "cuda toolkit library",
    "cuda toolkit libraries", "permissions and os blocks", "os blocks", "persistence mode",
    "environment variables", "page retirement", "page retirement/row remap", "row remap",
    "graphics processes", "inforom", "fabric manager",
}  # fmt: skip


def is_software_check(test: str) -> bool:
    """Whether a test only looks at the installation, whatever section it stands in."""
    return test.strip().lower() in _SOFTWARE


MACHINE = 1 << 20  # devices of a further machine in the same file count from its multiples


@dataclass(frozen=True, slots=True)
class DiagError:
    """A warning attached to a result. The numbers are None before DCGM 3.3."""

    text: str
    error_id: int | None = None
    category: int | None = None
    severity: int | None = None

    @property
    def name(self) -> str:
        if self.error_id is None:
            return "text only, no error_id"
        return f"DCGM_FR_{_NAMES.get(self.error_id, 'ERROR')}({self.error_id})"


@dataclass(frozen=True, slots=True)
class DiagResult:
    """One test on some devices. `gpus` is None when the tool names none (all of them, if it passed)."""

    test: str
    category: str
    status: str  # pass, fail, skip, warn, as printed but in lower case
    gpus: tuple[int, ...] | None
    where: str
    errors: tuple[DiagError, ...] = ()
    info: tuple[str, ...] = ()
    iteration: int | None = None
    other_entity: str | None = None  # what it is when it is no GPU

    @property
    def deployment(self) -> bool:
        return self.category.lower() == _DEPLOYMENT or is_software_check(self.test)


def error_verdict(report: Report, test: str, error: DiagError, status: str) -> Verdict:
    """What an error makes of the device it is about."""
    if (
        test.lower() == "nvbandwidth"
        and _DEFECT_VERSION.match(report.tool_version or "")
        and _DEFECT_TEXT.search(error.text)
    ):
        return Verdict.RETEST
    number = error.error_id
    if number in _FAULT or number in _REPEAT:
        return Verdict.FAIL
    if number in _NOT_TESTED or (status == "pass" and _ALLOCATION_TEXT.search(error.text)):
        return Verdict.INCONCLUSIVE
    if number == 85 and report.context.sold_as_new:
        return Verdict.FAIL
    if number in _WATCH or number in _CONFIGURATION:
        return Verdict.WARN
    if error.category == _CATEGORY_CONFIGURATION or error.severity == _SEVERITY_CONFIGURATION:
        return Verdict.WARN
    if number is None and _CONFIGURATION_TEXT.search(error.text):
        return Verdict.WARN
    return Verdict.FAIL if status == "fail" else Verdict.WARN


def judge(report: Report, results: Sequence[DiagResult], gpus: Iterable[int]) -> None:
    """Turn results into reasons by device, cautions and counts."""
    universe = sorted({*gpus, *(g for r in results for g in r.gpus or ())})
    logs = {g: report.device(g, index=g % MACHINE) for g in universe}
    for result in results:
        _judge_result(report, result, logs)
    _judge_coverage(report, results, logs)
    _count(report, results, len(universe))


def _judge_result(report: Report, result: DiagResult, logs: dict[int, DeviceLog]) -> None:
    if result.status == "skip":
        return
    named = _named(result, logs)
    step = f"iteration {result.iteration}: " if result.iteration else ""
    for error in result.errors:
        verdict = error_verdict(report, result.test, error, result.status)
        if verdict is Verdict.RETEST:
            report.run_verdicts.append(Verdict.RETEST)
            report.caution(
                "known_tool_defect",
                msg(
                    "DCGM 4.5.0 fails nvbandwidth on idle cards (NVIDIA/DCGM#272): run it again with another version."
                ),
            )
        if not named:
            severity = Severity.BLOCKING if verdict is Verdict.FAIL else Severity.REVIEW
            report.finding(
                f"{result.test}:{error.name}",
                severity,
                msg("%(test)s: %(text)s", test=result.test, text=error.text[:500]),
                where=result.where,
                device=result.other_entity,
            )
        for log in named:
            log.note(
                verdict,
                f"{step}{result.test}:{error.name}",
                msg("%(test)s: %(text)s", test=result.test, text=error.text[:500]),
                value=error.error_id,
                where=result.where,
            )
    if result.status in ("fail", "warn") and not result.errors:
        verdict = Verdict.FAIL if result.status == "fail" else Verdict.WARN
        message = msg("The test %(test)s failed and names no error.", test=result.test)
        for log in named:
            log.note(verdict, f"{step}{result.test}:{result.status}", message, where=result.where)
        if not named:
            report.finding(
                f"{result.test}:{result.status}",
                Severity.BLOCKING,
                message,
                where=result.where,
                device=result.other_entity,
            )
    _judge_memory(report, result, logs)


def _named(result: DiagResult, logs: dict[int, DeviceLog]) -> list[DeviceLog]:
    """The devices that a result is about: listed, or else named in its words; none when it is about the node."""
    if result.other_entity:
        return []
    if result.gpus is not None:
        return [logs[g] for g in result.gpus if g in logs]
    words = {int(n) for e in result.errors for n in re.findall(r"\bGPUs? ?(\d{1,3})\b", e.text)}
    return [logs[g] for g in sorted(words) if g in logs]


def _judge_memory(report: Report, result: DiagResult, logs: dict[int, DeviceLog]) -> None:
    if result.test.lower() not in _MEMORY_TESTS:
        return
    least = report.context.policy.require("memtest_min_coverage")
    for text in result.info:
        found = _COVERAGE.search(text)
        if found and float(found[1]) / 100 < least:
            for log in _named(result, logs):
                log.note(
                    Verdict.INCONCLUSIVE,
                    "memory_coverage",
                    msg(
                        "Only %(value)s %% of the memory was tested; %(limit)s %% is needed.",
                        value=float(found[1]),
                        limit=100 * least,
                    ),
                    value=float(found[1]),
                    threshold=100 * least,
                    where=result.where,
                )


def _judge_coverage(
    report: Report, results: Sequence[DiagResult], logs: dict[int, DeviceLog]
) -> None:
    """A test that ran on some devices must have run on all; one that ran on none is told to the user."""
    hardware = [r for r in results if not r.deployment and not r.other_entity]
    ran: dict[tuple[int | None, str], set[int]] = {}
    for result in hardware:
        covered = ran.setdefault((result.iteration, result.test), set())
        if result.status != "skip":
            covered |= set(logs if result.gpus is None else result.gpus)
    if not logs and any(result.status != "skip" for result in hardware):
        return  # the tests ran; on which devices, nobody can tell
    if not any(ran.values()):
        for log in logs.values():
            log.note(
                Verdict.INCONCLUSIVE,
                "no_hardware_test",
                msg("Every hardware and stress test was skipped or is missing."),
            )
        report.unproven(
            "all_hardware_tests_skipped", msg("Only software checks ran: this is no burn-in.")
        )
        return
    for (iteration, test), covered in ran.items():
        if not covered:
            report.review_needed(
                f"test_skipped:{test}",
                msg("The test %(test)s was skipped on every device.", test=test),
            )
            continue
        for index, log in logs.items():
            if index not in covered:
                step = f"iteration {iteration}: " if iteration else ""
                log.note(
                    Verdict.INCONCLUSIVE,
                    f"{step}{test} skipped",
                    msg("The test %(test)s ran on other devices, not on this one.", test=test),
                )
                report.caution(
                    f"test_skipped:{test}:gpu{index}",
                    msg("The test %(test)s was skipped on GPU %(index)s.", test=test, index=index),
                )


def _count(report: Report, results: Sequence[DiagResult], gpus: int) -> None:
    blocking = configuration = 0
    statuses = {"pass": 0, "fail": 0, "skip": 0, "warn": 0}
    for result in results:
        verdicts = [error_verdict(report, result.test, e, result.status) for e in result.errors]
        if result.status == "fail":
            blocking += not verdicts or Verdict.FAIL in verdicts
            configuration += bool(verdicts) and set(verdicts) == {Verdict.WARN}
        statuses[result.status] = statuses.get(result.status, 0) + 1
    tests = {(r.category, r.test) for r in results}
    by_test: dict[str, set[str]] = {}
    for result in results:
        by_test.setdefault(result.test, set()).add(result.status)
    report.counts |= {
        "gpus": gpus,
        "tests": len(tests),
        "results_pass": statuses["pass"],
        "results_fail": statuses["fail"],
        "results_status_Fail": statuses["fail"],
        "results_skip": statuses["skip"],
        "results_warn": statuses["warn"] + configuration,
        "blocking_fail": blocking,
        "config_warn": configuration,
        "tests_fail": sum("fail" in found for found in by_test.values()),
        "tests_skip": sum(found == {"skip"} for found in by_test.values()),
        "deployment_pass": sum(r.deployment and r.status == "pass" for r in results),
    }
    names = {r.test.lower().replace(" ", "_") for r in results}
    level = (
        4
        if names & {"memtest", "pulse_test", "eud"}
        else 3
        if any(n.startswith("targeted_") for n in names)
        else 2
    )
    report.metrics["inferred_run_level"] = level if names else None
