"""The rules as data: editing makes the next version and puts it in force; no version is ever changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from django.db import transaction

from core.errors import InputError, NotPermitted
from core.messages import msg
from core.models import Team, User
from core.money import CURRENCIES
from planning import policies
from planning.models.approvals import ApprovalPolicy, Authority, Preset
from planning.models.plans import SpendKind
from planning.models.requests import Residence
from planning.services.policy_versions import add_version, check_seen, in_force

MOST_RULES = 40
RULE_FIELDS = ("group", "authority", "quorum", "above", "above_currency", "spend_kind", "team", "residence",
               "over_budget_only", "low_use_only")  # fmt: skip
OPTIONS = ("two_person_budget", "allow_over_budget", "block_stale_study", "reservation_days", "actual_tolerance",
           "order_tolerance", "over_approval", "rate_days", "escalate_after_days",
           "spread_terms", "bind_ahead", "carry_over", "revalue_from", "use_first_below", "use_days",
           "use_needs_reason")  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "quorum": 1, "above": None, "above_currency": "", "spend_kind": "", "team": None, "residence": "",
    "over_budget_only": False, "low_use_only": False,
}  # fmt: skip


@transaction.atomic
def edit_policy(
    *,
    rules: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
    note: str,
    by: User,
    seen: int | None = None,
) -> ApprovalPolicy:
    """Make a new version of the rules, `seen` being the id of the version that was edited: in force at once, or waiting
    (see its `standing`) where a second administrator must agree.

    Running reviews and submitted requests keep theirs. Raises NotPermitted, StaleData or InputError naming the rule.
    """
    if not policies.can_load_policy(by):
        raise NotPermitted()
    current = in_force()
    check_seen(current, seen)
    if not note.strip():
        raise InputError("note", msg("Say what changes and why"))
    checked = [_rule(number, rule) for number, rule in enumerate(rules, start=1)]
    if not 1 <= len(checked) <= MOST_RULES:
        raise InputError(
            "rules", msg("There are 1 to %(limit)s rules", limit=MOST_RULES), value=len(checked),
            limit=f"1 … {MOST_RULES}",
        )  # fmt: skip
    if not any(all(rule[name] == value for name, value in DEFAULTS.items() if name != "quorum")
               for rule in checked):  # fmt: skip
        raise InputError(
            "rules",
            msg("One rule must hold for every request, or some could be approved by no one"),
        )
    wanted = {**(_options_of(current) if current else {}), **options}
    _check_low_use(checked, wanted)
    policy = ApprovalPolicy(
        preset=Preset.CUSTOM, note=note.strip()[:300], **_checked_options(wanted)
    )
    return add_version(
        policy, checked, current=current, by=by, action="approval_policy.edited", reason=note,
        before=current.pk if current else None, rules=[_plain(rule) for rule in checked],
        options={name: str(value) for name, value in _options_of(policy).items()},
    )  # fmt: skip


def _options_of(policy: ApprovalPolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in OPTIONS}


def _checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in sorted(set(options) - set(OPTIONS)):
        raise InputError(name, msg("%(field)s is no option of the rules", field=name))
    found = dict(options)
    for name, least, most in (("reservation_days", 1, 3650), ("escalate_after_days", 0, 365),
                              ("actual_tolerance", 0, 1),
                              ("order_tolerance", 0, 1), ("rate_days", 1, 366),
                              ("use_first_below", 0, 1), ("revalue_from", 0, 1), ("use_days", 1, 366)):  # fmt: skip
        if found.get(name) is not None and not least <= found[name] <= most:
            raise InputError(
                name,
                msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s", field=name,
                    value=str(found[name]), limit=f"{least} … {most}", unit="1"),
                value=found[name], limit=f"{least} … {most}",
            )  # fmt: skip
    return found


def _check_low_use(rules: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> None:
    """What is asked of teams with little use needs a threshold, or it would never apply."""
    threshold = options.get("use_first_below")
    if threshold is None and (
        options.get("use_needs_reason") or any(rule["low_use_only"] for rule in rules)
    ):
        raise InputError(
            "use_first_below",
            msg("Say below which share a team uses too little of what it has"),
            value=threshold,
            limit="0 … 1",
        )


def _rule(number: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """One rule with its defaults; an error names the rule by its number."""

    def refuse(field: str, value: object, limit: object) -> InputError:
        return InputError(
            field,
            msg("Rule %(number)s: %(field)s is %(value)s; possible is %(limit)s", number=number,
                field=field, value=str(value), limit=str(limit)),
            value=value, limit=limit,
        )  # fmt: skip

    for name in sorted(set(given) - set(RULE_FIELDS)):
        raise refuse(name, given[name], ", ".join(RULE_FIELDS))
    rule = {**DEFAULTS, **{name: value for name, value in given.items() if value is not None}}
    for name, most in (("group", 20), ("quorum", 9)):
        if not isinstance(rule.get(name), int) or not 1 <= rule[name] <= most:
            raise refuse(name, rule.get(name), f"1 … {most}")
    for name, choices in (("authority", Authority.values), ("spend_kind", ["", *SpendKind.values]),
                          ("residence", ["", *Residence.values])):  # fmt: skip
        if rule.get(name) not in choices:
            raise refuse(name, rule.get(name), ", ".join(filter(None, choices)))
    above: Decimal | None = rule["above"]
    if above is None:
        rule["above_currency"] = ""
    elif not above.is_finite() or above < 0:
        raise refuse("above", above, ">= 0")
    elif rule["above_currency"] not in CURRENCIES:
        raise refuse("above_currency", rule["above_currency"], ", ".join(CURRENCIES))
    if rule["team"] is not None and not isinstance(rule["team"], Team):
        raise refuse("team", rule["team"], "–")
    return rule


def _plain(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, bool | int) or value is None else str(value)
        for name, value in rule.items()
    }
