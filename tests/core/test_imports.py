"""One table in many guises reads as the same rows, or asks; it never turns to mojibake."""

import io
from datetime import date
from decimal import Decimal

import pytest
from openpyxl import Workbook

from core.errors import InputError
from core.exports import Column, csv_lines
from core.imports import (
    EncodingNeeded,
    parse_date,
    parse_decimal,
    read_table,
    uses_decimal_comma,
)

COLUMNS = ("name", "city", "amount")
PLAIN = "name,city,amount\nH100,München,12.50\nA100,Zürich,3\n"
WANTED = [
    {"name": "H100", "city": "München", "amount": "12.50"},
    {"name": "A100", "city": "Zürich", "amount": "3"},
]


def cells(content, **choices):
    return [dict(row.cells) for row in read_table(content, columns=COLUMNS, **choices).rows]


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace(",", "\t").encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace("\n", "\r").encode(),
        PLAIN.encode("utf-16"),
        PLAIN.replace("name,", "Name ,").encode(),
        (PLAIN + "\n\n,,\n").encode(),
    ],
    ids=["plain", "bom", "semicolon", "tab", "crlf", "cr", "utf16", "header", "blank-lines"],
)
def test_the_same_rows_in_every_guise(content):
    assert cells(content) == WANTED


@pytest.mark.parametrize("encoding", ["cp1252", "gb18030"])
def test_other_encodings_are_asked_for_with_a_sample(encoding):
    text = PLAIN if encoding == "cp1252" else PLAIN.replace("München", "慕尼黑")
    content = text.encode(encoding)

    with pytest.raises(EncodingNeeded) as asked:
        read_table(content, columns=COLUMNS)

    right = "München" if encoding == "cp1252" else "慕尼黑"
    assert right in asked.value.choices[encoding]
    assert cells(content, encoding=encoding)[0]["city"] == right


def test_a_wrong_choice_that_cannot_be_is_refused():
    with pytest.raises(InputError, match="gb18030"):
        read_table(b"name\n\xff\xff\n", columns=COLUMNS, encoding="gb18030")
    with pytest.raises(InputError, match="rot13"):
        read_table(b"name\nx\n", columns=COLUMNS, encoding="rot13")


def test_a_chosen_encoding_lets_no_nul_through():
    with pytest.raises(InputError, match="not a text table"):
        read_table("name\n慕\x00尼\n".encode("gb18030"), columns=COLUMNS, encoding="gb18030")


def test_quoted_line_breaks_stay_in_their_cell_and_lines_count_on():
    table = read_table(b'name,city,amount\n"two\nlines","a ""b""",1\nnext,,2\n', columns=COLUMNS)
    assert table.rows[0].cells["name"] == "two\nlines"
    assert table.rows[0].cells["city"] == 'a "b"'
    assert [row.line for row in table.rows] == [2, 4]


def test_reading_again_with_the_same_choices_gives_the_same_table():
    content = PLAIN.replace(",", ";").encode("cp1252")
    first = read_table(content, columns=COLUMNS, encoding="cp1252")
    again = read_table(content, columns=COLUMNS, encoding=first.encoding, delimiter=first.delimiter)
    assert first == again
    assert first.delimiter == ";"


def test_an_xlsx_reads_like_its_csv():
    book = Workbook()
    book.active.append(["name", "city", "amount"])
    book.active.append(["H100", "München", 12.5])
    book.active.append(["A100", date(2026, 11, 30), None])
    target = io.BytesIO()
    book.save(target)
    assert cells(target.getvalue()) == [
        {"name": "H100", "city": "München", "amount": "12.5"},
        {"name": "A100", "city": "2026-11-30", "amount": ""},
    ]


def test_what_an_export_disarmed_comes_back_whole():
    columns = [Column(name, lambda row, n=name: row[n]) for name in COLUMNS]
    row = {"name": "=HYPERLINK()", "city": "＠here", "amount": "-x"}
    content = "".join(csv_lines(columns, [row])).encode()
    assert cells(content) == [row]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"name,name\na,b\n", "twice"),
        (b"city\nBonn\n", "name is missing"),
        (b'name\n"open', "Line"),
        (b"PK\x03\x04rubbish", "XLSX"),
        (b"a\x00b\n", "not a text table"),
        (b"\xef\xbb\xbfname\na\x00b\n", "not a text table"),
        ("name\na\x00b\n".encode("utf-16"), "not a text table"),
    ],
)
def test_what_cannot_be_read_says_why(content, says):
    with pytest.raises(InputError, match=says):
        read_table(content, columns=COLUMNS, required=["name"])


def test_too_long_a_file_is_refused_and_too_long_a_row_is_named():
    with pytest.raises(InputError, match="5000"):
        read_table(b"name\n" + b"x\n" * 5_001, columns=COLUMNS)
    row = read_table(b"name,city\na,b,c\n", columns=COLUMNS).rows[0]
    assert "3 cells" in str(row.problem)


@pytest.mark.parametrize(
    ("text", "comma", "value"),
    [
        ("1234.5", False, "1234.5"),
        ("1,234.50", False, "1234.50"),
        ("1,234,567", False, "1234567"),
        ("-3", False, "-3"),
        ("1.234,50", True, "1234.50"),
        ("12,5", True, "12.5"),
        ("0.000417", False, "0.000417"),
    ],
)
def test_numbers_as_people_write_them(text, comma, value):
    assert parse_decimal("amount", text, decimal_comma=comma) == Decimal(value)


@pytest.mark.parametrize(
    "text", ["1,234", "12,50", "1,23.4", "abc", "", "NaN", "1e999999999", "∞", "1e5"]
)
def test_ambiguous_numbers_are_refused_not_guessed(text):
    with pytest.raises(InputError, match="amount"):
        parse_decimal("amount", text)


@pytest.mark.parametrize("text", ["2026-11-30", "2026/11/30", "2026.11.30"])
def test_dates_with_the_year_first(text):
    assert parse_date("as_of", text) == date(2026, 11, 30)


@pytest.mark.parametrize("text", ["30/11/2026", "11/30/26", "2026-13-01", "soon"])
def test_other_dates_are_refused(text):
    with pytest.raises(InputError, match="as_of"):
        parse_date("as_of", text)


@pytest.mark.parametrize(
    ("cells", "comma"),
    [
        (["12,50", "12,345"], True),
        (["1.234,5"], True),
        (["12.50", "12.345"], False),
        (["1,234.50", "1,234"], False),
        (["12,345"], False),  # could be either
        (["12,50", "12.50"], False),  # contradicts itself: the rows with a comma are refused
        ([], False),
    ],
)
def test_the_decimal_sign_is_found_from_plain_cells(cells, comma):
    assert uses_decimal_comma(cells) is comma
