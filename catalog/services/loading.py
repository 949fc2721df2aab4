"""Load the reference files into the database. Repeatable: what is there already is left alone and counted so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction

from catalog import reference
from catalog.models import (
    Accelerator,
    CloudOffer,
    ModelArchitecture,
    OfferPrice,
    Origin,
    PriceRecord,
    ServerPlatform,
    TcoDefault,
)
from catalog.services.revisions import (
    ACCELERATOR,
    ARCHITECTURE,
    PLATFORM,
    TCO,
    Subject,
    add_revision,
)
from core.audit import record
from core.messages import Message, msg
from core.models import ExchangeRate

PROVENANCE = ("source", "source_url", "as_of", "as_of_precision", "confidence", "notes")


@dataclass(slots=True)
class LoadReport:
    """What a load did: rows added, revised and left alone by noun, and what could not be used, with the reason."""

    added: Counter[str] = field(default_factory=Counter)
    revised: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    dropped: list[Message] = field(default_factory=list)
    cautions: list[Message] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Rows added or revised."""
        return self.added.total() + self.revised.total()


@transaction.atomic
def load_reference() -> LoadReport:
    """Bring the database up to the shipped facts. Adds rows and reference revisions; overwrites nothing."""
    report = LoadReport()
    _load_accelerators(report)
    _load_architectures(report)
    _load_platforms(report)
    _load_tco(report)
    _load_offers(report)
    _load_street_prices(report)
    _load_rates(report)
    return report


def _provenance(row: Any) -> dict[str, Any]:
    values = {name: row.get(name, "") for name in PROVENANCE}
    if isinstance(values["as_of"], str):
        values["as_of"] = date.fromisoformat(values["as_of"])
    values["as_of_precision"] = values["as_of_precision"] or "day"
    return values


def _revise(
    report: LoadReport,
    subject: Subject,
    existing: dict[str, Any],
    key: tuple[str, str],
    identity: dict[str, Any],
    figures: dict[str, Any],
    row: Any,
) -> Any:
    """Make or find the subject, and add a reference revision when the shipped figures or their source changed."""
    name, value = key
    noun = subject.noun
    of = existing.get(value)
    if of is None:
        of = subject.model.objects.create(**{name: value}, **identity)
        add_revision(subject, of, origin=Origin.REFERENCE, **figures, **_provenance(row))
        report.added[noun] += 1
        return of
    changed = {k: v for k, v in identity.items() if getattr(of, k) != v}
    if changed:
        for attribute, new in changed.items():
            setattr(of, attribute, new)
        of.save(update_fields=list(changed))
    stated = of.reference.figures | {k: getattr(of.reference, k) for k in PROVENANCE}
    wanted = figures | _provenance(row)
    if stated != wanted:
        revision = add_revision(subject, of, origin=Origin.REFERENCE, **wanted)
        record(f"{noun}.revised", on=of, by=None, revision=revision.number)
    if changed or stated != wanted:
        report.revised[noun] += 1
    else:
        report.unchanged[noun] += 1
    return of


def _load_accelerators(report: LoadReport) -> None:
    existing = {a.slug: a for a in Accelerator.objects.select_related("current", "reference")}
    for row in reference.accelerators().values():
        values: Any = row
        identity = (
            "name",
            "vendor",
            "generation",
            "architecture",
            "year",
            "aliases",
            "devices_per_board",
        )
        _revise(
            report, ACCELERATOR, existing, ("slug", row["slug"]),
            {k: values[k] for k in identity},
            {k: values[k] for k in ACCELERATOR.revision.FIGURES}, row,
        )  # fmt: skip


def _load_architectures(report: LoadReport) -> None:
    existing = {a.slug: a for a in ModelArchitecture.objects.select_related("current", "reference")}
    for row in reference.architectures().values():
        values: Any = row
        _revise(
            report, ARCHITECTURE, existing, ("slug", row["slug"]),
            {k: values[k] for k in ("name", "family", "kind", "licence")},
            {k: values[k] for k in ARCHITECTURE.revision.FIGURES}, row,
        )  # fmt: skip


