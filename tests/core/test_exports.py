"""Exports run nothing in a spreadsheet and keep numbers, dates and scripts."""

import csv
import io
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from openpyxl import load_workbook

from core.errors import InputError
from core.exports import Column, csv_lines, export_response, write_xlsx

COLUMNS = [Column("name", lambda row: row[0]), Column("amount", lambda row: row[1])]


def written(rows):
    text = "".join(csv_lines(COLUMNS, rows))
    assert text.startswith("\ufeff")
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_text_that_starts_a_formula_is_disarmed_in_csv(start):
    text = start + 'HYPERLINK("http://x")'
    assert written([(text, 1)])[1][0] == "'" + text


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "＝", "＋", "－", "＠"])
def test_text_is_typed_as_string_in_xlsx(start):
    target = io.BytesIO()
    write_xlsx(target, COLUMNS, [(start + "1+1", Decimal("2.50"))], title="a/b")
    sheet = load_workbook(io.BytesIO(target.getvalue())).active
    assert sheet["A2"].data_type == "s"
    assert sheet["A2"].value == start + "1+1"
    assert sheet["B2"].value == pytest.approx(2.5)


def test_numbers_dates_and_scripts_stay_what_they_are():
    rows = written([
        ("显存", Decimal("-1E+3")), ("München", -2.5), ("none", None), ("zero", 0),
        ("day", date(2026, 11, 30)), ("moment", datetime(2026, 11, 30, 8, tzinfo=UTC)), ("yes", True),
    ])  # fmt: skip
    assert rows[1:] == [
        ["显存", "-1000"], ["München", "-2.5"], ["none", ""], ["zero", "0"],
        ["day", "2026-11-30"], ["moment", "2026-11-30T08:00:00+00:00"], ["yes", "yes"],
    ]  # fmt: skip


def test_control_characters_do_not_break_a_workbook():
    target = io.BytesIO()
    write_xlsx(target, COLUMNS, [("a\x00b\x0bc", None)], title="")
    assert load_workbook(io.BytesIO(target.getvalue())).active["A2"].value == "abc"


def test_csv_is_sent_while_rows_are_read():
    seen = []

    def rows():
        for n in range(3):
            seen.append(n)
            yield (str(n), n)

    response = export_response("csv", name="prices", columns=COLUMNS, rows=rows())
    assert seen == []
    chunks = iter(response.streaming_content)
    next(chunks)
    next(chunks)
    assert seen == [0]
    assert response["Content-Disposition"] == 'attachment; filename="prices.csv"'


def test_other_formats_are_refused():
    with pytest.raises(InputError, match="pdf"):
        export_response("pdf", name="prices", columns=COLUMNS, rows=[])
