"""The kernel's pages: who sees what, in both languages, at a cost that does not grow with the rows."""

from datetime import timedelta
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import DataError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from core.audit import record
from core.messages import msg
from core.models import AuditEntry, Job, Notice
from core.policies import watch_token
from core.roles import Role
from tests.core.test_templates import offences

pytestmark = pytest.mark.django_db

PAGES = ["home", "notice-list", "job-list", "audit-list", "preferences", "gallery"]
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def user(organisation, make_user):
    return make_user(name="Ada Chen")


@pytest.fixture
def site(client, user):
    client.force_login(user)
    return client


def notice_for(user, *, text="You may not do this.", url="", key=None):
    return Notice.objects.create(
        recipient=user, event="matter.arisen", object_type="core.team", object_id=str(key or uuid4()),
        message=msg(text).to_json(), url=url,
    )  # fmt: skip


def job_of(user, **fields):
    return Job.objects.create(key=str(uuid4()), task="core.tasks.heartbeat", owner=user, **fields)


def in_chinese(client):
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    return client


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_shown_in_both_languages_within_the_policy(site, name, language):
    site.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    response = site.get(reverse(name))
    html = response.content.decode()

    assert response.status_code == 200
    assert f'<html lang="{language}">' in html
    assert ("跳到正文" in html) == (language == "zh-hans")
    assert html.count("<h1") == 1
    assert offences(html) == []
    policy = response["Content-Security-Policy"]
    assert "'unsafe-inline'" not in policy
    assert "'unsafe-eval'" not in policy


@pytest.mark.parametrize("name", PAGES)
def test_a_stranger_sees_none_of_them(client, organisation, name):
    response = client.get(reverse(name))

    assert response.status_code == 302
    assert response["Location"].startswith(reverse("account_login"))


@pytest.mark.parametrize(
    "name",
    ["account_login", "account_reset_password", "account_signup", "account_reset_password_done"],
)
def test_pages_before_log_in_keep_the_policy(client, organisation, name):
    response = client.get(reverse(name))

    assert response.status_code == 200
    assert b'class="entrance"' in response.content
    assert offences(response.content.decode()) == []


@pytest.mark.parametrize(
    "name",
    [
        "account_change_password", "account_logout", "account_reauthenticate", "mfa_index", "mfa_activate_totp",
        "mfa_generate_recovery_codes",
    ],
)  # fmt: skip
def test_pages_of_the_account_keep_the_policy(client, user, name):
    password = "correct horse battery"
    client.post(reverse("account_login"), {"login": user.email, "password": password})
    client.post(reverse("account_reauthenticate"), {"password": password})
    response = client.get(reverse(name), follow=True)

    assert response.status_code == 200
    assert offences(response.content.decode()) == []
    assert b"css/components.css" in response.content


def test_nobody_changes_the_address_that_an_administrator_gave_them(site, user):
    response = site.post(reverse("account_email"), {"action_add": "", "email": "other@example.com"})

    assert response["Location"] == reverse("preferences")
    assert not user.emailaddress_set.filter(email="other@example.com").exists()


def test_a_wrong_password_is_told_beside_the_form(client, user):
    response = client.post(reverse("account_login"), {"login": user.email, "password": "wrong"})

    assert b'class="alert bad"' in response.content
    assert "_auth_user_id" not in client.session


# --- notices


def test_a_notice_is_shown_counted_opened_and_read(site, user):
    notice_for(user, url="/audit/")
    html = site.get(reverse("notice-list")).content.decode()
    assert "You may not do this." in html
    assert "1 unread notice" in html

    response = site.post(reverse("notice-open", args=[Notice.objects.get().pk]))

    assert response["Location"] == "/audit/"
    assert Notice.objects.get().read_at is not None
    assert "0 unread notices" in site.get(reverse("notice-list")).content.decode()


def test_nobody_reads_or_opens_the_notices_of_another(site, user, make_user):
    other = notice_for(make_user())

    assert "You may not do this." not in site.get(reverse("notice-list")).content.decode()
    assert site.post(reverse("notice-open", args=[other.pk])).status_code == 404
    assert site.post(reverse("notice-read-all")).status_code == 302
    other.refresh_from_db()
    assert other.read_at is None


def test_a_notice_never_leads_to_another_site(site, user):
    notice = notice_for(user, url="https://example.com/")

    assert site.post(reverse("notice-open", args=[notice.pk]))["Location"] == reverse("notice-list")


