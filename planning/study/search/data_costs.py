"""What rented training pays beside its hours: data set and checkpoints stored, data read, weights moved out.

Prices are those of the cloud (``data_prices``); what was not told is assumed and said on every plan. The data set is
read in each epoch over the line of the object store, or once into a local cache that is paid for the time: whichever
costs less is taken, and what the other would cost is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money, minor_digits, total
from planning.economics.pricing import round_half_up
from planning.economics.types import HOURS_PER_MONTH, CostLine, Offer
from planning.economics.unit_costs import DataPrices, DataUse, data_lines
from planning.estimators.architecture import total_parameters
from planning.study.model import KnownModel
from planning.study.request import StudyRequest
from planning.study.search.data_prices import CLOUDS, CloudData, cloud_data, price_list
from planning.study.search.snapshot import Snapshot
from planning.study.search.ways import Floats, Ints
from planning.study.workloads import TRAINING, Kind

GB = 1e9
TOKEN_BYTES = 4.0  # of text or of stored token numbers: chosen
WEIGHT_BYTES = 2.0
STATE_BYTES = 14.0  # of a parameter in a checkpoint: weights, and AdamW's three figures in 32 bits
KEPT = 2  # checkpoints at a time


@dataclass(frozen=True, slots=True)
class DataCosts:
    """What is stored and moved, and at which prices of which offers, in the study's currency."""

    use: DataUse  # of one month, read without a cache
    lists: tuple[CloudData, ...]
    list_of: Ints  # of each offer of the market its price list
    currency: str
    notes: tuple[Message, ...]

    def said(self, offer: int) -> tuple[Message, ...]:
        """What is counted with for the data at an offer."""
        return (*self.notes, self.lists[int(self.list_of[offer])].note)

    def _of(self, prices: DataPrices, hours: float, *, cached: bool) -> tuple[CostLine, ...]:
        use = DataUse(
            stored_gb=self.use.stored_gb,
            months=hours / HOURS_PER_MONTH,
            snapshots_gb=self.use.snapshots_gb,
            egress_gb=self.use.egress_gb,
            dataset_gb=self.use.dataset_gb,
            epochs=self.use.epochs,
            cached=cached,
        )
        return data_lines(use, prices, self.currency)

    def lines(self, hours: float, offer: int) -> tuple[tuple[CostLine, ...], Message | None]:
        """Exact lines of a run of `hours` at an offer, and what the other way to read the data would cost."""
        prices = self.lists[int(self.list_of[offer])].prices
        read, kept = (self._of(prices, hours, cached=cached) for cached in (False, True))
        cost_read, cost_kept = (
            total((one.amount for one in lines), self.currency) for lines in (read, kept)
        )
        if self.use.epochs <= 1:
            return read, None
        if cost_kept.amount < cost_read.amount:
            return kept, msg(
                "Data read from a local cache for %(this)s; read in every epoch it would cost %(other)s",
                other=cost_read.about(), this=cost_kept.about(),
            )  # fmt: skip
        return read, msg(
            "Data read from the object store in every epoch for %(this)s; with a local cache it would cost %(other)s",
            other=cost_kept.about(), this=cost_read.about(),
        )  # fmt: skip

    def amounts(self, hours: Floats, offers: Ints) -> Floats:
        """The same totals as floats, rounded line by line. Shape of `hours`"""
        found = np.empty(hours.shape)
        which = self.list_of[offers]
        for number, one in enumerate(self.lists):
            own = which == number
            if own.any():
                found[own] = self._amounts(one.prices, hours[own])
        return found

    def _amounts(self, prices: DataPrices, hours: Floats) -> Floats:
        digits = minor_digits(self.currency)
        months = np.asarray(hours, dtype=np.float64) / HOURS_PER_MONTH
        moved = total(
            (x.amount for x in self._of(prices, 0.0, cached=False) if x.name == "egress"),
            self.currency,
        )  # in tiers: exact, and the same however long the run is

        def line(quantity: Floats | float, price: Money | None) -> Floats:
            each = 0.0 if price is None else float(price.amount)
            found: Floats = round_half_up(np.asarray(quantity) * each, digits)
            return found

        use = self.use
        common = (
            line(use.stored_gb * months, prices.storage_gb_month)
            + line(use.snapshots_gb * months, prices.snapshot_gb_month)
            + float(moved.amount)
        )
        read = line(use.dataset_gb * use.epochs, prices.read_gb)
        if use.epochs <= 1:
            found: Floats = common + read
            return found
        kept = line(use.dataset_gb, prices.read_gb) + line(
            use.dataset_gb * months, prices.cache_gb_month
        )
        found = common + np.minimum(read, kept)
        return found


def data_costs(
    request: StudyRequest,
    known: KnownModel | None,
    snapshot: Snapshot,
    currency: str,
    offers: Sequence[Offer] = (),
) -> tuple[DataCosts | None, list[Message]]:
    """The data of a training run at each of `offers`; None, with the reason, where it is not known or has no price."""
    if request.kind not in TRAINING or known is None:
        return None, []
    told = {**request.workload, **request.options}
    epochs = float(told.get("epochs") or 1.0)
    notes: list[Message] = []
    size = _size(request, told, epochs, notes)
    if size is None:
        return None, [
            msg(
                "The size of the data set was not told: storing and reading it is in no plan's cost"
            )
        ]
    named = [(price_list(offer), offer.provider) for offer in offers]
    named = [(name, "" if name in CLOUDS else provider) for name, provider in named]
    numbers = {one: number for number, one in enumerate(dict.fromkeys(named))}
    try:
        lists = tuple(cloud_data(*one, snapshot, currency) for one in numbers)
    except InputError as error:
        return None, [error.message]
    parameters = total_parameters(known.architecture)
    adapters = request.kind == Kind.LORA
    use = DataUse(
        stored_gb=(size + parameters * WEIGHT_BYTES) / GB,
        snapshots_gb=0.0 if adapters else KEPT * STATE_BYTES * parameters / GB,
        egress_gb=0.0 if adapters else parameters * WEIGHT_BYTES / GB,
        dataset_gb=size / GB,
        epochs=epochs,
    )
    notes.append(
        msg(
            "Data: %(gb)s GB read %(epochs)s times, %(kept)s checkpoints kept, weights moved out once",
            gb=_short(use.dataset_gb), epochs=round(epochs, 2), kept=0 if adapters else KEPT,
        )
    )  # fmt: skip
    list_of = np.array([numbers[one] for one in named], dtype=np.int64)
    return DataCosts(use, lists, list_of, currency, tuple(notes)), []


def _size(
    request: StudyRequest, told: dict[str, object], epochs: float, notes: list[Message]
) -> float | None:
    """Bytes of the data set: as told, else from tokens or samples. None: not known."""
    size = told.get("dataset_bytes")
    if size is not None:
        return float(str(size))
    if request.kind == Kind.SAMPLES:
        each = told.get("bytes_per_sample")
        return None if each is None else float(str(each)) * float(str(told["samples"])) / epochs
    notes.append(
        msg("The size of the data set was not told: %(bytes)s bytes a token are taken", bytes=round(TOKEN_BYTES))
    )  # fmt: skip
    return TOKEN_BYTES * float(str(told["tokens"])) / epochs


def _short(value: float) -> float:
    return float(f"{value:.3g}")
