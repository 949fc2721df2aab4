"""The risk of a late delivery before it slips: promised days against what came, and the days that teams need it by.

A point is one delivery of one model by one vendor: days from the day promised to its arrival. The promise is the
vendor's lead time as quoted for a quote, and the day it acknowledged for an order that has one. Points of the whole
organisation count, whoever reads: a forecast is the same for all, and names no team.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from django.db.models import Exists, F, OuterRef

from catalog.reference import accelerator_label
from core.messages import Message, msg
from core.organisation import today
from planning.models import CapacityRequest
from procurement.lead_times import Forecast, Slips, forecast
from procurement.models import Delivery, OrderLine, PurchaseOrder, Quote, ReceiptLine
from procurement.states import BINDING_ORDER, DeliveryStatus, OrderStatus

QUOTED, PROMISED = "expected_on", "promised_on"


@dataclass(frozen=True, slots=True)
class Effect:
    """What a forecast means for one team's request. Days after the day it is needed by; 0 and below: in time."""

    request: CapacityRequest
    need_by: date
    as_promised: int
    likely: int | None
    cautious: int | None

    @property
    def tone(self) -> str:
        """bad: likely late, or promised late where no more is known; warn: late in one of ten, or only by the promise;
        good: in time; empty: nothing is known but a promise in time."""
        if self.likely is None:
            return "bad" if self.as_promised > 0 else ""
        if self.likely > 0:
            return "bad"
        return "warn" if (self.cautious or 0) > 0 or self.as_promised > 0 else "good"

    @property
    def told(self) -> Message:
        """How late it comes, in words: what is likely before what was promised."""
        if self.likely is None:
            if self.as_promised > 0:
                return msg("promised %(n)s days late", n=self.as_promised)
            return msg("in time as promised")
        if self.likely > 0:
            return msg("likely %(n)s days late", n=self.likely)
        if self.cautious is not None and self.cautious > 0:
            return msg("one in ten is %(n)s days late or more", n=self.cautious)
        if self.as_promised > 0:
            return msg("promised %(n)s days late, likely in time", n=self.as_promised)
        return msg("in time")

    def to_json(self) -> dict[str, Any]:
        return {
            "request": self.request.reference,
            "need_by": self.need_by.isoformat(),
            "late_days_as_promised": self.as_promised,
            "late_days_likely": self.likely,
            "late_days_cautious": self.cautious,
        }


@dataclass(frozen=True, slots=True)
class Risk:
    """The forecast of one quote or order, and its effects."""

    forecast: Forecast
    model: str  # slug; empty when several or none
    effects: tuple[Effect, ...]

    @property
    def basis(self) -> Message:
        """What the forecast rests on, in words."""
        n = self.forecast.slips.points
        label = accelerator_label(self.model) if self.model else ""
        match self.forecast.basis:
            case "vendor_model":
                return msg("%(n)s deliveries of %(model)s by this vendor", n=n, model=label)
            case "vendor":
                return msg("%(n)s deliveries by this vendor", n=n)
            case "model":
                return msg("%(n)s deliveries of %(model)s by any vendor", n=n, model=label)
        return msg("too few deliveries (%(n)s) to tell more than the promise", n=n)

    def to_json(self) -> dict[str, Any]:
        found = self.forecast
        return {
            "promised": found.due.isoformat(),
            "likely": found.likely.isoformat() if found.likely else None,
            "cautious": found.cautious.isoformat() if found.cautious else None,
            "basis": found.basis,
            "points": found.slips.points,
            "still_open": found.slips.open,
            "effects": [effect.to_json() for effect in self.effects],
        }


@dataclass(slots=True)
class History:
    """Slips by vendor and model, of one kind of promise."""

    by_both: dict[tuple[int, str], Slips] = field(default_factory=dict)
    by_vendor: dict[int, Slips] = field(default_factory=dict)
    by_model: dict[str, Slips] = field(default_factory=dict)

    def choices(self, vendor: int, model: str) -> list[tuple[str, Slips]]:
        none = Slips(())
        found = [("vendor", self.by_vendor.get(vendor, none))]
        if model:
            found.insert(0, ("vendor_model", self.by_both.get((vendor, model), none)))
            found.append(("model", self.by_model.get(model, none)))
        return found