def test_all_notices_are_marked_as_read_at_once(site, user):
    for _n in range(3):
        notice_for(user)
    site.post(reverse("notice-read-all"))

    assert not Notice.objects.filter(read_at=None).exists()


# --- jobs


def test_a_running_job_polls_and_an_ended_one_does_not(site, user):
    job = job_of(
        user,
        status=Job.Status.RUNNING,
        percent=40,
        started_at=timezone.now(),
        stage=msg("Queued").to_json(),
    )
    html = site.get(reverse("job-detail", args=[job.pk]), **HTMX).content.decode()
    assert 'hx-trigger="every 1s"' in html
    assert "<html" not in html
    assert 'value="40"' in html

    Job.objects.update(status=Job.Status.DONE, percent=100, finished_at=timezone.now())
    response = site.get(reverse("job-detail", args=[job.pk]), **HTMX)

    assert "hx-trigger" not in response.content.decode()
    assert response["HX-Refresh"] == "true"


def test_a_finished_job_leads_on_but_only_within_the_site(site, user):
    job = job_of(user, status=Job.Status.DONE, percent=100)
    address = reverse("job-detail", args=[job.pk])

    assert site.get(address, {"next": "/audit/"}, **HTMX)["HX-Redirect"] == "/audit/"
    assert "HX-Redirect" not in site.get(address, {"next": "//example.com/"}, **HTMX)


def test_a_reader_of_a_page_that_shows_a_job_follows_it_but_does_not_stop_it(site, user, make_user):
    job = job_of(make_user(), status=Job.Status.RUNNING)
    address = reverse("job-detail", args=[job.pk])
    token = watch_token(job)
    shown = site.get(address, {"watch": token}, **HTMX)
    assert shown.status_code == 200
    assert quote(token) in shown.content.decode(), "the next poll may be seen too"
    assert reverse("job-cancel", args=[job.pk]) not in shown.content.decode()
    assert site.get(address, {"watch": token}).status_code == 404, "the page itself is not shown"
    for wrong in ("", "x", watch_token(job_of(make_user()))):
        assert site.get(address, {"watch": wrong}, **HTMX).status_code == 404


def test_a_failed_job_says_why_in_the_reader_s_language(site, user):
    why = msg("This took longer than the limit and was stopped. Try a smaller input.")
    job = job_of(user, status=Job.Status.FAILED, error=why.to_json())

    assert (
        "运行超过时限"
        in in_chinese(site).get(reverse("job-detail", args=[job.pk])).content.decode()
    )


def test_the_job_of_another_is_not_there_except_for_operations(client, organisation, make_user):
    job = job_of(make_user(), status=Job.Status.RUNNING)
    addresses = [("get", "job-detail"), ("post", "job-cancel"), ("post", "job-retry")]

    client.force_login(make_user(Role.REQUESTER))
    assert job.key not in client.get(reverse("job-list")).content.decode()
    for method, name in addresses:
        assert getattr(client, method)(reverse(name, args=[job.pk])).status_code == 404
    job.refresh_from_db()
    assert not job.cancel_requested

    client.force_login(make_user(Role.OPERATIONS))
    assert job.key in client.get(reverse("job-list")).content.decode()
    assert client.get(reverse("job-detail", args=[job.pk])).status_code == 200


def test_cancelling_asks_a_running_job_to_stop_and_leaves_an_ended_one(site, user):
    running, ended = job_of(user, status=Job.Status.RUNNING), job_of(user, status=Job.Status.DONE)

    assert (
        site.post(reverse("job-cancel", args=[running.pk]), {"next": "/audit/"})["Location"]
        == "/audit/"
    )
    site.post(reverse("job-cancel", args=[ended.pk]))

    running.refresh_from_db()
    ended.refresh_from_db()
    assert running.cancel_requested
    assert not ended.cancel_requested


def test_only_what_failed_or_was_cancelled_starts_again(site, user):
    failed, running = (
        job_of(user, status=Job.Status.FAILED),
        job_of(user, status=Job.Status.RUNNING),
    )
    for job in (failed, running):
        site.post(reverse("job-retry", args=[job.pk]))
        job.refresh_from_db()

    assert failed.status == Job.Status.QUEUED
    assert running.status == Job.Status.RUNNING


