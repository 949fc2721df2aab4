"""gpu-burn (wilicc): progress, error windows, the final table, and whether it ran long enough.

The tool's OK only says that no error was seen: a run that never started prints it too. Its error counter starts
again at every Summary, so errors are the sum of each window's maximum. Source: gpu_burn-drv.cpp.
"""

from __future__ import annotations

import itertools
import re
import statistics
from collections.abc import Iterator

import numpy as np

from core.messages import msg
from procurement.evidence.document import Document
from procurement.evidence.gpu_burn_records import RecordParser
from procurement.evidence.gpu_burn_run import Run
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import DeviceLog, Report, line
from procurement.evidence.stamps import locale_stamp
from procurement.evidence.types import Severity, Verdict

FORMATS = ("gpu_burn",)

_DEVICE = re.compile(r"^GPU (\d{1,4}): (.{1,120}?) \(UUID: (GPU-[0-9a-fA-F-]{8,64}|[^)]{1,80})\)")
_RESULT = re.compile(r"^\s*GPU (\d{1,4}): (OK|FAULTY)\b")
_PLANNED = re.compile(r"^Burning for (\d{1,9}) seconds")
_TESTED = re.compile(r"^Tested (\d{1,4}) GPUs:")
_INIT = re.compile(r"^Couldn't init a GPU test(?:: Error:?)?:?\s*(.{0,120})")
_SUMMARY = re.compile(r"Summary at:\s*(.{0,80})")
_MODE = re.compile(
    r"^Initialized device (\d{1,4}) .*?using (FLOATS|DOUBLES)(, using Tensor Cores)?"
)
_PROGRESS = b"proc'd:"
_MAX_STAMPS = 10_000
# A Summary is printed when a tenth has passed; its stamp may be a sampling interval off.
_STAMP_TOLERANCE = 0.05


def read(document: Document, context: EvidenceContext) -> Report:
    """Read every run in a log of any length, in one pass."""
    runs: dict[str | None, list[Run]] = {}
    parser = RecordParser()
    mixed = False
    for number, host, piece in _pieces(document):
        hosted = runs.setdefault(host, [Run(host)])
        run = hosted[-1]
        if _PROGRESS in piece:
            for block in parser.parse(piece.strip(b"\r")):
                mixed |= not run.absorb(block, number)
            continue
        for text in piece.decode(errors="replace").split("\r"):
            if text and _header(run, text, number):
                run = Run(host, start_line=number)
                hosted.append(run)
                _header(run, text, number)
    report = Report("gpu_burn", context)
    every = [run for hosted in runs.values() for run in hosted if run.started]
    for run in every:
        run.close_window()
        _judge(report, run, several=len(every) > 1)
    if parser.unreadable:
        report.counts["unreadable_records"] = parser.unreadable
        report.incomplete(
            "unreadable_records",
            msg("%(count)s progress records could not be read.", count=parser.unreadable),
        )
    if mixed:
        report.incomplete(
            "device_count_changes", msg("The number of devices changes within one run.")
        )
    _describe(report, every)
    return report


def _pieces(document: Document) -> Iterator[tuple[int, str | None, bytes]]:
    """(line, host, bytes) where the bytes are records only, or text without records."""
    if not document.plain:
        for each in document.lines():
            yield each.number, each.host, each.text.encode()
        return
    number, carry = 1, b""
    for chunk in document.source.byte_chunks():
        data = carry + chunk
        cut = max(data.rfind(b"\r"), data.rfind(b"\n"))
        if cut < 0:
            carry = data if len(data) < (1 << 20) else b""
            if not carry:
                document.source.damage.add("line_too_long")
            continue
        carry = data[cut:]
        physical = data[:cut].split(b"\n")
        for i, part in enumerate(physical):
            if part:
                yield number, document.host, part
            number += i < len(physical) - 1
        if carry.startswith(b"\n"):
            number += 1
            carry = carry[1:]
    if carry.strip():
        yield number, document.host, carry


def _header(run: Run, text: str, number: int) -> bool:
    """Take in a line that is not a record. True when it begins another run."""
    planned = _PLANNED.match(text)
    if planned:
        if run.planned_s is not None or run.records:
            return True
        run.planned_s, run.start_line = float(planned[1]), number
    elif device := _DEVICE.match(text):
        if run.results:
            return True
        run.names[int(device[1])] = (device[2], device[3] if device[3].startswith("GPU-") else None)
    elif mode := _MODE.match(text):
        run.modes.add(mode[2] + (mode[3] or ""))
    elif result := _RESULT.match(text):
        run.results[int(result[1])] = (result[2], number)
    elif tested := _TESTED.match(text):
        run.tested = int(tested[1])
    elif init := _INIT.match(text):
        if len(run.init_errors) < 100:
            run.init_errors.append((init[1].strip(), number))
    elif text.startswith("No clients are alive"):
        run.aborted_line = number
    elif summary := _SUMMARY.search(text):
        run.summaries += 1
        if run.devices:
            run.close_window()
        stamp = locale_stamp(summary[1])
        if stamp and len(run.stamps) < _MAX_STAMPS:
            run.stamps.append((run.last_percent, stamp))
    return False


