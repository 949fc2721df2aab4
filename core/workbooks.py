"""Rows of an XLSX workbook's first sheet, as text, read in one pass.

openpyxl reads manifest, styles and dates; the two large parts (the sheet and its shared strings) go through Expat
directly: openpyxl builds several objects for each cell and reads a sheet twice that does not state its size. Entities
are refused, so that a small file cannot unfold into a large one.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import IO, Any
from xml.parsers import expat

from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.datetime import from_excel, from_ISO8601
from openpyxl.utils.exceptions import InvalidFileException
from openpyxl.xml.constants import SHARED_STRINGS, SHEET_MAIN_NS

CHUNK = 1 << 16  # bytes of XML at a time
DIGITS = "0123456789"
MAX_COLUMNS = 16_384  # of a sheet
_NS = f"{SHEET_MAIN_NS} "
ROW, CELL, VALUE, TEXT, ITEM, PHONETIC = (
    _NS + name for name in ("row", "c", "v", "t", "si", "rPh")
)

# What damaged bytes make of the libraries below: zlib and zipfile (cut, encrypted or oddly packed members, which are
# told as RuntimeError), the two XML parsers (one tells a SyntaxError), and openpyxl, which hands attributes that it
# does not know to its constructors (TypeError) and tells a missing part as OSError. Nothing here touches a disk.
UNREADABLE = (
    zipfile.BadZipFile, InvalidFileException, zlib.error, expat.ExpatError, ArithmeticError, AttributeError, EOFError,
    LookupError, OSError, RuntimeError, SyntaxError, TypeError, ValueError,
)  # fmt: skip


class UnreadableWorkbook(ValueError):
    """The bytes are no workbook that can be read."""


def unpacked_size(content: bytes) -> int:
    """What the members say they unpack to [B]; none is unpacked beyond that. Raises UnreadableWorkbook."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except UNREADABLE as error:
        raise UnreadableWorkbook(str(error)) from error


def workbook_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """(number of the row, its cells) of every row that is there. Formulas count by their stored value; dates are ISO.

    Raises UnreadableWorkbook.
    """
    try:
        reader = _Reader(io.BytesIO(content), read_only=True, data_only=True)
        reader.read()
        with reader.archive, reader.archive.open(reader.first_sheet) as sheet:
            yield from _rows(sheet, reader)
    except UNREADABLE as error:
        raise UnreadableWorkbook(str(error)) from error


class _Reader(ExcelReader):
    """Everything but the sheets; of these only where the first one is."""

    first_sheet = ""

    def read_strings(self) -> None:
        part = self.package.find(SHARED_STRINGS)  # type: ignore[no-untyped-call]
        if part is not None:
            with self.archive.open(part.PartName[1:]) as source:
                self.shared_strings = _strings(source)

    def read_worksheets(self) -> None:
        for _sheet, found in self.parser.find_sheets():
            if found.target in self.valid_files and "chartsheet" not in found.Type:
                self.first_sheet = found.target
                return
        raise UnreadableWorkbook("no sheet")


def _refused(*_told: Any) -> None:
    raise UnreadableWorkbook("entities")


def _parser() -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.EntityDeclHandler = _refused
    return parser


def _strings(source: IO[bytes]) -> list[str]:
    """The shared strings; phonetic hints are no part of a text."""
    found: list[str] = []
    parts: list[str] = []
    state = [False, False]  # inside a text; inside a phonetic hint

    def start(name: str, _attributes: dict[str, str]) -> None:
        if name == ITEM:
            parts.clear()
        elif name == PHONETIC:
            state[1] = True
        elif name == TEXT:
            state[0] = not state[1]

    def end(name: str) -> None:
        if name == TEXT:
            state[0] = False
        elif name == PHONETIC:
            state[1] = False
        elif name == ITEM:
            found.append("".join(parts))

    def data(text: str) -> None:
        if state[0]:
            parts.append(text)

    parser = _parser()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = (
        start,
        end,
        data,
    )
    parser.ParseFile(source)
    return found


