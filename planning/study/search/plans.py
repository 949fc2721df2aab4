"""A plan as it is stored and shown: what, where, how paid, exact cost by line, spread, and how it came about."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.messages import Message, msg, plural
from core.money import Money, round_amount, total
from planning.economics import defaults, exact
from planning.economics.types import HOURS_PER_MONTH, CostLine, CostSheet
from planning.study.search import mixes
from planning.study.search.backing import pooled_use
from planning.study.search.choice import MIXED, REUSED, World
from planning.study.search.costs import (
    YEARS,
    idle_hour_cost,
    paid_at_order,
    reuse_cost,
    room_of,
)
from planning.study.search.holding import held, lease_of, months_of
from planning.study.search.housing import agreement
from planning.study.search.leasing import BESIDE, lease_notes, lease_order
from planning.study.search.pooled import pooled_note
from planning.study.search.purchase_tax import (
    RENT_TAX_LABEL,
    kept_factor,
    rent_tax,
    rent_tax_note,
    tax_note,
)
from planning.study.search.regret import Regrets
from planning.study.search.snapshot import Room
from planning.study.workloads import ONLINE

KEY_LENGTH = 160
RACK = 32  # cards: a unit of so many is a rack and no server
LONGEST_COURSE = 60  # months


@dataclass(frozen=True, slots=True)
class Bill:
    """What a plan costs, exactly: `amount` is to be paid for it, `cost` is the need's part of it."""

    amount: Money
    cost: Money
    lines: tuple[CostLine, ...]  # of the cost
    notes: tuple[Message, ...] = ()
    order: tuple[CostLine, ...] = ()  # of the amount, where that is not the cost
    tax_rate: float | None = (
        None  # share of the price before tax, on the lines of the order; None: no tax is set
    )


def bill(world: World, i: int) -> Bill:
    """The exact bill of candidate `i`, in the study's currency."""
    c, ways = world.candidates, world.ways
    way = int(c.way[i])
    cards, hours = int(ways.cards[way]), float(c.hours[i])
    if c.mix[i] >= 0:
        mix = world.mixes[int(c.mix[i])]
        return _rent(world, mix.split.sheet, tuple(mixes.notes(world.request, mix)))
    if c.offer[i] >= 0:
        table = world.market.table
        if table is None:
            raise ValueError("a rented plan without offers")
        sheet = exact.charge(
            table.offers[int(c.offer[i])],
            accelerators=cards,
            hours=hours,
            starts=int(ways.starts[way]),
            span_hours=max(float(ways.span_hours[way]), hours),
        )
        extra, notes = _data(world, i)
        whole = CostSheet((*sheet.lines, *extra), sheet.currency)
        if world.price_factor != 1.0:
            turned = (whole.total * exact.to_decimal(world.price_factor)).rounded()
            line = CostLine("usage", exact.LINE_LABELS["usage"], turned)
            whole, notes = CostSheet((line,), sheet.currency), ()
        return _rent(world, whole, notes)
    if c.lease[i] >= 0:
        return _leased(world, i, cards, hours)
    if c.platform[i] >= 0:
        return _bought(world, i, cards, hours)
    accelerator = world.accelerator(i)
    hourly = idle_hour_cost(accelerator, world.currency, world.snapshot)
    if hourly is None:
        raise ValueError("reuse without a price of power")
    cost = reuse_cost(hourly, ways, way)
    line = CostLine("power", msg("Power and cooling"), cost, cards * hours, "card-hour")
    return Bill(cost, cost, (line,))


def _rent(world: World, whole: CostSheet, notes: tuple[Message, ...]) -> Bill:
    """The bill of what is rented: its tax is paid with it, and in the cost where it is not reclaimed."""
    due = rent_tax(world.tax, whole.total)
    told = (*notes, rent_tax_note(world.tax, due))
    if world.tax is None:
        return Bill(whole.total, whole.total, whole.lines, told)
    taxed = (*whole.lines, CostLine("vat", RENT_TAX_LABEL, due))
    if world.tax.reclaimed:
        return Bill(whole.total + due, whole.total, whole.lines, told, taxed, world.tax.rent_rate)
    return Bill(whole.total + due, whole.total + due, taxed, told, taxed, world.tax.rent_rate)


def _goods_rate(world: World) -> float | None:
    return None if world.tax is None else world.tax.rate


