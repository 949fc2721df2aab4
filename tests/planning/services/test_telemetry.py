"""Telemetry into the store: the same data twice changes nothing, late data merge, gaps stay gaps."""

import json
import os
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import numpy as np
import pytest
from django.core.files.base import ContentFile
from django.db import connection

from core.errors import InputError, InvalidTransition, NotPermitted
from core.models import AuditEntry, Job, StoredFile
from core.money import Money
from core.organisation import organisation as the_organisation
from core.roles import Role
from planning.models import (
    BillLine,
    CardDay,
    ClusterUse,
    HourSamples,
    JobRun,
    LedgerEntry,
    PoolDay,
    TelemetrySource,
)
from planning.models.telemetry import CardHour, CardSeries, Ingestion, TelemetryCard
from planning.selectors.telemetry import fleet
from planning.services import bills, spending, telemetry_load, telemetry_pull, telemetry_sources
from planning.services.telemetry_store import Hours, store_hours
from planning.states import RequestStatus
from tests.planning import builders
from tests.planning.telemetry import T0, feed, hours, load, prometheus_answer, samples, source

pytestmark = pytest.mark.django_db

SMI = """timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]
2026/11/02 16:00:00.000, 0, GPU-1, NVIDIA H100 80GB HBM3, 50 %, 40000 MiB, 80000 MiB, 600.00 W
2026/11/02 16:01:00.000, 0, GPU-1, NVIDIA H100 80GB HBM3, 100 %, 40000 MiB, 80000 MiB, 700.00 W
2026/11/02 16:02:00.000, 0, GPU-1, NVIDIA H100 80GB HBM3, [N/A], 40000 MiB, 80000 MiB, [N/A]
"""


def test_a_file_becomes_an_hour_in_the_zone_of_its_source(organisation):
    row = load(source("nvidia_smi", time_zone="Asia/Shanghai"), SMI)
    (hour,) = hours()
    assert hour["hour"] == datetime(2026, 11, 2, 8, tzinfo=UTC)
    assert (hour["samples"], hour["covered"]) == (3, 180)
    assert hour["utilization_mean"] == pytest.approx(0.75)
    assert hour["utilization_max"] == pytest.approx(1.0)
    assert hour["memory_mean"] == pytest.approx(0.5)
    assert hour["power_mean"] == pytest.approx(650)
    assert hour["sm_mean"] is None  # not told is not zero
    assert (row.status, row.read, row.changed) == ("done", 3, 1)


def test_the_same_file_twice_changes_nothing(organisation):
    of = source("nvidia_smi")
    load(of, SMI)
    before = hours()
    again = load(of, SMI)
    assert hours() == before
    assert (again.changed, again.unchanged) == (0, 1)
    assert CardDay.objects.count() == PoolDay.objects.count() == 1


def receive(of, text, by=None):
    return telemetry_sources.receive_file(
        source_id=of.pk, upload=ContentFile(text.encode(), name="smi.csv"), by=by
    )


def test_a_file_of_a_source_is_kept_once_unless_it_failed_or_is_read_by_other_rules(organisation):
    of, other = source("nvidia_smi"), source("nvidia_smi")
    first, is_new = receive(of, SMI)
    assert (is_new, first.sha256, first.source_version) == (True, first.file.sha256, of.version)
    again, is_new = receive(of, SMI)
    assert (again, is_new) == (first, False)
    assert StoredFile.objects.count() == Job.objects.count() == 1
    assert AuditEntry.objects.filter(action="telemetry.received").count() == 1
    assert receive(other, SMI)[1]
    assert receive(of, SMI + "\n")[1]
    Ingestion.objects.filter(pk=first.pk).update(status="failed")
    retried, is_new = receive(of, SMI)
    assert is_new
    assert receive(of, SMI) == (retried, False)
    TelemetrySource.objects.filter(pk=of.pk).update(version=of.version + 1)
    assert receive(of, SMI)[1]


