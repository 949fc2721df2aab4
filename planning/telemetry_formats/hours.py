"""Samples of one card and hour, kept together: merged exactly, packed small, and reduced to one rollup.

The packed samples make ingestion repeatable: the same sample again changes nothing, a late one is merged where it
belongs, whatever the order. Pure: NumPy and zlib.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planning.telemetry_formats.samples import FIELDS

HOUR = 3600

Floats = NDArray[np.float32]
Offsets = NDArray[np.uint16]

# Columns of a rollup after hour, series, samples and covered seconds: figure by figure.
COLUMNS = (
    "utilization_mean", "utilization_max", "utilization_p95",
    "sm_mean", "tensor_mean",
    "memory_mean", "memory_max", "memory_p95",
    "power_mean", "power_max", "power_p95",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hour:
    """Samples of a card in one hour: seconds after the full hour, ascending, and FIELDS beside (NaN: missing)."""

    offsets: Offsets
    values: Floats

    @classmethod
    def of(cls, samples: Mapping[int, Mapping[str, float]]) -> Hour:
        """From {second: {field: value}}."""
        order = sorted(samples)
        values = np.full((len(order), len(FIELDS)), np.nan, dtype=np.float32)
        for row, second in enumerate(order):
            for name, value in samples[second].items():
                values[row, FIELDS.index(name)] = value
        return cls(np.array(order, dtype=np.uint16), values)

    def merged(self, newer: Hour) -> Hour:
        """Both; at the same second a figure of `newer` stands, and figures it lacks stay."""
        offsets = np.union1d(self.offsets, newer.offsets).astype(np.uint16)
        values = np.full((len(offsets), len(FIELDS)), np.nan, dtype=np.float32)
        values[np.searchsorted(offsets, self.offsets)] = self.values
        rows = np.searchsorted(offsets, newer.offsets)
        values[rows] = np.where(np.isnan(newer.values), values[rows], newer.values)
        return Hour(offsets, values)

    def same_as(self, other: Hour) -> bool:
        """Whether both hold the same samples."""
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(
            self.values, other.values, equal_nan=True
        )

    def packed(self) -> bytes:
        """Bytes to keep; :meth:`unpacked` reads them."""
        body = self.offsets.astype("<u2").tobytes() + self.values.astype("<f4").tobytes()
        return len(self.offsets).to_bytes(2, "little") + zlib.compress(body, 1)

    @classmethod
    def unpacked(cls, data: bytes) -> Hour:
        """Raises ValueError when the bytes were damaged."""
        count = int.from_bytes(data[:2], "little")
        try:
            body = zlib.decompress(data[2:])
        except zlib.error as error:
            raise ValueError("damaged samples") from error
        offsets = np.frombuffer(body[: 2 * count], dtype="<u2").astype(np.uint16)
        values = np.frombuffer(body[2 * count :], dtype="<f4").reshape(count, len(FIELDS))
        return cls(offsets, values.astype(np.float32))

    def covered(self, step: int) -> int:
        """Seconds that the samples speak for: their number times their usual distance (`step` when too few). [s]"""
        distance = float(np.median(np.diff(self.offsets))) if len(self.offsets) > 2 else float(step)
        return int(min(HOUR, round(len(self.offsets) * max(distance, 1.0))))

    def rollup(self) -> tuple[float | None, ...]:
        """COLUMNS of the hour; None for a figure without samples."""
        utilization, sm, tensor, memory, power = (
            column[~np.isnan(column)] for column in self.values.T
        )
        return (
            *_mean_max_p95(utilization), _mean(sm), _mean(tensor),
            *_mean_max_p95(memory), *_mean_max_p95(power),
        )  # fmt: skip


def _mean(values: Floats) -> float | None:
    return float(np.mean(values, dtype=np.float64)) if values.size else None


def _mean_max_p95(values: Floats) -> tuple[float | None, float | None, float | None]:
    if not values.size:
        return None, None, None
    return _mean(values), float(values.max()), float(np.percentile(values, 95))
