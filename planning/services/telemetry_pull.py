"""Prometheus asked by range query, from where the last answer ended. Late samples are asked for once more."""

from __future__ import annotations

import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.client import HTTPException, HTTPResponse

from django.utils import timezone

from core.audit import record
from core.errors import DomainError
from core.messages import msg
from core.models import User
from core.policies import require
from planning import telemetry_policies as may
from planning.models.telemetry import Ingestion, SourceKind, TelemetrySource
from planning.services.telemetry_load import Report, finish, store_samples
from planning.telemetry_formats.prometheus import Answer, Series, api_series
from planning.telemetry_formats.samples import METRICS, Reading, from_series, remarks

TIMEOUT = 30  # [s]
MAX_POINTS = 10_000  # of one series and question; the server refuses more than 11,000
OVERLAP = timedelta(hours=2)  # asked again each time: late samples merge, known ones change nothing
FIRST = timedelta(days=14)
EXTRA = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE")


class SourceUnreachable(DomainError):
    """The server did not answer, or not as a Prometheus."""

    status = 502
    code = "source_unreachable"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect could carry the token to another server."""

    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def pull(
    *,
    source_id: int,
    by: User | None = None,
    report: Report | None = None,
    until: datetime | None = None,
) -> Ingestion:
    """Ask for everything up to the last whole hour and store it. Safe to repeat.

    Raises SourceUnreachable; what was stored before stays, and the next pull asks from there.
    """
    if by is not None:
        require(may.can_keep_sources(by))
    source = TelemetrySource.objects.get(pk=source_id, kind=SourceKind.PROMETHEUS)
    end = (until or timezone.now()).replace(minute=0, second=0, microsecond=0)
    start = (source.pulled_until or end - FIRST) - OVERLAP
    row = Ingestion.objects.create(source=source, by=by)
    reading = Reading()
    window = timedelta(seconds=source.step_seconds * MAX_POINTS)
    try:
        while start < end:
            stop = min(start + window, end)
            store_samples(row, from_series(_ask(source, start, stop, reading), reading))
            source.pulled_until = stop
            TelemetrySource.objects.filter(pk=source.pk).update(pulled_until=stop)
            start = stop
            if report is not None:
                report(50, msg("Stored until %(at)s", at=stop.isoformat(timespec="minutes")))
    except SourceUnreachable as error:
        row.status = Ingestion.Status.FAILED
        row.problems = [error.message.to_json()]
        row.finished_at = timezone.now()
        row.save()
        raise
    finish(row, reading)
    if by is not None:
        record("telemetry.pulled", on=source, by=by, team=source.team, read=reading.read)
    return row


def query(source: TelemetrySource) -> str:
    """One selector over every metric that is read."""
    names = "|".join([*METRICS, *EXTRA])
    more = f", {source.matchers}" if source.matchers.strip() else ""
    return f'{{__name__=~"{names}"{more}}}'


def _ask(
    source: TelemetrySource, start: datetime, stop: datetime, reading: Reading
) -> Iterator[Series]:
    body = urllib.parse.urlencode(
        {
            "query": query(source),
            "start": start.astimezone(UTC).timestamp(),
            # The last sample of a span belongs to the next one.
            "end": stop.astimezone(UTC).timestamp() - source.step_seconds,
            "step": source.step_seconds,
        }
    ).encode()
    address = source.url.rstrip("/") + "/api/v1/query_range"
    request = urllib.request.Request(address, data=body, method="POST")  # noqa: S310 - http(s) only, checked when saved
    if token := _token(source):
        request.add_header("Authorization", f"Bearer {token}")
    answer = Answer()
    try:
        opener = urllib.request.build_opener(
            _NoRedirect, urllib.request.HTTPSHandler(context=_tls(source))
        )
        with opener.open(request, timeout=TIMEOUT) as response:
            yield from api_series(_chunks(response), answer)
    except (OSError, HTTPException, ValueError) as error:
        raise SourceUnreachable(
            msg("%(address)s: %(problem)s", address=address, problem=str(error)[:300])
        ) from error
    if answer.status != "success" or not answer.whole:
        raise SourceUnreachable(
            msg("%(address)s: %(problem)s", address=address, problem=answer.error or "the answer is not whole")
        )  # fmt: skip
    reading.problems.extend(remarks(answer))


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    while piece := response.read(1 << 16):
        yield piece


def _token(source: TelemetrySource) -> str:
    if not source.token_name:
        return ""
    name = "TELEMETRY_TOKEN_" + source.token_name.upper().replace("-", "_")
    token = os.environ.get(name, "")
    if not token:
        raise SourceUnreachable(msg("The environment holds no %(name)s", name=name))
    return token


def _tls(source: TelemetrySource) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=source.ca_file or None)
    if not source.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
