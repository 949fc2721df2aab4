"""Quotes side by side: one currency at a dated rate, tax apart, per card, per warranted year, weak points named."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects

from core.errors import InvalidTransition
from core.exchange import MissingRate, convert, rate_on
from core.messages import Message, msg
from core.money import ExchangeRate, Money, minor_unit, total
from core.organisation import local_day, organisation, today
from planning.selectors.approved import approved
from planning.selectors.rates import OldRate, old_rates
from procurement.models import Quote, QuoteLine, Rfq
from procurement.models.rfqs import CriterionKind
from procurement.states import QuoteStatus
from procurement.totals import DocumentTotals, PricedLine, TaxMode, document_totals
from procurement.warranty_rules import Flag, red_flags

COMPARED = (QuoteStatus.SUBMITTED, QuoteStatus.SELECTED, QuoteStatus.NOT_SELECTED)
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Coverage:
    """How one asked line is answered: accelerators offered, and in how many items of how many."""

    position: int
    asked: int
    offered: int
    packs: str  # "5 × 8 = 40"; empty when not offered

    @property
    def is_met(self) -> bool:
        return self.offered >= self.asked


@dataclass(slots=True)
class Row:
    """One quote, normalised. None where something is not known: never zero."""

    quote: Quote
    totals: DocumentTotals
    rate: ExchangeRate | None
    net: Money | None  # base currency, without tax
    tax: Money | None
    gross: Money | None
    answering: tuple[QuoteLine, ...]  # its lines that answer an asked one
    beside: dict[str, Decimal]  # net by kind of the lines that bring no card, as quoted
    accelerators: int
    coverage: tuple[Coverage, ...]
    per_accelerator: Money | None
    per_warranted_year: Money | None  # net, per accelerator and year of warranty
    flags: tuple[Flag, ...]
    notes: tuple[Message, ...]
    scores: dict[str, Decimal] = field(default_factory=dict)
    score: Decimal | None = None
    rank: int | None = None
    price_rank: int | None = None

    @property
    def is_complete(self) -> bool:
        """Every asked line is answered in full and the price of a card is known in the base currency."""
        return self.per_accelerator is not None and all(line.is_met for line in self.coverage)

    @property
    def months(self) -> int:
        return self.quote.warranty.months

    def to_json(self) -> dict[str, Any]:
        """The row as frozen with an award: amounts as strings."""
        return {
            "quote": self.quote.pk,
            "vendor": self.quote.vendor.name,
            "revision": self.quote.revision,
            "content_hash": self.quote.content_hash,
            "own_net": str(self.totals.net),
            "own_tax": str(self.totals.tax),
            "own_gross": str(self.totals.gross),
            "net": _text(self.net),
            "tax": _text(self.tax),
            "gross": _text(self.gross),
            "rate": None
            if self.rate is None
            else [
                self.rate.base,
                self.rate.quote,
                str(self.rate.rate),
                self.rate.as_of.isoformat(),
            ],
            "accelerators": self.accelerators,
            "complete": self.is_complete,
            "per_accelerator": _text(self.per_accelerator),
            "per_warranted_year": _text(self.per_warranted_year),
            "warranty_months": self.months,
            "lead_time_days": self.quote.lead_time_days,
            "flags": [flag.code for flag in self.flags],
            "score": None if self.score is None else str(self.score),
            "rank": self.rank,
        }


def _text(value: Money | None) -> str | None:
    return None if value is None else f"{value.amount} {value.currency}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows by rank, unranked ones last."""

    rfq: Rfq
    currency: str
    rows: tuple[Row, ...]
    weights: dict[str, int]
    approved: (
        Money | None
    )  # for the requests of the RFQ together; None: not known, or a rate is missing

    def above(self, row: Row) -> Money | None:
        """By how much the row's total with tax is above (or below: negative) what was approved."""
        if self.approved is None or row.gross is None:
            return None
        return row.gross - self.approved

    @property
    def old_rates(self) -> list[OldRate]:
        """Rates that were old when they were frozen (or are today, before the opening)."""
        opened = self.rfq.opened_at
        return old_rates(
            (row.rate for row in self.rows), local_day(opened) if opened is not None else None
        )

    @property
    def best(self) -> Row | None:
        return next((row for row in self.rows if row.rank == 1), None)

    @property
    def cheapest(self) -> Row | None:
        return next((row for row in self.rows if row.price_rank == 1), None)


