"""Many at once: tables in and out, steps on marked rows, filters. No side door around what holds for one."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from io import BytesIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from openpyxl import Workbook, load_workbook
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry, Job
from core.organisation import today
from planning import tasks
from planning.models import CapacityRequest, RequestImport, SavedFilter, Vote
from planning.services import bulk, filters, imports
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def api(user):
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def rows_of(w, *titles):
    need_by = (today() + timedelta(days=30)).isoformat()
    return [
        ["team", "kind", "title", "need_by", "justification", "model", "tokens", "interruptible",
         "checkpoint_seconds"],
        *([w.team.slug, "lora", title, need_by, "多模态\nsecond line", "llama-3.1-8b", "300M", "yes", "600"]
          for title in titles),
    ]  # fmt: skip


def table(rows, delimiter=",", encoding="utf-8"):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerows(rows)
    return SimpleUploadedFile("requests.csv", out.getvalue().encode(encoding))


def workbook(rows):
    book = Workbook()
    for row in rows:
        book.active.append(row)
    out = BytesIO()
    book.save(out)
    return SimpleUploadedFile("requests.xlsx", out.getvalue())


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: table(rows),
        lambda rows: table(rows, ";"),
        lambda rows: table(rows, "\t", "utf-8-sig"),
        lambda rows: table(rows, ",", "utf-16"),
        workbook,
    ],
)
def test_the_same_rows_come_out_of_every_form_of_table(w, made):
    row = imports.start_import(upload=made(rows_of(w, "Erste", "第二")), by=w.requester)
    imports.apply_import(pk=row.pk, by=w.requester)
    found = CapacityRequest.objects.order_by("number")
    assert [request.title for request in found] == ["Erste", "第二"]
    for request in found:
        assert request.status == "draft"
        assert request.current.workload["tokens"] == 3e8
        assert request.current.justification == "多模态\nsecond line"
        assert request.current.checkpoint_seconds == 600
        assert request.current.origin == "imported"


def test_a_file_that_is_not_unicode_is_asked_about_and_then_read_right(w):
    row = imports.start_import(
        upload=table(rows_of(w, "多模态微调"), encoding="gbk"), by=w.requester
    )
    shown = imports.preview(row, w.requester)
    assert "多模态微调" in shown.choices["gb18030"]
    with pytest.raises(InputError, match="encoding first"):
        imports.apply_import(pk=row.pk, by=w.requester)
    imports.choose_encoding(pk=row.pk, encoding="gb18030", by=w.requester)
    imports.apply_import(pk=row.pk, by=w.requester)
    assert CapacityRequest.objects.get().title == "多模态微调"


def test_the_dry_run_tells_every_error_of_every_row_and_writes_nothing(w):
    rows = rows_of(w, "Good", "Bad", "")
    rows[2][3], rows[2][6] = "tomorrow", "many"
    rows.append(["nowhere", *rows[1][1:]])
    rows.append([w.outsider.teams.get().slug, *rows[1][1:]])
    row = imports.start_import(upload=table(rows), by=w.requester)
    fates = imports.preview(row, w.requester).fates
    assert [fate.fate for fate in fates] == ["add", *["refused"] * 4]
    said = [" ".join(str(message) for message in fate.messages) for fate in fates]
    assert "tomorrow" in said[1]
    assert "many" in said[1]
    assert "title is missing" in said[2]
    other = w.outsider.teams.get().slug
    assert said[3].replace("nowhere", "x") == said[4].replace(other, "x")
    assert not CapacityRequest.objects.exists()


def test_all_or_none_is_the_importers_choice(w):
    rows = rows_of(w, "Good", "")
    row = imports.start_import(upload=table(rows), by=w.requester)
    with pytest.raises(InputError, match="1 row is refused, so none is filed"):
        imports.apply_import(pk=row.pk, by=w.requester)
    assert not CapacityRequest.objects.exists()
    row = imports.apply_import(pk=row.pk, by=w.requester, all_or_nothing=False)
    assert (row.status, row.counts) == ("applied", {"add": 1, "refused": 1})
    assert CapacityRequest.objects.get().title == "Good"
    with pytest.raises(InvalidTransition):
        imports.apply_import(pk=row.pk, by=w.requester, all_or_nothing=False)


def test_a_large_table_is_filed_in_the_background_as_the_same_rows_in_one_batch(w):
    titles = [f"No {n}" for n in range(imports.AT_ONCE + 5)]
    row = imports.start_import(upload=table(rows_of(w, *titles), ";"), by=w.requester)
    row = imports.apply_import(pk=row.pk, by=w.requester)
    assert row.status == "applying"
    assert not CapacityRequest.objects.exists()
    tasks.apply_request_import.run(str(row.job_id))
    tasks.apply_request_import.run(str(row.job_id))  # delivered twice
    assert sorted(CapacityRequest.objects.values_list("title", flat=True)) == sorted(titles)
    assert Job.objects.get().status == "done"
    row.refresh_from_db()
    entries = AuditEntry.objects.filter(batch=row.batch)
    assert entries.filter(action="request.created").count() == len(titles)
    assert entries.filter(action="request_import.applied").count() == 1


def test_rights_that_were_lost_before_a_large_table_is_filed_stop_it(w):
    titles = [f"No {n}" for n in range(imports.AT_ONCE + 1)]
    row = imports.start_import(upload=table(rows_of(w, *titles)), by=w.requester)
    row = imports.apply_import(pk=row.pk, by=w.requester)
    w.requester.memberships.all().delete()
    tasks.apply_request_import.run(str(row.job_id))
    row.refresh_from_db()
    assert row.status == "preview"
    assert Job.objects.get().status == "failed"
    assert not CapacityRequest.objects.exists()


def test_who_may_file_nothing_may_import_nothing_and_an_import_is_its_owners(w):
    for person in (w.auditor, w.finance, w.superuser):
        with pytest.raises(NotPermitted):
            imports.start_import(upload=table(rows_of(w, "x")), by=person)
    row = imports.start_import(upload=table(rows_of(w, "x")), by=w.requester)
    for act in (imports.apply_import, imports.discard_import):
        with pytest.raises(NotPermitted):
            act(pk=row.pk, by=w.lead)


def test_an_imported_request_starts_without_plan_approval_or_money(w):
    """An export of an approved request read in again is a draft like any other."""
    request = builders.approved(w)
    client = api(w.requester)
    content = b"".join(client.get(reverse("api-request-export", args=["csv"])).streaming_content)
    row = imports.start_import(upload=SimpleUploadedFile("a.csv", content), by=w.requester)
    imports.apply_import(pk=row.pk, by=w.requester)
    again = CapacityRequest.objects.exclude(pk=request.pk).get()
    assert again.status == "draft"
    assert again.current.content() == request.current.content()
    assert not again.current.steps.exists()
    assert not hasattr(again.current, "plan")
    assert builders.held_sums(again)["approved"] == 0


FORMULAS = ["=HYPERLINK(1)", "+1", "-1", "@x", "＝cmd"]


def test_an_export_runs_nothing_and_holds_only_what_the_reader_may_see(w, client):
    for title in FORMULAS:
        builders.draft(w, title=title)
    other = w.outsider.teams.get()
    builders.draft(w, title="Theirs", team_id=other.pk, by=w.outsider)
    client.force_login(w.requester)
    text = b"".join(client.get(reverse("request-export", args=["csv"])).streaming_content).decode()
    titles = [
        row["title"] for row in csv.DictReader(io.StringIO(text.lstrip("\ufeff"), newline=""))
    ]
    assert titles == [f"'{title}" for title in FORMULAS]
    answer = client.get(reverse("request-export", args=["xlsx"]))
    sheet = load_workbook(BytesIO(b"".join(answer.streaming_content))).active
    assert {cell.data_type for cell in sheet["D"][1:]} == {"s"}
    assert [cell.value for cell in sheet["D"][1:]] == FORMULAS
    assert "Theirs" not in text
    narrowed = client.get(reverse("request-export", args=["csv"]) + "?q=cmd")
    assert b"HYPERLINK" not in b"".join(narrowed.streaming_content)
    assert client.get(reverse("request-export", args=["pdf"])).status_code == 422


# --- steps ----------------------------------------------------------------------------------------------------------


def test_marked_requests_are_submitted_each_with_its_own_answer_and_one_batch(w):
    good, other = builders.planned(w), builders.planned(w)
    empty = builders.draft(w, justification="")
    outcomes = bulk.step_many(
        action="submit", request_ids=[good.pk, other.pk, empty.pk], by=w.requester
    )
    assert [(row.request, row.refused is None) for row in outcomes] == [
        (good, True), (other, True), (empty, False),
    ]  # fmt: skip
    empty.refresh_from_db()
    assert empty.status == "draft"
    batches = set(
        AuditEntry.objects.filter(action="request.submitted").values_list("batch", flat=True)
    )
    assert len(batches) == 1
    assert None not in batches


def test_what_is_not_ones_own_is_neither_done_nor_told_in_bulk(w):
    request = builders.planned(w)
    assert bulk.step_many(action="submit", request_ids=[request.pk], by=w.outsider) == []
    (outcome,) = bulk.step_many(action="submit", request_ids=[request.pk], by=w.procurement)
    assert outcome.refused is not None
    assert AuditEntry.objects.filter(action="permission.denied", actor=w.procurement).count() == 1
    request.refresh_from_db()
    assert request.status == "draft"
    for action in ("approve", "start_sourcing", "fulfil", "edit"):
        with pytest.raises(InputError):
            bulk.step_many(action=action, request_ids=[request.pk], by=w.lead)


def test_approving_in_bulk_needs_authority_the_seen_hash_and_money_for_each(w):
    builders.fund(w, "1500")
    first, second = builders.in_review(w), builders.in_review(w)
    seen = [
        (step.pk, step.content_hash)
        for step in (first.current.steps.get(), second.current.steps.get())
    ]
    for person in (w.requester, w.procurement, w.admin, w.superuser):
        outcomes = bulk.approve_many(seen=seen, by=person)
        assert all(row.refused is not None for row in outcomes)
    assert bulk.approve_many(seen=seen, by=w.outsider) == []
    stale = bulk.approve_many(seen=[(seen[0][0], "0" * 64)], by=w.lead)
    assert stale[0].refused is not None
    assert not Vote.objects.exists()
    outcomes = bulk.approve_many(seen=seen, by=w.lead)
    assert [row.refused is None for row in outcomes] == [True, False]  # money for one
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.status, second.status) == ("approved", "in_review")
    assert Vote.objects.count() == 1


# --- filters --------------------------------------------------------------------------------------------------------


def test_a_private_filter_is_nobody_elses_and_a_shared_one_runs_with_the_readers_rights(w, client):
    mine = filters.save_filter(
        name="Drafts", query="status=draft&page=7", shared=False, by=w.requester
    )
    assert mine.query == "status=draft"
    shared = filters.save_filter(name="Open", query="status=open", shared=True, by=w.requester)
    builders.draft(w)
    client.force_login(w.outsider)
    assert client.get(reverse("filter-open", args=[mine.pk])).status_code == 404
    page = client.get(reverse("filter-open", args=[shared.pk]), follow=True)
    assert "Tune the support model" not in page.content.decode()
    assert "Drafts" not in page.content.decode()
    answer = api(w.outsider).get(reverse("api-filters")).data["results"]
    assert [row["name"] for row in answer] == ["Open"]
    assert api(w.outsider).get(reverse("api-filter", args=[mine.pk])).status_code == 404
    assert api(w.outsider).delete(reverse("api-filter", args=[mine.pk])).status_code == 404
    assert api(w.outsider).delete(reverse("api-filter", args=[shared.pk])).status_code == 403
    with pytest.raises(InputError, match="filter of this name"):
        filters.save_filter(name="Open", query="status=open", shared=False, by=w.requester)
    with pytest.raises(InputError, match="Filter the list first"):
        filters.save_filter(name="None", query="page=2", shared=False, by=w.requester)
    assert api(w.requester).delete(reverse("api-filter", args=[mine.pk])).status_code == 204
    assert SavedFilter.objects.count() == 1


# --- pages and API --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_pages_lead_from_table_to_drafts_to_review(w, client, language):
    w.requester.language = language
    w.requester.save()
    client.force_login(w.requester)
    assert client.get(reverse("request-import")).status_code == 200
    assert client.get(reverse("request-import-template")).status_code == 200
    answer = client.post(
        reverse("request-import"), {"file": table(rows_of(w, "One", "Two"), encoding="gbk")}
    )
    row = RequestImport.objects.get()
    assert "多模态" in client.get(answer.url).content.decode()
    client.post(reverse("request-import-encoding", args=[row.pk]), {"encoding": "gb18030"})
    assert "One" in client.get(row.get_absolute_url()).content.decode()
    client.post(
        reverse("request-import-apply", args=[row.pk]), {"all_or_nothing": "on", "version": 1}
    )
    ids = list(CapacityRequest.objects.values_list("pk", flat=True))
    assert len(ids) == 2
    page = client.post(reverse("request-bulk"), {"request": ids, "action": "submit"})
    assert page.status_code == 200
    assert set(CapacityRequest.objects.values_list("status", flat=True)) == {"submitted"}
    page = client.post(reverse("request-bulk"), {"request": ids, "action": "cancel"})
    assert page.status_code == 409  # a reason is needed
    client.post(reverse("request-bulk"), {"request": ids, "action": "cancel", "reason": "no need"})
    assert set(CapacityRequest.objects.values_list("status", flat=True)) == {"cancelled"}
    client.post(reverse("filter-save"), {"name": "Ended", "query": "status=cancelled"})
    assert "Ended" in client.get(reverse("request-list")).content.decode()
    client.post(reverse("filter-delete", args=[SavedFilter.objects.get().pk]))
    assert not SavedFilter.objects.exists()


def test_the_inbox_approves_the_marked_ones(w, client):
    builders.fund(w, "5000")
    steps = [builders.in_review(w).current.steps.get() for _ in range(2)]
    client.force_login(w.lead)
    page = client.get(reverse("approval-list")).content.decode()
    marks = [f"{step.pk}:{step.content_hash}" for step in steps]
    assert all(f'value="{mark}"' in page for mark in marks)
    assert client.post(reverse("approval-bulk"), {"step": marks}).status_code == 200
    assert set(CapacityRequest.objects.values_list("status", flat=True)) == {"approved"}


def test_the_api_imports_and_steps_in_bulk(w):
    mine, theirs = api(w.requester), api(w.outsider)
    answer = mine.post(
        reverse("api-imports"), {"file": table(rows_of(w, "One", ""))}, format="multipart"
    )
    assert answer.status_code == 201
    assert [row["fate"] for row in answer.data["rows"]] == ["add", "refused"]
    pk = answer.data["id"]
    for name in ("api-import", "api-import-apply", "api-import-encoding", "api-import-discard"):
        call = theirs.get if name == "api-import" else theirs.post
        assert call(reverse(name, args=[pk])).status_code == 404
    apply = reverse("api-import-apply", args=[pk])
    refused = mine.post(apply, {}, format="json")
    assert (refused.status_code, refused.data["field"]) == (422, "file")
    done = mine.post(apply, {"all_or_nothing": False}, format="json")
    assert done.data["status"] == "applied"
    found = CapacityRequest.objects.get()
    body = {"action": "submit", "requests": [found.pk]}
    assert theirs.post(reverse("api-request-bulk"), body, format="json").data == []
    assert mine.post(reverse("api-request-bulk"), body, format="json").data[0]["refused"] is None
    builders.fund(w, "2000")
    builders.choose(found, builders.study(found))
    step = found.current.steps.get()
    body = {"steps": [{"id": step.pk, "seen_hash": step.content_hash}]}
    assert mine.post(reverse("api-approval-bulk"), body, format="json").data[0]["refused"]
    answer = api(w.lead).post(reverse("api-approval-bulk"), body, format="json")
    assert answer.data[0]["refused"] is None
