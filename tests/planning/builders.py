"""Requests, studies and budgets in any state, made through the real services."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Model

from core.models import Organisation, Team, User
from core.money import Money
from core.organisation import quarter_at, today
from core.roles import Role
from core.sequences import next_number
from planning.models import (
    ApprovalLimit,
    ApprovalPolicy,
    Budget,
    CapacityRequest,
    RequestRevision,
    Study,
)
from planning.models.budgets import EntryKind, LedgerEntry
from planning.selectors.budgets import held
from planning.services import approvals, plans, requests, spending
from planning.services.ledger import budget_for
from planning.services.policy_presets import load_policy
from planning.states import RequestStatus, StudyStatus
from tests.factories import MembershipFactory, OrganisationFactory, TeamFactory, UserFactory

__all__ = ["ApprovalLimit", "ApprovalPolicy", "Money", "TeamFactory", "approvals", "spending"]

LORA = {"model": "llama-3.1-8b", "tokens": "300M"}


@dataclass
class World:
    """One organisation, one team, and a person for every part."""

    organisation: Organisation
    team: Team
    requester: User
    lead: User
    cto: User
    finance: User
    finance2: User
    procurement: User
    operations: User
    auditor: User
    admin: User
    superuser: User
    outsider: User

    def people(self) -> dict[str, User]:
        return {name: value for name, value in vars(self).items() if isinstance(value, User)}


def person(role: str | None, team: Team | None = None, **fields: object) -> User:
    user = UserFactory(**fields)
    if role is not None:
        MembershipFactory(user=user, team=team, role=role)
    return user


def world(preset: str = "small_team", **organisation: object) -> World:
    org = OrganisationFactory(**organisation)
    team, other = TeamFactory(), TeamFactory()
    load_policy(preset=preset, by=None)
    return World(
        organisation=org,
        team=team,
        requester=person(Role.REQUESTER, team, name="Rita Requester"),
        lead=person(Role.APPROVER, team, name="Leo Lead"),
        cto=person(Role.APPROVER, None, name="Cleo Chief"),
        finance=person(Role.FINANCE, None, name="Fin Finance"),
        finance2=person(Role.FINANCE, None, name="Fay Finance"),
        procurement=person(Role.PROCUREMENT, None, name="Paul Procurement"),
        operations=person(Role.OPERATIONS, None),
        auditor=person(Role.AUDITOR, None),
        admin=person(Role.ADMINISTRATOR, None),
        superuser=person(None, None, is_superuser=True, is_staff=True),
        outsider=person(Role.REQUESTER, other, name="Otto Outsider"),
    )


def draft(w: World, *, by: User | None = None, **fields: object) -> CapacityRequest:
    values: dict[str, object] = {
        "team_id": w.team.pk,
        "kind": "lora",
        "title": "Tune the support model",
        "workload": LORA,
        "need_by": today() + timedelta(days=60),
        "justification": "The support team waits for it.",
        "by": by or w.requester,
    }
    return requests.create_request(**{**values, **fields})


def study(
    request: CapacityRequest, amount: str = "1000", currency: str = "CNY", **plan: object
) -> Study:
    """A finished study with one plan, `only`. The search itself has its own tests."""
    revision = request.current
    found = {
        "key": "only",
        "accelerator_slug": "h100-sxm-80gb",
        "cards": 8,
        "servers": 1,
        "mode": "owned",
        "amount": amount,
        "currency": currency,
        **plan,
    }
    return Study.objects.create(
        revision=revision,
        status=StudyStatus.READY,
        inputs_hash=f"{revision.pk:064d}",
        result={"plans": [found]},
    )


def planned(
    w: World, amount: str = "1000", currency: str = "CNY", **fields: object
) -> CapacityRequest:
    """A draft with a chosen plan. Fields of the plan start with `plan_`."""
    plan = {name[5:]: fields.pop(name) for name in list(fields) if name.startswith("plan_")}
    request = draft(w, **fields)
    choose(request, study(request, amount, currency, **plan))
    return request


def choose(request: CapacityRequest, of: Study, by: User | None = None) -> None:
    plans.choose_plan(
        revision_id=request.current.pk, study_id=of.pk, plan_key="only", by=by or request.requester
    )
    request.refresh_from_db()


def in_review(w: World, amount: str = "1000", **fields: object) -> CapacityRequest:
    request = planned(w, amount, **fields)
    return requests.submit_request(request_id=request.pk, by=request.requester)


@transaction.atomic
def many_in_review(w: World, count: int, amount: str = "1000") -> list[CapacityRequest]:
    """`count` requests as in_review makes one: the first by the services, the others as copies of its rows.

    Two hundred through the services take most of a minute; what the copies lack is their trail and their notices.
    """
    first = in_review(w, amount)
    revision, step = first.current, first.current.steps.get()
    reservation = LedgerEntry.objects.get(request=first)
    authors = list(revision.authors.all())

    def copies(row: Model, changes: Iterable[dict[str, object]]) -> list[Any]:
        kept = {
            f.attname: getattr(row, f.attname)
            for f in row._meta.concrete_fields
            if not f.primary_key
        }
        rows = [type(row)(**{**kept, **change}) for change in changes]
        return type(row)._base_manager.bulk_create(rows)

    heads = copies(first, ({"number": next_number("request")} for _ in range(count - 1)))
    revisions = copies(revision, ({"request_id": head.pk} for head in heads))
    through = RequestRevision.authors.through
    through.objects.bulk_create(
        through(requestrevision_id=row.pk, user_id=author.pk)
        for row in revisions
        for author in authors
    )
    studies = copies(revision.plan.study, ({"revision_id": row.pk} for row in revisions))
    copies(
        revision.plan,
        (
            {"revision_id": row.pk, "study_id": study.pk}
            for row, study in zip(revisions, studies, strict=True)
        ),
    )
    copies(step, ({"revision_id": row.pk} for row in revisions))
    copies(reservation, ({"request_id": head.pk, "source": f"request:{head.pk}"} for head in heads))
    return [first, *heads]


def fund(w: World, amount: str, kind: str = "purchase", team: Team | None = None) -> Budget:
    """Put money into this quarter's budget, as an entry that finance posted."""
    budget = budget_for(team=team or w.team, quarter=quarter_at(), kind=kind)
    LedgerEntry.objects.create(
        budget=budget,
        kind=EntryKind.ALLOTTED,
        bucket="allotted",
        amount=Decimal(amount),
        source=f"test:{budget.entries.count()}",
        original_amount=Decimal(amount),
        original_currency=budget.currency,
        rate_date=today(),
        posted_by=w.finance,
    )
    return budget


