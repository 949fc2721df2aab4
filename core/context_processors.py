"""What the page shell needs on every page."""

from typing import Any

from django.http import HttpRequest

from core.models import Notice
from core.roles import Role, has_role_anywhere


def shell(request: HttpRequest) -> dict[str, Any]:
    """Unread notices and the sections this person may open. Lazy: a fragment that shows neither pays nothing."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "unread_notices": lambda: Notice.objects.filter(recipient=user, read_at=None).count(),
        "may_procure": lambda: has_role_anywhere(
            user, Role.PROCUREMENT, Role.OPERATIONS, Role.FINANCE, Role.AUDITOR, Role.ADMINISTRATOR
        ),
        "may_administer": lambda: has_role_anywhere(user, Role.ADMINISTRATOR),
    }
