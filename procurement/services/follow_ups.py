"""A decision of a capacity review becomes an RFQ: a draft of the approved requests that the decision is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.audit import record
from core.errors import InputError
from core.messages import msg
from core.models import User
from core.organisation import organisation
from core.roles import Role, has_role_anywhere
from planning.follow_ups import Became, Kind, register
from planning.models import CapacityRequest
from planning.models.review_work import ReviewAction
from planning.selectors.review_work import recommendation_of, team_of
from planning.services.follow_ups import became_already, open_action, title_of
from procurement.models import Rfq
from procurement.services.rfqs import create_rfq
from procurement.sourceable import sourceable
from procurement.states import RfqStatus

QUOTING = timedelta(days=14)  # as the form of a new RFQ proposes


def known_requests(action: ReviewAction, by: User) -> list[CapacityRequest]:
    """Approved requests that no RFQ has yet: the one that the decision became, else those of the pool's team for the
    pool's card.
    """
    if action.request_id is not None:
        return list(sourceable(by).filter(pk=action.request_id))
    advice = recommendation_of(action)
    team = team_of(advice["pool"]) if advice else None
    if advice is None or team is None:
        return []
    return [
        row
        for row in sourceable(by).filter(team=team)
        if (plan := getattr(row.current, "plan", None))
        and plan.accelerator_slug == advice["accelerator"]
    ]


@transaction.atomic
def file_rfq(
    *,
    action_id: int,
    by: User,
    request_ids: Sequence[int] | None = None,
    deadline: datetime | None = None,
) -> Rfq:
    """Draft the RFQ that the decision asks for. What is given goes before what the decision tells.

    Raises InputError when no approved request is told or found, NotPermitted, InvalidTransition.
    """
    action = open_action(action_id, by)
    before = Rfq.objects.filter(review_action=action).exclude(status=RfqStatus.CANCELLED).first()
    if before is not None:
        raise became_already(before.number)
    if request_ids is None:
        request_ids = [row.pk for row in known_requests(action, by)]
    if not request_ids:
        raise InputError(
            "requests",
            msg("An RFQ is made of approved requests, and none is known for this decision: choose them, or file a "
                "request first"),
            value="",
        )  # fmt: skip
    rfq = create_rfq(
        by=by, title=title_of(action), request_ids=request_ids, deadline=deadline or default_deadline(),
    )  # fmt: skip
    rfq.review_action = action
    rfq.save(update_fields=["review_action"])
    record("review_action.filed", on=action, by=by, kind="rfq", reference=rfq.number)
    return rfq


def default_deadline() -> datetime:
    """Two weeks ahead at 17:00 in the organisation's zone."""
    ahead = timezone.now().astimezone(organisation().zone) + QUOTING
    return ahead.replace(hour=17, minute=0, second=0, microsecond=0)


def rfqs_of(ids: Collection[int], user: User | None) -> Mapping[int, list[Became]]:
    """RFQs that decisions became."""
    rows = Rfq.objects.all() if user is None else Rfq.objects.visible_to(user)
    found: dict[int, list[Became]] = defaultdict(list)
    for rfq in rows.filter(review_action__in=ids).distinct().order_by("pk"):
        if rfq.review_action_id is not None:
            found[rfq.review_action_id].append(
                Became(
                    "rfq", rfq.number, rfq.status, rfq.get_status_display(), rfq.get_absolute_url()
                )
            )
    return found


def may_file(user: User) -> bool:
    """Buyers; for which teams, the RFQ's own rule asks."""
    return has_role_anywhere(user, Role.PROCUREMENT)


def register_rfqs() -> None:
    """Called once, when the app is ready."""
    register(
        Kind(
            name="rfq", label=_("Draft an RFQ"), address="review-action-rfq", may=may_file, found=rfqs_of,
            state_label=lambda state: str(RfqStatus(state).label),
        )
    )  # fmt: skip
