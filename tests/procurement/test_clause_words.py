"""Figures in clauses: read in both languages, held against the data. No database."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from procurement.clause_words import disagreements, figures
from procurement.services.clauses import CLAUSES


def told(text, language):
    return [(row.value, row.unit) for row in figures(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("at least 72 hours at 24×7 use", "en", [(72, "hour")]),
        ("a 72-hour test, 72 h", "en", [(72, "hour"), (72, "hour")]),
        ("thirty-six (36) months or three years", "en", [(36, "month"), (36, "month")]),
        ("within ten working days, two weeks", "en", [(10, "working day"), (14, "day")]),
        ("more than 5 % or five per cent", "en", [(5, "percent"), (5, "percent")]),
        ("1,000 hours; 2.5 %", "en", [(1000, "hour"), (Decimal("2.5"), "percent")]),
        ("on 2027-03-31, in Annex 2", "en", []),
        ("满载不少于 72 小时，7×24 小时使用", "zh", [(72, "hour")]),
        ("三十六个月，3 年，两年", "zh", [(36, "month"), (36, "month"), (24, "month")]),
        ("10 个工作日、十五日、两周", "zh", [(10, "working day"), (15, "day"), (14, "day")]),
        ("百分之五，5%", "zh", [(5, "percent"), (5, "percent")]),
        ("2027 年 3 月 31 日前，第一批", "zh", []),
        ("一百二十天", "zh", [(120, "day")]),
    ],
)
def test_figures_are_read_in_both_languages(text, language, expected):
    assert told(text, language) == expected


@pytest.mark.parametrize("entry", json.loads(CLAUSES.read_text()), ids=lambda entry: entry["code"])
def test_the_shipped_clauses_say_what_they_ask(entry):
    assert disagreements(entry["text_en"], entry["text_zh"], entry["asks"], burn_in_hours=72) == ()


def test_words_that_differ_from_the_data_are_told_in_each_language():
    found = disagreements("Dead within 14 days of delivery.", "到货后 14 日内。", {"doa_days": 30})
    assert [(row.language, row.words, row.field, row.asked) for row in found] == [
        ("en", ("14 days",), "doa_days", 30),
        ("zh", ("14 日",), "doa_days", 30),
    ]


def test_months_and_years_are_one_unit_and_a_figure_that_words_lack_is_told():
    assert disagreements("Three years.", "36 个月。", {"months": 36}) == ()
    silent = disagreements("As agreed.", "按约定。", {"months": 36})
    assert [row.words for row in silent] == [(), ()]


def test_languages_that_differ_are_told():
    (row,) = disagreements("A test of 72 hours, 5 % may fail.", "48 小时测试，5% 可失败。", {})
    assert (row.words, row.other) == (("72 hours",), ("48 小时",))


def test_the_hours_of_the_purchasing_policy_count_where_the_clause_is_about_the_burn_in():
    asks = {"burn_in_permitted": True}
    found = disagreements("72 hours", "72 小时", asks, burn_in_hours=96)
    assert [(row.field, row.asked) for row in found] == [("burn_in_hours", 96)] * 2
    assert disagreements("72 hours", "72 小时", {}, burn_in_hours=96) == ()
