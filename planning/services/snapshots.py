"""The market as a study sees it: read from the organisation's catalogue, or from the shipped files without one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import OperationalError, ProgrammingError

from catalog import reference as shipped
from catalog import selectors
from catalog.models import Accelerator as AcceleratorRow
from catalog.models import LeaseOffer, OfferPrice, PriceRecord
from catalog.services.loading import amount_of, instance_name, offer_slug, usable_spot
from core.messages import Message, msg
from core.models import ExchangeRate as RateRow
from core.money import ExchangeRate, Money
from planning import reference
from planning.economics.defaults import CURVES, DEFAULTS, Curve, Default
from planning.economics.types import COMMITMENT_MONTHS, Offer, PaymentMode, ServerPlatform
from planning.models.sites import Site
from planning.services.sites import room
from planning.stock import idle_stock
from planning.study.search.snapshot import (
    IdleStock,
    Lease,
    Platform,
    Room,
    Snapshot,
    Unpriced,
    cost_from_json,
    latest_rates,
)

# Low, high, currency, day, source, and whether tax is in it.
PlatformPrice = tuple[Decimal, Decimal, str, date, str, bool | None]

# A term of so many months, as a way of paying.
TERMS = {12: PaymentMode.RESERVED_1Y, 36: PaymentMode.RESERVED_3Y, 1: PaymentMode.SUBSCRIPTION}


def snapshot(on: date) -> Snapshot:
    """The catalogue of the database as of now, dated `on`; the shipped one where none is loaded."""
    try:
        loaded = AcceleratorRow.objects.filter(current__isnull=False).exists()
    except (OperationalError, ProgrammingError):  # no database, or one that was never migrated
        return shipped_snapshot(on)
    if loaded:
        return database_snapshot(on)
    return replace(shipped_snapshot(on), stock=tuple(idle_stock(on)), rooms=rooms())


def database_snapshot(on: date) -> Snapshot:
    """Nine queries, whatever the catalogue holds."""
    rows = selectors.accelerator_rows()
    prices = list(selectors.latest_prices(complete_only=False))
    offers, missing = _offers(prices)
    platforms, unpriced = _platforms(
        (
            {
                "slug": row.slug,
                "name": row.name,
                "accelerator": row.accelerator.slug,
                "accelerators": row.accelerator_count,
                **({} if row.current is None else row.current.figures),
                "id": row.pk,
            }
            for row in selectors.platforms()
        ),
        _platform_prices(),
    )
    rates = [
        ExchangeRate(row.base, row.quote, row.rate, row.as_of, row.source)
        for row in RateRow.objects.filter(as_of__lte=on)
    ]
    stock = tuple(idle_stock(on))
    found = _snapshot(on, rows, offers, platforms, rates, stock, [*missing, *unpriced], "database")
    leases, not_leased = standing_leases(on, {platform.server.slug for platform in platforms})
    return replace(
        found, rooms=rooms(), costs=corrected_costs(), leases=leases,
        unpriced=tuple(sorted((*found.unpriced, *not_leased), key=lambda u: u.subject)),
    )  # fmt: skip


def standing_leases(on: date, priced: Collection[str]) -> tuple[tuple[Lease, ...], list[Unpriced]]:
    """Quotations of lessors that are valid on the day: one query. A server without a price cannot be costed."""
    found, missing = [], []
    for row in LeaseOffer.objects.standing(on).select_related("platform"):
        if row.platform.slug not in priced:
            reason = msg(
                "The server has no price or power: what stands beside a lease cannot be costed"
            )
            missing.append(Unpriced(str(row), reason))
            continue
        deposit, buyout = (
            None if amount is None else Money(amount, row.currency)
            for amount in (row.deposit, row.buyout)
        )
        found.append(
            Lease(
                row.platform.slug, row.lessor, Money(row.monthly, row.currency), row.term_months, deposit, buyout,
                row.as_of, row.source,
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.platform, one.lessor, one.months))), missing


def corrected_costs() -> tuple[Default | Curve, ...]:
    """Cost defaults that the organisation holds otherwise than the product ships them: one query."""
    found: list[Default | Curve] = []
    for row in selectors.tco_defaults().order_by("key"):
        now = row.current
        shipped_one = DEFAULTS.get(row.key) or CURVES.get(row.key)
        if now is None or shipped_one is None:
            continue
        figures = (now.low, now.value, now.high)
        plain = tuple(tuple(part) if isinstance(part, list) else float(part) for part in figures)
        if plain == (shipped_one.low, shipped_one.value, shipped_one.high):
            continue
        found.append(
            cost_from_json(
                {
                    "name": row.key, "low": now.low, "value": now.value, "high": now.high, "unit": row.unit,
                    "source": now.source, "as_of": now.as_of.isoformat(), "status": now.confidence, "note": now.reason,
                }
            )
        )  # fmt: skip
    return tuple(found)


def rooms() -> tuple[Room, ...]:
    """The organisation's machine rooms that take new servers."""
    return tuple(
        Room(
            room(site),
            site.pue,
            None
            if site.charge_per_kw_month is None
            else Money(site.charge_per_kw_month, site.currency),
            None if site.tariff_per_kwh is None else Money(site.tariff_per_kwh, site.currency),
            site.country,
        )
        for site in Site.objects.in_use()
    )


