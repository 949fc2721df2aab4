"""What an award rests on, as plain values: frozen with the decision, so that its documents never change after it."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from core.models import Organisation, User
from core.money import money_json
from core.organisation import organisation
from procurement.milestones import parts_of as payment_parts
from procurement.models import Award, Quote, Rfq
from procurement.selectors.award_facts import award_facts
from procurement.selectors.comparison import Comparison, compare
from procurement.selectors.sensitivity import ranking_sensitivity
from procurement.selectors.whole_cost import whole_costs
from procurement.states import QuoteStatus

SENDER = ("name", "legal_name", "address", "time_zone")


def stamp(instant: datetime | None) -> str | None:
    """UTC, to the second."""
    return None if instant is None else instant.astimezone(UTC).isoformat(timespec="seconds")


def record_of(award: Award, *, by: User, at: datetime, over_reason: str = "") -> dict[str, Any]:
    """Everything on the memo, before the decision moves any state. Amounts and times as text."""
    rfq = award.rfq
    comparison = compare(rfq)
    hang = ranking_sensitivity(comparison)
    facts = award_facts(award)
    return {
        "organisation": _sender(organisation()),
        "rfq": _asked(rfq),
        "currency": comparison.currency,
        "weights": comparison.weights,
        "sheet": award.sheet,
        "whole_costs": _whole_costs(comparison),
        "sensitivity": hang.to_json() if hang else None,
        "award": {
            "to_none": award.to_none,
            "reason": award.reason,
            "site": "" if award.site is None else award.site.name,
            "proposed_by": str(award.proposed_by),
            "proposed_at": stamp(award.created_at),
            "decided_by": str(by),
            "decided_at": stamp(at),
            "over_reason": over_reason.strip(),
        },
        **facts.to_json(),
        "quotes": [_quote(quote) for quote in _quotes(rfq)],
        "statements": [
            {
                "person": str(row.person),
                "has_conflict": row.has_conflict,
                "text": row.text,
                "at": stamp(row.at),
            }
            for row in rfq.statements.select_related("person")
        ],
    }


def _sender(of: Organisation) -> dict[str, str]:
    """Who writes: the letterhead, and the zone in which days are told."""
    return {name: getattr(of, name) for name in SENDER}


def _asked(rfq: Rfq) -> dict[str, Any]:
    return {
        "number": rfq.number,
        "title": rfq.title,
        "owner": str(rfq.owner),
        "sealed": rfq.sealed,
        "published_at": stamp(rfq.published_at),
        "deadline": stamp(rfq.deadline),
        "opened_at": stamp(rfq.opened_at),
        "openings": [
            {"person": str(row.person), "at": stamp(row.at)}
            for row in rfq.openings.select_related("person")
        ],
        "criteria_hash": rfq.criteria_hash,
        "lines": [
            {
                "position": line.position,
                "request_id": line.request_id,
                "request": str(line.request),
                "description": line.description,
                "accelerators": line.accelerators,
            }
            for line in rfq.lines.select_related("request")
        ],
    }


def _whole_costs(comparison: Comparison) -> list[dict[str, Any]]:
    """What each compared quote costs over the years of service and per unit of the work, as counted at the decision."""
    found = whole_costs(comparison)
    return [
        {"vendor": row.quote.vendor.name, "quote": row.quote.pk, **found[row.quote.pk].frozen()}
        for row in comparison.rows
    ]


def _quotes(rfq: Rfq) -> list[Quote]:
    rows = rfq.quotes.filter(status__in=[QuoteStatus.SUBMITTED, QuoteStatus.DISQUALIFIED])
    return list(rows.select_related("vendor").prefetch_related("lines", "payments"))


def _quote(quote: Quote) -> dict[str, Any]:
    totals = quote.totals()
    terms = [row.term for row in quote.payments.all()]
    parts = payment_parts(totals.net, totals.tax, terms) if terms else ()
    return {
        "id": quote.pk,
        "vendor": quote.vendor.name,
        "legal_name": quote.vendor.legal_name,
        "address": quote.vendor.address,
        "reference": quote.reference,
        "revision": quote.revision,
        "received_at": stamp(quote.received_at),
        "disqualified": quote.status == QuoteStatus.DISQUALIFIED,
        "disqualified_for": quote.reason,
        "content_hash": quote.content_hash,
        "payments": [
            term.to_json() | {"amount": money_json(part.gross)}
            for term, part in zip(terms, parts, strict=True)
        ],
    }


def canonical(record: dict[str, Any]) -> str:
    """The record as JSON that is the same for the same values."""
    return json.dumps(record, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def record_hash(record: dict[str, Any]) -> str:
    """SHA-256 of the record in canonical JSON."""
    return hashlib.sha256(canonical(record).encode()).hexdigest()
