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
    rate, rents = (
        None if value is None else float(value)
        for value in (org.purchase_tax_rate, org.rent_tax_rate)
    )
    # Without a rate of its own on rents: the usual pair where neither is stated, else that on purchases.
    usual = tax_of(country_of_zone(org.time_zone)) if rate is None else None
    if usual is not None:
        rate, rents = usual.rate, usual.rents if rents is None else rents
    return None if rate is None else PurchaseTax(rate, org.purchase_tax_reclaimed, rents)


def tax_of(country: str) -> PurchaseTax | None:
    """The country's usual tax as the organisation's catalogue holds it: a corrected cost default counts. One query."""
    with defaults.corrected(corrected_costs()):
        return usual_tax(country)


@transaction.atomic
def set_purchase_tax(
    *, rate: Decimal | None, reclaimed: bool, by: User, rents: Decimal | None = None
) -> Organisation:
    """State the tax on purchases, and on a cloud's rents, as shares of the price before it.

    `rate` None: the country's usual ones. `rents` None: as on purchases, and the usual one with the
    usual `rate`.
    Raises NotPermitted, or InputError for a rate below 0 or of 1 and more.
    """
    require(policies.can_set_purchase_tax(by))
    for name, share in (("rate", rate), ("rents", rents)):
        if share is not None and not (share.is_finite() and 0 <= share < 1):
            raise InputError(
                name,
                msg("The tax is a share from 0 to below 1 (0.13 is 13 per cent); got %(value)s", value=str(share)),
                value=share,
                limit="0 <= x < 1",
            )  # fmt: skip
    found = transitions.lock(Organisation.objects.all(), organisation().pk)
    if rents is not None and rate is None and tax_of(country_of_zone(found.time_zone)) is None:
        # Counting no tax on purchases would be a guess.
        raise InputError(
            "rate", msg("State the tax on purchases too: no usual one is known"), value=""
        )
    after = {"purchase_tax_rate": rate, "rent_tax_rate": rents, "purchase_tax_reclaimed": reclaimed}
    changes = {}
    for name, value in after.items():
        changes[name] = [_text(getattr(found, name)), _text(value)]
        setattr(found, name, value)
    found.save(update_fields=list(after))
    record("organisation.purchase_tax_set", on=found, by=by, changes=changes)
    return found


def _text(value: Decimal | bool | None) -> str | bool | None:
    return str(value) if isinstance(value, Decimal) else value
