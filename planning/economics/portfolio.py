"""Requests of all teams pooled: the sum of peaks is not the peak of sums, and idle capacity comes before buying."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.messages import Message, msg, plural
from core.money import Money
from planning.economics import checks, defaults, exact
from planning.economics.checks import Floats


@dataclass(frozen=True, slots=True, eq=False)
class TeamRequest:
    """One team's demand in cards, hour by hour. Shape (hours,)."""

    team: str
    cards: Floats


@dataclass(frozen=True, slots=True, eq=False)
class OwnedPool:
    """What is owned already: cards, and how many of them others use in each hour. Shape (hours,)."""

    name: str
    cards: int
    used: Floats

    def __post_init__(self) -> None:
        if self.cards < 0:
            raise checks.refuse(f"owned.{self.name}.cards", self.cards, ">= 0")
        checks.series(f"owned.{self.name}.used", self.used, upper=float(self.cards))


@dataclass(frozen=True, slots=True)
class Pooled:
    """What pooling and reuse leave to buy. Cards."""

    sum_of_peaks: int  # bought by each team for itself, with headroom
    peak_of_sums: int  # bought together, with headroom
    shared_saving: float  # share of the sum of peaks
    idle_owned: int  # owned cards that are free in every hour
    met_by_idle: int  # cards of the pooled need that idle capacity carries
    to_buy: int  # what is left, with headroom
    saved: Money | None  # sum of peaks less what is left, at the price of a card
    messages: tuple[Message, ...]


def pool(
    requests: Sequence[TeamRequest],
    owned: Sequence[OwnedPool] = (),
    *,
    headroom: float | None = None,
    price_per_card: Money | None = None,
) -> Pooled:
    """Pool `requests`, take idle owned capacity first, and say what is left to buy.

    Free owned cards are counted hour by hour: they carry demand when they are free, and the largest rest over all
    hours, with headroom, has to be bought.

    Raises
    ------
    InputError
        On no request, negative demand, series of different lengths, or more cards used than owned.
    """
    if not requests:
        raise checks.refuse("requests", 0, "at least one")
    extra = defaults.value("headroom") if headroom is None else headroom
    checks.non_negative("headroom", extra)
    series = [checks.series(f"requests.{request.team}", request.cards) for request in requests]
    checks.same_length("hours", *series, *(np.asarray(item.used) for item in owned))
    together = np.sum(series, axis=0)
    free = (
        np.sum([item.cards - np.asarray(item.used) for item in owned], axis=0)
        if owned
        else 0 * together
    )
    alone = sum(_cards(float(one.max()), extra) for one in series)
    shared = _cards(float(together.max()), extra)
    left = _cards(float(np.maximum(together * (1 + extra) - free, 0.0).max()), 0.0)
    idle = math.floor(round(float(np.min(free)), 9))
    messages = [
        msg(
            "Each team for itself takes %(alone)s cards, together they take %(shared)s",
            alone=alone,
            shared=shared,
        )
    ]
    if shared > left:
        messages.append(
            msg(
                "Idle cards that are owned already carry %(met)s of them: use these first",
                met=shared - left,
            )
        )
    if left:
        messages.append(
            plural(
                left,
                msg("One card is left to buy or rent"),
                msg("%(left)s cards are left to buy or rent", left=left),
            )
        )
    else:
        messages.append(msg("Nothing has to be bought"))
    saved = None
    if price_per_card is not None:
        checks.price("price_per_card", price_per_card)
        saved = exact.times(price_per_card, alone - left)
    return Pooled(
        sum_of_peaks=alone,
        peak_of_sums=shared,
        shared_saving=1 - shared / alone if alone else 0.0,
        idle_owned=idle,
        met_by_idle=shared - left,
        to_buy=left,
        saved=saved,
        messages=tuple(messages),
    )


def _cards(peak: float, headroom: float) -> int:
    return math.ceil(round(peak * (1 + headroom), 9))
