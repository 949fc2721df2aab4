"""What goes wrong with telemetry in the trade: parts of cards, blanks, two exporters, requeues, clock changes, bills.

Each case is a known behaviour of the tools: dcgm-exporter tells a utilisation of 0 for MIG parts, Prometheus drops
empty labels so that the exporter's own pod takes their place, sacct --duplicates repeats a number, AWS numbers lines
anew in each delivery.
"""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from planning.models import BillLine, LedgerEntry
from planning.models.telemetry import CardDay, JobRun
from planning.services.bills import post_bill
from planning.telemetry_formats import bills, jobs
from planning.telemetry_formats.prometheus import Answer, Series, api_series
from planning.telemetry_formats.samples import (
    Reading,
    Sample,
    card_of,
    from_nvidia_smi,
    from_series,
    local,
)
from tests.planning import builders
from tests.planning.telemetry import T0, feed, load, source

BERLIN = ZoneInfo("Europe/Berlin")
UTIL, ACTIVE, POWER = (
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_POWER_USAGE",
)  # fmt: skip
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"


def series(metric, *values, **labels):
    own = {"__name__": metric, "UUID": "GPU-1", "Hostname": "node1", "gpu": "0"}
    return Series(own | labels, tuple((60.0 * n, v) for n, v in enumerate(values)))


def part(metric, profile, number, *values, **labels):
    return series(metric, *values, GPU_I_PROFILE=profile, GPU_I_ID=number, **labels)


def read(*found):
    reading = Reading()
    values: dict[tuple[str, datetime, str], dict[str, float]] = {}
    for sample in from_series(found, reading):
        values.setdefault((sample.card, sample.at, sample.job), {}).update(sample.values)
    return values, reading


# --- parts of a card ---------------------------------------------------------------------------------------------


def test_the_driver_s_zero_for_a_mig_part_is_no_idle_card():
    values, reading = read(
        part(UTIL, "1g.10gb", "7", 0.0, 0.0), part(UTIL, "1g.10gb", "8", 0.0, 0.0)
    )
    assert values == {}
    assert [p.params["metric"] for p in reading.problems] == [
        UTIL
    ]  # said once, not a hundred times


def test_parts_are_joined_to_their_card_by_slices_and_unused_slices_count():
    values, _reading = read(
        part(ACTIVE, "3g.40gb", "1", 1.0, exported_pod="a"), part(ACTIVE, "2g.20gb", "3", 0.5, exported_pod="b"),
        part(USED, "3g.40gb", "1", 30.0, exported_pod="a"), part(FREE, "3g.40gb", "1", 10.0, exported_pod="a"),
        part(USED, "2g.20gb", "3", 0.0, exported_pod="b"), part(FREE, "2g.20gb", "3", 20.0, exported_pod="b"),
        part(POWER, "3g.40gb", "1", 400.0), part(POWER, "2g.20gb", "3", 400.0),
    )  # fmt: skip
    ((card, _at, job), found), = values.items()  # fmt: skip
    assert (card, job) == ("GPU-1", "")
    assert found["utilization"] == pytest.approx((3 * 1.0 + 2 * 0.5) / 7)
    assert found["memory"] == pytest.approx(30 / 60)
    assert found["power"] == 400  # the card's, told by each part: not twice


def test_a_part_that_two_series_speak_for_at_a_change_of_its_pod_counts_once():
    values, _reading = read(
        *(part(ACTIVE, "3g.40gb", "1", 0.7, exported_pod=pod) for pod in ("old", "new")),
        *(part(m, "3g.40gb", "1", 20.0, exported_pod=pod) for m in (USED, FREE) for pod in ("old", "new")),
        part(USED, "1g.10gb", "9", 5.0),  # free is not told of this one: it says nothing
    )  # fmt: skip
    (found,) = values.values()
    assert found["utilization"] == pytest.approx(3 * 0.7 / 7)
    assert found["memory"] == pytest.approx(0.5)


def test_an_a30_has_four_slices_and_a_full_card_is_not_more_than_full():
    values, _reading = read(
        *(part(ACTIVE, "2g.12gb", str(n), 1.0, modelName="NVIDIA A30") for n in (1, 2))
    )
    assert [found["utilization"] for found in values.values()] == [pytest.approx(1.0)]


