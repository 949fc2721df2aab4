"""Load the reference files into the database. Repeatable: what is there already is left alone and counted so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction

from catalog import changes, reference
from catalog.models import (
    Accelerator,
    CloudOffer,
    OfferPrice,
    Origin,
    PriceRecord,
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

ACCELERATOR_IDENTITY = (
    "name", "vendor", "generation", "architecture", "year", "aliases", "devices_per_board",
)  # fmt: skip
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
    if report.changed:
        changes.tell()
    return report


def _provenance(row: Any) -> dict[str, Any]:
    values = {name: row.get(name, "") for name in PROVENANCE}
    if isinstance(values["as_of"], str):
        values["as_of"] = date.fromisoformat(values["as_of"])
    values["as_of_precision"] = values["as_of_precision"] or "day"
    return values


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One subject as the file states it."""

    key: str
    identity: dict[str, Any]
    figures: dict[str, Any]
    provenance: dict[str, Any]


def _bring_up(
    report: LoadReport, subject: Subject, key: str, wanted: list[_Wanted]
) -> dict[str, Any]:
    """Add the subjects that are new; add a reference revision where the shipped figures or their source changed."""
    existing = {
        getattr(of, key): of for of in subject.model.objects.select_related("current", "reference")
    }
    new = [entry for entry in wanted if entry.key not in existing]
    for entry in wanted:
        if entry.key in existing:
            _revise(report, subject, existing[entry.key], entry)
    made = subject.model.objects.bulk_create(
        [subject.model(**{key: entry.key}, **entry.identity) for entry in new]
    )
    revisions = subject.revision.objects.bulk_create(
        [
            subject.revision(
                **{subject.field: of},
                number=1,
                origin=Origin.REFERENCE,
                **entry.figures,
                **entry.provenance,
            )
            for of, entry in zip(made, new, strict=True)
        ]
    )
    for of, revision in zip(made, revisions, strict=True):
        of.current = of.reference = revision
        existing[getattr(of, key)] = of
    subject.model.objects.bulk_update(made, ["current", "reference"])
    report.added[subject.noun] += len(made)
    return existing


def _revise(report: LoadReport, subject: Subject, of: Any, wanted: _Wanted) -> None:
    changed = {k: v for k, v in wanted.identity.items() if getattr(of, k) != v}
    if changed:
        for attribute, new in changed.items():
            setattr(of, attribute, new)
        of.save(update_fields=list(changed))
    stated = of.reference.figures, {k: getattr(of.reference, k) for k in PROVENANCE}
    restated = stated != (wanted.figures, wanted.provenance)
    if restated:
        revision = add_revision(
            subject, of, origin=Origin.REFERENCE, **wanted.figures, **wanted.provenance
        )
        record(f"{subject.noun}.revised", on=of, by=None, revision=revision.number)
    if changed or restated:
        report.revised[subject.noun] += 1
    else:
        report.unchanged[subject.noun] += 1


def _load_accelerators(report: LoadReport) -> None:
    wanted = []
    for row in reference.accelerators().values():
        values: Any = row
        identity = {name: values[name] for name in ACCELERATOR_IDENTITY}
        figures = {name: values[name] for name in ACCELERATOR.revision.FIGURES}
        wanted.append(_Wanted(row["slug"], identity, figures, _provenance(row)))
    _bring_up(report, ACCELERATOR, "slug", wanted)


def _load_architectures(report: LoadReport) -> None:
    wanted = []
    for row in reference.architectures().values():
        values: Any = row
        identity = {name: values[name] for name in ("name", "family", "kind", "licence")}
        figures = {name: values[name] for name in ARCHITECTURE.revision.FIGURES}
        wanted.append(_Wanted(row["slug"], identity, figures, _provenance(row)))
    _bring_up(report, ARCHITECTURE, "slug", wanted)


def _load_platforms(report: LoadReport) -> None:
    cards = {a.slug: a for a in Accelerator.objects.all()}
    rows = reference.document("server_platforms")["server_platforms"]
    wanted = []
    for row in rows:
        identity = {
            "name": row["name"],
            "accelerator": cards[row["accelerator"]],
            "accelerator_count": row["accelerator_count"],
        }
        figures = {
            "max_power": _times(row["max_power_kw"], 1000),
            "typical_power_low": _times(row["typical_power_kw_low"], 1000),
            "typical_power_high": _times(row["typical_power_kw_high"], 1000),
            "rack_units": row["rack_units"],
            "weight": row["weight_kg"],
        } | {k: row[k] for k in ("power_supplies", "cooling", "fabric", "nics", "host")}
        wanted.append(_Wanted(row["slug"], identity, figures, _provenance(row)))
    platforms = _bring_up(report, PLATFORM, "slug", wanted)
    for row in rows:
        of_year = {"as_of": f"{row['price_year']}-01-01", "as_of_precision": "year", "notes": ""}
        for price in row["prices"]:
            _add_price(
                report,
                platform=platforms[row["slug"]],
                low=Decimal(price["low"]),
                high=Decimal(price["high"]),
                currency=price["currency"],
                **_provenance(row | of_year),
            )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _load_tco(report: LoadReport) -> None:
    wanted = []
    for row in reference.document("tco_defaults")["tco_defaults"]:
        figures = {name: row[name] for name in TCO.revision.FIGURES}
        wanted.append(_Wanted(row["key"], {"unit": row["unit"]}, figures, _provenance(row)))
    _bring_up(report, TCO, "key", wanted)


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
        OfferPrice.objects.values_list(
            "offer__cloud", "offer__region", "offer__instance_type", "offer__accelerator_id",
            "kind", "term_months", "as_of", "source",
        )
    )  # fmt: skip
    unknown: Counter[str] = Counter()
    spots = 0
    new_offers: list[CloudOffer] = []
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
            offer = offers[key] = CloudOffer(
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
            new_offers.append(offer)
            report.added["offer"] += 1
        else:
            report.unchanged["offer"] += 1
        for kind, amount in (("on_demand", on_demand), ("spot", spot)):
            if amount is None:
                continue
            origin = _provenance(row)
            identity = (*key, kind, 0, origin["as_of"], origin["source"])
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
    CloudOffer.objects.bulk_create(new_offers, batch_size=500)
    for price in new:
        price.offer_id = price.offer.pk
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
    new: list[ExchangeRate] = []
    held = {
        (r.base, r.quote, r.as_of): r
        for r in ExchangeRate.objects.all()
    }  # fmt: skip
    for row in reference.document("exchange_rates")["exchange_rates"]:
        day = date.fromisoformat(row["as_of"])
        known = held.get((row["base"], row["quote"], day))
        if known is None:
            new.append(
                ExchangeRate(
                    base=row["base"],
                    quote=row["quote"],
                    rate=Decimal(row["rate"]),
                    as_of=day,
                    source=row["source"],
                )
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
    ExchangeRate.objects.bulk_create(new)