def _data(world: World, i: int) -> tuple[tuple[CostLine, ...], tuple[Message, ...]]:
    """Lines of the data of the rented candidate `i`, and what was assumed about it."""
    if world.data is None:
        return (), ()
    c = world.candidates
    way = int(c.way[i])
    offer = int(c.offer[i])
    held = max(float(world.ways.span_hours[way]), float(c.hours[i]))
    lines, other = world.data.lines(held, offer)
    return lines, (*world.data.said(offer), *(() if other is None else (other,)))


def _bought(world: World, i: int, cards: int, hours: float) -> Bill:
    c = world.candidates
    platform = world.snapshot.platforms[int(c.platform[i])]
    room = room_of(world.snapshot, c, i)
    found = held(world, i)

    def converted(money: Money) -> Money:
        return world.snapshot.table.unit_price(money, world.currency).rounded()

    order = paid_at_order(world.snapshot, found.case, world.currency)
    amount = total((line.amount for line in order), world.currency)
    tax = total((line.amount for line in order if line.name == "vat"), world.currency)
    capital, cost = amount - tax, converted(found.cost)
    whole = converted(found.life_cost)
    notes = (
        plural(
            int(c.instances[i]),
            msg(
                "One server for %(capital)s before tax; over %(years)s years it costs %(life)s after resale",
                capital=capital.about(),
                years=YEARS,
                life=whole.about(),
            ),
            msg(
                "%(servers)s servers for %(capital)s before tax; over %(years)s years they cost %(life)s after resale",
                servers=int(c.instances[i]),
                capital=capital.about(),
                years=YEARS,
                life=whole.about(),
            ),
        ),
        msg(
            "This need carries %(share)s %% of that: other work is taken to use the cards for %(use)s %% of the rest",
            share=round(found.share * 100, 1),
            use=round(
                100
                * (
                    defaults.value("utilisation.owned")
                    if world.utilisation is None
                    else world.utilisation
                )
            ),
        ),
        *_unit_notes(world, i, cards),
        tax_note(world.tax, tax, included=platform.tax_included),
        *_pooled_notes(world, i),
        *_housing_notes(room),
    )
    line = CostLine(
        "share", msg("Share of the servers' whole cost"), cost, cards * hours, "card-hour"
    )
    return Bill(amount, cost, (line,), notes, order, _goods_rate(world))


def _leased(world: World, i: int, cards: int, hours: float) -> Bill:
    lease, snapshot = lease_of(world, i), world.snapshot
    if lease is None:
        raise ValueError("no lease")
    found, months = held(world, i), months_of(world, i, lease)
    order = lease_order(snapshot, lease, found.case, months, world.currency)
    tax = total((line.amount for line in order if line.name == "vat"), world.currency)
    cost = snapshot.table.unit_price(found.cost, world.currency).rounded()
    notes = (
        *lease_notes(snapshot, lease, found.case, months, found.share, world.currency),
        tax_note(world.tax, tax, included=False),  # a quotation of a lease is before tax
        *_pooled_notes(world, i),
        *_housing_notes(room_of(snapshot, world.candidates, i)),
    )
    line = CostLine(
        "share",
        msg("Share of the lease and of running the servers"),
        cost,
        cards * hours,
        "card-hour",
    )
    amount = total((one.amount for one in order), world.currency)
    return Bill(amount, cost, (line,), notes, order, _goods_rate(world))


def _pooled_notes(world: World, i: int) -> list[Message]:
    """Whether open requests of other teams would use the servers too."""
    found = world.pooled.get(world.accelerator(i).slug)
    return [] if found is None else [pooled_note(found, pooled_use(world, i))]


def _housing_notes(room: Room | None) -> list[Message]:
    """Where the servers stand, and which of the room's prices are assumed."""
    if room is None:
        return [msg("The servers are housed at colocation prices, by kW of their highest draw")]
    told = [msg("The servers stand in %(site)s", site=room.site.name)]
    if room.charge is None:
        told.append(msg("What a kW costs there is not stated: the usual colocation price is taken"))
    if room.tariff is None:
        told.append(msg("Its electricity price is not stated: the usual tariff is taken"))
    return told


