"""Telling those who watch a request."""

from __future__ import annotations

from core.messages import Message, msg
from core.models import User
from core.outbox import notify
from planning.models.requests import CapacityRequest
from planning.selectors.readers import readers
from planning.states import RequestStatus

# What is said of a state that was reached.
REACHED: dict[str, str] = {
    RequestStatus.DRAFT: msg("%(request)s is a draft again").template,
    RequestStatus.SUBMITTED: msg("%(request)s was submitted").template,
    RequestStatus.IN_REVIEW: msg("%(request)s is in review").template,
    RequestStatus.CHANGES_REQUESTED: msg("Changes are asked for in %(request)s").template,
    RequestStatus.APPROVED: msg("%(request)s is approved").template,
    RequestStatus.SOURCING: msg("%(request)s is with procurement").template,
    RequestStatus.FULFILLED: msg("%(request)s is fulfilled").template,
    RequestStatus.REJECTED: msg("%(request)s was rejected").template,
    RequestStatus.CANCELLED: msg("%(request)s was cancelled").template,
}
# Of these states requester and filer are told by the step itself.
TOLD_ANYWAY = frozenset(
    {
        RequestStatus.DRAFT,
        RequestStatus.CHANGES_REQUESTED,
        RequestStatus.APPROVED,
        RequestStatus.FULFILLED,
        RequestStatus.REJECTED,
        RequestStatus.CANCELLED,
    }
)


def watchers(request: CapacityRequest) -> list[User]:
    """Those who watch `request` and may still see it."""
    people = list(request.watches.values_list("user", flat=True))
    return list(readers(request.team).filter(pk__in=people)) if people else []


def tell_watchers(request: CapacityRequest, *, by: User | None) -> None:
    """Say which state was reached to those who watch, except who did it and who is told anyway."""
    told = {by.pk} if by else set()
    if request.status in TOLD_ANYWAY:
        told |= {request.requester_id, request.created_by_id}
    notify(
        [person for person in watchers(request) if person.pk not in told],
        f"request.{request.status}",
        on=request,
        message=Message(REACHED[request.status], {"request": str(request)}),
        url=request.get_absolute_url(),
        revision=f"state:{request.version}",
    )
