"""What a collector pushes while cards burn in, as samples: nvidia-smi's query CSV or dcgm-exporter's exposition. Pure.

Times are UTC once read. nvidia-smi prints local time without a zone: the collector says its offset.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import InputError
from core.messages import msg
from planning.telemetry_formats.nvidia_smi_csv import Layout, Remark, moment, rows
from planning.telemetry_formats.prometheus import Exposition, exposition
from planning.telemetry_formats.values import Cell, classify, integer, number

MAX_SAMPLES = 20_000  # of one push
AHEAD = timedelta(minutes=2)  # a collector's clock may be that much ahead
BEHIND = timedelta(hours=48)  # what it kept while the network was away
DCGM = {
    "DCGM_FI_DEV_GPU_TEMP": "temperature.gpu",
    "DCGM_FI_DEV_MEMORY_TEMP": "temperature.memory",
    "DCGM_FI_DEV_GPU_UTIL": "utilization.gpu",
    "DCGM_FI_DEV_POWER_USAGE": "power.draw",
    "DCGM_FI_DEV_SM_CLOCK": "clocks.current.sm",
    "DCGM_FI_DEV_FB_USED": "memory.used",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "ecc.errors.uncorrected.volatile.total",
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "clocks_event_reasons.active",
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": "clocks_event_reasons.active",
    "DCGM_FI_DEV_XID_ERRORS": "xid",
}
# The columns that a sealed log keeps, with the units of its header.
COLUMNS = {
    "name": "", "serial": "", "uuid": "", "pci.bus_id": "", "temperature.gpu": "", "temperature.memory": "",
    "utilization.gpu": "%", "power.draw": "W", "clocks.current.sm": "MHz", "clocks_event_reasons.active": "",
    "ecc.errors.uncorrected.volatile.total": "", "memory.used": "MiB",
}  # fmt: skip
_HARDWARE_BITS = 0x8 | 0x40 | 0x80  # HW slowdown, HW thermal, power brake


@dataclass(frozen=True, slots=True)
class LiveSample:
    """One card at one moment: text by column, as the tool printed it."""

    at: datetime
    cells: Mapping[str, str]

    @property
    def identity(self) -> str:
        """The serial number, else the UUID, else nothing."""
        for name in ("serial", "uuid"):
            text = self.cells.get(name, "")
            if classify(text) is Cell.VALUE and text.strip("0 "):
                return text.strip()
        return ""

    def figures(self) -> dict[str, float]:
        """Numbers for the live page: C, %, W, MHz, MiB. What the tool did not show is not in it."""
        found = {}
        for column, name in (
            ("temperature.gpu", "temp_c"), ("temperature.memory", "memory_temp_c"), ("utilization.gpu", "util_pct"),
            ("power.draw", "power_w"), ("clocks.current.sm", "sm_mhz"), ("memory.used", "memory_mib"),
        ):  # fmt: skip
            value = number(self.cells.get(column))
            if value is not None:
                found[name] = value
        return found

    def problems(self) -> list[str]:
        """Codes of what speaks against the card in this sample."""
        found = []
        if any(classify(text) is Cell.FAULT for text in self.cells.values()):
            found.append("no_answer")
        if number(self.cells.get("ecc.errors.uncorrected.volatile.total")):
            found.append("ecc_uncorrected")
        if (integer(self.cells.get("clocks_event_reasons.active")) or 0) & _HARDWARE_BITS:
            found.append("hw_throttle")
        xid = integer(self.cells.get("xid"))
        if xid:
            found.append(f"xid{xid}")
        return found


def read_samples(body: str, *, now: datetime, offset: timedelta) -> list[LiveSample]:
    """Samples of a push. Raises InputError naming what is wrong with it.

    `offset` is of the collector's local time from UTC; it holds for stamps that name no zone.
    """
    text = body.lstrip("\ufeff \r\n")
    if not text:
        raise InputError("body", msg("The push is empty"), value=0, limit=1)
    found = (
        _exposition(text, now) if text.startswith("#") or "{" in text[:400] else _csv(text, offset)
    )
    if not found:
        raise InputError("body", msg("The push holds no sample of a card"), value=text[:80])
    if len(found) > MAX_SAMPLES:
        raise InputError(
            "body",
            msg("%(n)s samples in one push, at most %(limit)s", n=len(found), limit=MAX_SAMPLES),
            value=len(found),
            limit=MAX_SAMPLES,
        )
    newest, oldest = max(s.at for s in found), min(s.at for s in found)
    if newest > now + AHEAD:
        raise InputError(
            "timestamp",
            msg(
                "A sample is from %(at)s UTC, which has not come yet: give the collector's utc_offset",
                at=f"{newest:%Y-%m-%d %H:%M:%S}",
            ),
            value=newest.isoformat(),
            limit=now.isoformat(),
        )
    if oldest < now - BEHIND:
        raise InputError(
            "timestamp",
            msg(
                "A sample is from %(at)s UTC, more than %(hours)s hours ago",
                at=f"{oldest:%Y-%m-%d %H:%M:%S}",
                hours=48,
            ),
            value=oldest.isoformat(),
        )
    return found


def _csv(text: str, offset: timedelta) -> list[LiveSample]:
    layout = Layout()
    found = []
    lines = ((i, line, None) for i, line in enumerate(text.splitlines(), 1))
    for row in rows(lines, layout):
        if isinstance(row, Remark):
            continue
        stamp = row.cells.get("timestamp", "")
        at = moment(stamp)
        if at is None or row.short:
            raise InputError(
                "timestamp",
                msg("Line %(line)s has no timestamp or too few cells", line=row.number),
                value=stamp,
            )
        found.append(LiveSample(at.replace(tzinfo=UTC) - offset, row.cells))
    if not layout.columns:
        raise InputError(
            "body",
            msg("The header is missing: push with --format=csv, not with noheader"),
            value=text[:80],
        )
    return found


def _exposition(text: str, now: datetime) -> list[LiveSample]:
    cards: dict[str, dict[str, str]] = {}
    for sample in exposition(enumerate(text.splitlines(), 1), Exposition()):
        column = DCGM.get(sample.name)
        uuid = sample.labels.get("UUID") or sample.labels.get("uuid") or ""
        if column is None or not uuid:
            continue
        cells = cards.setdefault(
            uuid,
            {
                "uuid": uuid,
                "name": sample.labels.get("modelName", ""),
                "pci.bus_id": sample.labels.get("pci_bus_id", ""),
                "host": sample.labels.get("Hostname", ""),
            },
        )
        value = sample.value
        if value is None:
            cells[column] = "[N/A]"
        elif column == "clocks_event_reasons.active":
            cells[column] = f"0x{int(value):016x}"
        else:
            cells[column] = f"{value:g}"
    return [LiveSample(now, cells) for cells in cards.values()]


def log_columns(samples: Iterable[LiveSample]) -> tuple[str, ...]:
    """Columns of a sealed log that `samples` fill, in order."""
    shown = {name for sample in samples for name in sample.cells}
    return tuple(name for name in COLUMNS if name in shown)


def log_header(columns: Sequence[str]) -> str:
    """The header that nvidia-smi would print for `columns`."""
    named = [f"{name} [{COLUMNS[name]}]" if COLUMNS[name] else name for name in columns]
    return ", ".join(["timestamp", *named]) + "\n"


def log_rows(columns: Sequence[str], samples: Iterable[LiveSample]) -> str:
    """Rows of a sealed log, UTC."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for sample in samples:
        stamp = f"{sample.at.astimezone(UTC):%Y/%m/%d %H:%M:%S}.{sample.at.microsecond // 1000:03d}"
        writer.writerow([stamp, *(_cell(name, sample.cells) for name in columns)])
    return out.getvalue()


def _cell(name: str, cells: Mapping[str, str]) -> str:
    text = str(cells.get(name) or "[N/A]").strip()
    if COLUMNS[name] and classify(text) is Cell.VALUE and not text.endswith(COLUMNS[name]):
        text = f"{text} {COLUMNS[name]}"
    return f" {text}"


def merged_worst(known: Mapping[str, Any], samples: Sequence[LiveSample]) -> dict[str, Any]:
    """The extremes so far: hottest, highest power, lowest clock under load, and every problem with its count."""
    worst = dict(known)
    problems = dict(worst.get("problems", {}))
    for sample in samples:
        figures = sample.figures()
        for name in ("temp_c", "memory_temp_c", "power_w"):
            if name in figures:
                worst[f"max_{name}"] = max(worst.get(f"max_{name}", figures[name]), figures[name])
        if figures.get("util_pct", 0) >= 50 and "sm_mhz" in figures:
            worst["min_sm_mhz"] = min(worst.get("min_sm_mhz", figures["sm_mhz"]), figures["sm_mhz"])
        for code in sample.problems():
            problems[code] = problems.get(code, 0) + 1
    return {**worst, "problems": problems}
