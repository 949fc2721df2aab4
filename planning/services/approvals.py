"""Approval: steps made from the policy in force, votes bound to what was seen, and the last step taking the money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import transaction
from django.utils import timezone

from core import transitions
from core.audit import gathered, record
from core.errors import DomainError, InputError, InvalidTransition, NotPermitted, StaleData
from core.exchange import convert
from core.messages import Message, msg
from core.models import User
from core.money import Money
from core.organisation import organisation, today
from core.outbox import notify
from planning import policies
from planning.mandates import Mandate, Mandates, has_voted
from planning.models.approvals import ApprovalPolicy, ApprovalRule, ApprovalStep, Decision, Vote
from planning.models.delegations import Delegation
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest, RequestRevision
from planning.models.studies import Study
from planning.models.team_use import RevisionUse
from planning.selectors.approvals import deciders, steps_with_facts
from planning.selectors.conditions import lowest
from planning.selectors.team_use import use_kept
from planning.services import budgets
from planning.services.ledger import policy_of
from planning.services.moves import move
from planning.states import RequestStatus, StepStatus, StudyStatus

OPEN = (StepStatus.WAITING, StepStatus.PENDING)


# --- the chain ---------------------------------------------------------------------------------------------------


def start_review(*, request: CapacityRequest, by: User | None) -> None:
    """A locked, submitted request with a plan goes into review: reserve the amount, make the steps, open the first.

    Raises DomainError when no policy is in force or no rule of it applies.
    """
    revision = request.current
    plan = PlanChoice.objects.get(revision=revision)
    policy = policy_of(revision)
    left = budgets.reserve(request=request, plan=plan, policy=policy, by=by)
    over = left is not None and left.amount < 0
    use = use_kept(revision)
    rules = [
        rule
        for rule in ApprovalRule.objects.filter(policy=policy)
        if _applies(rule, request, revision, plan, over, use)
    ]
    if not rules:
        raise DomainError(
            msg(
                "No rule of the policy %(policy)s applies, so no one could approve",
                policy=policy.preset,
            )
        )
    bound = revision.bound_hash()
    ApprovalStep.objects.bulk_create(
        ApprovalStep(
            revision=revision,
            content_hash=bound,
            group=rule.group,
            authority=rule.authority,
            quorum=rule.quorum,
        )
        for rule in rules
    )
    move(
        request,
        RequestStatus.IN_REVIEW,
        by=None,
        action="request.review_started",
        revision=revision.number,
        content_hash=bound,
        steps=len(rules),
        over_budget=over,
    )
    _open_next(revision)


def _applies(
    rule: ApprovalRule,
    request: CapacityRequest,
    revision: RequestRevision,
    plan: PlanChoice,
    over_budget: bool,
    use: RevisionUse | None,
) -> bool:
    if rule.spend_kind and rule.spend_kind != plan.spend_kind:
        return False
    if rule.team_id is not None and rule.team_id != request.team_id:
        return False
    if rule.residence and rule.residence != revision.data_residence:
        return False
    if rule.over_budget_only and not over_budget:
        return False
    if rule.low_use_only and not (use is not None and use.low):
        return False
    if rule.above is None:
        return True
    if rule.above_currency == plan.base_currency:
        return plan.base_amount > rule.above
    amount = convert(plan.money, rule.above_currency, plan.rate_date)
    return amount.amount > rule.above


def _open_next(revision: RequestRevision) -> None:
    """Open the lowest group that is not approved yet."""
    left = ApprovalStep.objects.filter(revision=revision, status__in=OPEN).order_by("group")
    group = left.values_list("group", flat=True).first()
    if group is None:
        return
    for step in steps_with_facts(left.filter(group=group, status=StepStatus.WAITING)):
        opened = {"opened_at": timezone.now()}
        transitions.advance(
            step, StepStatus.PENDING, by=None, action="approval_step.opened", also=opened
        )
        notify(
            deciders(step),
            "approval_step.opened",
            on=step,
            message=msg("%(request)s waits for your decision", request=str(step.revision.request)),
            url=step.revision.request.get_absolute_url(),
        )


def void_for_revision(
    *,
    revision: RequestRevision,
    by: User | None,
    reason: str,
    to: str = StepStatus.VOID,
    keep: ApprovalStep | None = None,
) -> list[User]:
    """End the steps of a revision; votes stay readable. Returns everyone concerned: who voted and who was asked."""
    sources = (*OPEN, StepStatus.APPROVED) if to == StepStatus.VOID else OPEN
    concerned: dict[int, User] = {}
    for step in steps_with_facts(ApprovalStep.objects.filter(revision=revision)):
        for vote in step.votes.all():
            concerned[vote.voter_id] = vote.voter
            concerned[vote.principal_id] = vote.principal
        if keep is not None and step.pk == keep.pk:
            continue
        if step.status in sources:
            if step.status == StepStatus.PENDING:
                concerned |= {user.pk: user for user in deciders(step)}
            transitions.advance(step, to, by=by, action=f"approval_step.{to}", reason=reason)
    return list(concerned.values())


# --- the decision ------------------------------------------------------------------------------------------------


@transaction.atomic
def decide(
    *,
    step_id: int,
    decision: str,
    by: User,
    seen_hash: str,
    reason: str = "",
    cap: Money | None = None,
    order_by: date | None = None,
) -> ApprovalStep:
    """Cast the vote of `by` (or of the one they stand in for) on a pending step.

    An approval may be given up to `cap` and on condition that it is ordered until `order_by`; orders are held to it.
    `seen_hash` is the hash of what was on the screen. The vote that completes the last group makes the reservation
    firm in the same transaction, so that of two racing for the last of a budget one succeeds.

    Raises NotPermitted, InvalidTransition, StaleData, InputError (no reason) or OverBudget.
    """
    if decision not in Decision.values:
        raise InputError(
            "decision",
            msg("%(value)s is no decision", value=decision),
            value=decision,
            limit=", ".join(Decision.values),
        )
    org = organisation()
    request = _lock_request_of(step_id)
    chain = _chain(step_id, request)
    step = chain.step
    mandate = _mandate(by, step, request, today(org))
    if request.status != RequestStatus.IN_REVIEW or step.status != StepStatus.PENDING:
        raise InvalidTransition(
            msg(
                "%(step)s is in state %(state)s and takes no decision",
                step=str(step),
                state=step.status,
            )
        )
    revision = step.revision
    if revision.number != request.revision_number or step.content_hash != revision.bound_hash():
        raise StaleData(msg("This step belongs to an earlier revision."))
    if seen_hash != step.content_hash:
        raise StaleData(changes={"content_hash": (seen_hash[:12], step.content_hash[:12])})
    if has_voted(by, mandate, chain.votes_of_group()):
        raise InvalidTransition(msg("You have decided in this group of steps already."))
    if decision != Decision.APPROVE and not reason.strip():
        raise InputError("reason", msg("Give a reason"))
    policy = policy_of(revision)
    if decision == Decision.APPROVE:
        _check_study(revision.plan, policy)
    cap, order_by = _checked_conditions(decision, cap, order_by, revision, today(org))
    # What can be refused is refused before anything is written: it costs others no lock and us no undoing.
    claim = None
    if decision == Decision.APPROVE and chain.ends():
        claim = budgets.claim(
            request=request, plan=revision.plan, policy=policy, reason=reason, org=org,
            cap=chain.lowest_cap(cap),
        )  # fmt: skip
    with gathered():
        Vote.objects.create(
            step=step,
            voter=by,
            principal=mandate.principal,
            delegation=mandate.delegation,
            decision=decision,
            reason=reason.strip(),
            content_hash=step.content_hash,
            cap_amount=cap.amount if cap else None,
            cap_currency=cap.currency if cap else "",
            order_by=order_by,
        )
        conditions: dict[str, Any] = {
            **({"cap": str(cap)} if cap else {}),
            **({"order_by": order_by.isoformat()} if order_by else {}),
        }
        record(
            f"approval_step.{decision}",
            on=step,
            by=by,
            on_behalf_of=mandate.principal if mandate.delegation else None,
            team=request.team,
            reason=reason,
            revision=revision.number,
            content_hash=step.content_hash,
            **conditions,
        )
        if decision == Decision.APPROVE:
            _approve(chain, request, by=by, reason=reason)
        elif decision == Decision.RETURN:
            _stop(step, request, StepStatus.RETURNED, RequestStatus.CHANGES_REQUESTED, by, reason)
        else:
            _stop(step, request, StepStatus.REJECTED, RequestStatus.REJECTED, by, reason)
    if claim is not None:
        # Last: what comes after the lock on the budget is what all the other approvals wait for.
        budgets.approve_amount(request=request, claim=claim, by=by, policy=policy, reason=reason)
    return step


def _lock_request_of(step_id: int) -> CapacityRequest:
    rows = CapacityRequest.objects.select_related("team")
    request: CapacityRequest = (
        rows.filter(revisions__steps=step_id).select_for_update(of=("self",)).get()
    )
    return request


@dataclass(frozen=True, slots=True)
class _Chain:
    """The steps of a revision and what was voted on them so far, as one more vote finds them."""

    step: ApprovalStep  # the one to decide on
    steps: list[ApprovalStep]
    votes: list[Vote]

    def votes_of_group(self) -> list[Vote]:
        beside = {other.pk for other in self.steps if other.group == self.step.group}
        return [vote for vote in self.votes if vote.step_id in beside]

    def has_quorum(self) -> bool:
        """Whether one more vote to approve grants the step."""
        agreed = sum(
            vote.step_id == self.step.pk and vote.decision == Decision.APPROVE
            for vote in self.votes
        )
        return agreed + 1 >= self.step.quorum

    def ends(self) -> bool:
        """Whether nothing is left to be agreed to after one more vote to approve."""
        others = (other for other in self.steps if other.pk != self.step.pk)
        return self.has_quorum() and not any(other.status in OPEN for other in others)

    def lowest_cap(self, cap: Money | None) -> Money | None:
        """The strictest cap of this vote and those before."""
        caps = [vote.cap for vote in self.votes if vote.cap]
        return lowest([*caps, *([cap] if cap else [])], self.step.revision.plan)


def _chain(step_id: int, request: CapacityRequest) -> _Chain:
    """Three queries, whatever the length of the chain."""
    steps = list(
        ApprovalStep.objects.filter(revision__steps=step_id)
        .select_related("revision__plan", "revision__policy")
        .prefetch_related("revision__authors")
        .order_by("group", "pk")
    )
    (step,) = (row for row in steps if row.pk == step_id)
    step.revision.request = request
    return _Chain(step, steps, list(Vote.objects.filter(step__in=steps)))


def _mandate(by: User, step: ApprovalStep, request: CapacityRequest, day: date) -> Mandate:
    mandate = Mandates(by, day).for_step(step)
    if isinstance(mandate, Message):
        raise NotPermitted(mandate, on=request)
    return mandate


def _check_study(plan: PlanChoice, policy: ApprovalPolicy) -> None:
    # Only its state is read: a study's plans are megabytes that no decision looks at.
    if (
        policy.block_stale_study
        and plan.study_id is not None
        and Study.objects.filter(pk=plan.study_id, status=StudyStatus.STALE).exists()
    ):
        raise DomainError(
            msg(
                "The study behind this plan is out of date. Return the request, so that it is run again."
            )
        )


def _checked_conditions(
    decision: str, cap: Money | None, order_by: date | None, revision: RequestRevision, day: date
) -> tuple[Money | None, date | None]:
    """The conditions, rounded; raises InputError or MissingRate for what could not be held to."""
    if (cap or order_by) and decision != Decision.APPROVE:
        raise InputError("cap", msg("Only an approval can carry a condition"), value=decision)
    if cap is not None:
        if not cap.amount.is_finite() or cap.rounded().amount <= 0:
            raise InputError(
                "cap",
                msg("%(value)s is not above 0", value=str(cap)),
                value=cap.amount,
                limit="> 0",
            )
        cap = cap.rounded()
        convert(cap, revision.plan.base_currency, revision.plan.rate_date)
    if order_by is not None and order_by < day:
        raise InputError(
            "order_by",
            msg("%(value)s is before today, %(limit)s", value=order_by.isoformat(), limit=day.isoformat()),
            value=order_by,
            limit=day,
        )  # fmt: skip
    return cap, order_by


def _approve(chain: _Chain, request: CapacityRequest, *, by: User, reason: str) -> None:
    if not chain.has_quorum():
        return
    step, ends = chain.step, chain.ends()
    decided = {"decided_at": timezone.now()}
    transitions.advance(
        step,
        StepStatus.APPROVED,
        by=by,
        action="approval_step.granted",
        reason=reason,
        also=decided,
    )
    if not ends:
        _open_next(step.revision)
        return
    move(
        request,
        RequestStatus.APPROVED,
        by=by,
        action="request.approved",
        reason=reason,
        revision=step.revision.number,
        content_hash=step.content_hash,
        amount=str(step.revision.plan.money),
    )
    tell_team(
        request,
        "request.approved",
        msg("%(request)s is approved", request=str(request)),
        revision=step.revision,
    )


def _stop(
    step: ApprovalStep,
    request: CapacityRequest,
    step_to: StepStatus,
    request_to: RequestStatus,
    by: User,
    reason: str,
) -> None:
    decided = {"decided_at": timezone.now()}
    transitions.advance(
        step, step_to, by=by, action=f"approval_step.{step_to}", reason=reason, also=decided
    )
    rejected = request_to == RequestStatus.REJECTED
    void_for_revision(
        revision=step.revision,
        by=None,
        reason=reason,
        to=StepStatus.CANCELLED if rejected else StepStatus.VOID,
        keep=step,
    )
    if rejected:
        budgets.release(request=request, by=by, reason=reason)
    move(
        request,
        request_to,
        by=by,
        action="request.rejected" if rejected else "request.returned",
        reason=reason,
        revision=step.revision.number,
    )
    tell_team(
        request,
        "request.rejected" if rejected else "request.returned",
        msg("%(request)s was rejected: %(reason)s", request=str(request), reason=reason)
        if rejected
        else msg(
            "Changes are asked for in %(request)s: %(reason)s", request=str(request), reason=reason
        ),
        revision=step.revision,
    )


def tell_team(
    request: CapacityRequest, event: str, message: Message, *, revision: RequestRevision
) -> None:
    """Tell requester, filer and authors, once per event and revision."""
    people = {author.pk for author in revision.authors.all()}
    people |= {request.requester_id, request.created_by_id}
    notify(
        User.objects.filter(pk__in=people),
        event,
        on=request,
        message=message,
        url=request.get_absolute_url(),
        revision=str(revision.number),
    )


# --- standing in -------------------------------------------------------------------------------------------------


@transaction.atomic
def delegate(
    *, principal: User, delegate: User, first_day: date, last_day: date, by: User, reason: str = ""
) -> Delegation:
    """Let `delegate` decide for `principal` on these days. Only for oneself; no cycles.

    Raises NotPermitted or InputError.
    """
    if by.pk != principal.pk or not policies.can_delegate(principal):
        raise NotPermitted(on=principal)
    if delegate.pk == principal.pk or not delegate.is_active:
        raise InputError("delegate", msg("Choose another active person"), value=delegate.pk)
    if last_day < first_day:
        raise InputError(
            "last_day", msg("The last day is before the first"), value=last_day, limit=first_day
        )
    if last_day < today():
        raise InputError(
            "last_day", msg("The last day is in the past"), value=last_day, limit=today()
        )
    # Both people locked in one order: of A→B and B→A filed at once, the second sees the first.
    list(User.objects.select_for_update().filter(pk__in=[principal.pk, delegate.pk]).order_by("pk"))
    overlapping = Delegation.objects.overlapping(first_day, last_day)
    if overlapping.filter(principal=delegate, delegate=principal).exists():
        raise InputError(
            "delegate",
            msg("%(name)s is away on some of these days and you stand in", name=str(delegate)),
            value=delegate.pk,
        )
    if overlapping.filter(principal=principal).exists():
        raise InputError(
            "first_day",
            msg("Someone stands in for you on some of these days already"),
            value=first_day,
        )
    row = Delegation.objects.create(
        principal=principal,
        delegate=delegate,
        first_day=first_day,
        last_day=last_day,
        reason=reason.strip()[:200],
        created_by=by,
    )
    record(
        "delegation.given",
        on=row,
        by=by,
        reason=reason,
        delegate=delegate.pk,
        first_day=first_day.isoformat(),
        last_day=last_day.isoformat(),
    )
    notify(
        [delegate],
        "delegation.given",
        on=row,
        message=msg(
            "You stand in for %(name)s from %(first)s to %(last)s",
            name=str(principal),
            first=first_day.isoformat(),
            last=last_day.isoformat(),
        ),
        url="/approvals/",
    )
    return row


@transaction.atomic
def revoke_delegation(*, delegation_id: int, by: User) -> Delegation:
    """Take the authority back at once. Raises NotPermitted or InvalidTransition."""
    row = transitions.lock(Delegation.objects.all(), delegation_id)
    if not policies.can_revoke(by, row):
        raise NotPermitted(on=row)
    if row.revoked_at is not None:
        raise InvalidTransition(msg("This was revoked before"))
    row.revoked_at = timezone.now()
    row.save(update_fields=["revoked_at"])
    record("delegation.revoked", on=row, by=by)
    return row