def _unit_notes(world: World, i: int, cards: int) -> list[Message]:
    """The smallest unit that is sold, where it holds more cards than the need uses."""
    c = world.candidates
    each = world.snapshot.platforms[int(c.platform[i])].server.accelerators
    held_cards = int(c.instances[i]) * each
    if held_cards <= cards:
        return []
    unit = (
        msg("%(each)s in one rack", each=each)
        if each >= RACK
        else msg("%(each)s in one server", each=each)
    )
    return [
        msg(
            "Smallest unit: %(unit)s. %(held)s cards are bought, %(used)s used by this need",
            unit=unit,
            held=held_cards,
            used=cards,
        )
    ]


def key_of(world: World, i: int) -> str:
    """A short text that names candidate `i` the same way in every study of the request."""
    c, ways = world.candidates, world.ways
    way = int(c.way[i])
    parts = [world.accelerator(i).slug, str(int(ways.cards[way])), ways.precision[way]]
    if c.mix[i] >= 0:
        base = world.mixes[int(c.mix[i])].base
        parts += [*base.place, MIXED, str(base.mode)]
    elif c.offer[i] >= 0:
        offer = world.market.offers[int(c.offer[i])]
        parts += [*offer.place, str(offer.mode)]
    elif (lease := lease_of(world, i)) is not None:
        room = room_of(world.snapshot, c, i)
        stands = ["lease", lease.lessor, str(lease.months), "" if room is None else room.site.name]
        parts += [*stands, lease.platform]
    elif c.platform[i] >= 0:
        room = room_of(world.snapshot, c, i)
        stands = ["buy"] if room is None else ["own", room.site.name]
        parts += [*stands, world.snapshot.platforms[int(c.platform[i])].server.slug]
    else:
        parts += [REUSED, world.snapshot.stock[int(c.stock[i])].name]
    key = ":".join(part for part in parts if part)
    if len(key) <= KEY_LENGTH:
        return key
    return key[: KEY_LENGTH - 17] + ":" + hashlib.sha256(key.encode()).hexdigest()[:16]


def plan_json(
    world: World,
    i: int,
    *,
    spread: Regrets,
    row: int,
    roles: list[str],
    detail: dict[str, Any] | None,
    doubts: list[Message],
) -> dict[str, Any]:
    """Candidate `i` as a plan of the result; `row` is its place in `spread`."""
    c, ways = world.candidates, world.ways
    way = int(c.way[i])
    accelerator, mode = world.accelerator(i), world.mode(i)
    paid = bill(world, i)
    purchase = c.platform[i] >= 0
    cards = int(ways.cards[way])
    where = _where(world, i)
    memory = float(ways.memory_bytes[way])
    tax = tax_json(world, paid)
    summary = {
        "accelerator": accelerator.name,
        "provider": where["provider"],
        "region": where["region"],
        "instance": where["instance"],
        "hours": round(float(c.hours[i]), 3),
        "seconds": float(c.seconds[i]),
        "cost": str(paid.cost.amount),
        "precision": ways.precision[way],
        "tax": tax,
    }
    return {
        "key": key_of(world, i),
        "roles": roles,
        "kind": _kind(world, i),
        "accelerator_slug": accelerator.slug,
        "accelerator": accelerator.name,
        "vendor": accelerator.vendor,
        "cards": cards,
        "servers": int(c.instances[i]) if c.stock[i] < 0 else None,
        "mode": mode,
        "spend_kind": "purchase" if purchase else "cloud",
        "amount": str(paid.amount.amount),
        "cost": str(paid.cost.amount),
        "searched_cost": str(round_amount(exact.to_decimal(float(c.cost[i])), world.currency)),
        "currency": world.currency,
        "lines": _lines_json(paid.lines),
        "order_lines": _lines_json(paid.order),
        "tax": tax,
        "doubts": [doubt.to_json() for doubt in doubts],
        "notes": [note.to_json() for note in (*paid.notes, *_cautions(world, i))],
        **where,
        "hours": float(c.hours[i]),
        "cash": [str(paid_by) for paid_by in cash_course(world, i, paid)],
        "seconds": {"p10": float(spread.seconds[row, 0]), "p50": float(c.seconds[i]),
                    "p90": float(spread.seconds[row, 2])},
        "cost_spread": {name: round(float(spread.cost[row, column]), 2)
                        for column, name in enumerate(("p10", "p50", "p90"))},
        "regret": {"mean": round(float(spread.mean[row]), 2), "p90": round(float(spread.p90[row]), 2)},
        "accuracy_loss": float(ways.accuracy_loss[way]),
        "precision": ways.precision[way],
        "layout": dict(ways.layout[way]),
        "memory_bytes": memory if memory == memory else None,
        "capacity_bytes": accelerator.visible_bytes,
        "summary": summary,
        "funnel": mixes.funnel_json(world.mixes[int(c.mix[i])], kept_factor(world.tax)) if c.mix[i] >= 0 else None,
        "order": agreement(world, i, paid.amount) if purchase else None,
        "estimate": detail,
    }  # fmt: skip


