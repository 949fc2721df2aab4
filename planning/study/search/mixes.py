"""A service paid as a mix: a reserved base, on demand for the peaks, spot for what may be stopped.

Of each accelerator the way and the place that serve it cheapest in one mode are tried as a mix as well. The split is
the newsvendor optimum of ``economics.funnel`` over every hour of the service; cards come in whole instances.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from core.errors import InputError
from core.messages import Message, msg, plural
from core.money import Money
from planning.economics import defaults, exact, funnel, load_shape
from planning.economics.spot import expected_hours, reclaim_mtbf_hours
from planning.economics.types import HOURS_PER_MONTH, Offer, PaymentMode
from planning.study import load_series
from planning.study.request import StudyRequest
from planning.study.search.costs import Candidates, none
from planning.study.search.market import Market
from planning.study.search.snapshot import Snapshot
from planning.study.search.ways import Floats, Ways
from planning.study.workloads import ONLINE

TRIED = 16  # accelerators, those that cost least in one mode
LONGEST = 3 * 8760  # hours that a mix looks ahead
RESTART_HOURS = 10 / 3600  # a stoppable request is sent again
USUAL_SHAPE = "office"
DIFFERS = 0.1  # share by which requests a day of the file and of the request may differ unsaid
TERMS = (PaymentMode.RESERVED_1Y, PaymentMode.RESERVED_3Y)


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """One way, at one place, split over the modes that the place sells."""

    way: int
    base: Offer  # the reserved one
    peak: Offer  # on demand, at the same place
    spare: Offer | None  # spot there, where some of the load may be stopped
    wanted: funnel.Demand  # cards in whole instances, hour by hour
    prices: (
        funnel.FunnelPrices
    )  # of a card-hour, in the study's currency; the reserved one with its whole terms
    split: funnel.FunnelSplit
    terms: int  # of the commitment, one after the other; 0: nothing is reserved

    @property
    def instances(self) -> int:
        """At the peak."""
        return round(float(self.wanted.cards.max())) // self.peak.accelerators


def shape_of(request: StudyRequest) -> tuple[str, bool]:
    """The shape of the week, and whether it was told."""
    told = request.workload.get("load_shape")
    return (str(told), True) if told else (USUAL_SHAPE, False)


def mixed(
    request: StudyRequest,
    ways: Ways,
    hired: Candidates,
    market: Market,
    snapshot: Snapshot,
    currency: str,
    *,
    price_factor: float = 1.0,
) -> tuple[Candidates, tuple[Mix, ...]]:
    """Mixes for the service of `request`; none for work that is no service, or where no place sells a term."""
    if request.kind not in ONLINE or not len(hired) or market.table is None:
        return none(), ()
    found: list[Mix] = []
    for way, row in _tried(ways, hired, market):
        peak = market.offers[row]
        hours = round(float(ways.span_hours[way]))
        if hours > LONGEST:
            continue
        wanted = _demand(request, ways, way, peak.accelerators, hours, snapshot.on)
        spare, stretch = _spot(request, peak, snapshot)
        alone = False  # without a reserved base all terms are the same
        for base in _terms(market, peak):
            mix = _mix(way, base, peak, spare, stretch, wanted, snapshot, currency, price_factor)
            if mix is not None and not (alone and mix.terms == 0):
                found.append(mix)
                alone = alone or mix.terms == 0
    return _candidates(found, ways), tuple(found)


def _tried(ways: Ways, hired: Candidates, market: Market) -> list[tuple[int, int]]:
    """(way, row of the on-demand offer): of each accelerator the cheapest on demand and the cheapest reserved."""
    good = np.flatnonzero(ways.within[hired.way] & np.isfinite(hired.cost))
    order = good[np.argsort(hired.cost[good], kind="stable")]
    on_demand = {
        (offer.place, offer.accelerator): row
        for row, offer in enumerate(market.offers)
        if offer.mode is PaymentMode.ON_DEMAND and offer.upfront is None
    }
    kept: dict[tuple[int, bool], tuple[int, int]] = {}
    for i in order:
        way, offer = int(hired.way[i]), market.offers[int(hired.offer[i])]
        row = on_demand.get((offer.place, offer.accelerator))
        kind = (int(ways.accelerator[way]), offer.mode is PaymentMode.ON_DEMAND)
        if row is not None and kind not in kept:
            kept[kind] = (way, row)
        if len(kept) == 2 * TRIED:
            break
    return list(dict.fromkeys(kept.values()))


def _terms(market: Market, peak: Offer) -> list[Offer]:
    rows = market.by_accelerator[peak.accelerator]
    return [
        offer
        for row in rows
        if (offer := market.offers[int(row)]).place == peak.place and offer.mode in TERMS
    ]


def _demand(
    request: StudyRequest, ways: Ways, way: int, lot: int, hours: int, on: date
) -> funnel.Demand:
    """Cards wanted in each hour, in whole instances, and how many of them may be stopped."""
    layout = ways.layout[way]
    replicas, each = int(layout["replicas"]), int(layout["accelerators_per_replica"])
    growth = float(request.workload["growth_per_month"])
    series = request.workload.get("load_series")
    months = request.workload.get("load_months")
    begin = request.constraints.start or request.constraints.need_by or on
    if series is None:
        shape, _told = shape_of(request)
        load = load_shape.course(shape, float(request.workload["peak_factor"]), hours, growth)
    else:
        load = load_series.course(series, hours, growth, months=months, first_month=begin.month)
    if months:
        load = load_shape.season(load, months, begin.month)
    cards = np.maximum(np.ceil(np.round(load * replicas, 9)), 1.0) * each
    whole: Floats = np.ceil(cards / lot) * lot
    share = float(request.workload.get("stoppable_share") or 0.0)
    above = np.floor((whole - whole.min()) * share / lot) * lot
    return funnel.demand(whole, above)


def _spot(request: StudyRequest, peak: Offer, snapshot: Snapshot) -> tuple[Offer | None, float]:
    """Spot at the same place for what may be stopped, and how many hours an hour of work takes there."""
    if not request.workload.get("stoppable_share"):
        return None, 1.0
    for offer in snapshot.offers:
        if (offer.place, offer.accelerator, offer.mode) == (
            peak.place, peak.accelerator, PaymentMode.SPOT,
        ):  # fmt: skip
            share = offer.reclaim_per_month or defaults.value("spot.reclaim_per_month")
            wall = expected_hours(
                1.0,
                mtbf_hours=reclaim_mtbf_hours(share, 1),
                checkpoint_hours=RESTART_HOURS,
                restart_hours=defaults.value("spot.restart_minutes") / 60,
                interval_hours=None,
            )
            return offer, max(float(wall), 1.0)
    return None, 1.0


def _mix(
    way: int,
    base: Offer,
    peak: Offer,
    spare: Offer | None,
    stretch: float,
    wanted: funnel.Demand,
    snapshot: Snapshot,
    currency: str,
    price_factor: float,
) -> Mix | None:
    hours = wanted.cards.size
    terms = math.ceil(round(hours / (base.commitment_months * HOURS_PER_MONTH), 9))
    held = terms * base.commitment_months * HOURS_PER_MONTH

    def card_hour(offer: Offer) -> Money:
        price = snapshot.table.unit_price(offer.price, currency) * exact.to_decimal(price_factor)
        return Money(price.amount / offer.accelerators, currency)

    reserved = card_hour(base)
    try:
        prices = funnel.FunnelPrices(
            reserved=Money(reserved.amount * held / hours, currency),
            on_demand=card_hour(peak),
            spot=None if spare is None else card_hour(spare),
            spot_stretch=stretch,
            lot=peak.accelerators,
        )
    except InputError:  # the spot price has no rate: the place is known by its other prices
        return None
    split = funnel.split(wanted, prices)
    if not split.on_demand_card_hours + split.spot_card_hours:
        return None  # all reserved: that plan stands already
    if not split.reserved_cards and not split.spot_card_hours and np.ptp(wanted.cards) == 0:
        return None  # nothing to follow: all on demand stands already
    return Mix(way, base, peak, spare, wanted, prices, split, terms if split.reserved_cards else 0)


def _candidates(mixes: list[Mix], ways: Ways) -> Candidates:
    if not mixes:
        return none()
    way = np.array([mix.way for mix in mixes], dtype=np.int64)
    cost = np.array([float(mix.split.cost.amount) for mix in mixes])
    nothing = np.full(way.size, -1, dtype=np.int64)
    return Candidates(
        way=way,
        offer=nothing,
        platform=nothing,
        stock=nothing,
        mix=np.arange(way.size, dtype=np.int64),
        room=nothing,
        lease=nothing,
        cost=cost,
        amount=cost,
        hours=ways.hours[way],
        seconds=ways.seconds[way],
        instances=np.array([mix.instances for mix in mixes], dtype=np.int64),
    )


def scaled_cost(mix: Mix, need: Floats) -> Floats:
    """Cost of the reserved base and what is rented beside it when the need is `need` times the plan. Shape of `need`"""
    grid = np.linspace(float(need.min()), float(need.max()), 25)
    cards, stoppable = mix.wanted.cards, mix.wanted.interruptible
    paid = [
        funnel.cost(funnel.Demand(cards * x, stoppable * x), mix.prices, mix.split.reserved_cards)
        for x in grid
    ]
    found: Floats = np.interp(need, grid, paid)
    return found


def notes(request: StudyRequest, mix: Mix) -> list[Message]:
    """What the mix takes, where, and what it assumes."""
    split = mix.split
    told = (
        [
            msg(
                "Nothing is reserved: up to %(peak)s cards on demand, by the hour",
                peak=round(float(mix.wanted.cards.max())),
            )
        ]
        if not mix.terms
        else _reserved_words(mix)
    )
    if mix.spare is not None and split.spot_card_hours:
        told.append(
            msg("Spot carries %(hours)s card-hours of what may be stopped", hours=round(split.spot_card_hours))
        )  # fmt: skip
    _shape, known = shape_of(request)
    series = request.workload.get("load_series")
    if series is not None:
        told += _series_words(request, series)
    elif not known:
        told.append(
            msg(
                "No load over the week was told: office hours are taken, %(peak)s times the mean at the peak",
                peak=request.workload["peak_factor"],
            )
        )
    told.append(
        msg("The service follows the load by the hour: replicas start and stop by themselves")
    )
    return told


def _series_words(request: StudyRequest, series: Mapping[str, Any]) -> list[Message]:
    """Whose hours the split follows, and where the file and the request differ in how much there is."""
    if load_series.is_week(series):
        return [
            msg("The split follows the week as it was told (busiest hour %(peak)s times the mean)",
                peak=round(load_series.peak_over_mean(series), 2))
        ]  # fmt: skip
    found = [
        msg(
            "The split follows %(hours)s hours of load from a file (from %(day)s; busiest %(peak)s times the mean)",
            hours=load_series.hours_of(series), day=str(series["start"])[:10],
            peak=round(load_series.peak_over_mean(series), 2),
        )
    ]  # fmt: skip
    measured = load_series.requests_per_day(series)
    asked = float(request.workload["requests_per_day"])
    if measured is not None and abs(measured / asked - 1.0) > DIFFERS:
        found.append(
            msg("By the file there are %(measured)s requests a day; the request says %(asked)s, and that sizes it",
                measured=round(measured), asked=round(asked))
        )  # fmt: skip
    return found


def _reserved_words(mix: Mix) -> list[Message]:
    split = mix.split
    facts = {
        "cards": round(split.reserved_cards),
        "months": mix.base.commitment_months * mix.terms,
        "peak": round(float(mix.wanted.cards.max()) - split.reserved_cards),
    }
    return [
        plural(
            facts["cards"],
            msg(
                "One card reserved for %(months)s months, up to %(peak)s more on demand by the hour",
                **facts,
            ),
            msg(
                "%(cards)s cards reserved for %(months)s months, up to %(peak)s on demand by the hour",
                **facts,
            ),
        ),
        msg(
            "%(share)s %% of the reserved card-hours are idle",
            share=round(100 * split.idle_share, 1),
        ),
    ]


def funnel_json(mix: Mix, factor: float = 1.0) -> dict[str, Any]:
    """The split, what it saves against each pure mode, what it risks, and a week of it; costs times `factor` (tax that
    is not reclaimed), prices as quoted."""
    split = mix.split
    last = slice(max(mix.wanted.cards.size - load_shape.HOURS_PER_WEEK, 0), None)
    cards, stoppable = mix.wanted.cards[last], mix.wanted.interruptible[last]
    above = np.maximum(cards - split.reserved_cards, 0.0)
    spot = np.minimum(above, stoppable) if mix.prices.uses_spot else np.zeros_like(above)
    return {
        "reserved_cards": round(split.reserved_cards),
        "peak_cards": round(float(mix.wanted.cards.max())),
        "on_demand_card_hours": round(split.on_demand_card_hours, 3),
        "spot_card_hours": round(split.spot_card_hours, 3),
        "idle_share": split.idle_share,
        "critical_ratio": split.critical_ratio,
        "months": mix.base.commitment_months * mix.terms,
        "prices": {
            "reserved": str(mix.prices.reserved.amount),
            "on_demand": str(mix.prices.on_demand.amount),
            "spot": None if mix.prices.spot is None else str(mix.prices.spot.amount),
        },
        "pure": [
            {
                "name": mode.name,
                "label": mode.label.to_json(),
                "cost": None if mode.cost is None else _whole(mode.cost, factor),
                "saving": mode.saving,
                "refused": None if mode.refused is None else mode.refused.to_json(),
            }
            for mode in split.pure
        ],
        "over_reservation": [
            {
                "demand_change": row.demand_change,
                "cost": _whole(row.cost, factor),
                "best": _whole(row.best_cost, factor),
                "regret": _whole(row.regret, factor),
                "idle_share": row.idle_share,
            }
            for row in funnel.over_reservation(mix.wanted, mix.prices, split.reserved_cards)
        ],
        "week": [
            [round(float(min(all_, split.reserved_cards))), round(float(up - stop)), round(float(stop))]
            for all_, up, stop in zip(cards, above, spot, strict=True)
        ],
    }  # fmt: skip


def _whole(money: Money, factor: float) -> str:
    return str(exact.times(money, factor).amount)
