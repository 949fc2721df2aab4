"""Why everything else lost, and the smallest change that would let it in."""

from __future__ import annotations

import math

import numpy as np

from core.messages import Message, msg, plural
from core.money import Money, minor_digits
from planning.economics.exact import to_decimal
from planning.economics.types import PaymentMode
from planning.study.search.choice import OVERSIZE, REUSED, Choice, Verdicts, World, timing
from planning.study.search.costs import Candidates, held_hours, room_of
from planning.study.search.housing import misfit
from planning.study.search.market import offer_exclusion, ready_on
from planning.study.search.ways import Exclusion, Ints

# What each condition is called, in the order in which a loser is asked.
_CONDITIONS = (
    "exportable",
    "resident",
    "ends",
    "exact",
    "in_time",
    "ordered",
    "sized",
    "housed",
    "affordable",
)


def losers(world: World, choice: Choice) -> list[Exclusion]:
    """One entry for each offer, server model and stock that is in no plan shown; payment modes that nobody sells."""
    found: list[Exclusion] = []
    c = world.candidates
    shown = choice.ranked
    rooms = len(world.snapshot.rooms) + 1
    bought, leased = (c.platform >= 0) & (c.lease < 0), c.lease >= 0
    purchase = np.where(bought, c.platform * rooms + c.room + 1, -1)
    lease = np.where(leased, c.lease * rooms + c.room + 1, -1)
    kinds = ((c.offer, "offer"), (purchase, "purchase"), (lease, "lease"), (c.stock, "stock"))
    for column, kind in kinds:
        winners = set(column[shown].tolist())
        nearest = _nearest(world, choice.verdicts, column)
        for row, i in nearest.items():
            if row in winners:
                continue
            found.append(_exclusion(world, choice, kind, int(i)))
    found += _too_small(world)
    found += _unsold(world)
    return found


def _nearest(world: World, verdicts: Verdicts, column: Ints) -> dict[int, int]:
    """Of each offer (server, stock) the candidate that meets most conditions, then the cheapest."""
    c = world.candidates
    own = np.flatnonzero(column >= 0)
    if not own.size:
        return {}
    broken = sum((~getattr(verdicts, name)).astype(np.int64) for name in _CONDITIONS)
    late = np.where(np.isfinite(c.seconds), c.seconds, np.inf)
    excess = np.where(verdicts.in_time, 0.0, late)
    order = own[np.lexsort((c.cost[own], excess[own], np.asarray(broken)[own], column[own]))]
    first = np.concatenate(([True], column[order][1:] != column[order][:-1]))
    return {int(column[i]): int(i) for i in order[first]}


def _exclusion(world: World, choice: Choice, kind: str, i: int) -> Exclusion:
    verdicts = choice.verdicts
    code = next((name for name in _CONDITIONS if not getattr(verdicts, name)[i]), "dearer")
    reason, change = _words(world, choice, code, i)
    if kind == "offer":
        offer = world.market.offers[int(world.candidates.offer[i])]
        return offer_exclusion(offer, reason, change, _CODES[code])
    accelerator = world.accelerator(i)
    room = room_of(world.snapshot, world.candidates, i)
    lessor = ""
    if kind == "lease":
        lessor = world.snapshot.leases[int(world.candidates.lease[i])].lessor
    if kind != "stock":
        name = world.snapshot.platforms[int(world.candidates.platform[i])].server.name
    else:
        name = world.snapshot.stock[int(world.candidates.stock[i])].name
    return Exclusion(
        kind, accelerator.slug, reason, change, _CODES[code], lessor, instance=name, mode=world.mode(i),
        region="" if room is None else room.site.name,
    )  # fmt: skip


_CODES = {
    "exportable": "export", "resident": "residence", "ends": "spot", "exact": "accuracy", "in_time": "time",
    "ordered": "lead_time", "housed": "site", "sized": "size", "affordable": "budget", "dearer": "price",
}  # fmt: skip


