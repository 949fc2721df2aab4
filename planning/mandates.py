"""By whose authority a person votes on a step, and why they may not: role, stand-in, part in the request, limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from core.exchange import convert
from core.messages import Message, msg
from core.models import User
from core.money import Money
from core.organisation import today
from core.roles import Role, has_role
from planning.models.approvals import ApprovalLimit, ApprovalStep, Authority, Vote
from planning.models.delegations import Delegation
from planning.models.requests import CapacityRequest, RequestRevision


def holds(user: User, authority: str, team_id: int) -> bool:
    """Whether `user` has `authority` over requests of the team, in their own right."""
    if not user.is_active:
        return False
    return {
        Authority.TEAM_LEAD: lambda: has_role(user, Role.APPROVER, team=team_id),
        Authority.BUDGET_APPROVER: lambda: has_role(user, Role.APPROVER),
        Authority.FINANCE: lambda: has_role(user, Role.FINANCE),
        Authority.PROCUREMENT: lambda: has_role(user, Role.PROCUREMENT, team=team_id),
    }[Authority(authority)]()


def involved(request: CapacityRequest, revision: RequestRevision) -> frozenset[int]:
    """Ids of those who asked for it: requester, who filed it, who wrote any of it, who submitted it."""
    people = {request.requester_id, request.created_by_id, revision.submitted_by_id}
    people |= {author.pk for author in revision.authors.all()}
    return frozenset(person for person in people if person is not None)


@dataclass(frozen=True, slots=True)
class Mandate:
    """By whose authority a vote is cast: one's own, or that of the one stood in for."""

    principal: User
    delegation: Delegation | None = None


class Mandates:
    """What `user` may decide on `day`. Reads delegations and limits once; then answers step by step without queries."""

    def __init__(self, user: User, day: date) -> None:
        self.user = user
        self.delegations = list(
            Delegation.objects.active_on(day)
            .filter(delegate=user)
            .prefetch_related("principal")  # mostly there is none: no join, no query
            .order_by("pk")
        )
        people = [user.pk, *(item.principal_id for item in self.delegations)]
        self.limits = {
            limit.user_id: limit for limit in ApprovalLimit.objects.filter(user__in=people)
        }

    def _within_limit(self, person_id: int, amount: Money, day: date) -> bool:
        limit = self.limits.get(person_id)
        if limit is None:
            return True
        ceiling = convert(Money(limit.amount, limit.currency), amount.currency, day)
        return amount <= ceiling

    def within_limit(self, amount: Money) -> bool:
        """Whether the person's own limit covers `amount` today."""
        return self._within_limit(self.user.pk, amount, today())

    def for_step(self, step: ApprovalStep) -> Mandate | Message:
        """The mandate by which `user` may vote on `step`, or why they may not."""
        revision = step.revision
        request = revision.request
        asked = involved(request, revision)
        if self.user.pk in asked:
            return msg("You have a part in this request, so you cannot decide on it.")
        if any(item.principal_id in asked for item in self.delegations):
            return msg("You stand in for someone who has a part in this request.")
        candidates = (
            [Mandate(self.user)] if holds(self.user, step.authority, request.team_id) else []
        )
        candidates += [
            Mandate(item.principal, item)
            for item in self.delegations
            if holds(item.principal, step.authority, request.team_id)
        ]
        if not candidates:
            return msg("This step needs someone with another role.")
        plan = revision.plan
        within = [
            mandate
            for mandate in candidates
            if self._within_limit(self.user.pk, plan.base_money, plan.rate_date)
            and self._within_limit(mandate.principal.pk, plan.base_money, plan.rate_date)
        ]
        if not within:
            return msg("The amount is above the limit up to which you may agree.")
        return within[0]


def has_voted(user: User, mandate: Mandate, votes: Iterable[Vote]) -> bool:
    """Whether the person or the one they stand in for cast any of `votes` (those of one group of steps)."""
    return any(
        vote.voter_id in (user.pk, mandate.principal.pk)
        or vote.principal_id in (user.pk, mandate.principal.pk)
        for vote in votes
    )
