"""What waits for a person besides votes on requests. Apps above register what waits in them; Home, the approvals page
and the API show the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core.models import User
from core.policies import can_agree_as_second
from planning.models import ApprovalPolicy, BudgetChange
from planning.models.approvals import Standing
from planning.policies import can_confirm_change, can_load_policy
from planning.states import ChangeStatus


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that this person can do now."""

    title: str
    url: str
    label: str | Promise  # what is to be done
    since: datetime
    decision: bool = False  # to agree or refuse, as a second person
    state: str = ""
    state_label: str | Promise = ""
    note: str = ""


Source = Callable[[User, bool], Iterable[Waiting]]  # who; whether decisions alone are asked for
_sources: list[Source] = []


def register(source: Source) -> None:
    """Ask `source` from now on; the same one twice counts once."""
    if source not in _sources:
        _sources.append(source)


def waiting(user: User) -> list[Waiting]:
    """Everything that waits for `user`, longest first."""
    return _ask(user, decisions_only=False)


def decisions(user: User) -> list[Waiting]:
    """What waits for a decision of `user`, besides requests."""
    return _ask(user, decisions_only=True)


def _ask(user: User, *, decisions_only: bool) -> list[Waiting]:
    found = [
        row for source in (_changes, _rules, *_sources) for row in source(user, decisions_only)
    ]
    return sorted(found, key=lambda row: row.since)


def _rules(user: User, _decisions_only: bool) -> Iterable[Waiting]:
    if not can_load_policy(user):
        return
    for policy in ApprovalPolicy.objects.filter(standing=Standing.WAITING):
        if can_agree_as_second(user, policy.loaded_by_id):
            yield Waiting(
                title=str(policy), url=policy.get_absolute_url(), label=_("Approval rules to confirm"),
                since=policy.loaded_at, decision=True, state=policy.standing,
                state_label=policy.get_standing_display(), note=policy.note,
            )  # fmt: skip


def _changes(user: User, _decisions_only: bool) -> Iterable[Waiting]:
    if not can_confirm_change(user, 0):
        return
    rows = BudgetChange.objects.filter(status=ChangeStatus.PROPOSED).select_related("budget__team")
    for row in rows:
        if can_confirm_change(user, row.proposed_by_id):
            yield Waiting(
                title=str(row), url=row.budget.get_absolute_url(), label=_("Budget change to confirm"),
                since=row.proposed_at, decision=True, state=row.status, state_label=row.get_status_display(),
            )  # fmt: skip
