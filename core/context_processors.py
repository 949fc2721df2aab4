"""What the page shell needs on every page."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from core.models import Notice
from core.navigation import CENTRAL, navigation
from core.refused import kept
from core.roles import Role, has_role_anywhere

THEME_COOKIE = "theme"
THEMES = ("light", "dark")  # no cookie: as the system says


def shell(request: HttpRequest) -> dict[str, Any]:
    """Theme, languages, navigation and unread notices. Lazy: a fragment that shows none of them pays nothing."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    context: dict[str, Any] = {
        "theme": theme if theme in THEMES else "",
        "languages": settings.LANGUAGES,
    }
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return context
    return context | {
        "navigation": lambda: navigation(user, request.path),
        "unread_notices": lambda: Notice.objects.filter(recipient=user, read_at=None).count(),
        "may_procure": lambda: has_role_anywhere(user, *CENTRAL),
        "refused": kept(request),
        "may_administer": lambda: has_role_anywhere(user, Role.ADMINISTRATOR),
    }
