"""Where a quote says less than it was asked, which of the two holds: pure rules."""

from __future__ import annotations

import pytest

from core.errors import InputError
from procurement.precedence import Ask, Precedence, check_asks, differences, held

CLAUSES, QUOTE = Precedence.CLAUSES, Precedence.QUOTE
ASKS = [
    Ask("doa_days", 30, 5),
    Ask("advance_replacement", True, 6),
    Ask("start_trigger", "acceptance", 7),
    Ask("last_payment", "acceptance", 8),
    Ask("months", 36),
    Ask("start_trigger", "delivery"),
]
SILENT = {"months": 36, "start_trigger": "acceptance"}
LESS = {
    "months": 12, "start_trigger": "invoice", "doa_days": 7, "advance_replacement": False, "last_payment": "delivery",
}  # fmt: skip


def by_field(precedence):
    return {row.field: (row.clause, row.holds) for row in differences(ASKS, LESS, precedence)}


def test_every_term_that_is_less_is_told_with_its_clause_and_what_holds():
    assert by_field(CLAUSES) == {
        "months": (None, QUOTE),  # the price rests on it, and no clause says otherwise
        "doa_days": (5, CLAUSES),
        "start_trigger": (7, CLAUSES),  # of the clause, not of the RFQ's head
        "last_payment": (8, QUOTE),  # the order's own parts of the payment
        "advance_replacement": (6, CLAUSES),
    }
    assert {holds for _clause, holds in by_field(QUOTE).values()} == {QUOTE}
    assert {holds for _clause, holds in by_field(None).values()} == {None}


def test_what_holds_is_held():
    terms = held(ASKS, LESS, CLAUSES)
    assert (terms["doa_days"], terms["start_trigger"], terms["months"]) == (30, "acceptance", 12)
    assert terms["last_payment"] == "delivery"
    assert held(ASKS, LESS, QUOTE) == held(ASKS, LESS, None) == LESS


def test_a_silent_quote_differs_in_nothing_and_the_clause_fills_it():
    assert differences(ASKS, SILENT, CLAUSES) == ()
    for precedence in Precedence:
        assert held(ASKS, SILENT, precedence)["doa_days"] == 30
    assert "doa_days" not in held(ASKS, SILENT, None)


def test_more_than_asked_is_no_difference_and_is_kept():
    more = {**SILENT, "doa_days": 45, "last_payment": "retention", "months": 60}
    assert differences(ASKS, more, CLAUSES) == ()
    assert held(ASKS, more, CLAUSES)["doa_days"] == 45


def test_of_two_clauses_the_one_that_asks_more_counts():
    asks = [Ask("doa_days", 30, 1), Ask("doa_days", 60, 2)]
    (row,) = differences(asks, {"doa_days": 45}, CLAUSES)
    assert (row.clause, row.asked) == (2, 60)


@pytest.mark.parametrize(
    ("given", "field", "limit"),
    [
        ({"doa_day": 3}, "asks", "doa_days"),
        ({"doa_days": 0}, "doa_days", "3650"),
        ({"doa_days": True}, "doa_days", "3650"),
        ({"months": 241}, "months", "240"),
        ({"start_trigger": "never"}, "start_trigger", "registration"),
        ({"transferable": False}, "transferable", "true"),
        ({"transferable": 1}, "transferable", "true"),
        ({"last_payment": ["order"]}, "last_payment", "retention"),
        ("doa_days", "asks", ""),
    ],
)
def test_what_a_clause_cannot_ask_is_refused_by_term_and_limit(given, field, limit):
    with pytest.raises(InputError) as error:
        check_asks(given)
    assert error.value.field == field
    assert limit in str(error.value.limit or "")