# --- blanks, ranges, labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "blank", ["9223372036854775794", "2147483632", "140737488355328", "NaN", "+Inf"]
)
def test_a_blank_of_dcgm_in_an_answer_is_missing(blank):
    body = {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [{"metric": {"__name__": POWER, "UUID": "GPU-1"}, "values": [[0, blank], [60, "300"]]}],
        },
    }  # fmt: skip
    (found,) = api_series(iter([json.dumps(body).encode()]), Answer())
    assert [value for _at, value in found.points] == [None, 300.0]


@pytest.mark.parametrize("value", [-1.0, 1e9])
def test_a_power_that_no_card_draws_is_refused_with_its_limit(value):
    values, reading = read(series(POWER, value))
    assert values == {}
    assert reading.problems[0].params["limit"] == 20_000


def test_the_exporter_s_own_pod_is_no_job_and_no_host():
    idle = series(
        ACTIVE, 0.0, pod="dcgm-exporter-sn5rp", Hostname="dcgm-exporter-sn5rp", node="node7"
    )
    busy = series(ACTIVE, 0.9, pod="dcgm-exporter-sn5rp", exported_pod="train-0")
    assert [key[2] for key in read(idle)[0]] == [""]
    assert [key[2] for key in read(busy)[0]] == ["train-0"]
    assert card_of(idle.labels) == ("GPU-1", "node7")
    assert card_of({"gpu_uuid": "GPU-9", "gpu_id": "3", "hostname": "amd1"}) == ("GPU-9", "amd1")


# --- one hour in an hour -----------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_two_series_of_one_card_are_one_card_hour_and_its_mean(organisation):
    of = source()

    def told(job, utilization, minutes=range(60)):
        return [
            Sample("GPU-1", T0 + timedelta(minutes=n), "node1", "", job, {"utilization": utilization, "power": 400.0})
            for n in minutes
        ]  # fmt: skip

    feed(of, [*told("", 0.2), *told("pod-a", 0.6)])
    (day,) = CardDay.objects.all()
    assert day.hours == pytest.approx(1.0)
    assert day.utilization_sum / day.utilization_hours == pytest.approx(0.4)
    assert day.energy_kwh == pytest.approx(0.4)
    # one after the other they are what they were: half an hour each
    feed(of, [
        Sample("GPU-2", s.at, s.host, "", s.job, s.values)
        for s in (*told("a", 1.0, range(30)), *told("b", 0.0, range(30, 60)))
    ])  # fmt: skip
    other = CardDay.objects.get(card__name="GPU-2")
    assert other.hours == pytest.approx(1.0)
    assert other.utilization_sum == pytest.approx(0.5)


# --- clocks ------------------------------------------------------------------------------------------------------


def test_the_repeated_hour_is_told_apart_by_what_came_before():
    at = datetime(2026, 10, 25, 2, 30)
    assert local(at, BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    after = datetime(2026, 10, 25, 0, 45, tzinfo=UTC)
    assert local(at, BERLIN, after=after) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    noon = datetime(2026, 10, 25, 12)  # not ambiguous: a disordered file stays what it says
    assert local(noon, BERLIN, after=after + timedelta(days=1)) == datetime(
        2026, 10, 25, 11, tzinfo=UTC
    )


def test_both_passes_of_the_repeated_hour_are_kept_of_an_nvidia_smi_log():
    times = [
        "01:59:00",
        "02:00:00",
        "02:30:00",
        "02:59:00",
        "02:00:00",
        "02:30:00",
        "02:59:00",
        "03:00:00",
    ]
    text = ["timestamp, uuid, utilization.gpu [%]"]
    text += [f"2026/10/25 {t}.000, GPU-1, {n} %" for n, t in enumerate(times)]
    lines = [(n, line, None) for n, line in enumerate(text, 1)]
    found = list(from_nvidia_smi(lines, BERLIN, Reading()))
    assert len({s.at for s in found}) == len(times)
    assert found[-1].at - found[0].at == timedelta(hours=2, minutes=1)


SACCT = "JobID|State|Submit|Eligible|Start|End|ElapsedRaw|AllocTRES|JobName|Account\n"


def sacct(*rows, zone=BERLIN):
    lines = enumerate((SACCT + "\n".join(rows)).splitlines(), 1)
    return list(jobs.from_sacct(lines, zone, Reading()))


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "hours"),
    [
        ("02:10:00", "02:50:00", 2400, (0, 0)),  # both in the first pass
        ("02:10:00", "02:50:00", 6000, (0, 1)),  # the hour was repeated meanwhile
        ("02:50:00", "02:10:00", 1200, (0, 1)),
        ("01:30:00", "02:30:00", 3600, (-1, 0)),
        ("02:30:00", "03:30:00", 3600, (1, 2)),
    ],
)  # fmt: skip
def test_a_job_through_the_repeated_hour_is_as_long_as_slurm_says(start, end, elapsed, hours):
    (job,) = sacct(
        f"1|COMPLETED|2026-10-25T01:00:00|2026-10-25T01:00:00|2026-10-25T{start}|2026-10-25T{end}|{elapsed}|gres/gpu=8|t|a"
    )
    assert (job.ended - job.started).total_seconds() == elapsed
    for at, clock, hour in ((job.started, start, hours[0]), (job.ended, end, hours[1])):
        minute = int(clock[3:5])
        assert at == datetime(2026, 10, 25, 0, minute, tzinfo=UTC) + timedelta(hours=hour)


