"""The step every service of this app takes first and last: lock the request, move it to its next state."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from core import transitions
from core.models import User
from core.stale import check_version
from planning.models.requests import CapacityRequest
from planning.services.watching import tell_watchers


def lock_request(request_id: int, version: int | None = None) -> CapacityRequest:
    """The request's row, locked; raises StaleData when `version` is not the one it has now."""
    request = transitions.lock(
        CapacityRequest.objects.select_related("team", "requester"), request_id
    )
    check_version(request, version)
    return request


def move(
    request: CapacityRequest,
    to: str,
    *,
    by: User | None,
    action: str,
    reason: str = "",
    **facts: Any,
) -> None:
    """Advance `request`, note since when it is there, tell its watchers. Raises InvalidTransition or StaleData."""
    since = {"status_since": timezone.now()}
    transitions.advance(request, to, by=by, action=action, reason=reason, also=since, **facts)
    tell_watchers(request, by=by)


def touch(request: CapacityRequest) -> None:
    """A change without a change of state: raise the version, so that a page opened before it is stale."""
    request.version += 1
    CapacityRequest.objects.filter(pk=request.pk).update(version=request.version)