def shipped_snapshot(on: date) -> Snapshot:
    """From the files of the release. Needs no database, and knows of no stock."""
    rows: Mapping[str, Any] = shipped.accelerators()
    offers: list[Offer] = []
    missing: list[Unpriced] = []
    for row in shipped.document("cloud_offers")["offers"]:
        slug, _reason = offer_slug(row)
        name = instance_name(row["cloud"], row["instance_type"])
        if slug is None or "accelerator only" in row["quality"]:
            where = f"{row['cloud']} {row['region']} {name}"
            missing.append(Unpriced(where, _NOT_WHOLE if slug else _NO_CARD))
            continue
        on_demand = amount_of(row["on_demand"])
        spot = usable_spot(on_demand, amount_of(row["spot"]))
        for mode, amount in ((PaymentMode.ON_DEMAND, on_demand), (PaymentMode.SPOT, spot)):
            if amount is None:
                continue
            offers.append(
                Offer(
                    row["cloud"], row["region"], name, slug, row["accelerator_count"], mode,
                    Money(amount, row["currency"]), date.fromisoformat(row["as_of"]), row["source"], row["confidence"],
                )
            )  # fmt: skip
    platforms, unpriced = _platforms(
        (
            {
                **row,
                "accelerators": row["accelerator_count"],
                "max_power": None if row["max_power_kw"] is None else row["max_power_kw"] * 1000,
                "weight": row["weight_kg"],
                "id": row["slug"],
            }
            for row in shipped.document("server_platforms")["server_platforms"]
        ),
        {
            row["slug"]: (
                Decimal(row["prices"][0]["low"]), Decimal(row["prices"][0]["high"]), row["prices"][0]["currency"],
                date(row["price_year"], 1, 1), row["source"], None,
            )
            for row in shipped.document("server_platforms")["server_platforms"]
            if row["prices"]
        },
    )  # fmt: skip
    rates = [
        ExchangeRate(
            row["base"], row["quote"], Decimal(row["rate"]), date.fromisoformat(row["as_of"]), row["source"]
        )
        for row in shipped.document("exchange_rates")["exchange_rates"]
    ]  # fmt: skip
    newest: dict[tuple[Any, ...], Offer] = {}
    for offer in offers:
        place = (*offer.place, offer.accelerator, offer.mode)
        if place not in newest or newest[place].as_of <= offer.as_of:
            newest[place] = offer
    return _snapshot(
        on, rows, list(newest.values()), platforms, rates, (), [*missing, *unpriced], "shipped"
    )


_WAYS: Mapping[str, Message] = {
    OfferPrice.Kind.ON_DEMAND: msg("On demand"),
    OfferPrice.Kind.SPOT: msg("Spot"),
    OfferPrice.Kind.RESERVED: msg("Reserved"),
}
_NOT_WHOLE = msg("The price covers the accelerators without their server")
_NO_CARD = msg("The accelerator behind it is not known")