def test_late_and_shuffled_samples_give_the_same_hour_as_all_in_order(organisation):
    whole = [
        s
        for n in range(60)
        for s in samples(start=T0 + timedelta(minutes=n), minutes=1, utilization=n / 60)
    ]
    in_order, shuffled = source(), source()
    feed(in_order, whole)
    mixed = list(whole)
    np.random.default_rng(7).shuffle(mixed)
    for start in range(0, 60, 13):
        feed(shuffled, mixed[start : start + 13])
    names = [f for f in hours()[0] if f not in ("series_id",)]
    first, second = hours()
    assert {n: first[n] for n in names} == {n: second[n] for n in names}


def test_a_gap_is_a_gap_in_hours_and_sums(organisation):
    feed(source(), samples(minutes=30, utilization=0.6, power=600.0))
    (hour,) = hours()
    assert hour["covered"] == 1800
    day = CardDay.objects.get()
    assert day.hours == pytest.approx(0.5)
    assert day.energy_kwh == pytest.approx(0.3)
    found = fleet(first=date(2026, 10, 1), last=date(2027, 1, 1), organisation=organisation)
    assert found.total.utilization == pytest.approx(0.6)
    assert found.total.covered == pytest.approx(0.5 / (92 * 24))


def test_after_the_window_the_fuller_reading_stands_and_the_load_says_so(organisation):
    of = source()
    feed(of, samples(minutes=60, utilization=0.5))
    HourSamples.objects.update(touched_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert telemetry_load.drop_old_samples() == 1
    late = feed(of, samples(minutes=5, utilization=1.0))
    assert hours()[0]["utilization_mean"] == pytest.approx(0.5)
    assert late.too_late == 1
    assert "too late" in late.problems[0]["template"]
    assert feed(of, samples(minutes=60, utilization=0.5)).unchanged == 1


def test_figures_of_one_instant_from_several_series_join(organisation):
    of = source("prometheus", url="http://127.0.0.1:1")
    feed(of, [s for s in samples(minutes=60)])
    feed(
        of,
        [
            type(s)(s.card, s.at, s.host, s.model, s.job, {"power": 700.0})
            for s in samples(minutes=60)
        ],
    )
    (hour,) = hours()
    assert (hour["samples"], hour["utilization_mean"], hour["power_mean"]) == (60, 0.5, 700.0)


def test_bad_rows_are_told_and_the_good_ones_are_kept(organisation):
    of = source()
    row = telemetry_sources.push(
        source=of,
        items=[
            {"card": "GPU-1", "at": "2026-11-02T08:00:00Z", "utilization": 0.4},
            {"card": "GPU-1", "at": "2026-11-02T08:01:00", "utilization": 0.4},
            {"card": "GPU-1", "at": "2026-11-02T08:02:00Z", "utilization": 40},
            "nothing",
        ],
    )
    assert (row.read, row.refused) == (1, 3)
    assert row.problems[0]["template"].endswith("at has no time zone")


def test_the_repeated_hour_of_autumn_is_read_as_its_first(organisation):
    load(
        source("nvidia_smi", time_zone="Europe/Berlin"),
        SMI.replace("2026/11/02 16", "2026/10/25 02"),
    )
    assert hours()[0]["hour"] == datetime(2026, 10, 25, 0, tzinfo=UTC)


# --- the store ---------------------------------------------------------------------------------------------------


def series(count: int) -> list[int]:
    of = source()
    cards = TelemetryCard.objects.bulk_create(
        TelemetryCard(source=of, name=f"GPU-{n}", ownership="owned") for n in range(count)
    )
    return [s.pk for s in CardSeries.objects.bulk_create(CardSeries(card=c) for c in cards)]


def rows(
    ids: list[int], *, samples: int = 60, figure: float | None = 0.5, hour: datetime = T0
) -> Hours:
    return Hours.of((hour, pk, samples, 3600, (figure, None, 0.25) + (None,) * 8) for pk in ids)


def test_rows_come_back_as_they_went_in(organisation):
    (pk,) = series(1)
    figures = (0.1, 0.2, None, 0.3, None, 0.4, 0.5, 0.6, 700.0, None, 710.5)
    assert store_hours(Hours.of([(T0, pk, 60, 3600, figures)])) == 1
    (hour,) = hours()
    names = list(hour)[-12:]
    found = [hour[n] for n in names if n != "series_id"]
    assert [None if v is None else round(v, 5) for v in found[-11:]] == [
        None if f is None else f for f in figures
    ]
    assert hour["hour"] == T0


def test_rows_merge_by_the_number_of_their_samples(organisation):
    ids = series(3)
    assert store_hours(rows(ids)) == 3
    assert store_hours(rows(ids)) == 0
    assert store_hours(rows(ids, samples=30, figure=0.9)) == 0
    assert store_hours(rows(ids, samples=60, figure=0.9)) == 3
    assert store_hours(rows(ids, samples=10, figure=0.1), replace=True) == 3
    assert CardHour.objects.filter(utilization_mean__lt=0.2).count() == 3


def test_a_batch_that_holds_a_row_twice_keeps_the_fuller(organisation):
    (pk,) = series(1)
    both = [(T0, pk, 5, 300, (0.1,) + (None,) * 10), (T0, pk, 60, 3600, (0.5,) + (None,) * 10)]
    store_hours(Hours.of(both))
    assert hours()[0]["samples"] == 60


@pytest.mark.skipif(connection.vendor != "postgresql", reason="partitions are PostgreSQL's")
def test_hours_lie_in_a_partition_of_their_month(organisation):
    (pk,) = series(1)
    store_hours(rows([pk], hour=datetime(2026, 12, 31, 23, tzinfo=UTC)))
    store_hours(rows([pk], hour=datetime(2027, 1, 1, tzinfo=UTC)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM planning_cardhour ORDER BY hour")
        assert [row[0] for row in cursor.fetchall()] == [
            "planning_cardhour_2026_12",
            "planning_cardhour_2027_01",
        ]


# --- jobs --------------------------------------------------------------------------------------------------------

SACCT = """JobID|JobName|Account|State|Submit|Eligible|Start|End|ElapsedRaw|AllocTRES
101|train|{slug}|COMPLETED|2026-11-02T08:00:00|2026-11-02T08:00:00|2026-11-02T10:00:00|2026-11-02T12:00:00|7200|gres/gpu=8
101.0|step|{slug}|COMPLETED|2026-11-02T08:00:00|2026-11-02T08:00:00|2026-11-02T10:00:00|2026-11-02T12:00:00|7200|gres/gpu=8
102|train|other|NODE_FAIL|2026-11-02T08:00:00|2026-11-02T09:00:00|2026-11-02T09:30:00|2026-11-02T12:00:00|9000|gres/gpu=8
"""


def test_slurm_jobs_carry_team_wait_and_interruption(organisation, team):
    of = source("sacct", time_zone="Asia/Shanghai")
    text = SACCT.format(slug=team.slug)
    load(of, text)
    first, second = JobRun.objects.order_by("job")
    assert (first.team, first.waited_seconds, first.cards, first.interrupted) == (
        team,
        7200,
        8,
        False,
    )
    assert first.started_at == datetime(2026, 11, 2, 2, tzinfo=UTC)
    assert (second.team, second.waited_seconds, second.interrupted) == (None, 1800, True)
    again = load(of, text)
    assert (again.changed, again.unchanged, JobRun.objects.count()) == (0, 2, 2)


def test_an_older_export_does_not_undo_a_newer_one(organisation):
    of = source("sacct")
    pending = (
        SACCT.format(slug="x")
        .replace("COMPLETED", "PENDING")
        .replace("|2026-11-02T10:00:00|2026-11-02T12:00:00|7200", "|Unknown|Unknown|0")
    )
    load(of, SACCT.format(slug="x"))
    load(of, pending)
    assert JobRun.objects.get(job="101").state == "COMPLETED"


POD = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}]}