def _lines_json(lines: tuple[CostLine, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": line.name,
            "label": line.label.to_json(),
            "amount": str(line.amount.amount),
            "quantity": line.quantity,
            "unit": line.unit,
        }
        for line in lines
        if line.amount.amount
    ]


def tax_json(world: World, paid: Bill) -> dict[str, Any] | None:
    """The tax within what is to be paid; None for what is owned already, and where no tax is set."""
    if world.tax is None or paid.tax_rate is None:
        return None
    due = (line.amount for line in paid.order if line.name == "vat")
    return {
        "amount": str(total(due, world.currency).amount),
        "rate": paid.tax_rate,
        "reclaimed": world.tax.reclaimed,
    }


def _kind(world: World, i: int) -> str:
    """How candidate `i` is come by."""
    c = world.candidates
    if c.offer[i] >= 0:
        return "offer"
    if c.mix[i] >= 0:
        return "mix"
    if c.lease[i] >= 0:
        return "lease"
    return "purchase" if c.platform[i] >= 0 else "stock"


def cash_course(world: World, i: int, paid: Bill) -> list[Decimal]:
    """What has been paid after 0, 1, 2, ... months.

    A purchase is paid at the order and then month by month for its years; tax that is reclaimed comes back in the
    first month. What is rented is paid evenly over its time,
    or over the terms that were committed to.
    """
    c, ways = world.candidates, world.ways
    way = int(c.way[i])
    if c.lease[i] >= 0:
        return _lease_course(world, i, paid)
    if c.platform[i] >= 0:
        found = held(world, i)
        reclaimed = Decimal(0)
        if world.tax is not None and world.tax.reclaimed:
            reclaimed = sum(
                (line.amount.amount for line in paid.order if line.name == "vat"), Decimal(0)
            )
        capital = paid.amount.amount - reclaimed
        factor = capital / found.capital.amount if found.capital.amount else Decimal(1)
        running = (found.life_cost.amount + found.resale.amount) * factor - capital
        months = YEARS * 12
        return [paid.amount.amount] + [
            capital + round_amount(running * n / months, world.currency)
            for n in range(1, months + 1)
        ]
    span = max(float(ways.span_hours[way]), float(c.hours[i]))
    if c.mix[i] >= 0:
        mix = world.mixes[int(c.mix[i])]
        span = max(span, mix.terms * mix.base.commitment_months * HOURS_PER_MONTH)
    if c.offer[i] >= 0:
        term = world.market.offers[int(c.offer[i])].commitment_months * HOURS_PER_MONTH
        span = term * math.ceil(round(span / term, 9)) if term else span
    months = min(max(math.ceil(round(span / HOURS_PER_MONTH, 6)), 1), LONGEST_COURSE)
    return [round_amount(paid.cost.amount * n / months, world.currency) for n in range(months + 1)]


def _lease_course(world: World, i: int, paid: Bill) -> list[Decimal]:
    """Deposit and what is bought beside at the start, then rate and running month by month; tax that is reclaimed is
    left out, and the deposit comes back after the last month."""
    lease = lease_of(world, i)
    if lease is None:
        raise ValueError("no lease")
    found, months = held(world, i), months_of(world, i, lease)
    amounts = {line.name: line.amount.amount for line in paid.order}
    deposit, tax = amounts.get("deposit", Decimal(0)), amounts.get("vat", Decimal(0))
    whole = world.snapshot.table.unit_price(found.life_cost, world.currency).amount
    beside = sum((amounts.get(name, Decimal(0)) for name in BESIDE), Decimal(0))
    if world.tax is not None and not world.tax.reclaimed and amounts["lease"]:
        beside += tax * beside / (amounts["lease"] + beside)
    shown = min(months, LONGEST_COURSE)
    course = [
        deposit + beside + round_amount((whole - beside) * n / months, world.currency)
        for n in range(shown + 1)
    ]
    if shown == months:
        course[-1] -= deposit
    return course


