"""Prices of many candidates at once: columns of offers against arrays of hours and cards. Floats, for search only.

A study prices 100,000 candidates here and then the chosen few in `exact.charge`; both round line by line and agree to
the cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.money import minor_digits
from planning.economics import billing, checks
from planning.economics.checks import Floats
from planning.economics.exchange import RateTable
from planning.economics.types import MODES, SECONDS_PER_HOUR, Offer, PaymentMode

Ints = NDArray[np.int64]
_EPSILON = 8 * np.finfo(np.float64).eps


def round_half_up(amount: ArrayLike, digits: int) -> Floats:
    """`amount` at `digits` after the point, halves up, forgiving the last bits of a float. Amounts >= 0."""
    scale = 10.0**digits
    minor = np.asarray(amount, dtype=np.float64) * scale
    result: Floats = np.floor(minor + 0.5 + _EPSILON * minor) / scale
    return result


@dataclass(frozen=True, slots=True, eq=False)
class PriceTable:
    """Offers as columns, all in one currency. Shape (n_offers,)."""

    offers: tuple[Offer, ...]  # converted
    currency: str
    price: Floats  # per instance-hour
    upfront: Floats  # per instance and term
    tax_rate: Floats
    accelerators: Ints  # per instance
    unit_seconds: Ints
    minimum_seconds: Ints
    commitment_months: Ints
    mode: Ints  # index into MODES


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Costs of candidates, by line, in the table's currency. Shape (n_candidates,)."""

    usage: Floats
    commitment_unused: Floats
    upfront: Floats
    tax: Floats
    total: Floats
    instances: Ints


def price_table(offers: Sequence[Offer], currency: str, rates: RateTable) -> PriceTable:
    """Columns of `offers` in `currency`.

    Raises
    ------
    InputError
        If there is no offer, or no rate for the currency of one.
    """
    if not offers:
        raise checks.refuse("offers", 0, "at least one")
    converted = tuple(rates.offer(offer, currency) for offer in offers)

    def ints(values: Sequence[int]) -> Ints:
        return np.asarray(values, dtype=np.int64)

    return PriceTable(
        offers=converted,
        currency=currency,
        price=np.array([float(o.price.amount) for o in converted]),
        upfront=np.array(
            [0.0 if o.upfront is None else float(o.upfront.amount) for o in converted]
        ),
        tax_rate=np.array([float(o.tax_rate) for o in converted]),
        accelerators=ints([o.accelerators for o in converted]),
        unit_seconds=ints([o.billing_unit.seconds for o in converted]),
        minimum_seconds=ints([o.minimum_seconds for o in converted]),
        commitment_months=ints([o.commitment_months for o in converted]),
        mode=ints([MODES.index(o.mode) for o in converted]),
    )


def price_candidates(
    table: PriceTable,
    offer_index: ArrayLike,
    accelerators: ArrayLike,
    hours: ArrayLike,
    *,
    starts: ArrayLike = 1,
    span_hours: ArrayLike | None = None,
) -> Priced:
    """Cost of each candidate: `accelerators` cards for `hours` on the offer at `offer_index`. Broadcasts.

    The meaning of each line is that of :func:`planning.economics.exact.charge`.

    Raises
    ------
    InputError
        On a negative or undefined number of hours, no card, no start, or a span shorter than the use.
    """
    index = np.asarray(offer_index, dtype=np.int64)
    time = np.asarray(hours, dtype=np.float64)
    cards = np.asarray(accelerators, dtype=np.int64)
    span = time if span_hours is None else np.asarray(span_hours, dtype=np.float64)
    _require("hours", time, (time >= 0) & np.isfinite(time), ">= 0")
    _require("accelerators", cards, cards >= 1, ">= 1")
    _require("starts", starts, np.asarray(starts) >= 1, ">= 1")
    _require("span_hours", span, span >= time, ">= hours")
    digits = minor_digits(table.currency)

    instances = billing.instances_needed(cards, table.accelerators[index])
    months = table.commitment_months[index]
    used = billing.billed_seconds(
        time, table.unit_seconds[index], table.minimum_seconds[index], starts
    )
    committed = billing.committed_seconds(span, months)
    unused = np.maximum(committed - used, 0)
    rate = table.price[index]
    usage = round_half_up(rate * (used * instances) / SECONDS_PER_HOUR, digits)
    idle = round_half_up(rate * (unused * instances) / SECONDS_PER_HOUR, digits)
    upfront = round_half_up(
        table.upfront[index] * instances * billing.terms_needed(span, months), digits
    )
    before_tax = usage + idle + upfront
    tax = round_half_up(before_tax * table.tax_rate[index], digits)
    total = round_half_up(before_tax + tax, digits)
    return Priced(usage, idle, upfront, tax, total, instances)


