"""Criteria as figures: checked, pooled, and compared with what a vendor says. No database."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from core.errors import InputError
from procurement.per import Per
from procurement.requirements import (
    Answered,
    Required,
    RequirementKind,
    Verdict,
    check_answers,
    check_requirements,
    contradicts,
    pooled,
    read_answers,
    rounded,
    verdict,
    words,
)

K = RequirementKind
RATE = Required(K.THROUGHPUT, Decimal(45000), "tokens/s", Per.WHOLE, benchmark="llama-3.1-8b, fp8")
MEMORY = Required(K.MEMORY, Decimal(80), "GB", Per.CARD)
LATENCY = Required(K.LATENCY, Decimal(500), "ms", benchmark="llama-3.1-8b, fp8")
POWER = Required(K.POWER, Decimal(700), "W", Per.CARD)
DAY = Required(K.DELIVERY, day=date(2027, 3, 31))


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        (RATE, Answered(Decimal(45000)), Verdict.MEETS),
        (RATE, Answered(Decimal("44999.999999")), Verdict.MISSES),
        (MEMORY, Answered(Decimal(141)), Verdict.MEETS),
        (LATENCY, Answered(Decimal(500)), Verdict.MEETS),
        (LATENCY, Answered(Decimal("500.1")), Verdict.MISSES),
        (POWER, Answered(Decimal(1000)), Verdict.MISSES),
        (DAY, Answered(day=date(2027, 3, 31)), Verdict.MEETS),
        (DAY, Answered(day=date(2027, 4, 1)), Verdict.MISSES),
        (RATE, Answered(stated=True), Verdict.MEETS),
        (RATE, Answered(stated=False), Verdict.MISSES),
        (RATE, Answered(note="on request"), Verdict.UNSAID),
        (RATE, None, Verdict.UNSAID),
    ],
)
def test_a_value_is_compared_and_silence_is_neither(asked, answer, expected):
    assert verdict(asked, answer) == expected


def test_a_figure_counts_before_the_word():
    answer = Answered(Decimal(30000), stated=True)
    assert verdict(RATE, answer) == Verdict.MISSES
    assert contradicts(RATE, answer)
    assert not contradicts(RATE, Answered(Decimal(50000), stated=True))
    assert not contradicts(RATE, Answered(stated=True))


def test_plans_are_pooled():
    def line(row: Required, position: int, **change: object) -> Required:
        return Required(**{**_fields(row), "lines": (position,), **change})

    found = pooled(
        [
            line(RATE, 1), line(RATE, 2, value=Decimal(5000)), line(RATE, 3, benchmark="other"),
            line(MEMORY, 1), line(MEMORY, 2, value=Decimal(141)), line(MEMORY, 3),
            line(POWER, 1), line(POWER, 2, value=Decimal(600)), line(POWER, 3),
            line(DAY, 1), line(DAY, 2), line(DAY, 3),
        ],
        [1, 2, 3],
    )  # fmt: skip
    assert [(row.kind, row.value or row.day, row.lines) for row in found] == [
        (K.THROUGHPUT, Decimal(50000), (1, 2)),
        (K.THROUGHPUT, Decimal(45000), (3,)),
        (K.MEMORY, Decimal(80), (1, 3)),
        (K.MEMORY, Decimal(141), (2,)),
        (K.POWER, Decimal(700), (1, 3)),
        (K.POWER, Decimal(600), (2,)),
        (K.DELIVERY, date(2027, 3, 31), ()),
    ]


def test_plans_of_different_cards_ask_for_no_card_that_is_neither():
    small = [replace(MEMORY, lines=(1,)), replace(POWER, lines=(1,)), replace(DAY, lines=(1,))]
    large = [
        Required(K.MEMORY, Decimal(192), "GB", Per.CARD, lines=(2,)),
        Required(K.POWER, Decimal(1000), "W", Per.CARD, lines=(2,)),
        Required(K.DELIVERY, day=date(2027, 9, 30), lines=(2,)),
    ]
    found = pooled([*small, *large], [1, 2])
    assert sorted(map(repr, found)) == sorted(map(repr, [*small, *large]))


def _fields(row: Required) -> dict[str, object]:
    return {name: getattr(row, name) for name in Required.__slots__}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({"kind": "speed", "value": "1", "unit": "GB"}, "kind"),
        ({"kind": "throughput", "value": "1", "unit": "tokens/s"}, "benchmark"),
        ({"kind": "memory", "value": "80", "unit": "GiB"}, "unit"),
        ({"kind": "memory", "value": "80", "unit": "GB", "per": "whole"}, "per"),
        ({"kind": "memory", "value": "0", "unit": "GB"}, "value"),
        ({"kind": "memory", "value": 80.5, "unit": "GB"}, "value"),
        ({"kind": "memory", "value": "NaN", "unit": "GB"}, "value"),
        ({"kind": "memory", "value": "80", "unit": "GB", "lines": [7]}, "lines"),
        ({"kind": "delivery", "value": "80"}, "day"),
    ],
)
def test_a_wrong_criterion_names_row_field_and_limit(row, field):
    with pytest.raises(InputError, match=f"Criterion 1: {field} is"):
        check_requirements([row], [1, 2])


def test_criteria_read_back_as_they_are_told():
    given = [
        {"kind": "power", "value": "10.5", "unit": "kW", "per": "node", "lines": [2, 1]},
        {"kind": "delivery", "day": date(2027, 3, 31)},
    ]
    power, delivery = check_requirements(given, [1, 2])
    assert (power.value, power.per, power.lines) == (Decimal("10.5"), Per.SERVER, (1, 2))
    assert str(words(power)) == "Power of a server: at most 10.5 kW"
    assert str(words(delivery)) == "Delivered in full by 2027-03-31"
    assert str(words(RATE)).startswith("Throughput in all: at least 45,000 tokens/s (llama")


def test_answers_of_a_cell():
    found = read_answers("1: 46,000 tokens/s; 2: 是\n3：; 4: no; 5: 2027/03/01")
    assert found == [
        {"requirement": 1, "value": "46000", "unit": "tokens/s"},
        {"requirement": 2, "meets": True},
        {"requirement": 4, "meets": False},
        {"requirement": 5, "day": date(2027, 3, 1)},
    ]
    with pytest.raises(InputError, match="number: value"):
        read_answers("fast")


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("0.9 s", LATENCY), ("46,5", LATENCY), ("46,5 ms", LATENCY), ("1.2 kW", POWER), ("1.2kW", POWER),
        ("45 000", RATE), ("45k", RATE), ("1234,567", RATE), ("46,0001", RATE), ("1.2.3", RATE), ("1e3", RATE),
        ("46000 samples/s", RATE), ("-5", RATE),
    ],
)  # fmt: skip
def test_a_figure_in_another_unit_or_with_a_decimal_comma_is_refused(typed, asked):
    with pytest.raises(InputError, match="is no answer; say a value") as refused:
        check_answers(read_answers(f"1: {typed}"), {1: asked})
    assert typed.replace(" ", "") in str(refused.value).replace(" ", "")


@pytest.mark.parametrize(
    ("typed", "asked", "value"),
    [
        ("46,000.5", RATE, "46000.5"), ("1,234,567 Tokens/s", RATE, "1234567"), ("700W", POWER, "700"),
        ("480 MS", LATENCY, "480"), ("0.75", LATENCY, "0.75"),
    ],
)  # fmt: skip
def test_a_figure_in_the_asked_unit_counts(typed, asked, value):
    found = check_answers(read_answers(f"1: {typed}"), {1: asked})
    assert found[1].value == Decimal(value)


def test_bits_are_no_bytes():
    asked = Required(K.THROUGHPUT, Decimal(400), "GB/s", benchmark="all-reduce")
    assert check_answers(read_answers("1: 400 GB/s"), {1: asked})
    with pytest.raises(InputError, match="400 Gb/s is no answer"):
        check_answers(read_answers("1: 400 Gb/s"), {1: asked})


@pytest.mark.parametrize(
    "row",
    [
        {"requirement": 9, "value": "1"},
        {"requirement": 1, "value": "fast"},
        {"requirement": 1, "value": "-1"},
        {"requirement": 1, "day": date(2027, 1, 1)},
        {"requirement": 2, "value": "3"},
        {"requirement": 1, "meets": "maybe"},
    ],
)
def test_a_wrong_answer_is_refused(row):
    with pytest.raises(InputError):
        check_answers([row], {1: RATE, 2: DAY})


def test_an_answer_twice_is_refused_and_an_empty_one_is_none():
    with pytest.raises(InputError, match="twice"):
        check_answers(
            [{"requirement": 1, "value": "1"}, {"requirement": 1, "meets": True}], {1: RATE}
        )
    assert check_answers([{"requirement": 1, "value": "", "note": " "}], {1: RATE}) == {}


def test_a_plan_is_told_to_three_figures():
    assert rounded(45_678.9) == Decimal(45700)
    assert rounded(0.012345) == Decimal("0.0123")
    assert rounded(700.0, up=True) == Decimal(700)
