"""What to do with a pool of cards: grow, hold, shrink, fix utilisation first, move, renew or drop. Pure.

The order of the rules is the method's: utilisation before hardware, cards that are there before cards that are bought.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import Enum

from core.messages import Message, msg

HEADROOM = 0.2  # kept free above the forecast
DAY = 86_400.0
QUARTER_DAYS = 91.25
QUARTER_HOURS = 24 * QUARTER_DAYS


class Action(Enum):
    GROW = "grow"
    HOLD = "hold"
    SHRINK = "shrink"
    FIX = "fix"
    MOVE = "move"
    RENEW = "renew"
    DROP = "drop"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PoolState:
    """One pool as it stands. Shares 0–1, queue in seconds, busy cards from the forecast; None: not known."""

    key: str
    accelerator: str
    ownership: str  # owned, reserved or cloud
    cards: int
    utilization: float | None
    sm: float | None = None
    queue: float | None = None
    busy_low: float | None = None
    busy: float | None = None
    busy_high: float | None = None
    on_order: int = 0
    price_hour: float | None = None  # of a card on demand, in the base currency
    # Reserved cards by the last day of their term; none: no plan tells when the term ends.
    terms: tuple[tuple[date, int], ...] = ()
    next_from: date | None = None  # first day of the quarter that is decided about


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation, its arithmetic line by line, and what a quarter's wait costs."""

    pool: PoolState
    action: Action
    cards: int = 0  # to add, give up or move
    to: str = ""  # key of the pool that takes them, or gives them
    lines: tuple[Message, ...] = ()
    waiting: float | None = None  # base currency; 0: nothing; None: nobody knows, see the lines


@dataclass(slots=True)
class _Need:
    low: int
    middle: int
    high: int
    lines: list[Message] = field(default_factory=list)


def advise(
    pools: Sequence[PoolState], *, low_use: float = 0.3, queue_limit: float = DAY
) -> tuple[Advice, ...]:
    """One recommendation for each pool, in their order. A card is promised to one pool only."""
    needs = {pool.key: _need(pool) for pool in pools}
    spare = {
        pool.key: max(pool.cards - need.high, 0)
        for pool in pools
        if (need := needs[pool.key]) is not None and pool.ownership != "cloud"
    }
    return tuple(_one(pool, needs[pool.key], pools, spare, low_use, queue_limit) for pool in pools)


def _need(pool: PoolState) -> _Need | None:
    if pool.busy is None or pool.busy_low is None or pool.busy_high is None:
        return None
    low, middle, high = (
        math.ceil(busy / (1 - HEADROOM)) for busy in (pool.busy_low, pool.busy, pool.busy_high)
    )
    lines = [
        msg(
            "Forecast: %(busy)s cards busy in the mean (%(low)s to %(high)s); with a fifth of headroom %(need)s are "
            "needed (%(least)s to %(most)s).",
            busy=round(pool.busy, 1), low=round(pool.busy_low, 1), high=round(pool.busy_high, 1),
            need=middle, least=low, most=high,
        ),
        msg("There are %(cards)s cards, and %(order)s on order.", cards=pool.cards, order=pool.on_order),
    ]  # fmt: skip
    return _Need(low, middle, high, lines)


def _one(
    pool: PoolState,
    need: _Need | None,
    pools: Sequence[PoolState],
    spare: dict[str, int],
    low_use: float,
    queue_limit: float,
) -> Advice:
    if pool.utilization is None or need is None:
        text = (
            msg("No source told how busy these cards were.")
            if pool.utilization is None
            else msg("Fewer than four weeks of days are known: too few to forecast.")
        )
        return Advice(pool, Action.UNKNOWN, lines=(text,))
    queued = pool.queue is not None and pool.queue > queue_limit
    if pool.utilization < low_use and queued:
        text = msg(
            "%(use)s %% busy while jobs wait %(hours)s h: scheduling or fragments, not capacity.",
            use=round(100 * pool.utilization), hours=round((pool.queue or 0) / 3600, 1),
        )  # fmt: skip
        return _fix(pool, need, text)
    standing = pool.cards + pool.on_order
    missing = need.middle - standing
    if missing > 0 and (queued or need.low > standing):
        if pool.sm is not None and pool.sm < low_use:
            text = msg(
                "The cards are taken but their multiprocessors are %(sm)s %% active: utilisation before hardware.",
                sm=round(100 * pool.sm),
            )
            return _fix(pool, need, text)
        return _grow(pool, need, missing, pools, spare)
    if pool.ownership == "reserved":
        return _reservation(pool, need)
    if spare.get(pool.key, 0) > 0 and need.high < 0.7 * pool.cards:
        text = msg(
            "Even the high forecast leaves %(n)s cards free. What they cost is spent; what waits is what they would "
            "earn elsewhere.",
            n=spare[pool.key],
        )  # fmt: skip
        return _with_price(pool, Action.SHRINK, spare[pool.key], (*need.lines, text))
    return Advice(pool, Action.HOLD, lines=tuple(need.lines), waiting=0.0)


