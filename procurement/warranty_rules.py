"""Warranty arithmetic and the clauses that cost buyers money. Pure.

References
----------
Public warranty texts (Supermicro, SGI, HP, NVIDIA) and dealers' tables as read on 2026-11-30: exclusions of "abnormal
or unusually heavy use", terms that run from the seller's invoice date, replacement only after return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

from core.errors import InputError
from core.messages import Message, msg
from core.quarters import months_later


class StartTrigger(StrEnum):
    """The event from which a warranty runs."""

    ORDER = "order"
    INVOICE = "invoice"
    SHIPMENT = "shipment"
    DELIVERY = "delivery"
    POWER_ON = "power_on"
    ACCEPTANCE = "acceptance"
    REGISTRATION = "registration"


BEFORE_DELIVERY = {StartTrigger.ORDER, StartTrigger.INVOICE, StartTrigger.SHIPMENT}


def last_covered_day(start: date, months: int) -> date:
    """The last day covered by `months` from `start` (the first day covered).

    36 months from 2026-03-15 end on 2029-03-14. Where the month is too short for the day, the term ends on the
    month's last day: 6 months from 2026-08-31 end on 2027-02-28. Raises InputError unless months >= 1.
    """
    if months < 1:
        raise InputError(
            "months",
            msg("A warranty lasts at least one month, got %(value)s", value=months),
            value=months,
            limit=1,
        )
    end = months_later(start, months)
    # cut to a shorter month, its last day is covered; else the term ends on the eve
    return end if end.day < start.day else end - timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a vendor offers, as far as the flags need it. None means that the quote does not say."""

    start_trigger: StartTrigger
    months: int
    labour_months: int | None
    onsite_months: int | None
    doa_days: int | None
    doa_from_delivery: bool | None
    advance_replacement: bool | None
    burn_in_permitted: bool | None
    continuous_use_permitted: bool | None
    replacement_new: bool | None
    new_parts_only: bool | None
    transferable: bool | None
    fix_hours: int | None
    exclusions: str
    minimum_months: int | None = None
    warrantor: str = ""
    doa_new: bool | None = None
    authorised_channel: bool | None = None
    no_fault_fee: str = ""
    media_kept: bool | None = None
    customer_swap: bool | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """One weak point. `severe` ones cost the buyer the claim, others weaken it."""

    code: str
    severe: bool
    message: Message


HEAVY_USE = (
    "heavy use", "heavily used", "heavy load", "excessive use", "continuous use", "continuous full load", "24x7",
    "24×7", "24/7", "7x24", "7×24", "mining", "高负荷", "超负荷", "重负载", "满载", "高强度", "挖矿",
)  # fmt: skip
HUMAN_DAMAGE = (
    "human", "man-made damage", "caused by the customer", "caused by the buyer", "misuse", "abuse", "mishandling",
    "improper use", "improper handling", "physical damage", "negligence", "人为", "使用不当", "操作不当",
    "不当使用", "误用", "滥用", "磕碰", "跌落", "摔落", "物理损坏", "外力",
)  # fmt: skip
TESTING = (
    "improper testing", "stress test", "burn-in", "burn in", "load test", "压力测试", "烤机", "烤卡", "拷机",
    "老化测试", "负载测试",
)  # fmt: skip
DOA_MINIMUM_DAYS = 14  # transit slack + installation + 72 h + working days to report


def says(text: str, words: Iterable[str]) -> bool:
    """Whether `text` has one of `words`, in any case."""
    lowered = text.lower()
    return any(word in lowered for word in words)