def test_a_job_that_waited_through_the_change_did_not_start_before_it_was_asked_for():
    (job,) = sacct(
        "1|RUNNING|2026-10-25T02:50:00|2026-10-25T02:50:00|2026-10-25T02:10:00|Unknown|60|gres/gpu=8|t|a"
    )
    assert job.waited == 20 * 60


# --- jobs --------------------------------------------------------------------------------------------------------


def test_a_job_cancelled_in_the_queue_never_started():
    at = "2026-11-02T09:30:44"
    older, newer, ran = sacct(
        f"1|CANCELLED by 1001|2026-11-01T00:00:00|2026-11-01T00:00:00|{at}|{at}|0||a|b",
        f"2|CANCELLED by 1001|2026-11-01T00:00:00|2026-11-01T00:00:00|None|{at}|0||a|b",
        f"3|CANCELLED by 1001|2026-11-01T00:00:00|2026-11-01T00:00:00|2026-11-02T09:30:00|{at}|44|gres/gpu=1|a|b",
    )  # fmt: skip
    assert (older.started, older.waited) == (newer.started, newer.waited) == (None, None)
    assert ran.waited is not None


DAY = "2026-11-02T"
REQUEUED = (
    f"7|PREEMPTED|{DAY}08:00:00|{DAY}08:00:00|{DAY}08:10:00|{DAY}09:00:00|3000|gres/gpu=8|t|a"
)
AGAIN = f"7|COMPLETED|{DAY}09:00:00|{DAY}09:02:00|{DAY}09:30:00|{DAY}10:30:00|3600|gres/gpu=8|t|a"
PENDING = "7|PENDING|2026-11-02T09:00:00|2026-11-02T09:02:00|Unknown|Unknown|0||t|a"


@pytest.mark.django_db
@pytest.mark.parametrize("exports", [[[REQUEUED, AGAIN]], [[REQUEUED], [AGAIN]], [[REQUEUED], [PENDING], [AGAIN]],
                                     [[REQUEUED, PENDING], [REQUEUED, AGAIN], [AGAIN]]])  # fmt: skip
def test_an_attempt_that_was_taken_away_is_kept_beside_the_next_one(organisation, exports):
    of = source("sacct", time_zone="UTC")
    for rows in [*exports, exports[-1]]:
        load(of, SACCT + "\n".join(rows) + "\n")
    runs = {run.job: run for run in JobRun.objects.all()}
    assert set(runs) == {"7", "7@20261102T081000Z"}
    assert runs["7"].state == "COMPLETED"
    assert runs["7"].waited_seconds == 28 * 60
    assert runs["7@20261102T081000Z"].interrupted


@pytest.mark.django_db
def test_a_zone_that_is_put_right_moves_a_run_and_makes_no_second_one(organisation):
    of = source("sacct", time_zone="Asia/Shanghai")
    load(of, SACCT + AGAIN + "\n")
    of.time_zone = "UTC"
    of.save()
    load(of, SACCT + AGAIN + "\n")
    (run,) = JobRun.objects.all()
    assert run.started_at == datetime(2026, 11, 2, 9, 30, tzinfo=UTC)


# --- bills -------------------------------------------------------------------------------------------------------