def test_jobs_are_filtered_by_state(site, user):
    failed, done = job_of(user, status=Job.Status.FAILED), job_of(user, status=Job.Status.DONE)
    html = site.get(reverse("job-list"), {"status": "failed"}).content.decode()

    assert failed.key in html
    assert done.key not in html


# --- audit trail


def test_the_trail_shows_own_teams_and_auditors_all(client, organisation, make_user, team):
    from tests.factories import TeamFactory

    stranger, elsewhere = make_user(), TeamFactory(name="Elsewhere")
    mine = record("team.renamed", on=team, by=stranger, team=team, reason="merger")
    other = record("team.renamed", on=elsewhere, by=stranger, team=elsewhere, reason="a secret")

    client.force_login(make_user(Role.REQUESTER, team=team))
    html = client.get(reverse("audit-list")).content.decode()
    assert "merger" in html
    assert "a secret" not in html
    assert client.get(reverse("audit-detail", args=[mine.pk])).status_code == 200
    assert client.get(reverse("audit-detail", args=[other.pk])).status_code == 404

    client.force_login(make_user(Role.AUDITOR))
    assert "a secret" in client.get(reverse("audit-list")).content.decode()
    assert client.get(reverse("audit-detail", args=[other.pk])).status_code == 200


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"one", "two", "three"}),
        ({"action": "rfq."}, {"two"}),
        ({"text": "Vision"}, {"one", "two", "three"}),
        ({"text": "nothing like it"}, set()),
        ({"who": "grace"}, {"three"}),
        ({"since": "2026-03-02"}, {"three"}),
        ({"until": "2026-03-01"}, {"one", "two"}),
        ({"since": "2026-03-01", "until": "2026-03-01"}, {"two"}),
    ],
)
def test_the_trail_is_filtered(client, organisation, make_user, team, query, found):
    team.name = "Vision"
    ada, grace = make_user(name="Ada"), make_user(name="Grace")
    # Days are those of the organisation in Shanghai: 16:30 UTC is half past midnight on the next day.
    for reason, action, by, at in (
        ("one", "team.renamed", ada, "2026-02-28T15:59:00+00:00"),
        ("two", "rfq.awarded", ada, "2026-02-28T16:30:00+00:00"),
        ("three", "team.renamed", grace, "2026-03-01T16:00:00+00:00"),
    ):
        AuditEntry.objects.create(
            action=action,
            actor=by,
            object_type="core.team",
            object_id="1",
            object_label="Vision",
            reason=reason,
            at=at,
        )
    client.force_login(make_user(Role.AUDITOR))
    rows = client.get(reverse("audit-list"), query).context["page"].object_list

    assert {entry.reason for entry in rows} == found


def test_a_backward_period_is_told_at_the_field(client, organisation, make_user):
    client.force_login(make_user(Role.AUDITOR))
    html = client.get(
        reverse("audit-list"), {"since": "2026-03-02", "until": "2026-03-01"}
    ).content.decode()

    assert "2026-03-01 is before 2026-03-02." in html


def test_the_filtered_trail_is_downloaded_without_what_the_reader_may_not_see(
    client, organisation, make_user, team
):
    from tests.factories import TeamFactory

    ada, elsewhere = make_user(name="Ada"), TeamFactory()
    record("rfq.awarded", on=team, by=ada, team=team, reason="=1+1")
    record("team.renamed", on=team, by=ada, team=team, reason="filtered out")
    record("rfq.awarded", on=elsewhere, by=ada, team=elsewhere, reason="a secret")
    client.force_login(make_user(Role.REQUESTER, team=team))

    response = client.get(reverse("audit-export", args=["csv"]), {"action": "rfq."})
    table = b"".join(response.streaming_content).decode("utf-8-sig")

    assert "'=1+1" in table
    assert "filtered out" not in table
    assert "a secret" not in table
    assert table.count("\r\n") == 2
    assert client.get(reverse("audit-export", args=["pdf"])).status_code == 422
    backward = {"since": "2026-03-02", "until": "2026-03-01"}
    assert client.get(reverse("audit-export", args=["csv"]), backward).status_code == 302


def test_states_and_actions_are_said_in_words(client, organisation, make_user):
    job = job_of(make_user())
    record("job.cancelled", on=job, by=None, from_state="running", to_state="cancelled")
    client.force_login(make_user(Role.AUDITOR))
    html = in_chinese(client).get(reverse("audit-list")).content.decode()

    for word in ("任务已取消", "进行中", "已取消", "系统", "后台任务"):
        assert word in html


