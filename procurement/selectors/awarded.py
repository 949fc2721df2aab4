"""What an award or an order comes to, and how that stands against what was approved for each request it serves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.errors import DomainError
from core.exchange import MissingRate, convert
from core.messages import msg
from core.money import Money, money_json
from core.organisation import organisation, today
from planning.selectors.approved import Approved, approved
from planning.selectors.rates import OldRate, old_rates_today
from procurement.models import Award, OrderLine, OrderRevision, PurchaseOrder, Quote
from procurement.states import BINDING_ORDER, AwardStatus, OrderStatus
from procurement.totals import (
    DocumentTotals,
    PricedLine,
    TaxMode,
    allocate,
    document_totals,
    price_at,
)


def awarded_lines(award: Award) -> list[tuple[Quote, list[OrderLine]]]:
    """Per awarded quote, the lines of the order it becomes (not stored), on exactly the quote's terms."""
    asked = list(award.rfq.lines.all())
    found: dict[int, tuple[Quote, list[OrderLine]]] = {}
    rows = (
        award.lines.select_related(
            "quote_line__quote__vendor", "quote_line__quote__rfq", "quote_line__rfq_line"
        )
        .prefetch_related("quote_line__breaks")
        .order_by("quote_line__quote", "quote_line__position")
    )
    for row in rows:
        offered = row.quote_line
        lines = found.setdefault(offered.quote_id, (offered.quote, []))[1]
        steps = [step.step for step in offered.breaks.all()]
        request_id = offered.rfq_line.request_id if offered.rfq_line else None
        if request_id is None and len(asked) == 1:
            request_id = asked[0].request_id
        lines.append(
            OrderLine(
                position=len(lines) + 1,
                quote_line=offered,
                request_id=request_id,
                kind=offered.kind,
                description=offered.description,
                manufacturer=offered.manufacturer,
                part_number=offered.part_number,
                quantity=row.quantity,
                unit=offered.unit,
                unit_price=price_at(row.quantity, steps) if steps else offered.unit_price,
                tax_rate=offered.tax_rate,
                serialised=offered.serialised,
                accelerator_slug=offered.accelerator_slug,
                accelerators_per_item=offered.accelerators_per_item,
            )
        )
    return list(found.values())


def request_shares(
    lines: Sequence[OrderLine],
    totals: DocumentTotals,
    total: Money | None = None,
    served: Iterable[int] = (),
) -> dict[int, Money]:
    """What each request pays of the document's gross total (of `total` when given), exactly.

    In proportion to the net amounts of its lines; lines that serve no request (freight) are shared the same way.
    `lines` are those of `totals`, in order. Lines all without a request fall to `served`, or their order's requests.
    """
    nets: dict[int, Decimal] = {}
    for line, shown in zip(lines, totals.lines, strict=True):
        if line.request_id is not None:
            nets[line.request_id] = nets.get(line.request_id, Decimal(0)) + shown.net.amount
    if not nets:
        siblings = OrderLine.objects.filter(order__in={line.order_id for line in lines})
        nets = dict.fromkeys(
            served or siblings.exclude(request=None).values_list("request_id", flat=True),
            Decimal(0),
        )
    if not nets:
        raise DomainError(msg("No line of the order serves a request"))
    ids = sorted(nets)
    parts = allocate(total or totals.gross, [nets[pk] for pk in ids])
    return dict(zip(ids, parts, strict=True))


@dataclass(frozen=True, slots=True)
class Part:
    """One vendor's part of an award."""

    vendor: str
    cards: int
    items: str  # "5 × 8 × HGX H200"
    totals: DocumentTotals


def parts_of(award: Award) -> list[Part]:
    """What is bought of whom, for how much."""
    return [
        Part(
            quote.vendor.name,
            sum(int(line.quantity) * line.accelerators_per_item for line in lines),
            ", ".join(f"{line.quantity.normalize():f} × {line.description}" for line in lines),
            _totals(quote.currency, quote.tax_mode, lines),
        )
        for quote, lines in awarded_lines(award)
    ]


def _totals(currency: str, tax_mode: str, lines: Sequence[OrderLine]) -> DocumentTotals:
    priced: list[PricedLine] = [line.priced for line in lines]
    return document_totals(priced, currency=currency, tax_mode=TaxMode(tax_mode))


