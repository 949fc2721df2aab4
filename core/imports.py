"""Read tables that people bring: CSV in any usual form, and XLSX. Never guesses an encoding in silence.

A file that is UTF-8 (with or without byte-order mark) or UTF-16 with one is read as it is. Any other is ambiguous: the
caller gets the candidates with a sample of each and asks the person. The separator is the one under which the header
names the known columns. What was chosen is data: reading again with the same choices gives the same rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Generic, TypeVar

from core.errors import DomainError, InputError
from core.exports import FORMULA_STARTS
from core.messages import Message, msg
from core.workbooks import UnreadableWorkbook, unpacked_size, workbook_rows

DELIMITERS = (",", ";", "\t", "|")
# Offered when a file is not Unicode, in this order: name for Python, name for people.
ENCODINGS: dict[str, str] = {
    "gb18030": "GBK / GB18030",
    "cp1252": "Windows-1252",
    "big5": "Big5",
    "shift_jis": "Shift JIS",
    "cp1251": "Windows-1251",
}
MAX_BYTES = 10 * 1024 * 1024
MAX_ROWS = 5_000
MAX_UNPACKED = 200 * 1024 * 1024  # what an XLSX may grow to
SAMPLE_LENGTH = 160
# A sign that can only be the decimal one: not followed by exactly three digits, or after the other sign.
_PLAIN_COMMA = re.compile(r"^[^,]*,(\d{1,2}|\d{4,})$|\.\d{3},\d+$", re.ASCII)
_PLAIN_POINT = re.compile(r"^[^.]*\.(\d{1,2}|\d{4,})$|,\d{3}\.\d+$", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,30}(\.\d{1,30})?", re.ASCII)


T = TypeVar("T")


class EncodingNeeded(DomainError):
    """The bytes can be read in several ways. `choices`: encoding → what the first telling line would say."""

    status = 422
    code = "encoding_needed"

    def __init__(self, choices: Mapping[str, str]) -> None:
        super().__init__(
            msg("The file is not UTF-8. Choose the encoding under which it reads right.")
        )
        self.choices = dict(choices)


@dataclass(frozen=True, slots=True)
class Row:
    """One record: where it begins in the file (for messages), its cells by column, and what is wrong with its form."""

    line: int
    cells: Mapping[str, str]
    problem: Message | None = None


Fate = TypeVar("Fate")  # what becomes of one row


@dataclass(frozen=True, slots=True)
class Preview(Generic[Fate]):
    """What applying an import would do; with `choices` instead, the encoding has to be chosen first."""

    fates: list[Fate]
    counts: dict[str, int]
    unknown_columns: tuple[str, ...] = ()
    choices: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """What was read, and the choices under which it reads so."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    encoding: str  # "xlsx" for a workbook
    delimiter: str  # empty for a workbook
    unknown_columns: tuple[str, ...] = ()
    headings: Mapping[str, str] = field(default_factory=dict)  # column: as the file writes it


def read_table(
    content: bytes,
    *,
    columns: Collection[str],
    required: Collection[str] = (),
    encoding: str = "",
    delimiter: str = "",
    aliases: Mapping[str, str] | None = None,
    max_rows: int = MAX_ROWS,
) -> Table:
    """Read `content`; `columns` are the names that the caller understands, `required` those it cannot do without.

    `aliases` leads other headings (as `heading` writes them) to a column; `max_rows` is how many records are taken.

    Raises
    ------
    EncodingNeeded
        If the file is not Unicode and no `encoding` is given.
    InputError
        If the file is empty, too large, not a table, lacks a required column, or cannot be read as `encoding`.
    """
    if not content:
        raise InputError("file", msg("The file is empty"), value=0, limit=1)
    check_size(len(content))
    names = dict.fromkeys(columns, "") | dict(aliases or {})
    if content.startswith(b"PK\x03\x04"):
        records, encoding, delimiter = _workbook_records(content, max_rows), "xlsx", ""
    else:
        text, encoding = decode(content, encoding)
        delimiter = delimiter or _find_delimiter(text, names)
        records = _csv_records(text, delimiter, max_rows)
    written: dict[str, str] = {}
    if records:
        line, header = records[0]
        known = [names.get(heading(cell)) or cell for cell in header]
        written = {heading(name): cell.strip() for name, cell in zip(known, header, strict=True)}
        records[0] = (line, known)
    table = _table(records, columns, required, encoding, delimiter)
    return replace(table, headings={name: written.get(name, name) for name in table.columns})


