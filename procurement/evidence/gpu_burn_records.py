"""gpu-burn's progress records, at tens of megabytes a second.

A 72-hour log is hundreds of megabytes of records separated by carriage returns only. Almost all of them have the
same shape, so a block of records is checked for its shape at once and its numbers are parsed at once; a record with
anything unusual (a warning, a dead process, an unknown temperature) is taken apart on its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

_DIGITS = b"0123456789."
_TO_SPACE = bytes(byte if byte in _DIGITS else 0x20 for byte in range(256))
_NO_NUMBER = bytes({*range(256)} - {*b"0123456789 \r\t"})
_RECORD = re.compile(
    rb"^(\d{1,3}\.\d)% proc'd: (.+?) errors: (.+?) temps: (.+?)(?: power: (.+))?$"
)  # after runs of blanks have become one
_SEPARATOR = re.compile(rb" [-/] |(?<=\))- ")  # "2 (WARNING!)- 0" has no space before it
_WORK = re.compile(rb"^(-?\d{1,18}) \((-?\d{1,18}(?:\.\d{1,6})?) Gflop/s\)$")
_ERRORS = re.compile(rb"^(-?\d{1,18})\s*(\(WARNING!\)|\(DIED!\))?$")
_TEMP = re.compile(rb"^(\d{1,4}) C$")
_UNKNOWN_TEMP = re.compile(rb"^--(?: C)?$")
_POWER = re.compile(rb"^(\d{1,6}(?:\.\d{1,3})?) W$")
_MAX_DEVICES = 256
_MAX_DIGITS = 18  # of a number: what fits 64 bits
_MAX_SHAPES = 256
_SMALL = (
    8  # records; below this, bisecting a mixed block costs more than taking its records one by one
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the numbers of a record belong. Columns of a row: percent, then work, Gflop/s, errors, temps by device."""

    devices: int
    numbers: int  # printed in the record
    taken: tuple[int, ...]  # which of them a row holds
    columns: tuple[int, ...]  # and in which of its columns
    died: frozenset[int]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive records: rows of shape (n, 1 + 4 * devices), NaN where the tool printed no number."""

    rows: Rows
    devices: int
    died: frozenset[int] = frozenset()


class RecordParser:
    """Turns record bytes into blocks. `unreadable` counts records that have no known shape."""

    def __init__(self) -> None:
        self._shapes: dict[bytes, Shape | None] = {}
        self.unreadable = 0

    def parse(self, body: bytes) -> list[Block]:
        """Blocks of the records in `body`, which are separated by carriage returns."""
        count = body.count(b"\r") + 1
        first = body[: body.find(b"\r")] if count > 1 else body
        skeleton = first.translate(None, _DIGITS)
        shape = self._shape(skeleton, first)
        if shape is not None:
            printed = _grid(body, count, first) if count > _SMALL else None
            if printed is None and body.translate(None, _DIGITS) == b"\r".join([skeleton] * count):
                printed = _printed_numbers(body, count)
            rows = None if printed is None else _rows(printed, count, shape)
            if rows is not None:
                return [Block(rows, shape.devices, shape.died)]
        if count > _SMALL:
            middle = body.find(b"\r", len(body) // 2)
            if 0 < middle < len(body) - 1:
                return self.parse(body[:middle]) + self.parse(body[middle + 1 :])
        return self._one_by_one(body.split(b"\r"))

    def _shape(self, skeleton: bytes, record: bytes) -> Shape | None:
        if skeleton not in self._shapes:
            if len(self._shapes) >= _MAX_SHAPES:
                self._shapes.clear()
            self._shapes[skeleton] = _shape_of(record)
        return self._shapes[skeleton]

    def _one_by_one(self, records: list[bytes]) -> list[Block]:
        blocks: list[Block] = []
        for record in records:
            if not record.strip():
                continue
            shape = self._shape(record.translate(None, _DIGITS), record)
            printed = None if shape is None else _printed_numbers(record, 1)
            rows = None if shape is None or printed is None else _rows(printed, 1, shape)
            if shape is None or rows is None:
                self.unreadable += 1
                continue
            last = blocks[-1] if blocks else None
            if last and last.devices == shape.devices and last.died == shape.died:
                blocks[-1] = Block(np.concatenate([last.rows, rows]), last.devices, last.died)
            else:
                blocks.append(Block(rows, shape.devices, shape.died))
        return blocks


def _rows(printed: Rows, count: int, shape: Shape) -> Rows | None:
    """The rows of `count` records of one shape, or None when their numbers do not fill it."""
    if printed.size != count * shape.numbers:
        return None
    rows: Rows = np.full((count, 1 + 4 * shape.devices), np.nan)
    rows[:, list(shape.columns)] = printed.reshape(count, shape.numbers)[:, list(shape.taken)]
    return rows if bool((rows[:, 0] <= 100.0).all()) else None


def _grid(body: bytes, count: int, first: bytes) -> Rows | None:
    """The numbers of records that agree byte for byte in all but their digits, which is how most of a log looks.

    Every digit is then a column of bytes, and a number is built from its columns for all records at once.
    """
    width = len(first) + 1
    if len(body) + 1 != count * width:
        return None
    grid = np.frombuffer(body + b"\r", dtype=np.uint8).reshape(count, width)
    model = np.frombuffer(first + b"\r", dtype=np.uint8)
    is_digit = (model >= 48) & (model <= 57)
    if ((grid ^ model) & np.where(is_digit, 0, 255).astype(np.uint8)).any():
        return None
    digits = grid - np.uint8(48)
    if (digits & np.where(is_digit, 255, 0).astype(np.uint8)).max() > 9:
        return None
    tokens = [token for token in re.finditer(rb"[0-9.]+", first) if token[0] != b"."]
    if any(len(token[0]) > _MAX_DIGITS or token[0].count(b".") > 1 for token in tokens):
        return None
    printed: Rows = np.empty((len(tokens), count))
    for row, token in zip(printed, tokens, strict=True):
        columns = [at for at in range(token.start(), token.end()) if is_digit[at]]
        row[:] = digits[:, columns[0]]
        for column in columns[1:]:
            row *= 10.0
            row += digits[:, column]
        _, point, decimals = token[0].partition(b".")
        if point:
            row /= 10.0 ** len(decimals)
    return printed.T.ravel()


def _printed_numbers(body: bytes, count: int) -> Rows | None:
    """Every number in order of print. Only the percentage has a point, as a rule; then whole numbers are summed up
    digit by digit for all at once, five times as fast as parsing decimals."""
    if body.count(b".") != count:
        try:
            return np.fromstring(body.translate(_TO_SPACE), dtype=np.float64, sep=" ")
        except ValueError:  # a point too many
            return None
    digits = np.frombuffer(body.translate(_TO_SPACE, _NO_NUMBER) + b" ", dtype=np.uint8)
    inside = digits != 0x20
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside[0]:
        edges = np.r_[0, edges]
    starts, ends = edges[::2], edges[1::2]
    lengths = ends - starts
    if not lengths.size or lengths.max() > _MAX_DIGITS:
        return None
    values = np.zeros(lengths.size, dtype=np.int64)
    for place in range(int(lengths.max())):
        if place < lengths.min():
            values += (digits[ends - 1 - place] - np.int64(48)) * 10**place
        else:
            some = np.flatnonzero(lengths > place)
            values[some] += (digits[ends[some] - 1 - place] - np.int64(48)) * 10**place
    printed: Rows = values.astype(np.float64)
    if printed.size % count:
        return None
    printed[:: printed.size // count] /= 10.0
    return printed


def _shape_of(record: bytes) -> Shape | None:
    """The shape of a record, or None when it is not one."""
    record = b" ".join(record.split())
    found = _RECORD.match(record) if len(record) < 64 * _MAX_DEVICES else None
    if not found:
        return None
    work, errors, temps = (_SEPARATOR.split(found[i]) for i in (2, 3, 4))
    power = _SEPARATOR.split(found[5]) if found[5] else []
    devices = len(work)
    if not 1 <= devices <= _MAX_DEVICES or len(errors) != devices or len(temps) != devices:
        return None
    columns = [0]
    died: set[int] = set()
    for i, item in enumerate(work):
        matched = _WORK.match(item)
        if not matched:
            return None
        negative = matched[1].startswith(b"-") or matched[2].startswith(b"-")
        if negative:
            died.add(i)
        columns += [-1, -1] if negative else [1 + i, 1 + devices + i]
    for i, item in enumerate(errors):
        matched = _ERRORS.match(item)
        if not matched:
            return None
        if matched[2] == b"(DIED!)":
            died.add(i)
        columns.append(-1 if matched[1].startswith(b"-") else 1 + 2 * devices + i)
    for i, item in enumerate(temps):
        if _TEMP.match(item):
            columns.append(1 + 3 * devices + i)
        elif not _UNKNOWN_TEMP.match(item):
            return None
    watts = sum(bool(_POWER.match(item)) for item in power)
    if watts != sum(bool(re.search(rb"\d", item)) for item in power):
        return None
    columns += [-1] * watts
    taken = tuple(i for i, column in enumerate(columns) if column >= 0)
    return Shape(devices, len(columns), taken, tuple(columns[i] for i in taken), frozenset(died))