@dataclass(frozen=True, slots=True, eq=False)
class PlaceTable:
    """Which offer sells each place in each mode: row per place, column per mode, -1 where it is not sold."""

    places: tuple[tuple[str, str, str], ...]
    offer_index: Ints  # shape (n_places, n_modes)


def place_table(table: PriceTable) -> PlaceTable:
    """The offers of `table` by place and mode; where two sell the same, the cheaper by the hour counts."""
    places: dict[tuple[str, str, str], int] = {}
    cells: dict[tuple[int, int], int] = {}
    for row, offer in enumerate(table.offers):
        place = places.setdefault(offer.place, len(places))
        cell = (place, MODES.index(offer.mode))
        if cell not in cells or table.price[row] < table.price[cells[cell]]:
            cells[cell] = row
    matrix = np.full((len(places), len(MODES)), -1, dtype=np.int64)
    for (place, mode), row in cells.items():
        matrix[place, mode] = row
    return PlaceTable(tuple(places), matrix)


def price_modes(
    table: PriceTable,
    by_place: PlaceTable,
    place_index: ArrayLike,
    accelerators: ArrayLike,
    hours: ArrayLike,
    *,
    hours_by_mode: Mapping[PaymentMode, ArrayLike] | None = None,
    span_hours: ArrayLike | None = None,
) -> dict[PaymentMode, Floats]:
    """Total cost of each candidate in each payment mode; infinite where the place does not sell it.

    `hours_by_mode` replaces the hours of one mode: spot takes its expected wall time from :mod:`spot`. Infinite hours
    there (a run that would never end, a workload that may not use the mode) cost infinity, which no search picks.
    """
    place = np.asarray(place_index, dtype=np.int64)
    cards = np.asarray(accelerators, dtype=np.int64)
    time = np.asarray(hours, dtype=np.float64)
    place, cards, time = np.broadcast_arrays(place, cards, time)
    span = (
        None if span_hours is None else np.broadcast_to(np.asarray(span_hours, float), time.shape)
    )
    replaced = hours_by_mode or {}
    costs: dict[PaymentMode, Floats] = {}
    for column, mode in enumerate(MODES):
        rows = by_place.offer_index[place, column]
        own = np.broadcast_to(np.asarray(replaced.get(mode, time), dtype=np.float64), time.shape)
        sold = (rows >= 0) & ~np.isposinf(own)
        cost = np.full(time.shape, np.inf)
        if sold.any():
            lasting = None if span is None else np.maximum(span, own)[sold]
            cost[sold] = price_candidates(
                table, rows[sold], cards[sold], own[sold], span_hours=lasting
            ).total
        costs[mode] = cost
    return costs


def _require(field: str, values: ArrayLike, good: NDArray[np.bool_], limit: str) -> None:
    if good.all():
        return
    where = int(np.flatnonzero(~np.atleast_1d(good))[0])
    broadcast = np.broadcast_to(np.asarray(values), np.shape(good))
    raise checks.refuse(f"{field}[{where}]", np.atleast_1d(broadcast).flat[where], limit)
