"""One run of gpu-burn, accumulated from its records: speed, temperature and errors by device."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from procurement.evidence.gpu_burn_records import Block
from procurement.evidence.stamps import Stamp

_BINS = 101  # one for each percent of the run: 0.72 h of 72 h, near the hourly mean that the checklist asks for


@dataclass(slots=True)
class Run:
    """What one run of the tool has shown so far. Arrays are by device in the tool's own order."""

    host: str | None
    start_line: int = 1
    planned_s: float | None = None
    names: dict[int, tuple[str, str | None]] = field(default_factory=dict)
    modes: set[str] = field(default_factory=set)
    results: dict[int, tuple[str, int]] = field(default_factory=dict)
    tested: int | None = None
    init_errors: list[tuple[str, int]] = field(default_factory=list)
    aborted_line: int | None = None
    stamps: list[tuple[float, Stamp]] = field(default_factory=list)
    summaries: int = 0
    records: int = 0
    last_percent: float = 0.0
    backwards: bool = False
    devices: int = 0
    died: dict[int, int] = field(default_factory=dict)
    last_row: np.ndarray | None = None
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    work_sum: np.ndarray = field(default_factory=lambda: np.zeros(0))
    work_n: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lowest: np.ndarray = field(default_factory=lambda: np.zeros(0))
    hottest: np.ndarray = field(default_factory=lambda: np.zeros(0))
    window_errors: np.ndarray = field(default_factory=lambda: np.zeros(0))
    errors: np.ndarray = field(default_factory=lambda: np.zeros(0))
    error_line: dict[int, int] = field(default_factory=dict)
    bin_sum: np.ndarray = field(default_factory=lambda: np.zeros((_BINS, 0)))
    bin_n: np.ndarray = field(default_factory=lambda: np.zeros((_BINS, 0)))

    @property
    def started(self) -> bool:
        return self.planned_s is not None or bool(self.records or self.results or self.init_errors)

    def absorb(self, block: Block, number: int) -> bool:
        """Take records in. False when they are of another number of devices than those before."""
        if not self.devices:
            self._size(block.devices)
        if block.devices != self.devices:
            return False
        rows = block.rows
        before = rows[:1] if self.last_row is None else self.last_row[None, :]
        previous = np.vstack([before, rows[:-1]])
        same = (rows == previous) | (np.isnan(rows) & np.isnan(previous))
        changed = ~same.all(axis=1)
        if self.last_row is None:
            changed[0] = True
        self.last_row = rows[-1]
        rows = rows[changed]
        for device in block.died:
            self.died.setdefault(device, number)
        if not len(rows):
            return True
        n = self.devices
        percent, speed = rows[:, 0], rows[:, 1 + n : 1 + 2 * n]
        if percent[0] < self.last_percent - 0.15 or bool((np.diff(percent) < -0.15).any()):
            self.backwards = True
        self.records += len(rows)
        self.last_percent = max(self.last_percent, float(percent.max()))
        # Devices report one after another: zeros before a device's first figure are not measurements.
        reporting = np.logical_or.accumulate(np.vstack([self.seen, speed > 0]), axis=0)[1:]
        self.seen = reporting[-1]
        counted = np.where(reporting & ~np.isnan(speed), speed, 0.0)
        present = reporting & ~np.isnan(speed)
        self.work_sum += counted.sum(axis=0)
        self.work_n += present.sum(axis=0)
        self.lowest = np.fmin(self.lowest, np.where(present, speed, np.inf).min(axis=0))
        self.hottest = np.fmax(self.hottest, np.fmax.reduce(rows[:, 1 + 3 * n : 1 + 4 * n], axis=0))
        errors = np.fmax.reduce(rows[:, 1 + 2 * n : 1 + 3 * n], axis=0)
        self.window_errors = np.fmax(self.window_errors, np.nan_to_num(errors))
        for device in np.flatnonzero(self.window_errors > 0).tolist():
            self.error_line.setdefault(device, number)
        self._bin(percent.astype(int), counted, present)
        return True

    def _size(self, n: int) -> None:
        self.devices = n
        self.seen = np.zeros(n, bool)
        self.work_sum, self.work_n = np.zeros(n), np.zeros(n)
        self.lowest, self.hottest = np.full(n, np.inf), np.full(n, np.nan)
        self.window_errors, self.errors = np.zeros(n), np.zeros(n)
        self.bin_sum, self.bin_n = np.zeros((_BINS, n)), np.zeros((_BINS, n))

    def _bin(self, percent: np.ndarray, counted: np.ndarray, present: np.ndarray) -> None:
        starts = np.flatnonzero(np.r_[True, np.diff(percent) != 0])
        np.add.at(self.bin_sum, percent[starts], np.add.reduceat(counted, starts, axis=0))
        np.add.at(
            self.bin_n, percent[starts], np.add.reduceat(present.astype(float), starts, axis=0)
        )

    def close_window(self) -> None:
        self.errors = self.errors + self.window_errors
        self.window_errors = np.zeros(self.devices)

    def deepest_drop(self, device: int, fallback: float | None = None) -> float | None:
        """1 - (slowest percent of the run) / (mean of its first tenth), or None before that is known."""
        count, total = self.bin_n[:, device], self.bin_sum[:, device]
        first = slice(0, 11)
        if not count[first].sum():
            return fallback
        baseline = total[first].sum() / count[first].sum()
        means = total[count > 0] / count[count > 0]
        return float(1.0 - means.min() / baseline) if baseline > 0 else fallback
