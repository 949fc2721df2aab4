"""The API does what the pages do, by the same rules."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from core.models import AuditEntry
from core.organisation import today
from planning.models import Budget, CapacityRequest, Delegation, LedgerEntry
from planning.selectors.budgets import balance
from planning.states import RequestStatus
from tests.planning import builders
from tests.planning.services.test_states import ALLOWED

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def api(user) -> APIClient:
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def filed(w, **values):
    return {
        "team": w.team.slug, "kind": "lora", "title": "By API", "workload": builders.LORA,
        "need_by": (today() + timedelta(days=30)).isoformat(), "justification": "Needed.", **values,
    }  # fmt: skip


def test_the_whole_way_by_api(w):
    builders.fund(w, "2000")
    client = api(w.requester)
    answer = client.post(reverse("api-requests"), filed(w), format="json")
    assert answer.status_code == 201, answer.data
    pk = answer.data["id"]
    assert answer.data["current"]["workload"]["tokens"] == 3e8
    assert answer.data["actions"] == ["edit", "choose_plan", "submit", "split", "merge", "cancel"]
    study = builders.study(CapacityRequest.objects.get(pk=pk))
    answer = client.post(
        reverse("api-request-plan", args=[pk]),
        {"study": study.pk, "plan_key": "only"},
        format="json",
    )
    assert answer.data["current"]["plan"]["amount"] == "1000.000000"
    answer = client.post(
        reverse("api-request-step", args=[pk, "submit"]), {}, format="json",
        headers={"If-Match": answer.headers["ETag"]},
    )  # fmt: skip
    assert answer.data["status"] == "in_review"

    (step,) = api(w.lead).get(reverse("api-approvals")).data
    vote = {"decision": "approve", "seen_hash": step["content_hash"]}
    assert (
        api(w.lead)
        .post(reverse("api-approval-decide", args=[step["id"]]), vote, format="json")
        .status_code
        == 200
    )
    answer = api(w.procurement).post(
        reverse("api-request-step", args=[pk, "start-sourcing"]), {}, format="json"
    )
    assert answer.data["status"] == "sourcing"
    answer = api(w.procurement).post(
        reverse("api-request-fulfil", args=[pk]), {"accepted": 8}, format="json"
    )
    assert answer.data["status"] == "fulfilled"
    assert len(client.get(reverse("api-request-revisions", args=[pk])).data["results"]) == 1


def test_a_refused_value_names_field_value_and_limit(w):
    answer = api(w.requester).post(
        reverse("api-requests"),
        filed(w, workload={**builders.LORA, "lora_rank": 5000}),
        format="json",
    )
    assert answer.status_code == 422
    assert (answer.data["field"], answer.data["value"], answer.data["limit"]) == (
        "lora_rank",
        5000,
        "1 … 4096",
    )


def test_a_replayed_post_files_one_request_and_another_body_is_refused(w):
    client = api(w.requester)
    key = {"Idempotency-Key": "k1"}
    first = client.post(reverse("api-requests"), filed(w), format="json", headers=key)
    second = client.post(reverse("api-requests"), filed(w), format="json", headers=key)
    assert first.data["id"] == second.data["id"]
    assert second.headers["Idempotent-Replay"] == "true"
    other = client.post(
        reverse("api-requests"), filed(w, title="Other"), format="json", headers=key
    )
    assert other.status_code == 422
    assert CapacityRequest.objects.count() == 1


def test_a_stale_version_is_answered_with_the_difference(w):
    found = builders.draft(w)
    client = api(w.requester)
    address = reverse("api-request", args=[found.pk])
    assert (
        client.patch(address, {"region": "cn-north", "version": 1}, format="json").status_code
        == 200
    )
    answer = client.patch(
        address, {"region": "cn-south"}, format="json", headers={"If-Match": '"1"'}
    )
    assert answer.status_code == 409
    assert answer.data["changes"] == {"region": ("cn-south", "cn-north")}


@pytest.mark.parametrize("field", ["status", "version", "requester", "number", "revision_number"])
def test_what_is_read_only_cannot_be_written(w, field):
    found = builders.draft(w)
    before = CapacityRequest.objects.values().get()
    answer = api(w.requester).patch(
        reverse("api-request", args=[found.pk]), {field: 1, "title": found.title}, format="json"
    )
    assert answer.status_code == 200
    after = CapacityRequest.objects.values().get()
    assert {**after, "version": 0} == {**before, "version": 0}


def test_an_approval_above_the_limit_is_refused_and_recorded(w):
    builders.fund(w, "20000")
    builders.ApprovalLimit.objects.create(user=w.lead, amount=10_000, currency="CNY")
    found = builders.in_review(w, "10000.01")
    step = found.current.steps.get()
    entries = AuditEntry.objects.count()

    answer = api(w.lead).post(
        reverse("api-approval-decide", args=[step.pk]),
        {"decision": "approve", "seen_hash": step.content_hash}, format="json",
        headers={"Idempotency-Key": "once"},
    )  # fmt: skip

    assert answer.status_code == 403
    found.refresh_from_db()
    assert found.status == "in_review"
    (denied,) = AuditEntry.objects.order_by("id")[entries:]
    assert (denied.action, denied.actor, denied.object_id) == (
        "permission.denied",
        w.lead,
        str(found.pk),
    )


@pytest.mark.parametrize("state", RequestStatus.values)
def test_the_api_refuses_whom_the_table_refuses(w, state):
    """Same matrix as the services: each person, each step of the API, in each state."""
    found = builders.at(w, state)
    steps = {"submit": "submit", "recall": "recall", "revise": "revise", "cancel": "cancel",
             "start_sourcing": "start-sourcing"}  # fmt: skip
    for action, step in steps.items():
        allowed = ALLOWED[action].get(state, "").split()
        for name, person in w.people().items():
            if name in allowed:
                continue
            answer = api(person).post(
                reverse("api-request-step", args=[found.pk, step]), {"reason": "r"}, format="json"
            )
            blind = name in ("outsider", "superuser")
            assert answer.status_code == 404 if blind else answer.status_code in (403, 409), (
                name,
                step,
            )
    found.refresh_from_db()
    assert found.status == state


def test_outside_the_team_there_is_nothing(w):
    found = builders.in_review(w)
    budget = builders.fund(w, "10")
    client = api(w.outsider)
    assert client.get(reverse("api-requests")).data["count"] == 0
    assert client.get(reverse("api-budgets")).data["count"] == 0
    for name, pk in (
        ("api-request", found.pk), ("api-request-revisions", found.pk), ("api-budget", budget.pk),
        ("api-budget-entries", budget.pk),
    ):  # fmt: skip
        assert client.get(reverse(name, args=[pk])).status_code == 404
    step = found.current.steps.get()
    vote = {"decision": "approve", "seen_hash": step.content_hash}
    assert (
        client.post(reverse("api-approval-decide", args=[step.pk]), vote, format="json").status_code
        == 404
    )
    study = builders.study(builders.draft(w), key="x")
    mine = client.post(
        reverse("api-requests"), filed(w, team=w.outsider.teams.get().slug), format="json"
    ).data["id"]
    answer = client.post(
        reverse("api-request-plan", args=[mine]),
        {"study": study.pk, "plan_key": "x"},
        format="json",
    )
    assert answer.status_code == 422


def test_a_team_one_is_not_in_cannot_be_filed_for(w):
    assert api(w.outsider).post(reverse("api-requests"), filed(w), format="json").status_code == 403
    assert not CapacityRequest.objects.exists()


def test_budgets_by_api(w):
    client, second = api(w.finance), api(w.finance2)
    made = client.post(
        reverse("api-budgets"),
        {"team": w.team.slug, "quarter": "2031q2", "kind": "purchase", "currency": "CNY"}, format="json",
    )  # fmt: skip
    assert made.status_code == 201, made.data
    pk = made.data["id"]
    change = client.post(
        reverse("api-budget-allot", args=[pk]),
        {"amount": "100.00", "reason": "plan"},
        format="json",
    )
    assert change.data["status"] == "posted"
    assert client.get(reverse("api-budget", args=[pk])).data["balance"]["available"] == "100.000"
    other = builders.fund(w, "1")
    client.post(
        reverse("api-budget-transfer", args=[pk]),
        {"amount": "40", "receiver": other.pk, "reason": "r"},
        format="json",
    )
    assert balance(other).allotted == 41
    entry = LedgerEntry.objects.get(budget=other, kind="transferred")
    address = reverse("api-entry-reverse", args=[entry.pk])
    assert client.post(address, {"reason": "r"}, format="json").status_code == 403
    assert second.post(address, {"reason": "r"}, format="json").status_code == 201
    assert balance(Budget.objects.get(pk=pk)).allotted == 100
    assert len(client.get(reverse("api-budget-entries", args=[pk])).data["results"]) == 3
    assert client.post(reverse("api-budget-close", args=[pk]), {}, format="json").status_code == 409
    for person in (w.requester, w.lead, w.admin, w.auditor):
        for name in ("api-budget-allot", "api-budget-close"):
            answer = api(person).post(
                reverse(name, args=[pk]), {"amount": "1", "reason": "r"}, format="json"
            )
            assert answer.status_code == 403


def test_spending_is_posted_by_finance(w):
    found = builders.approved(w)
    builders.spending.commit(
        request_id=found.pk,
        amount=builders.Money(Decimal(1000), "CNY"),
        source="order:1",
        by=w.procurement,
    )
    body = {"amount": "400", "currency": "CNY", "document": "invoice:7"}
    address = reverse("api-request-actual", args=[found.pk])
    assert api(w.procurement).post(address, body, format="json").status_code == 403
    assert api(w.finance).post(address, body, format="json").status_code == 201
    assert api(w.finance).post(address, body, format="json").status_code == 409
    assert builders.held_sums(found)["actual"] == 400


def test_stand_ins_and_policies_by_api(w):
    day = today().isoformat()
    body = {"delegate": w.cto.email, "first_day": day, "last_day": day}
    made = api(w.lead).post(reverse("api-delegations"), body, format="json")
    assert made.status_code == 201
    assert api(w.cto).get(reverse("api-delegations")).data["count"] == 1
    assert api(w.finance).get(reverse("api-delegations")).data["count"] == 0
    revoke = reverse("api-delegation-revoke", args=[made.data["id"]])
    assert api(w.finance).post(revoke).status_code == 404
    assert api(w.cto).post(revoke).status_code == 403
    assert api(w.lead).post(revoke).status_code == 200
    assert Delegation.objects.get().revoked_at is not None
    assert (
        api(w.lead).post(reverse("api-policies"), {"preset": "company"}, format="json").status_code
        == 403
    )
    answer = api(w.admin).post(reverse("api-policies"), {"preset": "company"}, format="json")
    assert answer.data["rules"][0]["authority"] == "team_lead"


def test_a_copy_by_api_has_no_approvals(w):
    found = builders.approved(w)
    answer = api(w.requester).post(reverse("api-request-copy", args=[found.pk]))
    assert (answer.data["status"], answer.data["steps"], answer.data["current"]["plan"]) == (
        "draft",
        [],
        None,
    )


def test_a_limit_is_set_by_an_administrator_for_another_person(w):
    body = {"user": w.lead.email, "amount": "500", "currency": "CNY"}
    for person in (w.lead, w.cto, w.finance, w.superuser):
        assert api(person).post(reverse("api-limits"), body, format="json").status_code == 403
    own = {**body, "user": w.admin.email}
    assert api(w.admin).post(reverse("api-limits"), own, format="json").status_code == 403
    assert api(w.admin).post(reverse("api-limits"), body, format="json").data["amount"] == "500.000"
    assert AuditEntry.objects.get(action="approval_limit.set").data["after"] == "500.000 CNY"
    lifted = api(w.admin).post(reverse("api-limits"), {**body, "amount": None}, format="json")
    assert lifted.status_code == 204
    assert not builders.ApprovalLimit.objects.exists()


def test_the_support_pages_change_nothing(w, client):
    client.force_login(w.superuser)
    builders.approved(w)
    for name in ("capacityrequest", "ledgerentry", "approvalstep", "approvallimit"):
        assert client.get(reverse(f"admin:planning_{name}_changelist")).status_code == 200
        assert client.get(reverse(f"admin:planning_{name}_add")).status_code == 403


ODD = [
    "[" * 5000 + "]" * 5000, '{"tokens": NaN}', '{"tokens": 1e999}', '{"tokens": "\\ud800"}', '{"model": "\\u0000"}',
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
def test_json_in_a_part_of_a_form_keeps_the_rules_of_json(w, odd):
    answer = api(w.requester).post(
        reverse("api-requests"), filed(w, workload=odd), format="multipart"
    )
    assert answer.status_code == 400
    assert list(answer.json()) == ["workload"]
