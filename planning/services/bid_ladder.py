"""What each ceiling would have bought over a price history that a person brings. Nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.imports import check_size, decode
from core.money import Money
from planning.economics import bids, price_history
from planning.economics.bids import BidJob, BidOutcome
from planning.economics.checks import Floats
from planning.economics.price_history import PriceHistory


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The rungs, the history under them, and what people usually bid."""

    rungs: tuple[BidOutcome, ...]
    prices: PriceHistory
    suggested: Money
    week: Floats | None  # mean price of each hour of the week; None: less than a week is known


def bid_ladder(
    content: bytes,
    *,
    job: BidJob,
    on_demand: Money,
    series: str = "",
    encoding: str = "",
    shares: Sequence[float] = bids.DEFAULT_SHARES,
    utc_offset_hours: float = 0.0,
) -> Ladder:
    """The ladder over a CSV (`timestamp,price[,currency,zone,instance_type]`) or the JSON of AWS or Alibaba Cloud.

    Raises EncodingNeeded, or InputError: on a file beyond core.imports.MAX_BYTES, a gap, several series or currencies,
    a negative price, two prices at one time, a currency other than the on-demand price's, or work
    that may not be stopped.
    """
    check_size(len(content))
    text, _encoding = decode(content, encoding)
    read = (
        price_history.parse_json
        if text.lstrip("\ufeff \r\n\t").startswith("{")
        else price_history.parse_csv
    )
    points = read(
        text.lstrip("\ufeff"),
        currency=on_demand.currency if read is price_history.parse_csv else None,
    )
    prices = price_history.history(points, series=series or None)
    rungs = bids.ladder(prices, job, on_demand, shares)
    week = None
    if prices.end_hour >= 168:
        week = price_history.hour_of_week_means(prices, utc_offset_hours=utc_offset_hours)
    return Ladder(rungs, prices, bids.suggested_ceiling(on_demand), week)
