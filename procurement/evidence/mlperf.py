"""MLPerf: LoadGen's summary, and the :::MLLOG lines of training. VALID can stand beside logged errors."""

from __future__ import annotations

import re

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Severity

FORMATS = ("mlperf_loadgen_summary", "mlperf_training_log")

_PAIR = re.compile(r"^\s*([A-Za-z0-9_.][\w .()%/]{0,80}?)\s*:\s*(\S.{0,120})$")
_RESULT = re.compile(r"^Result is\s*:\s*(VALID|INVALID)")
_ERRORS = re.compile(r"^(No|\d{1,9}) (?:ERROR|error)s? encountered")
_WARNINGS = re.compile(r"^(No|\d{1,9}) (?:WARNING|warning)s? encountered")
_SATISFIED = re.compile(
    r"^\s*(Min duration|Min queries|Early stopping|Performance constraints)\s*satisfied\s*:\s*(Yes|NO|No)"
)
_MLLOG = re.compile(r'^:::MLLOG\s+\{.*?"key":\s*"(\w{1,60})"(?:.*?"value":\s*("?[^,"}]{0,80}))?')
_STATUS = re.compile(r'"status":\s*"(\w{1,20})"')
_SPEED = {
    "samples per second": "samples_per_s",
    "tokens per second": "tokens_per_s",
    "completed samples per second": "samples_per_s",
    "completed tokens per second": "tokens_per_s",
    "scheduled samples per second": "scheduled_samples_per_s",
}


def read(document: Document, context: EvidenceContext) -> Report:
    head = document.text()[:65536] if not document.plain else document.source.windows()[0]
    return _training(document, context) if ":::MLLOG" in head else _loadgen(document, context)


def _loadgen(document: Document, context: EvidenceContext) -> Report:
    report = Report("mlperf_loadgen_summary", context)
    values: dict[str, tuple[str, int]] = {}
    result: tuple[str, int] | None = None
    errors: int | None = None
    parameters = False
    for each in document.lines():
        text = each.text.rstrip()
        if found := _RESULT.match(text):
            result = (found[1], each.number)
        elif found := _ERRORS.match(text.strip()):
            errors = 0 if found[1] == "No" else int(found[1])
            if errors:
                report.finding(
                    "errors_logged",
                    Severity.REVIEW,
                    msg(
                        "%(count)s errors were logged although a result is printed: ask for mlperf_log_detail.txt.",
                        count=errors,
                    ),
                    value=errors,
                    threshold=0,
                    where=line(each.number),
                )
        elif found := _WARNINGS.match(text.strip()):
            if found[1] != "No":
                report.review_needed(
                    "warnings_logged",
                    msg(
                        "%(count)s warnings were logged: ask for mlperf_log_detail.txt.",
                        count=int(found[1]),
                    ),
                )
        elif found := _SATISFIED.match(text):
            if found[2].lower() == "no":
                report.finding(
                    "constraint_not_met",
                    Severity.BLOCKING,
                    msg("Not satisfied: %(what)s", what=found[1]),
                    where=line(each.number),
                )
        elif found := _PAIR.match(text):
            values.setdefault(found[1].strip().lower(), (found[2].strip(), each.number))
        parameters |= text.startswith("Test Parameters Used")
    _describe(report, values)
    report.metrics["result"] = result[0] if result else None
    if result and result[0] == "INVALID":
        report.finding(
            "result_invalid",
            Severity.BLOCKING,
            msg("The result is INVALID."),
            value="INVALID",
            threshold="VALID",
            where=line(result[1]),
        )
    if result is None or errors is None or not parameters:
        report.incomplete(
            "summary_cut",
            msg(
                "The result, the parameters or the count of errors is missing: the summary is cut off."
            ),
        )
    mode = values.get("mode", ("", 0))[0]
    if mode and not mode.lower().startswith("performance"):
        report.unproven(
            "not_a_performance_run", msg("The mode is %(mode)s: speed was not measured.", mode=mode)
        )
    _judge_speed(report, values)
    report.caution(
        "no_model_name", msg("The name of the benchmark is not in this file: ask for it.")
    )
    return report


def _describe(report: Report, values: dict[str, tuple[str, int]]) -> None:
    for key, name in (("scenario", "scenario"), ("mode", "mode"), ("sut name", "sut")):
        if key in values:
            report.metrics[name] = values[key][0]
    for key, name in (
        *_SPEED.items(),
        ("min_duration (ms)", "min_duration_ms"),
        ("99.00 percentile latency (ns)", "p99_latency_ns"),
        ("99.90 percentile latency (ns)", "p999_latency_ns"),
        ("target_qps", "target_qps"),
    ):
        if key in values:
            report.metrics.setdefault(name, number(values[key][0]))


def _judge_speed(report: Report, values: dict[str, tuple[str, int]]) -> None:
    judged = False
    for name in ("samples_per_s", "tokens_per_s"):
        promised, value = (
            number(report.context.promise.get(f"{name}_min")),
            report.metrics.get(name),
        )
        if not promised:
            continue
        judged = True
        if not isinstance(value, float):
            report.unproven(
                f"no_{name}", msg("The file does not hold the promised figure %(name)s.", name=name)
            )
            continue
        report.comparison["achieved_over_promised"] = round(value / promised, 4)
        if value < promised:
            where = next((n for key, (_, n) in values.items() if _SPEED.get(key) == name), 0)
            report.finding(
                "below_promise",
                Severity.BLOCKING,
                msg(
                    "%(name)s: %(value)s were reached; %(limit)s were promised.",
                    name=name,
                    value=value,
                    limit=promised,
                ),
                value=value,
                threshold=promised,
                where=line(where),
            )
    if not judged:
        report.review_needed(
            "no_promise", msg("No promised figure is known: the speed was not judged.")
        )


def _training(document: Document, context: EvidenceContext) -> Report:
    """Starts and stops only: which time a vendor promised is not in the log, so a person judges it."""
    report = Report("mlperf_training_log", context)
    started, statuses, lines = 0, [], 0
    for each in document.lines():
        found = _MLLOG.match(each.text)
        if not found:
            continue
        lines += 1
        started += found[1] == "run_start"
        if found[1] == "run_stop":
            status = _STATUS.search(each.text)
            statuses.append(status[1].lower() if status else "")
        elif (
            found[1] in ("submission_benchmark", "submission_platform", "global_batch_size")
            and found[2]
        ):
            report.metrics[found[1]] = found[2].strip('" ')
    report.counts |= {
        "log_lines": lines,
        "runs": started,
        "runs_success": statuses.count("success"),
    }
    if not started or len(statuses) < started:
        report.incomplete("run_not_finished", msg("A run has no end."))
    if any(status != "success" for status in statuses):
        report.finding("run_failed", Severity.BLOCKING, msg("A run did not reach its target."))
    report.review_needed(
        "no_promise", msg("No promised figure is known: the speed was not judged.")
    )
    return report
