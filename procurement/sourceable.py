"""Which requests may be bought for."""

from __future__ import annotations

from typing import Any

from core.models import User
from planning.models import CapacityRequest
from planning.states import RequestStatus
from procurement import policies
from procurement.states import OPEN_RFQ


def sourceable(user: User) -> Any:
    """Requests that `user` may put into a new RFQ: approved, or in sourcing without one."""
    rows = (
        CapacityRequest.objects.visible_to(user)
        .filter(status__in=[RequestStatus.APPROVED, RequestStatus.SOURCING])
        .exclude(rfq_lines__rfq__status__in=[*OPEN_RFQ, "awarded"])
        .with_current()
    )
    ids = [row.pk for row in rows if policies.can_create_rfq(user, [row.team_id])]
    return CapacityRequest.objects.filter(pk__in=ids).with_current()
