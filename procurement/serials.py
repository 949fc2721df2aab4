"""Serial numbers as people paste them: folded for comparison, checked for duplicates. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from core.errors import InputError
from core.messages import msg

MAX_LENGTH = 64


def fold(text: str) -> str:
    """`text` for comparison: full-width forms made narrow, case and all white space removed."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).casefold()


def split_list(text: str) -> tuple[str, ...]:
    """Serials from a pasted list: separated by line ends, commas, semicolons, tabs or spaces; empty ones dropped."""
    parts = re.split(r"[\s,;，；、]+", unicodedata.normalize("NFKC", text))
    return tuple(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class UnitEntry:
    """One unit as it was scanned: its own serial, and what else the label or the tool said."""

    serial: str
    uuid: str = ""
    node_serial: str = ""
    slot: str = ""


def read_units(text: str) -> tuple[tuple[UnitEntry, ...], tuple[InputError, ...]]:
    """One unit a line: `serial[, UUID[, server serial[, slot]]]`, by comma or tab; and each line that is none.

    A line has at most four columns, and a serial number with at least one letter or digit.
    """
    units, errors = [], []
    for number, line in enumerate(unicodedata.normalize("NFKC", text).splitlines(), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in re.split(r"[,;\t、]", line)]
        wrong = msg(
            "Line %(line)s is not “serial, UUID, server serial, slot”: %(text)s",
            line=number,
            text=line.strip()[:80],
        )
        if len(cells) > 4 or not cells[0] or len(cells[0]) > MAX_LENGTH:
            errors.append(InputError("units", wrong, value=line.strip()[:80], limit=MAX_LENGTH))
        elif not any(letter.isalnum() for letter in cells[0]):
            odd = msg(
                "Line %(line)s: %(text)s is no serial number, it has no letter and no digit",
                line=number,
                text=cells[0],
            )
            errors.append(InputError("units", odd, value=cells[0], limit="a letter or digit"))
        else:
            units.append(UnitEntry(*cells))
    return tuple(units), tuple(errors)


def parse_units(text: str) -> tuple[UnitEntry, ...]:
    """The units of read_units. Raises InputError naming the first line that is none."""
    units, errors = read_units(text)
    for error in errors:
        raise error
    return units


def duplicate_uuids(units: Iterable[UnitEntry]) -> tuple[tuple[str, int, int], ...]:
    """Device UUIDs that are in the list twice, each with both positions, counted from 1; units without one left out."""
    first: dict[str, int] = {}
    found = []
    for position, unit in enumerate(units, 1):
        key = fold(unit.uuid)
        if key and key in first:
            found.append((unit.uuid.strip(), first[key], position))
        elif key:
            first[key] = position
    return tuple(found)


def refuse_duplicate_uuids(units: Iterable[UnitEntry], *, field: str = "units") -> None:
    """Raise InputError naming the UUID and both positions when it is in the list twice."""
    for error in uuids_listed_twice(units, field=field):
        raise error


def uuids_listed_twice(units: Iterable[UnitEntry], *, field: str = "units") -> list[InputError]:
    """One InputError for each device UUID that is in the list twice, with both positions."""
    return [
        InputError(
            field,
            msg(
                "Device UUID %(uuid)s is listed twice, at positions %(first)s and %(second)s",
                uuid=uuid,
                first=first,
                second=second,
            ),
            value=uuid,
        )
        for uuid, first, second in duplicate_uuids(units)
    ]


def refuse_duplicates(serials: Iterable[str], *, field: str = "units") -> None:
    """Raise InputError naming both positions when a serial is in the list twice (case, spaces and width folded)."""
    for error in listed_twice(serials, field=field):
        raise error


def listed_twice(serials: Iterable[str], *, field: str = "units") -> list[InputError]:
    """One InputError for each serial that is empty or in the list twice, with its positions."""
    seen: dict[str, int] = {}
    found = []
    for position, serial in enumerate(serials, 1):
        key = fold(serial)
        if not key:
            empty = msg("The serial number at position %(position)s is empty", position=position)
            found.append(InputError(field, empty, value=position))
        elif key in seen:
            twice = msg(
                "Serial number %(serial)s is listed twice, at positions %(first)s and %(second)s",
                serial=serial.strip(),
                first=seen[key],
                second=position,
            )
            found.append(InputError(field, twice, value=serial.strip()))
        else:
            seen[key] = position
    return found
