"""Who may do what with requests, plans, approvals and budgets. Roles and states are in planning/states.py."""

from __future__ import annotations

from core.errors import InvalidTransition, NotPermitted
from core.messages import msg
from core.models import Team, User
from core.roles import Role, grants, has_role
from planning.mandates import involved
from planning.models.budgets import Budget
from planning.models.delegations import Delegation
from planning.models.requests import CapacityRequest, visible_teams
from planning.models.studies import Study
from planning.states import (
    REQUEST_RULES,
    STUDY_RULES,
    Actor,
    RequestStatus,
    StudyStatus,
    actors_for,
)

# Until a request is decided on its studies may still be run.
STUDIED = frozenset(
    {
        RequestStatus.DRAFT,
        RequestStatus.SUBMITTED,
        RequestStatus.IN_REVIEW,
        RequestStatus.CHANGES_REQUESTED,
    }
)


def actors(user: User, request: CapacityRequest) -> frozenset[Actor]:
    """In which capacities `user` may act on `request`."""
    team = request.team_id
    found = set()
    if has_role(user, Role.REQUESTER, team=team):
        found.add(Actor.REQUESTER)
    if (Role.APPROVER.value, team) in grants(user):
        found.add(Actor.TEAM_LEAD)
    if has_role(user, Role.APPROVER):
        found.add(Actor.BUDGET_APPROVER)
    for role, actor in (
        (Role.PROCUREMENT, Actor.PROCUREMENT),
        (Role.FINANCE, Actor.FINANCE),
        (Role.OPERATIONS, Actor.OPERATIONS),
    ):
        if has_role(user, role, team=team):
            found.add(actor)
    return frozenset(found)


def can(user: User, action: str, request: CapacityRequest) -> bool:
    """Whether `user` may do `action` on `request` as it stands."""
    return bool(actors_for(REQUEST_RULES, action, request.status) & actors(user, request))


def require_action(user: User | None, action: str, request: CapacityRequest) -> None:
    """Raise NotPermitted or InvalidTransition unless `user` (None: the system) may do `action` now."""
    held = frozenset({Actor.SYSTEM}) if user is None else actors(user, request)
    now = actors_for(REQUEST_RULES, action, request.status)
    if now & held:
        return
    ever = {
        actor for rule in REQUEST_RULES if rule.action == action for actor in rule.actors
    } & held
    if now or not ever:
        raise NotPermitted(on=request)
    raise InvalidTransition(
        msg(
            "%(object)s is in state %(state)s; this step is not possible now",
            object=str(request),
            state=str(request.status),
        )
    )


def can_study(user: User, request: CapacityRequest) -> bool:
    """Whether `user` may run studies of `request`: while it may still change, those who may run one."""
    return request.status in STUDIED and bool(
        actors_for(STUDY_RULES, "run", StudyStatus.DRAFT) & actors(user, request)
    )


def require_study(user: User | None, request: CapacityRequest) -> None:
    """Raise NotPermitted or InvalidTransition unless `user` (None: the system) may run a study now."""
    if user is not None and not (
        actors_for(STUDY_RULES, "run", StudyStatus.DRAFT) & actors(user, request)
    ):
        raise NotPermitted(on=request)
    if request.status not in STUDIED:
        raise InvalidTransition(
            msg(
                "%(object)s is in state %(state)s; this step is not possible now",
                object=str(request),
                state=str(request.status),
            )
        )


def can_publish(user: User, study: Study) -> bool:
    """Procurement or the team's lead, and nobody who has a part in the request."""
    request = study.revision.request
    held = actors_for(STUDY_RULES, "publish", study.status) & actors(user, request)
    return bool(held) and user.pk not in involved(request, study.revision)


def require_publish(user: User, study: Study) -> None:
    """Raise NotPermitted or InvalidTransition unless `user` may publish `study` now."""
    request = study.revision.request
    ever = {actor for rule in STUDY_RULES if rule.action == "publish" for actor in rule.actors}
    if not ever & actors(user, request) or user.pk in involved(request, study.revision):
        raise NotPermitted(on=request)
    if not actors_for(STUDY_RULES, "publish", study.status):
        raise InvalidTransition(
            msg("The study is in state %(state)s; it cannot be published", state=study.status)
        )


def can_create_anywhere(user: User) -> bool:
    """Whether `user` may file a request for some team."""
    return any(can_create(user, team.pk) for team in Team.objects.filter(active=True))


def can_create(user: User, team_id: int) -> bool:
    """Requesters and approvers of the team."""
    return has_role(user, Role.REQUESTER, team=team_id) or (
        Role.APPROVER.value,
        team_id,
    ) in grants(user)


def can_copy(user: User, request: CapacityRequest) -> bool:
    return can_create(user, request.team_id)


def can_comment(user: User, request: CapacityRequest) -> bool:
    """Whoever may see it and does more than read: an auditor says nothing and brings nothing."""
    teams = visible_teams(user)
    if teams is not None and request.team_id not in teams:
        return False
    held = {role for role, team in grants(user) if team in (None, request.team_id)}
    return not held or bool(held - {Role.AUDITOR.value})  # none held: seen as a stand-in


# --- standing in and budgets ---------------------------------------------------------------------------------------


def can_delegate(user: User) -> bool:
    """Whoever holds an authority of their own."""
    return any(
        role in {Role.APPROVER.value, Role.FINANCE.value, Role.PROCUREMENT.value}
        for role, _team in grants(user)
    )


def can_revoke(user: User, delegation: Delegation) -> bool:
    """The one stood in for, or an administrator."""
    return delegation.principal_id == user.pk or has_role(user, Role.ADMINISTRATOR)


def can_keep_sites(user: User) -> bool:
    """Describe machine rooms: who runs them, and administrators. Everyone who is signed in may read."""
    return has_role(user, Role.OPERATIONS, Role.ADMINISTRATOR)


def can_set_stage(user: User) -> bool:
    """Say what kind of asker the organisation is: administrators and those who approve for all of it."""
    return has_role(user, Role.ADMINISTRATOR, Role.APPROVER)


def can_set_purchase_tax(user: User) -> bool:
    """Say which tax the organisation pays on what it buys: administrators and finance."""
    return has_role(user, Role.ADMINISTRATOR, Role.FINANCE)


def can_keep_budgets(user: User) -> bool:
    """Finance: allot, transfer, post what was spent, reverse, close."""
    return has_role(user, Role.FINANCE)


def can_try_scenarios(user: User) -> bool:
    """Those who see every team's money and act on it; an auditor may look too."""
    return has_role(user, Role.FINANCE, Role.APPROVER, Role.PROCUREMENT, Role.AUDITOR)


def can_confirm_change(user: User, proposed_by_id: int) -> bool:
    """A second person: finance or an approver of the organisation, and not the one who proposed."""
    return user.pk != proposed_by_id and has_role(user, Role.FINANCE, Role.APPROVER)


def can_commit(user: User, budget: Budget) -> bool:
    return has_role(user, Role.PROCUREMENT, team=budget.team_id)


def can_allocate(user: User) -> bool:
    """Procurement and operations of the organisation give cards out."""
    return has_role(user, Role.PROCUREMENT, Role.OPERATIONS)


def can_release(user: User, request: CapacityRequest) -> bool:
    """They, and those who write the team's requests: giving back needs no one's leave."""
    return can_allocate(user) or can_create(user, request.team_id)


def can_load_policy(user: User) -> bool:
    """Administrators put a policy in force; they decide nothing by it."""
    return has_role(user, Role.ADMINISTRATOR)