Rule = tuple[str, bool, Callable[[Terms], bool], Message]
RULES: tuple[Rule, ...] = (
    (
        "starts_with_invoice",
        True,
        lambda t: t.start_trigger == StartTrigger.INVOICE,
        msg(
            "The warranty runs from the vendor's invoice date: transit, burn-in and delays on site are lost"
        ),
    ),
    (
        "starts_before_delivery",
        True,
        lambda t: t.start_trigger in BEFORE_DELIVERY and t.start_trigger != StartTrigger.INVOICE,
        msg("The warranty runs from before delivery: transit, burn-in and delays on site are lost"),
    ),
    (
        "shorter_than_asked",
        True,
        lambda t: t.minimum_months is not None and t.months < t.minimum_months,
        msg("The warranty is shorter than was asked for"),
    ),
    (
        "parts_only",
        False,
        lambda t: (
            (t.labour_months is not None and t.labour_months < t.months)
            or (t.onsite_months is not None and t.onsite_months < t.months)
        ),
        msg("Labour or work on site is covered for a shorter time than parts"),
    ),
    (
        "burn_in_not_permitted",
        True,
        lambda t: t.burn_in_permitted is False or says(t.exclusions, TESTING),
        msg("A burn-in at full load is excluded or counts as misuse"),
    ),
    (
        "burn_in_not_stated",
        False,
        lambda t: t.burn_in_permitted is None,
        msg("It is not stated that a 72 h burn-in counts as normal use"),
    ),
    (
        "heavy_use_excluded",
        True,
        lambda t: t.continuous_use_permitted is False or says(t.exclusions, HEAVY_USE),
        msg("Heavy or continuous use is excluded, which is what these cards are for"),
    ),
    (
        "human_damage",
        False,
        lambda t: says(t.exclusions, HUMAN_DAMAGE),
        msg("Human damage is excluded: keep photos of unpacking and installation as proof"),
    ),
    (
        "doa_short",
        True,
        lambda t: t.doa_days is not None and t.doa_days < DOA_MINIMUM_DAYS,
        msg(
            "The window for dead on arrival is under %(days)s days: the burn-in may not fit into it",
            days=DOA_MINIMUM_DAYS,
        ),
    ),
    (
        "doa_missing",
        False,
        lambda t: t.doa_days is None,
        msg("No window for dead on arrival is stated"),
    ),
    (
        "doa_before_delivery",
        False,
        lambda t: t.doa_from_delivery is False,
        msg("The window for dead on arrival starts before delivery"),
    ),
    (
        "no_advance_replacement",
        False,
        lambda t: t.advance_replacement is False,
        msg("A replacement is sent only after the failed part came back"),
    ),
    (
        "advance_replacement_not_stated",
        False,
        lambda t: t.advance_replacement is None,
        msg(
            "Not said in the quote: whether a replacement is sent before the failed part comes back. Ask"
        ),
    ),
    (
        "refurbished_replacement",
        False,
        lambda t: t.replacement_new is False,
        msg("A replacement need not be new"),
    ),
    (
        "replacement_not_stated",
        False,
        lambda t: t.replacement_new is None,
        msg("Not said in the quote: whether a replacement is new. Ask"),
    ),
    (
        "parts_not_new",
        True,
        lambda t: t.new_parts_only is False,
        msg("Parts may have been used, opened, overclocked or relabelled"),
    ),
    (
        "provenance_not_stated",
        True,
        lambda t: t.new_parts_only is None,
        msg("It is not stated that all parts are new, unopened and not overclocked or relabelled"),
    ),
    (
        "no_fix_time",
        False,
        lambda t: t.fix_hours is None,
        msg("Not said in the quote: a time to repair, other than a time to respond. Ask"),
    ),
    (
        "seller_only",
        False,
        lambda t: t.warrantor == "reseller",
        msg("Only the seller answers for it: nobody does once the seller is gone"),
    ),
    (
        "doa_refurbished",
        False,
        lambda t: t.doa_new is False,
        msg("What is dead on arrival need not be swapped for a new part"),
    ),
    (
        "channel_not_authorised",
        True,
        lambda t: t.authorised_channel is False,
        msg("The goods do not come from an authorised channel: the maker may refuse claims"),
    ),
    (
        "no_fault_fee",
        False,
        lambda t: bool(t.no_fault_fee.strip()),
        msg("A fee is asked when no fault is found"),
    ),
    (
        "media_not_kept",
        False,
        lambda t: t.media_kept is False,
        msg("Data-bearing parts must be handed back"),
    ),
    (
        "swap_voids",
        False,
        lambda t: t.customer_swap is False,
        msg("A part swapped by your own staff ends the warranty"),
    ),
    (
        "not_transferable",
        False,
        lambda t: t.transferable is False,
        msg("The warranty ends when the goods change hands"),
    ),
)


def red_flags(terms: Terms) -> tuple[Flag, ...]:
    """Weak points of `terms`, severe ones first."""
    found = [Flag(code, severe, text) for code, severe, test, text in RULES if test(terms)]
    return tuple(sorted(found, key=lambda flag: not flag.severe))
