"""Three numbers of a purchase that must agree: its cards, what the room carries, and the last day to order."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from planning.economics import defaults
from planning.economics.site import Plan, agree, envelope, last_order_date
from planning.economics.types import ServerPlatform, Site
from planning.study.search.choice import World
from planning.study.search.costs import room_of
from planning.study.search.market import lead_weeks, ready_on


def agreement(world: World, i: int, capital: Money) -> dict[str, Any]:
    """Whether cards, room, date and money of the purchase `i` agree, and what binds first."""
    c, limits = world.candidates, world.request.constraints
    platform = world.snapshot.platforms[int(c.platform[i])]
    accelerator, today = world.accelerator(i), world.snapshot.on
    servers = int(c.instances[i])
    weeks, ready = lead_weeks(accelerator, today), ready_on(accelerator, today)
    budget = world.budget if world.budget is not None else world.team_budgets.get("purchase")
    need_by = limits.need_by or ready
    found: dict[str, Any] = {
        "servers": servers,
        "lead_weeks": weeks,
        "acceptance_days": defaults.value("acceptance.days"),
        "ready": ready.isoformat(),
        "last_order": None,
        "budget": None if budget is None else str(budget.amount),
        "fits_date": ready <= need_by,
        "fits_site": None,
        "fits_budget": None if budget is None else capital.amount <= budget.amount,
        "room": "",
        "binds": "",
        "messages": [],
        "rooms": [_room_json(one.site, platform.server) for one in world.snapshot.rooms],
    }
    if limits.need_by is not None:
        found["last_order"] = last_order_date(limits.need_by, lead_weeks=weeks).isoformat()
    room = room_of(world.snapshot, c, i)
    if room is None:
        found["binds"] = (
            "date" if not found["fits_date"] else "budget" if found["fits_budget"] is False else ""
        )
        return found
    plan = Plan(
        platform.server,
        servers * platform.server.accelerators,
        need_by,
        weeks,
        Money(capital.amount / Decimal(servers), capital.currency),
        budget,
    )
    found["room"] = room.site.name
    try:
        told = agree(plan, room.site, today=today)
    except InputError as error:
        return found | {"messages": [error.message.to_json()]}
    return found | {
        "fits_site": told.fits_site,
        "binds": told.binds,
        "messages": [text.to_json() for text in told.messages],
    }


def _room_json(site: Site, server: ServerPlatform) -> dict[str, Any]:
    """What one room carries of a server model, and what limits it."""
    try:
        found = envelope(site, server)
    except InputError as error:
        return {"name": site.name, "servers": None, "binds": "", "message": error.message.to_json()}
    return {
        "name": site.name,
        "servers": found.servers,
        "binds": found.binds.name,
        "message": found.binds.message.to_json(),
    }


_WHY = {
    "power": msg(
        "%(site)s carries %(fit)s of %(needed)s servers: %(free)s kW of power are free, each takes %(each)s kW"
    ),
    "cooling": msg(
        "%(site)s carries %(fit)s of %(needed)s servers: %(free)s kW of cooling are free, each gives off %(each)s kW"
    ),
    "rack_power": msg(
        "%(site)s carries %(fit)s of %(needed)s servers: %(free)s racks are free, each server takes %(each)s kW"
    ),
    "floor": msg("%(site)s carries %(fit)s of %(needed)s servers: its floor bears no more"),
    "liquid_cooling": msg("%(site)s has no liquid cooling, which this server needs"),
}
_RACKS = msg("%(site)s carries %(fit)s of %(needed)s servers: %(free)s racks are free")
_MORE = {
    "power": msg("%(kw)s kW more power at %(site)s"),
    "cooling": msg("%(kw)s kW more cooling at %(site)s"),
    "rack_power": msg("More racks at %(site)s, or %(each)s kW and more for each"),
    "floor": msg("A stronger floor at %(site)s, or more racks"),
    "liquid_cooling": msg("Liquid cooling at %(site)s"),
}
_MORE_RACKS = msg("More racks at %(site)s")


def misfit(site: Site, server: ServerPlatform, servers: int) -> tuple[Message, Message | None]:
    """Why `servers` do not fit in `site`, and what would make room at the limit that binds first."""
    try:
        found = envelope(site, server)
    except InputError as error:
        return error.message, msg("Enter the weight of %(server)s", server=server.name)
    limit = found.binds
    facts: dict[str, str | int | float] = {
        "site": site.name,
        "fit": found.servers,
        "needed": servers,
        "free": round(limit.free, 1),
        "each": server.max_power_kw,
        "kw": math.ceil(round((servers * server.max_power_kw - limit.free) * 10, 6)) / 10,
    }
    reason, change = _WHY.get(limit.name, _RACKS), _MORE.get(limit.name, _MORE_RACKS)
    return Message(reason.template, facts), Message(change.template, facts)
