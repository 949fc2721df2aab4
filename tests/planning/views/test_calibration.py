"""The calibration page and its API."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from core.roles import Role
from planning.models import CalibrationVersion, MeasuredOutcome
from planning.services import calibration
from tests.factories import TeamFactory
from tests.planning.services.test_calibration import outcome

pytestmark = pytest.mark.django_db
PAGE = "calibration"


def test_the_page_shows_factors_scatter_errors_and_versions(client, organisation, make_user):
    for n in range(12):
        outcome(n, 0.8)
    outcome(99, 9.0)
    calibration.learn()
    client.force_login(make_user(Role.OPERATIONS))
    page = client.get(reverse(PAGE)).content.decode()
    for words in ("In force: version 1", "Predicted against measured", "Error by class over time", "Outlier",
                  "outside its band", "Between P10 and P90"):  # fmt: skip
        assert words in page


def test_a_team_sees_its_outcomes_only(client, organisation, make_user, team):
    outcome(1, team=team, reference="ours")
    outcome(2, team=TeamFactory(), reference="theirs")
    client.force_login(make_user(Role.REQUESTER, team=team))
    page = client.get(reverse(PAGE)).content.decode()
    assert "ours" in page
    assert "theirs" not in page
    names = [row["reference"] for row in client.get(reverse("api-outcomes")).json()["results"]]
    assert names == ["ours"]
    hidden = MeasuredOutcome.objects.get(reference="theirs")
    assert client.post(reverse("outcome-leave-out", args=[hidden.pk])).status_code == 404
    assert (
        client.post(reverse("api-outcome-leave-out", args=[hidden.pk]), {"reason": "x"}).status_code
        == 404
    )


def test_readers_may_not_teach_by_page_or_api(client, organisation, make_user):
    outcome(1)
    client.force_login(make_user(Role.AUDITOR))
    for name in ("calibration-learn", "calibration-choose"):
        assert client.post(reverse(name)).status_code == 403
    assert client.post(reverse("api-calibration")).status_code == 403
    body = {"number": None}
    answer = client.post(reverse("api-calibration-choose"), body, content_type="application/json")
    assert answer.status_code == 403
    assert not CalibrationVersion.objects.exists()


def test_an_outcome_is_recorded_learned_and_taken_back_by_page_and_api(
    client, organisation, make_user
):
    client.force_login(make_user(Role.OPERATIONS))
    wrong = {
        "reference": "r",
        "kind": "speed",
        "estimated": "100",
        "measured": "80",
        "unit": "tokens/s",
        "measured_at": "2026-11-02T08:00",
    }
    answer = client.post(reverse("outcome-record"), wrong)
    assert answer.status_code == 422
    assert 'value="tokens/s"' in answer.content.decode()
    body = {
        **wrong,
        "reference": "api",
        "accelerator_slug": "nvidia-h100-sxm5-80gb",
        "work": "training",
        "measured_at": "2026-11-02T08:00:00Z",
    }
    assert (
        client.post(reverse("api-outcomes"), body, content_type="application/json").status_code
        == 201
    )
    assert (
        client.post(reverse("api-outcomes"), body, content_type="application/json").status_code
        == 201
    )
    assert MeasuredOutcome.objects.count() == 1
    assert client.post(reverse("api-calibration")).status_code == 201
    assert client.post(reverse("api-calibration")).status_code == 204
    assert client.post(reverse("calibration-choose")).status_code == 302
    assert not CalibrationVersion.objects.filter(active=True).exists()
    assert client.post(reverse("calibration-choose"), {"number": "1"}).status_code == 302
    assert CalibrationVersion.objects.get(active=True).chosen
    assert client.post(reverse("calibration-choose"), {"number": "77"}).status_code == 404


def test_queries_do_not_grow_with_outcomes(client, organisation, make_user):
    client.force_login(make_user(Role.OPERATIONS))
    outcome(0)

    def count():
        with CaptureQueriesContext(connection) as found:
            assert client.get(reverse(PAGE)).status_code == 200
        return len(found)

    before = count()
    for n in range(1, 25):
        outcome(n)
    assert count() == before <= 15


def test_each_kind_has_its_scatter_with_bands_and_the_line_on_which_the_estimate_is_right(
    client, organisation, make_user
):
    outcome(1, 0.8, low=50.0, high=150.0)
    outcome(2, 1.0, low=None, high=None)  # nobody told a band
    client.force_login(make_user(Role.OPERATIONS, language="en"))
    charts = {c.title: c for c in client.get(reverse(PAGE)).context["charts"]}
    (name,) = [title for title in charts if title.startswith("Predicted against measured")]
    chart = charts[name]
    assert chart.columns[-2:] == ("P10", "P90")
    assert {row[-2:] for row in chart.rows} == {(50.0, 150.0), (None, None)}
    coverage = charts["Coverage of P10 to P90 over time"]
    assert [row[2] for row in coverage.rows] == [100.0]


def test_promised_speeds_are_told_by_vendor_to_those_who_may_see_them(
    client, organisation, make_user, team
):
    for n, (vendor, measured) in enumerate([("浪潮", 99.0), ("浪潮", 80.0), ("Other", 101.0)]):
        row = outcome(n, measured / 100, low=95.0, high=105.0)
        MeasuredOutcome.objects.filter(pk=row.pk).update(
            work="benchmark", vendor=vendor, estimated=100.0, measured=measured
        )
    client.force_login(make_user(Role.OPERATIONS, language="en"))
    rows = client.get(reverse(PAGE)).context["benchmarks"]
    assert [row[:3] for row in rows] == [["Other", "1", "1 (100 %)"], ["浪潮", "2", "1 (50 %)"]]
    client.force_login(make_user(Role.REQUESTER, team=team))
    assert client.get(reverse(PAGE)).context["benchmarks"] == []
