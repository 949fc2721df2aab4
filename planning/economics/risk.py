"""Buy or rent under uncertainty: seeded Monte Carlo of cost, regret and the value of staying flexible.

Each path draws six inputs: demand growth, utilisation, yearly fall of prices, failures, tariff drift and exchange-rate
drift. Demand in card-hours starts at the fleet's cards x utilisation and grows from quarter to quarter. Four choices
meet it: buy now (what the fleet cannot carry is rented), rent on demand, reserve a base for the whole term, or rent
for a year and then decide. The decision after a year sees only what is known by then: continuation costs are
regressed on the state (Longstaff and Schwartz), so it is no clairvoyant. All costs are discounted to the order.

Flexibility is priced as an option: the best rigid choice made today against the best policy that may still decide.

References
----------
F. Longstaff and E. Schwartz, "Valuing American options by simulation," Review of Financial Studies 14(1), 2001.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, defaults, exact
from planning.economics.break_even import OwnCosts, Rent, own_costs
from planning.economics.checks import Floats
from planning.economics.ownership_case import OwnershipCase
from planning.economics.types import HOURS_PER_YEAR

QUARTERS = 4
FEWEST_PATHS = 1_000
CHOICE_LABELS: Mapping[str, Message] = {
    "own": msg("Buy now"),
    "rent": msg("Rent on demand"),
    "reserve": msg("Reserve a base, rent the rest"),
    "wait": msg("Rent for a year, then decide"),
}


@dataclass(frozen=True, slots=True)
class Range:
    """An uncertain input by its P10, median and P90. Tails end half a spread beyond them."""

    p10: float
    p50: float
    p90: float

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest value that can be drawn."""
        return (
            self.p10 - 0.5 * (self.p50 - self.p10),
            self.p90 + 0.5 * (self.p90 - self.p50),
        )

    def quantile(self, share: Floats) -> Floats:
        """Values at `share` (0 to 1), piecewise linear through the ends and the three quantiles."""
        low, high = self.ends
        result: Floats = np.interp(
            share, (0, 0.1, 0.5, 0.9, 1), (low, self.p10, self.p50, self.p90, high)
        )
        return result


def _default(name: str) -> Range:
    known = defaults.known(f"risk.{name}")
    return Range(known.low, known.value, known.high)


@dataclass(frozen=True, slots=True)
class RiskInputs:
    """The six uncertain inputs."""

    demand_growth: Range = field(default_factory=lambda: _default("demand_growth"))  # [1/year]
    utilisation: Range = field(
        default_factory=lambda: _default("utilisation")
    )  # of the fleet at the start
    price_decline: Range = field(default_factory=lambda: _default("price_decline"))  # [1/year]
    failure: Range = field(default_factory=lambda: _default("failure"))  # repairs per card and year
    tariff_drift: Range = field(default_factory=lambda: _default("tariff_drift"))  # [1/year]
    fx_drift: Range = field(
        default_factory=lambda: _default("fx_drift")
    )  # of the rent's currency, [1/year]

    def __post_init__(self) -> None:
        limits = {
            "demand_growth": (-0.95, 10.0),
            "utilisation": (0.0, 1.0),
            "price_decline": (-1.0, 0.95),
            "failure": (0.0, 1.0),
            "tariff_drift": (-0.5, 1.0),
            "fx_drift": (-0.5, 1.0),
        }
        for name, (least, most) in limits.items():
            drawn: Range = getattr(self, name)
            if not drawn.p10 <= drawn.p50 <= drawn.p90:
                raise checks.refuse(name, (drawn.p10, drawn.p50, drawn.p90), "P10 <= P50 <= P90")
            low, high = drawn.ends
            if not (least <= low and high <= most):
                raise checks.refuse(
                    name, (round(low, 4), round(high, 4)), f"{least:g} .. {most:g} with its tails"
                )


NAMES = ("demand_growth", "utilisation", "price_decline", "failure", "tariff_drift", "fx_drift")


@dataclass(frozen=True, slots=True)
class ChoiceRisk:
    """One choice over all paths, present values."""

    name: str
    label: Message
    mean: Money
    p10: Money
    p50: Money
    p90: Money
    mean_regret: Money  # against the best choice on each path
    p90_regret: Money
    best_share: float  # of the paths on which it is the cheapest


@dataclass(frozen=True, slots=True)
class TornadoBar:
    """How far one input moves (owning - renting) from its P10 to its P90, all others at their median."""

    name: str
    at_p10: Money
    at_p90: Money

    @property
    def swing(self) -> Money:
        """Length of the bar."""
        return Money(abs(self.at_p90.amount - self.at_p10.amount), self.at_p10.currency)