def slip_history(
    promise: str = QUOTED, *, before: int | None = None, day: date | None = None
) -> History:
    """Slips of every posted delivery and of orders that are due and of which nothing came, in two queries.

    `before` leaves out the order of that id, which must not foretell itself.
    """
    seen: dict[tuple[int, str], list[int]] = defaultdict(list)
    came = (
        ReceiptLine.objects.filter(delivery__status=DeliveryStatus.POSTED)
        .exclude(**{f"order_line__order__{promise}": None})
        .exclude(order_line__order=before)
        .values_list(
            "delivery__vendor", "order_line__accelerator_slug", "delivery__arrived_on",
            f"order_line__order__{promise}", "delivery",
        )
        .distinct()
    )  # fmt: skip
    vendors: dict[int, dict[int, int]] = defaultdict(dict)  # one point a delivery
    models: dict[str, list[int]] = defaultdict(list)
    for vendor, model, arrived, due, delivery in came:
        days = (arrived - due).days
        vendors[vendor][delivery] = days
        if model:
            seen[vendor, model].append(days)
            models[model].append(days)
    waits: dict[tuple[int, str], int] = defaultdict(int)
    now = day or today()
    missing = (
        OrderLine.objects.filter(order__status__in=[OrderStatus.ISSUED, OrderStatus.ACKNOWLEDGED])
        .filter(**{f"order__{promise}__lt": now})
        .exclude(order=before)
        .exclude(
            Exists(Delivery.objects.filter(order=OuterRef("order"), status=DeliveryStatus.POSTED))
        )
        .values_list("order__vendor", "accelerator_slug", f"order__{promise}", "order")
        .distinct()
    )
    for vendor, model, due, order in missing:
        days = (now - due).days
        if -order not in vendors[vendor]:
            waits[vendor, ""] += 1
        vendors[vendor][-order] = days
        if model:
            seen[vendor, model].append(days)
            models[model].append(days)
            waits[vendor, model] += 1
    return History(
        {key: Slips(tuple(days), waits[key]) for key, days in seen.items()},
        {key: Slips(tuple(rows.values()), waits[key, ""]) for key, rows in vendors.items()},
        {
            key: Slips(tuple(days), sum(n for (_v, model), n in waits.items() if model == key))
            for key, days in models.items()
        },
    )


def quote_risks(quotes: Sequence[Quote], lines: Iterable[Any]) -> dict[int, Risk]:
    """The risk of each quote if it were ordered today, by id; `lines` are those of the RFQ. Constant queries."""
    asked = list(lines)
    model = _one({line.accelerator_slug for line in asked})
    needs = _needs({line.request_id for line in asked})
    day = today()
    history = slip_history(QUOTED, day=day)
    return {
        quote.pk: _risk(quote.comes_on(day), history, quote.vendor_id, model, needs, day)
        for quote in quotes
    }


def order_risk(order: PurchaseOrder) -> Risk | None:
    """The risk of an order of which something is still to come; None for any other, or without a promised day."""
    if order.status not in BINDING_ORDER or order.status == OrderStatus.CLOSED:
        return None
    due = order.promised_on or order.expected_on
    if due is None or order.deliveries.filter(status=DeliveryStatus.POSTED).exists():
        return None
    rows = list(order.lines.exclude(accelerator_slug="").values_list("accelerator_slug", "request"))
    model = _one({slug for slug, _request in rows})
    history = slip_history(PROMISED if order.promised_on else QUOTED, before=order.pk)
    needs = _needs({request for _slug, request in rows if request is not None})
    return _risk(due, history, order.vendor_id, model, needs, today())


def risk_facts(request: CapacityRequest, orders: Iterable[PurchaseOrder]) -> list[Message]:
    """When each order will likely come, and what that means for the day the request is needed by."""
    facts: list[Message] = []
    for order in orders:
        risk = order_risk(order)
        if risk is None:
            continue
        found = risk.forecast
        if found.likely is None or found.cautious is None:
            facts.append(
                msg("%(order)s: promised for %(day)s; too few deliveries (%(n)s) to tell more than the promise",
                    order=str(order), day=found.due.isoformat(), n=found.slips.points)
            )  # fmt: skip
        else:
            facts.append(
                msg("%(order)s: likely on %(day)s, nine of ten by %(last)s (promised for %(due)s, %(n)s deliveries)",
                    order=str(order), day=found.likely.isoformat(), last=found.cautious.isoformat(),
                    due=found.due.isoformat(), n=found.slips.points)
            )  # fmt: skip
        facts += [
            msg("At risk: it is needed by %(day)s, %(told)s",
                day=effect.need_by.isoformat(), told=effect.told)
            for effect in risk.effects
            if effect.request.pk == request.pk and effect.tone in ("bad", "warn")
        ]  # fmt: skip
    return facts


def _risk(
    due: date, history: History, vendor: int, model: str, needs: list[tuple[CapacityRequest, date]], day: date
) -> Risk:  # fmt: skip
    found = forecast(due, history.choices(vendor, model), day)
    return Risk(
        found,
        model,
        tuple(Effect(request, need_by, *found.late_days(need_by)) for request, need_by in needs),
    )


def _one(slugs: set[str]) -> str:
    return next(iter(slugs)) if len(slugs) == 1 else ""


def _needs(ids: set[int]) -> list[tuple[CapacityRequest, date]]:
    """Requests and the days they are needed by."""
    rows = (
        CapacityRequest.objects.filter(pk__in=ids, revisions__number=F("revision_number"))
        .annotate(needed=F("revisions__need_by"))
        .select_related("team")
        .order_by("pk")
    )
    return [(row, row.needed) for row in rows]  # type: ignore[attr-defined]