def _queries(client, name, django_assert_max_num_queries):
    with django_assert_max_num_queries(40) as captured:
        assert client.get(reverse(name)).status_code == 200
    return len(captured)


@pytest.mark.parametrize("name", ["notice-list", "job-list", "audit-list"])
def test_a_list_costs_the_same_for_two_rows_and_for_forty(
    client, organisation, make_user, name, django_assert_max_num_queries
):
    reader = make_user(Role.ADMINISTRATOR)
    client.force_login(reader)

    def add(count):
        for _n in range(count):
            person = make_user()
            notice_for(reader)
            job_of(person)
            record("team.renamed", on=organisation, by=person, on_behalf_of=reader)

    add(2)
    few = _queries(client, name, django_assert_max_num_queries)
    add(38)
    assert _queries(client, name, django_assert_max_num_queries) == few
    assert few <= 12


# --- preferences, colours, language


def test_preferences_are_saved_and_win_over_an_older_switch(site, user):
    site.cookies[settings.LANGUAGE_COOKIE_NAME] = "en"
    response = site.post(
        reverse("preferences"),
        {"name": "Ada", "language": "zh-hans", "time_zone": "Europe/Berlin"},
    )
    user.refresh_from_db()

    assert (user.name, user.language, user.time_zone) == ("Ada", "zh-hans", "Europe/Berlin")
    assert response.cookies[settings.LANGUAGE_COOKIE_NAME]["max-age"] == 0
    del site.cookies[settings.LANGUAGE_COOKIE_NAME]
    assert "偏好设置" in site.get(reverse("preferences")).content.decode()


def test_a_zone_that_does_not_exist_is_told_at_its_field_and_changes_nothing(site, user):
    response = site.post(
        reverse("preferences"), {"name": "Eve", "language": "", "time_zone": "Mars/Base"}
    )
    html = response.content.decode()
    user.refresh_from_db()

    assert response.status_code == 422
    assert 'id="id_time_zone_error"' in html
    assert "Mars/Base is not an IANA time zone." in html
    assert "Ada Chen" in html  # the page head still shows the stored name
    assert user.name == "Ada Chen"


@pytest.mark.parametrize(
    ("theme", "media"),
    [
        ("dark", 'media="screen"'),
        ("", 'media="screen and (prefers-color-scheme: dark)"'),
        ("light", None),
    ],
)
def test_colours_follow_the_choice_on_this_device(site, theme, media):
    site.post(reverse("set-theme"), {"theme": theme, "next": "/audit/"})
    html = site.get(reverse("home")).content.decode()

    assert ("css/dark.css" in html) == (media is not None)
    assert media is None or media in html


def test_a_theme_cookie_that_nobody_set_is_ignored(site):
    site.cookies["theme"] = '"><script>'

    assert "prefers-color-scheme" in site.get(reverse("home")).content.decode()
    assert site.post(reverse("set-theme"), {"next": "https://example.com/"})["Location"] == "/"


# --- navigation


def test_navigation_marks_the_nearest_entry_and_hides_what_a_role_does_not_open(
    client, organisation, make_user
):
    client.force_login(make_user(Role.REQUESTER))
    html = client.get(reverse("audit-list")).content.decode()
    assert f'<a href="{reverse("audit-list")}" aria-current="page">' in html
    assert html.count('aria-current="page"') == 1
    assert f'<a href="{reverse("gallery")}"' not in html

    client.force_login(make_user(Role.ADMINISTRATOR))
    html = client.get(reverse("home")).content.decode()
    assert f'<a href="{reverse("organisation-stage")}"' in html
    assert f'<a href="{reverse("gallery")}"' not in html  # samples for developers: a page, no entry


# --- what goes wrong


def test_a_missing_page_is_a_page_a_fragment_or_json(site):
    full = site.get("/no/such/page/")
    assert full.status_code == 404
    assert b"There is nothing here" in full.content
    assert b'class="topbar"' in full.content

    fragment = site.get("/no/such/page/", **HTMX)
    assert fragment.status_code == 404
    assert b"<html" not in fragment.content

    assert site.get("/api/v1/no/such/").json()["code"] == "not_found"


