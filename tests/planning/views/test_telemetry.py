"""Pages and API of telemetry: who sees what, the same step by page and API, constant queries."""

import html
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse

from core.models import AuditEntry
from core.roles import Role
from planning.models import Ingestion, TelemetrySource
from planning.services import telemetry_load, telemetry_sources
from tests.factories import TeamFactory
from tests.planning.telemetry import T0, feed, hours, samples, source

pytestmark = pytest.mark.django_db
QUARTER = {"quarter": "2026Q4"}


@pytest.fixture
def fed(organisation, team):
    of = source(team=team)
    feed(of, samples(utilization=0.5, memory=0.25, power=600.0))
    return of


def test_a_team_sees_its_own_cards_and_no_others(client, fed, make_user, team):
    other = TeamFactory()
    client.force_login(make_user(Role.REQUESTER, team=team))
    page = client.get(reverse("telemetry"), QUARTER)
    assert "50 %" in page.content.decode()
    assert client.get(reverse("telemetry"), {**QUARTER, "team": other.slug}).status_code == 404
    client.force_login(make_user(Role.REQUESTER, team=other))
    assert "50 %" not in client.get(reverse("telemetry"), QUARTER).content.decode()
    assert client.get(reverse("telemetry"), {**QUARTER, "team": team.slug}).status_code == 404
    assert client.get(reverse("api-telemetry"), {**QUARTER, "team": team.slug}).status_code == 404
    assert client.get(reverse("api-telemetry"), QUARTER).json()["pools"] == []


def test_central_roles_see_the_whole_fleet_by_page_and_api(client, fed, make_user):
    client.force_login(make_user(Role.AUDITOR))
    assert "50 %" in client.get(reverse("telemetry"), QUARTER).content.decode()
    (pool,) = client.get(reverse("api-telemetry"), QUARTER).json()["pools"]
    assert pool["use"]["utilization"] == pytest.approx(0.5)
    assert pool["use"]["sm"] is None


def test_queries_do_not_grow_with_cards(client, fed, make_user):
    client.force_login(make_user(Role.AUDITOR))

    def count():
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert client.get(reverse("telemetry"), QUARTER).status_code == 200
        return len(found)

    before = count()
    for n in range(20):
        feed(fed, samples(card=f"GPU-x{n}", minutes=2))
    assert count() == before <= 15


@pytest.mark.parametrize("role", [Role.REQUESTER])
def test_team_members_find_no_source(client, fed, make_user, team, role):
    client.force_login(make_user(role, team=team))
    pages = [reverse("telemetry-sources"), reverse("telemetry-source-new"), fed.get_absolute_url(),
             reverse("api-telemetry-sources"), reverse("api-telemetry-source", args=[fed.pk]),
             reverse("api-telemetry-loads", args=[fed.pk])]  # fmt: skip
    assert [client.get(page).status_code for page in pages] == [404] * len(pages)
    steps = ["load", "pull", "token", "post"]
    posts = [reverse(f"telemetry-source-{step}", args=[fed.pk]) for step in steps]
    posts += [reverse(f"api-telemetry-{step}", args=[fed.pk]) for step in ("pull", "token", "post")]
    assert [client.post(page).status_code for page in posts] == [404] * len(posts)


def test_a_reader_of_sources_may_not_change_them(client, fed, make_user):
    client.force_login(make_user(Role.AUDITOR))
    assert client.get(fed.get_absolute_url()).status_code == 200
    upload = SimpleUploadedFile("a.csv", b"x")
    assert (
        client.post(reverse("telemetry-source-load", args=[fed.pk]), {"file": upload}).status_code
        == 403
    )
    assert client.post(reverse("telemetry-source-token", args=[fed.pk])).status_code == 403
    assert client.post(reverse("api-telemetry-token", args=[fed.pk])).status_code == 403
    assert client.post(reverse("api-telemetry-post", args=[fed.pk])).status_code == 403


