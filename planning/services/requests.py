"""Requests: write, submit, take back, revise, cancel, copy, hand to procurement, close."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition, NotPermitted, StaleData
from core.messages import msg
from core.models import User
from core.organisation import today
from core.outbox import notify
from planning import policies
from planning.models.approvals import ApprovalPolicy
from planning.models.budgets import Bucket
from planning.models.plans import PlanChoice
from planning.models.requests import CapacityRequest, Origin, RequestRevision
from planning.models.studies import Study
from planning.models.team_use import RevisionUse
from planning.models.templates import Relation, RequestLink
from planning.selectors.approvals import differences
from planning.selectors.budgets import held
from planning.selectors.team_use import team_use
from planning.services import approvals, budgets, studies
from planning.services.ledger import policy_in_force
from planning.services.moves import lock_request, move, touch
from planning.services.request_content import (
    TERMS,
    add_revision,
    checked_content,
    checked_title,
    new_draft,
    open_team,
)
from planning.states import RequestStatus, StepStatus, StudyStatus


@transaction.atomic
def create_request(
    *,
    team_id: int,
    kind: str,
    title: str,
    workload: Mapping[str, Any],
    by: User,
    requester: User | None = None,
    **terms: Any,
) -> CapacityRequest:
    """File a draft. `terms` are need_by, start, duration_days, justification, data_residence, interruptible,
    checkpoint_seconds [s], latency_class, accuracy_loss_limit [1] and region.

    Raises NotPermitted, InputError or WorkloadErrors.
    """
    team = open_team(team_id, by)
    requester = requester or by
    if requester.pk != by.pk and not policies.can_create(requester, team_id):
        raise InputError(
            "requester", msg("%(name)s may not file requests for this team", name=str(requester))
        )
    request = new_draft(
        team=team,
        kind=kind,
        title=title,
        content=checked_content(kind, workload, terms),
        origin=Origin.NEW,
        by=by,
        requester=requester,
    )
    record("request.created", on=request, by=by, kind=kind)
    return request


@transaction.atomic
def update_draft(
    *,
    request_id: int,
    by: User,
    version: int | None = None,
    title: str | None = None,
    workload: Mapping[str, Any] | None = None,
    **terms: Any,
) -> CapacityRequest:
    """Change a draft; what is not given stays. A chosen plan is dropped when the content changes.

    Raises StaleData with the values now stored when `version` is not current, else as create_request.
    """
    request = lock_request(request_id)
    policies.require_action(by, "edit", request)
    revision = request.current
    old = {name: getattr(revision, name) for name in TERMS}
    content = checked_content(
        request.kind, revision.workload if workload is None else workload, {**old, **terms}
    )
    if version is not None and version != request.version:
        raise StaleData(changes=_conflicts(request, revision, content, title))
    request.title = checked_title(title) if title is not None else request.title
    for name, value in content.items():
        setattr(revision, name, value)
    changed = revision.compute_hash() != revision.content_hash
    revision.save()
    revision.authors.add(by)
    request.save(update_fields=["title"])
    if changed:
        PlanChoice.objects.filter(revision=revision).delete()
        for study in Study.objects.filter(
            revision=revision, status__in=[StudyStatus.READY, StudyStatus.PUBLISHED]
        ):
            Study.objects.filter(pk=study.pk).update(
                status=StudyStatus.STALE, version=study.version + 1
            )
            record("study.outdated", on=study, by=by, team=request.team, from_state=study.status,
                   to_state=StudyStatus.STALE)  # fmt: skip
    touch(request)
    record("request.edited", on=request, by=by, revision=revision.number, changed=changed)
    return request


def _conflicts(
    request: CapacityRequest,
    revision: RequestRevision,
    content: Mapping[str, Any],
    title: str | None,
) -> dict[str, tuple[str, str]]:
    """Field → (what the caller sent, what is stored now), where they differ."""
    sent = {**content, **({"title": title} if title is not None else {})}
    stored = {"title": request.title, **{name: getattr(revision, name) for name in content}}
    sent |= sent.pop("workload")
    stored |= stored.pop("workload")
    return {
        name: (str(sent.get(name, "")), str(stored.get(name, "")))
        for name in dict.fromkeys([*sent, *stored])
        if name in sent and sent.get(name) != stored.get(name)
    }


@transaction.atomic
def submit_request(
    *, request_id: int, by: User, version: int | None = None, use_reason: str = ""
) -> CapacityRequest:
    """Freeze the current revision. With a plan chosen the review starts at once; else it starts when one is.

    `use_reason` says why what the team has does not do, where it uses less of it than the policy asks.
    Raises InputError (incomplete, dates past, nothing changed), NotPermitted, InvalidTransition or StaleData.
    """
    request = lock_request(request_id, version)
    policies.require_action(by, "submit", request)
    revision = request.current
    _ready_to_submit(request, revision)
    revision.submitted_at, revision.submitted_by = timezone.now(), by
    revision.policy = policy_in_force()
    use = _use_first(request, revision.policy, use_reason)
    revision.save()
    if use is not None:
        use.revision = revision
        use.save()
    revision.authors.add(by)
    move(
        request,
        RequestStatus.SUBMITTED,
        by=by,
        action="request.submitted",
        revision=revision.number,
        content_hash=revision.content_hash,
        **_use_facts(use),
    )
    if PlanChoice.objects.filter(revision=revision).exists():
        approvals.start_review(request=request, by=by)
    else:
        _study(request, revision)
    return request


def _use_facts(use: RevisionUse | None) -> dict[str, Any]:
    """What the trail keeps of it."""
    return {} if use is None else {"team_use": use.share, "use_state": use.state}


def _use_first(
    request: CapacityRequest, policy: ApprovalPolicy | None, reason: str
) -> RevisionUse | None:
    """What the team has and how busy it is, with the reason why that does not do. Raises InputError without one."""
    use = team_use(request.team_id, policy, today())
    if use is None or policy is None:
        return None
    use.reason = reason.strip()
    if use.low and policy.use_needs_reason and not use.reason:
        raise InputError(
            "use_reason",
            msg(
                "The %(cards)s cards of %(team)s were busy %(share)s from %(first)s to %(last)s, less than %(limit)s: "
                "use them first, or say why they do not do",
                cards=use.cards, team=str(request.team), share=f"{use.share or 0:.0%}",
                first=use.first.isoformat(), last=use.last.isoformat(), limit=f"{use.below:.0%}",
            ),
            value=reason,
            limit=use.below,
        )  # fmt: skip
    return use


def _study(request: CapacityRequest, revision: RequestRevision) -> None:
    """Start the study of what was submitted without a plan. What cannot be studied is said in the trail."""
    try:
        studies.request_study(revision_id=revision.pk, by=None)
    except DomainError as error:
        record("study.refused", on=request, by=None, revision=revision.number, reason=str(error))


def _ready_to_submit(request: CapacityRequest, revision: RequestRevision) -> None:
    if not revision.justification.strip():
        raise InputError("justification", msg("Say why this is needed before you submit it"))
    if revision.need_by < today():
        raise InputError(
            "need_by",
            msg(
                "The day by which it is needed, %(value)s, is before today, %(limit)s",
                value=revision.need_by.isoformat(),
                limit=today().isoformat(),
            ),
            value=revision.need_by,
            limit=today(),
        )
    if not request.team.active:
        raise InputError("team", msg("%(team)s is no longer active", team=str(request.team)))
    if revision.origin == Origin.REVISED:
        before = request.revisions.select_related("plan", "request").get(number=revision.number - 1)
        if not differences(before, revision):
            raise InputError(
                "revision",
                msg("Nothing differs from revision %(n)s", n=before.number),
                value=revision.number,
            )


@transaction.atomic
def recall(
    *, request_id: int, by: User, reason: str = "", version: int | None = None
) -> CapacityRequest:
    """Take a submitted request back to a draft. A reason is needed once a step was approved."""
    request = lock_request(request_id, version)
    policies.require_action(by, "recall", request)
    granted = request.current.steps.filter(status=StepStatus.APPROVED).exists()
    if granted and not reason.strip():
        raise InputError("reason", msg("A step was approved already: give a reason"))
    return _redraft(request, Origin.RECALLED, by=by, reason=reason, action="request.recalled")


@transaction.atomic
def revise(
    *, request_id: int, by: User, reason: str = "", version: int | None = None
) -> CapacityRequest:
    """Start the next revision as a copy of this one. Approvals of the old one end, and everyone concerned is told."""
    request = lock_request(request_id, version)
    policies.require_action(by, "revise", request)
    if request.status in (RequestStatus.APPROVED, RequestStatus.SOURCING) and not reason.strip():
        raise InputError("reason", msg("It was approved already: give a reason"))
    _refuse_if_ordered(request)
    return _redraft(request, Origin.REVISED, by=by, reason=reason, action="request.revised")


def _redraft(
    request: CapacityRequest, origin: str, *, by: User, reason: str, action: str
) -> CapacityRequest:
    old = request.current
    concerned = approvals.void_for_revision(revision=old, by=by, reason=reason)
    budgets.release(request=request, by=by, reason=reason)
    content = {name: getattr(old, name) for name in RequestRevision.CONTENT}
    revision = add_revision(
        request, old.number + 1, origin, content, by, authors=tuple(old.authors.all())
    )
    CapacityRequest.objects.filter(pk=request.pk).update(revision_number=revision.number)
    request.revision_number = revision.number
    move(
        request, RequestStatus.DRAFT, by=by, action=action, reason=reason, revision=revision.number
    )
    notify(
        [*concerned, request.requester],
        action,
        on=request,
        message=msg(
            "%(request)s is being changed: revision %(n)s no longer counts, nor do its approvals",
            request=str(request),
            n=old.number,
        ),
        url=request.get_absolute_url(),
        revision=str(old.number),
    )
    return request


def _refuse_if_ordered(request: CapacityRequest) -> None:
    if held(request, Bucket.COMMITTED):
        raise InvalidTransition(
            msg("An order stands for %(request)s: cancel it first", request=str(request))
        )


@transaction.atomic
def cancel_request(
    *, request_id: int, by: User, reason: str = "", version: int | None = None
) -> CapacityRequest:
    """Withdraw a request (after approval: by an approver of the organisation). Drafts need no reason."""
    request = lock_request(request_id, version)
    policies.require_action(by, "cancel", request)
    if request.status != RequestStatus.DRAFT and not reason.strip():
        raise InputError("reason", msg("Give a reason"))
    _refuse_if_ordered(request)
    revision = request.current
    concerned = approvals.void_for_revision(
        revision=revision, by=by, reason=reason, to=StepStatus.CANCELLED
    )
    budgets.release(request=request, by=by, reason=reason)
    move(request, RequestStatus.CANCELLED, by=by, action="request.cancelled", reason=reason)
    notify(
        [*concerned, request.requester],
        "request.cancelled",
        on=request,
        message=msg("%(request)s was cancelled", request=str(request)),
        url=request.get_absolute_url(),
        revision=str(revision.number),
    )
    return request


@transaction.atomic
def copy_request(*, request_id: int, by: User) -> CapacityRequest:
    """A new draft with the same content: no plan, no approvals, no reservation."""
    original = CapacityRequest.objects.select_related("team").get(pk=request_id)
    if not policies.can_copy(by, original):
        raise NotPermitted(on=original)
    source = original.current
    request = new_draft(
        team=open_team(original.team_id, by),
        kind=original.kind,
        title=original.title,
        content={name: getattr(source, name) for name in RequestRevision.CONTENT},
        origin=Origin.COPIED,
        by=by,
    )
    RequestLink.objects.create(source=original, target=request, relation=Relation.COPIED)
    record("request.created", on=request, by=by, kind=request.kind, copy_of=original.pk)
    return request


@transaction.atomic
def start_sourcing(
    *, request_id: int, by: User | None, version: int | None = None
) -> CapacityRequest:
    """Hand an approved request to procurement. Raises NotPermitted, InvalidTransition or StaleData."""
    request = lock_request(request_id, version)
    policies.require_action(by, "start_sourcing", request)
    revision = request.current
    steps = list(revision.steps.all())
    bound = revision.bound_hash()
    if not steps or any(
        step.status != StepStatus.APPROVED or step.content_hash != bound for step in steps
    ):
        raise InvalidTransition(
            msg(
                "Not every step of the current revision of %(request)s is approved",
                request=str(request),
            )
        )
    move(
        request,
        RequestStatus.SOURCING,
        by=by,
        action="request.sourcing_started",
        revision=revision.number,
    )
    return request


@transaction.atomic
def record_fulfilment(
    *, request_id: int, accepted: int, by: User | None, short_close_reason: str = ""
) -> CapacityRequest:
    """Tell a request in sourcing how many accelerators were accepted in all. With all of them, or closed short by
    procurement with a reason, it is fulfilled; with fewer it stays.

    Call with `by=None` when acceptance computed it. Raises NotPermitted, InvalidTransition or InputError.
    """
    request = lock_request(request_id)
    policies.require_action(by, "fulfil", request)
    if accepted < 0:
        raise InputError("accepted", msg("%(field)s is %(value)s; it must be at least %(limit)s",
                         field="accepted", value=accepted, limit=0), value=accepted, limit=0)  # fmt: skip
    plan = PlanChoice.objects.get(
        revision__request=request, revision__number=request.revision_number
    )
    request.accepted_cards = accepted
    request.save(update_fields=["accepted_cards"])
    enough = accepted >= plan.cards
    if not enough and not short_close_reason.strip():
        record("request.delivery_counted", on=request, by=by, accepted=accepted, asked=plan.cards)
        return request
    budgets.release(request=request, by=by, reason=short_close_reason)
    move(
        request,
        RequestStatus.FULFILLED,
        by=by,
        action="request.fulfilled",
        reason=short_close_reason,
        accepted=accepted,
        asked=plan.cards,
    )
    approvals.tell_team(
        request,
        "request.fulfilled",
        msg(
            "%(request)s is fulfilled: %(n)s accelerators accepted",
            request=str(request),
            n=accepted,
        ),
        revision=request.current,
    )
    return request
