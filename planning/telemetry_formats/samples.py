"""What a telemetry file says about cards over time, whatever tool wrote it: one sample of one card.

Shares are 0 to 1, power is watts, time is an aware instant. Missing is None, never zero.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from core.messages import Message, msg
from planning.telemetry_formats.nvidia_smi_csv import Layout, Remark, moment, rows
from planning.telemetry_formats.prometheus import Answer, Series
from planning.telemetry_formats.values import Cell, classify, number

FIELDS = ("utilization", "sm_activity", "tensor_activity", "memory", "power")
SHARES = FIELDS[:4]

# Metric → (field, what one means in the field's unit). Shared with acceptance, which reads utilisation only.
METRICS: Mapping[str, tuple[str, float]] = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilization", 100.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("utilization", 1.0),
    "nvidia_smi_utilization_gpu_ratio": ("utilization", 1.0),
    "nvidia_gpu_duty_cycle": ("utilization", 100.0),
    "gpu_gfx_activity": ("utilization", 100.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_activity", 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_activity", 1.0),
    "DCGM_FI_DEV_FB_USED_PERCENT": ("memory", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power", 1.0),
    "nvidia_smi_power_draw_watts": ("power", 1.0),
}
_USED, _FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
_JOB_LABELS = ("hpc_job", "job_id", "slurm_job_id", "exported_pod", "pod")
_HOST_LABELS = ("Hostname", "hostname", "node", "instance")
# Where the exporter runs in a pod of its own, that pod stands in `pod` of a card nobody uses, and in `Hostname`.
_EXPORTER = re.compile(r"(?:dcgm|gpu|smi|metrics)[\w-]*exporter", re.IGNORECASE)
_MOST_POWER = 20_000.0  # of one card [W]
# A card in parts (MIG): what the driver tells of the whole card is then 0 or stale, what the engines tell is by part.
_PART_LABELS = ("GPU_I_ID", "GPU_I_PROFILE")
_OF_THE_WHOLE = frozenset(
    {"DCGM_FI_DEV_GPU_UTIL", "nvidia_smi_utilization_gpu_ratio", "nvidia_gpu_duty_cycle"}
)
_PROFILE = re.compile(r"(\d)g\.")


@dataclass(frozen=True, slots=True)
class Sample:
    """One card at one instant. `card` is its UUID, else host and index."""

    card: str
    at: datetime
    host: str = ""
    model: str = ""  # as the tool names it
    job: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Reading:
    """What was read besides the samples, for the person who brought the file."""

    read: int = 0
    refused: int = 0
    problems: list[Message] = field(default_factory=list)

    def refuse(self, problem: Message) -> None:
        """Count a record that says nothing usable; the first twenty are told in words."""
        self.refused += 1
        if len(self.problems) < 20:
            self.problems.append(problem)


def from_nvidia_smi(
    lines: Iterable[tuple[int, str, str | None]], zone: tzinfo, reading: Reading, *, host: str = ""
) -> Iterator[Sample]:
    """Samples of `nvidia-smi --query-gpu … --format=csv`. Its times carry no zone: `zone` says which."""
    last: dict[str, datetime] = {}  # of each card: a file is written in the order of time
    for row in rows(lines, Layout()):
        if isinstance(row, Remark):
            continue
        cells = row.cells
        written = moment(cells.get("timestamp"))
        name = cells.get("uuid") or ""
        where = row.host or host
        card = name if classify(name) is Cell.VALUE else ""
        if not card and classify(cells.get("index")) is Cell.VALUE and where:
            card = f"{where}:{cells['index']}"
        if written is None or not card:
            reading.refuse(
                msg("Line %(line)s names no time or no card", line=row.number)
                if written is None or where or name
                else msg("Line %(line)s has an index but no host; name the host of the file", line=row.number)
            )  # fmt: skip
            continue
        values = _smi_values(cells)
        if not values:
            reading.refuse(msg("Line %(line)s has no figure that can be used", line=row.number))
            continue
        reading.read += 1
        at = last[card] = local(written, zone, after=last.get(card))
        yield Sample(card, at, where, cells.get("name", ""), "", values)


def local(at: datetime, zone: tzinfo, *, after: datetime | None = None) -> datetime:
    """The instant of a local time without zone.

    In the repeated hour of autumn it is the first one, unless only the second does not lie before `after`.
    """
    first, second = (at.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return second if after is not None and first < after <= second else first


def _smi_values(cells: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    utilization = number(cells.get("utilization.gpu"))
    if utilization is not None and 0 <= utilization <= 100:
        found["utilization"] = utilization / 100
    used, total = number(cells.get("memory.used")), number(cells.get("memory.total"))
    if used is not None and total and 0 <= used <= total:
        found["memory"] = used / total
    power = number(cells.get("power.draw"))
    if power is not None and 0 <= power < 20_000:
        found["power"] = power
    return found


def from_series(series: Iterable[Series], reading: Reading) -> Iterator[Sample]:
    """Samples of a Prometheus answer. Used and free frame buffer of a card are joined to a share at each instant.

    The parts of a card that is cut (MIG) are joined to the card: shares weigh by the slices of each part over all that
    the card has, so that slices that nobody set up count as unused. Such a sample belongs to no single job.
    """
    # By part ("" is the whole card): a part that two series speak for, at a change of its pod, counts once.
    memory: dict[tuple[str, float, str], dict[tuple[str, str], float]] = defaultdict(dict)
    parts: dict[tuple[str, float, str], dict[str, float]] = defaultdict(dict)
    names: dict[str, tuple[str, str]] = {}
    told = False  # that a whole card's figure says nothing of its parts
    for one in series:
        labels = one.labels
        metric = labels.get("__name__", "")
        card, host = card_of(labels)
        if not card:
            reading.refuse(
                msg("A series of %(metric)s names no card (no UUID, no host)", metric=metric or "?")
            )
            continue
        part = next((labels[name] for name in _PART_LABELS if labels.get(name)), "")
        job = "" if part else _job(labels)
        names[card] = (host, labels.get("modelName", ""))
        if metric in (_USED, _FREE):
            for at, value in one.points:
                if value is not None and value >= 0:
                    memory[card, at, job][part, metric] = value
            continue
        if metric not in METRICS:
            reading.refuse(
                msg("%(metric)s is not a metric that is read here", metric=metric or "?")
            )
            continue
        if part and metric in _OF_THE_WHOLE:
            if not told:
                reading.refuse(
                    msg("%(metric)s tells nothing of the parts of a card (MIG); DCGM_FI_PROF_GR_ENGINE_ACTIVE does",
                        metric=metric)
                )  # fmt: skip
            told = True
            continue
        name, scale = METRICS[metric]
        limit = _MOST_POWER if name == "power" else scale
        weight = _slices(labels) if part and name in SHARES else None
        for at, value in one.points:
            if value is None:
                continue
            if not 0 <= value <= limit * 1.0001:
                reading.refuse(
                    msg(
                        "%(metric)s of %(card)s is %(value)s, outside 0 to %(limit)s",
                        metric=metric, card=card, value=value, limit=limit,
                    )
                )  # fmt: skip
                continue
            if weight is not None:
                parts[card, at, name][part] = weight * value / scale
                continue
            reading.read += 1
            yield Sample(
                card, _at(at), host, labels.get("modelName", ""), job, {name: value / scale}
            )
    for (card, at, name), shares in parts.items():
        reading.read += 1
        host, model = names[card]
        yield Sample(card, _at(at), host, model, "", {name: min(sum(shares.values()), 1.0)})
    for (card, at, job), told_of in memory.items():
        both = {part for part, _metric in told_of if {(part, _USED), (part, _FREE)} <= set(told_of)}
        used = sum(told_of[part, _USED] for part in both)
        total = used + sum(told_of[part, _FREE] for part in both)
        if total > 0:
            reading.read += 1
            host, model = names[card]
            yield Sample(card, _at(at), host, model, job, {"memory": used / total})


def remarks(answer: Answer) -> list[Message]:
    """What the server said beside its series: a federated one answers with what it reached, and says so only here."""
    return [
        msg("The server remarks that its answer may lack data: %(problem)s", problem=text)
        for text in answer.warnings[:3]
    ]


def _job(labels: Mapping[str, str]) -> str:
    """The job of a series; the exporter's own pod is none."""
    found = next((labels[name] for name in _JOB_LABELS if labels.get(name)), "")
    return "" if _EXPORTER.search(found) else found


