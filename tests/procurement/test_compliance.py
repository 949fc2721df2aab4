"""Each asked term is met, not met, or not said; what is not said is neither."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from procurement.compliance import Asked, Offered, compliance, starts_no_earlier
from procurement.warranty_rules import StartTrigger

TODAY = date(2026, 11, 30)
ASKED = Asked(8, 36, StartTrigger.ACCEPTANCE, 72, TODAY + timedelta(days=30), True)
OFFERED = Offered(8, 36, StartTrigger.ACCEPTANCE, True, TODAY + timedelta(days=30))


def verdicts(asked=ASKED, offered=OFFERED) -> dict[str, str]:
    return {check.term: check.verdict for check in compliance(asked, offered, ordered=TODAY)}


def test_a_quote_that_answers_everything_meets_everything():
    found = verdicts()
    assert found.pop("terms") == "unsaid"  # words are answered by words
    assert set(found.values()) == {"meets"}
    assert list(verdicts()) == [
        "quantity", "warranty_months", "warranty_start", "burn_in", "deliver_by", "terms",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("term", "changes", "verdict"),
    [
        ("quantity", {"accelerators": 7}, "misses"),
        ("warranty_months", {"warranty_months": 35}, "misses"),
        ("warranty_start", {"warranty_start": StartTrigger.SHIPMENT}, "misses"),
        ("warranty_start", {"warranty_start": StartTrigger.REGISTRATION}, "misses"),
        ("burn_in", {"burn_in_permitted": False}, "misses"),
        ("burn_in", {"burn_in_permitted": None}, "unsaid"),
        ("deliver_by", {"comes_on": TODAY + timedelta(days=31)}, "misses"),
    ],
)
def test_each_term_by_itself(term, changes, verdict):
    found = verdicts(offered=replace(OFFERED, **changes))
    assert found.pop(term) == verdict
    assert found.pop("terms") == "unsaid"
    assert set(found.values()) == {"meets"}


def test_what_is_not_asked_is_not_judged():
    found = verdicts(asked=replace(ASKED, deliver_by=None, has_terms=False))
    assert {"deliver_by", "terms"}.isdisjoint(found)


def test_a_warranty_that_starts_later_than_asked_is_better():
    assert starts_no_earlier(StartTrigger.ACCEPTANCE, StartTrigger.DELIVERY)
    assert not starts_no_earlier(StartTrigger.DELIVERY, StartTrigger.ACCEPTANCE)
    assert starts_no_earlier(StartTrigger.REGISTRATION, StartTrigger.REGISTRATION)
    assert not starts_no_earlier(StartTrigger.ACCEPTANCE, StartTrigger.REGISTRATION)
