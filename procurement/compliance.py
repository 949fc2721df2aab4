"""What an RFQ asks of a quote, term by term: met, not met, or not said. Pure.

What a quote does not say is no failure and no promise: it is told apart, so that it is asked before the award.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from core.messages import Message, msg
from procurement.requirements import Verdict
from procurement.warranty_rules import StartTrigger

# Later is better for the buyer. A registration may come at any time: it stands for itself alone.
_ORDER = (
    StartTrigger.ORDER,
    StartTrigger.INVOICE,
    StartTrigger.SHIPMENT,
    StartTrigger.DELIVERY,
    StartTrigger.POWER_ON,
    StartTrigger.ACCEPTANCE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The terms of an RFQ. None or empty: not asked."""

    accelerators: int
    warranty_months: int
    warranty_start: StartTrigger
    burn_in_hours: int
    deliver_by: date | None  # also None where criteria of delivery say it
    has_terms: bool  # terms of acceptance in words


@dataclass(frozen=True, slots=True)
class Offered:
    """What a quote says to them. None: it does not."""

    accelerators: int  # of all asked lines, each counted up to what it asks
    warranty_months: int
    warranty_start: StartTrigger
    burn_in_permitted: bool | None
    comes_on: date  # if ordered on the day of judging


@dataclass(frozen=True, slots=True)
class Check:
    """One asked term and how it is answered."""

    term: str
    verdict: Verdict
    message: Message


def compliance(asked: Asked, offered: Offered, *, ordered: date) -> tuple[Check, ...]:
    """Every asked term with its verdict, in the order of the RFQ."""
    found = [
        Check(
            "quantity",
            _met(offered.accelerators >= asked.accelerators),
            msg("%(n)s of %(asked)s accelerators asked for", n=offered.accelerators,
                asked=asked.accelerators),
        ),
        Check(
            "warranty_months",
            _met(offered.warranty_months >= asked.warranty_months),
            msg("Warranty of %(n)s months; %(asked)s are asked for", n=offered.warranty_months,
                asked=asked.warranty_months),
        ),
        Check(
            "warranty_start",
            _met(starts_no_earlier(offered.warranty_start, asked.warranty_start)),
            _START[asked.warranty_start],
        ),
        Check(
            "burn_in",
            _said(offered.burn_in_permitted),
            msg("A burn-in of %(hours)s h counts as normal use", hours=asked.burn_in_hours),
        ),
    ]  # fmt: skip
    if asked.deliver_by is not None:
        found.append(
            Check(
                "deliver_by",
                _met(offered.comes_on <= asked.deliver_by),
                msg("Delivery by %(day)s; ordered on %(ordered)s it comes on %(ready)s",
                    day=asked.deliver_by.isoformat(), ordered=ordered.isoformat(),
                    ready=offered.comes_on.isoformat()),
            )
        )  # fmt: skip
    if asked.has_terms:
        # A quote answers words by words: its notes are read, or the vendor is asked.
        found.append(Check("terms", Verdict.UNSAID, msg("The terms of acceptance are agreed to")))
    return tuple(found)


_START = {
    StartTrigger.ORDER: msg("Warranty starts with the order or later"),
    StartTrigger.INVOICE: msg("Warranty starts with the invoice or later"),
    StartTrigger.SHIPMENT: msg("Warranty starts with the shipment or later"),
    StartTrigger.DELIVERY: msg("Warranty starts with the delivery or later"),
    StartTrigger.POWER_ON: msg("Warranty starts with the first power-on or later"),
    StartTrigger.ACCEPTANCE: msg("Warranty starts with the signed acceptance"),
    StartTrigger.REGISTRATION: msg("Warranty starts with the registration"),
}


def starts_no_earlier(offered: StartTrigger, asked: StartTrigger) -> bool:
    """Whether cover begins with the asked event or with one that comes after it."""
    if offered == asked:
        return True
    if StartTrigger.REGISTRATION in (offered, asked):
        return False
    return _ORDER.index(offered) > _ORDER.index(asked)


def _met(met: bool) -> Verdict:
    return Verdict.MEETS if met else Verdict.MISSES


def _said(answer: bool | None) -> Verdict:
    return Verdict.UNSAID if answer is None else _met(answer)
