"""Loading telemetry: samples, jobs, utilisation reports and bills of a source. The same data twice changes nothing."""

from __future__ import annotations

import csv
import fnmatch
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, cast

from django.db import transaction
from django.utils import timezone

from core.errors import DomainError, InputError
from core.messages import Message, msg
from core.models import Team
from core.organisation import organisation
from core.whole import whole
from planning.models.requests import CapacityRequest
from planning.models.telemetry import (
    BillLine,
    CardHour,
    CardSeries,
    ClusterUse,
    HourSamples,
    Ingestion,
    JobRun,
    SourceKind,
    TelemetryCard,
    TelemetrySource,
)
from planning.services.telemetry_store import Hours, store_hours
from planning.services.telemetry_sums import local_days, refresh_days
from planning.telemetry_formats import bills, jobs
from planning.telemetry_formats.hours import Hour
from planning.telemetry_formats.prometheus import Answer, api_series
from planning.telemetry_formats.samples import (
    Reading,
    Sample,
    from_nvidia_smi,
    from_series,
    remarks,
)
from planning.telemetry_formats.slurm import SreportFacts, sreport
from planning.telemetry_formats.source import Source as TextSource
from planning.telemetry_formats.source import TooLargeError

BATCH = 200_000  # samples held in memory
_LIMIT = 200 * 1024 * 1024  # of formats that are read whole
_UNIT_HOURS = {"Hours": 1.0, "Minutes": 1 / 60, "Seconds": 1 / 3600}

Report = Callable[[int, Message], None]
_Line = tuple[
    datetime, int, int, int, tuple[float | None, ...]
]  # hour, series, samples, covered, figures


def _silent(percent: int, stage: Message) -> None:
    """No one watches."""


def load_file(*, ingestion_id: int, report: Report = _silent) -> Ingestion:
    """Read the file of an ingestion and store what it says. Repeating it changes nothing more."""
    row = Ingestion.objects.select_related("source", "file").get(pk=ingestion_id)
    if row.status == Ingestion.Status.DONE or row.file is None:
        return row
    report(5, msg("Reading the file"))
    reading = Reading()
    try:
        with row.file.file.open("rb") as stream:
            text = TextSource(cast(BinaryIO, stream))
            _load(row, text, reading, report)
    except (DomainError, TooLargeError) as error:
        _failed(row, reading, error)
        raise
    return finish(row, reading)


def _failed(row: Ingestion, reading: Reading, error: Exception) -> None:
    message = error.message if isinstance(error, DomainError) else msg("The file is too large")
    row.status = Ingestion.Status.FAILED
    row.problems = [message.to_json(), *(p.to_json() for p in reading.problems)]
    row.finished_at = timezone.now()
    row.save()


def finish(row: Ingestion, reading: Reading) -> Ingestion:
    """Write down what was read and refused."""
    row.read, row.refused = reading.read, reading.refused
    row.problems = [problem.to_json() for problem in reading.problems]
    if row.too_late:
        row.problems.append(
            msg(
                "%(n)s hours came too late: their single samples are no longer kept, and the file holds fewer than "
                "were counted then. They stay as they were.",
                n=row.too_late,
            ).to_json()
        )
    row.status = Ingestion.Status.DONE
    row.finished_at = timezone.now()
    row.save()
    return row


def _load(row: Ingestion, text: TextSource, reading: Reading, report: Report) -> None:
    source = row.source
    numbered = ((line.number, line.text) for line in text.lines())
    match source.kind:
        case SourceKind.NVIDIA_SMI:
            lines = ((line.number, line.text, None) for line in text.lines())
            found = from_nvidia_smi(lines, source.zone, reading, host=source.host)
            store_samples(row, found, report)
        case SourceKind.PROMETHEUS | SourceKind.PUSH:
            answer = Answer()
            store_samples(row, from_series(api_series(text.byte_chunks(), answer), reading), report)
            reading.problems.extend(remarks(answer))
            if answer.status != "success" or not answer.whole:
                reading.refuse(
                    msg("The answer is not whole: %(problem)s", problem=answer.error or answer.status or "–")
                )  # fmt: skip
        case SourceKind.SACCT:
            store_jobs(row, jobs.from_sacct(numbered, source.zone, reading))
        case SourceKind.SREPORT:
            _store_use(row, numbered, reading)
        case SourceKind.KUBERNETES:
            store_jobs(row, jobs.from_kubernetes(text.text(_LIMIT), reading))
        case SourceKind.JOB_TABLE:
            columns = source.mapping.get("columns") or {}
            if "job" not in columns:
                raise InputError(
                    "mapping",
                    msg("The mapping of this source does not say which column holds the job"),
                    value=", ".join(columns),
                    limit="job",
                )
            store_jobs(row, jobs.from_table(_table(text), columns, source.zone, reading))
        case SourceKind.BILL:
            store_bill(row, text, reading)


