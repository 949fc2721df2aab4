"""Who may see and move a capacity review. It shows every team's figures, so it needs a central role."""

from core.models import User
from core.roles import Role, has_role
from planning.models.month_one import MonthOneReview
from planning.models.review_work import ReviewAction

READERS = (
    Role.APPROVER, Role.PROCUREMENT, Role.OPERATIONS, Role.FINANCE, Role.AUDITOR, Role.ADMINISTRATOR,
)  # fmt: skip
FREEZERS = (Role.OPERATIONS, Role.FINANCE, Role.PROCUREMENT)
CHAIRS = (Role.APPROVER, Role.OPERATIONS)
PLANNERS = (Role.REQUESTER, Role.APPROVER)  # of a team, for its plan
WATCHERS = (Role.OPERATIONS,)  # of every look back


def can_see_reviews(user: User) -> bool:
    """Central roles only: a pack holds all teams' demand and money."""
    return has_role(user, *READERS)


def can_see_action(user: User, action: ReviewAction) -> bool:
    """Its owner, and who may see the review."""
    return user.pk == action.owner_id or can_see_reviews(user)


def can_freeze_review(user: User) -> bool:
    return has_role(user, *FREEZERS)


def can_hold_review(user: User) -> bool:
    """Open the meeting and close it with its minutes."""
    return has_role(user, *CHAIRS)


def can_close_look_back(user: User, review: MonthOneReview) -> bool:
    """Its owner and operations."""
    return user.pk == review.owner_id or has_role(user, *WATCHERS)


def can_set_review_rules(user: User) -> bool:
    """Rules of the look back and of reviews."""
    return has_role(user, Role.OPERATIONS, Role.ADMINISTRATOR)
