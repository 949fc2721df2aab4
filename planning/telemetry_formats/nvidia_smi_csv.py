"""`nvidia-smi --query-gpu=… --format=csv`: rows with the current names of their columns, as a stream."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

# Columns whose names changed between driver releases, to the newer name.
_RENAMED = {
    "clocks.sm": "clocks.current.sm",
    "clocks.gr": "clocks.current.graphics",
    "clocks.mem": "clocks.current.memory",
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_serial": "serial",
    "gpu_bus_id": "pci.bus_id",
    "power.draw.instant": "power.draw",
}
_UNIT = re.compile(r"\s*\[[^\]]{1,8}\]\s*$")
_NAME = re.compile(r"^[a-z][a-z0-9_.]{1,80}$")
_DECIMAL_COMMA = re.compile(r"^-?\d+,\d+(?:\s*[A-Za-z%]+)?$")
_DECIMAL_POINT = re.compile(r"^-?\d+\.\d+(?:\s*[A-Za-z%]+)?$")
_COLUMN_SIGNS = ("index", "uuid", "name", "serial", "timestamp", "pci.bus_id", "driver_version")


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of one device: text by column name. `short` when cells are missing at its end."""

    number: int
    cells: Mapping[str, str]
    host: str | None = None
    short: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """A line that is no row: what the tool or a shell printed between them."""

    number: int
    text: str
    host: str | None = None


@dataclass(slots=True)
class Layout:
    """The columns in force, and what the header and the cells showed about the file."""

    columns: tuple[str, ...] = ()
    delimiter: str = ","
    headers: int = 0
    quoted: bool = False
    old_names: bool = False
    decimal_commas: int = 0
    decimal_points: int = 0


def rows(lines: Iterable[tuple[int, str, str | None]], layout: Layout) -> Iterator[Row | Remark]:
    """Rows and remarks of (number, text, host) lines. `layout` is filled while they are read."""
    for number, text, host in lines:
        stripped = text.strip().lstrip("﻿")
        if not stripped:
            continue
        header = _header(stripped)
        if header:
            layout.columns, layout.delimiter, old = header
            layout.headers += 1
            layout.quoted |= '"' in stripped
            layout.old_names |= old
            continue
        cells = _split(stripped, layout.delimiter)
        if not layout.columns or len(cells) < 2 or len(cells) > len(layout.columns):
            yield Remark(number, stripped[:1000], host)
            continue
        layout.decimal_commas += sum(bool(_DECIMAL_COMMA.match(cell)) for cell in cells)
        layout.decimal_points += sum(bool(_DECIMAL_POINT.match(cell)) for cell in cells)
        cells = [c.replace(",", ".") if _DECIMAL_COMMA.match(c) else c for c in cells]
        yield Row(
            number,
            dict(zip(layout.columns, cells, strict=False)),
            host,
            len(cells) < len(layout.columns),
        )


def _header(text: str) -> tuple[tuple[str, ...], str, bool] | None:
    for delimiter in (",", ";", "\t"):
        names = [
            _UNIT.sub("", cell.strip().strip('"')).strip().lower()
            for cell in text[:8000].split(delimiter)
        ]
        if (
            len(names) >= 2
            and all(_NAME.match(name) for name in names)
            and any(name in _COLUMN_SIGNS or "." in name for name in names)
        ):
            old = any(name in _RENAMED or "throttle_reasons" in name for name in names)
            return tuple(_renamed(name) for name in names), delimiter, old
    return None


def _renamed(name: str) -> str:
    return _RENAMED.get(name, name.replace("clocks_throttle_reasons", "clocks_event_reasons"))


def _split(text: str, delimiter: str) -> list[str]:
    if '"' in text:  # the tool quotes nothing, a spreadsheet does
        text_cells = next(csv.reader([text], delimiter=delimiter), [])
        return [cell.strip() for cell in text_cells]
    return [cell.strip() for cell in text.split(delimiter)]


def moment(text: str | None) -> datetime | None:
    """A local time without zone from "2026/07/14 08:12:38.696" or ISO 8601; None for anything else."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text.strip().replace("/", "-").replace(",", ".")).replace(
            tzinfo=None
        )
    except ValueError:
        return None