def compare(rfq: Rfq) -> Comparison:
    """Every standing quote of `rfq`, normalised and ranked. Constant number of queries.

    Raises InvalidTransition while the bids are sealed, whoever asks.
    """
    if rfq.prices_hidden:
        raise InvalidTransition(msg("The bids of %(rfq)s are sealed", rfq=rfq.number))
    org = organisation()
    base, day = org.currency, today(org)
    prefetch_related_objects([rfq], "lines")  # read once for all that stands on a comparison
    lines = list(rfq.lines.all())
    quotes = (
        rfq.quotes.filter(status__in=COMPARED)
        .select_related("vendor", "warranty", "rfq")
        .prefetch_related("payments", Prefetch("lines", _ANSWERING, to_attr="answering"))
    )
    priced = _priced(quote.pk for quote in quotes)
    rates = _rates(rfq, base, {quote.currency for quote in quotes}, day)
    rows = [
        _row(rfq, quote, priced[quote.pk], lines, base, rates.get(quote.currency))
        for quote in quotes
    ]
    weights = {criterion.kind: criterion.weight for criterion in rfq.criteria.all()}
    _rank(rows, weights)
    ordered = sorted(rows, key=lambda row: (row.rank is None, row.rank or 0, row.quote.vendor.name))
    return Comparison(rfq, base, tuple(ordered), weights, _approved(lines, base, day))


# A line that is offered instead of another one is in no sum and answers nothing.
_ANSWERING = QuoteLine.objects.filter(alternative_to=None).exclude(rfq_line=None)


@dataclass(slots=True)
class _Priced:
    """Lines of one quote by what their sums need: a quote may have hundreds, of which few answer what is asked."""

    lines: list[PricedLine] = field(default_factory=list)
    beside: list[tuple[str, PricedLine]] = field(default_factory=list)  # by kind, without cards


def _priced(quotes: Iterable[int]) -> dict[int, _Priced]:
    """The lines that count, by quote, in one query and without an object of the database for each."""
    found: dict[int, _Priced] = defaultdict(_Priced)
    rows = (
        QuoteLine.objects.filter(quote__in=list(quotes), alternative_to=None)
        .order_by("quote", "position")
        .values_list("quote", "kind", "accelerators_per_item", "quantity", "unit_price", "tax_rate")
    )
    for quote, kind, cards, quantity, price, rate in rows.iterator():
        line = PricedLine(quantity, price, rate)
        mine = found[quote]
        mine.lines.append(line)
        if not cards:
            mine.beside.append((kind, line))
    return found


def _approved(lines: list[Any], base: str, day: date) -> Money | None:
    found = approved(line.request_id for line in lines)
    try:
        parts = [convert(one.amount, base, day) for one in found.values()]
    except MissingRate:
        return None
    return total(parts, base) if parts else None


def _rates(rfq: Rfq, base: str, currencies: set[str], day: date) -> dict[str, ExchangeRate]:
    """The rates frozen at the opening; today's where the RFQ was not opened yet. A missing one is left out."""
    found = {}
    for currency in currencies:
        frozen = rfq.rates.get(currency)
        if frozen:
            found[currency] = ExchangeRate(
                frozen["base"],
                frozen["quote"],
                Decimal(frozen["rate"]),
                date.fromisoformat(frozen["as_of"]),
                frozen["source"],
            )
            continue
        try:
            found[currency] = rate_on(currency, base, day)
        except MissingRate:
            continue
    return found


