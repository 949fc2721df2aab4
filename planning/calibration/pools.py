"""What to do with a pool of cards: grow, hold, shrink, fix utilisation first, move, renew or drop. Pure.

The order of the rules is the method's: utilisation before hardware, cards that are there before cards that are bought.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from core.messages import Message, msg

HEADROOM = 0.2  # kept free above the forecast
DAY = 86_400.0
QUARTER_HOURS = 2190.0


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


@dataclass(frozen=True, slots=True)
class Advice:
    """The recommendation, its arithmetic line by line, and what a quarter's wait costs."""

    pool: PoolState
    action: Action
    cards: int = 0  # to add, give up or move
    to: str = ""  # key of the pool that takes them, or gives them
    lines: tuple[Message, ...] = ()
    waiting: float | None = (
        None  # base currency; None: it costs nothing, or nobody knows: see the lines
    )


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
        return Advice(pool, Action.FIX, lines=(*need.lines, text))
    standing = pool.cards + pool.on_order
    missing = need.middle - standing
    if missing > 0 and (queued or need.low > standing):
        if pool.sm is not None and pool.sm < low_use:
            text = msg(
                "The cards are taken but their multiprocessors are %(sm)s %% active: utilisation before hardware.",
                sm=round(100 * pool.sm),
            )
            return Advice(pool, Action.FIX, lines=(*need.lines, text))
        return _grow(pool, need, missing, pools, spare)
    if pool.ownership == "reserved":
        return _reservation(pool, need)
    if spare.get(pool.key, 0) > 0 and need.high < 0.7 * pool.cards:
        text = msg(
            "Even the high forecast leaves %(n)s cards free. What they cost is spent; what waits is what they would "
            "earn elsewhere.",
            n=spare[pool.key],
        )  # fmt: skip
        return Advice(
            pool, Action.SHRINK, spare[pool.key], lines=(*need.lines, text), waiting=_price(pool, spare[pool.key])
        )  # fmt: skip
    return Advice(pool, Action.HOLD, lines=tuple(need.lines))


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
            return Advice(
                pool, Action.MOVE, missing, other.key, (*need.lines, text), _price(pool, missing)
            )
    price = _price(pool, missing)
    text = (
        msg("Bridging a quarter on demand: %(n)s cards × 2,190 h × %(price)s.", n=missing,
            price=round(pool.price_hour or 0, 2))
        if price is not None
        else msg("What a quarter's wait costs is not known: no price on demand for this card.")
    )  # fmt: skip
    return Advice(pool, Action.GROW, missing, lines=(*need.lines, text), waiting=price)


def _reservation(pool: PoolState, need: _Need) -> Advice:
    surplus = pool.cards - need.high
    if surplus > 0 and need.high < 0.7 * pool.cards:
        text = msg(
            "Even the high forecast leaves %(n)s reserved cards unused: let them run out.",
            n=surplus,
        )
        return Advice(
            pool, Action.DROP, surplus, lines=(*need.lines, text), waiting=_price(pool, surplus)
        )
    return Advice(
        pool, Action.RENEW, pool.cards,
        lines=(*need.lines, msg("The reservation is used: renew it before it ends.")),
    )  # fmt: skip


def _price(pool: PoolState, cards: int) -> float | None:
    return None if pool.price_hour is None else cards * QUARTER_HOURS * pool.price_hour
