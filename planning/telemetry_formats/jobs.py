"""Jobs of schedulers as one kind of record: Slurm sacct, Kubernetes and Volcano objects, Run:ai and other tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from core.messages import msg
from planning.telemetry_formats.samples import Reading, local
from planning.telemetry_formats.slurm import Job, SacctFacts, sacct
from planning.telemetry_formats.values import number

# Ends that somebody else caused: the card was taken away or broke.
INTERRUPTED = frozenset({"PREEMPTED", "NODE_FAIL", "REVOKED", "REQUEUED", "EVICTED"})
_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "huawei.com/Ascend910", "cambricon.com/mlu")


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job. Instants are aware; None where the scheduler does not know yet. `cards` None: not told."""

    job: str
    name: str = ""
    account: str = ""  # Slurm account, Kubernetes namespace, Run:ai project
    state: str = ""
    submitted: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    cards: int | None = None
    tokens: float | None = None
    model: str = ""

    @property
    def interrupted(self) -> bool:
        """Whether the job was ended by something other than itself or its user."""
        return self.state in INTERRUPTED

    @property
    def waited(self) -> float | None:
        """Time between asking and starting; None before the start. [s]"""
        if self.submitted is None or self.started is None:
            return None
        return max((self.started - self.submitted).total_seconds(), 0.0)


def from_sacct(
    lines: Iterable[tuple[int, str]], zone: tzinfo, reading: Reading
) -> Iterator[JobRecord]:
    """Jobs (not steps) of sacct. Its times carry no zone: `zone` says which."""
    facts = SacctFacts()
    for job in sacct(lines, facts):
        if job.step:
            continue
        reading.read += 1
        submitted, started, ended = _times(job, zone)
        yield JobRecord(
            job=job.job_id,
            name=job.name,
            account=job.account,
            state=job.state,
            submitted=submitted,
            started=started,
            ended=ended,
            cards=job.gpus,
        )
    for line in facts.bad_rows:
        reading.refuse(msg("Line %(line)s is not a job of sacct", line=line))
    if not facts.columns:
        reading.refuse(msg("The file has no heading of sacct (JobID, State)"))


def _times(job: Job, zone: tzinfo) -> tuple[datetime | None, datetime | None, datetime | None]:
    """When a job could start, started and ended. One cancelled in the queue never started, whatever Slurm wrote.

    In the repeated hour of autumn the instants are those in the right order that the elapsed time agrees with.
    """
    asked = [moment for moment in (job.submit, job.eligible) if moment]
    submitted = local(max(asked), zone) if asked else None
    never = job.state == "CANCELLED" and job.start == job.end and not job.elapsed_s
    start = None if never else job.start
    if start is None or job.end is None or job.elapsed_s is None:
        started = local(start, zone, after=submitted) if start else None
        return submitted, started, local(job.end, zone, after=started) if job.end else None
    elapsed = job.elapsed_s
    pairs = [(first, last) for first in _folds(start, zone) for last in _folds(job.end, zone)]
    started, ended = min(
        pairs,
        key=lambda pair: (
            abs((pair[1] - pair[0]).total_seconds() - elapsed),
            submitted is not None and pair[0] < submitted,
            pair[0],
        ),
    )
    return submitted, started, ended


