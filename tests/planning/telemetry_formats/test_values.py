import pytest

from planning.telemetry_formats.values import Cell, classify, integer, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1234", 1234),
        ("1234.5", 1234.5),
        ("3.5716e+05", 357160),
        ("55.31 GB/s", 55.31),
        ("81559 MiB", 81559),
        ("100 %", 100),
        ("0x0000000000000068", 0x68),
        ("(1700Mhz)", 1700),
        ("-1", -1),
        (7, 7),
        (2.5, 2.5),
        ("N/A", None),
        ("[N/A]", None),
        ("-", None),
        ("--", None),
        ("", None),
        (None, None),
        ("nan", None),
        ("inf", None),
        ("+Inf", None),
        (float("nan"), None),
        ("1e999", None),
        ("9" * 5000, None),
        (True, None),
        ("fast", None),
    ],
)
def test_number(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("0", Cell.VALUE),
        ("N/A", Cell.ABSENT),
        ("N/A (Secondary die)", Cell.ABSENT),
        ("-", Cell.ABSENT),
        (None, Cell.ABSENT),
        ("[Not Supported]", Cell.UNSUPPORTED),
        ("Requested functionality has been deprecated", Cell.UNSUPPORTED),
        ("[Insufficient Permissions]", Cell.FORBIDDEN),
        ("[Unknown Error]", Cell.FAULT),
        ("[GPU is lost]", Cell.FAULT),
        ("[GPU requires reset]", Cell.FAULT),
        ("ERR!", Cell.FAULT),
    ],
)
def test_missing_by_design_is_not_a_fault_of_the_card(text, cell):
    assert classify(text) is cell


def test_a_whole_number_has_no_fraction():
    assert (integer("8"), integer("8.0"), integer("8.5")) == (8, 8, None)
