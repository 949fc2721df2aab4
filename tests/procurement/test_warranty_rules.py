from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from procurement.warranty_rules import StartTrigger, Terms, last_covered_day, red_flags


@pytest.mark.parametrize(
    ("start", "months", "last"),
    [
        (date(2026, 3, 15), 36, date(2029, 3, 14)),
        (date(2028, 2, 29), 12, date(2029, 2, 28)),
        (date(2026, 8, 31), 6, date(2027, 2, 28)),
        (date(2027, 1, 1), 12, date(2027, 12, 31)),
        (date(2026, 12, 31), 2, date(2027, 2, 28)),
    ],
)
def test_last_covered_day(start, months, last):
    assert last_covered_day(start, months) == last


@given(st.dates(date(2020, 1, 1), date(2040, 1, 1)), st.integers(1, 120))
def test_a_longer_term_never_ends_earlier(start, months):
    assert start < last_covered_day(start, months) < last_covered_day(start, months + 1)
    assert last_covered_day(start, months) - start < timedelta(days=31 * months)


def test_no_months_is_no_warranty():
    with pytest.raises(InputError):
        last_covered_day(date(2027, 1, 1), 0)


def terms(**changes):
    good = {
        "start_trigger": StartTrigger.ACCEPTANCE, "months": 36, "labour_months": 36, "onsite_months": 36,
        "doa_days": 30, "doa_from_delivery": True, "advance_replacement": True, "burn_in_permitted": True,
        "continuous_use_permitted": True, "replacement_new": True, "new_parts_only": True,
        "transferable": True, "fix_hours": 48, "exclusions": "", "minimum_months": 36,
    }  # fmt: skip
    return Terms(**{**good, **changes})


def codes(**changes):
    return {flag.code for flag in red_flags(terms(**changes))}


def test_good_terms_have_no_weak_point():
    assert codes() == set()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"start_trigger": StartTrigger.INVOICE}, "starts_with_invoice"),
        ({"start_trigger": StartTrigger.SHIPMENT}, "starts_before_delivery"),
        ({"exclusions": "Damage by abuse or negligence"}, "human_damage"),
        ({"exclusions": "因磕碰、跌落造成的损坏"}, "human_damage"),
        ({"exclusions": "长时间满载运行造成的故障"}, "heavy_use_excluded"),
        ({"exclusions": "拷机造成的故障"}, "burn_in_not_permitted"),
        ({"warrantor": "reseller"}, "seller_only"),
        ({"doa_new": False}, "doa_refurbished"),
        ({"authorised_channel": False}, "channel_not_authorised"),
        ({"no_fault_fee": "3,000 CNY"}, "no_fault_fee"),
        ({"media_kept": False}, "media_not_kept"),
        ({"customer_swap": False}, "swap_voids"),
        ({"months": 12, "labour_months": 12, "onsite_months": 12}, "shorter_than_asked"),
        ({"labour_months": 12}, "parts_only"),
        ({"exclusions": "Abnormal or unusually heavy use"}, "heavy_use_excluded"),
        ({"exclusions": "超负荷使用不予保修"}, "heavy_use_excluded"),
        ({"exclusions": "Improper testing"}, "burn_in_not_permitted"),
        ({"burn_in_permitted": None}, "burn_in_not_stated"),
        ({"exclusions": "人为损坏、进液、烧毁"}, "human_damage"),
        ({"doa_days": 7}, "doa_short"),
        ({"doa_days": None}, "doa_missing"),
        ({"advance_replacement": False}, "no_advance_replacement"),
        ({"advance_replacement": None}, "advance_replacement_not_stated"),
        ({"replacement_new": False}, "refurbished_replacement"),
        ({"replacement_new": None}, "replacement_not_stated"),
        ({"new_parts_only": False}, "parts_not_new"),
        ({"new_parts_only": None}, "provenance_not_stated"),
        ({"transferable": False}, "not_transferable"),
        ({"fix_hours": None}, "no_fix_time"),
    ],
)
def test_a_weak_point_is_named(changes, code):
    assert code in codes(**changes)


UNKNOWN = (
    "labour_months", "onsite_months", "doa_days", "doa_from_delivery", "advance_replacement",
    "burn_in_permitted", "continuous_use_permitted", "replacement_new", "new_parts_only",
    "transferable", "fix_hours",
)  # fmt: skip


def test_what_the_quote_does_not_say_is_never_told_as_a_fact():
    for name in UNKNOWN:
        for flag in red_flags(terms(**{name: None})):
            text = str(flag.message)
            assert "Not said" in text or "stated" in text, (name, text)


def test_severe_points_come_first():
    severe = [
        flag.severe for flag in red_flags(terms(doa_days=None, start_trigger=StartTrigger.ORDER))
    ]
    assert severe == sorted(severe, reverse=True)
