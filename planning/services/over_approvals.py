"""Agreeing, with a reason, that orders for a request may go above what was approved by more than the tolerance."""

from __future__ import annotations

from django.db import transaction

from core.audit import record
from core.errors import DomainError, InputError, NotPermitted
from core.exchange import convert
from core.messages import msg
from core.models import User
from core.money import Money
from core.organisation import today
from core.roles import Role, has_role
from planning.mandates import Mandates, involved
from planning.models.approvals import OverApproval
from planning.selectors.approved import Approved, approved
from planning.services.moves import lock_request


class AboveApproved(DomainError):
    """Orders for a request would go above what was approved by more than the policy's tolerance."""

    code = "above_approved"


def above_approved(found: Approved, total: Money) -> AboveApproved:
    """The refusal, with every figure and what can be done."""
    return AboveApproved(
        msg(
            "%(request)s was approved for %(approved)s; with this, orders come to %(sum)s with tax, and %(limit)s is "
            "the most. Have the request approved anew, or have an approver agree to more with a reason, if the rules "
            "allow it",
            request=str(found.request), approved=str(found.agreed), sum=str(total), limit=str(found.limit),
        )
    )  # fmt: skip


@transaction.atomic
def agree_to_more(*, request_id: int, up_to: Money, reason: str, by: User) -> OverApproval:
    """Let orders for the request go up to `up_to` in all. By an approver of its team or of the organisation who has no
    part in the request and whose limit covers the amount.

    Raises AboveApproved where the policy does not allow it, NotPermitted or InputError (no reason).
    """
    request = lock_request(request_id)
    found = approved([request_id]).get(request_id)
    if found is None:
        raise DomainError(msg("%(request)s has no chosen plan", request=str(request)))
    amount = convert(up_to, found.amount.currency, today())
    if not has_role(by, Role.APPROVER, team=request.team_id):
        raise NotPermitted(on=request)
    if by.pk in involved(request, request.current):
        raise NotPermitted(
            msg("You have a part in this request, so you cannot decide on it."), on=request
        )
    if not found.may_go_over:
        raise above_approved(found, amount)
    if not Mandates(by, today()).within_limit(amount):
        raise NotPermitted(
            msg("The amount is above the limit up to which you may agree."), on=request
        )
    if not reason.strip():
        raise InputError("over_reason", msg("Give a reason"), value=reason)
    row = OverApproval.objects.create(
        revision=request.current, amount=amount.amount, currency=amount.currency,
        approved_amount=found.amount.amount, reason=reason.strip(), by=by,
    )  # fmt: skip
    record(
        "request.over_approved", on=request, by=by, reason=reason.strip(), approved=str(found.amount),
        up_to=str(amount), tolerance=str(found.tolerance),
    )  # fmt: skip
    return row
