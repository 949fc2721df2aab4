"""Tables as CSV and XLSX files. Text that a spreadsheet would run as a formula is disarmed; numbers stay numbers.

CSV is UTF-8 with a byte-order mark (a spreadsheet then shows Chinese right), comma, CRLF, a point for decimals, and is
sent while it is read. Text cells that begin like a formula get an apostrophe in front; ``core.imports`` takes it off.
In XLSX every text is typed as a string, so nothing has to be changed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

from django.http import FileResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

from core.errors import InputError
from core.messages import msg

Cell = str | int | float | Decimal | bool | date | datetime | None
T = TypeVar("T")

# First characters that a spreadsheet takes for a formula, the full-width forms included.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
FORMATS = ("csv", "xlsx")
XLSX_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# XML 1.0 has no way to write these.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: a header that does not change with the language, and how to get the cell of a row."""

    name: str
    value: Callable[[T], Cell]


def neutralise(text: str) -> str:
    """`text` so that no spreadsheet runs it: an apostrophe goes before a first character that starts a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def csv_cell(value: Cell) -> str:
    """One cell as text. Only text is disarmed: a negative number stays a number. Missing is empty, never 0."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return f"{value:f}"
        case int() | float():
            return repr(value)
        case datetime():
            return value.isoformat(timespec="seconds")
        case date():
            return value.isoformat()
    return neutralise(value.replace("\x00", ""))


class _Echo:
    """A file that gives back what is written to it: the csv module then makes lines for a stream."""

    def write(self, line: str) -> str:
        return line


def csv_lines(columns: Iterable[Column[T]], rows: Iterable[T]) -> Iterator[str]:
    """The file line by line, byte-order mark first."""
    columns = list(columns)
    writer = csv.writer(_Echo())
    yield "\ufeff" + str(writer.writerow([column.name for column in columns]))
    for row in rows:
        yield str(writer.writerow([csv_cell(column.value(row)) for column in columns]))


def _xlsx_value(value: Cell) -> Any:
    if isinstance(value, datetime):
        return timezone.make_naive(value) if timezone.is_aware(value) else value
    if isinstance(value, str):
        return _UNPRINTABLE.sub("", value)[:32_767]
    return value


def write_xlsx(target: Any, columns: Iterable[Column[T]], rows: Iterable[T], *, title: str) -> None:
    """Write one sheet to the binary file `target`. Rows are not held in memory."""
    columns = list(columns)
    book = Workbook(write_only=True)
    sheet = book.create_sheet(re.sub(r"[\[\]:*?/\\]", " ", title)[:31] or "Sheet1")
    sheet.freeze_panes = "A2"
    sheet.append([_text_cell(sheet, column.name) for column in columns])
    for row in rows:
        cells = []
        for column in columns:
            value = _xlsx_value(column.value(row))
            cells.append(_text_cell(sheet, value) if isinstance(value, str) else value)
        sheet.append(cells)
    book.save(target)


def _text_cell(sheet: Any, text: str) -> Any:
    cell = WriteOnlyCell(sheet, value=text)
    cell.data_type = "s"  # openpyxl would make "=…" a formula
    return cell


def export_response(
    kind: str, *, name: str, columns: Iterable[Column[T]], rows: Iterable[T]
) -> HttpResponseBase:
    """The table as a download, `kind` "csv" or "xlsx". Raises InputError for another kind."""
    response: HttpResponseBase
    match kind:
        case "csv":
            response = StreamingHttpResponse(
                csv_lines(columns, rows), content_type="text/csv; charset=utf-8"
            )
        case "xlsx":
            file = TemporaryFile()  # closed by FileResponse
            write_xlsx(file, columns, rows, title=name)
            file.seek(0)
            response = FileResponse(file, content_type=XLSX_TYPE)
        case _:
            raise InputError(
                "format",
                msg("%(value)s is not a format: use csv or xlsx", value=kind),
                value=kind,
                limit=", ".join(FORMATS),
            )
    response["Content-Disposition"] = (
        content_disposition_header(True, f"{name}.{kind}") or "attachment"
    )
    response["X-Content-Type-Options"] = "nosniff"
    return response
