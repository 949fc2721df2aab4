"""Offers made from other offers: a term where only on demand is listed, owned cards beside rented ones.

What is derived says so in its `confidence`, with the factor in its source: a derived price is no quotation.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

from core.money import Money
from planning.economics import checks, defaults, exact
from planning.economics.ownership import Ownership
from planning.economics.types import (
    COMMITMENT_MONTHS,
    HOURS_PER_MONTH,
    BillingUnit,
    Offer,
    PaymentMode,
)

TERM_FACTORS = {
    PaymentMode.RESERVED_1Y: "pay_factor.reserved_1y",
    PaymentMode.RESERVED_3Y: "pay_factor.reserved_3y",
}


def reserved_from_on_demand(offer: Offer, mode: PaymentMode, factor: float | None = None) -> Offer:
    """A committed offer at a share of the on-demand price (default 0.68 for one year, 0.50 for three).

    Raises
    ------
    InputError
        If `offer` is not on demand, `mode` is no term, or the factor is not in (0, 1].
    """
    _require_on_demand(offer)
    if mode not in TERM_FACTORS:
        raise checks.refuse("mode", mode.value, "reserved_1y or reserved_3y")
    share = defaults.value(TERM_FACTORS[mode]) if factor is None else factor
    checks.fraction("factor", share)
    checks.positive("factor", share)
    return replace(
        offer,
        mode=mode,
        price=offer.price * exact.to_decimal(share),
        commitment_months=COMMITMENT_MONTHS[mode],
        confidence="derived",
        source=f"{share:g} x on demand; {offer.source}",
    )


def subscription(
    offer: Offer, per_month: Money, *, months: int = COMMITMENT_MONTHS[PaymentMode.SUBSCRIPTION]
) -> Offer:
    """The same instance at a price per month of 730 h, paid for whole months of at least `months`."""
    checks.price("per_month", per_month)
    if months < 1:
        raise checks.refuse("months", months, ">= 1")
    return replace(
        offer,
        mode=PaymentMode.SUBSCRIPTION,
        price=Money(per_month.amount / HOURS_PER_MONTH, per_month.currency),
        billing_unit=BillingUnit.MONTH,
        commitment_months=months,
        upfront=None,
    )


def owned_offer(
    owned: Ownership, *, name: str, as_of: date, mode: PaymentMode = PaymentMode.OWNED
) -> Offer:
    """Owned (or co-located) servers as an offer at their cost per used card-hour, for comparison by the hour.

    The price holds at the utilisation of the case only; capacity is for placement and portfolio to mind.
    """
    if mode not in (PaymentMode.OWNED, PaymentMode.COLOCATED, PaymentMode.LEASED):
        raise checks.refuse("mode", mode.value, "owned, colocated or leased")
    server = owned.case.server
    return Offer(
        provider=name,
        region="own",
        instance=server.slug,
        accelerator=server.accelerator,
        accelerators=server.accelerators,
        mode=mode,
        price=owned.per_accelerator_hour * server.accelerators,
        as_of=as_of,
        source=f"total cost at {owned.case.utilisation:.0%} utilisation over {owned.case.years} years",
        confidence="derived",
    )


def saving(offer: Offer, on_demand: Offer) -> float:
    """How much cheaper an hour of `offer` is than on demand, share; negative when dearer."""
    _require_on_demand(on_demand)
    checks.same_currency("offer", offer.price, on_demand.price)
    checks.positive("on_demand.price", on_demand.price.amount)
    per_card = offer.price.amount / offer.accelerators
    reference = on_demand.price.amount / on_demand.accelerators
    return float(Decimal(1) - per_card / reference)


def spot_is_known(spot: Offer, on_demand: Offer) -> bool:
    """False when the spot price equals the on-demand price: catalogues print that where there is none."""
    return spot.price != on_demand.price


def _require_on_demand(offer: Offer) -> None:
    if offer.mode is not PaymentMode.ON_DEMAND:
        raise checks.refuse("offer.mode", offer.mode.value, "on_demand")
