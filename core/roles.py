"""The roles, in one table. A role is held in a team or, for the central functions, in the whole organisation."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from core.models import Team, User


class Role(models.TextChoices):
    """What a person does. Names follow the state-machine document."""

    REQUESTER = "requester", _("Requester")
    APPROVER = "approver", _("Approver")
    PROCUREMENT = "procurement", _("Procurement")
    OPERATIONS = "operations", _("Operations")
    FINANCE = "finance", _("Finance")
    AUDITOR = "auditor", _("Auditor")
    ADMINISTRATOR = "administrator", _("Administrator")


# Roles that see every team's rows when held for the whole organisation.
SEES_ALL = (
    Role.APPROVER,
    Role.PROCUREMENT,
    Role.OPERATIONS,
    Role.FINANCE,
    Role.AUDITOR,
    Role.ADMINISTRATOR,
)


def grants(user: "User") -> frozenset[tuple[str, int | None]]:
    """(role, team id) pairs of `user`; read once per request and kept on the instance."""
    cached: frozenset[tuple[str, int | None]] | None = getattr(user, "_grants", None)
    if cached is None:
        if not user.is_authenticated or not user.is_active:
            cached = frozenset()
        else:
            cached = frozenset(user.memberships.values_list("role", "team_id"))
        user._grants = cached  # type: ignore[attr-defined]
    return cached


def has_role(user: "User", *roles: Role, team: "Team | int | None" = None) -> bool:
    """Whether `user` holds one of `roles` in `team` (a team, its id, or None) or for the whole organisation.

    A superuser holds no role: support access grants no business decision.
    """
    held = grants(user)
    team_id = team if isinstance(team, int) or team is None else team.pk
    return any(
        (role.value, None) in held or (team_id is not None and (role.value, team_id) in held)
        for role in roles
    )


def has_role_anywhere(user: "User", *roles: Role) -> bool:
    """Whether `user` holds one of `roles` in any team or for the whole organisation."""
    names = {role.value for role in roles}
    return any(role in names for role, _team in grants(user))


def sees_all_teams(user: "User", roles: Iterable[Role] = SEES_ALL) -> bool:
    """Whether `user` may read the rows of every team."""
    return has_role(user, *roles)


def team_ids(user: "User", *roles: Role) -> frozenset[int]:
    """Teams in which `user` holds one of `roles` (any role when none is named)."""
    names = {role.value for role in roles}
    return frozenset(
        team for role, team in grants(user) if team is not None and (not names or role in names)
    )
