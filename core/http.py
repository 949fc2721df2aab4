"""Types of a request after log-in, for annotations."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails
from rest_framework.request import Request

from core.models import User


class SignedInRequest(HttpRequest):
    """Every view gets this one: LoginRequiredMiddleware turns anonymous callers away before it."""

    user: User
    htmx: HtmxDetails


def api_user(request: Request) -> User:
    """The signed-in user of an API request (IsAuthenticated is the default permission)."""
    assert isinstance(request.user, User)  # noqa: S101 - narrows the type; the permission class has decided
    return request.user
