"""Within what a purchasing policy may be set, and which way each value is looser. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

# Field → least and most. Shares are of the ordered quantity or unit price; hours as they pass on a clock.
BOUNDS: dict[str, tuple[Decimal, Decimal]] = {
    "openers": (Decimal(1), Decimal(5)),
    "minimum_vendors": (Decimal(1), Decimal(20)),
    "reason_length": (Decimal(1), Decimal(1000)),
    "over_delivery": (Decimal(0), Decimal("0.2")),
    "price_tolerance": (Decimal(0), Decimal("0.1")),
    "burn_in_hours": (Decimal(1), Decimal(720)),
}
SHARES = frozenset({"over_delivery", "price_tolerance"})  # the others are whole numbers
MORE_IS_LOOSER = SHARES  # less of the others lets more pass
SEALING = ("never", "choice", "always")  # from loose to strict


def loosened(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Fields whose value in `after` lets more pass than in `before`."""
    found = []
    for name, new in after.items():
        old = before[name]
        if name == "sealing":
            looser = SEALING.index(new) < SEALING.index(old)
        else:
            looser = new > old if name in MORE_IS_LOOSER else new < old
        if looser:
            found.append(name)
    return found