def _load_platforms(report: LoadReport) -> None:
    existing = {p.slug: p for p in ServerPlatform.objects.select_related("current", "reference")}
    cards = {a.slug: a for a in Accelerator.objects.all()}
    for row in reference.document("server_platforms")["server_platforms"]:
        figures = {
            "max_power": _times(row["max_power_kw"], 1000),
            "typical_power_low": _times(row["typical_power_kw_low"], 1000),
            "typical_power_high": _times(row["typical_power_kw_high"], 1000),
            "rack_units": row["rack_units"],
            "weight": row["weight_kg"],
        } | {k: row[k] for k in ("power_supplies", "cooling", "fabric", "nics", "host")}
        platform = _revise(
            report, PLATFORM, existing, ("slug", row["slug"]),
            {
                "name": row["name"],
                "accelerator": cards[row["accelerator"]],
                "accelerator_count": row["accelerator_count"],
            },
            figures, row,
        )  # fmt: skip
        for price in row["prices"]:
            _add_price(
                report,
                platform=platform,
                low=Decimal(price["low"]),
                high=Decimal(price["high"]),
                currency=price["currency"],
                **_provenance(row | {"as_of": f"{row['price_year']}-01-01", "as_of_precision": "year", "notes": ""}),
            )  # fmt: skip


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _load_tco(report: LoadReport) -> None:
    existing = {d.key: d for d in TcoDefault.objects.select_related("current", "reference")}
    for row in reference.document("tco_defaults")["tco_defaults"]:
        _revise(
            report, TCO, existing, ("key", row["key"]),
            {"unit": row["unit"]}, {k: row[k] for k in TCO.revision.FIGURES}, row,
        )  # fmt: skip


# --- cloud offers ---------------------------------------------------------------------------------------------------


def offer_slug(row: dict[str, Any]) -> tuple[str | None, str]:
    """Slug of the accelerator behind an offer, or None and why: the instance type decides before the name."""
    for rule in reference.document("cloud_offers")["instance_accelerators"]:
        if row["cloud"] == rule["cloud"] and row["instance_type"].startswith(rule["prefix"]):
            return rule["slug"], rule.get("reason", "")
    slug = reference.accelerator_slug(row["accelerator_name"])
    return slug, "" if slug else "unknown card"


def instance_name(cloud: str, instance_type: str) -> str:
    """The instance type as the cloud's own price page writes it: Azure's machine prefix is left off."""
    return instance_type.removeprefix("Standard_") if cloud == "azure" else instance_type


def amount_of(text: str | None) -> Decimal | None:
    """A price, or None when there is none or the text is a range."""
    try:
        value = Decimal(text or "")
    except InvalidOperation:
        return None
    return value if value > 0 else None


def usable_spot(on_demand: Decimal | None, spot: Decimal | None) -> Decimal | None:
    """The spot price, unless it is not below on demand: then the source had none, or another product's."""
    if spot is None or (on_demand is not None and spot >= on_demand):
        return None
    return spot