def _judge(report: Report, run: Run, *, several: bool) -> None:
    if run.host:
        report.hosts.append(run.host)
    indices = sorted({*run.names, *run.results, *range(run.devices)})
    logs: dict[int, DeviceLog] = {}
    for index in indices:
        model, uuid = run.names.get(index, (None, None))
        key = (run.host, uuid or index)
        logs[index] = report.device(key, index=index, host=run.host, uuid=uuid, model=model)
        _judge_device(report, run, index, logs[index])
    _compare_peers(report, run, logs)
    _judge_length(report, run, logs)
    if not logs:
        report.incomplete("no_devices", msg("The log names no device."))
    if several:
        report.caution("several_runs", msg("The file holds several runs; every one must pass."))


def _judge_device(report: Report, run: Run, index: int, log: DeviceLog) -> None:
    policy, fail = report.context.policy, Verdict.FAIL
    result = run.results.get(index)
    if result and result[0] == "FAULTY":
        log.note(
            fail,
            "final_faulty",
            msg("The tool's final table says FAULTY."),
            value="FAULTY",
            threshold="OK",
            where=line(result[1]),
        )
    if not result:
        log.note(
            Verdict.INCONCLUSIVE,
            "no_final_result",
            msg("The final table has no line for this device."),
        )
    if run.aborted_line:
        log.note(
            fail,
            "aborted",
            msg("The run was aborted: no process was alive."),
            where=line(run.aborted_line),
        )
    if index in run.died:
        log.note(
            fail,
            "process_died",
            msg("The process that loaded this device died."),
            where=line(run.died[index]),
        )
    if index >= run.devices:
        log.note(Verdict.INCONCLUSIVE, "no_records", msg("No progress record names this device."))
        _init_errors(run, log)
        return
    errors = float(run.errors[index])
    if errors > 0:
        log.figures["compute_errors"] = int(errors)
        log.note(
            fail,
            "compute_errors",
            msg("%(count)s wrong results were computed.", count=int(errors)),
            value=int(errors),
            threshold=0,
            where=line(run.error_line.get(index, run.start_line)),
        )
    if not run.work_n[index]:
        log.figures["mean_gflops"] = 0
        log.note(
            fail,
            "zero_work",
            msg("The device did no work at all: 0 Gflop/s in every record."),
            value=0,
            threshold="> 0",
            where=line(run.start_line),
        )
        _init_errors(run, log)
    else:
        log.figures["mean_gflops"] = round(float(run.work_sum[index] / run.work_n[index]))
        log.figures["min_gflops"] = round(float(run.lowest[index]))
        _judge_drop(report, run, index, log)
    if not np.isnan(run.hottest[index]):
        hottest = float(run.hottest[index])
        log.figures["max_temp_c"] = round(hottest)
        limit = policy.require("max_temp_c", log.model)
        if hottest > limit:
            known = policy.model(log.model) is not None
            log.note(
                fail if known else Verdict.WARN,
                "temp_max",
                msg("It reached %(value)s C; %(limit)s C is allowed.", value=hottest, limit=limit),
                value=hottest,
                threshold=limit,
                where=line(run.start_line),
            )


def _judge_drop(report: Report, run: Run, index: int, log: DeviceLog) -> None:
    allowed = report.context.policy.require("max_drop_vs_own_first_decile")
    drop = run.deepest_drop(index)
    if drop is None:
        log.note(
            Verdict.INCONCLUSIVE,
            "no_baseline",
            msg("The first tenth of the run is missing, so a loss of speed cannot be seen."),
        )
    elif drop > allowed:
        log.note(
            Verdict.FAIL,
            "performance_drop",
            msg(
                "Its speed fell %(drop)s %% below its own first tenth; %(limit)s %% is allowed.",
                drop=round(100 * drop, 1),
                limit=round(100 * allowed, 1),
            ),
            value=round(drop, 4),
            threshold=allowed,
            where=line(run.start_line),
        )


def _init_errors(run: Run, log: DeviceLog) -> None:
    for text, number in run.init_errors[:1]:
        log.note(
            Verdict.FAIL,
            "init_error",
            msg("The test could not start: %(error)s", error=text or "?"),
            value=text,
            where=line(number),
        )


def _compare_peers(report: Report, run: Run, logs: dict[int, DeviceLog]) -> None:
    """Cards of one model in one run against their median."""
    spread = report.context.policy.require("max_gpu_spread")
    by_model: dict[str | None, list[DeviceLog]] = {}
    for log in logs.values():
        if log.figures.get("mean_gflops"):
            by_model.setdefault(log.model, []).append(log)
    for peers in by_model.values():
        means = [float(log.figures["mean_gflops"] or 0) for log in peers]
        if len(means) < 2:
            continue
        floor = statistics.median(means) * (1 - spread)
        for log, mean in zip(peers, means, strict=True):
            if mean < floor:
                log.note(
                    Verdict.FAIL,
                    "slower_than_peers",
                    msg(
                        "Its mean of %(value)s Gflop/s is below %(limit)s, the least beside its peers.",
                        value=round(mean),
                        limit=round(floor),
                    ),
                    value=round(mean),
                    threshold=round(floor),
                    where=line(run.start_line),
                )