def check_size(size: int, limit: int = MAX_BYTES, *, field: str = "file") -> None:
    """Refuse a file of more than `limit` bytes. Raises InputError."""
    if size > limit:
        raise InputError(
            field, msg("The file has %(size)s bytes; the limit is %(limit)s", size=size, limit=limit), value=size,
            limit=limit,
        )  # fmt: skip


def decode(content: bytes, encoding: str = "") -> tuple[str, str]:
    """Text of `content` and the encoding it was read with. Raises EncodingNeeded or InputError."""
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if content.startswith(mark):
            return _text(_decode_as(content, name)), name
    if encoding:
        if encoding not in ENCODINGS and encoding not in ("utf-8", "utf-8-sig", "utf-16"):
            raise InputError(
                "encoding",
                msg("%(value)s is not an encoding that is read here", value=encoding),
                value=encoding,
                limit=", ".join(ENCODINGS),
            )
        return _text(_decode_as(content, encoding)), encoding
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EncodingNeeded(_samples(content, error.start)) from error
    return _text(text), "utf-8"


def _text(text: str) -> str:
    if "\x00" in text:  # no store keeps it, whatever the encoding
        raise InputError("file", msg("The file is not a text table"))
    return text


def _decode_as(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            "encoding",
            msg("The file is not valid %(encoding)s: byte %(position)s", encoding=encoding, position=error.start),
            value=encoding,
        ) from error  # fmt: skip


def _samples(content: bytes, position: int) -> dict[str, str]:
    """The line around the first byte that is not UTF-8, as each candidate encoding shows it."""
    start = content.rfind(b"\n", 0, position) + 1
    end = content.find(b"\n", position)
    line = content[start : end if end >= 0 else len(content)].strip()
    samples = {}
    for name in ENCODINGS:
        try:
            content.decode(name)
            samples[name] = line.decode(name)[:SAMPLE_LENGTH]
        except UnicodeDecodeError:
            continue
    if not samples:
        raise InputError("file", msg("The file is not a text table"))
    return samples


def _find_delimiter(text: str, columns: Collection[str]) -> str:
    """The separator under which the first record names most of the known columns."""

    def known(delimiter: str) -> tuple[int, int]:
        header = next(csv.reader(io.StringIO(text[:65_536], newline=""), delimiter=delimiter), [])
        return sum(heading(cell) in columns for cell in header), len(header)

    return max(DELIMITERS, key=known)


def heading(cell: str) -> str:
    """A heading as it is compared: small letters, `_` for blanks, no byte-order mark."""
    return cell.strip().lstrip("\ufeff").lower().replace(" ", "_")


