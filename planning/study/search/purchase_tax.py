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
# Countries whose usual rates on goods and on services are among the cost defaults.
USUAL: Mapping[str, tuple[str, str]] = {"CN": ("vat.china", "vat.china_services")}


@dataclass(frozen=True, slots=True)
class PurchaseTax:
    """Shares of the price before tax, and whether the organisation gets them back (a general taxpayer does).

    `rate` is on goods: purchases and leases of equipment. `rents` is on services, such as a cloud's; None: the same.
    """

    rate: float
    reclaimed: bool = True
    rents: float | None = None

    def __post_init__(self) -> None:
        checks.below_one("purchase_tax", self.rate)
        if self.rents is not None:
            checks.below_one("rent_tax", self.rents)

    @property
    def rent_rate(self) -> float:
        """The share on what a cloud rents."""
        return self.rate if self.rents is None else self.rents

    def to_json(self) -> dict[str, Any]:
        """As a study pins it."""
        return {"rate": self.rate, "rents": self.rent_rate, "reclaimed": self.reclaimed}


def kept_factor(tax: PurchaseTax | None) -> float:
    """What a rent of one before tax costs in the end: more than one only where its tax is not reclaimed. [1]"""
    return 1.0 if tax is None or tax.reclaimed else 1.0 + tax.rent_rate


def rent_tax(tax: PurchaseTax | None, before: Money) -> Money:
    """The tax on all that is rented for a plan, rounded once; zero where none is set."""
    rate = Decimal(0) if tax is None else to_decimal(tax.rent_rate)
    return (before * rate).rounded()


def tax_from_json(data: Mapping[str, Any] | None) -> PurchaseTax | None:
    """What :meth:`PurchaseTax.to_json` wrote; None: no tax was set, as in every study of before."""
    if data is None:
        return None
    rate, rents = float(data["rate"]), data.get("rents")
    other = None if rents is None or float(rents) == rate else float(rents)
    return PurchaseTax(rate, bool(data["reclaimed"]), other)


def usual_tax(country: str) -> PurchaseTax | None:
    """The country's usual tax, taken to be reclaimed; None where no rate is known: none is made up."""
    names = USUAL.get(country)
    if names is None:
        return None
    goods, services = map(defaults.value, names)
    return PurchaseTax(goods, rents=services)


def rent_tax_note(tax: PurchaseTax | None, due: Money) -> Message:
    """What a rented plan says of its tax."""
    if tax is None:
        return msg("No tax is set for the organisation: a taxed bill comes to more than this")
    rate = _per_cent(tax.rent_rate)
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
    rate = _per_cent(tax.rate)
    if tax.reclaimed:
        return msg("Tax at %(rate)s %%, %(tax)s, is paid at the order and reclaimed: it is in no cost",
                   rate=rate, tax=paid.about())  # fmt: skip
    return msg("Tax at %(rate)s %%, %(tax)s, is paid at the order and not reclaimed: it is in the cost",
               rate=rate, tax=paid.about())  # fmt: skip


def _per_cent(share: float) -> str:
    return f"{round(share * 100, 2):g}"
