"""What storing, reading and moving data costs at each cloud: its own dated prices, else usual ones, which is said.

The prices are cost defaults (``economics/defaults.json``, and what the organisation corrected of them). No cloud's
price of snapshots or of reads from its object store is known: its storage and its traffic between regions stand in.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import InputError
from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, defaults, exact
from planning.economics.types import Offer
from planning.economics.unit_costs import DataPrices
from planning.study.search import places
from planning.study.search.snapshot import Snapshot

# Clouds with prices of their own, by the names in the cost defaults.
CLOUDS = {"aws": "AWS", "azure": "Azure", "gcp": "Google Cloud", "oci": "OCI"}
USUAL, CHINA = "usual", "china"


@dataclass(frozen=True, slots=True)
class CloudData:
    """The prices of one cloud in the study's currency, and where they are from."""

    prices: DataPrices
    note: Message


def price_list(offer: Offer) -> str:
    """Whose prices hold where `offer` is: a cloud's own, those usual in China, or those usual elsewhere."""
    if places.country_of(offer.region) == "CN":
        return CHINA
    return offer.provider if offer.provider in CLOUDS else USUAL


def cloud_data(name: str, provider: str, snapshot: Snapshot, currency: str) -> CloudData:
    """The price list `name` in `currency`, for the offers of `provider`. Raises InputError without a rate."""
    if name in CLOUDS:
        return _own(name, snapshot, currency)
    note = msg(
        "Prices of storage, egress and data reads at %(cloud)s are not known: usual ones are taken",
        cloud=provider,
    )
    code = "CNY" if name == CHINA else "USD"
    try:
        return CloudData(_usual(code, snapshot, currency), note)
    except InputError:
        if code == "USD":
            raise
        return CloudData(_usual("USD", snapshot, currency), note)  # no rate leads from yuan


def _own(name: str, snapshot: Snapshot, currency: str) -> CloudData:
    storage = defaults.known(f"storage_hot.{name}_usd_per_gb_month")
    tiers = defaults.known_curve(f"egress.{name}_usd_by_tier")
    # The last tier has no end, so a cloud with one price needs no sizes.
    sizes = defaults.curve(f"egress_tiers.{name}_gb") if len(tiers.value) > 1 else ()
    if len(tiers.value) != len(sizes) + 1:
        raise checks.refuse(tiers.name, len(tiers.value), f"{len(sizes) + 1} tiers")
    hot = _price(storage.value, "USD", snapshot, currency)
    steps = tuple(
        (
            None if size is None else exact.to_decimal(size),
            _price(each, "USD", snapshot, currency).amount,
        )
        for size, each in zip((*sizes, None), tiers.value, strict=True)
    )
    prices = DataPrices(
        storage_gb_month=hot,
        snapshot_gb_month=hot,
        egress_gb=Money(steps[0][1], currency),
        egress_tiers=steps,
        egress_free_gb=exact.to_decimal(defaults.value(f"egress_free.{name}_gb")),
        read_gb=_price(
            defaults.value(f"inter_region.{name}_usd_per_gb"), "USD", snapshot, currency
        ),
        cache_gb_month=hot,
    )
    note = msg(
        "Data at %(cloud)s's prices of %(day)s (%(source)s); snapshots count as storage, reads as traffic between "
        "regions",
        cloud=CLOUDS[name], day=storage.as_of, source=storage.source.partition(":")[0],
    )  # fmt: skip
    return CloudData(prices, note)


def _usual(code: str, snapshot: Snapshot, currency: str) -> DataPrices:
    key = code.lower()
    hot = _price(defaults.value(f"storage_hot.{key}_per_gb_month"), code, snapshot, currency)
    return DataPrices(
        storage_gb_month=hot,
        snapshot_gb_month=hot,
        egress_gb=_price(defaults.value(f"egress.{key}_per_gb"), code, snapshot, currency),
        read_gb=_price(defaults.value("inter_region.usd_per_gb"), "USD", snapshot, currency),
        cache_gb_month=hot,
    )


def _price(value: float, code: str, snapshot: Snapshot, currency: str) -> Money:
    return snapshot.table.unit_price(Money(exact.to_decimal(value), code), currency)
