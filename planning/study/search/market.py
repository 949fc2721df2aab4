"""The offers of a snapshot with what follows from them: terms where only on demand is listed, and who may use what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from core.errors import InputError
from core.messages import Message, msg
from planning.economics import defaults
from planning.economics.offers import TERM_FACTORS, reserved_from_on_demand
from planning.economics.pricing import PriceTable, price_table
from planning.economics.spot import refusal
from planning.economics.types import Offer, PaymentMode
from planning.estimators.types import Accelerator
from planning.study.request import StudyRequest
from planning.study.search import places
from planning.study.search.snapshot import Snapshot, Unpriced
from planning.study.search.ways import Exclusion
from planning.study.workloads import ONLINE

NEW_SINCE_YEARS = 1  # a generation this young is not ex stock


@dataclass(frozen=True, slots=True, eq=False)
class Market:
    """Offers that may be used, as columns in the study's currency, and those that may not, with the reason."""

    table: PriceTable | None  # None: no offer may be used
    offers: tuple[Offer, ...]  # as quoted, parallel to the table
    by_accelerator: Mapping[str, np.ndarray[tuple[int], np.dtype[np.int64]]]
    refused: tuple[Exclusion, ...]
    unpriced: tuple[Unpriced, ...]


def allowed_accelerators(
    request: StudyRequest, snapshot: Snapshot
) -> tuple[tuple[Accelerator, ...], list[Exclusion]]:
    """The accelerators that the request names or that are made by an allowed maker, and the others with the reason."""
    named = set(request.accelerators)
    makers = {name.casefold() for name in request.constraints.vendors}
    kept, refused = [], []
    for accelerator in snapshot.accelerators:
        if named and accelerator.slug not in named:
            continue  # the asker compares those named only: the others did not lose
        if makers and accelerator.vendor.casefold() not in makers:
            refused.append(
                Exclusion(
                    "accelerator",
                    accelerator.slug,
                    msg("%(maker)s is not on the list of allowed makers", maker=accelerator.vendor),
                    msg("Put %(maker)s on the list", maker=accelerator.vendor),
                    "vendor",
                )
            )
            continue
        kept.append(accelerator)
    return tuple(kept), refused


def market(
    request: StudyRequest,
    snapshot: Snapshot,
    accelerators: tuple[Accelerator, ...],
    *,
    currency: str,
    country: str,
) -> Market:
    """The offers for `accelerators` that may be used, priced in `currency`."""
    slugs = {accelerator.slug for accelerator in accelerators}
    usable: list[Offer] = []
    refused: list[Exclusion] = []
    unpriced: list[Unpriced] = []
    no_spot = refusal(
        checkpointable=request.constraints.interruptible,  # a form that says yes asks for the interval
        online=request.kind in ONLINE,
        may_stop=request.constraints.interruptible,
    )
    missing: set[str] = set()
    for offer in with_terms(snapshot.offers):
        if offer.accelerator not in slugs:
            continue
        reason = _refusal(request, offer, country, no_spot)
        if reason is not None:
            refused.append(reason)
            continue
        try:
            snapshot.table.unit_price(offer.price, currency)
        except InputError as error:
            if offer.price.currency not in missing:
                missing.add(offer.price.currency)
                unpriced.append(Unpriced(f"{offer.price.currency} → {currency}", error.message))
            refused.append(
                offer_exclusion(offer, error.message, msg("Enter a dated exchange rate"), "rate")
            )
            continue
        usable.append(offer)
    rows: dict[str, list[int]] = defaultdict(list)
    for row, offer in enumerate(usable):
        rows[offer.accelerator].append(row)
    return Market(
        price_table(usable, currency, snapshot.table) if usable else None,
        tuple(usable),
        {slug: np.array(indexes, dtype=np.int64) for slug, indexes in rows.items()},
        tuple(refused),
        tuple(unpriced),
    )


def with_terms(offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """The offers and, where a place sells on demand only, the usual price of one and of three years."""
    sold = {(*offer.place, offer.accelerator, offer.mode) for offer in offers}
    derived = [
        reserved_from_on_demand(offer, mode)
        for offer in offers
        if offer.mode is PaymentMode.ON_DEMAND
        for mode in TERM_FACTORS
        if (*offer.place, offer.accelerator, mode) not in sold
    ]
    return (*offers, *derived)


def _refusal(
    request: StudyRequest, offer: Offer, country: str, no_spot: Message | None
) -> Exclusion | None:
    """Why this offer is out before its price is looked at."""
    limits = request.constraints
    if limits.data_residence == "organisation":
        return offer_exclusion(
            offer,
            msg("Data may not leave the organisation: public cloud is out, whatever it costs"),
            msg("Let the data leave the organisation"),
            "residence",
        )
    if limits.data_residence == "country":
        where = places.country_of(offer.region)
        if where != country:
            return offer_exclusion(
                offer,
                msg(
                    "Data may not leave the country; this region is in %(where)s",
                    where=where or "–",
                ),
                msg("Let the data go to %(region)s", region=offer.region),
                "residence",
            )
    if limits.region and not places.matches(offer.region, limits.region):
        return offer_exclusion(
            offer,
            msg("Not in the region asked for, %(region)s", region=limits.region),
            msg("Allow %(region)s", region=offer.region),
            "region",
        )
    if offer.mode is PaymentMode.SPOT and no_spot is not None:
        online = request.kind in ONLINE
        change = (
            None
            if online
            else msg("Say that the work may be interrupted, and how often it saves checkpoints")
        )
        return offer_exclusion(offer, no_spot, change, "spot")
    return None


def offer_exclusion(offer: Offer, reason: Message, change: Message | None, code: str) -> Exclusion:
    """`offer` with the reason for which it is out."""
    return Exclusion(
        "offer", offer.accelerator, reason, change, code, offer.provider, offer.region, offer.instance, str(offer.mode)
    )  # fmt: skip


def lead_weeks(accelerator: Accelerator, on: date) -> float:
    """From order to rack: usual for stock, longer for a generation that is new on the day. [week]"""
    new = accelerator.year is not None and on.year - accelerator.year <= NEW_SINCE_YEARS
    return defaults.value("lead_weeks.new_generation" if new else "lead_weeks.in_stock")


def ready_on(accelerator: Accelerator, on: date) -> date:
    """The day on which cards that are ordered on `on` have passed acceptance."""
    days = lead_weeks(accelerator, on) * 7 + defaults.value("acceptance.days")
    return on + timedelta(days=int(np.ceil(days)))
