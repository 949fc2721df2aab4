"""Live burn-in: a token for a delivery's collectors, their samples, breaks that start the clock again, and the log.

The log is evidence like any other: sealed with its hash when a run has its hours, read and judged by the same reader.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from core.audit import record
from core.errors import InputError
from core.files import store_bytes
from core.jobs import submit
from core.messages import msg
from core.models import User
from core.outbox import notify
from procurement.live_samples import (
    LiveSample,
    log_columns,
    log_header,
    log_rows,
    merged_worst,
    read_samples,
)
from procurement.models import BurnInRun, EvidenceFile, LiveCard, LiveChunk, LiveFeed
from procurement.serials import fold
from procurement.services.evidence import READ_TASK
from procurement.services.run_proof import lock_delivery
from procurement.states import BurnInStatus

MAX_UNKNOWN = 20
SEAL_MARGIN = timedelta(minutes=2)  # the log shall show a little more than the hours


@transaction.atomic
def issue_feed_token(*, delivery_id: int, by: User, interval_seconds: int = 30) -> str:
    """A new token for the delivery's collectors, shown this once; the one before stops working."""
    delivery = lock_delivery(delivery_id, action="start_burn_in", by=by)
    if not 1 <= interval_seconds <= 600:
        raise InputError(
            "interval_seconds",
            msg("Seconds between samples must be 1 to 600"),
            value=interval_seconds,
            limit="1-600",
        )
    token = secrets.token_urlsafe(32)
    LiveFeed.objects.update_or_create(
        delivery=delivery,
        defaults={
            "token_hash": LiveFeed.hash_of(token),
            "interval_seconds": interval_seconds,
            "issued_by": by,
            "issued_at": timezone.now(),
        },
    )
    record("delivery.feed_token_issued", on=delivery, by=by, interval_seconds=interval_seconds)
    return token


def feed_of_token(token: str) -> LiveFeed | None:
    """The feed that a push token opens."""
    if not token:
        return None
    return LiveFeed.objects.filter(token_hash=LiveFeed.hash_of(token)).first()


def push_samples(*, feed: LiveFeed, body: str, offset: timedelta = timedelta(0)) -> dict[str, int]:
    """Take samples: counts of those taken, ignored and unknown. Sending the same again changes nothing.

    Raises InputError when the push cannot be read. The number of queries does not grow with the samples.
    """
    now = timezone.now()
    samples = read_samples(body, now=now, offset=offset)
    with transaction.atomic():
        locked = LiveFeed.objects.select_for_update().get(pk=feed.pk)
        return _take(locked, samples, now)


def _take(feed: LiveFeed, samples: list[LiveSample], now: datetime) -> dict[str, int]:
    runs = list(
        BurnInRun.objects.filter(delivery=feed.delivery_id, status=BurnInStatus.RUNNING)
        .select_related("asset")
        .order_by("pk")
    )
    by_name: dict[str, BurnInRun] = {}
    for run in runs:
        by_name[run.asset.folded_serial] = run
        if run.asset.uuid:
            by_name[run.asset.uuid] = run
    by_run: dict[int, list[LiveSample]] = defaultdict(list)
    unknown: dict[str, None] = {}
    for sample in samples:
        found = by_name.get(fold(sample.identity)) or by_name.get(
            fold(sample.cells.get("uuid", ""))
        )
        if found is None:
            unknown[sample.identity or "?"] = None
        else:
            by_run[found.pk].append(sample)
    cards = {card.run_id: card for card in LiveCard.objects.filter(run__in=list(by_run))}
    chunks: list[LiveChunk] = []
    new: list[LiveCard] = []
    broken: list[tuple[BurnInRun, LiveCard]] = []
    resumed: list[int] = []
    taken = ignored = 0
    for run in runs:
        own = sorted(by_run.get(run.pk, ()), key=lambda sample: sample.at)
        own = [sample for sample in own if sample.at >= run.clock_from - feed.allowed_gap]
        if not own:
            continue
        card = cards.get(run.pk)
        if card is None:
            card = LiveCard(run=run, since=own[0].at, last_at=own[0].at - timedelta(microseconds=1))
            new.append(card)
        elif card.since < run.clock_from - feed.allowed_gap:  # resumed: a person started the clock
            card.since, card.samples, card.worst, card.sealed = own[0].at, 0, {}, None
            resumed.append(run.pk)
        fresh = [sample for sample in own if sample.at > card.last_at]
        card.ignored += len(own) - len(fresh)
        ignored += len(own) - len(fresh)
        if not fresh:
            continue
        taken += len(fresh)
        before = card.restarts
        kept = _advance(card, fresh, feed.allowed_gap)
        if card.restarts != before:
            broken.append((run, card))
        columns = list(log_columns(kept))
        chunks.append(LiveChunk(run=run, columns=columns, rows=log_rows(columns, kept)))
    LiveChunk.objects.filter(run__in=[*resumed, *(run.pk for run, _card in broken)]).delete()
    for run, card in broken:
        _restart_clock(run, card)
    LiveCard.objects.bulk_create(new)
    LiveCard.objects.bulk_update(
        [card for card in cards.values() if card.pk],
        ["since", "last_at", "samples", "ignored", "restarts", "broken_at", "broken_seconds", "figures",
         "worst", "silent_told_at", "sealed"],
        batch_size=500,
    )  # fmt: skip
    LiveChunk.objects.bulk_create(chunks, batch_size=500)
    known = [*feed.unknown, *(name for name in unknown if name not in feed.unknown)][:MAX_UNKNOWN]
    LiveFeed.objects.filter(pk=feed.pk).update(
        last_at=now, samples=F("samples") + taken, unknown=known
    )
    return {"taken": taken, "ignored": ignored, "unknown": len(unknown)}