def _words(world: World, choice: Choice, code: str, i: int) -> tuple[Message, Message | None]:
    c, ways, limits = world.candidates, world.ways, world.request.constraints
    way = int(c.way[i])
    accelerator = world.accelerator(i)
    if code == "exportable":
        note = (world.snapshot.export_notes or {}).get(accelerator.slug, "")
        return (
            msg("May not be bought for use here: %(note)s", note=note),
            msg("An export licence, or another accelerator"),
        )
    if code == "resident":
        return (
            msg(
                "Data may not leave the country; this room is in %(where)s",
                where=_land(world, i),
            ),
            msg("A room in %(country)s", country=world.country),
        )
    if code == "ends":
        return (
            msg("On spot this would never end: it is reclaimed faster than it advances"),
            msg("Fewer instances, or checkpoints that take less time"),
        )
    if code == "exact":
        return (
            msg(
                "Accuracy loss of %(loss)s %%, above the limit of %(limit)s %%",
                loss=round(100 * float(ways.accuracy_loss[way]), 2),
                limit=round(100 * (limits.accuracy_loss_limit or 0.0), 2),
            ),
            msg("Allow a loss of %(loss)s %%", loss=round(100 * float(ways.accuracy_loss[way]), 2)),
        )
    if code == "in_time":
        return time_words(float(c.seconds[i]), float(ways.limit[way]))
    if code == "ordered" and limits.need_by is not None:
        day = ready_on(accelerator, world.snapshot.on)
        return (
            timing(accelerator, world.snapshot.on),
            msg("Need it by %(day)s or later", day=day.isoformat()),
        )
    if code == "sized":
        server = world.snapshot.platforms[int(c.platform[i])].server
        held = int(c.instances[i]) * server.accelerators
        return (
            msg(
                "It holds %(held)s cards and %(needed)s are needed: most of it would wait for other work",
                held=held,
                needed=int(ways.cards[way]),
            ),
            msg("A need of at least %(cards)s cards", cards=-(-held // OVERSIZE)),
        )
    room = room_of(world.snapshot, c, i)
    if code == "housed" and room is not None:
        server = world.snapshot.platforms[int(c.platform[i])].server
        return misfit(room.site, server, int(c.instances[i]))
    if code == "affordable" and world.budget is not None:
        amount = money(float(c.amount[i]), world.currency)
        return (
            msg("Takes %(amount)s, above the budget of %(budget)s", amount=amount.about(), budget=str(world.budget)),
            msg("A budget of %(amount)s", amount=amount.about()),
        )  # fmt: skip
    return _dearer(world, choice, i)


def _land(world: World, i: int) -> str:
    """Country of the room in which the cards of candidate `i` stand."""
    room = room_of(world.snapshot, world.candidates, i)
    if room is not None:
        return room.country
    return world.snapshot.stock[int(world.candidates.stock[i])].country


def time_words(seconds: float, limit: float) -> tuple[Message, Message]:
    """A run that is too long, or a service that is too slow."""
    if limit < 3600:
        return (
            msg(
                "Answers after %(have)s ms, above the limit of %(limit)s ms",
                have=round(seconds * 1000),
                limit=round(limit * 1000),
            ),
            msg("Allow %(have)s ms", have=math.ceil(seconds * 1000)),
        )
    return (
        msg(
            "Takes %(have)s days at best, above the limit of %(limit)s days",
            have=round(seconds / 86_400, 1),
            limit=round(limit / 86_400, 1),
        ),
        plural(
            math.ceil(seconds / 86_400),
            msg("Allow one day"),
            msg("Allow %(have)s days", have=math.ceil(seconds / 86_400)),
        ),
    )


def _dearer(world: World, choice: Choice, i: int) -> tuple[Message, Message | None]:
    """Beaten by a plan that costs less and is not slower; else only beyond what is shown."""
    c = world.candidates
    mine = money(float(c.cost[i]), world.currency)
    winner = _beaten_by(world, choice, i)
    if winner is None:
        return (
            msg("Costs %(cost)s; cheaper plans of the same kind are shown", cost=mine.about()),
            msg("Look at it by naming its accelerator in the request"),
        )
    best = money(float(c.cost[winner]), world.currency)
    reason = msg(
        "Costs %(cost)s; %(name)s does it for %(best)s and no slower",
        cost=mine.about(),
        name=world.accelerator(winner).name,
        best=best.about(),
    )
    if c.offer[i] < 0 or not c.cost[i]:
        return reason, msg(
            "%(share)s %% less", share=math.ceil(100 * (1 - float(c.cost[winner] / c.cost[i])))
        )
    offer = world.market.offers[int(c.offer[i])]
    # every line of a bill is in proportion to the price, but for those of the data
    data = 0.0
    if world.data is not None:
        data = float(
            world.data.amounts(held_hours(world.ways, c.way, c.hours)[[i]], c.offer[[i]])[0]
        )
    share = (float(c.cost[winner]) - data) / (float(c.cost[i]) - data)
    if share <= 0:
        return reason, None
    price = offer.price * to_decimal(share)
    digits = minor_digits(price.currency) + 2
    return reason, msg(
        "A price of at most %(price)s %(currency)s per instance-hour instead of %(now)s",
        price=f"{price.amount:.{digits}f}",
        currency=price.currency,
        now=f"{offer.price.amount.normalize():f}",
    )


def _beaten_by(world: World, choice: Choice, i: int) -> int | None:
    c, loss = world.candidates, world.ways.accuracy_loss
    rivals = choice.ranked
    better = (
        (c.cost[rivals] <= c.cost[i])
        & (c.seconds[rivals] <= c.seconds[i] * (1 + 1e-9))
        & (loss[c.way[rivals]] <= loss[c.way[i]] + 1e-12)
    )
    found = rivals[better]
    return int(found[0]) if found.size else None


def _too_small(world: World) -> list[Exclusion]:
    """Offers whose instances hold fewer cards than the work needs in one server."""
    c, ways = world.candidates, world.ways
    priced = set(c.offer.tolist())
    least: dict[str, int] = {}
    for index, linked in zip(ways.accelerator.tolist(), ways.linked.tolist(), strict=True):
        slug = world.accelerators[index].slug
        least[slug] = min(least.get(slug, linked), linked)
    return [
        offer_exclusion(
            offer,
            plural(
                offer.accelerators,
                msg(
                    "Its instances hold one card; the work needs %(need)s linked in one server",
                    need=least[offer.accelerator],
                ),
                msg(
                    "Its instances hold %(have)s cards; the work needs %(need)s linked in one server",
                    have=offer.accelerators,
                    need=least[offer.accelerator],
                ),
            ),
            msg("An instance of %(need)s cards", need=least[offer.accelerator]),
            "link",
        )
        for row, offer in enumerate(world.market.offers)
        if row not in priced and offer.accelerator in least
    ]


_NOT_PAID_SO = (
    msg("No offer in the catalogue is paid this way"),
    msg("Enter an offer or a quotation with this way of paying"),
)
_NO_SERVER = (
    msg("No server in the catalogue has a price"),
    msg("Enter a server price or a quotation"),
)
_NO_ROOM = (
    msg("No room of the organisation is described"),
    msg("Describe a room: power, cooling, racks and what is in use"),
)
_MISSING = {
    PaymentMode.SUBSCRIPTION: (
        msg("No price by the month is in the catalogue"),
        msg("Enter a reserved price with a term of one month"),
    ),
    PaymentMode.LEASED: (
        msg("No quotation of a lessor is in the catalogue"),
        msg(
            "Ask lessors for monthly rate, months, deposit and the price to keep it, and enter it under Leases"
        ),
    ),
}


def _payment(mode: PaymentMode, reason: Message, change: Message) -> Exclusion:
    return Exclusion("payment", "", reason, change, "unsold", mode=str(mode))


def _unsold(world: World) -> list[Exclusion]:
    """Ways of paying that the catalogue has no price for. They are named, not passed over."""
    sold = {str(offer.mode) for offer in world.market.offers} | {
        exclusion.mode for exclusion in world.market.refused
    }
    if world.snapshot.leases:
        sold.add(str(PaymentMode.LEASED))
    bought = (PaymentMode.OWNED, PaymentMode.COLOCATED)
    found = [
        _payment(mode, *_MISSING.get(mode, _NOT_PAID_SO))
        for mode in PaymentMode
        if mode not in bought and str(mode) not in sold
    ]
    if not world.snapshot.platforms:
        found += [_payment(mode, *_NO_SERVER) for mode in bought]
    elif not world.snapshot.rooms:
        found.append(_payment(PaymentMode.OWNED, *_NO_ROOM))
    if not any(stock.free for stock in world.snapshot.stock):
        found.append(
            Exclusion(
                "payment", "", msg("No owned accelerator is free"),
                msg("Accepted cards that are free appear here by themselves"), "unsold", mode=REUSED,
            )
        )  # fmt: skip
    return found


def money(amount: float, currency: str) -> Money:
    """A search's float as money, at the currency's minor unit."""
    return Money(to_decimal(amount), currency).rounded()


def cost_of(c: Candidates, i: int, currency: str) -> Money:
    """Cost of candidate `i` as the search has it."""
    return money(float(c.cost[i]), currency)