def test_volcano_and_plain_kubernetes_jobs_are_read(organisation):
    items = [
        {
            "kind": "Job", "metadata": {"name": "vc", "namespace": "nlp", "creationTimestamp": "2026-11-02T08:00:00Z"},
            "spec": {"tasks": [{"replicas": 4, "template": {"spec": POD}}]},
            "status": {"state": {"phase": "Completed", "lastTransitionTime": "2026-11-02T12:00:00Z"},
                       "conditions": [{"status": "Running", "lastTransitionTime": "2026-11-02T09:00:00Z"}]},
        },
        {
            "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "2026-11-02T08:00:00Z"},
            "spec": {"containers": [{"resources": {}}]},
            "status": {"phase": "Failed", "reason": "Evicted", "startTime": "2026-11-02T08:01:00Z"},
        },
    ]  # fmt: skip
    load(source("kubernetes"), json.dumps({"kind": "List", "items": items}))
    volcano, pod = JobRun.objects.order_by("-job")
    assert (volcano.job, volcano.cards, volcano.waited_seconds) == ("nlp/vc", 32, 3600)
    assert volcano.ended_at == datetime(2026, 11, 2, 12, tzinfo=UTC)
    assert (pod.cards, pod.interrupted) == (None, True)


def test_any_table_of_jobs_by_a_saved_mapping(organisation, team):
    columns = {
        "job": "Job ID",
        "account": "Project",
        "submitted": "Queued",
        "started": "Started",
        "cards": "GPUs",
    }
    of = source(
        "job_table",
        time_zone="Asia/Shanghai",
        mapping={"columns": columns, "teams": {"nlp*": team.slug}},
    )
    load(
        of,
        "Job ID,Project,Queued,Started,GPUs\nj1,nlp-a,2026-11-02 08:00,2026-11-02 09:00,4\nj2,x,soon,,4\n",
    )
    (run,) = JobRun.objects.all()
    assert (run.team, run.waited_seconds, run.cards) == (team, 3600, 4)
    assert of.ingestions.get().refused == 1