def _judge_length(report: Report, run: Run, logs: dict[int, DeviceLog]) -> None:
    if run.init_errors and not any(d.figures.get("mean_gflops") == 0 for d in logs.values()):
        report.finding(
            "init_error",
            Severity.BLOCKING,
            msg(
                "The test could not start on a device: %(error)s",
                error=run.init_errors[0][0] or "?",
            ),
            where=line(run.init_errors[0][1]),
            host=run.host,
        )
    finished = run.tested is not None and len(run.results) == run.tested == max(
        run.devices, len(run.names)
    )
    if not finished or run.last_percent < 100.0:
        report.incomplete(
            "run_not_finished",
            msg(
                "The run stops at %(percent)s %% or its final table is not whole.",
                percent=run.last_percent,
            ),
        )
    needed = report.context.policy.require("min_hours") * 3600
    if run.planned_s is None:
        report.unproven("duration_unknown", msg("The line with the planned seconds is missing."))
    elif run.planned_s < needed:
        report.metrics["planned_duration_s"] = run.planned_s
        short = msg(
            "It ran for %(value)s s; %(limit)s s are needed.",
            value=round(run.planned_s),
            limit=round(needed),
        )
        for log in logs.values():
            log.note(
                Verdict.INCONCLUSIVE,
                "too_short",
                short,
                value=run.planned_s,
                threshold=needed,
                where=line(run.start_line),
            )
    if run.backwards:
        report.unproven("clock_backwards", msg("The progress runs backwards within one run."))
    _judge_stamps(report, run)


def _judge_stamps(report: Report, run: Run) -> None:
    """The Summary stamps must show the time that the percentages claim."""
    times = [stamp.moment for _, stamp in run.stamps]
    if any(b < a for a, b in itertools.pairwise(times)):
        report.unproven("clock_backwards", msg("The Summary stamps run backwards."))
    elif len(times) >= 2 and run.planned_s:
        claimed = (run.stamps[-1][0] - run.stamps[0][0]) / 100 * run.planned_s
        shown = (times[-1] - times[0]).total_seconds()
        if shown < claimed * (1 - _STAMP_TOLERANCE) - 60:
            report.unproven(
                "stamps_disagree",
                msg(
                    "The Summary stamps show %(shown)s s where the progress claims %(claimed)s s.",
                    shown=round(shown),
                    claimed=round(claimed),
                ),
            )
    elif run.planned_s and run.planned_s >= 3600:
        report.unproven("no_stamps", msg("No two Summary stamps show that the time really passed."))


def _describe(report: Report, runs: list[Run]) -> None:
    if not runs:
        report.incomplete("no_run", msg("The file holds no run of the tool."))
        return
    best = max(runs, key=lambda run: (run.planned_s or 0, run.last_percent))
    report.metrics |= {
        "planned_duration_s": best.planned_s,
        "last_pct": best.last_percent,
        "summaries": best.summaries,
        "records_distinct": best.records,
        "first_summary_at": best.stamps[0][1].text if best.stamps else None,
        "last_summary_at": best.stamps[-1][1].text if best.stamps else None,
        "modes": sorted(best.modes),
    }
    failed = [log for log in report.devices.values() if log.freeze().verdict is Verdict.FAIL]
    by_tool = sum(result == "FAULTY" for run in runs for result, _ in run.results.values())
    report.counts |= {
        "runs": len(runs),
        "gpus": len(report.devices),
        "gpus_faulty_by_tool": by_tool,
        "gpus_failed_by_policy": len(failed),
    }
    report.caution(
        "duration_from_header",
        msg(
            "The tool prints no start: the planned seconds, 100 percent and the Summary stamps prove the time together."
        ),
    )
    if all(log.uuid for log in report.devices.values()):
        report.caution(
            "no_serial", msg("The tool prints no serial numbers: bind by UUID to nvidia-smi -q.")
        )
    else:
        report.unproven(
            "no_identity",
            msg("The log lacks the UUID of a device, so it cannot be bound to a delivery."),
        )
    if any(run.errors.sum() > 0 for run in runs):
        report.caution(
            "error_counter_resets_after_each_summary",
            msg(
                "The error counter starts again at each Summary; the sum of each window's maximum counts."
            ),
        )
    if failed and not by_tool and any(run.results for run in runs):
        report.caution(
            "tool_says_ok_for_all",
            msg("The tool's own table says OK for every device; the records say otherwise."),
        )
    if any(re.search(r"\b[AP]M\b", stamp.raw) for run in runs for _, stamp in run.stamps):
        report.caution("twelve_hour_clock", msg("The Summary stamps use a 12-hour clock."))