def _slices(labels: Mapping[str, str]) -> float:
    """Compute slices of a MIG part over those of its card (7; 4 on an A30). [1]"""
    profile = _PROFILE.search(labels.get("GPU_I_PROFILE", ""))
    all_ = 4 if "A30" in labels.get("modelName", "") else 7
    return (int(profile[1]) if profile else 1) / all_


def card_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """(card, host) of a series' labels: the UUID, else host and index; empty when there is neither."""
    hosts = [labels[name] for name in _HOST_LABELS if labels.get(name)]
    host = next((name for name in hosts if not _EXPORTER.search(name)), hosts[0] if hosts else "")
    uuid = next((labels[name] for name in ("UUID", "uuid", "gpu_uuid") if labels.get(name)), "")
    index = next(
        (labels[name] for name in ("gpu", "minor_number", "gpu_id") if labels.get(name)), ""
    )
    return uuid or (f"{host}:{index}" if host and index else ""), host


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def from_json(items: Iterable[object], reading: Reading) -> Iterator[Sample]:
    """Samples that were pushed: objects with card, at (ISO 8601 with zone) and any of FIELDS."""
    for place, item in enumerate(items):
        problem = _json_problem(item, place)
        if problem is not None:
            reading.refuse(problem)
            continue
        body: dict[str, object] = item  # type: ignore[assignment]
        reading.read += 1
        yield Sample(
            str(body["card"])[:120],
            datetime.fromisoformat(str(body["at"])).astimezone(UTC),
            str(body.get("host") or "")[:120],
            str(body.get("model") or "")[:120],
            str(body.get("job") or "")[:120],
            {name: value for name in FIELDS if (value := number(body.get(name))) is not None},
        )


def _json_problem(item: object, place: int) -> Message | None:
    if not isinstance(item, dict):
        return msg("Sample %(place)s is not an object", place=place)
    if not item.get("card"):
        return msg("Sample %(place)s: card is missing", place=place)
    try:
        at = datetime.fromisoformat(str(item.get("at")))
    except ValueError:
        return msg("Sample %(place)s: at is not an ISO 8601 time", place=place)
    if at.tzinfo is None:
        return msg("Sample %(place)s: at has no time zone", place=place)
    values = {name: number(item.get(name)) for name in FIELDS if item.get(name) is not None}
    if not values:
        return msg("Sample %(place)s has no figure that can be used", place=place)
    for name, value in values.items():
        if value is None or value < 0 or (name in SHARES and value > 1):
            return msg(
                "Sample %(place)s: %(field)s is %(value)s, outside its range",
                place=place,
                field=name,
                value=str(item[name])[:40],
            )
    return None
