"""From approved plans to quotes that may be compared: the RFQ's life up to its opening."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import transaction
from django.utils import timezone

from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.exchange import MissingRate, rate_on
from core.messages import msg
from core.models import User
from core.organisation import organisation, quarter_at, today
from core.policies import require
from core.sequences import next_number
from planning.models import CapacityRequest, PlanChoice
from planning.services.requests import start_sourcing
from planning.states import RequestStatus
from procurement import policies
from procurement.models import (
    PurchasingPolicy,
    Rfq,
    RfqCriterion,
    RfqInvitation,
    RfqLine,
    RfqOpening,
    Vendor,
)
from procurement.models.policy import Sealing
from procurement.models.rfqs import CriterionKind
from procurement.services.clauses import issue_clauses, set_clauses
from procurement.services.moves import move, need_reason, take, touch
from procurement.services.quotes import require_active
from procurement.services.requirements import set_requirements
from procurement.services.rfq_documents import request_documents
from procurement.states import OPEN_RFQ, AwardStatus, QuoteStatus, RfqStatus, VendorStatus
from procurement.warranty_rules import StartTrigger

DEFAULT_WEIGHTS: dict[str, int] = {
    CriterionKind.WARRANTY_PRICE: 60,
    CriterionKind.PRICE: 20,
    CriterionKind.LEAD_TIME: 20,
}
EDITABLE = ("title", "deliver_by", "warranty_months", "warranty_start", "terms")


def rows() -> Any:
    return Rfq.objects.select_related("owner")


@transaction.atomic
def create_rfq(
    *,
    by: User,
    title: str,
    request_ids: Sequence[int],
    deadline: datetime,
    vendor_ids: Sequence[int] = (),
    deadline_zone: str = "",
    sealed: bool | None = None,
    weights: Mapping[str, int] | None = None,
    requirements: Sequence[Mapping[str, Any]] | None = None,
    clauses: Sequence[str] | None = None,
    **terms: Any,
) -> Rfq:
    """Make a draft RFQ of the plans of approved requests; each request goes into sourcing.

    `requirements` are the criteria to be reached (see `procurement.requirements`); None takes them from the plans.
    `clauses` are short names of the clause library; None takes those that are preset.
    Raises NotPermitted, InvalidTransition (a request that is not approved, or is in another RFQ) or InputError.
    """
    requests = list(
        CapacityRequest.objects.filter(pk__in=request_ids).order_by("pk").select_related("team")
    )
    if not requests or len(requests) != len(set(request_ids)):
        raise InputError("request_ids", msg("Choose at least one approved request"))
    require(policies.can_create_rfq(by, {request.team_id for request in requests}))
    policy = PurchasingPolicy.current()
    rfq = Rfq(
        number=f"RFQ-{quarter_at().year}-{next_number(f'rfq:{quarter_at().year}'):04d}",
        title=_title(title),
        owner=by,
        created_by=by,
        sealed=_sealed(sealed, policy),
        deadline=deadline,
        deadline_zone=_zone(deadline_zone),
    )
    _set_terms(rfq, terms)
    rfq.save()
    for position, request in enumerate(requests, 1):
        _add_request(rfq, position, request, by=by)
    _set_weights(rfq, weights or DEFAULT_WEIGHTS)
    _before, reached = set_requirements(rfq, requirements)
    _before, chosen = set_clauses(rfq, clauses)
    _invite(rfq, vendor_ids)
    record(
        "rfq.created", on=rfq, by=by, requests=[r.reference for r in requests], sealed=rfq.sealed,
        requirements=reached, clauses=chosen,
    )  # fmt: skip
    return rfq


def _title(title: str) -> str:
    text = " ".join(title.split())
    if not text or len(text) > 160:
        raise InputError(
            "title", msg("A title has 1 to 160 characters"), value=len(text), limit=160
        )
    return text


def _sealed(asked: bool | None, policy: PurchasingPolicy) -> bool:
    if policy.sealing == Sealing.ALWAYS:
        return True
    if policy.sealing == Sealing.NEVER:
        if asked:
            raise InputError("sealed", msg("The purchasing policy has no sealed bids"), value=True)
        return False
    return bool(asked)


def _zone(name: str) -> str:
    name = name or organisation().time_zone
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(
            "deadline_zone", msg("%(value)s is not an IANA time zone.", value=name), value=name
        ) from error
    return name


def _set_terms(rfq: Rfq, terms: Mapping[str, Any]) -> dict[str, list[str]]:
    changes: dict[str, list[str]] = {}
    for name, value in terms.items():
        if name not in EDITABLE:
            raise InputError(name, msg("An RFQ has no field %(name)s", name=name), value=name)
        if name == "title":
            value = _title(value)
        if name == "warranty_months" and not 1 <= int(value) <= 120:
            raise InputError(
                name, msg("The warranty asked for is 1 to 120 months"), value=value, limit=120
            )
        if name == "warranty_start" and value not in set(StartTrigger):
            raise InputError(
                name,
                msg("%(value)s is not an event that starts a warranty", value=str(value)),
                value=value,
            )
        if name == "deliver_by" and isinstance(value, date) and value < today():
            raise InputError(name, msg("The day to deliver by is past"), value=value, limit=today())
        if getattr(rfq, name) != value:
            changes[name] = [str(getattr(rfq, name)), str(value)]
            setattr(rfq, name, value)
    return changes


def _add_request(rfq: Rfq, position: int, request: CapacityRequest, *, by: User) -> None:
    if request.status == RequestStatus.APPROVED:
        start_sourcing(request_id=request.pk, by=by)
    elif request.status != RequestStatus.SOURCING:
        raise InvalidTransition(
            msg(
                "%(request)s is not approved: only approved requests may be bought for",
                request=str(request),
            )
        )
    else:
        # The lock that start_sourcing takes on an approved request, for one that is in sourcing already.
        CapacityRequest.objects.select_for_update().get(pk=request.pk)
    other = RfqLine.objects.filter(
        request=request, rfq__status__in=[*OPEN_RFQ, RfqStatus.AWARDED]
    ).select_related("rfq")
    for line in other:
        if line.rfq.status != RfqStatus.AWARDED or _stands(line.rfq):
            raise InvalidTransition(
                msg(
                    "%(request)s is in %(rfq)s already",
                    request=str(request),
                    rfq=line.rfq.number,
                )
            )
    plan = PlanChoice.objects.get(
        revision__request=request, revision__number=request.revision_number
    )
    RfqLine.objects.create(
        rfq=rfq,
        position=position,
        request=request,
        plan=plan,
        plan_hash=plan.compute_hash(),
        accelerator_slug=plan.accelerator_slug,
        accelerators=plan.cards,
        description=str(plan)[:300],
    )


def _stands(rfq: Rfq) -> bool:
    """Whether an awarded RFQ still has an order that was not cancelled."""
    return any(
        award.orders.exclude(status="cancelled").exists()
        for award in rfq.awards.filter(status=AwardStatus.APPROVED)
    )


def _set_weights(rfq: Rfq, weights: Mapping[str, int]) -> None:
    for kind, weight in weights.items():
        if kind not in CriterionKind.values:
            raise InputError(
                "weights",
                msg("%(value)s is not one of %(choices)s", value=str(kind),
                    choices=", ".join(CriterionKind.values)),
                value=kind,
            )  # fmt: skip
        if not isinstance(weight, int) or not 0 <= weight <= 100:
            raise InputError(
                "weights", msg("A weight is a whole number from 0 to 100"), value=weight, limit=100
            )
    total = sum(weights.values())
    if total != 100:
        raise InputError(
            "weights",
            msg("The weights add up to %(value)s; they must add up to 100", value=total),
            value=total,
            limit=100,
        )
    rfq.criteria.all().delete()
    RfqCriterion.objects.bulk_create(
        RfqCriterion(rfq=rfq, kind=kind, weight=weight)
        for kind, weight in weights.items()
        if weight
    )


def _invite(rfq: Rfq, vendor_ids: Sequence[int]) -> None:
    vendors = list(Vendor.objects.filter(pk__in=vendor_ids))
    if len(vendors) != len(set(vendor_ids)):
        raise InputError("vendor_ids", msg("One of the vendors is not registered"))
    for vendor in vendors:
        if vendor.status != VendorStatus.ACTIVE:
            raise InputError(
                "vendor_ids",
                msg("%(vendor)s is blocked: %(reason)s", vendor=vendor.name,
                    reason=vendor.blocked_reason),
                value=vendor.name,
            )  # fmt: skip
    rfq.invitations.exclude(vendor__in=vendors).delete()
    known = set(rfq.invitations.values_list("vendor_id", flat=True))
    RfqInvitation.objects.bulk_create(
        RfqInvitation(rfq=rfq, vendor=vendor) for vendor in vendors if vendor.pk not in known
    )


@transaction.atomic
def update_rfq(
    *,
    rfq_id: int,
    by: User,
    version: int | None = None,
    vendor_ids: Sequence[int] | None = None,
    weights: Mapping[str, int] | None = None,
    deadline: datetime | None = None,
    requirements: Sequence[Mapping[str, Any]] | None = None,
    clauses: Sequence[str] | None = None,
    **terms: Any,
) -> Rfq:
    """Change a draft RFQ. Raises NotPermitted, InvalidTransition, StaleData or InputError."""
    rfq: Rfq = take(rows(), rfq_id, action="edit", by=by, version=version)
    changes = _set_terms(rfq, terms)
    if deadline is not None and deadline != rfq.deadline:
        changes["deadline"] = [rfq.deadline.isoformat(), deadline.isoformat()]
        rfq.deadline = deadline
    rfq.save()
    if weights is not None:
        _set_weights(rfq, weights)
    if vendor_ids is not None:
        _invite(rfq, vendor_ids)
    told: dict[str, Any] = dict(changes)
    if requirements is not None:
        before, after = set_requirements(rfq, requirements)
        if before != after:
            told["requirements"] = [before, after]
    if clauses is not None:
        before, after = set_clauses(rfq, clauses)
        if before != after:
            told["clauses"] = [before, after]
    touch(rfq)
    record("rfq.updated", on=rfq, by=by, changes=told)
    return rfq


@transaction.atomic
def take_from_plans(*, rfq_id: int, by: User, version: int | None = None) -> Rfq:
    """Set the criteria of a draft RFQ back to those of its approved plans."""
    rfq: Rfq = take(rows(), rfq_id, action="edit", by=by, version=version)
    before, after = set_requirements(rfq, None)
    touch(rfq)
    record("rfq.updated", on=rfq, by=by, changes={"requirements": [before, after]})
    return rfq


@transaction.atomic
def publish_rfq(*, rfq_id: int, by: User, version: int | None = None) -> Rfq:
    """Freeze what is asked and how it is judged, and take quotes until the deadline."""
    rfq: Rfq = take(rows(), rfq_id, action="publish", by=by, version=version)
    policy = PurchasingPolicy.current()
    if rfq.is_due:
        raise InputError(
            "deadline",
            msg("The deadline is past: %(value)s", value=rfq.local_deadline.isoformat()),
            value=rfq.local_deadline,
        )
    _set_weights(rfq, {c.kind: c.weight for c in rfq.criteria.all()})
    invited = list(rfq.invitations.select_related("vendor"))
    if len(invited) < max(policy.minimum_vendors, 1):
        raise InputError(
            "vendor_ids",
            msg(
                "%(value)s vendors are invited; the policy asks for at least %(limit)s",
                value=len(invited),
                limit=max(policy.minimum_vendors, 1),
            ),
            value=len(invited),
            limit=policy.minimum_vendors,
        )
    for invitation in invited:
        require_active(invitation.vendor)
    for line in rfq.lines.select_related("plan"):
        if line.plan.compute_hash() != line.plan_hash:
            raise InvalidTransition(
                msg("The approved plan of line %(line)s changed", line=line.position)
            )
    clauses = issue_clauses(rfq)
    rfq.criteria_hash = rfq.compute_hash()
    rfq.published_at = timezone.now()
    rfq.save(update_fields=["criteria_hash", "published_at"])
    move(
        rfq,
        RfqStatus.OPEN,
        by=by,
        action="rfq.published",
        criteria_hash=rfq.criteria_hash,
        invited=[invitation.vendor.name for invitation in invited],
        clauses=clauses,
    )
    request_documents(rfq, {invitation.vendor.language for invitation in invited}, by=by)
    return rfq


@transaction.atomic
def extend_rfq(
    *, rfq_id: int, deadline: datetime, reason: str, by: User, version: int | None = None
) -> Rfq:
    """Move the deadline of an open RFQ, only later and only before it has passed. Its documents are drawn anew."""
    rfq: Rfq = take(rows(), rfq_id, action="extend", by=by, version=version)
    text = need_reason(reason)
    if rfq.is_due or deadline <= rfq.deadline:
        raise InputError(
            "deadline",
            msg("A deadline moves only later, and only before it has passed"),
            value=deadline,
            limit=rfq.deadline,
        )
    before, rfq.deadline = rfq.deadline, deadline
    rfq.save(update_fields=["deadline"])
    touch(rfq)
    record(
        "rfq.extended", on=rfq, by=by, reason=text,
        changes={"deadline": [before.isoformat(), deadline.isoformat()]},
    )  # fmt: skip
    invited = rfq.invitations.select_related("vendor")
    request_documents(rfq, {invitation.vendor.language for invitation in invited}, by=by)
    return rfq


@transaction.atomic
def close_rfq(*, rfq_id: int, by: User | None, reason: str = "", version: int | None = None) -> Rfq:
    """Take no more quotes. Sealed: only once the deadline has passed; else earlier too, with a reason.

    An RFQ that is not sealed is opened at once, which freezes the exchange rates for comparison.
    """
    rfq: Rfq = take(rows(), rfq_id, action="close", by=by, version=version)
    if not rfq.is_due:
        if rfq.sealed:
            raise InvalidTransition(
                msg(
                    "Sealed bids stay open until the deadline, %(deadline)s",
                    deadline=rfq.local_deadline.isoformat(),
                )
            )
        reason = need_reason(reason)
    rfq.closed_at = timezone.now()
    rfq.save(update_fields=["closed_at"])
    count = rfq.quotes.filter(status=QuoteStatus.SUBMITTED).count()
    move(rfq, RfqStatus.CLOSED, by=by, action="rfq.closed", reason=reason, quotes=count)
    if not rfq.sealed:
        try:
            with transaction.atomic():
                _open(rfq, by=by)
        except MissingRate as error:
            # It is closed all the same; it opens by hand once the rate is there.
            rfq = Rfq.objects.get(pk=rfq.pk)
            record("rfq.opening_waits", on=rfq, by=by, reason=str(error))
    return rfq


def due_rfqs() -> list[int]:
    """Ids of open RFQs whose deadline has passed."""
    return list(
        Rfq.objects.filter(status=RfqStatus.OPEN, deadline__lte=timezone.now()).values_list(
            "pk", flat=True
        )
    )


@transaction.atomic
def open_bids(*, rfq_id: int, by: User, version: int | None = None) -> Rfq:
    """Take part in opening the bids; they are open once as many people as the policy asks for have done so."""
    rfq: Rfq = take(rows(), rfq_id, action="open_bids", by=by, version=version)
    RfqOpening.objects.create(rfq=rfq, person=by)
    needed = PurchasingPolicy.current().openers if rfq.sealed else 1
    have = rfq.openings.count()
    if have < needed:
        touch(rfq)
        record("rfq.opening_begun", on=rfq, by=by, people=have, needed=needed)
        return rfq
    _open(rfq, by=by)
    return rfq


def _open(rfq: Rfq, *, by: User | None) -> None:
    """Freeze the rates and reveal. Raises MissingRate: nothing is opened that cannot be compared."""
    base, day = organisation().currency, today()
    quotes = list(rfq.quotes.filter(status=QuoteStatus.SUBMITTED).select_related("vendor"))
    rates = {}
    for currency in sorted({quote.currency for quote in quotes}):
        rate = rate_on(currency, base, day)
        rates[currency] = {
            "base": rate.base,
            "quote": rate.quote,
            "rate": str(rate.rate),
            "as_of": rate.as_of.isoformat(),
            "source": rate.source,
        }
    rfq.rates = rates
    rfq.opened_at = timezone.now()
    rfq.save(update_fields=["rates", "opened_at"])
    move(
        rfq,
        RfqStatus.OPENED,
        by=by,
        action="rfq.opened",
        people=list(rfq.openings.values_list("person__email", flat=True)),
        quotes={f"{q.vendor.name} v{q.revision}": q.content_hash for q in quotes},
    )


@transaction.atomic
def cancel_rfq(*, rfq_id: int, reason: str, by: User, version: int | None = None) -> Rfq:
    """Stop an RFQ. Prices that were never opened stay sealed; its requests may be put into another one."""
    rfq: Rfq = take(rows(), rfq_id, action="cancel", by=by, version=version)
    text = need_reason(reason)
    if rfq.awards.filter(status=AwardStatus.PROPOSED).exists():
        raise DomainError(msg("An award waits for a decision: withdraw it first"))
    move(rfq, RfqStatus.CANCELLED, by=by, action="rfq.cancelled", reason=text)
    return rfq