def test_an_expired_form_is_explained(user):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    response = in_chinese(strict).post(reverse("preferences"), {"name": "Eve"})

    assert response.status_code == 403
    assert "表单已过期" in response.content.decode()
    user.refresh_from_db()
    assert user.name == "Ada Chen"


def test_a_defect_is_answered_without_touching_the_database(rf, django_assert_num_queries):
    from core.error_pages import server_error

    request = rf.get("/anything/")
    with django_assert_num_queries(0):
        response = server_error(request)

    assert response.status_code == 500
    assert b"Something broke on our side" in response.content
    assert offences(response.content.decode()) == []


def test_a_domain_error_shows_its_message_and_what_changed(rf, user):
    from core.errors import StaleData
    from core.middleware import DomainErrorMiddleware

    request = rf.get("/somewhere/")
    request.user, request.htmx, request.session = user, False, {}
    response = DomainErrorMiddleware(lambda r: None).process_exception(
        request, StaleData(changes={"quantity": ("8", "16")})
    )

    html = response.content.decode()
    assert response.status_code == 409
    assert "This was changed since you opened it." in html
    assert "<del>8</del>" in html
    assert "<ins>16</ins>" in html


def test_the_gallery_shows_every_component(site):
    html = site.get(reverse("gallery")).content.decode()
    for mark in (
        "badge warn", "alert bad", "tile", "facts", "table cards", "pager", "tabs", "filters", "stepper", "progress",
        'class="bar"', "meters", "timeline", "diff", "skeleton", "state bad", "items", "upload", "dialog", "chart",
    ):  # fmt: skip
        assert mark in html, mark


def test_elapsed_time_is_shown_while_a_job_runs(site, user):
    job = job_of(user, status=Job.Status.RUNNING, started_at=timezone.now() - timedelta(minutes=5))

    assert "5.0" in site.get(reverse("job-detail", args=[job.pk])).content.decode()


def test_the_trail_by_api_takes_the_same_filters(site, user):
    record("team.renamed", on=user, by=user)
    record("matter.arisen", on=user, by=user)
    address = reverse("api-audit")
    rows = site.get(address, {"action": "team."}).json()["results"]
    assert [row["action"] for row in rows] == ["team.renamed"]
    wrong = site.get(address, {"since": "yesterday"})
    assert wrong.status_code == 400
    assert "since" in wrong.content.decode()


def test_the_api_has_a_first_page_that_leads_to_its_collections_and_its_schema(
    client, organisation, make_user
):
    assert client.get("/api/v1/").status_code in {401, 403}, "as for the schema"
    client.force_login(make_user(Role.ADMINISTRATOR))
    answer = client.get("/api/v1/").json()
    assert answer["schema"].endswith("/api/schema/")
    assert {"requests", "catalog/accelerators", "procurement/rfqs", "audit"} <= set(
        answer["collections"]
    )
    refused = {
        name: code
        for name, address in answer["collections"].items()
        if (code := client.get(address).status_code) not in (200, 403)
    }
    assert refused == {}


def test_answers_are_private_and_not_kept(client, organisation, make_user):
    client.force_login(make_user())
    for path in ("/", "/jobs/", "/nowhere/", "/api/v1/me/", "/accounts/login/"):
        kept = client.get(path)["Cache-Control"]
        assert {"private", "no-store"} <= set(kept.split(", ")), path
    assert "no-store" in client.post("/accounts/logout/")["Cache-Control"]


@pytest.mark.parametrize("following", ["abc", "no:such", "{", "9" * 40, "//evil.example", "\x00"])
def test_what_leads_to_no_address_leads_home(site, following):
    answer = site.post(reverse("set-theme"), {"theme": "dark", "next": following})
    assert (answer.status_code, answer["Location"]) == (302, reverse("home"))


@pytest.mark.parametrize(
    "error",
    [
        OverflowError("Python int too large to convert to SQLite INTEGER"),
        DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"),
    ],
)
def test_what_no_column_holds_is_refused_by_page_and_api(site, monkeypatch, error):
    def beyond(*args, **kwargs):
        raise error

    monkeypatch.setattr("core.views.issue_token", beyond)
    monkeypatch.setattr("core.api.issue_token", beyond)
    page = site.post(reverse("token-issue"))
    assert page.status_code == 422
    assert "outside what can be kept" in page.content.decode()
    answer = site.post(reverse("api-token"))
    assert answer.status_code == 400
    assert "outside what can be kept" in answer.json()["detail"]