@dataclass(frozen=True, slots=True)
class Against:
    """One request: what was approved, and what its orders come to with this one, tax included."""

    approved: Approved
    this: Money | None  # of this award, order or amendment; None: no exchange rate
    total: Money | None  # with every other order of the request

    @property
    def difference(self) -> Money | None:
        """Above (positive) or below what was approved."""
        return None if self.total is None else self.total - self.approved.amount

    @property
    def share(self) -> Decimal | None:
        """The difference as a share of what was approved."""
        found, amount = self.difference, self.approved.amount.amount
        return None if found is None or not amount else found.amount / amount

    @property
    def is_above(self) -> bool:
        return self.total is not None and self.approved.amount < self.total

    @property
    def is_beyond(self) -> bool:
        """Above what was approved (or agreed to since) by more than the tolerance: it cannot be ordered."""
        return self.total is not None and self.approved.limit < self.total

    def to_json(self) -> dict[str, Any]:
        over = self.approved.over
        return {
            "request": self.approved.request.pk,
            "reference": self.approved.request.reference,
            "approved": money_json(self.approved.amount),
            "agreed": money_json(self.approved.agreed),
            "limit": money_json(self.approved.limit),
            "tolerance": f"{self.approved.tolerance:f}",
            "this": money_json(self.this),
            "total": money_json(self.total),
            "difference": money_json(self.difference),
            "share": None if self.share is None else f"{self.share:.4f}",
            "above": self.is_above,
            "beyond": self.is_beyond,
            "over_approval": None
            if over is None
            else {"reason": over.reason, "by": str(over.by), "at": over.at.isoformat()},
        }


def against(shares: dict[int, list[Money]], *, counted: bool = False) -> list[Against]:
    """`shares` by request against what was approved, at today's rates. `counted`: the ledger holds them already."""
    found = approved(shares)
    rows = []
    for request_id in sorted(found):
        one = found[request_id]
        zero = Money(Decimal(0), one.amount.currency)
        try:
            parts = [convert(part, zero.currency, today()) for part in shares[request_id]]
        except MissingRate:
            rows.append(Against(one, None, one.ordered if counted else None))
            continue
        this = sum(parts, zero)
        rows.append(Against(one, this, one.ordered if counted else one.ordered + this))
    return rows


def award_rows(award: Award) -> list[Against]:
    """The award against what was approved; its orders count once they bind."""
    if award.status == AwardStatus.APPROVED:
        orders = list(award.orders.exclude(status=OrderStatus.CANCELLED))
        shares: dict[int, list[Money]] = {}
        waiting: dict[int, list[Money]] = {}
        for order in orders:
            for request_id, part in _shares_of(order).items():
                shares.setdefault(request_id, []).append(part)
                if order.status not in BINDING_ORDER:
                    waiting.setdefault(request_id, []).append(part)
        return _with_this(against({pk: waiting.get(pk, []) for pk in shares}), shares)
    proposed: dict[int, list[Money]] = {}
    served = sorted({line.request_id for line in award.rfq.lines.all()})
    for quote, lines in awarded_lines(award):
        totals = _totals(quote.currency, quote.tax_mode, lines)
        for request_id, part in request_shares(lines, totals, served=served).items():
            proposed.setdefault(request_id, []).append(part)
    return against(proposed)


def _with_this(rows: list[Against], shares: dict[int, list[Money]]) -> list[Against]:
    """The same rows, `this` being all of `shares`: also what the ledger holds already."""
    full = {row.approved.request.pk: row.this for row in against(shares)}
    return [Against(row.approved, full[row.approved.request.pk], row.total) for row in rows]


def _shares_of(order: PurchaseOrder, lines: list[OrderLine] | None = None) -> dict[int, Money]:
    lines = list(order.lines.all()) if lines is None else lines
    return request_shares(lines, order.totals(lines))


def order_rows(order: PurchaseOrder) -> list[Against]:
    """The order against what was approved for each request it serves. Empty for a cancelled one."""
    if order.status == OrderStatus.CANCELLED:
        return []
    shares = {pk: [part] for pk, part in _shares_of(order).items()}
    return against(shares, counted=order.status in BINDING_ORDER)


def amendment_rows(revision: OrderRevision) -> list[Against]:
    """As `order_rows`, with the lines as a proposed amendment has them."""
    order = revision.order
    lines = list(order.lines.all())
    before = _shares_of(order, lines)
    proposed = {row["position"]: row for row in revision.lines}
    for line in lines:
        line.quantity = Decimal(proposed[line.position]["quantity"])
        line.unit_price = Decimal(proposed[line.position]["unit_price"])
    after = _shares_of(order, lines)
    more = {pk: [part, *([-before[pk]] if pk in before else [])] for pk, part in after.items()}
    return _with_this(against(more), {pk: [part] for pk, part in after.items()})


def order_old_rates(order: PurchaseOrder) -> list[OldRate]:
    """Old rates with which the order would be committed, amended or paid today; none once it is over."""
    if order.status in (OrderStatus.CLOSED, OrderStatus.CANCELLED):
        return []
    return old_rates_today([order.currency], organisation().currency)
