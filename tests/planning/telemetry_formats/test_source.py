import pytest

from planning.telemetry_formats.source import MAX_LINE_BYTES, Source, TooLargeError


def texts(data):
    return [line.text for line in Source.from_bytes(data).lines()]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_lines_are_the_same_in_every_encoding(encoding):
    text = "first line of a log\nzweite Zeile: 算力\nthird\n"
    assert texts(text.encode(encoding)) == ["first line of a log", "zweite Zeile: 算力", "third"]


def test_gbk_is_known_by_its_characters_and_latin_1_is_damage():
    assert texts("温度正常\n电源正常\n".encode("gb18030")) == ["温度正常", "电源正常"]
    source = Source.from_bytes("caf\xe9 1\n".encode("latin-1"))
    assert [line.text for line in source.lines()] == ["caf\ufffd 1"]
    assert source.damage == {"invalid_utf8"}


def test_carriage_returns_separate_records_but_count_one_line():
    lines = list(Source.from_bytes(b"a\r\nb\rc\rd\n\ne").lines())
    assert [(line.number, line.text) for line in lines] == [
        (1, "a"),
        (2, "b"),
        (2, "c"),
        (2, "d"),
        (3, ""),
        (4, "e"),
    ]


def test_terminal_escapes_are_removed_even_across_reads():
    escape = b"\x1b[31mred\x1b[0m"
    source = Source.from_bytes(b"x" * ((1 << 20) - 3) + escape + b"\n")
    (line,) = source.lines()
    assert line.text == "x" * ((1 << 20) - 3) + "red"
    assert "ansi" in source.notes


def test_a_line_without_end_is_cut_and_told():
    source = Source.from_bytes(b"y" * (3 * MAX_LINE_BYTES) + b"\nnext\n")
    lines = [line.text for line in source.lines()]
    assert len(lines[0]) == MAX_LINE_BYTES
    assert lines[-1] == "next"
    assert source.damage == {"line_too_long"}


def test_nul_and_control_bytes_are_damage():
    source = Source.from_bytes(b"a\x00b\x07\n")
    assert [line.text for line in source.lines()] == ["ab\x07"]
    assert source.damage == {"nul_bytes", "control_bytes"}


def test_text_has_a_limit():
    with pytest.raises(TooLargeError):
        Source.from_bytes(b"x" * 100).text(99)


@pytest.mark.parametrize("size", [10, 70_000, 300_000, 3_000_000])
def test_windows_show_both_ends(size):
    data = b"BEGIN\n" + b"filler\n" * (size // 7) + b"END\n"
    windows = Source.from_bytes(data).windows()
    assert windows[0].startswith("BEGIN")
    assert any("END" in window for window in windows)