def test_sreport_hours_are_kept_apart_from_samples(organisation):
    text = (
        "Cluster Utilization 2026-11-01T00:00:00 - 2026-11-30T23:59:59 (2592000 secs)\nUsage reported in TRES Hours\n"
        "Cluster|TRES Name|Allocated|Down|PLND Down|Idle|Planned|Reported\ntrain|gres/gpu|700|20|0|280|0|1000\n"
    )
    of = source("sreport")
    assert load(of, text).changed == 1
    assert ClusterUse.objects.get().hours["Idle"] == 280
    assert load(of, text).unchanged == 1


def test_waiting_jobs_count_and_percentiles_are_told(organisation):
    of = source("sacct")
    for n, waited in enumerate([60, 120, 180, 3600]):
        JobRun.objects.create(
            source=of,
            job=str(n),
            submitted_at=T0,
            started_at=T0 + timedelta(seconds=waited),
            waited_seconds=waited,
        )
    JobRun.objects.create(
        source=of, job="waits", submitted_at=datetime(2026, 12, 31, 12, tzinfo=UTC)
    )
    queue = fleet(first=date(2026, 10, 1), last=date(2027, 1, 1), organisation=organisation).queue
    assert queue.jobs == 5
    assert queue.longest == pytest.approx(4 * 3600)  # until the end of the span in Shanghai
    assert queue.p50 == 180


# --- Prometheus --------------------------------------------------------------------------------------------------


