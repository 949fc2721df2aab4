"""What a study knows of the market on one day: accelerators, offers, servers, rates, owned stock. Dated and hashable.

A study is computed from a snapshot and never from a live catalogue, so that the same snapshot gives the same result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Any

from core.messages import Message
from core.money import ExchangeRate, Money
from planning.economics.defaults import Curve, Default
from planning.economics.exchange import RateTable
from planning.economics.types import BillingUnit, Offer, PaymentMode, ServerPlatform, Site
from planning.estimators.types import Accelerator

SNAPSHOT = "headroom/snapshot-1"


@dataclass(frozen=True, slots=True)
class Platform:
    """A server that can be bought, at the middle of its price range, and where the price comes from."""

    server: ServerPlatform
    low: Decimal
    high: Decimal
    as_of: date
    source: str
    tax_included: bool | None = None  # in the price; None: not stated, taken as without


@dataclass(frozen=True, slots=True)
class IdleStock:
    """Accelerators of one kind that are owned already, and how many of them are free."""

    accelerator: str  # slug
    cards: int
    free: int
    name: str = ""  # where they stand
    country: str = ""  # ISO code of that place; empty: the organisation's own


@dataclass(frozen=True, slots=True)
class Room:
    """A machine room of the organisation, and what standing there costs. None: not stated, the default is taken."""

    site: Site
    pue: float | None = None
    charge: Money | None = None  # a kW and month, without electricity
    tariff: Money | None = None  # per kWh
    country: str = ""  # ISO code; empty: the organisation's own


@dataclass(frozen=True, slots=True)
class Lease:
    """What a lessor asks for one server of a model, by quotation. None: not quoted."""

    platform: str  # slug of the server
    lessor: str
    monthly: Money  # before tax
    months: int
    deposit: Money | None
    buyout: Money | None  # to keep it at the end
    as_of: date
    source: str


@dataclass(frozen=True, slots=True)
class Unpriced:
    """Something of the catalogue that has no usable price or figure, and why. It is named, never left out."""

    subject: str
    reason: Message


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The market on the day `on`."""

    on: date  # today, where the organisation is
    accelerators: tuple[Accelerator, ...]
    offers: tuple[Offer, ...]
    platforms: tuple[Platform, ...]
    rates: tuple[ExchangeRate, ...]
    stock: tuple[IdleStock, ...] = ()
    unpriced: tuple[Unpriced, ...] = ()
    export_notes: Mapping[str, str] | None = None  # slug → note; None: not known for any
    as_of: date | None = None  # the newest price in it
    origin: str = "database"  # or "shipped"
    rooms: tuple[Room, ...] = ()
    leases: tuple[Lease, ...] = ()  # of servers in `platforms`
    costs: tuple[Default | Curve, ...] = ()  # cost defaults that the organisation corrected

    @property
    def table(self) -> RateTable:
        """The exchange rates."""
        return RateTable(self.rates)

    def to_json(self) -> dict[str, Any]:
        """As plain values; :func:`snapshot_from_json` reads it back."""
        return {
            "schema": SNAPSHOT,
            "on": self.on.isoformat(),
            "as_of": self.as_of.isoformat() if self.as_of else None,
            "origin": self.origin,
            "accelerators": [_accelerator_json(a) for a in self.accelerators],
            "offers": [_offer_json(offer) for offer in self.offers],
            "platforms": [_platform_json(platform) for platform in self.platforms],
            "rates": [
                [r.base, r.quote, str(r.rate), r.as_of.isoformat(), r.source] for r in self.rates
            ],
            "stock": [_stock_json(stock) for stock in self.stock],
            "unpriced": [[u.subject, u.reason.to_json()] for u in self.unpriced],
            "rooms": [_room_json(room) for room in self.rooms],
            "leases": [_lease_json(lease) for lease in self.leases],
            "costs": [_cost_json(row) for row in self.costs],
            "export_notes": None if self.export_notes is None else dict(self.export_notes),
        }

    def hash(self) -> str:
        """SHA-256 of the canonical JSON."""
        return content_hash(self.to_json())