def vote(request: CapacityRequest, by: User, decision: str = "approve", reason: str = "") -> None:
    """Decide on the first pending step."""
    step = request.current.steps.filter(status="pending").order_by("pk").first()
    assert step is not None
    approvals.decide(
        step_id=step.pk, decision=decision, by=by, seen_hash=step.content_hash, reason=reason
    )
    request.refresh_from_db()


def approved(w: World, amount: str = "1000", **fields: object) -> CapacityRequest:
    """Approved against a budget that holds exactly the amount, by the team lead (small_team)."""
    fund(w, amount, kind=str(fields.pop("budget", "purchase")))
    request = in_review(w, amount, **fields)
    vote(request, w.lead)
    return request


def at(w: World, status: str) -> CapacityRequest:
    """A request in `status`."""
    if status == RequestStatus.DRAFT:
        return planned(w)
    if status == RequestStatus.SUBMITTED:
        return requests.submit_request(request_id=draft(w).pk, by=w.requester)
    if status in (RequestStatus.APPROVED, RequestStatus.SOURCING, RequestStatus.FULFILLED):
        request = approved(w)
        if status != RequestStatus.APPROVED:
            requests.start_sourcing(request_id=request.pk, by=w.procurement)
        if status == RequestStatus.FULFILLED:
            requests.record_fulfilment(request_id=request.pk, accepted=8, by=None)
    else:
        request = in_review(w)
        if status == RequestStatus.CANCELLED:
            requests.cancel_request(request_id=request.pk, by=w.requester, reason="no need")
        elif status == RequestStatus.REJECTED:
            vote(request, w.lead, "reject", "no")
        elif status == RequestStatus.CHANGES_REQUESTED:
            vote(request, w.lead, "return", "smaller")
    request.refresh_from_db()
    assert request.status == status
    return request


def held_sums(request: CapacityRequest) -> dict[str, Decimal]:
    """What stands for a request, per bucket, in the first budget's currency."""
    return {
        bucket: sum(held(request, bucket).values(), Decimal(0))
        for bucket in ("reserved", "approved", "committed", "actual")
    }