def _load_offers(report: LoadReport) -> None:
    cards = {a.slug: a for a in Accelerator.objects.all()}
    offers = {
        (o.cloud, o.region, o.instance_type, o.accelerator_id): o for o in CloudOffer.objects.all()
    }
    prices = set(
        OfferPrice.objects.values_list("offer_id", "kind", "term_months", "as_of", "source")
    )
    unknown: Counter[str] = Counter()
    spots = 0
    new: list[OfferPrice] = []
    for row in reference.document("cloud_offers")["offers"]:
        row = row | {"instance_type": instance_name(row["cloud"], row["instance_type"])}
        where = f"{row['cloud']} {row['region']} {row['instance_type']}"
        slug, reason = offer_slug(row)
        if slug is None:
            if reason == "unknown card":
                unknown[row["accelerator_name"]] += 1
            else:
                report.dropped.append(msg("%(offer)s: %(reason)s", offer=where, reason=reason))
            continue
        on_demand = amount_of(row["on_demand"])
        spot = usable_spot(on_demand, amount_of(row["spot"]))
        if on_demand is None and spot is None:
            report.dropped.append(
                msg(
                    "%(offer)s: %(price)s is not one price",
                    offer=where,
                    price=row["on_demand"] or "–",
                )
            )
            continue
        if row["spot"] and spot is None:
            spots += 1
        key = (row["cloud"], row["region"], row["instance_type"], cards[slug].pk)
        offer = offers.get(key)
        if offer is None:
            offer = offers[key] = CloudOffer.objects.create(
                cloud=row["cloud"],
                region=row["region"],
                instance_type=row["instance_type"],
                accelerator=cards[slug],
                accelerator_name=row["accelerator_name"],
                accelerator_count=row["accelerator_count"],
                vcpu=row["vcpu"],
                memory_gib=row["memory_gib"],
                zones=row["zones"],
                complete="accelerator only" not in row["quality"],
            )
            report.added["offer"] += 1
        else:
            report.unchanged["offer"] += 1
        for kind, amount in (("on_demand", on_demand), ("spot", spot)):
            if amount is None:
                continue
            origin = _provenance(row)
            identity = (offer.pk, kind, 0, origin["as_of"], origin["source"])
            if identity in prices:
                report.unchanged["offer price"] += 1
                continue
            prices.add(identity)
            report.added["offer price"] += 1
            new.append(
                OfferPrice(
                    offer=offer,
                    kind=kind,
                    amount=amount,
                    currency=row["currency"],
                    quality=row["quality"],
                    snapshot=row["snapshot"],
                    **origin,
                )
            )
    OfferPrice.objects.bulk_create(new, batch_size=500)
    for name, rows in sorted(unknown.items()):
        report.dropped.append(
            msg(
                "%(name)s is not an accelerator of the catalogue: %(rows)s offers left out",
                name=name,
                rows=rows,
            )
        )
    if spots:
        report.cautions.append(
            msg("%(rows)s spot prices are not below on demand and count as missing", rows=spots)
        )


# --- hardware prices and exchange rates -----------------------------------------------------------------------------


def _add_price(report: LoadReport, **fields: Any) -> None:
    identity = ("accelerator", "platform", "currency", "as_of", "source")
    same = {name: fields[name] for name in identity if name in fields}
    if PriceRecord.objects.filter(**same).exists():
        report.unchanged["hardware price"] += 1
        return
    PriceRecord.objects.create(**fields)
    report.added["hardware price"] += 1


def _load_street_prices(report: LoadReport) -> None:
    cards = {a.slug: a for a in Accelerator.objects.all()}
    for row in reference.document("street_prices")["street_prices"]:
        _add_price(
            report,
            accelerator=cards[row["accelerator"]],
            low=Decimal(row["low"]),
            high=Decimal(row["high"]),
            currency=row["currency"],
            **_provenance(row),
        )


def _load_rates(report: LoadReport) -> None:
    held = {
        (r.base, r.quote, r.as_of): r
        for r in ExchangeRate.objects.all()
    }  # fmt: skip
    for row in reference.document("exchange_rates")["exchange_rates"]:
        day = date.fromisoformat(row["as_of"])
        known = held.get((row["base"], row["quote"], day))
        if known is None:
            ExchangeRate.objects.create(
                base=row["base"],
                quote=row["quote"],
                rate=Decimal(row["rate"]),
                as_of=day,
                source=row["source"],
            )
            report.added["exchange rate"] += 1
            continue
        report.unchanged["exchange rate"] += 1
        if known.rate != Decimal(row["rate"]):
            report.cautions.append(
                msg(
                    "%(base)s/%(quote)s of %(day)s stays at %(held)s; the shipped rate is %(shipped)s",
                    base=row["base"],
                    quote=row["quote"],
                    day=row["as_of"],
                    held=str(known.rate),
                    shipped=row["rate"],
                )
            )
