"""One card as `nvidia-smi -q` describes it, from text or XML: values under the paths of both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planning.telemetry_formats.values import Cell, classify, integer, number

# Each value under its paths in the text (current and older drivers) and in the XML, in lower case.
PATHS: Mapping[str, tuple[str, ...]] = {
    "name": ("product name",),
    "serial": ("serial number", "serial"),
    "uuid": ("gpu uuid", "uuid"),
    "vbios": ("vbios version",),
    "part": ("gpu part number", "board part number"),
    "device_id": ("pci/device id", "pci/pci device id"),
    "subsystem_id": ("pci/sub system id", "pci/pci sub system id"),
    "bus": ("pci/bus id", "pci/pci bus id"),
    "memory": ("fb memory usage/total",),
    "ecc_current": ("ecc mode/current", "ecc mode/current ecc"),
    "ecc_pending": ("ecc mode/pending", "ecc mode/pending ecc"),
    "mig": ("mig mode/current", "mig mode/current mig"),
    "remap_correctable": ("remapped rows/correctable error", "remapped rows/remapped row corr"),
    "remap_uncorrectable": ("remapped rows/uncorrectable error", "remapped rows/remapped row unc"),
    "remap_pending": ("remapped rows/pending", "remapped rows/remapped row pending"),
    "remap_failure": ("remapped rows/remapping failure occurred", "remapped rows/remapped row failure"),
    "retired_double": (
        "retired pages/double bit ecc", "retired pages/double bit retirement/retired count",
    ),
    "retired_pending": (
        "retired pages/pending page blacklist", "retired pages/pending",
        "retired pages/pending blacklist", "retired pages/pending retirement",
    ),
    "sram_threshold": (
        "ecc errors/aggregate/sram threshold exceeded", "ecc errors/sram threshold exceeded",
    ),
    "channel_repair": ("ecc errors/channel repair pending", "ecc errors/aggregate/channel repair pending"),
    "tpc_repair": ("ecc errors/tpc repair pending", "ecc errors/aggregate/tpc repair pending"),
    "unrepairable": ("ecc errors/unrepairable memory", "ecc errors/aggregate/unrepairable memory"),
    "recovery_action": ("gpu recovery action",),
    "reset_required": ("gpu reset status/reset required",),
    "temp": ("temperature/gpu current temp", "temperature/gpu temp"),
    "memory_temp": ("temperature/memory current temp", "temperature/memory temp"),
    "power_current": (
        "gpu power readings/current power limit", "gpu power readings/power limit",
        "power readings/power limit", "power readings/current power limit",
    ),
    "power_default": ("gpu power readings/default power limit", "power readings/default power limit"),
    "power_max": ("gpu power readings/max power limit", "power readings/max power limit"),
    "max_sm": ("max clocks/sm", "max clocks/sm clock"),
    "max_memory": ("max clocks/memory", "max clocks/mem clock"),
    "width_max": ("pci/gpu link info/link width/max", "pci/pci gpu link info/link widths/max link width"),
    "width_current": ("pci/gpu link info/link width/current", "pci/pci gpu link info/link widths/current link width"),
    "replays": ("pci/replays since reset", "pci/replay counter"),
    "fabric_state": ("fabric/state",),
    "fabric_status": ("fabric/status",),
    "persistence": ("persistence mode",),
    "utilisation": ("utilization/gpu", "utilization/gpu util"),
}  # fmt: skip

_REASON_BLOCKS = ("clocks event reasons/", "clocks throttle reasons/")
_HEX_ID = re.compile(r"(?:0x)?([0-9a-fA-F]{4})10DE", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class State:
    """Values by lower-case path, with the line (text) or the path (XML) of each."""

    values: Mapping[str, tuple[str, str]]
    where: str
    closed: bool  # the block is whole

    def text(self, key: str) -> str | None:
        """The first path of `key` that holds a value; None for N/A and what the card does not support."""
        for path in PATHS[key]:
            found = self.values.get(path)
            if found and classify(found[0]) is Cell.VALUE:
                return found[0].strip()
        return None

    def number(self, key: str) -> float | None:
        return number(self.text(key))

    def has(self, key: str) -> bool:
        """Whether the file mentions `key` at all."""
        return any(path in self.values for path in PATHS[key])

    def place(self, key: str) -> str:
        return next(
            (self.values[path][1] for path in PATHS[key] if path in self.values), self.where
        )

    def hex_id(self, key: str) -> str | None:
        """The device part of a PCI id: 2330 of 0x233010DE."""
        found = _HEX_ID.fullmatch(self.text(key) or "")
        return found[1].upper() if found else None

    def ecc(self, window: str, kind: str) -> float | None:
        """Sum of the volatile or aggregate counters of a kind; None when no such counter has a value.

        Totals of older drivers are taken in place of their parts.
        """
        prefix = f"ecc errors/{window}/"
        old = "double bit" if kind == "uncorrectable" else "single bit"
        parts: list[float] = []
        totals: list[float] = []
        for path, (text, _) in self.values.items():
            if not path.startswith(prefix):
                continue
            value = number(text)
            rest = path[len(prefix) :]
            if value is None or "threshold" in rest or "source" in rest or "bucket" in rest:
                continue
            words = rest.replace("/", " ")
            corrected = "correctable" in words.replace("uncorrectable", "") or "single bit" in words
            uncorrected = "uncorrectable" in words or "double bit" in words
            if not (uncorrected if kind == "uncorrectable" else corrected and not uncorrected):
                continue
            (totals if rest.endswith("/total") and old in rest else parts).append(value)
        if totals:
            return sum(totals)
        return sum(parts) if parts else None

    def active_reasons(self) -> Iterator[tuple[str, str]]:
        """(reason, place) of each clock event reason that is Active."""
        for path, (text, where) in self.values.items():
            if path.startswith(_REASON_BLOCKS) and text.strip().lower() == "active":
                yield (
                    path.split("/", 1)[1]
                    .replace("clocks event reason ", "")
                    .replace("clocks throttle reason ", ""),
                    where,
                )

    def faults(self) -> Iterator[tuple[str, str, str]]:
        """(path, text, place) of each value that the card could not give."""
        for path, (text, where) in self.values.items():
            if classify(text) is Cell.FAULT:
                yield path, text, where


def index_of(state: State, position: int) -> int:
    """The minor number, else the place in the file. Never a key across tools."""
    minor = state.values.get("minor number")
    found = integer(minor[0]) if minor else None
    return found if found is not None else position