def _folds(at: datetime, zone: tzinfo) -> list[datetime]:
    """The instants that a local time may mean: two in the repeated hour."""
    first, second = (at.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return [first, second] if second > first else [first]


def attempts(records: Iterable[JobRecord]) -> list[JobRecord]:
    """Each job once by its newest attempt; earlier attempts (requeued, preempted) as jobs of their own.

    `sacct --duplicates` has a row for each attempt under one number. An earlier attempt is named by its number and the
    instant at which it started, so that the same one is found again.
    """
    by_job: dict[str, list[JobRecord]] = {}
    for record in records:
        by_job.setdefault(record.job, []).append(record)
    found: list[JobRecord] = []
    for rows in by_job.values():
        runs = {row.started: row for row in rows if row.started is not None}
        waiting = [row for row in rows if row.started is None]
        ordered = [runs[at] for at in sorted(runs)]
        newest = waiting[-1] if waiting and not _follows(ordered, waiting[-1]) else None
        if newest is None:
            newest = ordered.pop()
        found += [earlier(row) for row in ordered]
        found.append(newest)
    return found


def _follows(ordered: list[JobRecord], waiting: JobRecord) -> bool:
    """Whether a row that has not started is an older report of a job that ran since."""
    if not ordered:
        return False
    last = ordered[-1]
    return not (waiting.submitted and last.started and waiting.submitted > last.started)


def earlier(record: JobRecord) -> JobRecord:
    """An attempt that another one followed, under a name of its own."""
    at = record.started.strftime("%Y%m%dT%H%M%SZ") if record.started else "?"
    return replace(record, job=f"{record.job}@{at}")


def from_kubernetes(text: str, reading: Reading) -> Iterator[JobRecord]:
    """Objects of `kubectl get jobs,pods,vcjob -o json`: a List, one object, or one object a line."""
    for item in _objects(text, reading):
        if item.get("kind") not in ("Job", "Pod", "PyTorchJob", "MPIJob", "RayJob"):
            continue
        record = _kubernetes(item)
        if record is None:
            reading.refuse(msg("An object of kind %(kind)s has no name", kind=str(item["kind"])))
            continue
        reading.read += 1
        yield record


def _objects(text: str, reading: Reading) -> Iterator[dict[str, Any]]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        for line, part in enumerate(text.splitlines(), start=1):
            if not part.strip():
                continue
            try:
                item = json.loads(part)
            except (ValueError, RecursionError):
                reading.refuse(msg("Line %(line)s is not JSON", line=line))
                continue
            if isinstance(item, dict):
                yield item
        return
    items = body.get("items", [body]) if isinstance(body, dict) else body
    yield from (item for item in items if isinstance(item, dict))


def _kubernetes(item: Mapping[str, Any]) -> JobRecord | None:
    meta, spec, status = (_dict(item, name) for name in ("metadata", "spec", "status"))
    if not meta.get("name"):
        return None
    state = _dict(status, "state")  # Volcano: {"phase": "Completed", "lastTransitionTime": …}
    phase = str(state.get("phase") or status.get("phase") or _condition(status) or "").upper()
    reason = str(status.get("reason") or state.get("reason") or "").upper()
    ended = _instant(status.get("completionTime")) or (
        _instant(state.get("lastTransitionTime"))
        if phase in ("COMPLETED", "FAILED", "ABORTED", "TERMINATED")
        else None
    )
    return JobRecord(
        job=f"{meta.get('namespace', 'default')}/{meta['name']}",
        name=str(meta["name"]),
        account=str(meta.get("namespace", "default")),
        state="PREEMPTED" if reason in ("EVICTED", "PREEMPTED", "PREEMPTING") else phase,
        submitted=_instant(meta.get("creationTimestamp")),
        started=_instant(status.get("startTime")) or _started(status),
        ended=ended,
        cards=_cards(spec),
    )


def _condition(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or []:
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return str(condition["type"])
    return ""


def _started(status: Mapping[str, Any]) -> datetime | None:
    for condition in status.get("conditions") or []:
        if str(condition.get("status") or condition.get("type")) == "Running":
            return _instant(condition.get("lastTransitionTime"))
    return None


def _cards(spec: Mapping[str, Any]) -> int | None:
    """Accelerators that the pods of a job ask for together; None when nothing says so."""
    parts: list[tuple[int, Mapping[str, Any]]]
    if "tasks" in spec:  # Volcano
        parts = [
            (int(task.get("replicas", 1)), _dict(_dict(task, "template"), "spec"))
            for task in spec["tasks"]
        ]
    elif "template" in spec:
        parts = [(int(spec.get("parallelism") or 1), _dict(_dict(spec, "template"), "spec"))]
    else:
        parts = [(1, spec)]
    total, told = 0, False
    for replicas, pod in parts:
        for container in pod.get("containers") or []:
            resources = _dict(container, "resources")
            asked = {**_dict(resources, "requests"), **_dict(resources, "limits")}
            for name in _GPU_RESOURCES:
                count = number(asked.get(name))
                if count is not None:
                    total, told = total + replicas * int(count), True
    return total if told else None


def _dict(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = item.get(name)
    return value if isinstance(value, dict) else {}


def _instant(value: object) -> datetime | None:
    if not value:
        return None
    try:
        at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def from_table(
    rows: Iterable[tuple[int, Mapping[str, str]]],
    columns: Mapping[str, str],
    zone: tzinfo,
    reading: Reading,
) -> Iterator[JobRecord]:
    """Jobs of any table: `columns` maps job, name, account, state, submitted, started, ended, cards, tokens and model
    to the file's columns. Times without zone are of `zone`."""
    for line, cells in rows:
        row = {ours: cells.get(theirs, "").strip() for ours, theirs in columns.items()}
        times = {
            name: _moment(row.get(name, ""), zone) for name in ("submitted", "started", "ended")
        }
        wrong = [name for name, at in times.items() if at is None and row.get(name)]
        if not row.get("job") or wrong:
            reading.refuse(
                msg("Line %(line)s: %(field)s is not a time", line=line, field=wrong[0])
                if wrong
                else msg("Line %(line)s names no job", line=line)
            )
            continue
        cards = number(row.get("cards") or None)
        reading.read += 1
        yield JobRecord(
            job=row["job"],
            name=row.get("name", ""),
            account=row.get("account", ""),
            state=row.get("state", "").upper(),
            **times,
            cards=int(cards) if cards is not None else None,
            tokens=number(row.get("tokens") or None),
            model=row.get("model", ""),
        )


def _moment(text: str, zone: tzinfo) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00").replace("/", "-"))
    except ValueError:
        return None
    return at.astimezone(UTC) if at.tzinfo else local(at, zone)