def _table(text: TextSource) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(line.text for line in text.lines())
    for cells in reader:
        yield reader.line_num, {k: v for k, v in cells.items() if k and isinstance(v, str)}


# --- samples -----------------------------------------------------------------------------------------------------


def store_samples(row: Ingestion, samples: Iterable[Sample], report: Report = _silent) -> None:
    """Merge samples into their hours and make the rollups and sums anew. Counts go to `row`."""
    keeper = _Keeper(row)
    held = 0
    pending: dict[tuple[str, str, datetime], dict[int, dict[str, float]]] = defaultdict(dict)
    for sample in samples:
        hour = sample.at.replace(minute=0, second=0, microsecond=0)
        second = int((sample.at - hour).total_seconds())
        keeper.meet(sample)
        pending[sample.card, sample.job, hour].setdefault(second, {}).update(sample.values)
        held += 1
        if held >= BATCH:
            keeper.write(pending)
            pending.clear()
            held = 0
            report(50, msg("Storing samples"))
    keeper.write(pending)
    report(85, msg("Making daily sums"))
    refresh_days(local_days(keeper.hours, organisation().zone))


class _Keeper:
    """Series by card and job, and the hours that one load touched."""

    def __init__(self, row: Ingestion) -> None:
        self.row = row
        self.source = row.source
        self.hours: set[datetime] = set()
        self.teams = teams_by_slug()
        self.cards = {card.name: card for card in TelemetryCard.objects.filter(source=self.source)}
        self.series: dict[tuple[str, str], int] = {
            (name, job): pk
            for pk, name, job in CardSeries.objects.filter(card__source=self.source).values_list(
                "pk", "card__name", "job"
            )
        }

    def meet(self, sample: Sample) -> None:
        """Know the sample's card and series."""
        if (sample.card, sample.job) in self.series:
            return
        card = self.cards.get(sample.card)
        if card is None:
            card, _new = TelemetryCard.objects.get_or_create(
                source=self.source,
                name=sample.card,
                defaults={
                    "host": sample.host,
                    "model": sample.model,
                    "accelerator_slug": mapped(self.source, "accelerators", sample.model)
                    or self.source.accelerator_slug,
                    "team": team_of(self.source, self.teams, sample.host),
                    "ownership": self.source.ownership,
                },
            )
            self.cards[sample.card] = card
        series, _new = CardSeries.objects.get_or_create(card=card, job=sample.job)
        self.series[sample.card, sample.job] = series.pk

    @transaction.atomic
    def write(
        self, pending: Mapping[tuple[str, str, datetime], dict[int, dict[str, float]]]
    ) -> None:
        """Merge one batch with what is kept of the same hours."""
        new = {
            (self.series[card, job], hour): Hour.of(samples)
            for (card, job, hour), samples in pending.items()
        }
        if not new:
            return
        TelemetrySource.objects.select_for_update().get(pk=self.source.pk)  # one load at a time
        kept = self._kept(new)
        exact: list[_Line] = []
        fresh: list[_Line] = []
        packed: list[HourSamples] = []
        for (series, hour), found in new.items():
            before = kept.get((series, hour))
            whole = before.merged(found) if before is not None else found
            if before is not None and whole.same_as(before):
                self.row.unchanged += 1
                continue
            line = (
                hour,
                series,
                len(whole.offsets),
                whole.covered(self.source.step_seconds),
                whole.rollup(),
            )
            (exact if before is not None else fresh).append(line)
            packed.append(
                HourSamples(
                    series_id=series, hour=hour, data=whole.packed(), touched_at=timezone.now()
                )
            )
            self.hours.add(hour)
        # Hours without kept samples are new, or older than the window: there the fuller reading stands.
        added = store_hours(Hours.of(fresh))
        self.row.changed += store_hours(Hours.of(exact), replace=True) + added
        if added < len(fresh):
            late = self._late(fresh)
            self.row.too_late += len(late)
            self.row.unchanged += len(fresh) - added - len(late)
            packed = [one for one in packed if (one.series_id, one.hour) not in late]
        HourSamples.objects.bulk_create(
            packed, batch_size=2000, update_conflicts=True, unique_fields=["series", "hour"],
            update_fields=["data", "touched_at"],
        )  # fmt: skip
        spans = [hour for _series, hour in new]
        self.row.first_at = min([*spans, *([self.row.first_at] if self.row.first_at else [])])
        self.row.last_at = max([*spans, *([self.row.last_at] if self.row.last_at else [])])

    def _kept(self, new: Mapping[tuple[int, datetime], Hour]) -> dict[tuple[int, datetime], Hour]:
        hours = [hour for _series, hour in new]
        rows = HourSamples.objects.filter(
            series__card__source=self.source, hour__gte=min(hours), hour__lte=max(hours)
        )
        return {
            (row.series_id, row.hour): Hour.unpacked(bytes(row.data))
            for row in rows.iterator(chunk_size=2000)
            if (row.series_id, row.hour) in new
        }

    def _late(self, fresh: list[_Line]) -> set[tuple[int, datetime]]:
        """Hours whose rollup rests on more samples than came now: their own samples are gone."""
        counts = {
            (row.series_id, row.hour): row.samples
            for row in CardHour.objects.filter(
                hour__in={line[0] for line in fresh}, series_id__in={line[1] for line in fresh}
            )
        }
        return {(line[1], line[0]) for line in fresh if counts.get((line[1], line[0]), 0) > line[2]}


