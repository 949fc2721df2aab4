"""Set how strictly the organisation buys. What lets more pass takes a second administrator, except in a small team."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import User
from core.policies import require
from core.transitions import check_version
from procurement import policies
from procurement.models import PurchasingPolicy
from procurement.purchasing_limits import BOUNDS, SEALING, SHARES, loosened
from procurement.selectors.purchasing import needs_second

FIELDS = (
    "sealing", "openers", "minimum_vendors", "reason_length", "over_delivery", "price_tolerance",
    "burn_in_hours", "conflict_statements",
)  # fmt: skip


@transaction.atomic
def set_purchasing_policy(
    *, by: User | None, version: int | None = None, **values: Any
) -> PurchasingPolicy:
    """Change the purchasing policy (None: set-up), or propose the change where a second administrator must agree:
    `proposed` of the returned row is not empty then, and takes the place of an earlier proposal.

    Raises NotPermitted, StaleData or InputError.
    """
    policy = _locked(by, version)
    wanted = {name: _checked(name, values[name]) for name in FIELDS if name in values}
    if by is not None and loosened(_values(policy), wanted) and needs_second():
        policy.proposed = {name: str(value) for name, value in wanted.items()}
        policy.proposed_by, policy.proposed_at = by, timezone.now()
        _save(policy)
        record("purchasing_policy.proposed", on=policy, by=by, changes=_changes(policy, wanted))
        return policy
    return _apply(policy, wanted, by=by)


@transaction.atomic
def confirm_purchasing_policy(*, by: User, version: int | None = None) -> PurchasingPolicy:
    """Put the proposed change in force, as a second administrator.

    Raises NotPermitted, StaleData, InvalidTransition when nothing is proposed.
    """
    policy = _locked(by, version)
    _require_proposal(policy)
    require(policies.can_confirm_policy(by, policy))
    return _apply(policy, proposed_values(policy), by=by)


@transaction.atomic
def decline_purchasing_policy(*, by: User, version: int | None = None) -> PurchasingPolicy:
    """Drop the proposed change; who proposed it may take it back."""
    policy = _locked(by, version)
    _require_proposal(policy)
    changes = _changes(policy, proposed_values(policy))
    _clear(policy)
    _save(policy)
    record("purchasing_policy.declined", on=policy, by=by, changes=changes)
    return policy


def proposed_values(policy: PurchasingPolicy) -> dict[str, Any]:
    """The values that wait, typed."""
    return {name: _checked(name, value) for name, value in policy.proposed.items()}


def _locked(by: User | None, version: int | None) -> PurchasingPolicy:
    if by is not None:
        require(policies.can_set_policy(by))
    policy = PurchasingPolicy.objects.select_for_update().first() or PurchasingPolicy()
    check_version(policy, version)
    return policy


def _require_proposal(policy: PurchasingPolicy) -> None:
    if not policy.proposed:
        raise InvalidTransition(msg("No change of the purchasing policy waits."))


def _checked(name: str, value: Any) -> Any:
    """The value as its column keeps it. Raises InputError naming field, value and limit."""
    if name == "sealing":
        if value not in SEALING:
            raise InputError(
                name,
                msg(
                    "%(value)s is not one of %(choices)s",
                    value=str(value),
                    choices=", ".join(SEALING),
                ),
                value=str(value),
                limit=", ".join(SEALING),
            )
        return value
    if name == "conflict_statements":
        if str(value) not in ("True", "False"):
            raise InputError(
                name,
                msg("%(value)s is not one of %(choices)s", value=str(value), choices="true, false"),
                value=str(value),
                limit="true, false",
            )
        return str(value) == "True"
    least, most = BOUNDS[name]
    try:
        number = Decimal(str(value))
        inside = least <= number <= most
    except ArithmeticError:  # no number at all, or none that compares
        inside = False
    if not inside:
        raise InputError(
            name,
            msg(
                "%(field)s is %(value)s; it must be from %(least)s to %(most)s",
                field=name, value=str(value), least=str(least), most=str(most),
            ),
            value=str(value),
            limit=f"{least} – {most}",
        )  # fmt: skip
    if name in SHARES:
        return _share(number)
    if number != int(number):
        raise InputError(
            name,
            msg("%(field)s is %(value)s; it must be a whole number", field=name, value=str(value)),
            value=str(value),
        )
    return int(number)


def _share(number: Decimal) -> Decimal:
    """To a hundredth of a per cent, as the column keeps it."""
    return number.quantize(Decimal("0.0001"))


def _values(policy: PurchasingPolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in FIELDS}


def _changes(policy: PurchasingPolicy, wanted: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        name: [str(getattr(policy, name)), str(value)]
        for name, value in wanted.items()
        if getattr(policy, name) != value
    }


def _clear(policy: PurchasingPolicy) -> None:
    policy.proposed, policy.proposed_by, policy.proposed_at = {}, None, None


def _apply(
    policy: PurchasingPolicy, wanted: Mapping[str, Any], *, by: User | None
) -> PurchasingPolicy:
    changes = _changes(policy, wanted)
    proposer = policy.proposed_by_id
    for name, value in wanted.items():
        setattr(policy, name, value)
    _clear(policy)
    _save(policy)
    facts: dict[str, Any] = {"proposed_by": proposer} if proposer else {}
    record("purchasing_policy.set", on=policy, by=by, changes=changes, **facts)
    return policy


def _save(policy: PurchasingPolicy) -> None:
    if policy.pk is not None:
        policy.version += 1
    policy.save()
