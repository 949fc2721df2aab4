"""Servers that are held for a candidate, bought or leased: one question with two answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planning.economics.types import HOURS_PER_YEAR
from planning.study.search.costs import YEARS, Owned, owned_cost, room_of
from planning.study.search.leasing import leased_cost, terms_of
from planning.study.search.snapshot import Lease

if TYPE_CHECKING:
    from planning.study.search.choice import World


def lease_of(world: World, i: int) -> Lease | None:
    """The lease of candidate `i`; None where its servers are bought."""
    row = int(world.candidates.lease[i])
    return world.snapshot.leases[row] if row >= 0 else None


def span_of(world: World, i: int) -> float:
    """From the first hour of the need to its last. [h]"""
    c = world.candidates
    return max(float(world.ways.span_hours[c.way[i]]), float(c.hours[i]))


def months_of(world: World, i: int, lease: Lease) -> int:
    """For which the servers of candidate `i` are leased."""
    return lease.months * terms_of(lease, span_of(world, i))


def held(world: World, i: int, *, card_hours: float | None = None) -> Owned:
    """What the servers of candidate `i` cost over their life, and this need of it (or `card_hours` of it)."""
    c, snapshot = world.candidates, world.snapshot
    platform = snapshot.platforms[int(c.platform[i])]
    servers, lease, room = int(c.instances[i]), lease_of(world, i), room_of(snapshot, c, i)
    if card_hours is None:
        card_hours = int(world.ways.cards[c.way[i]]) * float(c.hours[i])
    if lease is None:
        return owned_cost(
            snapshot, platform, servers, card_hours, world.utilisation, room, world.tax
        )
    return leased_cost(
        snapshot,
        lease,
        platform,
        servers,
        card_hours,
        span_of(world, i),
        world.utilisation,
        room,
        world.tax,
    )


def years_of(world: World, i: int) -> float:
    """Of the life over which the servers of candidate `i` are counted."""
    lease = lease_of(world, i)
    return YEARS if lease is None else months_of(world, i, lease) / 12


def hours_there(world: World, i: int) -> float:
    """Card-hours of that life, whether they work or not."""
    c = world.candidates
    server = world.snapshot.platforms[int(c.platform[i])].server
    return int(c.instances[i]) * server.accelerators * HOURS_PER_YEAR * years_of(world, i)
