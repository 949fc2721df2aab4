"""The method's rules for a service: latency classes, three tiers, and cards for a number of calls a day.

Used where a card's calls a day were measured or quoted. Where they were not, :mod:`fleet` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from core.errors import InputError, require_at_least
from core.messages import Message, msg

HEADROOM = 0.2  # the method's floor, over the forecast peak
# Longest acceptable answer by kind of service. [s]
LATENCY_CLASSES = {
    "voice": 0.1,  # live voice
    "image": 0.2,  # image inspection
    "video": 0.3,  # one frame
    "chat": 0.5,
    "offline": 5.0,  # a CPU may do
}


@dataclass(frozen=True, slots=True)
class Tier:
    """A class of service by latency, with the method's cost of one call in CNY."""

    name: str
    latency: float  # below this [s]
    cost_low: Decimal
    cost_high: Decimal
    advice: Message


TIERS = (
    Tier("fast", 0.2, Decimal("0.002"), Decimal("0.005"), msg("High-end cards at full precision.")),
    Tier(
        "balanced",
        0.5,
        Decimal("0.0005"),
        Decimal("0.002"),
        msg("Mid-range cards with quantised weights; most services belong here."),
    ),
    Tier("economy", 5.0, Decimal("0.0001"), Decimal("0.0005"), msg("Entry cards or CPUs.")),
)


def tier_for(latency: float) -> Tier:
    """The cheapest tier whose latency still meets the bound `latency` [s].

    Raises
    ------
    InputError
        If the bound is not a positive number.
    """
    require_at_least("latency", latency, 1e-6)
    for tier in reversed(TIERS):
        if tier.latency <= latency:
            return tier
    return TIERS[0]


@dataclass(frozen=True, slots=True)
class ServiceOption:
    """One way to run a service, as measured or quoted."""

    name: str
    calls_per_card_per_day: float
    monthly_cost_per_card: Decimal
    latency: float  # [s]
    accuracy_loss: float = 0.0  # [%]


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """Cards and cost of an option, with and without headroom."""

    option: ServiceOption
    cards: int  # enough for the calls, nothing to spare
    cards_with_headroom: int
    monthly_cost: Decimal
    monthly_cost_with_headroom: Decimal
    meets: bool
    reason: Message | None = None  # why it does not meet the bounds


def cards_for_calls(calls_per_day: float, per_card: float, *, headroom: float = HEADROOM) -> int:
    """Cards for `calls_per_day`, each doing `per_card` calls a day, with a reserve over the forecast. [1]"""
    require_at_least("calls_per_day", calls_per_day, 0.0)
    require_at_least("headroom", headroom, 0.0)
    if not per_card > 0:
        text = msg("per_card is %(value)s; it must be above 0", value=per_card)
        raise InputError("per_card", text, value=per_card, limit=0)
    return math.ceil(round(calls_per_day * (1.0 + headroom) / per_card, 9))


def compare_options(
    options: Sequence[ServiceOption],
    *,
    calls_per_day: float,
    latency: float,
    accuracy_loss: float,
    headroom: float = HEADROOM,
) -> tuple[ServiceCost, ...]:
    """Every option with its cards and cost, cheapest that meets the bounds first. Cost decides with headroom."""
    costs = [_cost(option, calls_per_day, latency, accuracy_loss, headroom) for option in options]
    return tuple(sorted(costs, key=lambda c: (not c.meets, c.monthly_cost_with_headroom)))


def _cost(
    option: ServiceOption, calls: float, latency: float, loss: float, headroom: float
) -> ServiceCost:
    cards = cards_for_calls(calls, option.calls_per_card_per_day, headroom=0.0)
    reserve = cards_for_calls(calls, option.calls_per_card_per_day, headroom=headroom)
    reason = None
    if option.latency >= latency:
        reason = msg(
            "%(name)s answers in %(value)s s; the bound is %(limit)s s",
            name=option.name,
            value=option.latency,
            limit=latency,
        )
    elif option.accuracy_loss > loss:
        reason = msg(
            "%(name)s loses %(value)s %% of accuracy; at most %(limit)s %% is allowed",
            name=option.name,
            value=option.accuracy_loss,
            limit=loss,
        )
    return ServiceCost(
        option=option,
        cards=cards,
        cards_with_headroom=reserve,
        monthly_cost=cards * option.monthly_cost_per_card,
        monthly_cost_with_headroom=reserve * option.monthly_cost_per_card,
        meets=reason is None,
        reason=reason,
    )