CUR_1 = (
    "identity/LineItemId,identity/TimeInterval,bill/InvoiceId,lineItem/UsageAccountId,lineItem/UsageStartDate,"
    "lineItem/UnblendedCost,lineItem/CurrencyCode,lineItem/ProductCode,lineItem/UsageType,lineItem/UsageAmount,"
    "lineItem/ResourceId\n"
)
CUR_2 = (
    "identity_line_item_id,line_item_usage_start_date,line_item_unblended_cost,line_item_currency_code,"
    "line_item_product_code,resource_tags\n"
)
FOCUS = "BilledCost,BillingCurrency,ChargePeriodStart,ServiceName,SkuId,ConsumedQuantity,ResourceId,Tags\n"


def lines_of(of):
    return sorted(BillLine.objects.filter(source=of).values_list("amount", flat=True))


@pytest.mark.django_db
def test_the_next_delivery_of_a_report_numbers_its_lines_anew_and_counts_them_once(organisation):
    of = source("bill")

    def row(number, amount, resource, invoice=""):
        return (
            f"{number},2026-11-01T00:00:00Z/2026-11-02T00:00:00Z,{invoice},123,2026-11-01T00:00:00Z,{amount},USD,AmazonEC2,"
            f"p5.48xlarge,1,{resource}\n"
        )

    load(of, CUR_1 + row("aaa", "10.50", "i-1") + row("bbb", "10.50", "i-2"))
    load(
        of,
        CUR_1
        + row("ccc", "10.50", "i-2", "INV")
        + row("ddd", "11.25", "i-1", "INV")
        + row("eee", "1", "i-3"),
    )
    assert lines_of(of) == [Decimal(1), Decimal("10.50"), Decimal("11.25")]
    # what was taken back to nothing does not stay
    load(of, CUR_1 + row("fff", "0", "i-3") + row("ggg", "0", "i-4"))
    assert lines_of(of) == [Decimal("10.50"), Decimal("11.25")]


@pytest.mark.django_db
def test_what_a_later_delivery_takes_back_is_taken_back_in_the_ledger():
    w = builders.world()
    of = source("bill", currency="CNY")
    head = "lineItem/UsageStartDate,lineItem/UnblendedCost,lineItem/CurrencyCode,resourceTags/user:team\n"
    load(of, head + f"2026-11-01T00:00:00Z,40,CNY,{w.team.slug}\n")
    assert post_bill(source_id=of.pk, by=w.finance)[0] == 1
    load(of, head + f"2026-11-01T00:00:00Z,0,CNY,{w.team.slug}\n")
    assert post_bill(source_id=of.pk, by=w.finance) == (1, [])
    assert sum(LedgerEntry.objects.filter(bucket="actual").values_list("amount", flat=True)) == 0
    assert post_bill(source_id=of.pk, by=w.finance) == (0, [])


@pytest.mark.django_db
def test_tags_in_one_column_and_focus_exports_are_read(organisation, team):
    cur = source("bill")
    tags = json.dumps({"user_team": team.slug}).replace('"', '""')
    load(cur, CUR_2 + f'x,2026-11-01T00:00:00.000Z,5,USD,AmazonEC2,"{tags}"\n')
    assert BillLine.objects.get(source=cur).team == team
    focus = source("bill")
    tags = json.dumps({"Team": team.slug}).replace('"', '""')
    load(focus, FOCUS + f'1.25E-1,USD,2026-11-01 00:00:00,Compute,sku,2,vm-1,"{tags}"\n')
    line = BillLine.objects.get(source=focus)
    assert (line.team, line.amount, line.service) == (team, Decimal("0.125"), "Compute")


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1,234.50", "1234.50"), ("1,234,567", "1234567"), ("-0.25", "-0.25"), ("1E-3", "0.001")],
)
def test_grouped_amounts_are_read(text, amount):
    (line,) = bills.lines(
        [(2, {"d": "2026-11-01", "a": text})],
        {"day": "d", "amount": "a"},
        Reading(),
        currency="USD",
    )
    assert line.amount == Decimal(amount)


@pytest.mark.parametrize("text", ["12,50", "1.234,56", "1,23", "NaN", "1e30"])
def test_an_amount_that_could_mean_two_things_is_refused_not_guessed(text):
    reading = Reading()
    rows = [(2, {"d": "2026-11-01", "a": text})]
    assert list(bills.lines(rows, {"day": "d", "amount": "a"}, reading, currency="USD")) == []
    assert reading.problems[0].params["value"] == text
