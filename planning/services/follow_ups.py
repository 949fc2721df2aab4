"""A decision of a review becomes a request or a transfer of budget: a draft with what the recommendation knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils import translation

from core.audit import record
from core.errors import InputError, InvalidTransition
from core.messages import msg
from core.models import Team, User
from core.organisation import organisation
from core.policies import require
from core.quarters import Quarter
from core.transitions import lock
from planning import policies
from planning.follow_ups import Became
from planning.models.budgets import Budget, BudgetChange
from planning.models.plans import SpendKind
from planning.models.requests import CapacityRequest
from planning.models.review_work import ReviewAction
from planning.review_policies import can_see_action
from planning.review_use import line_words
from planning.selectors.review_work import recommendation_of, team_of
from planning.services import budget_changes, requests
from planning.services.ledger import policy_in_force
from planning.states import ChangeStatus, RequestStatus
from planning.study.workloads import Kind as WorkKind

HOURS, DAYS = 2190, 91  # of a quarter, as the recommendation reckons
TITLE = 160


def open_action(action_id: int, by: User) -> ReviewAction:
    """The decision, locked, when something may still be filed from it. Raises NotPermitted or InvalidTransition."""
    action = lock(ReviewAction.objects.select_related("review"), action_id)
    require(can_see_action(by, action))
    if action.status != ReviewAction.Status.OPEN:
        raise InvalidTransition(msg("This decision is ended: nothing is filed from it any more"))
    return action


def became_already(reference: object) -> InvalidTransition:
    return InvalidTransition(
        msg("This decision became %(reference)s already", reference=str(reference))
    )


def title_of(action: ReviewAction) -> str:
    """The decision in the length of a title."""
    text = " ".join(action.text.split())
    return text if len(text) <= TITLE else f"{text[: TITLE - 1]}…"


def reason_of(action: ReviewAction) -> str:
    """The decision, where it was made, and the recommendation's arithmetic, in the organisation's language."""
    advice = recommendation_of(action)
    with translation.override(organisation().language):
        said = translation.gettext("Decided in the capacity review %(review)s: %(text)s") % {
            "review": str(action.review), "text": action.text,
        }  # fmt: skip
        lines = [line_words(line) for line in (advice or {}).get("lines", [])]
    return "\n".join([said, *lines])


# --- a request -----------------------------------------------------------------------------------------------------


def known_request(action: ReviewAction) -> dict[str, Any]:
    """What the recommendation tells of a request: `team`, `accelerator`, `cards` [1]; missing keys are not known."""
    advice = recommendation_of(action)
    if advice is None:
        return {}
    known = {
        "team": team_of(advice["pool"]), "accelerator": advice["accelerator"], "cards": advice["change"],
    }  # fmt: skip
    return {name: value for name, value in known.items() if value}


@transaction.atomic
def file_request(
    *,
    action_id: int,
    by: User,
    team: Team | None = None,
    accelerator: str = "",
    cards: int | None = None,
    need_by: date | None = None,
) -> CapacityRequest:
    """Draft the request that the decision asks for: a quarter's hours of the cards that the recommendation counts.

    What is given goes before the recommendation. Raises InputError with the field that neither tells, NotPermitted,
    InvalidTransition.
    """
    action = open_action(action_id, by)
    if action.request is not None:
        raise became_already(action.request.reference)
    known = known_request(action)
    team = team or known.get("team")
    cards = known.get("cards") if cards is None else cards
    accelerator = accelerator.strip() or known.get("accelerator", "")
    if team is None:
        raise InputError("team", msg("The decision names no pool: say for which team"), value="")
    if cards is None:
        raise InputError("cards", msg("The recommendation counts no cards: say how many"), value="")
    if cards < 1:
        raise InputError("cards", msg("At least one card"), value=cards, limit=">= 1")
    workload: dict[str, Any] = {"gpu_hours": cards * HOURS, "accelerators": cards}
    if accelerator:
        workload["accelerator"] = accelerator
    filed = requests.create_request(
        team_id=team.pk, kind=WorkKind.GPU_HOURS, title=title_of(action), workload=workload, by=by,
        need_by=need_by or action.due_on, duration_days=DAYS, justification=reason_of(action),
    )  # fmt: skip
    action.request = filed
    _keep(action, "request", filed.reference, by=by)
    return filed


def _keep(action: ReviewAction, field: str, reference: str, *, by: User) -> None:
    action.version += 1
    action.save(update_fields=[field, "version"])
    record("review_action.filed", on=action, by=by, kind=field, reference=reference)


def requests_of(ids: Collection[int], user: User | None) -> Mapping[int, list[Became]]:
    """Requests that decisions became."""
    visible = None if user is None else CapacityRequest.objects.visible_to(user)
    rows = ReviewAction.objects.filter(pk__in=ids, request__isnull=False)
    if visible is not None:
        rows = rows.filter(request__in=visible)
    return {
        row.pk: [
            Became(
                "request", found.reference, found.status, found.get_status_display(), found.get_absolute_url()
            )
        ]
        for row in rows.select_related("request")
        if (found := row.request) is not None
    }  # fmt: skip


# --- a transfer of budget ------------------------------------------------------------------------------------------


def known_transfer(action: ReviewAction) -> dict[str, Any]:
    """What the recommendation tells of a transfer: `receiver` (the pool's team), `giver` (the team of the other pool)
    and `amount`, what the cards cost for a quarter, where the budgets are in the currency of that figure.
    """
    advice = recommendation_of(action)
    if advice is None:
        return {}
    found = {
        "receiver": _budget(team_of(advice["pool"]), action.due_on),
        "giver": _budget(team_of(advice["to"]), action.due_on),
    }
    known: dict[str, Any] = {name: budget for name, budget in found.items() if budget}
    receiver = known.get("receiver")
    if advice["waiting"] and receiver and receiver.currency == advice["currency"]:
        known["amount"] = Decimal(advice["waiting"])
    return known


def _budget(team: Team | None, day: date) -> Budget | None:
    """The team's open budget of the quarter of `day`: that for clouds before that for purchases."""
    if team is None:
        return None
    quarter = Quarter.of(day, organisation().fiscal_start_month)
    rows = Budget.objects.filter(
        team=team, fiscal_year=quarter.year, quarter=quarter.q, closed_at=None
    ).select_related("team")
    return min(rows, key=lambda row: (row.kind != SpendKind.CLOUD, row.pk), default=None)


@transaction.atomic
def file_transfer(
    *,
    action_id: int,
    by: User,
    giver: Budget | None = None,
    receiver: Budget | None = None,
    amount: Decimal | None = None,
    reason: str = "",
) -> BudgetChange:
    """Propose the transfer that the decision asks for. What is given goes before the recommendation.

    Raises InputError with the field that neither tells, NotPermitted, InvalidTransition.
    """
    action = open_action(action_id, by)
    if action.transfer is not None and action.transfer.status != ChangeStatus.DECLINED:
        raise became_already(action.transfer)
    known = known_transfer(action)
    giver, receiver = giver or known.get("giver"), receiver or known.get("receiver")
    amount = known.get("amount") if amount is None else amount
    if giver is None:
        raise InputError("giver", msg("Say which budget gives"), value="")
    if receiver is None:
        raise InputError("receiver", msg("Say which budget receives"), value="")
    if amount is None:
        raise InputError("amount", msg("The recommendation has no amount: say how much"), value="")
    change = budget_changes.transfer(
        giver_id=giver.pk, receiver_id=receiver.pk, amount=amount, by=by,
        reason=reason.strip() or reason_of(action).splitlines()[0][:300],
    )  # fmt: skip
    action.transfer = change
    _keep(action, "transfer", str(change), by=by)
    return change


def transfers_of(ids: Collection[int], user: User | None) -> Mapping[int, list[Became]]:
    """Transfers that decisions became."""
    rows = ReviewAction.objects.filter(pk__in=ids, transfer__isnull=False)
    if user is not None:
        rows = rows.filter(transfer__budget__in=Budget.objects.visible_to(user))
    rows = rows.select_related("transfer__budget__team", "transfer__giver__team")
    return {
        row.pk: [
            Became(
                "transfer", str(change), change.status, change.get_status_display(),
                change.budget.get_absolute_url(),
            )
        ]
        for row in rows
        if (change := row.transfer) is not None
    }  # fmt: skip


def at_once() -> bool:
    """Whether a second person looks at a transfer anyway; else its form is looked at before it is sent."""
    policy = policy_in_force()
    return policy is not None and policy.two_person_budget


def may_file_request(user: User) -> bool:
    """Whether there is a team for which the person may file; which one, the service asks."""
    return any(policies.can_create(user, pk) for pk in Team.objects.values_list("pk", flat=True))


def request_label(state: str) -> str:
    return str(RequestStatus(state).label)


def transfer_label(state: str) -> str:
    return str(ChangeStatus(state).label)