def content_hash(content: Any) -> str:
    """SHA-256 of `content` as canonical JSON: sorted keys, no spaces, whole floats as integers."""
    text = json.dumps(_plain(content), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Databases differ in whether they give back 1e16 as a float or an integer."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _accelerator_json(accelerator: Accelerator) -> dict[str, Any]:
    found = asdict(accelerator) | {"peak_flops": dict(accelerator.peak_flops)}
    if (
        accelerator.measured_share == 1.0
    ):  # as published: the same content, and hash, as before it was told
        del found["measured_share"]
    return found


def _offer_json(offer: Offer) -> list[Any]:
    return [
        offer.provider, offer.region, offer.instance, offer.accelerator, offer.accelerators, str(offer.mode),
        str(offer.price.amount), offer.price.currency, offer.as_of.isoformat(), offer.source, offer.confidence,
        str(offer.billing_unit), offer.minimum_seconds, offer.commitment_months,
        None if offer.upfront is None else str(offer.upfront.amount), str(offer.tax_rate), offer.reclaim_per_month,
        offer.notice_seconds,
    ]  # fmt: skip


def _offer(row: list[Any]) -> Offer:
    currency = row[7]
    return Offer(
        provider=row[0], region=row[1], instance=row[2], accelerator=row[3], accelerators=row[4],
        mode=PaymentMode(row[5]), price=Money(Decimal(row[6]), currency), as_of=date.fromisoformat(row[8]),
        source=row[9], confidence=row[10], billing_unit=BillingUnit(row[11]), minimum_seconds=row[12],
        commitment_months=row[13], upfront=None if row[14] is None else Money(Decimal(row[14]), currency),
        tax_rate=Decimal(row[15]), reclaim_per_month=row[16], notice_seconds=row[17],
    )  # fmt: skip


_SERVER = tuple(field.name for field in fields(ServerPlatform) if field.name != "price")


def _platform_json(platform: Platform) -> dict[str, Any]:
    server = platform.server
    return {
        **{name: getattr(server, name) for name in _SERVER},
        "price": str(server.price.amount),
        "currency": server.price.currency,
        "low": str(platform.low),
        "high": str(platform.high),
        "as_of": platform.as_of.isoformat(),
        "source": platform.source,
        "tax_included": platform.tax_included,
    }


def _platform(row: Mapping[str, Any]) -> Platform:
    server = ServerPlatform(
        price=Money(Decimal(row["price"]), row["currency"]), **{name: row[name] for name in _SERVER}
    )
    return Platform(
        server,
        Decimal(row["low"]),
        Decimal(row["high"]),
        date.fromisoformat(row["as_of"]),
        row["source"],
        row.get("tax_included"),
    )


def _stock_json(stock: IdleStock) -> list[Any]:
    # A country is written where it is told: what was frozen before there was one keeps its hash.
    told = [stock.country] if stock.country else []
    return [stock.accelerator, stock.cards, stock.free, stock.name, *told]


def _room_json(room: Room) -> dict[str, Any]:
    return {
        **({"country": room.country} if room.country else {}),
        "site": asdict(room.site),
        "pue": room.pue,
        **{
            name: None if price is None else [str(price.amount), price.currency]
            for name, price in (("charge", room.charge), ("tariff", room.tariff))
        },
    }


def _room(row: Mapping[str, Any]) -> Room:
    charge, tariff = (
        None if row[name] is None else Money(Decimal(row[name][0]), row[name][1])
        for name in ("charge", "tariff")
    )
    return Room(Site(**row["site"]), row["pue"], charge, tariff, row.get("country", ""))


def _lease_json(lease: Lease) -> dict[str, Any]:
    def told(money: Money | None) -> str | None:
        return None if money is None else str(money.amount)

    return {
        "platform": lease.platform, "lessor": lease.lessor, "months": lease.months,
        "monthly": told(lease.monthly), "deposit": told(lease.deposit), "buyout": told(lease.buyout),
        "currency": lease.monthly.currency, "as_of": lease.as_of.isoformat(), "source": lease.source,
    }  # fmt: skip


def _lease(row: Mapping[str, Any]) -> Lease:
    def money(text: str | None) -> Money | None:
        return None if text is None else Money(Decimal(text), row["currency"])

    return Lease(
        row["platform"], row["lessor"], Money(Decimal(row["monthly"]), row["currency"]), row["months"],
        money(row["deposit"]), money(row["buyout"]), date.fromisoformat(row["as_of"]), row["source"],
    )  # fmt: skip


def _cost_json(row: Default | Curve) -> dict[str, Any]:
    series = {name: getattr(row, name) for name in ("low", "value", "high")}
    return asdict(row) | {
        name: list(figure) if isinstance(figure, tuple) else figure
        for name, figure in series.items()
    }


def cost_from_json(row: Mapping[str, Any]) -> Default | Curve:
    """A cost default as a snapshot holds it: a number, or a series."""
    if isinstance(row["value"], list):
        series = {name: tuple(row[name]) for name in ("low", "value", "high")}
        return Curve(**{**row, **series})
    return Default(**row)


def snapshot_from_json(data: Mapping[str, Any]) -> Snapshot:
    """The snapshot that :meth:`Snapshot.to_json` wrote."""
    if data.get("schema") != SNAPSHOT:
        raise ValueError(f"not a {SNAPSHOT}: {data.get('schema')!r}")
    return Snapshot(
        on=date.fromisoformat(data["on"]),
        accelerators=tuple(Accelerator(**row) for row in data["accelerators"]),
        offers=tuple(_offer(row) for row in data["offers"]),
        platforms=tuple(_platform(row) for row in data["platforms"]),
        rates=tuple(
            ExchangeRate(base, quote, Decimal(rate), date.fromisoformat(day), source)
            for base, quote, rate, day, source in data["rates"]
        ),
        stock=tuple(IdleStock(*row) for row in data["stock"]),
        unpriced=tuple(
            Unpriced(name, Message.from_json(reason)) for name, reason in data["unpriced"]
        ),
        rooms=tuple(_room(row) for row in data.get("rooms", ())),
        leases=tuple(_lease(row) for row in data.get("leases", ())),
        costs=tuple(cost_from_json(row) for row in data.get("costs", ())),
        export_notes=data["export_notes"],
        as_of=date.fromisoformat(data["as_of"]) if data["as_of"] else None,
        origin=data["origin"],
    )


def latest_rates(rates: Iterable[ExchangeRate], on: date) -> tuple[ExchangeRate, ...]:
    """Of each pair the latest rate on or before `on`."""
    newest: dict[frozenset[str], ExchangeRate] = {}
    for rate in rates:
        pair = frozenset((rate.base, rate.quote))
        if rate.as_of <= on and (pair not in newest or newest[pair].as_of <= rate.as_of):
            newest[pair] = rate
    return tuple(sorted(newest.values(), key=lambda rate: (rate.base, rate.quote)))