def _fix(pool: PoolState, need: _Need, text: Message) -> Advice:
    """A quarter's wait costs what the cards that do nothing would cost on demand."""
    share = 1 - (pool.sm if pool.sm is not None else pool.utilization or 0.0)
    if pool.price_hour is None:
        line, waiting = _unpriced(), None
    else:
        line = msg(
            "The idle share for a quarter, at the price on demand: %(n)s cards × %(share)s %% × 2,190 h × %(price)s.",
            n=pool.cards, share=round(100 * share), price=round(pool.price_hour, 2),
        )  # fmt: skip
        waiting = pool.cards * share * QUARTER_HOURS * pool.price_hour
    return Advice(pool, Action.FIX, lines=(*need.lines, text, line), waiting=waiting)


def _unpriced() -> Message:
    return msg("What a quarter's wait costs is not known: no price on demand for this card.")


def _with_price(
    pool: PoolState, action: Action, cards: int, lines: tuple[Message, ...], to: str = ""
) -> Advice:
    """Advice on `cards` whose wait is told at the price on demand, with the line of its arithmetic."""
    if pool.price_hour is None:
        return Advice(pool, action, cards, to, (*lines, _unpriced()), None)
    text = msg(
        "A quarter of them on demand: %(n)s cards × 2,190 h × %(price)s.",
        n=cards, price=round(pool.price_hour, 2),
    )  # fmt: skip
    return Advice(pool, action, cards, to, (*lines, text), cards * QUARTER_HOURS * pool.price_hour)


def _grow(
    pool: PoolState,
    need: _Need,
    missing: int,
    pools: Sequence[PoolState],
    spare: dict[str, int],
) -> Advice:
    """From another pool of the same cards where one can spare them, else by new ones."""
    for other in pools:
        if other.key == pool.key or other.accelerator != pool.accelerator:
            continue
        if spare.get(other.key, 0) >= missing:
            spare[other.key] -= missing
            text = msg(
                "%(other)s keeps %(n)s such cards free even at its high forecast.",
                other=other.key,
                n=missing,
            )
            return _with_price(pool, Action.MOVE, missing, (*need.lines, text), other.key)
    return _with_price(pool, Action.GROW, missing, tuple(need.lines))


def _reservation(pool: PoolState, need: _Need) -> Advice:
    surplus = pool.cards - need.high
    told = (*need.lines, *_terms(pool))
    if surplus > 0 and need.high < 0.7 * pool.cards:
        text = msg(
            "Even the high forecast leaves %(n)s reserved cards unused: let them run out.",
            n=surplus,
        )
        return _with_price(pool, Action.DROP, surplus, (*told, text))
    lines = (*told, msg("The reservation is used: renew it before it ends."))
    return _renew(pool, lines)


def _terms(pool: PoolState) -> tuple[Message, ...]:
    if not pool.terms:
        return (msg("No plan tells when the reservation ends."),)
    return tuple(
        msg("%(n)s cards are reserved until %(day)s.", n=cards, day=last.isoformat())
        for last, cards in pool.terms
    )


def _renew(pool: PoolState, lines: tuple[Message, ...]) -> Advice:
    """A wait costs the card-hours of the next quarter that the terms leave open, on demand."""
    cards = pool.cards
    if not pool.terms or pool.next_from is None:
        text = msg("What a quarter's wait costs is not known: the end of the term is not.")
        return Advice(pool, Action.RENEW, cards, lines=(*lines, text))
    days = sum(
        n * min(max(QUARTER_DAYS - (last - pool.next_from).days - 1, 0.0), QUARTER_DAYS)
        for last, n in pool.terms
    )
    if not days:
        text = msg("It outlasts the next quarter: a quarter's wait costs nothing.")
        return Advice(pool, Action.RENEW, cards, lines=(*lines, text), waiting=0.0)
    if pool.price_hour is None:
        return Advice(pool, Action.RENEW, cards, lines=(*lines, _unpriced()))
    text = msg(
        "Left open in the next quarter and bridged on demand: %(hours)s card-hours × %(price)s.",
        hours=round(24 * days), price=round(pool.price_hour, 2),
    )  # fmt: skip
    return Advice(
        pool, Action.RENEW, cards, lines=(*lines, text), waiting=24 * days * pool.price_hour
    )