STACKS = {
    "AMD": "ROCm", "Google": "XLA (JAX, PyTorch/XLA)", "AWS": "Neuron SDK", "Intel": "Gaudi (SynapseAI)",
    "Huawei": "CANN (MindSpore, torch_npu)", "Cambricon": "Neuware", "Hygon": "DTK", "Kunlunxin": "XPU SDK",
    "Moore Threads": "MUSA", "Iluvatar CoreX": "CoreX", "MetaX": "MACA", "Biren": "BIRENSUPA",
    "Alibaba T-Head": "PPU SDK",
}  # fmt: skip


def _cautions(world: World, i: int) -> list[Message]:
    """What a buyer must know beside the price."""
    accelerator, way = world.accelerator(i), int(world.candidates.way[i])
    found = []
    stack = STACKS.get(accelerator.vendor)
    if stack is not None:
        found.append(
            msg(
                "Not CUDA: the software must run on %(stack)s. Try it on one card before you choose",
                stack=stack,
            )
        )
    if world.ways.layout[way].get("replicas") == 1 and world.request.kind in ONLINE:
        found.append(msg("One replica only: a failure or an update stops the service"))
    left = world.team_budgets.get("purchase" if world.candidates.platform[i] >= 0 else "cloud")
    if left is not None and world.candidates.amount[i] > float(left.amount):
        found.append(
            msg("More than the team's budget has left this quarter, %(left)s", left=str(left))
        )
    asked = world.request.workload.get("precision")
    if asked and world.ways.precision[way] != asked:
        found.append(
            msg(
                "It has no %(asked)s units: it runs in %(runs)s with loss scaling",
                asked=str(asked).upper(),
                runs=world.ways.precision[way].upper(),
            )
        )
    return found


def _where(world: World, i: int) -> dict[str, Any]:
    """Who sells it, at what price, as of when and from which source."""
    c = world.candidates
    if c.mix[i] >= 0:
        base = world.mixes[int(c.mix[i])].base
        return {
            "provider": base.provider, "region": base.region, "instance": base.instance,
            "price": None, "price_currency": base.price.currency, "price_as_of": base.as_of.isoformat(),
            "source": base.source, "confidence": base.confidence, "cards_each": base.accelerators,
        }  # fmt: skip
    if c.offer[i] >= 0:
        offer = world.market.offers[int(c.offer[i])]
        return {
            "provider": offer.provider, "region": offer.region, "instance": offer.instance,
            "price": f"{offer.price.amount.normalize():f}", "price_currency": offer.price.currency,
            "price_as_of": offer.as_of.isoformat(), "source": offer.source, "confidence": offer.confidence,
            "cards_each": offer.accelerators,
        }  # fmt: skip
    if (lease := lease_of(world, i)) is not None:
        server = world.snapshot.platforms[int(c.platform[i])].server
        room = room_of(world.snapshot, c, i)
        return {
            "provider": lease.lessor, "region": "" if room is None else room.site.name, "instance": server.name,
            "price": f"{lease.monthly.amount.normalize():f}", "price_currency": lease.monthly.currency,
            "price_as_of": lease.as_of.isoformat(), "source": lease.source, "confidence": "read",
            "cards_each": server.accelerators,
        }  # fmt: skip
    if c.platform[i] >= 0:
        platform = world.snapshot.platforms[int(c.platform[i])]
        server, room = platform.server, room_of(world.snapshot, c, i)
        return {
            "provider": "", "region": "" if room is None else room.site.name, "instance": server.name,
            "price": f"{server.price.amount.normalize():f}", "price_currency": server.price.currency,
            "price_as_of": platform.as_of.isoformat(), "source": platform.source, "confidence": "read",
            "cards_each": server.accelerators,
        }  # fmt: skip
    stock = world.snapshot.stock[int(c.stock[i])]
    return {
        "provider": "", "region": "", "instance": stock.name, "price": None, "price_currency": world.currency,
        "price_as_of": world.snapshot.on.isoformat(), "source": "", "confidence": "read", "cards_each": 1,
    }  # fmt: skip
