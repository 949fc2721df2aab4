"""Templates, splitting and merging: nothing is lost, nobody is favoured, and where it came from is shown."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from core.audit import trail
from core.errors import InputError, InvalidTransition, NotPermitted
from core.organisation import today
from core.roles import Role
from planning.models import CapacityRequest, RequestTemplate
from planning.selectors.origins import origins
from planning.services import requests, templates
from planning.services.regroup import divide, merge_requests, split_request
from planning.workloads import FIELDS, VOLUME
from tests.factories import MembershipFactory
from tests.planning import builders


@pytest.fixture
def w(db):
    return builders.world()


def api(user):
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def shares(*numbers):
    return [Decimal(number) for number in numbers]


@given(
    st.integers(1, 10**15),
    st.lists(st.integers(1, 99), min_size=1, max_size=9).filter(lambda parts: sum(parts) < 100),
)
def test_the_parts_add_up_to_the_whole_and_stay_whole(volume, parts):
    found = divide(float(volume), shares(*parts, 100 - sum(parts)))
    assert sum(Decimal(repr(part)) for part in found) == volume
    assert all(part == int(part) for part in found)


def test_every_kind_says_what_is_divided():
    assert all(
        VOLUME[kind] in {field.name for field in fields if field.required}
        for kind, fields in FIELDS.items()
    )


def test_a_split_makes_drafts_with_the_volume_divided_and_ends_the_original(w):
    request = builders.planned(w)
    parts = split_request(request_id=request.pk, shares=shares(50, 30, 20), by=w.lead)
    request.refresh_from_db()
    assert request.status == "cancelled"
    assert [part.current.workload["tokens"] for part in parts] == [150e6, 90e6, 60e6]
    assert [part.title for part in parts] == [f"Tune the support model ({n}/3)" for n in (1, 2, 3)]
    for part in parts:
        assert part.status == "draft"
        assert part.requester == w.requester
        assert not hasattr(part.current, "plan")
        assert {w.requester, w.lead} <= set(part.current.authors.all())
    rows = origins(request, CapacityRequest.objects.visible_to(w.requester))
    assert [(str(row.label), row.request, row.share) for row in rows] == [
        ("Split into", part, Decimal(share))
        for part, share in zip(parts, (50, 30, 20), strict=True)
    ]
    assert trail(request).first().action == "request.split"


@pytest.mark.parametrize(
    "wrong", [[100], [50, 49], [50, 51], [0, 100], [-10, 110], [10] * 11, ["NaN", 50], [33, 33, 33]]
)
def test_shares_that_do_not_make_a_whole_are_refused(w, wrong):
    request = builders.draft(w)
    with pytest.raises(InputError) as error:
        split_request(request_id=request.pk, shares=shares(*wrong), by=w.requester)
    assert error.value.field == "shares"
    assert CapacityRequest.objects.count() == 1


def test_only_a_draft_is_split_by_those_who_may_write_it(w):
    request = builders.draft(w)
    with pytest.raises(NotPermitted):
        split_request(request_id=request.pk, shares=shares(50, 50), by=w.procurement)
    submitted = builders.in_review(w)
    with pytest.raises(InvalidTransition):
        split_request(request_id=submitted.pk, shares=shares(50, 50), by=w.requester)


def test_a_merge_adds_volumes_takes_the_earliest_dates_and_keeps_every_reason_and_author(w):
    other = builders.person(Role.REQUESTER, w.team)
    first = builders.draft(w, start=today(), need_by=today() + timedelta(days=40))
    second = builders.draft(
        w, by=other, workload={**builders.LORA, "tokens": "200M"}, justification="And we too.",
        start=today() + timedelta(days=3),
    )  # fmt: skip
    merged = merge_requests(request_ids=[first.pk, second.pk], by=w.lead)
    revision = merged.current
    assert revision.workload["tokens"] == 500e6
    assert (revision.need_by, revision.start) == (today() + timedelta(days=40), today())
    assert revision.justification == "The support team waits for it.\n\nAnd we too."
    assert set(revision.authors.all()) == {w.requester, other, w.lead}
    assert set(CapacityRequest.objects.exclude(pk=merged.pk).values_list("status", flat=True)) == {
        "cancelled"
    }
    rows = origins(merged, CapacityRequest.objects.visible_to(w.requester))
    assert [row.request for row in rows] == [first, second]


def test_drafts_that_ask_for_different_things_are_not_merged_and_the_difference_is_named(w):
    first = builders.draft(w)
    second = builders.draft(w, workload={**builders.LORA, "lora_rank": 64})
    with pytest.raises(InputError) as error:
        merge_requests(request_ids=[first.pk, second.pk], by=w.requester)
    assert (error.value.field, error.value.value, error.value.limit) == ("lora_rank", "64", "16")
    kinds = builders.draft(w, kind="gpu_hours", workload={"gpu_hours": 10})
    with pytest.raises(InputError, match="same team and kind"):
        merge_requests(request_ids=[first.pk, kinds.pk], by=w.requester)
    with pytest.raises(InputError):
        merge_requests(request_ids=[first.pk, first.pk], by=w.requester)
    assert set(CapacityRequest.objects.values_list("status", flat=True)) == {"draft"}


def test_who_wrote_a_source_may_not_approve_the_merged_request(w):
    MembershipFactory(user=w.lead, team=w.team, role=Role.REQUESTER)
    builders.fund(w, "5000")
    first = builders.draft(w)
    second = builders.draft(w, by=w.lead)
    merged = merge_requests(request_ids=[first.pk, second.pk], by=w.requester)
    builders.choose(merged, builders.study(merged))
    requests.submit_request(request_id=merged.pk, by=w.requester)
    with pytest.raises(NotPermitted):
        builders.vote(merged, w.lead)


def test_a_template_makes_drafts_whose_dates_count_from_today(w):
    request = builders.in_review(w)
    row = templates.save_template(request_id=request.pk, name=" Monthly  tune ", by=w.lead)
    assert (row.name, row.lead_days) == ("Monthly tune", 60)
    draft = templates.draft_from_template(template_id=row.pk, by=w.requester)
    assert draft.status == "draft"
    assert draft.requester == w.requester
    assert draft.current.workload == request.current.workload
    assert draft.current.need_by == today() + timedelta(days=60)
    assert draft.current.origin == "template"
    assert not draft.current.steps.exists()
    with pytest.raises(InputError, match="template of this name"):
        templates.save_template(request_id=request.pk, name="Monthly tune", by=w.lead)
    templates.retire_template(template_id=row.pk, by=w.lead)
    templates.save_template(request_id=request.pk, name="Monthly tune", by=w.lead)
    with pytest.raises(InvalidTransition):
        templates.retire_template(template_id=row.pk, by=w.lead)


def test_another_team_neither_sees_nor_uses_a_template(w):
    row = templates.save_template(request_id=builders.draft(w).pk, name="Ours", by=w.requester)
    for act in (
        lambda: templates.draft_from_template(template_id=row.pk, by=w.outsider),
        lambda: templates.retire_template(template_id=row.pk, by=w.outsider),
        lambda: templates.draft_from_template(template_id=row.pk, by=w.procurement),
        lambda: templates.save_template(request_id=row.made_from_id, name="x", by=w.auditor),
    ):
        with pytest.raises(NotPermitted):
            act()
    assert list(RequestTemplate.objects.visible_to(w.outsider)) == []


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_pages_save_use_split_and_merge(w, client, language):
    w.requester.language = language
    w.requester.save()
    client.force_login(w.requester)
    request = builders.draft(w)
    client.post(reverse("template-save", args=[request.pk]), {"name": "Ours"})
    assert "Ours" in client.get(reverse("template-list")).content.decode()
    assert "Ours" in client.get(reverse("request-kinds")).content.decode()
    row = RequestTemplate.objects.get()
    answer = client.post(reverse("template-use", args=[row.pk]), {"need_by": ""})
    draft = CapacityRequest.objects.get(revisions__origin="template")
    assert answer.url == reverse("request-edit", args=[draft.pk])
    answer = client.post(
        reverse("request-split", args=[draft.pk]), {"shares": "60/40", "version": draft.version}
    )
    parts = list(CapacityRequest.objects.filter(revisions__origin="split"))
    assert len(parts) == 2
    page = client.get(draft.get_absolute_url()).content.decode()
    assert parts[0].reference in page
    thread = client.get(reverse("request-thread", args=[draft.pk])).content.decode()
    assert parts[0].reference in thread
    answer = client.post(reverse("request-merge"), {"request": [part.pk for part in parts]})
    merged = CapacityRequest.objects.get(revisions__origin="merged")
    assert answer.url == merged.get_absolute_url()
    answer = client.post(
        reverse("request-split", args=[merged.pk]), {"shares": "sixty"}, follow=True
    )
    assert "sixty" in answer.content.decode()
    client.post(reverse("template-retire", args=[row.pk]))
    assert not RequestTemplate.objects.in_use().exists()


def test_the_api_does_the_same_and_other_teams_find_nothing(w):
    mine, theirs = api(w.requester), api(w.outsider)
    request = builders.draft(w)
    body = {"request": request.pk, "name": "Ours"}
    assert theirs.post(reverse("api-templates"), body, format="json").status_code == 404
    row = mine.post(reverse("api-templates"), body, format="json").data
    assert [item["name"] for item in mine.get(reverse("api-templates")).data["results"]] == ["Ours"]
    assert theirs.get(reverse("api-templates")).data["results"] == []
    use = reverse("api-template-use", args=[row["id"]])
    assert theirs.post(use, {}, format="json").status_code == 404
    draft = mine.post(use, {}, format="json").data
    split = reverse("api-request-split", args=[draft["id"]])
    assert theirs.post(split, {"shares": [50, 50]}, format="json").status_code == 404
    wrong = mine.post(split, {"shares": [50, 60]}, format="json")
    assert (wrong.status_code, wrong.data["field"], wrong.data["limit"]) == (422, "shares", 100)
    parts = mine.post(split, {"shares": ["50", "50"]}, format="json").data
    assert len(parts) == 2
    found = mine.get(reverse("api-request-origins", args=[draft["id"]])).data
    assert [(item["relation"], item["became"]) for item in found] == [("split", True)] * 2
    ids = {"requests": [part["id"] for part in parts]}
    assert theirs.post(reverse("api-request-merge"), ids, format="json").status_code == 404
    assert mine.post(reverse("api-request-merge"), ids, format="json").status_code == 201
    retire = reverse("api-template-retire", args=[row["id"]])
    assert theirs.post(retire).status_code == 404
    assert mine.post(retire).status_code == 200
