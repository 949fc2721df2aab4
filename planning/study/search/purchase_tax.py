"""Tax on what is bought or rented: asked for with the price, and reclaimed later or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from core.messages import Message, msg
from core.money import Money
from planning.economics import checks, defaults
from planning.economics.exact import to_decimal

TAX_LABEL = msg("Tax on the purchase")
RENT_TAX_LABEL = msg("Tax on the rent")
# Countries whose usual rate on hardware is among the cost defaults.
USUAL: Mapping[str, str] = {"CN": "vat.china"}


@dataclass(frozen=True, slots=True)
class PurchaseTax:
    """Share of the price before tax, and whether the organisation gets it back (a general taxpayer does)."""

    rate: float
    reclaimed: bool = True

    def __post_init__(self) -> None:
        checks.below_one("purchase_tax", self.rate)

    def to_json(self) -> dict[str, Any]:
        """As a study pins it."""
        return {"rate": self.rate, "reclaimed": self.reclaimed}


def kept_factor(tax: PurchaseTax | None) -> float:
    """What one unit of money before tax costs in the end: more than one only where its tax is not reclaimed. [1]"""
    return 1.0 if tax is None or tax.reclaimed else 1.0 + tax.rate


def rent_tax(tax: PurchaseTax | None, before: Money) -> Money:
    """The tax on all that is rented for a plan, rounded once; zero where none is set."""
    rate = Decimal(0) if tax is None else to_decimal(tax.rate)
    return (before * rate).rounded()


def tax_from_json(data: Mapping[str, Any] | None) -> PurchaseTax | None:
    """What :meth:`PurchaseTax.to_json` wrote; None: no tax was set, as in every study of before."""
    return None if data is None else PurchaseTax(float(data["rate"]), bool(data["reclaimed"]))


def usual_tax(country: str) -> PurchaseTax | None:
    """The country's usual tax on hardware, taken to be reclaimed; None where no rate is known: none is made up."""
    name = USUAL.get(country)
    return None if name is None else PurchaseTax(defaults.value(name))


def rent_tax_note(tax: PurchaseTax | None, due: Money) -> Message:
    """What a rented plan says of its tax."""
    if tax is None:
        return msg("No tax is set for the organisation: a taxed bill comes to more than this")
    rate = f"{round(tax.rate * 100, 2):g}"
    if tax.reclaimed:
        return msg("Tax at %(rate)s %%, %(tax)s, is on the bills and reclaimed: it is in no cost",
                   rate=rate, tax=due.about())  # fmt: skip
    return msg("Tax at %(rate)s %%, %(tax)s, is on the bills and not reclaimed: it is in the cost",
               rate=rate, tax=due.about())  # fmt: skip


def tax_note(tax: PurchaseTax | None, paid: Money, *, included: bool | None) -> Message:
    """What a purchase plan says of its tax; `included`: whether the price held it already (None: not stated)."""
    if tax is None:
        if included:
            return msg(
                "The price includes tax; no rate is set for the organisation to tell it apart"
            )
        return msg(
            "No tax on purchases is set for the organisation: a taxed order comes to more than this"
        )
    rate = f"{round(tax.rate * 100, 2):g}"
    if tax.reclaimed:
        return msg("Tax at %(rate)s %%, %(tax)s, is paid at the order and reclaimed: it is in no cost",
                   rate=rate, tax=paid.about())  # fmt: skip
    return msg("Tax at %(rate)s %%, %(tax)s, is paid at the order and not reclaimed: it is in the cost",
               rate=rate, tax=paid.about())  # fmt: skip