def _csv_records(text: str, delimiter: str, max_rows: int) -> list[tuple[int, list[str]]]:
    """Records with the line each begins on. Quoted line breaks stay inside their cell."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    records, line = [], 1
    try:
        for record in reader:
            if any(cell.strip() for cell in record):
                records.append((line, record))
            line = reader.line_num + 1
            if len(records) > max_rows + 1:
                raise _too_many(max_rows)
    except csv.Error as error:
        raise InputError(
            "file", msg("Line %(line)s cannot be read: %(problem)s", line=reader.line_num, problem=str(error))
        ) from error  # fmt: skip
    return records


def _workbook_records(content: bytes, max_rows: int) -> list[tuple[int, list[str]]]:
    """Rows of the first sheet. Formulas count by their stored value; dates become ISO dates."""
    try:
        unpacked = unpacked_size(content)
        if unpacked > MAX_UNPACKED:
            raise InputError(
                "file",
                msg(
                    "The workbook unpacks to %(size)s bytes; the limit is %(limit)s",
                    size=unpacked,
                    limit=MAX_UNPACKED,
                ),
                value=unpacked,
                limit=MAX_UNPACKED,
            )  # fmt: skip
        records = []
        for number, record in workbook_rows(content):
            if any(cell.strip() for cell in record):
                records.append((number, record))
            if len(records) > max_rows + 1:
                raise _too_many(max_rows)
    except UnreadableWorkbook as error:
        raise InputError("file", msg("The file is not a readable XLSX workbook")) from error
    return records


def _too_many(limit: int) -> InputError:
    return InputError(
        "file",
        msg("The file has more than %(limit)s rows; split it", limit=limit),
        limit=limit,
    )


def _table(
    records: list[tuple[int, list[str]]],
    columns: Collection[str],
    required: Collection[str],
    encoding: str,
    delimiter: str,
) -> Table:
    if not records:
        raise InputError("file", msg("The file holds no rows"))
    header = [heading(cell) for cell in records[0][1]]
    while header and not header[-1]:
        header.pop()
    double = sorted({name for name in header if header.count(name) > 1 and name in columns})
    if double:
        raise InputError(
            "file", msg("The column %(name)s occurs twice", name=double[0]), value=double[0]
        )
    missing = [name for name in required if name not in header]
    if missing:
        raise InputError(
            "file",
            msg(
                "The column %(name)s is missing; the first line names the columns", name=missing[0]
            ),
            value=", ".join(header),
            limit=", ".join(required),
        )
    rows = tuple(_row(line, record, header, columns) for line, record in records[1:])
    unknown = tuple(name for name in header if name and name not in columns)
    return Table(tuple(header), rows, encoding, delimiter, unknown)


def _row(line: int, record: list[str], header: list[str], columns: Collection[str]) -> Row:
    cells = {
        name: plain(cell) for name, cell in zip(header, record, strict=False) if name in columns
    }
    cells |= {name: "" for name in header[len(record) :] if name in columns}
    extra = [cell for cell in record[len(header) :] if cell.strip()]
    problem = None
    if extra:
        problem = msg(
            "The row has %(cells)s cells, the header %(columns)s",
            cells=len(record),
            columns=len(header),
        )
    return Row(line, cells, problem)


def refused_first(rows: Iterable[T], refused: Callable[[T], bool]) -> list[T]:
    """What needs a person's eye comes first; the order of the file within."""
    return sorted(rows, key=lambda row: not refused(row))


def plain(cell: str) -> str:
    """The cell as it was before an export disarmed it, without outer blanks."""
    text = cell.strip()
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA_STARTS) else text


def uses_decimal_comma(cells: Iterable[str]) -> bool:
    """Whether a column of numbers writes its decimals after a comma: some cell shows it plainly, none the contrary."""
    comma = point = False
    for cell in cells:
        text = cell.strip()
        comma |= bool(_PLAIN_COMMA.search(text))
        point |= bool(_PLAIN_POINT.search(text))
    return comma and not point


def parse_decimal(field: str, text: str, *, decimal_comma: bool = False) -> Decimal:
    """A number as people write it: "1234.5", "1,234.50", and with `decimal_comma` "1.234,50". Raises InputError.

    A single separator followed by three digits ("1,234") could be either; it is refused rather than guessed, unless
    the file's other sign makes it plain.
    """
    point, comma = (",", ".") if decimal_comma else (".", ",")
    cleaned = text.strip().replace("\u00a0", "").replace("\u202f", "").replace(" ", "")
    whole, _sign, fraction = cleaned.partition(point)
    groups = whole.lstrip("+-").split(comma)
    grouped = len(groups) > 1
    well_formed = all(len(group) == 3 for group in groups[1:]) and 1 <= len(groups[0]) <= 3
    ambiguous = grouped and not fraction and len(groups) == 2
    if grouped and (not well_formed or ambiguous):
        raise _not_a_number(field, text)
    number = whole.replace(comma, "") + ("." + fraction if fraction else "")
    if not _NUMBER.fullmatch(number):
        raise _not_a_number(field, text)
    return Decimal(number)


def _not_a_number(field: str, text: str) -> InputError:
    return InputError(
        field,
        msg("%(field)s: %(value)s is not a plain number", field=field, value=text),
        value=text,
    )


def parse_date(field: str, text: str) -> date:
    """An ISO date (2026-11-30), or the same with slashes or points, year first. Raises InputError."""
    cleaned = text.strip().replace("/", "-").replace(".", "-")
    parts = cleaned.split("-")
    if len(parts) == 3 and len(parts[0]) == 4 and all(part.isdigit() for part in parts):
        try:
            return date(int(parts[0]), int(parts[1]), int(parts[2]))
        except ValueError:
            pass
    raise InputError(
        field,
        msg("%(field)s: %(value)s is not a date; write year-month-day", field=field, value=text),
        value=text,
    )
