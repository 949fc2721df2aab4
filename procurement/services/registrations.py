"""Warranties that start with a registration at the vendor: noted by a person, reminded of before it is too late."""

from __future__ import annotations

from datetime import date

from django.db import transaction
from django.db.models import QuerySet

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.organisation import today
from procurement.models import AssetWarranty, Delivery
from procurement.serials import fold, refuse_duplicates, split_list
from procurement.services.moves import take, touch
from procurement.states import GONE_ASSET
from procurement.warranty_rules import StartTrigger, last_covered_day


def unregistered() -> QuerySet[AssetWarranty]:
    """Warranties of units that are here which start with a registration and have not started."""
    return AssetWarranty.objects.filter(
        start_trigger=StartTrigger.REGISTRATION.value, starts_on=None
    ).exclude(asset__status__in=GONE_ASSET)


def awaiting_registration(delivery: Delivery) -> QuerySet[AssetWarranty]:
    """Those of the units of one delivery, replacements included."""
    return unregistered().filter(asset__receipt_line__delivery=delivery)


@transaction.atomic
def register_warranty(
    *,
    delivery_id: int,
    registered_on: date,
    by: User,
    registration: str = "",
    serials: str = "",
    version: int | None = None,
) -> Delivery:
    """Note that units of a delivery were registered at the vendor: their warranty starts on that day.

    `serials` (separated by commas, spaces or lines) names them; empty: all that wait. All of them start or none.
    Raises NotPermitted, InvalidTransition, StaleData or InputError.
    """
    delivery: Delivery = take(
        Delivery.objects.select_related("vendor", "order"), delivery_id, action="register_warranty", by=by,
        version=version,
    )  # fmt: skip
    first, last = delivery.arrived_on, today()
    if first is None or not first <= registered_on <= last:
        raise InputError(
            "registered_on",
            msg("The day of registration, %(value)s, is not from %(first)s to %(last)s",
                value=registered_on.isoformat(), first=first.isoformat() if first else "–",
                last=last.isoformat()),
            value=registered_on, limit=last,
        )  # fmt: skip
    number = registration.strip()
    if len(number) > 80:
        raise InputError(
            "registration",
            msg("%(field)s has %(value)s characters; 1 to %(limit)s are asked for", field="registration",
                value=len(number), limit=80),
            value=len(number), limit=80,
        )  # fmt: skip
    rows = list(
        awaiting_registration(delivery).select_for_update(of=("self",)).select_related("asset")
    )
    if named := split_list(serials):
        refuse_duplicates(named, field="serials")
        wanted = {fold(serial): serial for serial in named}
        found = {row.asset.folded_serial for row in rows}
        if missing := [serial for key, serial in wanted.items() if key not in found]:
            raise InputError(
                "serials",
                msg("%(value)s: no unit of this delivery whose warranty waits for its registration",
                    value=", ".join(missing[:5])),
                value=missing[0],
            )  # fmt: skip
        rows = [row for row in rows if row.asset.folded_serial in wanted]
    if not rows:
        raise InputError(
            "serials", msg("No warranty of this delivery waits for its registration"), value=""
        )
    for row in rows:
        row.starts_on = registered_on
        row.ends_on = last_covered_day(registered_on, row.months)
        row.registration = number
    AssetWarranty.objects.bulk_update(rows, ["starts_on", "ends_on", "registration"])
    touch(delivery)
    record(
        "delivery.registered", on=delivery, by=by, registered_on=registered_on.isoformat(), registration=number,
        serials=sorted({row.asset.serial for row in rows}),
    )  # fmt: skip
    return delivery
