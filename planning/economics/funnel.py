"""The funnel: the cheapest split of an hourly demand into a reserved base, on-demand peaks and spot.

Reserved cards are paid every hour, used or not; what they do not cover goes to spot as far as it may be interrupted,
the rest to on demand. The cost is convex in the reserved count, so the optimum is a generalised newsvendor quantile:
reserve one more card while  p P(N > R) + s (P(D > R) - P(N > R)) > r,  with D all demand, N the part that may not be
interrupted, r, p, s the prices of a card-hour (s stretched by reclaims). Without spot it is the quantile 1 - r/p of D.
A linear programme (HiGHS) gives the same cost, and its dual a bound below which no split can go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, sparse

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, exact
from planning.economics.checks import Floats
from planning.economics.types import CostSheet, sheet


@dataclass(frozen=True, slots=True)
class FunnelPrices:
    """Prices of one card-hour. `spot_stretch` is expected wall time over work, reclaims included (>= 1)."""

    reserved: Money
    on_demand: Money
    spot: Money | None = None
    spot_stretch: float = 1.0
    lot: int = 1  # reserved cards come in multiples of this

    def __post_init__(self) -> None:
        for field in ("reserved", "on_demand"):
            checks.price(field, getattr(self, field))
        if self.spot is not None:
            checks.price("spot", self.spot)
        checks.same_currency("prices", self.reserved, self.on_demand, self.spot)
        if not 1 <= self.spot_stretch < math.inf:
            raise checks.refuse("spot_stretch", self.spot_stretch, ">= 1")
        if self.lot < 1:
            raise checks.refuse("lot", self.lot, ">= 1")

    @property
    def currency(self) -> str:
        """The one currency of the prices."""
        return self.reserved.currency

    @property
    def rates(self) -> tuple[float, float, float]:
        """Reserved, on demand and stretched spot; spot is on demand where it is not sold or not cheaper."""
        on_demand = float(self.on_demand.amount)
        spot = math.inf if self.spot is None else float(self.spot.amount) * self.spot_stretch
        return float(self.reserved.amount), on_demand, min(spot, on_demand)

    @property
    def uses_spot(self) -> bool:
        """True when an hour of work on spot, reclaims included, is cheaper than on demand."""
        return self.rates[2] < self.rates[1]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Cards wanted in each hour, and how many of them may be interrupted. Shape (hours,)."""

    cards: Floats
    interruptible: Floats


def demand(cards: ArrayLike, interruptible: ArrayLike | float = 0.0) -> Demand:
    """Demand from a series; `interruptible` is a series of cards or one share of all of them.

    Raises
    ------
    InputError
        On a negative value, a share over 1, or more interruptible cards than cards.
    """
    wanted = checks.series("cards", cards)
    if np.ndim(interruptible) == 0:
        share = float(np.asarray(interruptible))
        checks.fraction("interruptible", share)
        return Demand(wanted, wanted * share)
    stoppable = checks.series("interruptible", interruptible)
    checks.same_length("interruptible", wanted, stoppable)
    above = np.flatnonzero(stoppable > wanted * (1 + 1e-12))
    if above.size:
        hour = int(above[0])
        raise checks.refuse(
            f"interruptible[{hour}]", float(stoppable[hour]), f"<= {wanted[hour]:g}"
        )
    return Demand(wanted, stoppable)


@dataclass(frozen=True, slots=True)
class PureMode:
    """The whole demand paid one way, and what the funnel saves against it."""

    name: str
    label: Message
    cost: Money | None  # None: refused
    saving: float | None
    refused: Message | None = None


@dataclass(frozen=True, slots=True)
class FunnelSplit:
    """The cheapest split and its proof."""

    reserved_cards: float
    on_demand_card_hours: float
    spot_card_hours: float  # work; billed hours are `spot_stretch` times as many
    sheet: CostSheet
    critical_ratio: float  # 1 - reserved / on demand
    idle_share: float  # of the reserved card-hours
    pure: tuple[PureMode, ...]

    @property
    def cost(self) -> Money:
        """Total of the split."""
        return self.sheet.total


