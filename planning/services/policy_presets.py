"""Putting a preset of approval rules in force. Running reviews keep the steps they were given."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db import transaction

from core.errors import InputError, NotPermitted
from core.exchange import convert
from core.messages import msg
from core.models import User
from core.money import Money
from core.organisation import organisation, today
from planning import policies
from planning.models.approvals import ApprovalPolicy
from planning.services.policy_versions import add_version, check_seen, in_force

PRESETS = Path(__file__).resolve().parent.parent / "data" / "policies.json"
OPTIONS = ("two_person_budget", "allow_over_budget", "block_stale_study", "reservation_days",
           "escalate_after_days", "over_approval", "rate_days", "use_days", "use_needs_reason", "spread_terms",
           "bind_ahead", "carry_over")  # fmt: skip


@transaction.atomic
def load_policy(*, preset: str, by: User | None, seen: int | None = None) -> ApprovalPolicy:
    """Make `preset` the policy in force (by None: from the command line), or have it wait (see its `standing`) where a
    second administrator must agree. Loading the same again changes nothing. `seen` is the id of the rules that were in
    force on the page.

    Raises NotPermitted, StaleData, InputError or MissingRate (no threshold in, and no rate to, the organisation's
    currency).
    """
    if by is not None and not policies.can_load_policy(by):
        raise NotPermitted()
    presets = json.loads(PRESETS.read_text(encoding="utf-8"))
    if preset not in presets:
        raise InputError(
            "preset",
            msg("%(value)s is no preset", value=preset),
            value=preset,
            limit=", ".join(presets),
        )
    wanted = presets[preset]
    rules = [_rule(row) for row in wanted["rules"]]
    options = {name: wanted[name] for name in OPTIONS}
    for name in ("actual_tolerance", "order_tolerance", "use_first_below", "revalue_from"):
        options[name] = Decimal(wanted[name]) if wanted[name] is not None else None
    current = in_force()
    check_seen(current, seen)
    if current is not None and current.preset == preset and _same(current, options, rules):
        return current
    return add_version(
        ApprovalPolicy(preset=preset, **options), rules, current=current, by=by,
        action="approval_policy.loaded", from_state=current.preset if current else "",
        to_state=preset,
    )  # fmt: skip


def _rule(row: dict[str, Any]) -> dict[str, Any]:
    """The row as fields of ApprovalRule, the threshold in the organisation's currency."""
    rule = {"quorum": 1, "spend_kind": "", "residence": "", "over_budget_only": False,
            "low_use_only": False, **row}  # fmt: skip
    above: dict[str, str] | None = rule.pop("above", None)
    if above is None:
        return {**rule, "above": None, "above_currency": ""}
    currency = organisation().currency
    amount = (
        Money(Decimal(above[currency]), currency)
        if currency in above
        else convert(Money(Decimal(above["USD"]), "USD"), currency, today())
    )
    return {**rule, "above": amount.amount, "above_currency": amount.currency}


def _same(policy: ApprovalPolicy, options: dict[str, Any], rules: list[dict[str, Any]]) -> bool:
    if any(getattr(policy, name) != value for name, value in options.items()):
        return False
    names = list(rules[0])
    held = [{name: getattr(rule, name) for name in names} for rule in policy.rules.order_by("pk")]
    return held == rules
