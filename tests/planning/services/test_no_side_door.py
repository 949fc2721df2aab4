"""No way of changing a submitted or approved request leaves an approval standing for something else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import DatabaseError, transaction
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rest_framework.test import APIClient

from core.errors import DomainError
from core.models import AppendOnlyError
from core.organisation import today
from planning.models import ApprovalStep, CapacityRequest, PlanChoice, RequestRevision, Study
from planning.selectors.budgets import held
from planning.services import (
    allocations,
    bulk,
    imports,
    plans,
    regroup,
    requests,
    studies,
    templates,
)
from planning.states import RequestStatus
from tests.planning import builders

pytestmark = pytest.mark.django_db
ALIVE = (RequestStatus.APPROVED, RequestStatus.SOURCING, RequestStatus.FULFILLED)
STATES = (RequestStatus.IN_REVIEW, RequestStatus.APPROVED, RequestStatus.SOURCING)


@dataclass(frozen=True)
class Agreed:
    """What the approvers saw."""

    bound: str
    content: dict
    team: int
    kind: str
    requester: int
    plan: tuple[Decimal, str, int, str]


def seen(request: CapacityRequest) -> Agreed:
    revision = RequestRevision.objects.get(request=request, number=request.revision_number)
    plan = PlanChoice.objects.get(revision=revision)
    return Agreed(
        revision.bound_hash(), revision.content(), request.team_id, request.kind, request.requester_id,
        (plan.amount, plan.currency, plan.cards, plan.accelerator_slug),
    )  # fmt: skip


def sound(request: CapacityRequest, agreed: Agreed, way: str) -> None:
    """Whatever stands as approved is what was agreed; what is no longer that holds no approval and no firm money."""
    request = CapacityRequest.objects.get(pk=request.pk)
    current = request.current
    granted = ApprovalStep.objects.filter(revision__request=request, status="approved")
    assert not granted.exclude(revision=current).exists(), (
        f"{way}: an old revision is still approved"
    )
    assert (
        not ApprovalStep.objects.filter(
            revision__request=request, status__in=["pending", "waiting"]
        )
        .exclude(revision=current)
        .exists()
    ), f"{way}: an old revision is still asked for"
    if request.status in ALIVE or granted.exists() or held(request, "approved"):
        if request.status != RequestStatus.CANCELLED:  # its steps stay readable
            assert seen(request) == agreed, f"{way}: the approval stands for something else"
    for step in ApprovalStep.objects.filter(revision=current, status__in=["approved", "pending"]):
        if request.status in (*ALIVE, RequestStatus.IN_REVIEW):
            assert step.content_hash == current.bound_hash(), (
                f"{way}: a step is bound to something else"
            )
    if request.status not in ALIVE:
        assert held(request, "approved") == {}, f"{way}: firm money without an approval"
    for vote in (vote for step in granted for vote in step.votes.all()):
        assert not current.authors.filter(pk=vote.voter_id).exists(), f"{way}: an author approved"


def other_body(w: builders.World, request: CapacityRequest, study: Study) -> dict:
    """Another ask, under every name that a page or the API may take it."""
    bigger = {"model": "llama-3.1-8b", "tokens": "900M"}
    return {
        **bigger, "workload": bigger, "title": "Ten times as much", "justification": "Something else.",
        "need_by": (today() + timedelta(days=30)).isoformat(), "start": "", "duration_days": 400,
        "data_residence": "anywhere", "latency_class": "", "region": "us-east-1", "team": w.team.slug,
        "requester": w.outsider.pk, "kind": "inference", "version": request.version, "reason": "because",
        "status": "draft", "revision_number": 7, "study": study.pk, "plan_key": "other", "accepted": 1,
        "decision": "approve", "shares": ["50", "50"], "requests": [request.pk], "request": [request.pk],
        "text": "a word", "name": "Mine", "cards": 1, "first_day": today().isoformat(),
        "last_day": today().isoformat(), "amount": "1", "currency": "CNY", "document": "bill:1",
    }  # fmt: skip


def routes(patterns: list | None = None, before: str = "") -> Iterator[str]:
    """Every address of one request, of pages and API: a new one is walked too."""
    for row in get_resolver().url_patterns if patterns is None else patterns:
        text = before + str(row.pattern).lstrip("^").rstrip("$").replace(r"\Z", "")
        if isinstance(row, URLResolver):
            yield from routes(row.url_patterns, text)
        elif isinstance(row, URLPattern) and re.match(
            r"(api/v1/)?requests/(<int:pk>|\(\?P<pk>)", text
        ):
            yield from expanded(text)


def expanded(text: str) -> Iterator[str]:
    text = text.replace("<int:pk>", "PK").replace(r"(?P<pk>\d+)", "PK")
    text = re.sub(r"<(int|str|slug):\w+>", "1", text)
    choice = re.search(r"\(\?P<\w+>([^)]*)\)", text)
    if choice is None:
        yield "/" + text
        return
    for value in choice[1].split("|"):
        yield "/" + text.replace(choice[0], value)


def world(status: str) -> tuple[builders.World, CapacityRequest, Study]:
    w = builders.world()
    request = builders.at(w, status)
    first = request.current.plan.study
    (plan,) = first.result["plans"]
    other = Study.objects.create(
        revision=request.current, status=first.status, inputs_hash="f" * 64,
        result={"plans": [{**plan, "key": "other", "cards": 80, "amount": "9000"}]},
    )  # fmt: skip
    return w, request, other


def test_the_walk_reaches_pages_and_api():
    found = sorted(set(routes()))
    assert {"/requests/PK/edit/", "/api/v1/requests/PK/", "/requests/PK/revise/",
            "/api/v1/requests/PK/choose-plan/"} <= set(found)  # fmt: skip
    assert len(found) >= 40


@pytest.mark.parametrize("status", STATES)
def test_no_address_of_a_request_leaves_an_approval_for_something_else(status, client):
    w, request, other = world(status)
    agreed = seen(request)
    people = (w.requester, w.lead, w.cto, w.procurement, w.admin, w.superuser)
    for address in sorted(set(routes())):
        path = address.replace("PK", str(request.pk))
        for person in people:
            body = other_body(w, request, other)
            with transaction.atomic():
                if path.startswith("/api/"):
                    api = APIClient()
                    api.force_authenticate(person)
                    for method in (api.post, api.put, api.patch, api.delete):
                        assert method(path, body, format="json").status_code < 500, (path, person)
                else:
                    client.force_login(person)
                    assert client.post(path, body).status_code < 500, (path, person)
                sound(request, agreed, f"{path} by {person}")
                transaction.set_rollback(True)


def ways(
    w: builders.World, request: CapacityRequest, other: Study
) -> dict[str, Callable[[], object]]:
    """What is not an address of the request: many at once, tables, copies, the admin, and rows written by hand."""
    revision = request.current
    step = revision.steps.get()
    row = (
        "kind,team,title,need_by,justification,model,tokens\n"
        f"lora,{w.team.slug},{request.title},{today()},x,llama-3.1-8b,900M\n"
    )

    def edit_row() -> None:
        revision.workload = {**revision.workload, "tokens": 9e8}
        revision.save()

    def import_again() -> object:
        made = imports.start_import(
            upload=SimpleUploadedFile("again.csv", row.encode()), by=w.requester
        )
        return imports.apply_import(pk=made.pk, by=w.requester, all_or_nothing=False)

    def admin_form() -> object:
        from django.test import Client

        client = Client()
        client.force_login(w.superuser)
        for name in ("capacityrequest", "requestrevision", "planchoice", "approvalstep"):
            pk = {"capacityrequest": request.pk, "requestrevision": revision.pk,
                  "planchoice": revision.plan.pk, "approvalstep": step.pk}[name]  # fmt: skip
            for page in ("change", "delete"):
                answer = client.post(
                    reverse(f"admin:planning_{name}_{page}", args=[pk]),
                    {"title": "x", "cards": 80, "amount": 1, "status": "approved", "post": "yes"},
                )
                assert answer.status_code in (403, 404, 302), (name, page)
        return None

    return {
        "edit": lambda: requests.update_draft(request_id=request.pk, by=w.requester, title="Other"),
        "the row of the revision": edit_row,
        "the table of revisions": lambda: RequestRevision.objects.filter(pk=revision.pk).update(
            justification="x"
        ),
        "removing the revision": lambda: RequestRevision.objects.filter(pk=revision.pk).delete(),
        "recall": lambda: requests.recall(request_id=request.pk, by=w.requester, reason="r"),
        "revise": lambda: requests.revise(request_id=request.pk, by=w.requester, reason="r"),
        "another plan": lambda: plans.choose_plan(
            revision_id=revision.pk, study_id=other.pk, plan_key="other", by=w.requester
        ),
        "another study": lambda: studies.request_study(revision_id=revision.pk, by=w.requester),
        "submit many": lambda: bulk.step_many(
            action="submit", request_ids=[request.pk], by=w.requester
        ),
        "cancel many": lambda: bulk.step_many(
            action="cancel", request_ids=[request.pk], by=w.requester, reason="r"
        ),
        "approve many with an old hash": lambda: bulk.approve_many(
            seen=[(step.pk, "0" * 64)], by=w.lead
        ),
        "copy": lambda: requests.copy_request(request_id=request.pk, by=w.requester),
        "split": lambda: regroup.split_request(
            request_id=request.pk, shares=[Decimal(50), Decimal(50)], by=w.requester
        ),
        "merge": lambda: regroup.merge_requests(
            request_ids=[request.pk, builders.draft(w).pk], by=w.requester
        ),
        "template": lambda: templates.save_template(
            request_id=request.pk, name="Mine", by=w.requester
        ),
        "renewal": lambda: allocations.renew(allocation_id=0, by=w.requester),
        "import of the same row": import_again,
        "admin": admin_form,
    }


NAMES = (
    "edit", "the row of the revision", "the table of revisions", "removing the revision", "recall", "revise",
    "another plan", "another study", "submit many", "cancel many", "approve many with an old hash", "copy",
    "split", "merge", "template", "renewal", "import of the same row", "admin",
)  # fmt: skip


@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("way", NAMES)
def test_no_other_way_leaves_an_approval_for_something_else(way, status):
    w, request, other = world(status)
    agreed = seen(request)
    table = ways(w, request, other)
    assert set(table) == set(NAMES)
    try:
        with transaction.atomic():
            table[way]()
    except (DomainError, AppendOnlyError, DatabaseError, ObjectDoesNotExist):
        pass
    sound(request, agreed, way)


def test_what_came_of_an_approved_request_starts_without_approval(client):
    """Copies, parts and imports are drafts of their own."""
    w, request, _other = world(RequestStatus.APPROVED)
    made = requests.copy_request(request_id=request.pk, by=w.requester)
    assert made.status == RequestStatus.DRAFT
    assert not ApprovalStep.objects.filter(revision__request=made).exists()
    assert held(made, "approved") == {}
