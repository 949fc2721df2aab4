"""A file as UTF-8 bytes and lines, in bounded memory, whatever encoding, colours or line ends it came with.

Evidence is pasted, re-saved by spreadsheets, captured from terminals and collected by parallel shells. A
:class:`Source` removes what those add (byte order mark, UTF-16, GBK, NUL bytes, terminal escapes) and remembers
what it had to remove, so that a reader can say so. It never holds more than a few megabytes of a file.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 64 << 10
MAX_LINE_BYTES = 1 << 20

_ANSI = re.compile(
    rb"\x1b(?:\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[@-Z\\^_])"
)
# Control characters no tool prints; their presence means that the file was damaged or is not text.
_CONTROL = bytes([*range(1, 8), *range(14, 32), 127])
_LONG_RUNS = (b" " * 200, b"\t" * 200)
_LINE_ENDS = re.compile(r"[\r\n]+")
_CJK = re.compile(r"[一-鿿　-〿＀-￯]")


class TooLargeError(ValueError):
    """The file is longer than what this reader may hold in memory."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"{size} bytes is more than {limit}")
        self.size = size
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end. `number` counts line feeds from 1, as an editor does."""

    number: int
    text: str


class Source:
    """A seekable binary stream read as text. `damage` names what a sound file would not have had."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        start = stream.read(HEAD_BYTES)
        self.magic = start[:64]
        self.encoding, self._skip = _encoding(start, at_end=self.size <= HEAD_BYTES)
        self.notes: set[str] = set()  # harmless, worth telling: utf16, gbk, bom, ansi
        self.damage: set[str] = set()  # bytes that no tool writes: the file was altered on its way
        if self.encoding != "utf-8":
            self.notes.add({"gb18030": "gbk"}.get(self.encoding, "utf16"))
        if self._skip:
            self.notes.add("bom")

    @classmethod
    def from_bytes(cls, data: bytes) -> Source:
        return cls(io.BytesIO(data))

    @classmethod
    def open(cls, path: str | Path) -> Source:
        """Open a file for reading; close it with :meth:`close`."""
        return cls(Path(path).open("rb"))

    def close(self) -> None:
        self._stream.close()

    def byte_chunks(self, *, limit: int | None = None) -> Iterator[bytes]:
        """Clean UTF-8 in pieces of about a megabyte; an escape sequence is never cut in two."""
        self._stream.seek(self._skip)
        decoder = (
            None
            if self.encoding == "utf-8"
            else codecs.getincrementaldecoder(self.encoding)("replace")
        )
        carry, left = b"", limit
        while True:
            raw = self._stream.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left))
            if left is not None:
                left -= len(raw)
            data = raw if decoder is None else decoder.decode(raw, final=not raw).encode()
            data = carry + data
            carry = b""
            if raw:
                escape = data.rfind(b"\x1b", max(0, len(data) - 300))
                if escape >= 0:
                    data, carry = data[:escape], data[escape:]
            if data:
                yield self._clean(data)
            if not raw:
                return

    def _clean(self, data: bytes) -> bytes:
        if b"\x1b" in data:
            self.notes.add("ansi")
            data = _ANSI.sub(b"", data)
        if b"\x00" in data:
            self.damage.add("nul_bytes")
            data = data.replace(b"\x00", b"")
        if len(data.translate(None, _CONTROL)) != len(data):
            self.damage.add("control_bytes")
        for run in (
            _LONG_RUNS
        ):  # no tool aligns by hundreds of blanks; patterns would walk them again and again
            if run in data:
                data = run.join(piece for piece in data.split(run) if piece)
        return data

    def _decode(self, data: bytes) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self.damage.add("invalid_utf8")
            text = data.decode(errors="replace")
        if self.encoding == "gb18030" and "�" in text:
            self.damage.add("invalid_gbk")
        return text

    def lines(self) -> Iterator[Line]:
        """Every line, split at CR, LF and CRLF. A line over a megabyte is cut and noted as damage."""
        number, carry, overlong = 1, b"", False
        for chunk in self.byte_chunks():
            parts = (carry + chunk).split(b"\n")
            carry = parts.pop()
            for part in parts:
                if not overlong:
                    yield from self._split_returns(part, number)
                elif b"\r" in part:
                    yield from self._split_returns(part[part.index(b"\r") :], number)
                overlong = False
                number += 1
            if len(carry) > MAX_LINE_BYTES:
                complete, _, carry = carry.rpartition(b"\r")
                if complete and not overlong:
                    yield from self._split_returns(complete, number)
                if complete:
                    overlong = False
                if len(carry) > MAX_LINE_BYTES:
                    if not overlong:
                        yield Line(number, self._decode(carry[:MAX_LINE_BYTES]))
                    self.damage.add("line_too_long")
                    carry, overlong = b"", True
        if carry and not overlong:
            yield from self._split_returns(carry, number)

    def _split_returns(self, part: bytes, number: int) -> Iterator[Line]:
        text = self._decode(part)
        if "\r" not in text:
            yield Line(number, text)
            return
        pieces = [piece for piece in text.split("\r") if piece]
        yield from (Line(number, piece) for piece in pieces or [""])

    def text(self, limit: int) -> str:
        """The whole file. Raises :class:`TooLargeError` when it is longer than `limit` bytes."""
        if self.size > limit:
            raise TooLargeError(self.size, limit)
        return self._decode(b"".join(self.byte_chunks()))

    def windows(self) -> tuple[str, ...]:
        """Pieces of 64 KiB for the detector: all of a file up to a megabyte, head, middle and tail of a longer one."""
        if self.size <= CHUNK_BYTES:
            step = HEAD_BYTES - 1024  # they overlap: a line at a seam is whole in one of them
            starts = range(self._skip, max(self.size, self._skip + 1), step)
            return tuple(self._window(start) for start in starts)
        places = (
            self._skip,
            self.size // 4,
            self.size // 2,
            3 * self.size // 4,
            self.size - HEAD_BYTES,
        )
        return tuple(self._window(place) for place in places)

    def _window(self, offset: int) -> str:
        if offset >= self.size:
            return ""
        step = 2 if self.encoding.startswith("utf-16") else 1
        self._stream.seek(offset - (offset - self._skip) % step)
        raw = self._stream.read(HEAD_BYTES)
        text = raw.decode(self.encoding, errors="ignore").replace("\x00", "")
        text = _ANSI.sub(b"", text.encode(errors="ignore")).decode(errors="ignore")
        return _LINE_ENDS.sub("\n", text)


def _encoding(start: bytes, *, at_end: bool) -> tuple[str, int]:
    """(codec, bytes to skip). UTF-16 also without a mark; GBK only when it decodes cleanly to Chinese."""
    if start.startswith(codecs.BOM_UTF8):
        return "utf-8", 3
    if start.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le", 2
    if start.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be", 2
    sample = start[:4096]
    if len(sample) >= 16:
        half = len(sample) // 2
        if sample[1::2].count(0) > 0.8 * half and sample[0::2].count(0) < 0.2 * half:
            return "utf-16-le", 0
        if sample[0::2].count(0) > 0.8 * half and sample[1::2].count(0) < 0.2 * half:
            return "utf-16-be", 0
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start, final=at_end)
    except UnicodeDecodeError:
        try:
            text = codecs.getincrementaldecoder("gb18030")().decode(start, final=at_end)
        except UnicodeDecodeError:
            return "utf-8", 0
        foreign = [c for c in text if ord(c) > 127]
        if len(foreign) >= 4 and all(_CJK.match(c) for c in foreign):
            return "gb18030", 0
    return "utf-8", 0
