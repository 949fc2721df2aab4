"""Where a quote says less than the clauses of its RFQ, and the terms that an order holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext as _

from procurement.models import PurchaseOrder, Quote, Rfq, RfqClause, WarrantyTerms
from procurement.models.payments import EVENT_CHOICES
from procurement.models.rfqs import TRIGGER_CHOICES
from procurement.precedence import (
    CHOICES,
    NAMES,
    PROMISED,
    Ask,
    Difference,
    Precedence,
    differences,
    held,
)
from procurement.warranty_rules import HEAVY_USE, TESTING, says


def label_of(field: str) -> str:
    """What people call a term that a clause can ask."""
    if field == "last_payment":
        return _("Last part of the payment")
    names = {one.name: one.verbose_name for one in WarrantyTerms._meta.concrete_fields}
    return str(capfirst(names[field]))


def shown_term(field: str, value: Any) -> str:
    """A term's value as a person reads it."""
    if field in PROMISED:
        return _("Yes") if value else _("No")
    if field in CHOICES:
        return str(dict(TRIGGER_CHOICES if field == "start_trigger" else EVENT_CHOICES)[value])
    return str(value)


@dataclass(frozen=True, slots=True)
class Shown:
    """One difference with the clause that it is from; its words are in the language in force when they are read."""

    difference: Difference
    clause: RfqClause | None

    @property
    def label(self) -> str:
        return label_of(self.difference.field)

    @property
    def asked(self) -> str:
        return shown_term(self.difference.field, self.difference.asked)

    @property
    def quoted(self) -> str:
        return shown_term(self.difference.field, self.difference.quoted)

    @property
    def holds(self) -> str:
        """`clauses`, `quote`, or empty where the order does not say."""
        return str(self.difference.holds or "")

    def to_json(self) -> dict[str, Any]:
        code = None if self.clause is None else self.clause.clause.code
        return {**self.difference.to_json(), "clause_code": code}


def asks_of(rfq: Rfq, clauses: Iterable[RfqClause]) -> list[Ask]:
    """What an RFQ asks of the warranty: by its clauses, and of its length and start by itself."""
    found = [Ask(name, value, row.position) for row in clauses for name, value in row.asks.items()]
    return [
        *found,
        Ask("months", rfq.warranty_months),
        Ask("start_trigger", rfq.warranty_start),
    ]


def quoted_of(quote: Quote) -> dict[str, Any]:
    """What a quote says of each term; None where it does not. An exclusion of testing or of heavy use is a no."""
    warranty = quote.warranty
    found = {name: getattr(warranty, name) for name in NAMES if name != "last_payment"}
    for name, words in (("burn_in_permitted", TESTING), ("continuous_use_permitted", HEAVY_USE)):
        if says(warranty.exclusions, words):
            found[name] = False
    payments = list(quote.payments.all())
    found["last_payment"] = payments[-1].event if payments else None
    return found


def quote_differences(quote: Quote, precedence: Precedence | None) -> list[Shown]:
    """Where `quote` says less than its RFQ asks."""
    clauses = list(quote.rfq.clauses.select_related("clause"))
    by_position = {row.position: row for row in clauses}
    return [
        Shown(row, by_position.get(row.clause) if row.clause is not None else None)
        for row in differences(asks_of(quote.rfq, clauses), quoted_of(quote), precedence)
    ]


def precedence_of(order: PurchaseOrder) -> Precedence | None:
    return Precedence(order.precedence) if order.precedence else None


def order_differences(order: PurchaseOrder) -> list[Shown]:
    """Where the quote of an order says less than the RFQ, each with what the order holds."""
    return quote_differences(order.quote, precedence_of(order))


def held_terms(order: PurchaseOrder) -> dict[str, Any]:
    """The terms of warranty as an order holds them."""
    quote = order.quote
    return held(asks_of(quote.rfq, quote.rfq.clauses.all()), quoted_of(quote), precedence_of(order))
