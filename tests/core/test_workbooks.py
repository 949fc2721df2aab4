"""Workbooks are read as openpyxl reads them, in a fraction of its time."""

from __future__ import annotations

import io
import zipfile
from datetime import date, datetime, time, timedelta

import pytest
from openpyxl import Workbook, load_workbook

from core.errors import InputError
from core.imports import read_table
from core.workbooks import UnreadableWorkbook, workbook_rows

ROWS: list[list[object]] = [
    ["name", "数量", "price", "day", "at", "ok", "formula"],
    ["H100  ", 8, 250000.5, date(2027, 3, 31), datetime(2027, 3, 31, 17, 30), True, "=1+1"],
    [None, None, None, None, None, None, None],
    ["<b> & \"x\"", -3, 1e-7, date(1999, 1, 1), datetime(2000, 2, 29), False, None],
    [" lead", 10**15, 0.1, None, time(9, 30), None, "'quoted"],
    [None, None, 2, None, timedelta(hours=30), None, "line\nbreak"],
]  # fmt: skip


def book(write_only: bool) -> bytes:
    made = Workbook(write_only=write_only)
    sheet = made.create_sheet("one", 0) if write_only else made.active
    for row in ROWS:
        sheet.append(row)
    made.create_sheet("two").append(["other"])
    content = io.BytesIO()
    made.save(content)
    return content.getvalue()


def as_openpyxl(content: bytes) -> list[list[str]]:
    def text(cell: object) -> str:
        if cell is None:
            return ""
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, datetime):
            return cell.date().isoformat() if cell.time() == time() else cell.isoformat()
        return f"{cell:.10f}".rstrip("0").rstrip(".") if isinstance(cell, float) else str(cell)

    sheet = load_workbook(io.BytesIO(content), read_only=True, data_only=True).worksheets[0]
    return [[text(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]


@pytest.mark.parametrize("write_only", [True, False])
def test_it_reads_what_openpyxl_reads(write_only):
    content = book(write_only)
    expected = as_openpyxl(content)
    found = {
        number: cells + [""] * (len(expected[number - 1]) - len(cells))
        for number, cells in workbook_rows(content)
    }
    for number, cells in enumerate(expected, 1):
        assert found.get(number, [""] * len(cells)) == cells


SHEET, STRINGS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
NS = b"xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'"
CELLS = b"<row r='1'><c r='A1' t='s'><v>0</v></c><c r='C1'><v>8</v></c></row>"
RICH = b"<si><r><t>na</t></r><r><t>me</t></r><rPh sb='0' eb='1'><t>hint</t></rPh></si>"


def by_hand(cells: bytes = CELLS, strings: bytes = RICH, doctype: bytes = b"") -> bytes:
    """A workbook whose sheet and shared strings are told in XML, as Excel writes them."""
    parts = {
        SHEET: b"<worksheet %s><sheetData>%s</sheetData></worksheet>" % (NS, cells),
        STRINGS: b"%s<sst %s>%s</sst>" % (doctype, NS, strings),
    }
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    part = b'<Override PartName="/%s" ContentType="%s" /></Types>' % (STRINGS.encode(), kind)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book(False))) as source, zipfile.ZipFile(made, "w") as target:
        for name in {*source.namelist(), STRINGS}:
            content = parts.get(name) or source.read(name)
            target.writestr(name, content.replace(b"</Types>", part))
    return made.getvalue()


def test_shared_strings_rich_text_phonetic_hints_and_gaps():
    assert list(workbook_rows(by_hand())) == [(1, ["name", "", "8"])]


@pytest.mark.parametrize(
    "content",
    [
        by_hand(cells=b"<row><c>"),
        by_hand(cells=CELLS.replace(b"A1", b"ZZZZ1")),
        by_hand(cells=CELLS.replace(b"t='s'", b"t='s' s='x'")),
        by_hand(cells=CELLS.replace(b"<v>0", b"<v>9")),
        by_hand(cells=CELLS.replace(b"C1", b"A1")),
        by_hand(cells=CELLS.replace(b"<v>8", b"<v>eight")),
        by_hand(doctype=b'<!DOCTYPE sst [<!ENTITY a "b">]>'),
    ],
)
def test_a_broken_or_hostile_workbook_is_refused(content):
    with pytest.raises(UnreadableWorkbook):
        list(workbook_rows(content))
    with pytest.raises(InputError, match="not a readable XLSX"):
        read_table(content, columns=["name"])


@pytest.mark.parametrize("part", sorted(zipfile.ZipFile(io.BytesIO(book(False))).namelist()))
@pytest.mark.parametrize(
    "content",
    [
        b"", b"<a", b"\0", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
        b"<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'><Override Nam='x'/></Types>",
    ],
)  # fmt: skip
def test_a_workbook_with_any_damaged_part_is_read_or_refused(part, content):
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book(False))) as source, zipfile.ZipFile(made, "w") as target:
        for name in source.namelist():
            target.writestr(name, content if name == part else source.read(name))
    read_or_refused(made.getvalue())


def test_a_workbook_with_any_damaged_byte_is_read_or_refused():
    content = book(False)
    for place in range(0, len(content), 11):
        read_or_refused(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])


def test_an_encrypted_workbook_is_refused():
    content = bytearray(book(False))
    for place in range(len(content)):
        if content[place : place + 4] == b"PK\x01\x02":
            content[place + 8] |= 1
    with pytest.raises(InputError, match="not a readable XLSX"):
        read_table(bytes(content), columns=["name"])


def read_or_refused(content: bytes) -> None:
    try:
        table = read_table(content, columns=["name"], encoding="gb18030")
    except InputError:
        return
    assert table.columns