def _advance(card: LiveCard, fresh: list[LiveSample], allowed: timedelta) -> list[LiveSample]:
    """Bring `card` up to the newest sample. Returns the samples of the unbroken stretch it ends in."""
    kept: list[LiveSample] = []
    for sample in fresh:
        silence = sample.at - card.last_at
        if card.samples and silence > allowed:
            card.restarts += 1
            card.broken_at, card.broken_seconds = card.last_at, int(silence.total_seconds())
            card.since, card.samples, card.worst, card.sealed = sample.at, 0, {}, None
            kept = []
        elif not card.samples:
            card.since = sample.at
        card.last_at = sample.at
        card.samples += 1
        kept.append(sample)
    card.worst = merged_worst(card.worst, kept)
    card.figures = kept[-1].figures()
    card.silent_told_at = None
    return kept


def _restart_clock(run: BurnInRun, card: LiveCard) -> None:
    """A break beyond what is allowed: the hours start again, and evidence from before is void."""
    BurnInRun.objects.filter(pk=run.pk).update(
        clock_from=max(card.since, run.clock_from), covered_seconds=0, version=F("version") + 1
    )
    record(
        "burn_in.clock_restarted", on=run, by=None, silent_seconds=card.broken_seconds,
        silent_from=card.broken_at.isoformat() if card.broken_at else None, restarts=card.restarts,
    )  # fmt: skip


def watch_feeds(now: datetime | None = None) -> int:
    """Tell who started a run, once, that its samples have stopped. Returns how many are silent."""
    now = now or timezone.now()
    silent = 0
    for feed in LiveFeed.objects.select_related("delivery__vendor"):
        cards = list(
            LiveCard.objects.filter(
                run__delivery=feed.delivery_id,
                run__status=BurnInStatus.RUNNING,
                sealed=None,
                silent_told_at=None,
                last_at__lt=now - feed.allowed_gap,
            ).select_related("run__asset", "run__operator")
        )
        silent += len(cards)
        if not cards:
            continue
        notify(
            [card.run.operator for card in cards],
            "burn_in.silent",
            on=feed.delivery,
            message=msg(
                "%(n)s cards of delivery %(delivery)s have sent no sample since %(since)s UTC: their hours will "
                "start again",
                n=len(cards),
                delivery=feed.delivery.note_number,
                since=f"{min(card.last_at for card in cards):%Y-%m-%d %H:%M}",
            ),
            url=f"/procurement/deliveries/{feed.delivery_id}/live/",
            revision=f"{min(card.last_at for card in cards):%Y%m%d%H%M}",
        )
        LiveCard.objects.filter(pk__in=[card.pk for card in cards]).update(silent_told_at=now)
    return silent


def seal_finished(*, delivery_id: int | None = None) -> list[EvidenceFile]:
    """Make a log of each running card that has its hours, and queue its reading. Safe to repeat."""
    cards = LiveCard.objects.filter(
        run__status=BurnInStatus.RUNNING, sealed=None, run__required_seconds__gt=0
    ).select_related("run")
    if delivery_id is not None:
        cards = cards.filter(run__delivery=delivery_id)
    done = [
        card
        for card in cards.order_by("run__delivery_id", "run__asset_id")
        if card.seconds >= card.run.required_seconds + SEAL_MARGIN.total_seconds()
    ]
    return [sealed for card in done if (sealed := _seal(card.pk)) is not None]


@transaction.atomic
def _seal(card_id: int) -> EvidenceFile | None:
    card = (
        LiveCard.objects.select_for_update(of=("self",))
        .select_related("run__asset", "run__delivery__feed")
        .get(pk=card_id)
    )
    if card.sealed_id is not None or card.run.status != BurnInStatus.RUNNING:
        return None
    chunks = list(LiveChunk.objects.filter(run=card.run_id))
    content = _log(chunks)
    stored = store_bytes(
        content.encode(), name=f"live-{card.run.asset.serial}.csv", content_type="text/plain"
    )
    run = card.run
    try:
        with transaction.atomic():
            evidence = EvidenceFile.objects.create(
                delivery=run.delivery, file=stored, sha256=stored.sha256
            )
    except IntegrityError:
        return None  # the same log is there already
    evidence.job = submit(READ_TASK, evidence.pk, key=f"evidence:{evidence.pk}", owner=None)
    evidence.save(update_fields=["job"])
    record(
        "evidence.sealed", on=evidence, by=None, name=stored.name, sha256=stored.sha256,
        samples=card.samples, seconds=card.seconds, serial=run.asset.serial,
    )  # fmt: skip
    card.sealed = evidence
    card.save(update_fields=["sealed"])
    LiveChunk.objects.filter(pk__in=[chunk.pk for chunk in chunks]).delete()
    return evidence


def _log(chunks: Iterable[LiveChunk]) -> str:
    """A log as nvidia-smi would have written it; a header stands again where the columns change."""
    parts: list[str] = []
    columns: list[str] | None = None
    for chunk in chunks:
        if chunk.columns != columns:
            columns = chunk.columns
            parts.append(log_header(columns))
        parts.append(chunk.rows)
    return "".join(parts)
