"""Where a vendor's warranty says less than the clauses it was asked under, and which of the two an order holds. Pure.

A clause carries what it asks as data, `{"doa_days": 30, "doa_new": true}`: names of warranty terms, and `last_payment`.
An order says which of clauses and quote goes first. Where the quote is silent the clause holds, where it offers more
the quote does: only where it says less is there anything to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.errors import InputError
from core.messages import msg
from procurement.milestones import PaymentEvent
from procurement.warranty_rules import StartTrigger


class Precedence(StrEnum):
    """Which goes first where the quote says less than a clause."""

    CLAUSES = "clauses"
    QUOTE = "quote"


# Terms that are counted, each with the most that can be asked; more is better for the buyer.
AT_LEAST = {"months": 240, "doa_days": 3650, "return_days": 3650, "spare_part_years": 50}
# Terms that are promised or not.
PROMISED = (
    "doa_from_delivery", "doa_new", "advance_replacement", "replacement_new", "burn_in_permitted",
    "continuous_use_permitted", "new_parts_only", "authorised_channel", "transferable",
)  # fmt: skip
# Terms that are one of several; where they are in an order, the later one is better for the buyer.
CHOICES: dict[str, tuple[str, ...]] = {
    "start_trigger": tuple(trigger.value for trigger in StartTrigger),
    "last_payment": tuple(event.value for event in PaymentEvent),
}
NAMES = (*AT_LEAST, *CHOICES, *PROMISED)
# An order states these itself, from the quote that its price rests on: no clause changes them.
OF_THE_ORDER = ("last_payment",)


@dataclass(frozen=True, slots=True)
class Ask:
    """One term that was asked for: by a clause (its position in the RFQ), or by the RFQ itself (None)."""

    field: str
    value: int | bool | str
    clause: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The quote says less than was asked. `holds`: None where the order does not say which goes first."""

    field: str
    clause: int | None
    asked: int | bool | str
    quoted: int | bool | str
    holds: Precedence | None

    def to_json(self) -> dict[str, Any]:
        return {
            "field": self.field, "clause": self.clause, "asked": self.asked, "quoted": self.quoted,
            "holds": None if self.holds is None else str(self.holds),
        }  # fmt: skip


def check_asks(given: Any) -> dict[str, int | bool | str]:
    """What a clause asks, in the order of NAMES. Raises InputError naming the term, its value and the limit."""
    if not isinstance(given, Mapping):
        raise InputError(
            "asks", msg("Give the terms that the clause asks by name"), value=str(given)[:80]
        )
    for name in given:
        if name not in NAMES:
            raise InputError(
                "asks",
                msg("%(value)s is no term that a clause can ask; there are: %(limit)s", value=str(name)[:80],
                    limit=", ".join(NAMES)),
                value=name, limit=", ".join(NAMES),
            )  # fmt: skip
    return {name: _checked(name, given[name]) for name in NAMES if name in given}


def _checked(name: str, value: Any) -> int | bool | str:
    if name in AT_LEAST:
        most = AT_LEAST[name]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise InputError(
                name,
                msg("%(field)s: %(value)s; a whole number from 1 to %(limit)s is asked for", field=name,
                    value=str(value)[:40], limit=most),
                value=value, limit=most,
            )  # fmt: skip
        return value
    allowed: tuple[Any, ...] = CHOICES.get(name, (True,))
    if not isinstance(value, bool | str) or value not in allowed:
        raise InputError(
            name,
            msg("%(field)s: %(value)s; there are: %(limit)s", field=name, value=str(value)[:40],
                limit=", ".join(str(one).lower() for one in allowed)),
            value=value, limit=", ".join(str(one).lower() for one in allowed),
        )  # fmt: skip
    return value


def _is_less(field: str, quoted: Any, asked: Any) -> bool:
    """Whether the quote's word is worse for the buyer than what was asked."""
    if field in AT_LEAST or field in PROMISED:
        return bool(quoted < asked)
    if field == "last_payment":
        order = CHOICES[field]
        return order.index(quoted) < order.index(asked)
    return bool(quoted != asked)  # a warranty starts with one event: which comes later is not known


def _strictest(asks: Iterable[Ask]) -> dict[str, Ask]:
    """One ask of each term: a clause before the RFQ itself, among clauses the one that asks most, else the first."""
    found: dict[str, Ask] = {}
    for ask in asks:
        known = found.get(ask.field)
        if (
            known is None
            or (known.clause is None and ask.clause is not None)
            or (
                ask.clause is not None
                and ask.field in AT_LEAST
                and _is_less(ask.field, known.value, ask.value)
            )
        ):
            found[ask.field] = ask
    return found


def differences(
    asks: Iterable[Ask], quoted: Mapping[str, Any], precedence: Precedence | None
) -> tuple[Difference, ...]:
    """Terms of which the quote says less than was asked, in the order of NAMES. None in `quoted`: it does not say.

    What the RFQ asked outside its clauses (the length of the warranty) is no clause of the order: the quote holds.
    """
    strictest = _strictest(asks)
    found = []
    for name in NAMES:
        ask, said = strictest.get(name), quoted.get(name)
        if ask is None or said is None or not _is_less(name, said, ask.value):
            continue
        holds = precedence
        if precedence is not None and (ask.clause is None or name in OF_THE_ORDER):
            holds = Precedence.QUOTE
        found.append(Difference(name, ask.clause, ask.value, said, holds))
    return tuple(found)


def held(
    asks: Iterable[Ask], quoted: Mapping[str, Any], precedence: Precedence | None
) -> dict[str, Any]:
    """Every term as the order holds it. Where the order does not say which goes first: as quoted."""
    terms = dict(quoted)
    if precedence is None:
        return terms
    asked = list(asks)
    lost = {row.field for row in differences(asked, quoted, precedence) if row.holds == "clauses"}
    for name, ask in _strictest(asked).items():
        if ask.clause is not None and (terms.get(name) is None or name in lost):
            terms[name] = ask.value
    return terms
