"""Who may see what the fleet does, and who may connect sources, load data, or post bills."""

from core.models import Team, User
from core.roles import Role, has_role
from planning.models.requests import visible_teams

KEEPERS = (Role.OPERATIONS, Role.ADMINISTRATOR)


def can_keep_sources(user: User) -> bool:
    """Connect a source, change it, load data into it."""
    return has_role(user, *KEEPERS)


def can_see_sources(user: User) -> bool:
    """A source names hosts and accounts of every team."""
    return visible_teams(user) is None


def can_see_fleet(user: User, team: Team | None) -> bool:
    """The whole fleet for central roles; a team's page for its people."""
    teams = visible_teams(user)
    return teams is None or (team is not None and team.pk in teams)


def can_post_bills(user: User) -> bool:
    """Bring lines of cloud bills into the ledger."""
    return has_role(user, Role.FINANCE)
