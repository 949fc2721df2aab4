"""Exchange rates that are older than the rules call fresh: named with their day, their source and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from core.exchange import MissingRate, rate_on
from core.messages import Message, msg
from core.money import ExchangeRate
from core.organisation import today
from planning.models.approvals import ApprovalPolicy


@dataclass(frozen=True, slots=True)
class OldRate:
    """A rate that was old on the day it was used."""

    rate: ExchangeRate
    days: int
    limit: int

    @property
    def message(self) -> Message:
        return msg(
            "1 %(base)s = %(rate)s %(quote)s is of %(day)s (%(source)s): %(days)s days old; over %(limit)s days is "
            "old. Load a newer rate: Catalogue, Exchange rates",
            base=self.rate.base, quote=self.rate.quote, rate=f"{self.rate.rate.normalize():f}",
            day=self.rate.as_of.isoformat(), source=self.rate.source or "–", days=self.days, limit=self.limit,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        return {
            "base": self.rate.base, "quote": self.rate.quote, "rate": str(self.rate.rate),
            "as_of": self.rate.as_of.isoformat(), "source": self.rate.source, "days": self.days,
            "limit": self.limit,
        }  # fmt: skip


def rate_days() -> int:
    """From how many days on a rate counts as old, by the rules in force."""
    policy = ApprovalPolicy.objects.filter(active=True).first() or ApprovalPolicy()
    return policy.rate_days


def old_rates(rates: Iterable[ExchangeRate | None], on: date | None = None) -> list[OldRate]:
    """Those of `rates` that were old on the day `on` (today when None), each once. At most one query."""
    day = on or today()
    foreign = {rate for rate in rates if rate is not None and rate.base != rate.quote}
    if not foreign:
        return []
    limit = rate_days()
    found = [OldRate(rate, (day - rate.as_of).days, limit) for rate in foreign]
    return sorted(
        (row for row in found if row.days > limit), key=lambda row: (row.rate.base, row.rate.quote)
    )


def old_rates_today(currencies: Iterable[str], base: str) -> list[OldRate]:
    """Old ones among the rates that would be used today from `currencies` to `base`; a missing one is left out."""
    rates = []
    for currency in sorted(set(currencies) - {base}):
        try:
            rates.append(rate_on(currency, base, today()))
        except MissingRate:
            continue
    return old_rates(rates)
