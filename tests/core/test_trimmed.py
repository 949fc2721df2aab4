"""A Decimal that is shown or exported is written out."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from core.money import trimmed

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [("10.00", "10"), ("100", "100"), ("0.130", "0.13"), ("0", "0"), ("1E+3", "1000"), ("-20.0", "-20")],
)  # fmt: skip
def test_it_has_no_idle_zeros_and_no_exponent(value, text):
    assert str(trimmed(Decimal(value))) == text


def test_nothing_else_normalises_a_decimal_without_writing_it_out():
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for app in ("core", "catalog", "planning", "procurement", "config")
        for path in (ROOT / app).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\.normalize\(\)(?!:,?f|\.as_tuple)", line) and "unicodedata" not in line
    ]
    assert [row for row in found if "normalize() writes 1E+1" not in row] == []
