"""HPL: the result lines and their residuals. A failed residual is a wrong answer, however fast."""

from __future__ import annotations

import re

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.remarks import judge_crash
from procurement.evidence.report import Report, line
from procurement.evidence.stamps import locale_stamp
from procurement.evidence.types import Severity

FORMATS = ("hpl",)
MIXED = "HPL-MxP"

_RESULT = re.compile(
    r"^(W[A-Z]\S{1,20}|HPL_MxP\S{0,20})\s+(\d{1,12})\s+(\d{1,6})\s+(\d{1,6})\s+(\d{1,6})\s+([\d.]{1,15})\s+([\d.eE+-]{1,20})(?:\s|$)"
)
_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|\S*\s*=\s*(\S{1,40})\s+\.{2,}\s+(PASSED|FAILED)")
_FINISHED = re.compile(r"^Finished\s+(\d{1,6}) tests with the following results")
_FAILED = re.compile(r"^\s+(\d{1,6}) tests completed and failed residual checks")
_SKIPPED = re.compile(r"^\s+(\d{1,6}) tests skipped because of illegal input")
_MIXED = re.compile(r"^\s*(?:HPL[-_](?:MxP|AI)|HPL_MxP\S*)\b", re.IGNORECASE)
_RULE = re.compile(r"^={80}$")  # the last line of the output
_CLOCK = re.compile(r"^HPL_\w+\(\) (start|end) time\s+(\S.{0,60})$")
_VERSION = re.compile(r"^(HPLinpack|HPL-NVIDIA)\s+(\S{1,20})")


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("hpl", context)
    runs: list[tuple[re.Match[str], int]] = []
    residuals: list[tuple[str, str, int]] = []
    moments: list[str] = []  # of start and end of each run, local times in the order of print
    finished: int | None = None
    failed_count = skipped = 0
    told = ended = mixed = False
    for each in document.lines():
        text = each.text.rstrip()
        if result := _RESULT.match(text):
            if len(runs) < 100_000:
                runs.append((result, each.number))
        elif residual := _RESIDUAL.match(text):
            residuals.append((residual[1], residual[2], each.number))
        elif done := _FINISHED.match(text):
            finished = int(done[1])
        elif bad := _FAILED.match(text):
            failed_count = int(bad[1])
        elif none := _SKIPPED.match(text):
            skipped = int(none[1])
        elif clock := _CLOCK.match(text):
            stamp = locale_stamp(clock[2])
            if stamp:
                moments.append(stamp.text)
        elif judge_crash(report, text, each.number):
            continue
        elif version := _VERSION.match(text):
            report.tool_version = version[2]
            report.variant = version[1]
        mixed |= bool(_MIXED.match(text))
        if text.startswith("End of Tests."):
            told = True
        ended |= told and bool(_RULE.match(text))
    if moments:
        report.metrics |= {"first": min(moments), "last": max(moments)}
        if moments != sorted(moments):
            report.unproven("clock_backwards", msg("The clock of the log runs backwards."))
    failed = sum(outcome == "FAILED" for _, outcome, _ in residuals)
    report.counts |= {
        "runs": len(runs),
        "passed": len(residuals) - failed,
        "failed": failed,
        "skipped": skipped,
    }
    for value, outcome, number_ in residuals:
        wild = number(value)
        if outcome == "FAILED" or wild is None:
            report.finding(
                "residual_failed",
                Severity.BLOCKING,
                msg("A residual check failed: the answer was wrong (%(value)s).", value=value),
                value=value,
                threshold="PASSED",
                where=line(number_),
            )
    if failed_count and not failed:
        report.finding(
            "residual_failed",
            Severity.BLOCKING,
            msg("The summary counts %(count)s failed residual checks.", count=failed_count),
            value=failed_count,
            threshold=0,
        )
    whole = (
        ended
        and finished is not None
        and len(residuals) >= len(runs) > 0
        and finished <= len(residuals) + skipped
    )
    if not whole:
        report.incomplete(
            "run_not_finished",
            msg("The end of the tests is missing, or a run has no residual check."),
        )
    if skipped:
        report.review_needed(
            "tests_skipped", msg("%(count)s tests were skipped for their input.", count=skipped)
        )
    if mixed:
        # Many times faster than HPL, and refined to its precision: a promise of HPL says nothing of it.
        report.variant = MIXED
        report.review_needed(
            "mixed_precision",
            msg("HPL-MxP computes in mixed precision: its speed is not that of HPL."),
        )
    else:
        _judge_speed(report, runs, residuals)
    return report


def _judge_speed(
    report: Report, runs: list[tuple[re.Match[str], int]], residuals: list[tuple[str, str, int]]
) -> None:
    best, where, speed = None, 0, -1.0
    for i, (result, number_) in enumerate(runs):
        passed = i < len(residuals) and residuals[i][1] == "PASSED"
        gflops = number(result[7])
        if gflops is not None and gflops > speed and (passed or best is None):
            best, where, speed = i, number_, gflops
    if best is None:
        return
    result = runs[best][0]
    n, seconds = int(result[2]), number(result[6])
    report.metrics |= {
        "gflops": speed,
        "n": n,
        "nb": int(result[3]),
        "p": int(result[4]),
        "q": int(result[5]),
        "time_s": seconds,
        "residual": number(residuals[best][0]) if best < len(residuals) else None,
    }
    if not speed or not seconds or abs((2 / 3 * n**3) / seconds / 1e9 / speed - 1) > 0.05:
        report.unproven("figures_disagree", msg("Size and time do not give the printed Gflop/s."))
    promised = number(report.context.promise.get("hpl_tflops_min"))
    if not promised:
        report.review_needed(
            "no_promise", msg("No promised figure is known: the speed was not judged.")
        )
    else:
        report.comparison["achieved_over_promised"] = round(speed / 1000 / promised, 4)
        if speed / 1000 < promised:
            report.finding(
                "below_promise",
                Severity.BLOCKING,
                msg(
                    "%(value)s TFLOP/s were reached; %(limit)s were promised.",
                    value=round(speed / 1000, 2),
                    limit=promised,
                ),
                value=round(speed / 1000, 3),
                threshold=promised,
                where=line(where),
            )
    report.caution(
        "names_no_gpus",
        msg(
            "HPL names no cards: bind it by the log of the run (%(ranks)s ranks).",
            ranks=int(result[4]) * int(result[5]),
        ),
    )
    if seconds is not None and seconds < 3600:
        report.caution(
            "short_run", msg("A run of %(seconds)s s shows speed, not stability.", seconds=seconds)
        )
