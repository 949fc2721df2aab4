"""Where the pooled requests would run cheapest: free owned cards, on demand or spot, month by month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.reference import accelerator_label
from core.errors import DomainError
from core.models import User
from core.money import Money
from core.organisation import organisation
from planning.economics import defaults
from planning.economics import placement as engine
from planning.economics.placement import Placement, Workload
from planning.economics.spot import expected_hours, reclaim_mtbf_hours
from planning.economics.types import HOURS_PER_MONTH, Offer, PaymentMode
from planning.models.requests import CapacityRequest, Residence
from planning.selectors.portfolio import DAYS, Wanted, portfolio
from planning.study.search.costs import idle_hour_cost
from planning.study.search.snapshot import Snapshot
from planning.study.workloads import ONLINE

MONTHS = 12
MOST = 40  # requests placed at once, those with most cards: the page answers while one waits
SECONDS = 4.0  # for the programme
CHECKPOINT_HOURS = 1 / 60  # of work that does not say how long it takes to save
RENTED = (PaymentMode.ON_DEMAND, PaymentMode.SPOT)


@dataclass(frozen=True, slots=True)
class Placed:
    """The placement, and the requests that it does not speak of, with the reason why."""

    placement: Placement | None  # None: there is nothing to place
    requests: dict[str, CapacityRequest]  # by the workload's name
    in_country: tuple[
        CapacityRequest, ...
    ]  # data may not leave the country: pools here are not told apart by it
    beyond: int  # requests that were too many


def placed(user: User, market: Snapshot) -> Placed:
    """The cheapest placement of the requests that `user` may see and that have a plan, at the prices of `market`.

    Reserved terms are no pool here: which of them is bought is what a study decides.
    """
    found = portfolio(user)
    wanted = [one for pool in found.pools for one in pool.wanted if one.open]
    wanted.sort(key=lambda one: (-one.open, one.request.number))
    in_country = [one for one in wanted if one.request.current.data_residence == Residence.COUNTRY]
    usable = [one for one in wanted if one not in in_country]
    kept = usable[:MOST]
    requests = {one.request.reference: one.request for one in kept}
    left_out = tuple(one.request for one in in_country)
    if not kept:
        return Placed(None, requests, left_out, 0)
    pools = _pools(market, organisation().currency, {one.plan.accelerator_slug for one in kept})
    answer = None
    if pools:
        workloads = [_workload(one, found.start.toordinal()) for one in kept]
        answer = engine.place(workloads, pools, max_seconds=SECONDS)
    return Placed(answer, requests, left_out, len(usable) - len(kept))


def _workload(one: Wanted, start: int) -> Workload:
    revision = one.request.current
    first, last = one.first.toordinal() - start, one.last.toordinal() - start
    edges = [(month * DAYS / MONTHS, (month + 1) * DAYS / MONTHS) for month in range(MONTHS)]
    cards = tuple(float(one.open) if first < high and last >= low else 0.0 for low, high in edges)
    months = sum(1 for value in cards if value) or 1
    hours = float(one.plan.summary.get("hours") or months * HOURS_PER_MONTH)
    online = one.request.kind in ONLINE
    return Workload(
        name=one.request.reference,
        kind=engine.Kind.CORE if online else engine.Kind.ELASTIC,
        cards=cards,
        hours_per_month=min(max(hours / months, 0.01), HOURS_PER_MONTH),
        may_leave=revision.data_residence == Residence.ANYWHERE,
        checkpointable=revision.interruptible,
        accelerators=frozenset({one.plan.accelerator_slug}),
    )


def _pools(market: Snapshot, currency: str, slugs: set[str]) -> list[engine.Pool]:
    """Free owned cards at the cost of their power, and of each accelerator the cheapest place on demand and on spot."""
    found = []
    cards = {accelerator.slug: accelerator for accelerator in market.accelerators}
    for stock in market.stock:
        accelerator = cards.get(stock.accelerator)
        hourly = None if accelerator is None else idle_hour_cost(accelerator, currency, market)
        if stock.accelerator in slugs and stock.free and hourly is not None:
            name = f"{stock.name} · {accelerator_label(stock.accelerator)}"
            found.append(
                engine.Pool(name, PaymentMode.OWNED, stock.accelerator, hourly, (float(stock.free),) * MONTHS)
            )  # fmt: skip
    for slug in sorted(slugs):
        for mode in RENTED:
            best = _cheapest(
                market,
                [o for o in market.offers if (o.accelerator, o.mode) == (slug, mode)],
                currency,
            )
            if best is not None:
                found.append(best)
    return found


def _cheapest(market: Snapshot, offers: Sequence[Offer], currency: str) -> engine.Pool | None:
    priced: list[tuple[Money, Offer]] = []
    for offer in offers:
        try:
            price = market.table.unit_price(offer.price, currency)
        except DomainError:  # named by the studies: no rate leads to the currency
            continue
        priced.append((Money(price.amount / offer.accelerators, currency), offer))
    if not priced:
        return None
    hourly, offer = min(priced, key=lambda pair: pair[0].amount)
    stretch = 1.0
    if offer.mode is PaymentMode.SPOT:
        share = offer.reclaim_per_month or defaults.value("spot.reclaim_per_month")
        stretch = max(
            float(
                expected_hours(
                    24.0,
                    mtbf_hours=reclaim_mtbf_hours(share, 1),
                    checkpoint_hours=CHECKPOINT_HOURS,
                    restart_hours=defaults.value("spot.restart_minutes") / 60,
                )
            )
            / 24.0,
            1.0,
        )
    name = " · ".join((*offer.place[:2], accelerator_label(offer.accelerator), str(offer.mode)))
    return engine.Pool(
        name, offer.mode, offer.accelerator, hourly, (1e6,) * MONTHS, stretch=stretch
    )
