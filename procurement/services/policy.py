"""Set how strictly the organisation buys. What lets more pass takes a second administrator, except in a small team."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import InputError, InvalidTransition, StaleData
from core.messages import msg
from core.models import User
from core.policies import require
from core.stale import check_version
from planning.selectors.second_person import needs_second
from procurement import policies
from procurement.models import PurchasingPolicy
from procurement.purchasing_limits import BOUNDS, SEALING, SHARES, loosened

FIELDS = (
    "sealing", "openers", "minimum_vendors", "reason_length", "over_delivery", "price_tolerance",
    "burn_in_hours", "conflict_statements",
)  # fmt: skip


@transaction.atomic
def set_purchasing_policy(
    *, by: User | None, version: int | None = None, **values: Any
) -> PurchasingPolicy:
    """Change the purchasing policy (None: set-up), or propose the change where a second administrator must agree: then
    `waits` is true of the returned row, which it is not for a proposal of before. Who proposed may propose anew; what
    somebody else proposed stays, also when another change comes into force meanwhile.

    Raises NotPermitted, StaleData, InputError, or InvalidTransition (somebody else's proposal waits).
    """
    policy = _locked(by, version)
    wanted = {name: _checked(name, values[name]) for name in FIELDS if name in values}
    if by is not None and loosened(_values(policy), wanted) and needs_second(though_alone=True):
        return _propose(policy, wanted, by=by)
    changes = _changes(policy, wanted)
    _apply(policy, wanted)
    record("purchasing_policy.set", on=policy, by=by, changes=changes)
    return policy


@transaction.atomic
def confirm_purchasing_policy(*, by: User, version: int | None = None) -> PurchasingPolicy:
    """Put the proposed change in force, as a second administrator.

    Raises NotPermitted, InvalidTransition when nothing is proposed, StaleData also when a value that it changes was
    changed since.
    """
    policy = _locked(by, version)
    _require_proposal(policy)
    require(policies.can_confirm_policy(by, policy))
    if changed := changed_since(policy):
        raise StaleData(
            msg("Changed since it was proposed: %(fields)s. Drop the proposal and propose anew.",
                fields=", ".join(changed)),
            changes=changed,
        )  # fmt: skip
    proposer, wanted = policy.proposed_by_id, proposed_values(policy)
    changes = _changes(policy, wanted)
    _clear(policy)
    _apply(policy, wanted)
    record("purchasing_policy.set", on=policy, by=by, changes=changes, proposed_by=proposer)
    return policy


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


def changed_since(policy: PurchasingPolicy) -> dict[str, tuple[str, str]]:
    """Of what the proposal changes: the value it was proposed against and the one in force, where these differ."""
    found = {}
    for name, before in policy.proposed_from.items():
        now = getattr(policy, name)
        if _checked(name, before) != now:
            found[name] = (before, str(now))
    return found


def _propose(policy: PurchasingPolicy, wanted: Mapping[str, Any], *, by: User) -> PurchasingPolicy:
    """Keep what differs from the values in force: what is the same is no part of the proposal."""
    if policy.proposed and policy.proposed_by_id != by.pk:
        raise InvalidTransition(
            msg("A change that %(person)s proposed waits: agree to it or drop it first",
                person=str(policy.proposed_by))
        )  # fmt: skip
    changes = _changes(policy, wanted)
    facts: dict[str, Any] = {}
    if policy.proposed:
        facts["replaces"] = _changes(policy, proposed_values(policy))
    policy.proposed = {name: new for name, (_old, new) in changes.items()}
    policy.proposed_from = {name: old for name, (old, _new) in changes.items()}
    policy.proposed_by, policy.proposed_at = by, timezone.now()
    _save(policy)
    policy.waits = True
    record("purchasing_policy.proposed", on=policy, by=by, changes=changes, **facts)
    return policy


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
    policy.proposed, policy.proposed_from = {}, {}
    policy.proposed_by, policy.proposed_at = None, None


def _apply(policy: PurchasingPolicy, wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        setattr(policy, name, value)
    _save(policy)


def _save(policy: PurchasingPolicy) -> None:
    if policy.pk is not None:
        policy.version += 1
    policy.save()