def _rows(source: IO[bytes], reader: Any) -> Iterator[tuple[int, list[str]]]:
    sheet = _Sheet(reader)
    parser = _parser()
    parser.StartElementHandler = sheet.start
    parser.EndElementHandler = sheet.end
    parser.CharacterDataHandler = sheet.data
    while chunk := source.read(CHUNK):
        parser.Parse(chunk, False)
        yield from sheet.taken()
    parser.Parse(b"", True)
    yield from sheet.taken()


class _Sheet:
    """What the parser is told of a sheet, a cell at a time."""

    def __init__(self, reader: Any) -> None:
        self.strings: list[str] = reader.shared_strings
        self.dates: frozenset[int] = frozenset(reader.wb._date_formats)
        self.spans: frozenset[int] = frozenset(reader.wb._timedelta_formats)
        self.epoch: datetime = reader.wb.epoch
        self.rows: list[tuple[int, list[str]]] = []
        self.columns: dict[str, int] = {}
        self.number = 0
        self.cells: list[str] = []
        self.column = 0
        self.kind, self.style = "n", 0
        self.parts: list[str] = []
        self.inside = self.phonetic = False

    def taken(self) -> list[tuple[int, list[str]]]:
        rows, self.rows = self.rows, []
        return rows

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == CELL:
            reference = attributes.get("r")
            self.column = self._column(reference) if reference else self.column + 1
            self.kind = attributes.get("t", "n")
            self.style = int(attributes.get("s", 0))
            self.parts = []
        elif name == VALUE:
            self.inside = self.kind != "inlineStr"
        elif name == TEXT:
            self.inside = self.kind == "inlineStr" and not self.phonetic
        elif name == ROW:
            self.number = int(attributes.get("r", self.number + 1))
            self.cells, self.column = [], 0
        elif name == PHONETIC:
            self.phonetic = True

    def end(self, name: str) -> None:
        if name == VALUE or name == TEXT:
            self.inside = False
        elif name == CELL:
            if self.parts:
                cells, gap = self.cells, self.column - 1 - len(self.cells)
                if gap < 0:
                    raise UnreadableWorkbook("cells out of order")
                cells.extend([""] * gap)
                cells.append(self._text("".join(self.parts)))
        elif name == ROW:
            self.rows.append((self.number, self.cells))
        elif name == PHONETIC:
            self.phonetic = False

    def data(self, text: str) -> None:
        if self.inside:
            self.parts.append(text)

    def _column(self, reference: str) -> int:
        """Of `AB12`: 28."""
        letters = reference.rstrip(DIGITS)
        found = self.columns.get(letters)
        if found is None:
            found = 0
            for letter in letters.upper():
                found = found * 26 + ord(letter) - 64
            if not 1 <= found <= MAX_COLUMNS:
                raise UnreadableWorkbook(reference)
            self.columns[letters] = found
        return found

    def _text(self, value: str) -> str:
        match self.kind:
            case "inlineStr" | "str" | "e":
                return value
            case "s":
                return self.strings[int(value)]
            case "n":
                return self._number(value)
            case "b":
                return "yes" if int(value) else "no"
            case "d":
                return _moment(from_ISO8601(value))  # type: ignore[no-untyped-call]
        return value

    def _number(self, value: str) -> str:
        if self.style in self.dates:
            number = float(value)
            try:
                return _moment(from_excel(number, self.epoch, timedelta=self.style in self.spans))
            except (OverflowError, ValueError):
                return "#VALUE!"
        if "." in value or "E" in value or "e" in value:
            return f"{Decimal(repr(float(value))):f}"
        return str(int(value))


def _moment(value: Any) -> str:
    if isinstance(value, datetime):
        whole_day = value.time() == datetime.min.time()
        return value.date().isoformat() if whole_day else value.isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)