def teams_by_slug() -> dict[str, Team]:
    """Active teams by short name."""
    return {team.slug: team for team in Team.objects.filter(active=True)}


def mapped(source: TelemetrySource, part: str, value: str) -> str:
    """What the source's saved mapping makes of `value`; the first pattern that fits. Empty: nothing."""
    patterns: Mapping[str, str] = source.mapping.get(part) or {}
    return next(
        (to for pattern, to in patterns.items() if value and fnmatch.fnmatchcase(value, pattern)),
        "",
    )


def team_of(source: TelemetrySource, teams: Mapping[str, Team], *values: str) -> Team | None:
    """The team that the mapping names for one of `values`, else the source's own."""
    for value in values:
        slug = mapped(source, "teams", value) or (value if value in teams else "")
        if slug in teams:
            return teams[slug]
    return source.team


# --- jobs, use, bills --------------------------------------------------------------------------------------------

_RUN_FIELDS = (
    "name", "account", "team_id", "state", "submitted_at", "started_at", "ended_at", "waited_seconds",
    "cards", "interrupted", "tokens", "model_slug",
)  # fmt: skip


@transaction.atomic
def store_jobs(row: Ingestion, records: Iterable[jobs.JobRecord]) -> None:
    """Add or bring up to date. A record that knows less (a job still queued) does not undo one that knows more."""
    source = TelemetrySource.objects.select_for_update().get(pk=row.source_id)
    teams = teams_by_slug()
    found = {record.job: record for record in jobs.attempts(records)}
    before = {run.job: run for run in JobRun.objects.filter(source=source, job__in=list(found))}
    new, changed = [], []
    for job, record in found.items():
        values = _run_values(record, team_of(source, teams, record.account))
        run = before.get(job)
        if run is None:
            new.append(JobRun(source=source, job=job, **values))
            continue
        if _is_next_attempt(run, record):
            _keep_attempt(run)
            for name, value in values.items():
                setattr(run, name, value)
            changed.append(run)
            continue
        if (run.ended_at and not record.ended) or (run.started_at and not record.started):
            row.unchanged += 1  # an older export than the one loaded before
            continue
        merged = {k: v if v not in (None, "") else getattr(run, k) for k, v in values.items()}
        if all(getattr(run, name) == value for name, value in merged.items()):
            row.unchanged += 1
            continue
        for name, value in merged.items():
            setattr(run, name, value)
        changed.append(run)
    JobRun.objects.bulk_create(new, batch_size=2000)
    JobRun.objects.bulk_update(changed, _RUN_FIELDS, batch_size=500)
    row.changed += len(new) + len(changed)
    moments = [at for r in found.values() for at in (r.submitted, r.started, r.ended) if at]
    if moments:
        row.first_at, row.last_at = min(moments), max(moments)


def _is_next_attempt(run: JobRun, record: jobs.JobRecord) -> bool:
    """Whether the scheduler ran the job anew: it started, or went back into the queue, after the run that is known."""
    if run.started_at is None:
        return False
    if run.ended_at and record.started and record.ended and run.waited_seconds == record.waited:
        took = run.ended_at - run.started_at
        if took == record.ended - record.started:
            return False  # the same run by another clock: the zone of its source was put right
    if record.started is not None:
        return record.started > run.started_at
    return record.submitted is not None and record.submitted > run.started_at and not record.ended


def _keep_attempt(run: JobRun) -> None:
    """Keep a run that another attempt follows, as a job of its own: what was taken away is not forgotten."""
    if run.started_at is None:
        return
    name = f"{run.job}@{run.started_at:%Y%m%dT%H%M%SZ}"
    values = {field: getattr(run, field) for field in _RUN_FIELDS}
    JobRun.objects.get_or_create(source=run.source, job=name, defaults=values)


