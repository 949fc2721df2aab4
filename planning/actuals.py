"""What procurement knows about a quarter, handed down as values: planning never imports procurement.

``procurement.selectors.actuals.quarter_actuals`` fills these; reviews freeze them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from core.messages import Message

# How far past its quarter a review looks for terms that end: what is renewed has to be ordered a quarter ahead. [d]
TERMS_AHEAD = timedelta(days=183)


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One line of a purchase order that stood in the quarter."""

    order: str
    request: str  # reference, R-0042; empty when the order serves none
    team: str
    vendor: str
    accelerator: str
    ordered: int
    received: int
    accepted: int
    failed: int
    amount: Decimal
    currency: str
    promised_on: date | None
    first_received_on: date | None


@dataclass(frozen=True, slots=True)
class CardResult:
    """Where one delivered card stands at the end of the quarter (or now)."""

    serial: str
    accelerator: str
    order: str
    vendor: str
    state: str  # asset state, as stored
    verdict: str  # of its latest burn-in; empty: none yet
    covered_hours: float | None  # of the burn-in; None: no evidence
    reason: str = ""
    team: str = ""  # for whose request it was bought


@dataclass(frozen=True, slots=True)
class VendorScore:
    """How one vendor did in the quarter."""

    vendor: str
    delivered: int
    failed: int
    days_late: float | None  # mean over its deliveries; None: none was due


@dataclass(frozen=True, slots=True)
class WarrantyEnd:
    """Units of one order whose last cover ends on one day."""

    order: str
    vendor: str
    team: str  # whose request they serve; empty: none's
    kind: str  # of asset, as stored
    accelerator: str  # empty: no card
    units: int
    last_day: date  # still covered


@dataclass(frozen=True, slots=True)
class CommitmentLeft:
    """A cloud line of a binding order that is not used up, in the unit of the line."""

    order: str
    vendor: str
    team: str
    accelerator: str
    unit: str
    committed: Decimal
    left: Decimal
    last_day: date | None  # at the mean of the months drawn; None: none was drawn


@dataclass(frozen=True, slots=True)
class OpenRfq:
    """An RFQ that is published and not awarded. No bid is told: sealed ones stay so."""

    rfq: str
    title: str
    status: str  # as stored
    accelerators: int
    deadline: str  # ISO 8601, with its offset


@dataclass(frozen=True, slots=True)
class OpenRma:
    """A return that is not settled."""

    rma: str
    vendor: str
    serial: str
    status: str  # as stored
    fault_on: date


@dataclass(frozen=True, slots=True)
class QuarterActuals:
    """All of it. `holes` name what could not be told, in words."""

    orders: tuple[OrderLine, ...] = ()
    cards: tuple[CardResult, ...] = ()
    vendors: tuple[VendorScore, ...] = ()
    warranties: tuple[WarrantyEnd, ...] = ()
    commitments: tuple[CommitmentLeft, ...] = ()
    rfqs: tuple[OpenRfq, ...] = ()
    rmas: tuple[OpenRma, ...] = ()
    open_rfqs: int = 0
    open_rmas: int = 0
    holes: tuple[Message, ...] = ()

    def of_team(self, name: str) -> QuarterActuals:
        """Orders and cards of one team; vendors, RFQs and returns stay those of all."""
        return replace(
            self,
            orders=tuple(row for row in self.orders if row.team == name),
            cards=tuple(row for row in self.cards if row.team == name),
            warranties=tuple(row for row in self.warranties if row.team == name),
            commitments=tuple(row for row in self.commitments if row.team == name),
        )

    def to_json(self) -> dict[str, Any]:
        """JSON values only: amounts as strings, dates as ISO 8601."""
        data = asdict(self)
        data["holes"] = [hole.to_json() for hole in self.holes]
        for order in data["orders"]:
            order["amount"] = str(order["amount"])
            for name in ("promised_on", "first_received_on"):
                order[name] = order[name].isoformat() if order[name] else None
        for row in data["warranties"]:
            row["last_day"] = row["last_day"].isoformat()
        for row in data["commitments"]:
            row["committed"], row["left"] = str(row["committed"]), str(row["left"])
            row["last_day"] = row["last_day"].isoformat() if row["last_day"] else None
        for row in data["rmas"]:
            row["fault_on"] = row["fault_on"].isoformat()
        for name in ("orders", "cards", "vendors", "warranties", "commitments", "rfqs", "rmas"):
            data[name] = list(data[name])
        return data
