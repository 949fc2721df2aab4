"""nvidia-smi's query log as burn-in evidence: continuity, throttling, clocks, temperatures and ECC by card."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from core.messages import msg
from planning.telemetry_formats.nvidia_smi_csv import Layout, Remark, Row, rows
from planning.telemetry_formats.values import Cell, classify, number
from procurement.evidence.document import Document
from procurement.evidence.nvidia_smi_series import (
    LIVE,
    LOCKED,
    POWER_CAP,
    REASONS,
    SW_THERMAL,
    Series,
    take_sample,
)
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.remarks import judge_remark
from procurement.evidence.report import Report, line
from procurement.evidence.types import Verdict

FORMATS = ("nvidia_smi_query_csv",)

_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("nvidia_smi_query_csv", context)
    layout = Layout()
    series: dict[tuple[str | None, str], Series] = {}
    intervals: Counter[float] = Counter()
    counts = Counter[str]()
    headless: list[Remark] = []
    last: Row | Remark | None = None
    for item in rows(_numbered(document), layout):
        last = item
        if isinstance(item, Remark):
            counts["non_csv_lines"] += 1
            if (
                not judge_remark(report, item.text, item.number, item.host)
                and not layout.columns
                and len(headless) < 20_000
            ):
                headless.append(item)
            continue
        counts["rows"] += 1
        counts["short_rows"] += item.short
        one = _series(report, series, item)
        if one:
            take_sample(one, item, intervals)
    _judge(report, layout, series, intervals, counts, headless)
    if isinstance(last, Row) and last.short:
        report.incomplete("truncated_last_line", msg("The last row is cut off."))
    return report


def _numbered(document: Document) -> Iterator[tuple[int, str, str | None]]:
    for each in document.lines():
        yield each.number, each.text, each.host


def _series(
    report: Report, series: dict[tuple[str | None, str], Series], row: Row
) -> Series | None:
    cells = row.cells
    identity = {k: cells.get(k, "") for k in ("serial", "uuid", "pci.bus_id", "index")}
    known = {k: v for k, v in identity.items() if v and classify(v) is Cell.VALUE}
    name = known.get("uuid") or known.get("serial") or known.get("pci.bus_id") or known.get("index")
    if name is None:
        return None
    key = (row.host, name)
    if key not in series:
        index = number(known.get("index"))
        model = cells.get("name", "")
        log = report.device(
            key, index=int(index) if index is not None else None, host=row.host, uuid=known.get("uuid"),
            serial=known.get("serial"), bus=known.get("pci.bus_id"),
            model=model if classify(model) is Cell.VALUE else None,
        )  # fmt: skip
        series[key] = Series(log)
    return series[key]


def _judge(
    report: Report, layout: Layout, series: dict[tuple[str | None, str], Series],
    intervals: Counter[float], counts: Counter[str], headless: list[Remark],
) -> None:  # fmt: skip
    for one in series.values():
        _judge_device(report, one)
    report.variant = f"separator {layout.delimiter!r}, {layout.headers} headers"
    if layout.old_names:
        report.variant += ", old column names"
    if not layout.columns:
        _judge_headless(report, headless, counts)
    if layout.decimal_commas and layout.decimal_points:
        report.unproven(
            "edited_by_spreadsheet",
            msg("Decimal commas and points are mixed: the file was edited. Ask for the original."),
        )
    elif layout.decimal_commas or layout.quoted or layout.delimiter != ",":
        report.review_needed(
            "edited_by_spreadsheet",
            msg(
                "The separator, quotes or decimal commas show that a spreadsheet saved this file again."
            ),
        )
    if counts["short_rows"]:
        report.incomplete(
            "short_rows", msg("%(count)s rows have too few cells.", count=counts["short_rows"])
        )
    _judge_time(report, series, intervals)
    _describe(report, series, counts)


def _judge_headless(report: Report, lines: list[Remark], counts: Counter[str]) -> None:
    """Rows without a header: only who is named and what does not answer can be told."""
    report.complete = None
    report.unproven(
        "no_header",
        msg("The header is missing: the order of the columns is unknown. Add the command line."),
    )
    for item in lines:
        found = _UUID.search(item.text)
        fault = classify(item.text) is Cell.FAULT
        if found:
            counts["rows"] += 1
            counts["non_csv_lines"] -= 1
            log = report.device((item.host, found[0]), host=item.host, uuid=found[0])
            log.note(
                Verdict.INCONCLUSIVE,
                "no_header",
                msg("Its figures have no names."),
                where=line(item.number),
            )
            if fault:
                log.note(
                    Verdict.FAIL,
                    "nvml_error",
                    msg("The driver got no answer: %(text)s", text=item.text[:200]),
                    where=line(item.number),
                )
        elif fault:
            judge_remark(report, item.text, item.number, item.host, force=True)


def _judge_device(report: Report, one: Series) -> None:
    log, policy = one.log, report.context.policy
    model = log.model
    absent = [
        c
        for c in LIVE
        if c in one.classes and one.classes[c] in (Cell.ABSENT, Cell.UNSUPPORTED, Cell.FORBIDDEN)
    ]
    for column in absent:
        log.note(
            Verdict.INCONCLUSIVE,
            f"no_value {column}",
            msg("%(column)s was never shown: nothing is known of it.", column=column),
        )
    if one.classes.get("serial") in (Cell.ABSENT, Cell.UNSUPPORTED):
        report.caution("no_serial", msg("A card shows no serial number: bind it by UUID."))
    hardware = [b for b in (0x8, 0x40, 0x80) if one.reasons[b]]
    if hardware:
        names = "+".join(REASONS[b] for b in (0x8, 0x40, 0x20, 0x80) if one.reasons[b])
        where, since = one.reason_seen[hardware[0]]
        log.note(
            Verdict.FAIL,
            "throttle",
            msg(
                "%(names)s in %(count)s samples, first at %(since)s",
                names=names,
                count=max(one.reasons[b] for b in hardware),
                since=since,
            ),
            value=max(one.reasons[b] for b in hardware),
            threshold=0,
            where=line(where),
        )
    elif one.reasons[SW_THERMAL]:
        share, allowed = (
            one.reasons[SW_THERMAL] / one.samples,
            policy.require("max_sw_thermal_fraction"),
        )
        log.note(
            Verdict.FAIL if share > allowed else Verdict.WARN,
            "sw_thermal_slowdown",
            msg(
                "Software thermal slowdown in %(share)s %% of the samples",
                share=round(100 * share, 2),
            ),
            value=round(share, 4),
            threshold=allowed,
            where=line(one.reason_seen[SW_THERMAL][0]),
        )
    if one.reasons[LOCKED]:
        log.note(
            Verdict.INCONCLUSIVE,
            "clocks_locked",
            msg("Somebody had fixed the clocks: the test is void."),
            where=line(one.reason_seen[LOCKED][0]),
        )
    if one.reasons[POWER_CAP]:
        report.caution(
            "sw_power_cap",
            msg(
                "The software power cap is normal at full load when the limit is the design power."
            ),
        )
    if one.sm_high_loaded and one.sm_low_loaded:
        drop = 1 - one.sm_low_loaded[0] / one.sm_high_loaded
        if drop > policy.require("max_clock_drop"):
            log.note(
                Verdict.FAIL if hardware else Verdict.WARN,
                "sm_clock_drop",
                msg(
                    "The SM clock fell from %(high)s to %(low)s MHz under load",
                    high=one.sm_high_loaded,
                    low=one.sm_low_loaded[0],
                ),
                value=round(drop, 4),
                threshold=policy.require("max_clock_drop"),
                where=line(one.sm_low_loaded[1]),
            )
    _judge_worst(report, one, model)
    if one.sm_n:
        log.figures |= {"min_sm_mhz": one.sm_low, "mean_sm_mhz": round(one.sm_sum / one.sm_n, 1)}
    log.figures["samples"] = one.samples


def _judge_worst(report: Report, one: Series, model: str | None) -> None:
    policy, log = report.context.policy, one.log
    rules = (
        (
            "temperature.gpu",
            "max_temp_c",
            "temp_max",
            Verdict.FAIL if policy.model(model) else Verdict.WARN,
        ),
        ("temperature.memory", "max_memory_temp_c", "memory_temp_max", Verdict.WARN),
    )
    for column, key, code, verdict in rules:
        value, where = one.worst.get(column, (None, 0))
        limit = policy.require(key, model)
        if value is not None:
            log.figures["max_temp_c" if code == "temp_max" else "max_memory_temp_c"] = value
            if value > limit:
                log.note(
                    verdict,
                    code,
                    msg(
                        "It reached %(value)s C; %(limit)s C is allowed.", value=value, limit=limit
                    ),
                    value=value,
                    threshold=limit,
                    where=line(where),
                )
    wrong = one.worst.get("ecc.errors.uncorrected.volatile.total", (0.0, 0))
    if wrong[0] > 0:
        log.note(
            Verdict.FAIL,
            "ecc_uncorrected",
            msg("%(count)s uncorrectable memory errors", count=int(wrong[0])),
            value=int(wrong[0]),
            threshold=0,
            where=line(wrong[1]),
        )
    mended = one.worst.get("ecc.errors.corrected.volatile.total", (0.0, 0))
    if mended[0] > 0:
        log.note(
            Verdict.WARN,
            "ecc_corrected",
            msg("%(count)s corrected memory errors: watch it", count=int(mended[0])),
            value=int(mended[0]),
            threshold=0,
            where=line(mended[1]),
        )
    if "remapped_rows.failure" in one.worst:
        log.note(
            Verdict.FAIL,
            "row_remap_failure",
            msg("Remapping a memory row failed."),
            where=line(one.worst["remapped_rows.failure"][1]),
        )
    if "remapped_rows.pending" in one.worst:
        log.note(
            Verdict.FAIL if report.context.sold_as_new else Verdict.WARN,
            "row_remap_pending",
            msg("A memory row waits to be remapped."),
            where=line(one.worst["remapped_rows.pending"][1]),
        )
    remapped = one.worst.get("remapped_rows.uncorrectable", (0.0, 0))
    if remapped[0] > 0:
        log.note(
            Verdict.WARN,
            "remapped_rows",
            msg("%(count)s rows were remapped for uncorrectable errors", count=int(remapped[0])),
            value=int(remapped[0]),
            threshold=0,
            where=line(remapped[1]),
        )


def _judge_time(
    report: Report, series: dict[tuple[str | None, str], Series], intervals: Counter[float]
) -> None:
    policy = report.context.policy
    timed = [one for one in series.values() if one.first and one.last]
    nominal = _median(intervals)
    largest = max((one.gap for one in timed if one.gap), default=None, key=lambda gap: gap[0])
    if nominal and largest and largest[0] > policy.require("max_gap_intervals") * nominal + 1:
        report.incomplete(
            "gap_in_log",
            msg(
                "No samples from %(start)s to %(end)s (line %(line)s).",
                start=largest[1].isoformat(),
                end=largest[2].isoformat(),
                line=largest[3],
            ),
        )
    for one in timed:
        if one.backwards:
            report.unproven(
                "clock_backwards",
                msg("The time runs backwards at line %(line)s.", line=one.backwards),
            )
    amounts = [one.samples for one in series.values()]
    if (amounts and max(amounts) - min(amounts) > 1) or (
        amounts and min(amounts) < max(amounts) == 2
    ):
        report.incomplete("uneven_samples", msg("Some cards have fewer samples than others."))
    span = max(
        ((one.last - one.first).total_seconds() for one in timed if one.first and one.last),
        default=0.0,
    )
    if timed:
        first, last = (
            min(one.first for one in timed if one.first),
            max(one.last for one in timed if one.last),
        )
        report.metrics |= {
            "first": first.isoformat(timespec="milliseconds"),
            "last": last.isoformat(timespec="milliseconds"),
        }
    report.metrics |= {"span_hours": round(span / 3600, 3), "nominal_interval_s": round(nominal) if nominal else None,
                       "largest_gap_s": round(largest[0]) if largest else None}  # fmt: skip
    if span < policy.require("min_hours") * 3600 * 0.9999:
        report.unproven(
            "duration_not_proven",
            msg(
                "The samples span %(value)s h; %(limit)s h are needed.",
                value=round(span / 3600, 2),
                limit=policy.require("min_hours"),
            ),
        )
    if series and all(one.samples == 1 for one in series.values()):
        report.caution("snapshot", msg("One sample of each card has no time range."))
    if span:
        report.caution("no_timezone", msg("The times have no zone: ask for the host's."))
        _judge_load(report, series)


def _judge_load(report: Report, series: dict[tuple[str | None, str], Series]) -> None:
    """A burn-in must have been one: cards loaded in 95 % of the samples."""
    for one in series.values():
        if one.measured_load and one.loaded < 0.95 * one.measured_load:
            one.log.note(
                Verdict.INCONCLUSIVE,
                "not_loaded",
                msg(
                    "It was under full load in %(share)s %% of the samples only.",
                    share=round(100 * one.loaded / one.measured_load, 1),
                ),
                value=round(one.loaded / one.measured_load, 3),
                threshold=0.95,
            )


def _median(intervals: Counter[float]) -> float | None:
    total, seen = sum(intervals.values()), 0
    for step in sorted(intervals):
        seen += intervals[step]
        if 2 * seen >= total:
            return step
    return None


def _describe(
    report: Report, series: dict[tuple[str | None, str], Series], counts: Counter[str]
) -> None:
    models = Counter(one.log.model for one in series.values() if one.log.model)
    report.counts |= {
        "rows": counts["rows"],
        "gpus": len(report.devices),
        "models": dict(models),
        "non_csv_lines": counts["non_csv_lines"],
        "thermal_throttle_rows": sum(one.thermal_rows for one in series.values()),
    }
    amounts = {one.samples for one in series.values()}
    if len(amounts) == 1:
        report.counts["samples_per_gpu"] = amounts.pop()
    if counts["non_csv_lines"]:
        report.incomplete(
            "non_csv_lines",
            msg("%(count)s lines are no rows of the table.", count=counts["non_csv_lines"]),
        )
    if len(models) > 1:
        report.caution("mixed_gpu_models", msg("The file holds several models."))
    if any(c is not Cell.VALUE for one in series.values() for c in one.classes.values()):
        report.caution(
            "na_values", msg("Some values were not available; missing is neither zero nor a pass.")
        )
    if not report.devices:
        report.incomplete("no_devices", msg("No row names a card."))
    report.hosts += [one.log.host for one in series.values() if one.log.host]