def test_a_source_is_connected_by_page_and_by_api(client, organisation, make_user):
    client.force_login(make_user(Role.OPERATIONS))
    fields = {"name": "smi", "kind": "nvidia_smi", "time_zone": "Asia/Shanghai", "ownership": "owned",
              "step_seconds": 60, "raw_days": 14, "verify_tls": "on", "active": "on"}  # fmt: skip
    page = client.post(reverse("telemetry-source-new"), fields)
    assert page.status_code == 302
    answer = client.post(
        reverse("api-telemetry-sources"),
        {**fields, "name": "api", "verify_tls": True, "active": True},
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.json()
    assert set(TelemetrySource.objects.values_list("name", "kind")) == {
        ("smi", "nvidia_smi"),
        ("api", "nvidia_smi"),
    }
    assert AuditEntry.objects.filter(action="telemetry_source.created").count() == 2


def test_a_wrong_source_is_answered_with_what_was_typed(client, organisation, make_user):
    client.force_login(make_user(Role.OPERATIONS))
    fields = {"name": "prom", "kind": "prometheus", "time_zone": "UTC", "ownership": "owned", "step_seconds": 0,
              "raw_days": 14, "url": "https://prom.example"}  # fmt: skip
    page = client.post(reverse("telemetry-source-new"), fields)
    assert page.status_code == 422
    assert "https://prom.example" in page.content.decode()
    answer = client.post(reverse("api-telemetry-sources"), fields, content_type="application/json")
    assert (answer.status_code, answer.json()["field"]) == (422, "step_seconds")


def test_a_source_changed_meanwhile_is_not_overwritten(client, fed, make_user):
    client.force_login(make_user(Role.OPERATIONS))
    address = reverse("api-telemetry-source", args=[fed.pk])
    assert (
        client.patch(
            address, {"host": "a", "version": 1}, content_type="application/json"
        ).status_code
        == 200
    )
    assert (
        client.patch(
            address, {"host": "b", "version": 1}, content_type="application/json"
        ).status_code
        == 409
    )


def test_a_file_by_page_is_read_by_a_job_and_the_page_tells_it(client, organisation, make_user):
    of = source("nvidia_smi")
    client.force_login(make_user(Role.OPERATIONS))
    text = (
        b"timestamp, uuid, utilization.gpu [%]\n2026/11/02 08:00:00, GPU-1, 40 %\nnoise\n"
        b"2026/11/02 08:01:00, GPU-1, [N/A]\n"
    )
    upload = SimpleUploadedFile("smi.csv", text)
    assert (
        client.post(reverse("telemetry-source-load", args=[of.pk]), {"file": upload}).status_code
        == 302
    )
    row = Ingestion.objects.get()
    assert row.job.task == "planning.tasks.load_telemetry"
    telemetry_load.load_file(ingestion_id=row.pk)
    page = client.get(of.get_absolute_url()).content.decode()
    assert "Line 4 has no figure that can be used" in page
    address = reverse("telemetry-source-load", args=[of.pk])
    assert resolve(address).func.is_repeatable  # no transaction is held over the upload
    again = client.post(address, {"file": SimpleUploadedFile("smi.csv", text)}, follow=True)
    assert "the same file" in again.content.decode()
    api = client.post(
        reverse("api-telemetry-loads", args=[of.pk]), {"file": SimpleUploadedFile("x.csv", text)}
    )
    assert (api.status_code, api.json()["id"], api.json()["sha256"]) == (200, row.pk, row.sha256)
    assert Ingestion.objects.get() == row
    empty = SimpleUploadedFile("smi.csv", b"")
    answer = client.post(reverse("telemetry-source-load", args=[of.pk]), {"file": empty})
    assert answer.status_code == 422
    assert "is empty" in answer.content.decode()


def test_a_collector_pushes_with_its_token_and_may_repeat(client, organisation, make_user):
    of = source("push")
    token = telemetry_sources.issue_token(source_id=of.pk, by=make_user(Role.OPERATIONS))
    body = json.dumps({"samples": [{"card": "GPU-1", "at": T0.isoformat(), "utilization": 0.8}]})
    send = {"data": body, "content_type": "application/json"}
    address = reverse("api-telemetry-push")
    assert client.post(address, **send).status_code == 401
    assert (
        client.post(address, **send, headers={"Authorization": "Source wrong"}).status_code == 401
    )
    first = client.post(address, **send, headers={"Authorization": f"Source {token}"})
    again = client.post(address, **send, headers={"Authorization": f"Source {token}"})
    assert (first.status_code, first.json()["changed"]) == (200, 1)
    assert (again.json()["changed"], again.json()["unchanged"]) == (0, 1)
    assert len(hours()) == 1
    TelemetrySource.objects.update(active=False)
    assert (
        client.post(address, **send, headers={"Authorization": f"Source {token}"}).status_code
        == 401
    )


@pytest.mark.parametrize("mapping", ["[" * 3000, '{"teams": NaN}', '{"teams": "\\u0000"}', "{"])
def test_a_mapping_that_cannot_be_kept_is_answered_with_what_was_typed(
    client, organisation, make_user, mapping
):
    client.force_login(make_user(Role.OPERATIONS))
    fields = {"name": "smi", "kind": "nvidia_smi", "time_zone": "UTC", "ownership": "owned", "step_seconds": 60,
              "raw_days": 14, "mapping": mapping}  # fmt: skip
    page = client.post(reverse("telemetry-source-new"), fields)
    assert page.status_code == 422
    assert "id_mapping_error" in page.content.decode()
    assert mapping in html.unescape(page.content.decode())
