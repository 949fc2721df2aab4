"""Payment by milestones: terms as data, and what each part comes to, exactly. Pure: standard library and core.money.

A term says: so many per cent of the order, once an event came (and so many days after it). Retention is a term that
opens some days after the acceptance. Instalments are several terms on one event with different days.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import Any

from core.errors import InputError
from core.messages import msg
from core.money import Money, minor_unit
from procurement.totals import allocate

MOST_TERMS = 60  # five years of monthly instalments
MOST_DAYS = 3650
HUNDRED = Decimal(100)


class PaymentEvent(StrEnum):
    """What opens a part of the payment."""

    ORDER = "order"  # the order is issued
    DELIVERY = "delivery"  # goods are received, in proportion to their value
    ACCEPTANCE = "acceptance"  # the acceptance after the burn-in is signed, in proportion
    RETENTION = "retention"  # days after the acceptance


@dataclass(frozen=True, slots=True)
class Term:
    """One part: `percent` of the order's total, `days` after `event`."""

    event: PaymentEvent
    percent: Decimal
    days: int = 0
    label: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "event": str(self.event),
            "percent": f"{self.percent.normalize():f}",
            "days": self.days,
            "label": self.label,
        }


def numbered(terms: Iterable[Term]) -> list[dict[str, Any]]:
    """Columns of the rows that keep `terms`, on a quote or on an order, in their order from 1."""
    return [{"position": number, **asdict(term)} for number, term in enumerate(terms, 1)]


@dataclass(frozen=True, slots=True)
class Part:
    """What a term comes to."""

    net: Money
    tax: Money

    @property
    def gross(self) -> Money:
        return self.net + self.tax


def check_terms(given: Iterable[Mapping[str, Any]]) -> tuple[Term, ...]:
    """Terms in order, none for an empty list. Raises InputError naming the term, its value and the limit."""
    rows = list(given)
    if len(rows) > MOST_TERMS:
        raise InputError(
            "payments",
            msg("%(value)s payment terms; at most %(limit)s", value=len(rows), limit=MOST_TERMS),
            value=len(rows),
            limit=MOST_TERMS,
        )
    terms = tuple(_term(number, row) for number, row in enumerate(rows, 1))
    whole = sum((term.percent for term in terms), Decimal(0))
    if terms and whole != HUNDRED:
        raise InputError(
            "payments",
            msg("The payment terms add up to %(value)s %%; they must add up to 100 %%",
                value=f"{whole.normalize():f}"),
            value=whole, limit=HUNDRED,
        )  # fmt: skip
    return terms


def _term(number: int, row: Mapping[str, Any]) -> Term:
    event = str(row.get("event", ""))
    if event not in set(PaymentEvent):
        raise InputError(
            "payments",
            msg("Payment term %(line)s: %(value)s is not one of %(choices)s", line=number, value=event,
                choices=", ".join(PaymentEvent)),
            value=event,
        )  # fmt: skip
    raw = row.get("percent")
    try:
        percent = Decimal("NaN") if isinstance(raw, float | bool) else Decimal(str(raw))
    except ArithmeticError:
        percent = Decimal("NaN")
    if (
        not percent.is_finite()
        or not 0 < percent <= HUNDRED
        or percent != percent.quantize(Decimal("0.001"))
    ):
        raise InputError(
            "payments",
            msg("Payment term %(line)s: %(value)s is not a share above 0 and up to 100 %% with at most three decimal "
                "places, sent as text", line=number, value=str(raw)),
            value=raw, limit=HUNDRED,
        )  # fmt: skip
    days = row.get("days") or 0
    if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= MOST_DAYS:
        raise InputError(
            "payments",
            msg("Payment term %(line)s: %(value)s is not a number of days from 0 to %(limit)s", line=number,
                value=str(days), limit=MOST_DAYS),
            value=days, limit=MOST_DAYS,
        )  # fmt: skip
    if event == PaymentEvent.RETENTION and days == 0:
        raise InputError(
            "payments",
            msg("Payment term %(line)s: a retention says how many days after the acceptance it ends",
                line=number),
            value=days, limit=1,
        )  # fmt: skip
    return Term(PaymentEvent(event), percent, days, str(row.get("label") or "").strip()[:80])


def parts_of(net: Money, tax: Money, terms: Sequence[Term]) -> tuple[Part, ...]:
    """Net and tax split by the terms' shares; both add up exactly, so does the total."""
    shares = [term.percent for term in terms]
    return tuple(
        Part(one, other)
        for one, other in zip(allocate(net, shares), allocate(tax, shares), strict=True)
    )


def opened_amount(whole: Money, share: Decimal) -> Money:
    """`share` [1] of `whole`, rounded down to the minor unit: what is not proven is not opened by rounding."""
    if share >= 1:
        return whole
    unit = minor_unit(whole.currency)
    return Money((whole.amount * share).quantize(unit, rounding=ROUND_FLOOR), whole.currency)


# How people write an event, in both languages.
WORDS = {
    "order": PaymentEvent.ORDER,
    "订单": PaymentEvent.ORDER,
    "下单": PaymentEvent.ORDER,
    "delivery": PaymentEvent.DELIVERY,
    "到货": PaymentEvent.DELIVERY,
    "acceptance": PaymentEvent.ACCEPTANCE,
    "验收": PaymentEvent.ACCEPTANCE,
    "retention": PaymentEvent.RETENTION,
    "质保金": PaymentEvent.RETENTION,
}
LINE = re.compile(
    r"^\s*(?P<percent>\d+(?:\.\d+)?)\s*[%％]?\s+(?P<event>\w+)(?:\s*\+?\s*(?P<days>\d+))?(?:\s+(?P<label>\S.*?))?\s*$"
)


def read_terms(text: str) -> list[dict[str, Any]]:
    """Terms as a person writes them, one a line: “10 retention 365 rest”. Raises InputError naming the line."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = LINE.match(line)
        event = WORDS.get(found["event"].lower()) if found else None
        if found is None or event is None:
            raise InputError(
                "payments",
                msg("Payment term %(line)s is not “percent event days”: %(value)s", line=number,
                    value=line.strip()[:60]),
                value=line,
            )  # fmt: skip
        rows.append(
            {
                "percent": found["percent"],
                "event": str(event),
                "days": int(found["days"] or 0),
                "label": found["label"] or "",
            }
        )
    return rows


def write_terms(terms: Iterable[Term]) -> str:
    """As `read_terms` reads them."""
    return "\n".join(
        " ".join(
            filter(
                None,
                [
                    f"{term.percent.normalize():f}",
                    str(term.event),
                    str(term.days) if term.days or term.label else "",
                    term.label,
                ],
            )
        )
        for term in terms
    )
