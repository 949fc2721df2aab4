"""Where the pooled requests would run cheapest: free owned cards, on demand or spot, month by month."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from catalog.reference import accelerator_label
from core.errors import DomainError
from core.models import User
from core.money import Money
from core.organisation import organisation
from planning.economics import defaults
from planning.economics import placement as engine
from planning.economics.exact import to_decimal
from planning.economics.placement import Placement, Workload
from planning.economics.spot import expected_hours, reclaim_mtbf_hours
from planning.economics.types import HOURS_PER_MONTH, Offer, PaymentMode
from planning.models.plans import PaymentChoice
from planning.models.requests import CapacityRequest, Residence
from planning.places import country_of_zone
from planning.selectors.portfolio import DAYS, Wanted, portfolio
from planning.study.search.costs import idle_hour_cost
from planning.study.search.market import with_terms
from planning.study.search.places import country_of
from planning.study.search.purchase_tax import PurchaseTax, kept_factor
from planning.study.search.snapshot import Snapshot
from planning.study.workloads import ONLINE

MONTHS = 12
MOST = 40  # requests placed at once, those with most cards: the page answers while one waits
SECONDS = 4.0  # for the programme
CHECKPOINT_HOURS = 1 / 60  # of work that does not say how long it takes to save
RENTED = (PaymentMode.ON_DEMAND, PaymentMode.RESERVED_1Y, PaymentMode.SPOT)


@dataclass(frozen=True, slots=True)
class Placed:
    """The placement, and the requests that it does not speak of, with the reason why."""

    placement: Placement | None  # None: there is nothing to place
    requests: dict[str, CapacityRequest]  # by the workload's name
    beyond: int  # requests that were too many


def placed(user: User, market: Snapshot, tax: PurchaseTax | None) -> Placed:
    """The cheapest placement of the requests that `user` may see and that have a plan, at the prices of `market`.

    Rents bear the organisation's `tax` where it is not reclaimed. A reserved year is paid for the month with most cards
    in it, twelve times. Terms of three years are no pool: what is asked for is known for twelve months. Data that may
    not leave the country stays in pools that stand there.
    """
    with defaults.corrected(market.costs):
        return _placed(user, market, tax)


def _placed(user: User, market: Snapshot, tax: PurchaseTax | None) -> Placed:
    found = portfolio(user)
    wanted = [one for pool in found.pools for one in pool.wanted if one.open]
    wanted.sort(key=lambda one: (-one.open, one.request.number))
    kept = wanted[:MOST]
    requests = {one.request.reference: one.request for one in kept}
    if not kept:
        return Placed(None, requests, 0)
    org = organisation()
    home = country_of_zone(org.time_zone)
    slugs = {one.plan.accelerator_slug for one in kept}
    pools = _pools(market, org.currency, slugs, home, kept_factor(tax))
    answer = None
    if pools:
        workloads = [_workload(one, found.start.toordinal(), home) for one in kept]
        answer = engine.place(workloads, pools, max_seconds=SECONDS)
    return Placed(answer, requests, len(wanted) - len(kept))


def _workload(one: Wanted, start: int, home: str) -> Workload:
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
        may_leave=revision.data_residence != Residence.ORGANISATION,
        country=home if revision.data_residence == Residence.COUNTRY else "",
        checkpointable=revision.interruptible,
        accelerators=frozenset({one.plan.accelerator_slug}),
    )


def _pools(
    market: Snapshot, currency: str, slugs: set[str], home: str, factor: float
) -> list[engine.Pool]:
    """Free owned cards at the cost of their power, and of each accelerator the cheapest place on demand, reserved for a
    year and on spot: of all, and of those in the country."""
    found = []
    cards = {accelerator.slug: accelerator for accelerator in market.accelerators}
    for stock in market.stock:
        accelerator = cards.get(stock.accelerator)
        hourly = None if accelerator is None else idle_hour_cost(accelerator, currency, market)
        if stock.accelerator in slugs and stock.free and hourly is not None:
            name = f"{stock.name} · {accelerator_label(stock.accelerator)}"
            found.append(
                engine.Pool(name, PaymentMode.OWNED, stock.accelerator, hourly, (float(stock.free),) * MONTHS,
                            country=stock.country or home)
            )  # fmt: skip
    for slug in sorted(slugs):
        for mode in RENTED:
            offers = [
                o for o in with_terms(market.offers) if (o.accelerator, o.mode) == (slug, mode)
            ]
            there = [o for o in offers if country_of(o.region) == home]
            both = (
                _cheapest(market, offers, currency, factor),
                _cheapest(market, there, currency, factor),
            )
            found += list({pool.name: pool for pool in both if pool is not None}.values())
    return found


def _cheapest(
    market: Snapshot, offers: Sequence[Offer], currency: str, factor: float
) -> engine.Pool | None:
    """The cheapest card-hour of `offers`; `factor`: the tax in it that is not reclaimed."""
    priced: list[tuple[Money, Offer]] = []
    for offer in offers:
        try:
            price = market.table.unit_price(offer.price, currency)
        except DomainError:  # named by the studies: no rate leads to the currency
            continue
        each = price.amount * to_decimal(factor) / offer.accelerators
        priced.append((Money(each, currency), offer))
    if not priced:
        return None
    hourly, offer = min(priced, key=lambda pair: pair[0].amount)
    stretch = 1.0
    if offer.mode is PaymentMode.SPOT:
        share = offer.reclaim_per_month
        if share is None:
            share = defaults.value("spot.reclaim_per_month")
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
    name = " · ".join(
        (
            *offer.place[:2],
            accelerator_label(offer.accelerator),
            str(PaymentChoice(str(offer.mode)).label),
        )
    )
    where = country_of(offer.region) or ""
    if offer.commitment_months:
        term = hourly * (MONTHS * HOURS_PER_MONTH)
        free = Money(Decimal(0), hourly.currency)
        return engine.Pool(
            name,
            offer.mode,
            offer.accelerator,
            free,
            (1e6,) * MONTHS,
            committed=term.rounded(),
            country=where,
        )
    return engine.Pool(
        name, offer.mode, offer.accelerator, hourly, (1e6,) * MONTHS, stretch=stretch, country=where
    )