@pytest.fixture
def prometheus():
    """A server on loopback that answers range queries and remembers what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append((self.path, self.headers.get("Authorization"), body))
            if self.headers.get("Authorization") not in (None, "Bearer s3cret"):
                self.send_response(401)
                self.end_headers()
                return
            answer = prometheus_answer(
                float(body["start"][0]), float(body["end"][0]), int(body["step"][0])
            )
            if self.path.startswith("/partial/"):
                said = b'{"warnings":["store 2 timed out"],'
                answer = answer.replace(b"{", said, 1)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_pull_asks_from_where_the_last_one_ended(organisation, prometheus, monkeypatch):
    address, asked = prometheus
    monkeypatch.setitem(os.environ, "TELEMETRY_TOKEN_DCGM", "s3cret")
    of = source(
        "prometheus", url=address, token_name="dcgm", pulled_until=T0, matchers='cluster="train"'
    )
    row = telemetry_pull.pull(source_id=of.pk, until=T0 + timedelta(hours=3, minutes=20))
    path, token, body = asked[0]
    assert (path, token) == ("/api/v1/query_range", "Bearer s3cret")
    assert 'cluster="train"' in body["query"][0]
    assert len(asked) == 1
    assert len(hours()) == 5  # three new hours, and the two before them asked for again
    assert hours()[0]["memory_mean"] == pytest.approx(0.75)
    of.refresh_from_db()
    assert of.pulled_until == T0 + timedelta(hours=3)
    again = telemetry_pull.pull(source_id=of.pk, until=T0 + timedelta(hours=3, minutes=50))
    assert (row.changed, again.changed, again.unchanged) == (5, 0, 2)


def test_an_answer_that_may_lack_data_says_so(organisation, prometheus):
    address, _asked = prometheus
    of = source("prometheus", url=f"{address}/partial", pulled_until=T0)
    row = telemetry_pull.pull(source_id=of.pk, until=T0 + timedelta(hours=1))
    assert row.read > 0
    assert [problem["params"] for problem in row.problems] == [{"problem": "store 2 timed out"}]


def test_a_server_that_refuses_is_told_and_nothing_moves(organisation, prometheus, monkeypatch):
    address, _asked = prometheus
    monkeypatch.setitem(os.environ, "TELEMETRY_TOKEN_WRONG", "no")
    of = source("prometheus", url=address, token_name="wrong", pulled_until=T0)
    with pytest.raises(telemetry_pull.SourceUnreachable, match="401"):
        telemetry_pull.pull(source_id=of.pk, until=T0 + timedelta(hours=3))
    of.refresh_from_db()
    assert of.pulled_until == T0
    assert of.ingestions.get().status == "failed"
    missing = source("prometheus", url=address, token_name="absent")
    with pytest.raises(telemetry_pull.SourceUnreachable, match="TELEMETRY_TOKEN_ABSENT"):
        telemetry_pull.pull(source_id=missing.pk)


# --- bills -------------------------------------------------------------------------------------------------------

CUR = (
    "identity/LineItemId,lineItem/UsageStartDate,lineItem/UnblendedCost,lineItem/CurrencyCode,lineItem/ProductCode,"
    "resourceTags/user:team\n"
    "a1,2026-11-01T00:00:00Z,100.25,CNY,AmazonEC2,{slug}\n"
    "a2,2026-11-02T00:00:00Z,0,CNY,AmazonEC2,{slug}\n"
    "a3,2026-11-03T00:00:00Z,-0.25,CNY,AmazonEC2,{slug}\n"
    "a4,2026-11-03T00:00:00Z,7,CNY,AmazonS3,\n"
)


def test_a_bill_becomes_one_actual_entry_however_often_it_is_posted():
    w = builders.world()
    of = source("bill", currency="CNY")
    load(of, CUR.format(slug=w.team.slug))
    posted, left = bills.post_bill(source_id=of.pk, by=w.finance)
    assert posted == 1
    assert "7.00 CNY" in str(left[0])  # belongs to nobody: told, not guessed
    assert "cloud budget of 2026Q4" in str(left[0])  # and where it would go
    entry = LedgerEntry.objects.get(bucket="actual")
    assert (entry.amount, entry.budget.kind, entry.budget.team) == (Decimal(100), "cloud", w.team)
    again = load(of, CUR.format(slug=w.team.slug))
    assert (again.changed, BillLine.objects.count()) == (0, 3)
    assert bills.post_bill(source_id=of.pk, by=w.finance)[0] == 0
    load(
        of,
        CUR.format(slug=w.team.slug) + f"a9,2026-11-09T00:00:00Z,50,CNY,AmazonEC2,{w.team.slug}\n",
    )
    assert bills.post_bill(source_id=of.pk, by=w.finance)[0] == 1
    assert sum(
        LedgerEntry.objects.filter(bucket="actual").values_list("amount", flat=True)
    ) == Decimal(150)


def test_a_line_tagged_with_a_request_draws_on_what_stands_for_it():
    w = builders.world()
    request = builders.approved(w, "1000", budget="cloud", plan_mode="on_demand")
    columns = {"day": "Date", "amount": "Cost", "request": "Ref", "currency": "Cur"}
    of = source("bill", mapping={"columns": columns})
    load(of, f"Date,Cost,Ref,Cur\n2026-11-01,400,{request.reference},CNY\n")
    assert bills.post_bill(source_id=of.pk, by=w.finance) == (1, [])
    assert builders.held_sums(request) == {
        "reserved": 0,
        "approved": 600,
        "committed": 0,
        "actual": 400,
    }


def test_only_finance_posts_bills():
    w = builders.world()
    of = source("bill", currency="CNY")
    with pytest.raises(NotPermitted):
        bills.post_bill(source_id=of.pk, by=w.operations)


def test_a_bill_without_the_needed_columns_is_refused_by_name(organisation):
    with pytest.raises(InputError, match="day"):
        load(source("bill"), "Date,Whatever\n2026-11-01,1\n")


# --- sources -----------------------------------------------------------------------------------------------------


def test_only_operations_and_administrators_keep_sources(organisation, make_user):
    for role in (Role.OPERATIONS, Role.ADMINISTRATOR):
        telemetry_sources.create_source(by=make_user(role), name=role.value, kind="push")
    for role in (Role.FINANCE, Role.AUDITOR, Role.REQUESTER, Role.APPROVER):
        with pytest.raises(NotPermitted):
            telemetry_sources.create_source(by=make_user(role), name="no", kind="push")
    assert TelemetrySource.objects.count() == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "ftp://host"), ("step_seconds", 0), ("accelerator_slug", "h900"), ("time_zone", "Mars/Base"),
        ("mapping", {"team": {"a": "b"}}), ("mapping", {"teams": {"a": 1}}),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_by_name(organisation, make_user, field, value):
    fields = {"name": "p", "kind": "prometheus", "url": "http://127.0.0.1:9090", field: value}
    with pytest.raises(InputError) as caught:
        telemetry_sources.create_source(by=make_user(Role.OPERATIONS), **fields)
    assert caught.value.field == field


def test_a_push_token_is_kept_as_a_hash_and_the_next_one_replaces_it(organisation, make_user):
    by = make_user(Role.OPERATIONS)
    of = source("push")
    first = telemetry_sources.issue_token(source_id=of.pk, by=by)
    second = telemetry_sources.issue_token(source_id=of.pk, by=by)
    assert telemetry_sources.source_of_token(first) is None
    assert telemetry_sources.source_of_token(second) == of
    assert first not in TelemetrySource.objects.get().push_token_hash
    with pytest.raises(InvalidTransition):
        telemetry_sources.issue_token(source_id=source("sacct").pk, by=by)


def test_the_organisation_decides_which_day_an_hour_belongs_to(organisation):
    feed(source(), samples(start=datetime(2026, 11, 2, 16, tzinfo=UTC)))  # midnight in Shanghai
    assert CardDay.objects.get().day == date(2026, 11, 3)
    assert the_organisation().time_zone == "Asia/Shanghai"


def test_a_useful_hour_bears_a_purchase_over_its_years_and_a_bill_at_once(time_machine):
    """A purchase's whole price in the month of its invoice would say that an hour cost what a card does."""
    w = builders.world()
    time_machine.move_to("2026-10-20T04:00:00Z", tick=False)
    request = builders.at(w, RequestStatus.SOURCING)
    bought = Money(Decimal(1000), "CNY")
    spending.commit(request_id=request.pk, amount=bought, source="order:1", by=w.procurement)
    spending.post_actual(request_id=request.pk, amount=bought, source="invoice:1", by=w.finance)
    feed(source(), samples(minutes=60, utilization=0.5))  # half a useful hour on one day
    found = fleet(first=date(2026, 10, 1), last=date(2027, 1, 1), organisation=the_organisation())
    assert found.spent == bought
    assert (
        found.cost_per_useful_hour
        == Money(Decimal(1000) / (4 * Decimal("365.25")) / Decimal("0.5"), "CNY").rounded()
    )


def test_why_a_useful_hour_has_no_cost_is_told_as_it_is(organisation):
    def holes() -> list[str]:
        span = {"first": date(2026, 10, 1), "last": date(2027, 1, 1)}
        return [str(hole) for hole in fleet(organisation=the_organisation(), **span).holes]

    assert not any("cost" in hole for hole in holes())  # that no source told anything says enough
    feed(source(), samples(minutes=60, utilization=0.0))
    assert any("did no work" in hole for hole in holes())
    feed(source(), samples(minutes=60, utilization=0.5, card="GPU-2"))
    assert any("No spending falls into this span" in hole for hole in holes())
