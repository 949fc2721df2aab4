"""Comments, mentions, watching and papers: who is told, who may, and what is refused."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from rest_framework.test import APIClient

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AppendOnlyError, AuditEntry, Notice
from core.organisation import today
from planning.models import Delegation, RequestAttachment, RequestComment, RequestWatch
from planning.models.requests import visible_teams
from planning.selectors.readers import readers
from planning.services import discussion, requests
from tests.planning import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def w():
    return builders.world()


def told(event):
    return set(Notice.objects.filter(event=event).values_list("recipient__name", flat=True))


def handle(person):
    return "@" + person.email.partition("@")[0]


def pdf(name="plan.pdf", content=b"%PDF-1.7 x"):
    return SimpleUploadedFile(name, content)


def api(user):
    client = APIClient()
    client.force_authenticate(type(user).objects.get(pk=user.pk))
    return client


def test_readers_is_the_same_rule_as_sight(w):
    away = w.lead
    Delegation.objects.create(
        principal=away, delegate=w.outsider, first_day=today(), last_day=today(), created_by=away
    )
    found = set(readers(w.team).values_list("pk", flat=True))
    for name, person in w.people().items():
        person = type(person).objects.get(pk=person.pk)
        teams = visible_teams(person)
        assert (person.pk in found) == (teams is None or w.team.pk in teams), name


def test_who_is_named_is_told_once_and_the_requester_too(w):
    request = builders.draft(w)
    row = discussion.comment(
        request_id=request.pk,
        by=w.procurement,
        text=f"{handle(w.lead)}, {w.lead.email}: why eight?",
    )
    assert list(row.mentions.all()) == [w.lead]
    assert told("comment.mentioned") == {"Leo Lead"}
    assert told("comment.added") == {"Rita Requester"}
    assert Notice.objects.filter(mail_at__isnull=False).count() == 2


def test_only_people_who_may_see_the_request_can_be_named_and_strangers_are_not_revealed(w):
    request = builders.draft(w)
    answers = set()
    for name in (handle(w.outsider), "@nobody"):
        with pytest.raises(InputError) as error:
            discussion.comment(request_id=request.pk, by=w.requester, text=f"Ask {name}.")
        assert error.value.field == "text"
        answers.add(str(error.value).replace(name, "@x"))
    assert len(answers) == 1
    assert not RequestComment.objects.exists()
    discussion.comment(request_id=request.pk, by=w.requester, text="mail me at me@example.com")


def test_a_comment_is_never_changed(w):
    row = discussion.comment(request_id=builders.draft(w).pk, by=w.requester, text="So.")
    row.text = "Other"
    with pytest.raises(AppendOnlyError):
        row.save()


@pytest.mark.parametrize("who", ["auditor", "outsider", "superuser"])
def test_who_only_reads_or_sees_nothing_says_nothing_and_brings_nothing(w, who):
    request = builders.draft(w)
    with pytest.raises(NotPermitted):
        discussion.comment(request_id=request.pk, by=getattr(w, who), text="Hello")
    with pytest.raises(NotPermitted):
        discussion.attach(request_id=request.pk, by=getattr(w, who), upload=pdf())


def test_a_watcher_is_told_of_each_state_until_they_stop_or_leave(w):
    request = builders.planned(w)
    discussion.watch(request_id=request.pk, by=w.procurement)
    discussion.watch(request_id=request.pk, by=w.procurement)
    assert RequestWatch.objects.count() == 1
    requests.submit_request(request_id=request.pk, by=w.requester)
    assert told("request.submitted") == told("request.in_review") == {"Paul Procurement"}
    w.procurement.memberships.all().delete()
    requests.recall(request_id=request.pk, by=w.requester)
    assert told("request.draft") == set()
    request.refresh_from_db()
    discussion.watch(request_id=request.pk, by=w.lead)
    discussion.unwatch(request_id=request.pk, by=w.lead)
    requests.cancel_request(request_id=request.pk, by=w.requester)
    assert "Leo Lead" not in told("request.cancelled")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>x</script></svg>"),
        ("a.pdf", b"<html><script>x</script>"),
        ("empty.pdf", b""),
        ("a.bin", b"\x00\x01\x02"),
    ],
)
def test_what_a_browser_would_run_or_nobody_can_read_is_refused(w, name, content):
    with pytest.raises(InputError) as error:
        discussion.attach(
            request_id=builders.draft(w).pk, by=w.requester, upload=pdf(name, content)
        )
    assert error.value.field == "file"
    assert not RequestAttachment.objects.exists()


def test_a_file_above_the_limit_is_refused_with_both_sizes(w, monkeypatch):
    monkeypatch.setattr(discussion, "MAX_FILE_BYTES", 20)
    with pytest.raises(InputError, match="21 bytes; the limit is 20"):
        discussion.attach(
            request_id=builders.draft(w).pk,
            by=w.requester,
            upload=pdf(content=b"%PDF-" + b"x" * 16),
        )


def test_a_file_comes_back_as_an_attachment_under_its_own_name_to_the_team_alone(w, client):
    request = builders.draft(w)
    row = discussion.attach(
        request_id=request.pk, by=w.requester, upload=pdf("../../报价 单.pdf"), note="two pages"
    )
    assert len(row.file.sha256) == 64
    address = reverse("request-file", args=[request.pk, row.pk])
    for person in (w.requester, w.lead, w.auditor):
        client.force_login(person)
        answer = client.get(address)
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Disposition"].startswith("attachment")
        assert "%E6%8A%A5%E4%BB%B7%20%E5%8D%95.pdf" in answer["Content-Disposition"]
        assert b"".join(answer.streaming_content) == b"%PDF-1.7 x"
    for person in (w.outsider, w.superuser):
        client.force_login(person)
        assert client.get(address).status_code == 404
        assert client.get(address, headers={"Range": "bytes=0-3"}).status_code == 404
        assert (
            api(person).get(reverse("api-request-file", args=[request.pk, row.pk])).status_code
            == 404
        )
    assert AuditEntry.objects.filter(action="permission.denied").count() == 6
    w.requester.memberships.all().delete()  # left the team
    client.force_login(w.requester)
    assert client.get(address).status_code == 404


def test_only_who_brought_a_file_takes_it_away_while_the_request_is_open(w):
    request = builders.draft(w)
    row = discussion.attach(request_id=request.pk, by=w.requester, upload=pdf())
    other = discussion.attach(request_id=request.pk, by=w.requester, upload=pdf())
    with pytest.raises(NotPermitted):
        discussion.remove_attachment(attachment_id=row.pk, by=w.lead)
    discussion.remove_attachment(attachment_id=row.pk, by=w.requester)
    row.refresh_from_db()
    assert row.removed_by == w.requester
    assert row.file.file.storage.exists(row.file.file.name)
    requests.cancel_request(request_id=request.pk, by=w.requester)
    with pytest.raises(InvalidTransition):
        discussion.remove_attachment(attachment_id=other.pk, by=w.requester)


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_page_takes_comments_files_and_watching(w, client, language):
    w.requester.language = language
    w.requester.save()
    client.force_login(w.requester)
    request = builders.draft(w)
    client.post(reverse("comment-add", args=[request.pk]), {"text": f"<b>Hi</b> {handle(w.lead)}"})
    client.post(reverse("request-watch", args=[request.pk]))
    client.post(reverse("request-file-add", args=[request.pk]), {"file": pdf(), "note": "why"})
    page = client.get(request.get_absolute_url()).content.decode()
    assert "&lt;b&gt;Hi&lt;/b&gt;" in page
    assert "plan.pdf" in page
    assert 'name="watch" value="no"' in page
    answer = client.post(reverse("comment-add", args=[request.pk]), {"text": "To @nobody: keep"})
    assert answer.status_code == 422
    assert "To @nobody: keep" in answer.content.decode()


def test_the_api_does_the_same_and_other_teams_find_nothing(w):
    request = builders.draft(w)
    mine, theirs = api(w.requester), api(w.outsider)
    comments = reverse("api-request-comments", args=[request.pk])
    answer = mine.post(comments, {"text": f"Look {handle(w.lead)}"}, format="json")
    assert answer.status_code == 201
    assert mine.get(comments).data["results"][0]["mentions"] == [w.lead.email]
    assert mine.post(comments, {"text": "@nobody"}, format="json").data["field"] == "text"
    watch = reverse("api-request-watch", args=[request.pk])
    assert mine.post(watch).data == {"watching": True}
    assert mine.delete(watch).data == {"watching": False}
    files = reverse("api-request-files", args=[request.pk])
    row = mine.post(files, {"file": pdf()}, format="multipart").data
    assert row["content_type"] == "application/pdf"
    address = reverse("api-request-file", args=[request.pk, row["id"]])
    assert mine.get(address)["X-Content-Type-Options"] == "nosniff"
    for url in (comments, watch, files, address):
        assert theirs.get(url).status_code == 404
        assert theirs.post(url, {"text": "x"}, format="json").status_code in (404, 405)
    assert theirs.delete(address).status_code == 404
    assert api(w.lead).delete(address).status_code == 403
    assert mine.delete(address).status_code == 204
    assert mine.get(address).status_code == 404