def split(wanted: Demand, prices: FunnelPrices) -> FunnelSplit:
    """The cheapest reserved / on-demand / spot split of `wanted`, with the cost of each pure mode beside it."""
    reserved = best_reserved(wanted, prices)
    base, peak, spare = _card_hours(wanted, prices, reserved)
    bill = _bill(prices, base, peak, spare)
    ratio = 1 - prices.rates[0] / prices.rates[1] if prices.rates[1] else 0.0
    used = float(np.minimum(wanted.cards, reserved).sum())
    return FunnelSplit(
        reserved_cards=reserved,
        on_demand_card_hours=peak,
        spot_card_hours=spare,
        sheet=bill,
        critical_ratio=ratio,
        idle_share=1 - used / base if base else 0.0,
        pure=_pure_modes(wanted, prices, bill.total),
    )


def best_reserved(wanted: Demand, prices: FunnelPrices) -> float:
    """Reserved cards at the newsvendor quantile, to the cheaper neighbouring multiple of the lot. [1]"""
    firm = _firm(wanted, prices)
    reserved, on_demand, spot = prices.rates
    steps = np.unique(np.concatenate(([0.0], wanted.cards, firm)))
    hours = wanted.cards.size

    def beyond(series: Floats) -> Floats:
        above: Floats = hours - np.searchsorted(np.sort(series), steps, side="right").astype(float)
        return above

    slope = reserved * hours - (on_demand - spot) * beyond(firm) - spot * beyond(wanted.cards)
    best = float(steps[int(np.argmax(slope >= -1e-12 * hours))])
    around = {math.floor(best / prices.lot) * prices.lot, math.ceil(best / prices.lot) * prices.lot}
    return float(min(sorted(around), key=lambda count: cost(wanted, prices, count)))


def cost(wanted: Demand, prices: FunnelPrices, reserved_cards: float) -> float:
    """Cost of the whole series with `reserved_cards` reserved, in the prices' currency, not rounded."""
    checks.non_negative("reserved_cards", reserved_cards)
    base, peak, spare = _card_hours(wanted, prices, reserved_cards)
    reserved, on_demand, spot = prices.rates
    return reserved * base + on_demand * peak + spot * spare


@dataclass(frozen=True, slots=True)
class ProgrammeResult:
    """The linear programme's optimum; the dual bound proves it."""

    reserved_cards: float
    cost: float
    lower_bound: float


def split_by_programme(wanted: Demand, prices: FunnelPrices) -> ProgrammeResult:
    """The same split as a linear programme over hours that are alike, solved by HiGHS (lots are not held)."""
    firm = _firm(wanted, prices)
    kinds, weight = np.unique(np.stack([wanted.cards, firm]), axis=1, return_counts=True)
    total, stoppable = kinds[0], kinds[0] - kinds[1]
    reserved, on_demand, spot = prices.rates
    count = total.size
    objective = np.concatenate(([reserved * wanted.cards.size], on_demand * weight, spot * weight))
    eye = sparse.identity(count, format="csr")
    covered = sparse.hstack([sparse.csr_matrix(np.ones((count, 1))), eye, eye], format="csr")
    upper = np.concatenate((np.full(1 + count, np.inf), stoppable))
    bounds = [(0.0, float(most)) for most in upper]
    found = optimize.linprog(objective, A_ub=-covered, b_ub=-total, bounds=bounds, method="highs")
    if found.status != 0 or found.x is None or found.fun is None:
        raise InputError(
            "demand", msg("The linear programme ended with: %(reason)s", reason=found.message)
        )
    limited = np.isfinite(upper)
    bound = float(
        -total @ found.ineqlin.marginals + upper[limited] @ found.upper.marginals[limited]
    )
    return ProgrammeResult(float(found.x[0]), float(found.fun), bound)


# ---- Risk of reserving too much ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OverReservation:
    """What the commitment costs if demand falls short."""

    demand_change: float  # -0.3: 30 % below the forecast
    cost: Money
    best_cost: Money  # had one known
    regret: Money
    idle_share: float  # of the reserved card-hours


