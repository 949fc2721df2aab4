"""What someone who decides on an award must see: of whom, what, for how much, against what was approved, next best."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.money import Money, money_json
from core.organisation import organisation
from planning.selectors.rates import OldRate, old_rates_today
from procurement.models import Award
from procurement.precedence import Precedence
from procurement.selectors.awarded import Against, Part, award_rows, parts_of
from procurement.selectors.precedence import Shown, quote_differences
from procurement.states import AwardStatus


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The best complete quote that was not chosen, as compared when the award was proposed."""

    vendor: str
    gross: Money | None  # with tax, in the organisation's currency
    rank: int
    score: str


@dataclass(frozen=True, slots=True)
class AwardFacts:
    """One award."""

    parts: list[Part]
    rows: list[Against]
    runner_up: RunnerUp | None
    rank: int | None  # of the chosen quote; None: several, or not ranked
    score: str
    old_rates: list[OldRate]
    site: str  # where it will stand; empty: as the plans say
    differences: list[tuple[str, list[Shown]]]  # by vendor: its quote says less than was asked

    @property
    def is_beyond(self) -> bool:
        return any(row.is_beyond for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        runner = self.runner_up
        return {
            "parts": [
                {
                    "vendor": part.vendor, "items": part.items, "cards": part.cards,
                    "net": money_json(part.totals.net), "tax": money_json(part.totals.tax),
                    "gross": money_json(part.totals.gross),
                }
                for part in self.parts
            ],
            "against_approved": [row.to_json() for row in self.rows],
            "differences": [
                {"vendor": vendor, **row.to_json()} for vendor, rows in self.differences for row in rows
            ],
            "old_rates": [row.to_json() for row in self.old_rates],
            "site": self.site,
            "runner_up": None
            if runner is None
            else {
                "vendor": runner.vendor, "gross": money_json(runner.gross), "rank": runner.rank,
                "score": runner.score,
            },
        }  # fmt: skip


def award_facts(award: Award) -> AwardFacts:
    """For the page of the RFQ, the dialog and the API: the same figures."""
    chosen = {int(pk) for pk in award.quote_hashes}
    ranked = sorted(
        (row for row in award.sheet if row.get("rank") is not None), key=lambda row: row["rank"]
    )
    others = [row for row in ranked if row["quote"] not in chosen]
    own = [row for row in ranked if row["quote"] in chosen]
    runner = None
    if others:
        best = others[0]
        runner = RunnerUp(
            best["vendor"], _parsed(best["gross"]), best["rank"], best["score"] or "–"
        )
    one = own[0] if len(chosen) == 1 and own else None
    parts = parts_of(award)
    return AwardFacts(
        parts=parts,
        site="" if award.site is None else award.site.name,
        old_rates=old_rates_today(
            [part.totals.gross.currency for part in parts], organisation().currency
        )
        if award.status == AwardStatus.PROPOSED
        else [],
        rows=award_rows(award),
        runner_up=runner,
        differences=_differences(award, chosen),
        rank=one["rank"] if one else None,
        score=(one["score"] or "") if one else "",
    )


def _differences(award: Award, chosen: set[int]) -> list[tuple[str, list[Shown]]]:
    """As the order will hold them unless its buyer says otherwise."""
    quotes = award.rfq.quotes.filter(pk__in=chosen).select_related("rfq", "vendor", "warranty")
    found = [
        (quote.vendor.name, quote_differences(quote, Precedence.CLAUSES))
        for quote in quotes.prefetch_related("payments")
    ]
    return [(vendor, rows) for vendor, rows in found if rows]


def _parsed(text: str | None) -> Money | None:
    """ "123.45 CNY" as frozen in the sheet."""
    if text is None:
        return None
    amount, currency = text.split(" ")
    return Money(Decimal(amount), currency)
