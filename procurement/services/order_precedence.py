"""Which goes first in an order where the quote says less than a clause: said while it is a draft."""

from __future__ import annotations

from django.db import transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from procurement.models import PurchaseOrder
from procurement.precedence import Precedence
from procurement.services.moves import need_reason, take, touch


@transaction.atomic
def set_precedence(
    *, order_id: int, precedence: str, reason: str, by: User, version: int | None = None
) -> PurchaseOrder:
    """Let the clauses or the quote hold where they differ, with a reason.

    Raises NotPermitted, InvalidTransition (the order binds already), StaleData or InputError.
    """
    order: PurchaseOrder = take(
        PurchaseOrder.objects.select_related("vendor"), order_id, action="set_precedence", by=by, version=version
    )  # fmt: skip
    text = need_reason(reason)
    known = [one.value for one in Precedence]
    if precedence not in known:
        raise InputError(
            "precedence",
            msg("%(field)s: %(value)s; there are: %(limit)s", field="precedence", value=precedence[:40],
                limit=", ".join(known)),
            value=precedence, limit=", ".join(known),
        )  # fmt: skip
    before = order.precedence
    if before == precedence:
        raise InputError("precedence", msg("Nothing would change"), value=precedence)
    order.precedence = precedence
    order.save(update_fields=["precedence"])
    touch(order)
    record(
        "order.precedence_set", on=order, by=by, reason=text, changes={"precedence": [before, precedence]}
    )  # fmt: skip
    return order
