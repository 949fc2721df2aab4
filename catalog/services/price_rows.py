"""What becomes of each row of a price file: read, mapped, compared with what is held. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from catalog import reference
from catalog.models import (
    Accelerator,
    CloudOffer,
    Confidence,
    OfferPrice,
    PriceImport,
    PriceRecord,
    ServerPlatform,
)
from core.errors import InputError
from core.imports import Row, parse_date, parse_decimal, uses_decimal_comma
from core.messages import Message, msg
from core.money import CURRENCIES, check_amount

ABOUT = ("currency", "as_of", "source", "source_url", "confidence", "notes")
OFFER_COLUMNS = (
    "cloud", "region", "instance_type", "accelerator", "accelerator_count", "vcpu", "memory_gib", "kind",
    "term_months", "price_per_instance_hour", *ABOUT,
)  # fmt: skip
OFFER_REQUIRED = (
    "cloud", "region", "instance_type", "accelerator", "accelerator_count", "kind", "price_per_instance_hour",
    "currency", "as_of", "source",
)  # fmt: skip
HARDWARE_COLUMNS = (
    "item",
    "unit_price_low",
    "unit_price_high",
    "condition",
    "tax_included",
    *ABOUT,
)
HARDWARE_REQUIRED = ("item", "unit_price_low", "currency", "as_of", "source")
COLUMNS = {
    PriceImport.Target.OFFERS: (OFFER_COLUMNS, OFFER_REQUIRED),
    PriceImport.Target.HARDWARE: (HARDWARE_COLUMNS, HARDWARE_REQUIRED),
}
ADD, UNCHANGED, REFUSED = "add", "unchanged", "refused"


@dataclass(frozen=True, slots=True)
class Fate:
    """What will be done with one row, and the row it becomes (None unless it is added)."""

    line: int
    cells: Mapping[str, str]
    fate: str  # ADD, UNCHANGED or REFUSED
    message: Message
    price: Any = None  # unsaved OfferPrice or PriceRecord
    offer: CloudOffer | None = None  # unsaved when the offer is new as well


def plan(target: str, rows: Iterable[Row], *, today: date) -> list[Fate]:
    """The fate of every row, in order. A fixed number of queries."""
    rows = list(rows)
    if target == PriceImport.Target.OFFERS:
        return _OfferPlan(rows, today).fates()
    return _HardwarePlan(rows, today).fates()


class _Plan:
    """What both kinds of file share: walk the rows, refuse by name, never let one row stop the others."""

    amounts: tuple[str, ...] = ()

    def __init__(self, rows: list[Row], today: date) -> None:
        self.rows = rows
        self.today = today
        self.comma = uses_decimal_comma(
            row.cells.get(name, "") for row in rows for name in self.amounts
        )
        self.cards = {card.slug: card for card in Accelerator.objects.all()}
        self.seen: dict[tuple[Any, ...], tuple[int, Any]] = {}

    def fates(self) -> list[Fate]:
        result = []
        for row in self.rows:
            try:
                if row.problem is not None:
                    raise InputError("row", row.problem)
                result.append(self.fate(row))
            except InputError as error:
                result.append(Fate(row.line, row.cells, REFUSED, error.message))
        return result

    def fate(self, row: Row) -> Fate:
        raise NotImplementedError

    def text(self, row: Row, name: str, limit: int, *, default: str | None = None) -> str:
        value = row.cells.get(name, "").strip()
        if not value:
            if default is None:
                raise InputError(name, msg("%(field)s is missing", field=name))
            return default
        if len(value) > limit:
            raise InputError(
                name,
                msg("%(field)s is longer than %(limit)s characters", field=name, limit=limit),
                value=value,
                limit=limit,
            )
        return value

    def amount(self, row: Row, name: str) -> Decimal:
        value = parse_decimal(name, self.text(row, name, 40), decimal_comma=self.comma)
        return check_amount(name, value, above_zero=True, places=None)

    def whole(self, row: Row, name: str, low: int, high: int) -> int:
        text = self.text(row, name, 20)
        value = int(text) if text.isascii() and text.isdigit() else -1
        if not low <= value <= high:
            raise InputError(
                name,
                msg(
                    "%(field)s is %(value)s; it must be a whole number from %(low)s to %(high)s",
                    field=name, value=text, low=low, high=high,
                ),
                value=text,
            )  # fmt: skip
        return value

    def choice(self, row: Row, name: str, choices: Iterable[str], default: str | None) -> str:
        value = self.text(row, name, 40, default=default)
        folded = value.lower().replace("-", "_").replace(" ", "_")
        known = {choice.lower(): choice for choice in choices}
        if folded not in known:
            raise InputError(
                name,
                msg(
                    "%(field)s is %(value)s; use one of %(limit)s",
                    field=name,
                    value=value,
                    limit=", ".join(known.values()),
                ),
                value=value,
            )
        return known[folded]

    def about(self, row: Row) -> dict[str, Any]:
        """Currency, date and provenance of a row."""
        as_of = parse_date("as_of", self.text(row, "as_of", 20))
        if as_of > self.today:
            raise InputError(
                "as_of",
                msg(
                    "as_of is %(value)s; a price cannot be of a day to come",
                    value=as_of.isoformat(),
                ),
                value=as_of,
                limit=self.today,
            )
        url = self.text(row, "source_url", 500, default="")
        if url and not url.startswith(("https://", "http://")):
            raise InputError("source_url", msg("source_url is not a web address"), value=url)
        return {
            "currency": self.choice(row, "currency", CURRENCIES, None),
            "as_of": as_of,
            "source": self.text(row, "source", 400),
            "source_url": url,
            "confidence": self.choice(row, "confidence", Confidence.values, Confidence.READ),
            "notes": self.text(row, "notes", 4000, default=""),
        }

    def compared(self, fate: Fate, key: tuple[Any, ...], value: Any, held: Any) -> Fate:
        """`fate`, unless the same price is held or stands in an earlier row: never overwritten, never doubled."""
        if held is not None:
            if held == value:
                return replace(fate, fate=UNCHANGED, message=msg("Already held"), price=None)
            raise InputError(
                "price",
                msg(
                    "%(held)s is held for this day and source; prices are never overwritten. "
                    "Use another day or source",
                    held=_shown(held),
                ),
                value=_shown(value),
            )
        if key in self.seen:
            line, earlier = self.seen[key]
            if earlier == value:
                return replace(
                    fate,
                    fate=UNCHANGED,
                    message=msg("Same as line %(line)s", line=line),
                    price=None,
                )
            raise InputError(
                "price",
                msg("Line %(line)s gives another price for the same day and source", line=line),
            )
        self.seen[key] = (fate.line, value)
        return fate


def _shown(value: Any) -> str:
    """(amount, …, currency) as people read it."""
    *amounts, currency = value
    return (
        " – ".join(f"{amount.normalize():f}" for amount in dict.fromkeys(amounts)) + f" {currency}"
    )


class _OfferPlan(_Plan):
    amounts = ("price_per_instance_hour",)

    def __init__(self, rows: list[Row], today: date) -> None:
        super().__init__(rows, today)
        self.offers = {
            (o.cloud, o.region, o.instance_type, o.accelerator_id): o
            for o in CloudOffer.objects.all()
        }
        self.held = {
            (p.offer_id, p.kind, p.term_months, p.as_of, p.source): (p.amount, p.currency)
            for p in OfferPrice.objects.all()
        }

    def fate(self, row: Row) -> Fate:
        cloud = self.text(row, "cloud", 40).lower()
        region = self.text(row, "region", 60)
        instance = self.text(row, "instance_type", 120)
        name = self.text(row, "accelerator", 100)
        slug = reference.accelerator_slug(name) or (name if name in self.cards else None)
        if slug is None or slug not in self.cards:
            raise InputError(
                "accelerator",
                msg("%(name)s is not an accelerator of the catalogue", name=name),
                value=name,
            )
        card = self.cards[slug]
        count = self.whole(row, "accelerator_count", 1, 1024)
        key = (cloud, region, instance, card.pk)
        offer = self.offers.get(key)
        if offer is None:
            offer = self.offers[key] = self.new_offer(row, key, card, name, count)
        elif offer.accelerator_count != count:
            raise InputError(
                "accelerator_count",
                msg(
                    "%(offer)s has %(held)s accelerators, the row says %(value)s",
                    offer=str(offer),
                    held=offer.accelerator_count,
                    value=count,
                ),
                value=count,
            )
        kind = self.choice(row, "kind", OfferPrice.Kind.values, None)
        term = self.whole(row, "term_months", 1, 120) if kind == OfferPrice.Kind.RESERVED else 0
        about = self.about(row)
        amount = self.amount(row, "price_per_instance_hour")
        price = OfferPrice(offer=offer, kind=kind, term_months=term, amount=amount, **about)
        new = offer.pk is None
        fate = Fate(
            row.line,
            row.cells,
            ADD,
            msg("New offer and price") if new else msg("New price"),
            price,
            offer,
        )
        identity = (kind, term, about["as_of"], about["source"])
        held = None if new else self.held.get((offer.pk, *identity))
        return self.compared(fate, (*key, *identity), (amount, about["currency"]), held)

    def new_offer(
        self, row: Row, key: tuple[str, str, str, int], card: Accelerator, name: str, count: int
    ) -> CloudOffer:
        cloud, region, instance, _pk = key
        vcpu = row.cells.get("vcpu", "").strip()
        memory = row.cells.get("memory_gib", "").strip()
        return CloudOffer(
            cloud=cloud,
            region=region,
            instance_type=instance,
            accelerator=card,
            accelerator_name=name,
            accelerator_count=count,
            vcpu=self.whole(row, "vcpu", 1, 100_000) if vcpu else None,
            memory_gib=float(self.amount(row, "memory_gib")) if memory else None,
        )


class _HardwarePlan(_Plan):
    amounts = ("unit_price_low", "unit_price_high")

    def __init__(self, rows: list[Row], today: date) -> None:
        super().__init__(rows, today)
        self.platforms = {
            reference.fold(text): platform
            for platform in ServerPlatform.objects.all()
            for text in (platform.slug, platform.name)
        }
        self.held = {
            (p.accelerator_id, p.platform_id, p.currency, p.condition, p.as_of, p.source): (
                p.low, p.high, p.currency,
            )
            for p in PriceRecord.objects.all()
        }  # fmt: skip

    def fate(self, row: Row) -> Fate:
        name = self.text(row, "item", 120)
        platform = self.platforms.get(reference.fold(name))
        card = self.cards.get(reference.accelerator_slug(name) or name)
        if platform is None and card is None:
            raise InputError(
                "item",
                msg(
                    "%(name)s is neither an accelerator nor a platform of the catalogue", name=name
                ),
                value=name,
            )
        low = self.amount(row, "unit_price_low")
        high = self.amount(row, "unit_price_high") if row.cells.get("unit_price_high") else low
        if high < low:
            raise InputError(
                "unit_price_high",
                msg("unit_price_high is %(high)s, below unit_price_low (%(low)s)", high=str(high), low=str(low)),
                value=high,
                limit=low,
            )  # fmt: skip
        condition = self.choice(
            row, "condition", PriceRecord.Condition.values, PriceRecord.Condition.UNSTATED
        )
        tax = self.choice(row, "tax_included", ("yes", "no", "unstated"), "unstated")
        about = self.about(row)
        price = PriceRecord(
            accelerator=None if platform else card,
            platform=platform,
            low=low,
            high=high,
            condition=condition,
            tax_included={"yes": True, "no": False}.get(tax),
            **about,
        )
        identity = (
            price.accelerator_id, price.platform_id, about["currency"], condition, about["as_of"], about["source"],
        )  # fmt: skip
        fate = Fate(row.line, row.cells, ADD, msg("New price"), price)
        value = (low, high, about["currency"])
        return self.compared(fate, identity, value, self.held.get(identity))
