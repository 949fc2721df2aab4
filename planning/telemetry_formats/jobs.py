"""Jobs of schedulers as one kind of record: Slurm sacct, Kubernetes and Volcano objects, Run:ai and other tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from core.messages import msg
from planning.telemetry_formats.samples import Reading, local
from planning.telemetry_formats.slurm import SacctFacts, sacct
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
        asked = [moment for moment in (job.submit, job.eligible) if moment]
        yield JobRecord(
            job=job.job_id,
            name=job.name,
            account=job.account,
            state=job.state,
            submitted=local(max(asked), zone) if asked else None,
            started=local(job.start, zone) if job.start else None,
            ended=local(job.end, zone) if job.end else None,
            cards=job.gpus,
        )
    for line in facts.bad_rows:
        reading.refuse(msg("Line %(line)s is not a job of sacct", line=line))
    if not facts.columns:
        reading.refuse(msg("The file has no heading of sacct (JobID, State)"))


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
