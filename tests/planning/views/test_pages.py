"""Pages show what they should to whom they should, in both languages, in a fixed number of queries."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.formats import date_format

from catalog.reference import accelerator_label
from core.models import AuditEntry
from core.organisation import today
from planning.models import Budget, BudgetChange, CapacityRequest, LedgerEntry
from planning.services import requests
from planning.states import RequestStatus
from planning.workloads import FIELDS, Kind
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


@pytest.fixture
def login(client):
    def enter(user, language="en"):
        user.language = language
        user.save()
        client.force_login(user)
        return client

    return enter


def typed(w, **values):
    return {
        "team": w.team.pk, "title": "Tune", "need_by": (today() + timedelta(days=30)).isoformat(),
        "model": "llama-3.1-8b", "tokens": "300M", "method": "lora", "precision": "bf16",
        "data_residence": "anywhere", "justification": "Needed.", **values,
    }  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("status", RequestStatus.values)
def test_a_request_shows_in_every_state(w, login, status, language):
    found = builders.at(w, status)
    for person in (w.requester, w.lead, w.procurement, w.auditor):
        page = login(person, language).get(found.get_absolute_url())
        assert page.status_code == 200
        assert "Tune the support model" in page.content.decode()
        assert str(found.number) in page.content.decode()


@pytest.mark.parametrize("kind", Kind.values)
def test_a_form_asks_what_its_kind_needs_and_nothing_else(w, login, kind):
    page = login(w.requester).get(reverse("request-create", args=[kind])).content.decode()
    for field in FIELDS[kind]:
        from_a_file = field.type == "series"  # has a page of its own
        assert (f'name="{field.name}"' in page) is not from_a_file
    others = {field.name for fields in FIELDS.values() for field in fields} - {
        field.name for field in FIELDS[kind]
    }
    assert not [name for name in others if f'name="{name}"' in page]
    assert ('name="latency_class"' in page) == kind.startswith("online_")


def test_a_request_is_written_changed_and_submitted(w, login):
    client = login(w.requester)
    answer = client.post(
        reverse("request-create", args=["lora"]),
        typed(w, interruptible="on", checkpoint_minutes="20"),
    )
    found = CapacityRequest.objects.get()
    assert answer.status_code == 302
    assert answer.url == found.get_absolute_url()
    assert found.current.workload["tokens"] == 3e8
    assert found.current.checkpoint_seconds == 1200

    page = client.get(reverse("request-edit", args=[found.pk])).content.decode()
    assert 'value="3e+08"' in page
    answer = client.post(
        reverse("request-edit", args=[found.pk]), typed(w, tokens="1G", version=found.version)
    )
    assert answer.status_code == 302
    assert CapacityRequest.objects.get().current.workload["tokens"] == 1e9
    client.post(reverse("request-step", args=[found.pk, "submit"]), {"version": found.version + 1})
    assert CapacityRequest.objects.get().status == "submitted"


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_wrong_value_is_told_at_its_field_and_nothing_is_lost(w, login, language):
    page = login(w.requester, language).post(
        reverse("request-create", args=["lora"]),
        typed(w, tokens="many", lora_rank="0", title="Keep me"),
    )
    assert page.status_code == 422
    text = page.content.decode()
    assert 'value="many"' in text
    assert 'value="Keep me"' in text
    form = page.context["form"]
    assert set(form.errors) == {"tokens", "lora_rank"}
    assert not CapacityRequest.objects.exists()


def test_the_panel_beside_the_form_tells_what_is_understood(w, login):
    client = login(w.requester)
    text = client.post(reverse("request-check", args=["lora"]), typed(w, title="")).content.decode()
    assert "300 M tokens" in text
    assert "Title" in text
    text = client.post(
        reverse("request-check", args=["lora"]), typed(w, tokens="x")
    ).content.decode()
    assert "not a number" in text


def test_the_panel_calls_nothing_in_order_that_no_estimate_can_use(w, login):
    client = login(w.requester)

    def said(**values):
        return client.post(
            reverse("request-check", args=["lora"]), typed(w, **values)
        ).content.decode()

    assert "All values are in order." in said()
    assert "All values are in order." in said(model="Llama 3.1 8B")
    unknown = said(model="llama-3.1-8bb")
    assert "All values are in order." not in unknown
    assert "near it are: Llama-3.1-8B" in unknown
    late = said(need_by=(today() - timedelta(days=1)).isoformat())
    assert "All values are in order." not in late
    assert f"is before today, {date_format(today())}" in late


def test_all_that_is_wrong_with_a_request_is_told_at_once_and_by_its_value(w, login):
    client = login(w.requester)
    past = today() - timedelta(days=1)
    values = typed(
        w, tokens="two billion", duration_days="-3", need_by=past.isoformat(), model="llama-3.1-8bb"
    )
    refused = client.post(reverse("request-create", args=["lora"]), values)
    assert set(refused.context["form"].errors) == {"tokens", "duration_days", "need_by", "model"}
    page = refused.content.decode()
    assert "-3 is less than the least, 1." in page
    assert f"{date_format(past)} is before today" in page
    # What is mended beside is cleared at the field too: the panel names what is still wrong.
    panel = client.post(reverse("request-check", args=["lora"]), {**values, "tokens": "2B"})
    assert set(panel.context["wrong"]) == {"duration_days", "need_by", "model"}
    assert 'id="still-wrong"' in panel.content.decode()
    mended = client.post(reverse("request-check", args=["lora"]), typed(w))
    assert mended.context["wrong"] == {}


def test_the_form_offers_the_models_of_the_catalogue_and_says_what_is_needed(w, login):
    page = login(w.requester).get(reverse("request-create", args=["lora"])).content.decode()
    assert '<datalist id="catalogue-models">' in page
    assert '<option value="Llama-3.1-8B">llama-3-1-8b</option>' in page
    assert 'list="catalogue-models"' in page
    assert page.count("needed to submit") == 2  # the model and the justification


def test_a_requester_starts_a_request_from_home(w, login):
    page = login(w.requester).get(reverse("home")).content.decode()
    assert page.count(f'href="{reverse("request-kinds")}"') == 2  # the button, and the empty list's
    assert reverse("request-kinds") not in login(w.auditor).get(reverse("home")).content.decode()


def test_a_page_opened_in_two_tabs_shows_the_difference_and_keeps_what_was_typed(w, login):
    found = builders.draft(w)
    client = login(w.requester)
    address = reverse("request-edit", args=[found.pk])
    client.post(address, typed(w, tokens="400M", title="First tab", version=1))

    second = client.post(address, typed(w, tokens="500M", title="Second tab", version=1))

    text = second.content.decode()
    assert second.status_code == 409
    assert "First tab" in text  # what is stored
    assert 'value="Second tab"' in text  # what was typed
    assert 'value="500M"' in text
    found.refresh_from_db()
    assert found.title == "First tab"
    again = client.post(
        address, typed(w, tokens="500M", title="Second tab", version=second.context["version"])
    )
    assert again.status_code == 302


def test_a_step_from_a_stale_page_is_refused(w, login):
    found = builders.draft(w)
    answer = login(w.requester).post(
        reverse("request-step", args=[found.pk, "submit"]), {"version": 7}
    )
    assert answer.status_code == 409
    found.refresh_from_db()
    assert found.status == "draft"


def test_a_step_from_a_stale_page_shows_what_happened_since_and_keeps_the_reason(w, login):
    found = builders.in_review(w)
    seen = found.version
    requests.recall(request_id=found.pk, by=w.requester, reason="a typing error")
    answer = login(w.requester).post(
        reverse("request-step", args=[found.pk, "cancel"]),
        {"version": seen, "reason": "No longer needed, the project ended"},
    )
    assert answer.status_code == 409
    page = answer.content.decode()
    stale = page[page.index('id="stale"') : page.index("What is asked for")]
    for said in ("changed since you opened it", "a typing error", "the project ended"):
        assert said in stale
    found.refresh_from_db()
    assert found.status == "draft"


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_decision_on_an_older_revision_shows_the_difference_and_keeps_the_reason(
    w, login, language
):
    w.lead.language = language
    w.lead.save()
    found = builders.in_review(w)
    step = found.current.steps.get()
    requests.recall(request_id=found.pk, by=w.requester, reason="more")
    requests.update_draft(
        request_id=found.pk,
        by=w.requester,
        duration_days=77,
        workload={**builders.LORA, "tokens": "900M"},
    )
    found.refresh_from_db()
    builders.choose(found, builders.study(found, "2000"))
    requests.submit_request(request_id=found.pk, by=w.requester)
    answer = login(w.lead).post(
        reverse("approval-decide", args=[step.pk]),
        {"decision": "return", "seen_hash": step.content_hash, "reason": "Please use fewer cards"},
    )
    assert answer.status_code == 409
    page = answer.content.decode()
    stale = page[page.index('id="stale"') : page.index('class="split"')]
    for said in ("77", "2,000.00", "1,000.00", "Please use fewer cards"):
        assert said in stale
    assert found.current.steps.get().status == "pending"


def test_a_second_decision_in_another_tab_is_told_as_such(w, login):
    builders.fund(w, "1000")
    found = builders.in_review(w)
    step = found.current.steps.get()
    data = {"decision": "approve", "seen_hash": step.content_hash}
    client = login(w.lead)
    assert client.post(reverse("approval-decide", args=[step.pk]), data).status_code == 302
    assert client.post(reverse("approval-decide", args=[step.pk]), data).status_code == 409
    other = login(w.cto).post(reverse("approval-decide", args=[step.pk]), data)
    assert other.status_code == 409
    assert "changed since you opened it" in other.content.decode()


def test_an_approver_decides_from_the_inbox(w, login):
    builders.fund(w, "1000")
    found = builders.in_review(w)
    step = found.current.steps.get()
    client = login(w.lead)
    page = client.get(reverse("approval-list")).content.decode()
    assert "Tune the support model" in page
    assert step.content_hash in page
    answer = client.post(
        reverse("approval-decide", args=[step.pk]),
        {"decision": "approve", "seen_hash": step.content_hash},
    )
    assert answer.status_code == 302
    found.refresh_from_db()
    assert found.status == "approved"
    assert "Tune the support model" not in client.get(reverse("approval-list")).content.decode()


def test_the_inbox_says_what_changed_since_the_last_approval(w, login):
    found = builders.approved(w, "1000")
    requests.revise(request_id=found.pk, by=w.requester, reason="more")
    requests.update_draft(
        request_id=found.pk,
        by=w.requester,
        need_by=found.current.need_by + timedelta(days=42),
        justification="More.",
    )
    found.refresh_from_db()
    builders.choose(found, builders.study(found, "1080"))
    requests.submit_request(request_id=found.pk, by=w.requester)
    page = login(w.lead).get(reverse("approval-list")).content.decode()
    assert "8.0 %" in page
    assert "42 days later" in page


def test_a_decision_by_get_does_nothing(w, login):
    found = builders.in_review(w)
    step = found.current.steps.get()
    assert login(w.lead).get(reverse("approval-decide", args=[step.pk])).status_code == 405


@pytest.mark.parametrize("person", ["requester", "procurement", "auditor", "finance", "superuser"])
def test_a_url_without_a_button_is_refused_and_written_down(w, login, person):
    found = builders.in_review(w)
    step = found.current.steps.get()
    actor = getattr(w, person)
    answer = login(actor).post(
        reverse("approval-decide", args=[step.pk]),
        {"decision": "approve", "seen_hash": step.content_hash},
    )
    assert answer.status_code == (404 if person == "superuser" else 403)
    found.refresh_from_db()
    assert found.status == "in_review"
    denied = AuditEntry.objects.filter(action="permission.denied")
    assert [entry.actor for entry in denied] == ([] if person == "superuser" else [actor])


def test_someone_outside_the_team_gets_404_everywhere_and_counts_nothing(w, login):
    found = builders.in_review(w)
    builders.fund(w, "1000")
    budget = Budget.objects.get()
    client = login(w.outsider)
    for name, pk in (
        ("request-detail", found.pk),
        ("request-edit", found.pk),
        ("budget-detail", budget.pk),
    ):
        assert client.get(reverse(name, args=[pk])).status_code == 404
    for address in (
        reverse("request-step", args=[found.pk, "cancel"]), reverse("request-copy", args=[found.pk]),
        reverse("request-plan", args=[found.pk]), reverse("approval-decide", args=[found.current.steps.get().pk]),
        reverse("budget-allot", args=[budget.pk]),
    ):  # fmt: skip
        assert client.post(address, {}).status_code == 404
    listed = client.get(reverse("request-list"), {"q": "Tune"})
    assert "Tune the support" not in listed.content.decode()
    assert listed.context["page"].paginator.count == 0
    assert list(listed.context["filter"].form.fields["team"].queryset) == list(
        w.outsider.teams.all()
    )
    assert w.team.name not in client.get(reverse("budget-list")).content.decode()


def test_the_list_is_filtered_by_its_address(w, login):
    mine = builders.draft(w, title="算力扩容")
    builders.in_review(w)
    client = login(w.requester)

    def found(**query):
        return [row.number for row in client.get(reverse("request-list"), query).context["page"]]

    assert found(q="算力") == [mine.number]
    assert found(q=mine.reference) == [mine.number]
    assert found(status="draft") == [mine.number]
    assert len(found(kind="lora", team=w.team.slug)) == 2
    assert found(kind="pretraining") == []


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("request-list", 15), ("budget-list", 15), ("approval-list", 28),
        ("api-requests", 15), ("api-budgets", 15), ("api-approvals", 25),
    ],
)  # fmt: skip
def test_a_list_asks_the_database_no_more_often_when_it_grows(w, login, name, most):
    client = login(w.cto)
    counts = []
    for n in (2, 8):
        for _ in range(n):
            builders.in_review(w)
            builders.fund(w, "10", team=builders.TeamFactory())
        with CaptureQueriesContext(connection) as queries:
            assert client.get(reverse(name)).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert counts[1] <= most


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_finance_allots_transfers_and_reverses(w, login, language):
    client = login(w.finance, language)
    answer = client.post(
        reverse("budget-open"),
        {"team": w.team.pk, "quarter": "2031Q1", "kind": "cloud", "currency": "CNY"},
    )
    budget = Budget.objects.get(fiscal_year=2031)
    assert answer.url == budget.get_absolute_url()
    client.post(reverse("budget-allot", args=[budget.pk]), {"amount": "1000", "reason": "plan"})
    other = builders.fund(w, "5")
    client.post(
        reverse("budget-transfer", args=[budget.pk]),
        {"receiver": other.pk, "amount": "250", "reason": "shift"},
    )
    page = client.get(budget.get_absolute_url()).content.decode()
    assert "750.00" in page
    entry = LedgerEntry.objects.get(kind="allotted", budget=budget)
    second = login(w.finance2, language)
    second.post(reverse("entry-reverse", args=[entry.pk]), {"reason": "wrong"})
    assert not LedgerEntry.objects.filter(kind="reversed").exists()  # 250 of it was given away
    assert second.get(reverse("budget-list"), {"kind": "cloud"}).status_code == 200


def test_a_second_person_confirms_by_page(login):
    w = builders.world("company")
    budget = builders.fund(w, "5")
    login(w.finance).post(
        reverse("budget-allot", args=[budget.pk]), {"amount": "1000", "reason": "plan"}
    )
    change = BudgetChange.objects.get()
    assert login(w.finance).post(reverse("change-confirm", args=[change.pk])).status_code == 403
    assert "Confirm" in login(w.cto).get(budget.get_absolute_url()).content.decode()
    login(w.cto).post(reverse("change-confirm", args=[change.pk]))
    change.refresh_from_db()
    assert change.status == "posted"


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_stand_ins_and_rules_have_their_pages(w, login, language):
    client = login(w.lead, language)
    day = today().isoformat()
    assert client.get(reverse("delegation-list")).status_code == 200
    client.post(
        reverse("delegation-list"),
        {"delegate": w.cto.pk, "first_day": day, "last_day": day, "reason": "leave"},
    )
    assert "Cleo Chief" in client.get(reverse("delegation-list")).content.decode()
    assert "Leo Lead" in login(w.cto, language).get(reverse("approval-list")).content.decode()
    assert login(w.requester, language).get(reverse("policy-list")).status_code == 200
    assert (
        login(w.lead, language).post(reverse("policy-list"), {"preset": "company"}).status_code
        == 403
    )
    login(w.admin, language).post(reverse("policy-list"), {"preset": "company"})
    limit = {"user": w.lead.pk, "amount": "700", "currency": "CNY"}
    assert login(w.cto, language).post(reverse("limit-set"), limit).status_code == 403
    login(w.admin, language).post(reverse("limit-set"), limit)
    assert "700.00" in login(w.cto, language).get(reverse("policy-list")).content.decode()
    assert builders.ApprovalPolicy.objects.get(active=True).preset == "company"


def test_a_plan_is_chosen_by_page_and_only_from_a_study_of_the_request(w, login):
    found = builders.draft(w)
    other = builders.study(builders.draft(w))
    mine = builders.study(found)
    client = login(w.requester)
    address = reverse("request-plan", args=[found.pk])
    assert client.post(address, {"study": other.pk, "plan_key": "only"}).status_code == 404
    assert client.post(address, {"study": mine.pk, "plan_key": "only"}).status_code == 302
    page = client.get(found.get_absolute_url()).content.decode()
    assert accelerator_label("h100-sxm-80gb") in page
