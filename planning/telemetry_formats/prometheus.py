"""Prometheus: samples of the exposition format, and series of the HTTP API's JSON, both as streams."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import ijson
from ijson.common import ObjectBuilder
from prometheus_client.parser import text_string_to_metric_families

from planning.telemetry_formats.values import number

MAX_LINE = 20_000
MAX_POINTS = 1_000_000  # of one series; the server gives at most 11,000
MAX_DEPTH = 64

_EXEMPLAR = re.compile(r" # \{[^{}]{0,1000}\} .*$")
_FAMILY = re.compile(r"^# (?:TYPE|HELP) ([A-Za-z_:][\w:]*)")

# dcgm_structs.h: blank values by type; those after the first mean not found, not supported, no permission.
_BLANK_INT64 = 9223372036854775792.0
_BLANK_INT32 = (2147483632.0, 2147483647.0)
_BLANK_FP64 = (140737488355328.0, 140737488355343.0)


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample. `value` is None when the exporter wrote a blank, NaN or an infinity."""

    name: str
    labels: Mapping[str, str]
    value: float | None
    blank: bool
    number: int


@dataclass(slots=True)
class Exposition:
    """What a file in the exposition format showed besides its samples."""

    families: set[str] = field(default_factory=set)
    bad_lines: list[int] = field(default_factory=list)
    end_of_file: bool = False
    openmetrics: bool = False


def is_blank(value: float) -> bool:
    """Whether DCGM wrote this number in place of a value that it did not have."""
    return (
        value >= _BLANK_INT64
        or _BLANK_INT32[0] <= value <= _BLANK_INT32[1]
        or _BLANK_FP64[0] <= value <= _BLANK_FP64[1]
    )


def exposition(lines: Iterable[tuple[int, str]], facts: Exposition) -> Iterator[Sample]:
    """Samples of (number, text) lines; `facts` is filled on the way. A line that is none is noted, not fatal."""
    for number_, text in lines:
        stripped = text.strip()
        if not stripped:
            continue
        if stripped.startswith("#"):
            family = _FAMILY.match(stripped)
            if family and len(facts.families) < 10_000:
                facts.families.add(family[1])
            facts.end_of_file |= stripped == "# EOF"
            facts.openmetrics |= stripped == "# EOF" or stripped.startswith("# UNIT ")
            continue
        sample = _sample(stripped, number_)
        if sample is None:
            if len(facts.bad_lines) < 1000:
                facts.bad_lines.append(number_)
        else:
            yield sample


def _sample(text: str, line: int) -> Sample | None:
    if len(text) > MAX_LINE:
        return None
    try:
        found = [
            s
            for f in text_string_to_metric_families(_EXEMPLAR.sub("", text) + "\n")
            for s in f.samples
        ]
    except (ValueError, IndexError, KeyError):
        return None
    if len(found) != 1:
        return None
    try:
        value = float(found[0].value)
    except OverflowError:  # a whole number of hundreds of digits is kept as one
        return None
    blank = math.isfinite(value) and is_blank(value)
    usable = math.isfinite(value) and not blank
    return Sample(found[0].name, found[0].labels, value if usable else None, blank, line)


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an API answer: seconds since 1970 and values, None for NaN, infinities and DCGM's blanks."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float | None], ...]


@dataclass(slots=True)
class Answer:
    """The frame of an API answer. `whole` is False when the JSON ends early or is damaged."""

    status: str = ""
    result_type: str = ""
    error: str = ""
    warnings: list[str] = field(default_factory=list)
    whole: bool = True


class _Chunks(io.RawIOBase):
    """A readable over pieces of bytes, from the first opening brace on."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""
        self._started = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._chunks, None)
            if piece is None:
                return 0
            if not self._started:
                start = piece.find(b"{")
                if start < 0:
                    continue
                piece, self._started = piece[start:], True
            self._rest = piece
        taken = self._rest[: len(buffer)]
        buffer[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)


def api_series(chunks: Iterator[bytes], answer: Answer) -> Iterator[Series]:
    """Series of an API answer, one at a time; `answer` is filled on the way."""
    stream = io.BufferedReader(_Chunks(chunks), 1 << 16)
    try:
        yield from _series(cast(BinaryIO, stream), answer)
    except (ijson.JSONError, ValueError, OverflowError, RecursionError):
        answer.whole = False


def _series(stream: BinaryIO, answer: Answer) -> Iterator[Series]:
    builder: ObjectBuilder | None = None
    depth = points = 0
    scalar: list[Any] = []
    for prefix, event, value in ijson.parse(stream, use_float=True):
        depth += event in ("start_map", "start_array")
        depth -= event in ("end_map", "end_array")
        if depth > MAX_DEPTH:
            raise ValueError("nested too deeply")
        if builder is not None:
            points += event == "start_array"
            if points > MAX_POINTS:
                raise ValueError("too many points in one series")
            builder.event(event, value)
            if prefix == "data.result.item" and event == "end_map":
                yield _one(builder.value)
                builder, points = None, 0
        elif prefix == "data.result.item" and event == "start_map":
            builder = ObjectBuilder()
            builder.event(event, value)
        elif prefix == "data.result.item" and event in ("number", "string") and len(scalar) < 2:
            scalar.append(value)
        elif prefix == "status":
            answer.status = str(value)
        elif prefix == "data.resultType":
            answer.result_type = str(value)
        elif prefix == "error":
            answer.error = str(value)[:500]
        elif prefix in ("warnings.item", "infos.item") and len(answer.warnings) < 100:
            answer.warnings.append(str(value)[:500])
    if len(scalar) == 2:
        yield _one({"metric": {}, "value": scalar})


def _one(item: Any) -> Series:
    labels = item.get("metric") if isinstance(item.get("metric"), dict) else {}
    pairs = item.get("values") or ([item["value"]] if "value" in item else [])
    points = tuple(
        (
            float(pair[0]),
            None if (value := number(pair[1])) is not None and is_blank(value) else value,
        )
        for pair in pairs
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], int | float)
    )
    return Series({str(k): str(v) for k, v in labels.items()}, points)