def _run_values(record: jobs.JobRecord, team: Team | None) -> dict[str, Any]:
    return {
        "name": record.name[:200], "account": record.account[:120], "team_id": team.pk if team else None,
        "state": record.state[:40], "submitted_at": record.submitted, "started_at": record.started,
        "ended_at": record.ended, "waited_seconds": record.waited, "cards": record.cards,
        "interrupted": record.interrupted, "tokens": record.tokens, "model_slug": record.model[:80],
    }  # fmt: skip


@transaction.atomic
def _store_use(row: Ingestion, lines: Iterator[tuple[int, str]], reading: Reading) -> None:
    facts = SreportFacts()
    for use in sreport(lines, facts):
        factor = _UNIT_HOURS.get(facts.unit or "Minutes")
        if facts.period is None or factor is None:
            reading.refuse(
                msg("Line %(line)s: the report names no period or no unit", line=use.number)
            )
            continue
        reading.read += 1
        hours = {name: value * factor for name, value in use.values.items()}
        kept, new = ClusterUse.objects.get_or_create(
            source=row.source, cluster=use.cluster, resource=use.tres, first=facts.period[0],
            last=facts.period[1], defaults={"hours": hours},
        )  # fmt: skip
        if new or kept.hours != hours:
            kept.hours = hours
            kept.save(update_fields=["hours"])
            row.changed += 1
        else:
            row.unchanged += 1
    if not reading.read:
        reading.refuse(msg("The file has no row of sreport cluster utilization"))


@transaction.atomic
def store_bill(row: Ingestion, text: TextSource, reading: Reading) -> None:
    """Keep the lines of a bill; posting them to the ledger is a step of its own."""
    source = TelemetrySource.objects.select_for_update().get(pk=row.source_id)
    rows = list(_table(text))
    columns = bills.columns_of(rows[0][1] if rows else (), source.mapping.get("columns") or {})
    missing = [name for name in bills.NEEDED if name not in columns]
    if missing:
        raise InputError(
            "file",
            msg("The bill has no column for %(name)s; map it in the source", name=missing[0]),
            value=", ".join(list(rows[0][1])[:20]) if rows else "",
            limit=", ".join(bills.NEEDED),
        )
    teams = teams_by_slug()
    mapping = source.mapping.get("columns") or {}
    cumulative = bills.is_cumulative(rows[0][1] if rows else (), mapping)
    known = {
        key: (pk, amount)
        for pk, key, amount in BillLine.objects.filter(source=source).values_list(
            "pk", "key", "amount"
        )
    }
    new, moved, gone = [], [], []
    for line in bills.lines(
        rows, columns, reading, currency=source.currency, cumulative=cumulative
    ):
        kept = known.get(line.key)
        if kept is not None and line.restated and kept[1] != line.amount:
            if line.amount == 0:
                gone.append(kept[0])
                continue
            moved.append(BillLine(pk=kept[0], amount=line.amount, quantity=line.quantity))
            continue
        if kept is not None or line.amount == 0:
            row.unchanged += kept is not None
            continue
        number = line.request.upper().removeprefix("R-").lstrip("0")
        team = team_of(source, teams, line.team)
        new.append(
            BillLine(
                source=source, key=line.key, day=line.day, amount=line.amount, currency=line.currency,
                service=line.service, usage=line.usage, quantity=line.quantity, team=team,
                request_number=whole(number),
            )
        )  # fmt: skip
    numbers = {line.request_number for line in new if line.request_number}
    there = set(CapacityRequest.objects.filter(number__in=numbers).values_list("number", flat=True))
    for line_row in new:
        if line_row.request_number and line_row.request_number not in there:
            reading.problems.append(
                msg("No request has the number %(number)s that a line is tagged with", number=line_row.request_number)
            )  # fmt: skip
            line_row.request_number = None
    del reading.problems[20:]
    BillLine.objects.bulk_create(new, batch_size=2000)
    BillLine.objects.bulk_update(moved, ["amount", "quantity"], batch_size=500)
    BillLine.objects.filter(pk__in=gone).delete()
    row.changed += len(new) + len(moved) + len(gone)
    if new:
        days = [line.day for line in new]
        row.first_at, row.last_at = (
            datetime(d.year, d.month, d.day, tzinfo=UTC) for d in (min(days), max(days))
        )


def drop_old_samples() -> int:
    """Let go of single samples past their source's window. Returns how many hours."""
    count = 0
    for source in TelemetrySource.objects.all():
        limit = timezone.now() - timedelta(days=source.raw_days)
        count += HourSamples.objects.filter(
            series__card__source=source, touched_at__lt=limit
        ).delete()[0]
    return count
