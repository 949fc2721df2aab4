"""Up to which amount a person may agree."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction

from core.audit import record
from core.errors import InputError, NotPermitted
from core.messages import msg
from core.models import User
from core.money import CURRENCIES
from planning import policies
from planning.models.approvals import ApprovalLimit


@transaction.atomic
def set_limit(
    *, user: User, amount: Decimal | None, currency: str, by: User
) -> ApprovalLimit | None:
    """Set (or, with None, lift) the personal limit of `user`. By an administrator, not for oneself.

    Raises NotPermitted or InputError.
    """
    if not policies.can_load_policy(by) or by.pk == user.pk:
        raise NotPermitted(on=user)
    if amount is not None and (not amount.is_finite() or amount < 0):
        raise InputError("amount", msg("A limit must not be below 0"), value=amount, limit=">= 0")
    if currency not in CURRENCIES:
        raise InputError(
            "currency",
            msg("%(value)s is not a currency in use here", value=currency),
            value=currency,
        )
    old = ApprovalLimit.objects.select_for_update().filter(user=user).first()
    before = f"{old.amount} {old.currency}" if old else ""
    limit = None
    if amount is None:
        ApprovalLimit.objects.filter(user=user).delete()
    else:
        limit, _created = ApprovalLimit.objects.update_or_create(
            user=user, defaults={"amount": amount, "currency": currency}
        )
    record(
        "approval_limit.set",
        on=user,
        by=by,
        before=before,
        after="" if amount is None else f"{amount} {currency}",
    )
    return limit
