"""Live samples: bound by serial number or UUID, breaks start the clock again, a complete log becomes evidence."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from core.errors import InputError, NotPermitted
from core.models import AuditEntry, Notice
from procurement.models import (
    Asset,
    BurnInRun,
    EvidenceFile,
    LiveCard,
    LiveChunk,
    LiveFeed,
    PurchaseOrder,
)
from procurement.services import burn_in
from procurement.services.evidence import read_file
from procurement.services.live import (
    feed_of_token,
    issue_feed_token,
    push_samples,
    seal_finished,
    watch_feeds,
)
from tests.procurement import builders as b

pytestmark = pytest.mark.django_db

HEAD = (
    "timestamp, name, serial, uuid, pci.bus_id, temperature.gpu, utilization.gpu [%], power.draw [W], "
    "clocks.current.sm [MHz], clocks_event_reasons.active, ecc.errors.uncorrected.volatile.total\n"
)


def row(
    at, n=0, serial=None, temp="61", util="99 %", ecc="0", mask="0x0000000000000004", uuid=None
):
    serial = b.SERIALS[n] if serial is None else serial
    return (
        f"{at:%Y/%m/%d %H:%M:%S}.000, NVIDIA H100 80GB HBM3, {serial}, {uuid or b.UUIDS[n]}, "
        f"00000000:{0x1B + n:02X}:00.0, "
        f"{temp}, {util}, 690.12 W, 1755 MHz, {mask}, {ecc}\n"
    )


@pytest.fixture
def s():
    return b.shop()


def feed(s, hours=None, interval=30):
    """A feed for eight running cards whose clock started `hours` ago."""
    order = b.issued(s)
    if hours is not None:
        PurchaseOrder.objects.filter(pk=order.pk).update(burn_in_hours=hours)
    delivery = b.received(s, order)
    b.burning(s, delivery)
    token = issue_feed_token(delivery_id=delivery.pk, by=s.engineer, interval_seconds=interval)
    return feed_of_token(token)


def started(ago):
    BurnInRun.objects.update(clock_from=timezone.now() - ago, started_at=timezone.now() - ago)


def stretch(start, seconds, step=30, cards=8, **fields):
    return HEAD + "".join(
        row(start + timedelta(seconds=i), n, **fields)
        for i in range(0, seconds + 1, step)
        for n in range(cards)
    )


def test_samples_reach_their_cards_by_serial_or_uuid_and_sending_again_changes_nothing(s):
    opened = feed(s)
    start = timezone.now() - timedelta(minutes=10)
    started(timedelta(minutes=11))
    body = stretch(start, 300)
    assert push_samples(feed=opened, body=body) == {"taken": 88, "ignored": 0, "unknown": 0}
    assert push_samples(feed=opened, body=body) == {"taken": 0, "ignored": 88, "unknown": 0}
    cards = list(LiveCard.objects.all())
    assert [(c.samples, c.seconds, c.restarts) for c in cards] == [(11, 300, 0)] * 8
    assert cards[0].figures["temp_c"] == 61
    only_uuid = HEAD + row(timezone.now(), 3, serial="[N/A]")
    assert push_samples(feed=opened, body=only_uuid)["taken"] == 1
    stranger = HEAD + row(timezone.now(), serial="999", uuid="GPU-none")
    assert push_samples(feed=opened, body=stranger) == {"taken": 0, "ignored": 0, "unknown": 1}
    opened.refresh_from_db()
    assert opened.unknown == ["999"]


def test_a_break_beyond_what_is_allowed_starts_the_clock_again_by_itself(s):
    opened = feed(s)
    now = timezone.now().replace(microsecond=0)
    started(timedelta(hours=2))
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=60), 600))
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=49), 600))  # one minute: allowed
    assert set(LiveCard.objects.values_list("restarts", flat=True)) == {0}
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=30), 600))
    card = LiveCard.objects.first()
    assert (card.restarts, card.broken_seconds, card.seconds) == (1, 540, 600)
    assert card.since == now - timedelta(minutes=30)
    run = card.run
    assert (run.clock_from, run.covered_seconds) == (card.since, 0)
    assert AuditEntry.objects.filter(action="burn_in.clock_restarted").count() == 8
    assert set(LiveChunk.objects.values_list("run").distinct()) == {
        (pk,) for pk in BurnInRun.objects.values_list("pk", flat=True)
    }
    assert LiveChunk.objects.count() == 8  # what was before the break is void


def test_a_break_within_one_push_counts_too(s):
    opened = feed(s)
    now = timezone.now().replace(microsecond=0)
    started(timedelta(hours=2))
    body = stretch(now - timedelta(minutes=60), 300) + stretch(now - timedelta(minutes=30), 300)
    push_samples(feed=opened, body=body)
    card = LiveCard.objects.first()
    assert (card.restarts, card.samples, card.seconds) == (1, 11, 300)


def test_a_run_that_a_person_resumed_counts_from_there(s):
    opened = feed(s)
    now = timezone.now().replace(microsecond=0)
    started(timedelta(hours=2))
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=60), 3600 - 60))
    for run in BurnInRun.objects.all():
        burn_in.interrupt_run(run_id=run.pk, reason="Power", by=s.engineer)
    assert push_samples(feed=opened, body=HEAD + row(now))["taken"] == 0  # nothing runs
    for run in BurnInRun.objects.all():
        burn_in.resume_run(run_id=run.pk, by=s.engineer)
    push_samples(feed=opened, body=HEAD + row(timezone.now() + timedelta(seconds=1)))
    assert LiveCard.objects.order_by("run__asset__serial").first().seconds == 0


def test_complete_hours_are_sealed_read_and_judged_like_any_file(s):
    opened = feed(s, hours=1)
    now = timezone.now().replace(microsecond=0)
    started(timedelta(minutes=70))
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=66), 3600))
    assert seal_finished() == []  # a little more than the hours is asked for
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=6) + timedelta(seconds=30), 180))
    sealed = seal_finished()
    assert len(sealed) == 8
    assert seal_finished() == []
    for kept in sealed:
        read_file(evidence_id=kept.pk, report=lambda _percent, _stage: None)
    first = EvidenceFile.objects.order_by("pk").first()
    assert (first.format, first.verdict, first.flags) == ("nvidia_smi_query_csv", "pass", [])
    covered = set(BurnInRun.objects.values_list("covered_seconds", flat=True))
    assert all(3805 <= seconds <= 3810 for seconds in covered)
    assert LiveChunk.objects.count() == 0


def test_what_speaks_against_a_card_is_shown_and_its_sealed_log_fails_it(s):
    opened = feed(s, hours=1)
    now = timezone.now().replace(microsecond=0)
    started(timedelta(minutes=70))
    body = stretch(now - timedelta(minutes=66), 3840, cards=1, ecc="2", mask="0x0000000000000040")
    push_samples(feed=opened, body=body)
    assert set(LiveCard.objects.get().worst["problems"]) == {"ecc_uncorrected", "hw_throttle"}
    for kept in seal_finished():
        read_file(evidence_id=kept.pk, report=lambda _percent, _stage: None)
    assert Asset.objects.filter(status="defective").count() == 1


def test_a_silent_card_is_told_once(s):
    opened = feed(s)
    now = timezone.now()
    started(timedelta(hours=1))
    push_samples(feed=opened, body=stretch(now - timedelta(minutes=20), 60))
    assert watch_feeds(now) == 8
    assert watch_feeds(now) == 0
    assert Notice.objects.filter(event="burn_in.silent").count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("", "body"),
        ("hello", "body"),
        (row(timezone.now()), "body"),  # no header
        (HEAD + "not a time, x\n", "timestamp"),
        (HEAD + row(timezone.now() + timedelta(hours=8)), "timestamp"),
        (HEAD + row(timezone.now() - timedelta(days=3)), "timestamp"),
    ],
)
def test_a_push_that_cannot_be_read_names_what_is_wrong(s, body, field):
    with pytest.raises(InputError) as raised:
        push_samples(feed=feed(s), body=body)
    assert raised.value.field == field


def test_dcgm_metrics_are_samples_too(s):
    opened = feed(s)
    labels = f'gpu="0",UUID="{b.UUIDS[0]}",modelName="NVIDIA H100 80GB HBM3",Hostname="a"'
    body = "".join(
        f"# TYPE {name} gauge\n{name}{{{labels}}} {value}\n"
        for name, value in (
            ("DCGM_FI_DEV_GPU_TEMP", "64"),
            ("DCGM_FI_DEV_GPU_UTIL", "100"),
            ("DCGM_FI_DEV_MEMORY_TEMP", "9223372036854775794"),
            ("DCGM_FI_DEV_XID_ERRORS", "79"),
        )
    )
    assert push_samples(feed=opened, body=body)["taken"] == 1
    card = LiveCard.objects.get()
    assert card.figures == {"temp_c": 64, "util_pct": 100}  # the blank is missing, not a number
    assert card.worst["problems"] == {"xid79": 1}


def test_the_address_takes_only_its_token_and_understands_an_offset(s):
    opened = feed(s)
    token = issue_feed_token(delivery_id=opened.delivery_id, by=s.engineer)
    client, url = APIClient(), reverse("api-live-push")
    here = timezone.now() + timedelta(hours=8)

    def push(word="Feed", key=token, offset="?utc_offset=%2B08:00"):
        return client.post(
            url + offset, HEAD + row(here), content_type="text/plain",
            headers={"Authorization": f"{word} {key}"},
        )  # fmt: skip

    assert push(key="wrong").status_code == 401
    assert push(word="Source").status_code == 401
    assert push(offset="?utc_offset=8h").json()["field"] == "utc_offset"
    assert push(offset="").json()["field"] == "timestamp"
    assert push().json() == {"taken": 1, "ignored": 0, "unknown": 0}
    assert LiveFeed.objects.get().token_hash != token
    with pytest.raises(NotPermitted):
        issue_feed_token(delivery_id=opened.delivery_id, by=s.finance)


def test_a_page_of_many_cards_takes_the_queries_of_one_of_few(
    s, client, django_assert_max_num_queries
):
    opened = feed(s)
    started(timedelta(hours=1))
    push_samples(feed=opened, body=stretch(timezone.now() - timedelta(minutes=10), 60))
    client.force_login(s.engineer)
    url = reverse("delivery-live", args=[opened.delivery_id])
    with django_assert_max_num_queries(16):
        page = client.get(url)
    assert b.SERIALS[7] in page.text
    api = APIClient()
    api.force_authenticate(s.engineer)
    shown = api.get(reverse("api-delivery-live", args=[opened.delivery_id])).json()
    assert len(shown["cards"]) == 8
    assert shown["remaining_seconds"] == 72 * 3600 - 60
    client.force_login(s.outsider)
    assert client.get(url).status_code == 404


def test_the_queries_of_a_push_do_not_grow_with_its_samples(s):
    opened = feed(s)
    started(timedelta(hours=6))

    def queries(begin, seconds):
        body = stretch(timezone.now() - begin, seconds)
        with CaptureQueriesContext(connection) as told:
            taken = push_samples(feed=opened, body=body)["taken"]
        return taken, len(told)

    queries(timedelta(hours=5), 0)  # the cards' first samples make their rows
    assert queries(timedelta(hours=5, seconds=-30), 0)[0] == 8
    few = queries(timedelta(hours=5, seconds=-60), 0)
    many = queries(timedelta(hours=5, seconds=-90), 499 * 30)
    assert (few[0], many[0]) == (8, 4000)
    assert many[1] == few[1]


def test_a_page_of_1024_cards_shows_those_to_look_at(s, client, django_assert_max_num_queries):
    opened = feed(s)
    first = BurnInRun.objects.select_related("asset").first()
    now = timezone.now()
    made = Asset.objects.bulk_create(
        Asset(
            kind="accelerator", serial=f"Z{n:04}", folded_serial=f"Z{n:04}", model="H100", status="installed",
            accelerator_slug=first.asset.accelerator_slug, receipt_line=first.asset.receipt_line,
            request=first.asset.request, received_on=first.asset.received_on,
        )
        for n in range(1016)
    )  # fmt: skip
    runs = BurnInRun.objects.bulk_create(
        BurnInRun(
            asset=asset, delivery=opened.delivery, template=first.template, operator=s.engineer,
            required_seconds=72 * 3600, clock_from=now - timedelta(hours=5),
        )
        for asset in made
    )  # fmt: skip
    LiveCard.objects.bulk_create(
        LiveCard(
            run=run, since=now - timedelta(hours=4), last_at=now, samples=480,
            figures={"temp_c": 90 if n == 700 else 60 + n % 5, "power_w": 690, "sm_mhz": 1755, "util_pct": 99},
            worst={"max_temp_c": 65, **({"problems": {"ecc_uncorrected": 2}} if n == 900 else {})},
        )
        for n, run in enumerate(runs)
    )  # fmt: skip
    client.force_login(s.engineer)
    url = reverse("delivery-live", args=[opened.delivery_id])
    client.get(url)
    with django_assert_max_num_queries(16):
        page = client.get(url).text
    places = [page.index(f">{serial}<") for serial in ("Z0900", "Z0700", b.SERIALS[0], "Z0000")]
    assert places == sorted(
        places
    )  # a problem, then one unlike the batch, then the silent start, then the rest
    assert page.count('<th scope="row"') == 64
    assert ">Z1015<" not in page
    assert ">Z1015<" in client.get(f"{url}?page=16").text
    assert len(page) < 150_000
