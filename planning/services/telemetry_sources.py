"""Telemetry sources: connected, changed, given a push token, and fed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.core.files.base import File
from django.db import transaction
from django.utils import timezone

from catalog.models import Accelerator
from core import jobs
from core.audit import record
from core.errors import DomainError, InputError, InvalidTransition
from core.files import TEXT, check_upload, sha256_of, store_upload
from core.messages import msg
from core.models import Job, User
from core.policies import require
from core.stale import check_version
from core.transitions import lock
from planning import telemetry_policies as may
from planning.models.telemetry import Ingestion, SourceKind, TelemetrySource
from planning.services.telemetry_load import finish, store_samples
from planning.telemetry_formats.samples import Reading, from_json

FIELDS = (
    "name", "kind", "time_zone", "team", "accelerator_slug", "ownership", "host", "step_seconds", "raw_days",
    "currency", "mapping", "url", "token_name", "ca_file", "verify_tls", "matchers", "active",
)  # fmt: skip
MAPPING_PARTS = ("teams", "accelerators", "columns")
MAX_PUSH = 20_000
ACCEPTED = frozenset({TEXT})


@transaction.atomic
def create_source(*, by: User, **fields: Any) -> TelemetrySource:
    """Connect a source. Raises NotPermitted or InputError."""
    require(may.can_keep_sources(by))
    source = TelemetrySource(**_checked(fields))
    _validate(source)
    source.save()
    record("telemetry_source.created", on=source, by=by, team=source.team, kind=source.kind)
    return source


@transaction.atomic
def update_source(
    *, source_id: int, by: User, seen_version: int | None = None, **fields: Any
) -> TelemetrySource:
    """Change a source; its kind stays. Data loaded before stays as it was read."""
    require(may.can_keep_sources(by))
    source = lock(TelemetrySource.objects.all(), source_id)
    check_version(source, seen_version)
    changes = {}
    for name, value in _checked(fields).items():
        if name == "kind" and value != source.kind:
            raise InputError("kind", msg("The kind of a source stays as it is"), value=value)
        if getattr(source, name) != value:
            changes[name] = [str(getattr(source, name))[:200], str(value)[:200]]
            setattr(source, name, value)
    _validate(source)
    source.version += 1
    source.save()
    record("telemetry_source.changed", on=source, by=by, team=source.team, changes=changes)
    return source


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    unknown = set(fields) - set(FIELDS)
    if unknown:
        raise InputError("field", msg("%(name)s is not a field of a source", name=min(unknown)))
    slug = fields.get("accelerator_slug")
    if slug and not Accelerator.objects.filter(slug=slug).exists():
        raise InputError(
            "accelerator_slug",
            msg("The catalogue has no accelerator %(slug)s", slug=slug),
            value=slug,
        )
    return dict(fields)


def _validate(source: TelemetrySource) -> None:
    try:
        source.full_clean(exclude=["push_token_hash"])
    except ValidationError as error:
        field, problems = next(iter(error.message_dict.items()))
        raise InputError(
            field, msg("%(field)s: %(problem)s", field=field, problem=" ".join(problems)),
            value=getattr(source, field, None),
        ) from error  # fmt: skip
    if source.kind == SourceKind.PROMETHEUS and not source.url.startswith(("http://", "https://")):
        raise InputError("url", msg("Prometheus needs an http or https address"), value=source.url)
    if not 1 <= source.step_seconds <= 3600:
        raise InputError(
            "step_seconds", msg("Seconds between samples must be 1 to 3600"),
            value=source.step_seconds, limit="1-3600",
        )  # fmt: skip
    mapping = source.mapping
    if not isinstance(mapping, dict) or any(
        part not in MAPPING_PARTS
        or not isinstance(rules, dict)
        or any(not isinstance(to, str) for to in rules.values())
        for part, rules in mapping.items()
    ):
        raise InputError(
            "mapping", msg("The mapping holds teams, accelerators and columns, each from text to text"),
            value=str(mapping)[:200], limit=", ".join(MAPPING_PARTS),
        )  # fmt: skip


@transaction.atomic
def issue_token(*, source_id: int, by: User) -> str:
    """A new push token, shown this once; the one before stops working."""
    require(may.can_keep_sources(by))
    source = lock(TelemetrySource.objects.all(), source_id)
    if source.kind != SourceKind.PUSH:
        raise InvalidTransition(msg("Only a source that is pushed to has a token"))
    token = secrets.token_urlsafe(32)
    source.push_token_hash = TelemetrySource.hash_of(token)
    source.save(update_fields=["push_token_hash"])
    record("telemetry_source.token_issued", on=source, by=by, team=source.team)
    return token


def receive_file(*, source_id: int, upload: File[Any], by: User | None) -> tuple[Ingestion, bool]:
    """Keep a file and queue its loading; the load, and whether it is new. `by` None: the management command.

    The same bytes for the same source again lead to the load that there is and change nothing, unless it failed or the
    source was changed since: then they are read anew, by its rules of now.
    """
    if by is not None:
        require(may.can_keep_sources(by))
    # Read before the transaction: a large file must not keep everybody else from writing.
    check_upload(upload, allowed=ACCEPTED)
    return _receive(source_id, upload, sha256_of(upload), by)


@transaction.atomic
def _receive(
    source_id: int, upload: File[Any], sha256: str, by: User | None
) -> tuple[Ingestion, bool]:
    source = lock(TelemetrySource.objects.all(), source_id)
    _require_active(source)
    earlier = (
        source.ingestions.filter(sha256=sha256, source_version=source.version)
        .exclude(status=Ingestion.Status.FAILED)
        .first()
    )
    if earlier is not None:
        return earlier, False
    stored = store_upload(upload, by=by, allowed=ACCEPTED)
    row = Ingestion.objects.create(
        source=source, file=stored, sha256=sha256, source_version=source.version, by=by
    )
    row.job = jobs.submit(
        "planning.tasks.load_telemetry", row.pk, key=f"telemetry:{row.pk}", owner=by
    )
    row.save(update_fields=["job"])
    record(
        "telemetry.received",
        on=source,
        by=by,
        team=source.team,
        file=stored.name,
        sha256=stored.sha256,
    )
    return row, True


def push(*, source: TelemetrySource, items: Iterable[object]) -> Ingestion:
    """Samples that a collector sends; stored before the answer, so that a lost answer may be sent again."""
    _require_active(source)
    kept = list(items)
    if len(kept) > MAX_PUSH:
        raise InputError(
            "samples", msg("%(n)s samples are more than %(limit)s at once", n=len(kept), limit=MAX_PUSH),
            value=len(kept), limit=MAX_PUSH,
        )  # fmt: skip
    row = Ingestion.objects.create(source=source)
    reading = Reading()
    store_samples(row, from_json(kept, reading))
    return finish(row, reading)


def source_of_token(token: str) -> TelemetrySource | None:
    """The active source that a push token opens."""
    if not token:
        return None
    return TelemetrySource.objects.filter(
        push_token_hash=TelemetrySource.hash_of(token), active=True
    ).first()


def _require_active(source: TelemetrySource) -> None:
    if not source.active:
        raise DomainError(msg("%(source)s is switched off", source=source.name))


def due_pulls(now: datetime | None = None) -> list[int]:
    """Prometheus sources with at least one whole hour that was not asked for yet."""
    now = now or timezone.now()
    hour = now.replace(minute=0, second=0, microsecond=0)
    return [
        source.pk
        for source in TelemetrySource.objects.filter(kind=SourceKind.PROMETHEUS, active=True)
        if source.pulled_until is None or source.pulled_until < hour
    ]


@transaction.atomic
def request_pull(*, source_id: int, by: User | None) -> None:
    """Queue a question to a Prometheus source; one an hour and source, however often it is asked for."""
    if by is not None:
        require(may.can_keep_sources(by))
    source = lock(TelemetrySource.objects.all(), source_id)
    _require_active(source)
    if source.kind != SourceKind.PROMETHEUS:
        raise InvalidTransition(msg("Only a Prometheus source is pulled"))
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    job = jobs.submit(
        "planning.tasks.pull_telemetry",
        source.pk,
        key=f"pull:{source.pk}:{hour:%Y%m%dT%H}",
        owner=by,
    )
    if job.status in (Job.Status.FAILED, Job.Status.CANCELLED) and by is not None:
        jobs.retry(job, owner=by)
    if by is not None:
        record("telemetry.pull_requested", on=source, by=by, team=source.team)