def _snapshot(
    on: date,
    rows: Mapping[str, Mapping[str, Any]],
    offers: list[Offer],
    platforms: list[Platform],
    rates: Iterable[ExchangeRate],
    stock: tuple[IdleStock, ...],
    unpriced: list[Unpriced],
    origin: str,
) -> Snapshot:
    estimable = [row for row in rows.values() if reference.can_estimate(row)]
    unpriced = [
        *unpriced,
        *(
            Unpriced(row["name"], msg("No rate or bandwidth was published: it cannot be estimated"))
            for row in rows.values()
            if not reference.can_estimate(row)
        ),
    ]
    dates = [offer.as_of for offer in offers] + [platform.as_of for platform in platforms]
    return Snapshot(
        on=on,
        accelerators=tuple(
            sorted((reference.accelerator(row) for row in estimable), key=lambda a: a.slug)
        ),
        offers=tuple(sorted(offers, key=lambda o: (o.accelerator, *o.place, o.mode))),
        platforms=tuple(sorted(platforms, key=lambda p: p.server.slug)),
        rates=latest_rates(rates, on),
        stock=stock,
        unpriced=tuple(sorted(unpriced, key=lambda u: u.subject)),
        export_notes={
            row["slug"]: row["export_note"] for row in rows.values() if row["export_note"]
        },
        as_of=max(dates) if dates else None,
        origin=origin,
    )


def _offers(prices: Iterable[OfferPrice]) -> tuple[list[Offer], list[Unpriced]]:
    offers: list[Offer] = []
    missing: list[Unpriced] = []
    for price in prices:
        mode = _mode(price)
        reason: Message | None = None
        if not price.offer.complete:
            reason = _NOT_WHOLE
        elif mode is None:
            reason = msg("A term of %(months)s months is not compared", months=price.term_months)
        if reason is not None or mode is None:
            # No label in a reader's language here: the same market has one hash for everybody.
            told = msg("%(way)s: %(reason)s", way=_WAYS[price.kind], reason=reason or _NOT_WHOLE)
            missing.append(Unpriced(str(price.offer), told))
            continue
        offers.append(
            Offer(
                provider=price.offer.cloud,
                region=price.offer.region,
                instance=price.offer.instance_type,
                accelerator=price.offer.accelerator.slug,
                accelerators=price.offer.accelerator_count,
                mode=mode,
                price=price.money,
                as_of=price.as_of,
                source=price.source,
                confidence=price.confidence,
                commitment_months=COMMITMENT_MONTHS.get(mode, 0),
            )
        )
    return offers, missing


def _mode(price: OfferPrice) -> PaymentMode | None:
    if price.kind == OfferPrice.Kind.ON_DEMAND:
        return PaymentMode.ON_DEMAND
    if price.kind == OfferPrice.Kind.SPOT:
        return PaymentMode.SPOT
    return TERMS.get(price.term_months)


def _platform_prices() -> dict[Any, PlatformPrice]:
    """platform id → newest price range of new hardware: one query."""
    found: dict[Any, PlatformPrice] = {}
    rows = PriceRecord.objects.filter(platform__isnull=False).exclude(
        condition=PriceRecord.Condition.USED
    )
    for row in rows.order_by("as_of", "pk"):
        found[row.platform_id] = (
            row.low, row.high, row.currency, row.as_of, row.source, row.tax_included,
        )  # fmt: skip
    return found


def _platforms(
    rows: Iterable[Mapping[str, Any]], prices: Mapping[Any, PlatformPrice]
) -> tuple[list[Platform], list[Unpriced]]:
    platforms: list[Platform] = []
    missing: dict[str, list[Message]] = defaultdict(list)
    for row in rows:
        price = prices.get(row["id"])
        if price is None:
            missing[row["name"]].append(msg("It has no price: enter one, or a quotation"))
            continue
        if not row.get("max_power"):
            missing[row["name"]].append(
                msg("Its power is not known, so owning it cannot be costed")
            )
            continue
        low, high, currency, as_of, source, taxed = price
        units = row.get("rack_units")
        platforms.append(
            Platform(
                ServerPlatform(
                    slug=row["slug"],
                    name=row["name"],
                    accelerator=row["accelerator"],
                    accelerators=row["accelerators"],
                    price=Money((low + high) / 2, currency),
                    max_power_kw=row["max_power"] / 1000,
                    rack_units=max(round(units), 1) if units else 1,
                    weight_kg=row.get("weight"),
                    liquid_cooled="liquid" in (row.get("cooling") or ""),
                ),
                low,
                high,
                as_of,
                source,
                taxed,
            )
        )
    return platforms, [Unpriced(name, reasons[0]) for name, reasons in missing.items()]
