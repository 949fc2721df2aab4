"""Where an order is to be delivered: first where its requests' plans stand, then as buyers say."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from planning.models import PlanChoice, Site
from planning.selectors.capacity import place_of
from procurement.models import OrderLine, PurchaseOrder, RfqLine
from procurement.services.moves import take, touch


def site_named(name: str) -> Site:
    """The site of that name, if it takes new servers. Raises InputError naming those that do."""
    found = Site.objects.in_use().filter(name=name.strip()).first()
    if found is None:
        known = ", ".join(Site.objects.in_use().order_by("name").values_list("name", flat=True))
        raise InputError(
            "site",
            msg("There is no site %(value)s that takes new servers; there are: %(limit)s", value=name.strip(),
                limit=known or "–"),
            value=name, limit=known,
        )  # fmt: skip
    return found


def planned_site(lines: Iterable[OrderLine] | Iterable[RfqLine]) -> Site | None:
    """The one site that the plans of all requests of these lines name; None where they name several, or none."""
    revisions = {
        (line.request_id, line.request.revision_number)
        for line in lines
        if line.request is not None
    }
    plans = [
        plan
        for plan in PlanChoice.objects.filter(
            revision__request__in=[pk for pk, _number in revisions]
        ).select_related("revision")
        if (plan.revision.request_id, plan.revision.number) in revisions
    ]
    places = {place_of(plan) for plan in plans}
    if len(places) != 1 or len(plans) != len(revisions):
        return None
    return Site.objects.in_use().filter(name=places.pop()).first()


@transaction.atomic
def deliver_to(*, order_id: int, site: str, by: User, version: int | None = None) -> PurchaseOrder:
    """Say to which site (by its name) an order goes.

    Raises NotPermitted, InvalidTransition, StaleData or InputError.
    """
    order: PurchaseOrder = take(
        PurchaseOrder.objects.select_related("vendor", "site"), order_id, action="deliver_to", by=by, version=version
    )  # fmt: skip
    found = site_named(site)
    before = order.site
    if before == found:
        raise InputError(
            "site", msg("It goes to %(site)s already", site=found.name), value=site, limit=found.name
        )  # fmt: skip
    order.site = found
    order.save(update_fields=["site"])
    touch(order)
    changes = {"site": [before.name if before else "", found.name]}
    record("order.site_set", on=order, by=by, changes=changes)
    return order
