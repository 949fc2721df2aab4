"""The next version of the rules: in force at once, or first agreed to by a second administrator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.audit import record, trail
from core.errors import InvalidTransition, StaleData
from core.messages import msg
from core.models import User
from core.policies import can_agree_as_second, require
from core.transitions import lock
from planning import policies
from planning.models.approvals import ApprovalPolicy, ApprovalRule, Standing
from planning.selectors.second_person import needs_second

# What a version says; the rest tells how it came about.
TERMS = frozenset(
    field.name for field in ApprovalPolicy._meta.concrete_fields
) - {"id", "active", "standing", "replaces", "loaded_by", "loaded_at", "decided_by", "decided_at"}  # fmt: skip


def in_force() -> ApprovalPolicy | None:
    """The version in force, locked. Call it in a transaction, before any other version is locked."""
    return ApprovalPolicy.objects.select_for_update().filter(active=True).first()


def check_seen(current: ApprovalPolicy | None, seen: int | None) -> None:
    """Raise StaleData with what differs when other rules are in force than those of the page (their id). None: none
    were seen."""
    if seen is None or (current is not None and current.pk == seen):
        return
    changes = {"version": (str(seen), str(current.pk if current else "–"))}
    old = ApprovalPolicy.objects.filter(pk=seen).first()
    if old is not None and current is not None:
        for field in ApprovalPolicy._meta.concrete_fields:
            before, now = (str(getattr(row, field.attname)) for row in (old, current))
            if before != now and field.name in TERMS:
                changes[field.name] = (before, now)
        before, now = ("; ".join(map(str, row.rules.order_by("pk"))) for row in (old, current))
        if before != now:
            changes["rules"] = (before, now)
    happened = [] if current is None else list(trail(current).order_by("-pk")[:5])
    raise StaleData(changes=changes, on=current, happened=happened)


def add_version(
    policy: ApprovalPolicy,
    rules: Iterable[Mapping[str, Any]],
    /,
    *,
    current: ApprovalPolicy | None,
    by: User | None,
    action: str,
    **facts: Any,
) -> ApprovalPolicy:
    """Save `policy` and its rules as what follows `current` (of :func:`in_force`), recorded as `action`.

    Where a second administrator must agree (by None, set-up, never asks) it waits instead. A version that waited is
    dropped: it was written for rules that are not those any more, or gives way to the newer wish.
    """
    waits = by is not None and needs_second()
    for earlier in ApprovalPolicy.objects.select_for_update().filter(standing=Standing.WAITING):
        _drop(earlier, by=by)
    policy.replaces, policy.loaded_by = current, by
    if waits:
        policy.standing = Standing.WAITING
    else:
        _retire(current)
        policy.active = True
    policy.save()
    ApprovalRule.objects.bulk_create(ApprovalRule(policy=policy, **rule) for rule in rules)
    record("approval_policy.proposed" if waits else action, on=policy, by=by, **facts)
    return policy


@transaction.atomic
def confirm_policy(*, policy_id: int, by: User) -> ApprovalPolicy:
    """Put the version that waits in force, as a second administrator. Requests that were submitted keep theirs.

    Raises NotPermitted, InvalidTransition when it does not wait, StaleData when other rules came into force meanwhile.
    """
    require(policies.can_load_policy(by))
    current = in_force()
    policy = _waiting(policy_id)
    require(can_agree_as_second(by, policy.loaded_by_id))
    if current is None:
        raise StaleData()
    check_seen(current, policy.replaces_id)
    _retire(current)
    policy.active = True
    _decide(policy, Standing.ADOPTED, by=by)
    record(
        "approval_policy.confirmed", on=policy, by=by, proposed_by=policy.loaded_by_id,
        before=current.pk,
    )  # fmt: skip
    return policy


@transaction.atomic
def decline_policy(*, policy_id: int, by: User) -> ApprovalPolicy:
    """Drop the version that waits; who proposed it may take it back. Raises NotPermitted or InvalidTransition."""
    require(policies.can_load_policy(by))
    policy = _waiting(policy_id)
    _drop(policy, by=by)
    return policy


def _waiting(policy_id: int) -> ApprovalPolicy:
    policy = lock(ApprovalPolicy.objects.all(), policy_id)
    if policy.standing != Standing.WAITING:
        raise InvalidTransition(msg("This version of the approval rules does not wait any more."))
    return policy


def _retire(policy: ApprovalPolicy | None) -> None:
    if policy is not None:
        policy.active = False
        policy.save(update_fields=["active"])


def _drop(policy: ApprovalPolicy, *, by: User | None) -> None:
    _decide(policy, Standing.DECLINED, by=by)
    record("approval_policy.declined", on=policy, by=by, proposed_by=policy.loaded_by_id)


def _decide(policy: ApprovalPolicy, standing: Standing, *, by: User | None) -> None:
    policy.standing, policy.decided_by, policy.decided_at = standing, by, timezone.now()
    policy.save(update_fields=["active", "standing", "decided_by", "decided_at"])
