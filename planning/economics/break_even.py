"""Buy or rent: the utilisation and the month at which owning has cost no more than renting, as curves.

Both sides do the same work: `cards x availability x utilisation` card-hours. Months count from the day the servers
work. Owning is paid at the order and then by the month; what could be resold is left out unless asked for, because
money tied up in cards is not money back. Nothing is discounted here; see :mod:`risk` for present values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from core.money import Money
from planning.economics import checks
from planning.economics.checks import Floats
from planning.economics.ownership import capital_lines, running_costs
from planning.economics.ownership_case import OwnershipCase, default_fte
from planning.economics.types import HOURS_PER_MONTH

UTILISATIONS = tuple(round(0.05 * step, 2) for step in range(1, 21))


@dataclass(frozen=True, slots=True)
class Rent:
    """The price of a rented card-hour and how it falls. Only used hours are paid."""

    per_card_hour: Money
    decline_per_year: float = 0.0

    def __post_init__(self) -> None:
        checks.price("rent.per_card_hour", self.per_card_hour)
        checks.below_one("rent.decline_per_year", self.decline_per_year)

    def monthly_prices(self, months: int) -> Floats:
        """Price of a card-hour in each month. [currency/h], shape (months,)"""
        fall: Floats = (1 - self.decline_per_year) ** (np.arange(months) / 12)
        return float(self.per_card_hour.amount) * fall


@dataclass(frozen=True, slots=True, eq=False)
class OwnCosts:
    """An ownership case reduced to numbers for curves and simulation, in its currency."""

    currency: str
    cards: int
    availability: float
    capital: float
    idle_by_year: Floats  # running cost at no load, shape (years,)
    load_per_year: float  # more a year at full use, power and cooling
    residual_by_year: Floats  # money from resale after 1, 2, ... years
    years: int


def own_costs(case: OwnershipCase) -> OwnCosts:
    """The numbers of `case`; its running cost is linear in utilisation."""
    currency = case.currency
    busy = running_costs(case)
    still = running_costs(replace(case, utilisation=0.0))
    idle = np.array(
        [sum(float(m[year].amount) for m in still.values()) for year in range(case.years)]
    )
    load = sum(float(busy[name][0].amount - still[name][0].amount) for name in ("power", "cooling"))
    price = float(case.server.price.amount) * case.servers
    return OwnCosts(
        currency=currency,
        cards=case.accelerators,
        availability=case.availability,
        capital=sum(float(money.amount) for money in capital_lines(case).values()),
        idle_by_year=idle,
        load_per_year=load / case.utilisation if case.utilisation else 0.0,
        residual_by_year=price * np.asarray(case.residual),
        years=case.years,
    )


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Curves of one case against one rent. None: not within the years of the case, or not at any utilisation."""

    month_by_utilisation: tuple[tuple[float, int | None], ...]
    utilisation_by_month: tuple[tuple[int, float | None], ...]


def curves(
    case: OwnershipCase,
    rent: Rent,
    *,
    utilisations: Sequence[float] = UTILISATIONS,
    with_resale: bool = False,
) -> BreakEven:
    """Break-even month at each utilisation and break-even utilisation at each month.

    Raises
    ------
    InputError
        If the rent is in another currency, or a utilisation is not above 0 and at most 1.
    """
    _require_currency(case, rent)
    costs = own_costs(case)
    for share in utilisations:
        checks.fraction("utilisations", share)
        checks.positive("utilisations", share)
    fixed, load, earned = _cumulative(costs, rent, with_resale)
    by_utilisation = tuple(
        (share, _first(fixed + load * share <= earned * share)) for share in utilisations
    )
    margin = earned - load
    needed = np.divide(fixed, margin, out=np.full(fixed.size, np.inf), where=margin > 0)
    by_month = tuple(
        (month + 1, float(max(share, 0.0)) if share <= 1 else None)
        for month, share in enumerate(needed)
    )
    return BreakEven(by_utilisation, by_month)


@dataclass(frozen=True, slots=True)
class BreakEvenLine:
    """What a break-even needs of one case after some months, so that many rents can be held against it."""

    fixed: float
    load: float  # at full use
    earned: float  # at full use, for a rent of 1 a card-hour

    def at(self, rent: float) -> float | None:
        """Utilisation from which owning pays at `rent` a card-hour; None if not even at 100 %. [1]"""
        margin = self.earned * rent - self.load
        share = self.fixed / margin if margin > 0 else np.inf
        return float(max(share, 0.0)) if share <= 1 else None


def break_even_line(case: OwnershipCase, decline_per_year: float, months: int) -> BreakEvenLine:
    """The line of `case` after `months`, rents falling by `decline_per_year`."""
    if not 1 <= months <= case.years * 12:
        raise checks.refuse("months", months, f"1 .. {case.years * 12}")
    unit = Rent(Money(Decimal(1), case.currency), decline_per_year)
    fixed, load, earned = _cumulative(own_costs(case), unit, with_resale=False)
    last = months - 1
    return BreakEvenLine(float(fixed[last]), float(load[last]), float(earned[last]))


def break_even_month(
    case: OwnershipCase, rent: Rent, utilisation: float, *, with_resale: bool = False
) -> int | None:
    """First month in which owning has cost no more than renting; None within the years of the case."""
    found = curves(case, rent, utilisations=(utilisation,), with_resale=with_resale)
    return found.month_by_utilisation[0][1]


def break_even_utilisation(
    case: OwnershipCase, rent: Rent, months: int, *, with_resale: bool = False
) -> float | None:
    """Utilisation from which owning pays within `months`; None if not even at 100 %. [1]"""
    if not 1 <= months <= case.years * 12:
        raise checks.refuse("months", months, f"1 .. {case.years * 12}")
    return curves(case, rent, with_resale=with_resale).utilisation_by_month[months - 1][1]


def by_fleet_size(
    case: OwnershipCase, rent: Rent, server_counts: Sequence[int], *, months: int = 36
) -> tuple[tuple[int, float | None], ...]:
    """Cards of the fleet against the utilisation from which owning pays within `months`.

    Staff is that of :func:`~planning.economics.ownership_case.default_fte`, whose floor is what small fleets die of.
    """
    rows = []
    for count in server_counts:
        cards = count * case.server.accelerators
        sized = replace(case, servers=count, fte=default_fte(cards))
        rows.append((cards, break_even_utilisation(sized, rent, months)))
    return tuple(rows)


def _cumulative(costs: OwnCosts, rent: Rent, with_resale: bool) -> tuple[Floats, Floats, Floats]:
    """Owning's fixed cost, its cost per unit of utilisation, rent per unit of utilisation; after each month."""
    months = costs.years * 12
    month = np.arange(1, months + 1)
    fixed = costs.capital + np.cumsum(np.repeat(costs.idle_by_year, 12) / 12)
    if with_resale:
        known = np.concatenate(([costs.residual_by_year[0]], costs.residual_by_year))
        fixed = fixed - np.interp(month / 12, np.arange(known.size), known)
    load = costs.load_per_year * month / 12
    hours = costs.cards * costs.availability * HOURS_PER_MONTH
    earned = np.cumsum(rent.monthly_prices(months)) * hours
    return fixed, load, earned


def _first(reached: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int | None:
    return int(np.argmax(reached)) + 1 if reached.any() else None


def _require_currency(case: OwnershipCase, rent: Rent) -> None:
    checks.same_currency("rent", case.server.price, rent.per_card_hour)
