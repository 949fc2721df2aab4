"""The trouble finder: complete, ranked by answers and telemetry, on page and API."""

import pytest
from django.urls import reverse

from core.organisation import today
from core.roles import Role
from planning.month_one_rules import Finding, Rules, finding
from planning.trouble import DAY, Signs, ranked
from planning.trouble_table import BY_KEY, SYMPTOMS
from tests.planning.telemetry import feed, samples, source

NOTHING = Signs()
SHOWN = (
    NOTHING,
    Signs(0.1, 0.1, 0.2, 2 * DAY, 3, 2),
    Signs(0.9, 0.3, 0.95, 2 * DAY, 3, 0),
    Signs(0.1, queue=10),
)


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda s: s.key)
def test_each_cause_has_a_check_and_a_remedy_and_names_real_questions(symptom):
    questions = {q.key for q in symptom.questions}
    assert len(symptom.causes) >= 3
    for cause in symptom.causes:
        assert cause.checks
        assert cause.remedies
        assert set(cause.yes) <= questions
        assert (cause.sign is None) == (cause.shown is None)
    assert questions == {key for cause in symptom.causes for key in cause.yes}


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda s: s.key)
def test_each_cause_can_come_first(symptom):
    for cause in symptom.causes:
        helped = {key: weight > 0 for key, weight in cause.yes.items()}
        others = {q.key: any(c.yes.get(q.key, 0) < 0 for c in symptom.causes if c is not cause)
                  for q in symptom.questions if q.key not in helped}  # fmt: skip
        places = [
            ranked(symptom, answers, signs)[0].cause.key
            for answers in (helped, {**others, **helped})
            for signs in SHOWN
        ]
        assert cause.key in places, cause.key


def test_telemetry_moves_a_cause_up_and_says_so():
    symptom = BY_KEY["idle-cards"]
    first = ranked(symptom, {}, Signs(utilization=0.1, queue=2 * DAY))[0]
    assert (first.cause.key, first.by_telemetry) == ("scheduling", True)
    assert ranked(symptom, {}, Signs(utilization=0.1, queue=60))[0].cause.key == "oversized"
    assert not any(one.by_telemetry for one in ranked(symptom, {}, NOTHING))


@pytest.mark.parametrize(
    ("utilization", "queue", "found"),
    [
        (0.2, 60, Finding.OVERSIZED), (0.2, 2 * DAY, Finding.SCHEDULING), (0.7, 2 * DAY, Finding.INSUFFICIENT),
        (0.7, 60, Finding.FITS), (None, None, Finding.UNKNOWN), (0.7, None, Finding.UNKNOWN),
        (0.2, None, Finding.OVERSIZED), (None, 2 * DAY, Finding.INSUFFICIENT), (0.30, DAY, Finding.FITS),
    ],
)  # fmt: skip
def test_the_method_names_each_finding(utilization, queue, found):
    assert finding(utilization, queue, Rules()) is found


@pytest.mark.django_db
def test_pages_and_api_rank_by_the_same_answers(client, organisation, make_user, team):
    client.force_login(make_user(Role.REQUESTER, team=team))
    assert client.get(reverse("trouble")).status_code == 200
    answers = {"grows": "yes", "at_start": "no"}
    page = client.get(reverse("trouble-detail", args=["out-of-memory"]), answers).content.decode()
    assert page.index("keeps tensors alive") < page.index("batch is too large")
    body = client.get(reverse("api-trouble-detail", args=["out-of-memory"]), answers).json()
    assert body["causes"][0]["key"] == "leak"
    assert len(client.get(reverse("api-trouble")).json()) == len(SYMPTOMS)
    for name in ("trouble-detail", "api-trouble-detail"):
        assert client.get(reverse(name, args=["no-such"])).status_code == 404


@pytest.mark.django_db
def test_only_the_readers_own_telemetry_counts(client, organisation, make_user, team):
    from datetime import UTC, datetime, time

    start = datetime.combine(today(), time(0), tzinfo=UTC)
    feed(source(team=team), samples(start=start, utilization=0.1))
    address = reverse("trouble-detail", args=["low-throughput"])
    client.force_login(make_user(Role.REQUESTER, team=team))
    assert "less than a third busy" in client.get(address).content.decode()
    client.force_login(make_user(Role.REQUESTER))
    assert "less than a third busy" not in client.get(address).content.decode()
