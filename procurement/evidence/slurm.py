"""Slurm accounting for reviews: queue times and GPU hours of sacct, allocation of sreport. Review, not acceptance."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from core.messages import msg
from planning.telemetry_formats.slurm import (
    Job,
    SacctFacts,
    SreportFacts,
    Utilization,
    sacct,
    sreport,
)
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report

FORMATS = ("slurm_sacct", "slurm_sreport")

_DAY = 86_400.0
_ACTIVE = ("RUNNING", "PENDING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "REQUEUED")
_HOURS = {"seconds": 1 / 3600, "minutes": 1 / 60, "hours": 1.0}
_MAX_JOBS = 2_000_000


def read(document: Document, context: EvidenceContext) -> Report:
    head = (
        document.strip(document.source.windows()[0]) if document.plain else document.text()[:65536]
    )
    if "TRES Name" in head or "Usage reported in" in head:
        return _sreport(document, context)
    return _sacct(document, context)  # without a header too: it says that the columns are unknown


def _sacct(document: Document, context: EvidenceContext) -> Report:
    report = Report("slurm_sacct", context, usage=True, review="queue_month")
    facts = SacctFacts()
    jobs: list[Job] = []
    steps = cpu_only = unknown = 0
    for job in sacct(((each.number, each.text) for each in document.lines()), facts):
        if job.step:
            steps += 1
        elif job.gpus is None:
            unknown += 1
        elif not job.gpus:
            cpu_only += 1
        elif len(jobs) < _MAX_JOBS:
            jobs.append(job)
    queue = next((c for c in ("Planned", "Reserved") if c in facts.columns), "no queue column")
    report.variant = f"{facts.layout}, {queue}"
    started = [job for job in jobs if job.start and job.state != "PENDING"]
    pending = [job for job in jobs if job.state == "PENDING"]
    report.counts |= {
        "lines": facts.rows,
        "allocations": len(jobs),
        "steps": steps,
        "cpu_only": cpu_only,
        "started": len(started),
        "pending": len(pending),
        "running": sum(job.state == "RUNNING" for job in jobs),
        "node_fail": sum(job.state == "NODE_FAIL" for job in jobs),
        "cancelled_before_start": sum(job.state == "CANCELLED" and not job.start for job in jobs),
        "states": dict(Counter(job.state for job in jobs)),
    }
    _hours(report, jobs)
    waits = _waits(report, started, pending)
    _sacct_cautions(report, facts, steps, cpu_only)
    if unknown:
        report.incomplete(
            "gpus_unknown",
            msg(
                "%(count)s jobs do not show how many accelerators they held: use sacct -P with AllocTRES.",
                count=unknown,
            ),
        )
    _queue_review(report, waits, jobs)
    return report


def _hours(report: Report, jobs: Sequence[Job]) -> None:
    finished = sum(
        (job.gpus or 0) * (job.elapsed_s or 0) for job in jobs if job.state not in _ACTIVE
    )
    running = sum((job.gpus or 0) * (job.elapsed_s or 0) for job in jobs if job.state == "RUNNING")
    report.metrics |= {
        "gpu_hours_finished": round(finished / 3600, 2),
        "gpu_hours_running_so_far": round(running / 3600, 2),
    }
    unknown = sum(job.elapsed_s is None for job in jobs)
    if unknown:
        report.caution(
            "elapsed_missing",
            msg(
                "%(count)s jobs have no elapsed time: their hours are missing from the sum.",
                count=unknown,
            ),
        )


def _waits(
    report: Report, started: Sequence[Job], pending: Sequence[Job]
) -> tuple[list[float], list[float]]:
    """Waits of jobs that started, and how long the others have waited so far (their true wait is longer)."""
    waits = sorted(wait for job in started if (wait := job.wait_s) is not None)
    negative = sum(wait < 0 for wait in waits)
    if negative:
        report.caution(
            "clock_backwards",
            msg("%(count)s jobs start before they were submitted.", count=negative),
        )
        waits = [wait for wait in waits if wait >= 0]
    latest = max(
        (m for job in started for m in (job.submit, job.start, job.end) if m), default=None
    )
    open_waits = [wait for job in pending if (wait := _so_far(job, latest)) is not None]
    if len(open_waits) < len(pending):
        report.caution(
            "pending_wait_unknown",
            msg("For some waiting jobs it is not known how long they have waited."),
        )
    day = report.context.policy.require("queue_over_days") * _DAY
    if waits:
        report.metrics |= {
            "wait_median_s": statistics.median(waits),
            "wait_mean_s_started": round(statistics.fmean(waits), 1),
            "wait_max_s": waits[-1],
            "wait_p90_s_nearest_rank": nearest_rank(waits, 0.9),
        }
    report.metrics |= {
        "wait_over_1day_started": sum(wait > day for wait in waits),
        "wait_over_1day_including_pending": sum(wait > day for wait in [*waits, *open_waits]),
    }
    return waits, open_waits


def _so_far(job: Job, latest: datetime | None) -> float | None:
    if job.planned_s is not None:
        return job.planned_s
    asked = [moment for moment in (job.submit, job.eligible) if moment]
    return (
        (latest - max(asked)).total_seconds() if latest and asked and latest > max(asked) else None
    )


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The percentile by nearest rank of an ascending, non-empty sequence."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _queue_review(
    report: Report, waits: tuple[list[float], list[float]], jobs: Sequence[Job]
) -> None:
    policy = report.context.policy
    day = policy.require("queue_over_days") * _DAY
    every = sorted([*waits[0], *waits[1]])
    any_job = "any" in str(policy.overrides.get("rule", "")).lower().split()
    if not jobs or not every:
        report.review_verdict = "inconclusive"
    elif (
        every[-1]
        if any_job
        else max(nearest_rank(every, 0.9), nearest_rank(waits[0] or every, 0.9))
    ) > day:
        report.review_verdict = "insufficient"
    elif report.complete is False:
        report.review_verdict = "inconclusive"
    else:
        report.review_verdict = "ok"


def _sacct_cautions(report: Report, facts: SacctFacts, steps: int, cpu_only: int) -> None:
    if not facts.columns:
        report.incomplete(
            "no_header", msg("The header is missing: the order of the columns is unknown.")
        )
    if steps:
        report.caution(
            "steps_excluded",
            msg(
                "Steps belong to jobs that were counted already: %(count)s rows were left out.",
                count=steps,
            ),
        )
    if cpu_only:
        report.caution(
            "cpu_jobs_excluded",
            msg("%(count)s jobs without accelerators were left out.", count=cpu_only),
        )
    if facts.typed_and_untyped:
        report.caution(
            "gres_counted_once",
            msg(
                "Accelerators appear with and without their type in one list: they were counted once."
            ),
        )
    if facts.cancelled_with_id:
        report.caution("cancelled_by", msg("The state of cancelled jobs carries a user id."))
    if facts.repaired:
        report.caution(
            "rows_repaired",
            msg(
                "%(count)s rows held the separator or a line feed inside a cell and were put together.",
                count=facts.repaired,
            ),
        )
    if facts.cut:
        report.incomplete("truncated_last_line", msg("The last row is cut off."))
    elif facts.bad_rows:
        report.caution(
            "bad_rows",
            msg(
                "%(count)s rows could not be read, the first is line %(line)s.",
                count=len(facts.bad_rows),
                line=facts.bad_rows[0],
            ),
        )
        report.complete = False
    if facts.layout == "fixed width":
        report.caution("fixed_width", msg("Fixed width cuts long values off: use sacct -P."))


def _sreport(document: Document, context: EvidenceContext) -> Report:
    report = Report("slurm_sreport", context, usage=True, review="capacity_quarter")
    facts = SreportFacts()
    found = [
        row
        for row in sreport(((each.number, each.text) for each in document.lines()), facts)
        if row.tres.lower().startswith("gres/gpu")
    ]
    report.variant = f"unit {facts.unit or 'unknown'}"
    report.metrics["period"] = list(facts.period) if facts.period else None
    factor = _HOURS.get(facts.unit.lower())
    untyped = [row for row in found if row.tres.lower() == "gres/gpu"] or found
    if not untyped:
        report.incomplete("no_gpu_row", msg("The report has no row for accelerators."))
        return report
    if facts.bad_rows:
        report.incomplete(
            "bad_rows", msg("%(count)s rows could not be read.", count=facts.bad_rows)
        )
    if len({row.cluster for row in untyped}) > 1:
        report.caution(
            "several_clusters", msg("The report holds several clusters: they were added up.")
        )
    _amounts(report, facts, untyped, factor)
    report.caution(
        "allocated_is_not_utilised",
        msg("Allocated says that a job held the card, not that it used it."),
    )
    if factor is None and not any(row.percents for row in untyped):
        report.incomplete(
            "unit_unknown", msg("The report does not say its unit; minutes are the default.")
        )
    return report


def _amounts(
    report: Report, facts: SreportFacts, rows: Sequence[Utilization], factor: float | None
) -> None:
    names = {
        "Allocated": "gpu_allocated_h",
        "Down": "gpu_down_h",
        "PLND Down": "gpu_planned_down_h",
        "Idle": "gpu_idle_h",
        "Planned": "gpu_planned_h",
        "Reserved": "gpu_planned_h",
        "Reported": "gpu_reported_h",
    }
    hours: dict[str, float] = {}
    if factor is not None:
        for row in rows:
            for column, value in row.values.items():
                if column in names:
                    hours[names[column]] = hours.get(names[column], 0.0) + value * factor
    report.metrics |= {name: round(value, 2) for name, value in hours.items()}
    reported = hours.get("gpu_reported_h")
    if reported:
        report.metrics["gpu_allocated_pct"] = round(
            100 * hours.get("gpu_allocated_h", 0.0) / reported, 2
        )
        down = hours.get("gpu_down_h", 0.0) + hours.get("gpu_planned_down_h", 0.0)
        report.metrics["availability_pct"] = round(100 * (1 - down / reported), 2)
        length = _period_hours(facts)
        if length:
            report.metrics["implied_gpus"] = round(reported / length, 2)
    elif rows[0].percents:
        report.metrics["gpu_allocated_pct"] = rows[0].percents.get("Allocated")


def _period_hours(facts: SreportFacts) -> float | None:
    """Length of the period; its end is printed as the last second inside it."""
    if not facts.period:
        return None
    try:
        start, end = (datetime.fromisoformat(text) for text in facts.period)
    except ValueError:
        return None
    seconds = (end - start).total_seconds()
    return (seconds + (1 if end.second == 59 else 0)) / 3600 if seconds > 0 else None
