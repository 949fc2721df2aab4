"""Holding an award, an order or an amendment to what was approved for the requests it serves."""

from __future__ import annotations

from collections.abc import Iterable

from core.errors import InputError
from core.messages import msg
from core.models import User
from planning.services.over_approvals import above_approved, agree_to_more
from procurement.selectors.awarded import Against


def hold_to_approval(rows: Iterable[Against], *, over_reason: str, by: User) -> None:
    """Nothing is beyond the tolerance, or the approver `by` agrees to it with a reason.

    Raises InputError (a reason is needed), AboveApproved (the policy does not let anyone agree) or NotPermitted.
    """
    for row in rows:
        if not row.is_beyond or row.total is None:
            continue
        found = row.approved
        if found.may_go_over and not over_reason.strip():
            raise InputError(
                "over_reason",
                msg(
                    "%(request)s was approved for %(approved)s; with this, orders come to %(sum)s with tax; %(limit)s "
                    "is the most without a reason",
                    request=str(found.request), approved=str(found.agreed), sum=str(row.total),
                    limit=str(found.limit),
                ),
                value=row.total.amount, limit=found.limit.amount,
            )  # fmt: skip
        if not found.may_go_over:
            raise above_approved(found, row.total)
        agree_to_more(
            request_id=found.request.pk, up_to=row.total, reason=over_reason, by=by
        )  # fmt: skip
