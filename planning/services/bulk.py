"""One step on many requests: each by its own service, with its own refusal, tied together in the trail."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction

from core.audit import in_batch, record_refusal
from core.errors import DomainError, InputError, NotPermitted
from core.messages import Message, msg
from core.models import User
from planning.models.approvals import ApprovalStep, Decision
from planning.models.requests import CapacityRequest
from planning.services import approvals, requests
from planning.workloads import WorkloadErrors

MOST = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one of many: done, or why not."""

    request: CapacityRequest
    refused: Message | None = None


STEPS: dict[str, Callable[[CapacityRequest, User, str], object]] = {
    "submit": lambda request, by, reason: requests.submit_request(
        request_id=request.pk, by=by, use_reason=reason
    ),
    "cancel": lambda request, by, reason: requests.cancel_request(
        request_id=request.pk, by=by, reason=reason
    ),
}


def step_many(
    *, action: str, request_ids: Sequence[int], by: User, reason: str = "", path: str = ""
) -> list[Outcome]:
    """Submit or withdraw each of the requests that `by` may see. Each is its own transaction with all its checks.

    Raises InputError for an unknown action or too many at once; what is not visible is left out.
    """
    if action not in STEPS:
        raise InputError(
            "action", msg("%(value)s cannot be done for many at once", value=action), value=action,
            limit=", ".join(STEPS),
        )  # fmt: skip
    _check_number(len(set(request_ids)))
    rows = CapacityRequest.objects.visible_to(by).filter(pk__in=request_ids).order_by("number")
    with in_batch(uuid.uuid4()):
        return [
            _one(row, lambda row=row: STEPS[action](row, by, reason), by, path)  # type: ignore[misc]
            for row in rows
        ]


def approve_many(
    *, seen: Sequence[tuple[int, str]], by: User, reason: str = "", path: str = ""
) -> list[Outcome]:
    """Approve each (step id, hash that was on the screen). Authority, hash and budget are checked for each by the same
    service as a single vote."""
    _check_number(len(seen))
    hashes = dict(seen)
    steps = ApprovalStep.objects.filter(
        pk__in=hashes,
        revision__request__in=CapacityRequest.objects.visible_to(by).values("pk"),
    ).select_related("revision__request")
    with in_batch(uuid.uuid4()):
        return [
            _one(
                step.revision.request,
                lambda step=step: approvals.decide(  # type: ignore[misc]
                    step_id=step.pk, decision=Decision.APPROVE, by=by, seen_hash=hashes[step.pk],
                    reason=reason,
                ),
                by,
                path,
            )
            for step in steps.order_by("revision__request__number", "pk")
        ]  # fmt: skip


def _check_number(count: int) -> None:
    if not 1 <= count <= MOST:
        raise InputError(
            "request", msg("Choose 1 to %(limit)s rows", limit=MOST), value=count,
            limit=f"1 … {MOST}",
        )  # fmt: skip


def _one(request: CapacityRequest, act: Callable[[], object], by: User, path: str) -> Outcome:
    try:
        with transaction.atomic():
            act()
    except NotPermitted as error:
        record_refusal(error, by=by, path=path)
        return Outcome(request, error.message)
    except WorkloadErrors as errors:
        return Outcome(request, errors.errors[0].message)
    except DomainError as error:
        return Outcome(request, error.message)
    return Outcome(request)