def _row(
    rfq: Rfq, quote: Quote, priced: _Priced, asked: list[Any], base: str, rate: ExchangeRate | None
) -> Row:
    totals = document_totals(
        priced.lines, currency=quote.currency, tax_mode=TaxMode(quote.tax_mode), shown=False
    )
    beside: dict[str, Decimal] = defaultdict(Decimal)
    unit = minor_unit(quote.currency)
    for kind, one in priced.beside:
        beside[kind] += (one.quantity * one.unit_price).quantize(unit, ROUND_HALF_UP)
    lines: list[QuoteLine] = quote.answering  # type: ignore[attr-defined]
    coverage = []
    for line in asked:
        answering = [row for row in lines if row.rfq_line_id == line.pk]
        coverage.append(
            Coverage(
                line.position,
                line.accelerators,
                sum(row.accelerators for row in answering),
                " + ".join(
                    f"{int(row.quantity)} × {row.accelerators_per_item} = {row.accelerators}"
                    for row in answering
                ),
            )
        )
    cards = sum(row.accelerators for row in lines)
    net = _in_base(totals.net, base, rate)
    per_card = None if net is None or not cards else Money(net.amount / cards, base).rounded()
    months = quote.warranty.months
    per_year = (
        None
        if net is None or not cards
        else Money(net.amount / cards / Decimal(months) * 12, base).rounded()
    )
    notes = []
    if rate is None:
        notes.append(msg("There is no exchange rate from %(currency)s", currency=quote.currency))
    notes += [
        msg(
            "Line %(line)s: %(offered)s of %(asked)s accelerators offered; the rest has no price",
            line=part.position,
            offered=part.offered,
            asked=part.asked,
        )
        for part in coverage
        if not part.is_met
    ]
    if quote.is_expired:
        notes.append(msg("Expired on %(day)s", day=quote.valid_until.isoformat()))
    return Row(
        quote=quote,
        totals=totals,
        rate=rate,
        net=net,
        tax=_in_base(totals.tax, base, rate),
        gross=_in_base(totals.gross, base, rate),
        answering=tuple(lines),
        beside=beside,
        accelerators=cards,
        coverage=tuple(coverage),
        per_accelerator=per_card,
        per_warranted_year=per_year,
        flags=red_flags(quote.warranty.terms(rfq.warranty_months)),
        notes=tuple(notes),
    )


def _in_base(money: Money, base: str, rate: ExchangeRate | None) -> Money | None:
    if money.currency == base:
        return money
    return None if rate is None else money.convert(rate)


def _rank(rows: list[Row], weights: dict[str, int]) -> None:
    """Score complete quotes from 0 to 100 on each criterion; the best of each gets 100."""
    complete = [row for row in rows if row.is_complete]
    if not complete:
        return
    low: dict[str, Callable[[Row], Decimal]] = {
        CriterionKind.PRICE: lambda row: _amount(row.per_accelerator),
        CriterionKind.WARRANTY_PRICE: lambda row: _amount(row.per_warranted_year),
        CriterionKind.LEAD_TIME: lambda row: Decimal(row.quote.lead_time_days + 1),
    }
    for kind, value in low.items():
        best = min(value(row) for row in complete)
        for row in complete:
            row.scores[kind] = _score(best, value(row))
    most = Decimal(max(row.months for row in complete))
    for row in complete:
        row.scores[CriterionKind.WARRANTY] = _score(Decimal(row.months), most)
        row.score = sum(
            (row.scores[kind] * weight for kind, weight in weights.items()), Decimal(0)
        ) / Decimal(100)
        row.score = row.score.quantize(CENT, rounding=ROUND_HALF_UP)
    for rank, row in enumerate(sorted(complete, key=_by_score), 1):
        row.rank = rank
    for rank, row in enumerate(sorted(complete, key=lambda row: _amount(row.net)), 1):
        row.price_rank = rank


def _by_score(row: Row) -> tuple[Decimal, Decimal, int]:
    if row.score is None:
        raise ValueError("a quote without a score has no rank")
    return -row.score, _amount(row.net), row.quote.pk


def _amount(value: Money | None) -> Decimal:
    """Of a complete quote: what is missing has no rank, and is never 0."""
    if value is None:
        raise ValueError("a quote without a price has no rank")
    return value.amount


def _score(better: Decimal, worse: Decimal) -> Decimal:
    """100 for the best, in proportion below it; a price of 0 beats every other price."""
    if worse == 0:
        return Decimal(100)
    return (better / worse * 100).quantize(CENT, rounding=ROUND_HALF_UP)
