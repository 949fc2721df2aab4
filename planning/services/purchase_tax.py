"""The organisation's tax on what it buys, which studies put on the order of a purchase."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction

from core import transitions
from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import Organisation, User
from core.organisation import organisation
from core.policies import require
from planning import policies
from planning.economics import defaults
from planning.places import country_of_zone
from planning.services.snapshots import corrected_costs
from planning.study.search.purchase_tax import PurchaseTax, usual_tax


def purchase_tax() -> PurchaseTax | None:
    """As the organisation set it, else its country's usual one; None where neither is known."""
    org = organisation()
    if org.purchase_tax_rate is not None:
        return PurchaseTax(float(org.purchase_tax_rate), org.purchase_tax_reclaimed)
    usual = tax_of(country_of_zone(org.time_zone))
    return usual and PurchaseTax(usual.rate, org.purchase_tax_reclaimed)


def tax_of(country: str) -> PurchaseTax | None:
    """The country's usual tax as the organisation's catalogue holds it: a corrected cost default counts. One query."""
    with defaults.corrected(corrected_costs()):
        return usual_tax(country)


@transaction.atomic
def set_purchase_tax(*, rate: Decimal | None, reclaimed: bool, by: User) -> Organisation:
    """State the tax on purchases as a share of the price before it; None: the country's usual one.

    Raises NotPermitted, or InputError for a rate below 0 or of 1 and more.
    """
    require(policies.can_set_purchase_tax(by))
    if rate is not None and not (rate.is_finite() and 0 <= rate < 1):
        raise InputError(
            "rate",
            msg("The tax is a share from 0 to below 1 (0.13 is 13 per cent); got %(value)s", value=str(rate)),
            value=rate,
            limit="0 <= x < 1",
        )  # fmt: skip
    found = transitions.lock(Organisation.objects.all(), organisation().pk)
    before = {"rate": found.purchase_tax_rate, "reclaimed": found.purchase_tax_reclaimed}
    found.purchase_tax_rate, found.purchase_tax_reclaimed = rate, reclaimed
    found.save(update_fields=["purchase_tax_rate", "purchase_tax_reclaimed"])
    after = {"rate": rate, "reclaimed": reclaimed}
    record(
        "organisation.purchase_tax_set", on=found, by=by,
        changes={f"purchase_tax_{name}": [_text(before[name]), _text(after[name])] for name in after},
    )  # fmt: skip
    return found


def _text(value: Decimal | bool | None) -> str | bool | None:
    return str(value) if isinstance(value, Decimal) else value
