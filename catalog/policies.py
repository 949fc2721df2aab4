"""Who may do what with the catalogue. Everyone who is signed in may read all of it: prices here are public ones."""

from core.models import User
from core.roles import Role, has_role


def can_correct(user: User) -> bool:
    """State other figures than the ones shipped: procurement, operations and administrators, organisation-wide."""
    return has_role(user, Role.PROCUREMENT, Role.OPERATIONS, Role.ADMINISTRATOR)


def can_import_prices(user: User) -> bool:
    """Add dated prices: those who buy, those who run, those who pay, and administrators."""
    return has_role(user, Role.PROCUREMENT, Role.OPERATIONS, Role.FINANCE, Role.ADMINISTRATOR)


def can_add_rate(user: User) -> bool:
    """Add a dated exchange rate: finance and administrators."""
    return has_role(user, Role.FINANCE, Role.ADMINISTRATOR)