@dataclass(frozen=True, slots=True)
class RiskResult:
    """What the simulation says."""

    own_cheaper: float  # probability that buying now costs less than renting
    choices: tuple[ChoiceRisk, ...]  # cheapest mean first
    flexibility: Money  # mean of the best rigid choice - mean of the best that may wait; >= 0
    waiting: Money  # mean of the best rigid choice - mean of waiting; negative: waiting costs
    buy_after_wait: float  # share of the paths on which one buys after the year
    tornado: tuple[TornadoBar, ...]  # longest first
    paths: int
    seed: int

    def choice(self, name: str) -> ChoiceRisk:
        """The choice called `name`."""
        return next(choice for choice in self.choices if choice.name == name)

    @property
    def least_regret(self) -> ChoiceRisk:
        """The choice with the smallest mean regret."""
        return min(self.choices, key=lambda choice: choice.mean_regret.amount)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A base reserved for the whole term: paid each hour, used or not."""

    per_card_hour: Money
    cards: float

    def __post_init__(self) -> None:
        checks.price("reservation.per_card_hour", self.per_card_hour)
        checks.non_negative("reservation.cards", self.cards)


def simulate(
    case: OwnershipCase,
    rent: Rent,
    *,
    seed: int,
    inputs: RiskInputs | None = None,
    reservation: Reservation | None = None,
    paths: int = 10_000,
) -> RiskResult:
    """Cost, regret and option value of buying, renting, reserving and waiting over the years of `case`.

    The case's own utilisation and repairs and the rent's decline are replaced by the drawn ones. Without a
    `reservation` that choice is left out. A case of one year leaves no time to wait: it needs two at least.

    Raises
    ------
    InputError
        On mixed currencies, fewer than 1,000 paths, or a case shorter than two years.
    """
    checks.same_currency(
        "rent",
        case.server.price,
        rent.per_card_hour,
        None if reservation is None else reservation.per_card_hour,
    )
    if paths < FEWEST_PATHS:
        raise checks.refuse("paths", paths, f">= {FEWEST_PATHS}")
    if case.years < 2:
        raise checks.refuse("years", case.years, ">= 2, so that one can wait for one")
    ranges = RiskInputs() if inputs is None else inputs
    drawn = _draw(ranges, np.random.default_rng(seed), paths)
    world = _World(case, rent, reservation)
    costs = world.rigid(drawn)
    waited, bought = world.wait(drawn)
    rigid = min(float(cost.mean()) for cost in costs.values())
    costs["wait"] = waited
    waiting = rigid - float(waited.mean())
    money = world.money
    return RiskResult(
        own_cheaper=float((costs["own"] < costs["rent"]).mean()),
        choices=_statistics(costs, world),
        flexibility=money(max(waiting, 0.0)),
        waiting=money(waiting),
        buy_after_wait=float(bought.mean()),
        tornado=_tornado(ranges, world),
        paths=paths,
        seed=seed,
    )


def _draw(inputs: RiskInputs, rng: np.random.Generator, paths: int) -> dict[str, Floats]:
    """Stratified draws: each input covers its range evenly, in its own random order. Shape (paths,) each."""
    drawn = {}
    for name in NAMES:
        strata = (rng.permutation(paths) + rng.random(paths)) / paths
        drawn[name] = getattr(inputs, name).quantile(strata)
    return drawn


class _World:
    """The costs of the choices for arrays of drawn inputs."""

    def __init__(self, case: OwnershipCase, rent: Rent, reservation: Reservation | None) -> None:
        self.case = case
        self.own: OwnCosts = own_costs(case)
        self.price = float(rent.per_card_hour.amount)
        self.reservation = reservation
        self.most_used = defaults.known("utilisation.owned").high  # beyond it queues form: rent
        periods = case.years * QUARTERS
        self.middle = (
            np.arange(periods) + 0.5
        ) / QUARTERS  # years since the start, shape (periods,)
        self.discount = (1 + case.discount_rate) ** -self.middle
        self.hours = HOURS_PER_YEAR / QUARTERS

    def money(self, amount: float) -> Money:
        """`amount` as exact money, rounded."""
        return Money(exact.to_decimal(amount), self.case.currency).rounded()

    def demand(self, drawn: Mapping[str, Floats]) -> Floats:
        """Card-hours wanted. Shape (paths, periods)."""
        growth = (1 + drawn["demand_growth"])[:, None] ** self.middle
        result: Floats = self.own.cards * self.hours * drawn["utilisation"][:, None] * growth
        return result

    def rents(self, drawn: Mapping[str, Floats]) -> Floats:
        """Price of a rented card-hour. Shape (paths, periods)."""
        yearly = (1 - drawn["price_decline"]) * (1 + drawn["fx_drift"])
        result: Floats = self.price * yearly[:, None] ** self.middle
        return result

    def rigid(self, drawn: Mapping[str, Floats]) -> dict[str, Floats]:
        """Present value of each choice that is made today. Shape (paths,) each."""
        wanted, rents = self.demand(drawn), self.rents(drawn)
        costs = {
            "own": self._owning(drawn, wanted, rents, 0),
            "rent": np.asarray((wanted * rents) @ self.discount, dtype=np.float64),
        }
        if self.reservation is not None:
            covered = self.reservation.cards * self.hours
            base = float(self.reservation.per_card_hour.amount) * covered
            over = np.maximum(wanted - covered, 0.0)
            costs["reserve"] = base * float(self.discount.sum()) + (over * rents) @ self.discount
        return costs

    def _owning(
        self, drawn: Mapping[str, Floats], wanted: Floats, rents: Floats, start: int
    ) -> Floats:
        """Present value of buying after `start` years and owning to the end of the term."""
        own, case = self.own, self.case
        first = start * QUARTERS
        wanted, rents = wanted[:, first:], rents[:, first:]
        discount = self.discount[first:]
        years = case.years - start
        out = drawn["failure"] * case.repair_days / 365
        available = 1 - np.maximum(out - case.spares_ratio, 0.0)
        full = own.cards * self.hours
        # From order to acceptance the fleet carries nothing, costs no running, and the work is rented.
        passed = (np.arange(discount.size) + 1) / QUARTERS - case.waiting_years
        serving = np.clip(passed * QUARTERS, 0.0, 1.0)
        carried = np.minimum(wanted, (full * available * self.most_used)[:, None]) * serving
        tariff = (1 + drawn["tariff_drift"])[:, None] ** self.middle[first:]
        power = own.load_per_year / QUARTERS * (carried / full) * tariff
        running = np.repeat(own.idle_by_year[:years], QUARTERS) / QUARTERS * serving
        overflow = (wanted - carried) * rents
        # New cards and used ones fall in price with the rents.
        fall = (1 - drawn["price_decline"]) ** start
        extra = (1 - drawn["price_decline"]) / (1 - defaults.value("risk.price_decline"))
        resale = own.residual_by_year[years - 1] * fall * extra**years
        end = (1 + case.discount_rate) ** -float(case.years)
        bought = own.capital * fall * (1 + case.discount_rate) ** -float(start)
        result: Floats = bought + (power + running + overflow) @ discount - resale * end
        return result

    def wait(
        self, drawn: Mapping[str, Floats]
    ) -> tuple[Floats, np.ndarray[tuple[int, ...], np.dtype[np.bool_]]]:
        """Present value of renting for a year and then deciding by what is known; and where one then buys."""
        wanted, rents = self.demand(drawn), self.rents(drawn)
        first = (wanted[:, :QUARTERS] * rents[:, :QUARTERS]) @ self.discount[:QUARTERS]
        renting = (wanted[:, QUARTERS:] * rents[:, QUARTERS:]) @ self.discount[QUARTERS:]
        owning = self._owning(drawn, wanted, rents, 1)
        gain = renting - owning
        state = np.stack([wanted[:, QUARTERS], rents[:, QUARTERS]], axis=1)
        spread = state.std(axis=0)
        state = (state - state.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        x, y = state.T
        basis = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
        weights, *_ = np.linalg.lstsq(basis, gain, rcond=None)
        buys = basis @ weights > 0
        return first + np.where(buys, owning, renting), buys


def _statistics(costs: Mapping[str, Floats], world: _World) -> tuple[ChoiceRisk, ...]:
    table = np.stack(list(costs.values()))
    best = table.min(axis=0)
    winner = table.argmin(axis=0)
    rows = []
    for index, (name, cost) in enumerate(costs.items()):
        regret = cost - best
        p10, p50, p90 = np.quantile(cost, (0.1, 0.5, 0.9))
        rows.append(
            ChoiceRisk(
                name=name,
                label=CHOICE_LABELS[name],
                mean=world.money(float(cost.mean())),
                p10=world.money(float(p10)),
                p50=world.money(float(p50)),
                p90=world.money(float(p90)),
                mean_regret=world.money(float(regret.mean())),
                p90_regret=world.money(float(np.quantile(regret, 0.9))),
                best_share=float((winner == index).mean()),
            )
        )
    return tuple(sorted(rows, key=lambda row: row.mean.amount))


def _tornado(inputs: RiskInputs, world: _World) -> tuple[TornadoBar, ...]:
    rows = []
    medians = {name: getattr(inputs, name).p50 for name in NAMES}
    for name in NAMES:
        moved: Range = getattr(inputs, name)
        both = {key: np.array([value, value]) for key, value in medians.items()}
        both[name] = np.array([moved.p10, moved.p90])
        costs = world.rigid(both)
        low, high = costs["own"] - costs["rent"]
        rows.append(TornadoBar(name, world.money(float(low)), world.money(float(high))))
    return tuple(sorted(rows, key=lambda bar: bar.swing.amount, reverse=True))