def over_reservation(
    wanted: Demand,
    prices: FunnelPrices,
    reserved_cards: float,
    changes: Sequence[float] = (0.2, 0.0, -0.1, -0.2, -0.3, -0.5),
) -> tuple[OverReservation, ...]:
    """Cost, regret and idle share of `reserved_cards` when demand turns out higher or lower by each change."""
    rows = []
    for change in changes:
        if not -1 <= change < math.inf:
            raise checks.refuse("changes", change, ">= -1")
        real = Demand(wanted.cards * (1 + change), wanted.interruptible * (1 + change))
        paid = cost(real, prices, reserved_cards)
        best = cost(real, prices, best_reserved(real, prices))
        base = reserved_cards * real.cards.size
        used = float(np.minimum(real.cards, reserved_cards).sum())
        rows.append(
            OverReservation(
                change,
                _money(paid, prices),
                _money(best, prices),
                _money(max(paid - best, 0.0), prices),
                1 - used / base if base else 0.0,
            )
        )
    return tuple(rows)


# ---- Pieces ------------------------------------------------------------------------------------------------------


def _firm(wanted: Demand, prices: FunnelPrices) -> Floats:
    """Demand that spot may not or need not carry."""
    return wanted.cards - wanted.interruptible if prices.uses_spot else wanted.cards


def _card_hours(
    wanted: Demand, prices: FunnelPrices, reserved: float
) -> tuple[float, float, float]:
    """Reserved (paid), on-demand and spot card-hours."""
    peak = float(np.maximum(_firm(wanted, prices) - reserved, 0.0).sum())
    rest = float(np.maximum(wanted.cards - reserved, 0.0).sum())
    return reserved * wanted.cards.size, peak, rest - peak


def _bill(prices: FunnelPrices, base: float, peak: float, spare: float) -> CostSheet:
    lines = [
        exact.line("reserved", msg("Reserved base"), prices.reserved, base, "card-hour"),
        exact.line("on_demand", msg("On-demand peaks"), prices.on_demand, peak, "card-hour"),
    ]
    if prices.spot is not None and prices.uses_spot:
        billed = spare * prices.spot_stretch
        lines.append(exact.line("spot", msg("Spot"), prices.spot, billed, "card-hour"))
    return sheet(lines, prices.currency)


def _pure_modes(wanted: Demand, prices: FunnelPrices, best: Money) -> tuple[PureMode, ...]:
    hours = wanted.cards.size
    work = float(wanted.cards.sum())
    top = math.ceil(round(float(wanted.cards.max()), 9) / prices.lot) * prices.lot

    def mode(name: str, label: Message, paid: Money) -> PureMode:
        saving = 1 - float(best.amount / paid.amount) if paid.amount else 0.0
        return PureMode(name, label, paid, saving)

    modes = [
        mode(
            "on_demand",
            msg("All on demand, scaled by the hour"),
            exact.times(prices.on_demand, work),
        ),
        mode(
            "on_demand_fixed",
            msg("All on demand, left running at the peak"),
            exact.times(prices.on_demand, top * hours),
        ),
        mode(
            "reserved", msg("All reserved at the peak"), exact.times(prices.reserved, top * hours)
        ),
    ]
    label = msg("All on spot")
    if prices.spot is None:
        modes.append(PureMode("spot", label, None, None, msg("Spot is not sold here")))
    elif not np.allclose(wanted.interruptible, wanted.cards):
        share = 1 - float(wanted.interruptible.sum()) / work if work else 0.0
        reason = msg("%(share)s %% of the work may not be interrupted", share=round(share * 100, 1))
        modes.append(PureMode("spot", label, None, None, reason))
    else:
        modes.append(mode("spot", label, exact.times(prices.spot, work * prices.spot_stretch)))
    return tuple(modes)


def _money(amount: float, prices: FunnelPrices) -> Money:
    return Money(exact.to_decimal(amount), prices.currency).rounded()
