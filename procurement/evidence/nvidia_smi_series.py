"""One card's samples in nvidia-smi's query log: extremes, clock event reasons, gaps, in constant memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from core.messages import msg
from planning.telemetry_formats.nvidia_smi_csv import Row, moment
from planning.telemetry_formats.values import Cell, classify, number
from procurement.evidence.report import DeviceLog, line
from procurement.evidence.types import Verdict

# NVML clock event reasons.
REASONS = {
    0x1: "idle", 0x2: "applications_clocks", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost",
    0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake", 0x100: "display_clocks",
}  # fmt: skip
HARDWARE, SW_THERMAL, LOCKED, POWER_CAP = 0x8 | 0x40 | 0x80, 0x20, 0x2, 0x4
LIVE = (
    "temperature.gpu",
    "power.draw",
    "clocks.current.sm",
    "utilization.gpu",
    "ecc.errors.uncorrected.volatile.total",
)
_REASON_COLUMNS = {
    "clocks_event_reasons.hw_slowdown": 0x8,
    "clocks_event_reasons.hw_thermal_slowdown": 0x40,
    "clocks_event_reasons.hw_power_brake_slowdown": 0x80,
    "clocks_event_reasons.sw_thermal_slowdown": 0x20,
    "clocks_event_reasons.sw_power_cap": 0x4,
}
_LOADED_PERCENT = 90
_MAX_INTERVALS = 10_000


@dataclass(slots=True)
class Series:
    """What one card's samples have shown so far."""

    log: DeviceLog
    samples: int = 0
    first: datetime | None = None
    last: datetime | None = None
    last_line: int = 0
    gap: tuple[float, datetime, datetime, int] | None = None
    backwards: int | None = None
    reasons: Counter[int] = field(default_factory=Counter)
    reason_seen: dict[int, tuple[int, str]] = field(default_factory=dict)
    thermal_rows: int = 0
    sm_sum: float = 0.0
    sm_n: int = 0
    sm_low: float | None = None
    sm_high_loaded: float | None = None
    sm_low_loaded: tuple[float, int] | None = None
    worst: dict[str, tuple[float, int]] = field(default_factory=dict)
    classes: dict[str, Cell] = field(default_factory=dict)
    loaded: int = 0
    measured_load: int = 0


def take_sample(one: Series, row: Row, intervals: Counter[float]) -> None:
    one.samples += 1
    _time(one, row, intervals)
    cells = row.cells
    for column in (*LIVE, "serial"):
        if column in cells:
            found = classify(cells[column])
            if found is Cell.FAULT:
                one.log.note(
                    Verdict.FAIL,
                    "nvml_error",
                    msg(
                        "The driver got no answer for %(column)s: %(text)s",
                        column=column,
                        text=cells[column],
                    ),
                    value=cells[column],
                    where=line(row.number),
                )
            if one.classes.get(column) is not Cell.VALUE or found is Cell.FAULT:
                one.classes[column] = found
    for column, text in cells.items():
        if column not in LIVE and classify(text) is Cell.FAULT:
            one.log.note(
                Verdict.FAIL,
                "nvml_error",
                msg("The driver got no answer for %(column)s: %(text)s", column=column, text=text),
                value=text,
                where=line(row.number),
            )
    load = number(cells.get("utilization.gpu"))
    if load is not None:
        one.measured_load += 1
        one.loaded += load >= 95
    _reasons(one, row)
    _clock(one, number(cells.get("clocks.current.sm")), load, row.number)
    for column in ("temperature.gpu", "temperature.memory", "ecc.errors.uncorrected.volatile.total",
                   "ecc.errors.corrected.volatile.total", "remapped_rows.uncorrectable"):  # fmt: skip
        value = number(cells.get(column))
        if value is not None and value > one.worst.get(column, (float("-inf"), 0))[0]:
            one.worst[column] = (value, row.number)
    for column in ("remapped_rows.pending", "remapped_rows.failure"):
        if cells.get(column, "").lower() in ("yes", "1"):
            one.worst.setdefault(column, (1.0, row.number))
    limit, default = number(cells.get("power.limit")), number(cells.get("power.default_limit"))
    if limit is not None and default is not None and limit < default:
        one.log.note(
            Verdict.FAIL,
            "power_limit_below_default",
            msg(
                "The power limit is %(value)s W of %(limit)s W: tests of speed are void.",
                value=limit,
                limit=default,
            ),
            value=limit,
            threshold=default,
            where=line(row.number),
        )


def _time(one: Series, row: Row, intervals: Counter[float]) -> None:
    now = moment(row.cells.get("timestamp"))
    if now is None:
        return
    if one.last is not None:
        step = (now - one.last).total_seconds()
        if step < -1:
            one.backwards = one.backwards or row.number
        elif step > 0:
            rounded = round(step, 1)
            if rounded in intervals or len(intervals) < _MAX_INTERVALS:
                intervals[rounded] += 1
            if one.gap is None or step > one.gap[0]:
                one.gap = (step, one.last, now, row.number)
    one.first = min(one.first, now) if one.first else now
    one.last = max(one.last, now) if one.last else now


def _reasons(one: Series, row: Row) -> None:
    mask = number(row.cells.get("clocks_event_reasons.active"))
    bits = int(mask) if mask is not None and 0 <= mask < 2**53 else 0
    for column, bit in _REASON_COLUMNS.items():
        if row.cells.get(column, "").lower() == "active":
            bits |= bit
    one.thermal_rows += bool(bits & (HARDWARE | SW_THERMAL))
    for bit in REASONS:
        if bits & bit:
            one.reasons[bit] += 1
            one.reason_seen.setdefault(bit, (row.number, row.cells.get("timestamp", "")))


def _clock(one: Series, clock: float | None, load: float | None, where: int) -> None:
    if clock is None:
        return
    one.sm_sum += clock
    one.sm_n += 1
    one.sm_low = clock if one.sm_low is None else min(one.sm_low, clock)
    if load is not None and load >= _LOADED_PERCENT:
        one.sm_high_loaded = max(one.sm_high_loaded or 0.0, clock)
        if one.sm_low_loaded is None or clock < one.sm_low_loaded[0]:
            one.sm_low_loaded = (clock, where)
