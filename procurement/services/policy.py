"""Set how strictly the organisation buys."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.policies import require
from core.transitions import check_version
from procurement import policies
from procurement.models import PurchasingPolicy

FIELDS = (
    "sealing", "openers", "minimum_vendors", "reason_length", "over_delivery", "price_tolerance",
    "burn_in_hours", "conflict_statements",
)  # fmt: skip


@transaction.atomic
def set_purchasing_policy(
    *, by: User | None, version: int | None = None, **values: Any
) -> PurchasingPolicy:
    """Change the purchasing policy (None: set-up). Raises NotPermitted, StaleData or InputError."""
    if by is not None:
        require(policies.can_set_policy(by))
    policy = PurchasingPolicy.objects.select_for_update().first() or PurchasingPolicy()
    check_version(policy, version)
    before = {name: str(getattr(policy, name)) for name in FIELDS}
    for name in FIELDS:
        if name in values:
            setattr(policy, name, values[name])
    try:
        policy.full_clean()
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise InputError(
            name, msg("%(text)s", text=" ".join(texts)), value=values.get(name)
        ) from error
    if policy.pk is not None:
        policy.version += 1
    policy.save()
    after = {name: str(getattr(policy, name)) for name in FIELDS}
    changed = {name: [before[name], after[name]] for name in FIELDS if before[name] != after[name]}
    record("purchasing_policy.set", on=policy, by=by, changes=changed)
    return policy
