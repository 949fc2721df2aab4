"""Cloud commitments: what was used of them, month by month. It stands for receipt and acceptance of the line."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from django.db import transaction

from core.audit import record
from core.errors import DomainError, InputError
from core.messages import msg
from core.models import User
from core.organisation import local_day, today
from procurement.models import DrawDown, PurchaseOrder, PurchasingPolicy
from procurement.models.quotes import LineKind
from procurement.selectors.progress import line_progress
from procurement.services.invoice_matching import BelowInvoiced, require_invoiced_covered
from procurement.services.moves import need_reason, take, touch
from procurement.services.quote_lines import exact


class AlreadyDrawn(DomainError):
    """The month is noted already."""

    code = "already_drawn"


@transaction.atomic
def record_draw_down(
    *,
    order_id: int,
    position: int,
    month: date,
    quantity: Decimal | str | int,
    by: User,
    reason: str = "",
    version: int | None = None,
) -> PurchaseOrder:
    """Note what was used of a cloud line in `month`. A month that is noted is changed with a `reason` only.

    Raises NotPermitted, InvalidTransition, AlreadyDrawn (409) or InputError (not a cloud line, a month before the
    order or ahead, more than is left of the commitment and the policy's tolerance, less than was invoiced of the line
    or of a milestone that it opened).
    """
    order = take(
        PurchaseOrder.objects.select_related("vendor"), order_id, action="draw_down", by=by, version=version
    )  # fmt: skip
    line = order.lines.filter(position=position).first()
    if line is None or line.kind != LineKind.CLOUD:
        raise InputError(
            "position",
            msg("Line %(line)s is not a cloud commitment of the order", line=str(position)),
            value=position,
        )
    first = month.replace(day=1)
    issued = local_day(order.issued_at) if order.issued_at else today()
    if not issued.replace(day=1) <= first <= today():
        raise InputError(
            "month",
            msg("The month is between that of the order, %(issued)s, and this one",
                issued=issued.strftime("%Y-%m")),
            value=first, limit=today(),
        )  # fmt: skip
    amount = exact("quantity", quantity, digits=3, line=position)
    if amount == 0:
        raise InputError(
            "quantity", msg("Line %(line)s: the quantity must be above 0", line=position),
            value=amount, limit="> 0",
        )  # fmt: skip
    noted = line.draws.filter(month=first).first()
    if noted is not None and not reason.strip():
        raise AlreadyDrawn(
            msg("%(month)s is noted already with %(value)s: give a reason to change it",
                month=first.strftime("%Y-%m"), value=f"{noted.quantity.normalize():f}")
        )  # fmt: skip
    text = need_reason(reason) if noted is not None else ""
    before = noted.quantity if noted is not None else Decimal(0)
    progress = line_progress(order)[line.pk]
    after = progress.received - before + amount
    limit = line.quantity * (1 + PurchasingPolicy.current().over_delivery)
    if after > limit:
        raise InputError(
            "quantity",
            msg("Line %(line)s: %(value)s used in all; committed are %(limit)s", line=position,
                value=f"{after.normalize():f}", limit=f"{line.quantity.normalize():f}"),
            value=amount, limit=limit - (progress.received - before),
        )  # fmt: skip
    DrawDown.objects.update_or_create(
        order_line=line, month=first, defaults={"quantity": amount, "recorded_by": by}
    )
    if amount < before:
        try:
            require_invoiced_covered(order)
        except BelowInvoiced as error:
            raise InputError(
                "quantity", error.message, value=amount, limit=error.invoiced
            ) from error
    touch(order)
    record(
        "order.drawn_down", on=order, by=by, reason=text, line=position, month=first.isoformat(),
        quantity=[str(before), str(amount)], used=str(after),
    )  # fmt: skip
    return order
