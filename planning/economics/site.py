"""Three numbers that must agree: the cards needed, what the site can carry, and the last day to order.

A plan may fit the budget and not the room, or the room and not the date. What binds first is named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

from core.messages import Message, msg, plural
from core.money import Money
from planning.economics import checks, defaults
from planning.economics.types import ServerPlatform, Site


@dataclass(frozen=True, slots=True)
class Limit:
    """How many servers one resource carries. `used` is by the plan."""

    name: str
    servers: int
    free: float
    unit: str
    message: Message


@dataclass(frozen=True, slots=True)
class Envelope:
    """What the site carries of one server model; the tightest limit first."""

    limits: tuple[Limit, ...]

    @property
    def servers(self) -> int:
        """Servers that fit."""
        return self.limits[0].servers

    @property
    def binds(self) -> Limit:
        """What binds first."""
        return self.limits[0]


def envelope(site: Site, server: ServerPlatform) -> Envelope:
    """Servers that fit in `site` by power, cooling, racks and what the floor bears; maximum draw counts.

    All of the power of the servers becomes heat in the room. A server that one rack cannot feed fits in none.

    Raises
    ------
    InputError
        If the floor has a limit and the weight of the server is not known.
    """
    limits = [
        _power(site, server),
        _cooling(site, server),
        _racks(site, server),
    ]
    if server.liquid_cooled and not site.liquid_cooling:
        text = msg("%(server)s is cooled by liquid and the site has none", server=server.name)
        limits.append(Limit("liquid_cooling", 0, 0.0, "", text))
    return Envelope(tuple(sorted(limits, key=lambda limit: limit.servers)))


def servers_per_rack(site: Site, server: ServerPlatform) -> tuple[int, str]:
    """Servers in one rack, and what limits them: ``rack_power``, ``rack_units`` or ``floor``."""
    by = {
        "rack_power": math.floor(round(site.kw_per_rack / server.max_power_kw, 9)),
        "rack_units": site.units_per_rack // server.rack_units,
    }
    if site.floor_kg_per_rack is not None:
        if server.weight_kg is None:
            raise checks.refuse(
                "server.weight_kg", "missing", "known, because the floor has a limit"
            )
        by["floor"] = math.floor(round(site.floor_kg_per_rack / server.weight_kg, 9))
    name = min(by, key=lambda key: by[key])
    return by[name], name


def last_order_date(
    need_by: date, *, lead_weeks: float, acceptance_days: float | None = None
) -> date:
    """The last day to order: need-by less lead time less acceptance, whole days, early rather than late."""
    checks.non_negative("lead_weeks", lead_weeks)
    testing = defaults.value("acceptance.days") if acceptance_days is None else acceptance_days
    checks.non_negative("acceptance_days", testing)
    return need_by - timedelta(days=math.ceil(lead_weeks * 7 + testing))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be bought, for when, and with how much money."""

    server: ServerPlatform
    cards: int
    need_by: date
    lead_weeks: float
    unit_cost: Money  # all-in capital per server
    budget: Money | None = None  # None: not limited
    acceptance_days: float | None = None

    def __post_init__(self) -> None:
        if self.cards < 1:
            raise checks.refuse("cards", self.cards, ">= 1")
        checks.positive("unit_cost", self.unit_cost.amount)
        if self.budget is not None:
            checks.price("budget", self.budget)
            checks.same_currency("budget", self.unit_cost, self.budget)

    @property
    def servers(self) -> int:
        """Whole servers."""
        return -(-self.cards // self.server.accelerators)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether cards, site and date agree; `binds` names what binds first, also when all is well."""

    servers_needed: int
    servers_that_fit: int
    cards_that_fit: int
    envelope: Envelope
    last_order: date
    fits_site: bool
    fits_date: bool
    fits_budget: bool
    binds: str
    messages: tuple[Message, ...]

    @property
    def feasible(self) -> bool:
        """True when all three agree and the money is there."""
        return self.fits_site and self.fits_date and self.fits_budget


def agree(plan: Plan, site: Site, *, today: date) -> Agreement:
    """Hold `plan` against `site`, the calendar and the budget."""
    room = envelope(site, plan.server)
    last = last_order_date(
        plan.need_by, lead_weeks=plan.lead_weeks, acceptance_days=plan.acceptance_days
    )
    affordable = plan.servers
    if plan.budget is not None:
        affordable = int(plan.budget.amount // plan.unit_cost.amount)
    fits_site = room.servers >= plan.servers
    fits_date = today <= last
    fits_budget = affordable >= plan.servers
    messages = []
    if not fits_date:
        days = (today - last).days
        messages.append(
            plural(
                days,
                msg(
                    "The last day to order was yesterday, %(last)s; ordered today it works on %(ready)s",
                    last=last.isoformat(),
                    ready=(plan.need_by + timedelta(days=days)).isoformat(),
                ),
                msg(
                    "The last day to order was %(last)s, %(days)s days ago; ordered today it works on %(ready)s",
                    last=last.isoformat(),
                    days=days,
                    ready=(plan.need_by + timedelta(days=days)).isoformat(),
                ),
            )
        )
    if not fits_site:
        messages.append(
            msg(
                "The site carries %(fit)s of %(needed)s servers",
                fit=room.servers,
                needed=plan.servers,
            )
        )
        messages.append(room.binds.message)
    if not fits_budget:
        messages.append(
            msg(
                "The budget pays for %(fit)s of %(needed)s servers",
                fit=affordable,
                needed=plan.servers,
            )
        )
    if fits_budget and plan.budget is not None and not (fits_site and fits_date):
        messages.append(msg("The plan fits the budget, but money does not make it fit"))
    binds = _binds_first(plan, room, affordable, fits_date)
    return Agreement(
        plan.servers,
        room.servers,
        room.servers * plan.server.accelerators,
        room,
        last,
        fits_site,
        fits_date,
        fits_budget,
        binds,
        tuple(messages),
    )


def _binds_first(plan: Plan, room: Envelope, affordable: int, fits_date: bool) -> str:
    """A missed date binds before all; else what allows the fewest servers."""
    if not fits_date:
        return "date"
    if plan.budget is not None and affordable < room.servers:
        return "budget"
    return room.binds.name


def _power(site: Site, server: ServerPlatform) -> Limit:
    free = site.power_kw - site.used_power_kw
    text = msg(
        "Free power is %(free)s kW, each server takes %(each)s kW",
        free=round(free, 1),
        each=server.max_power_kw,
    )
    return Limit("power", math.floor(round(free / server.max_power_kw, 9)), free, "kW", text)


def _cooling(site: Site, server: ServerPlatform) -> Limit:
    free = site.cooling_kw - site.used_cooling_kw
    text = msg(
        "Free cooling is %(free)s kW, each server gives off %(each)s kW",
        free=round(free, 1),
        each=server.max_power_kw,
    )
    return Limit("cooling", math.floor(round(free / server.max_power_kw, 9)), free, "kW", text)


def _racks(site: Site, server: ServerPlatform) -> Limit:
    free = site.racks - site.used_racks
    each, name = servers_per_rack(site, server)
    if each == 0 and name == "rack_power":
        text = msg(
            "A rack is fed %(rack)s kW and one server takes %(each)s kW",
            rack=site.kw_per_rack,
            each=server.max_power_kw,
        )
    else:
        text = msg("%(free)s free racks hold %(each)s servers each", free=free, each=each)
    # Enough per rack: then it is the number of racks that binds.
    return Limit(
        "racks" if each and name == "rack_units" else name, free * each, free, "rack", text
    )
