"""Slurm accounting: jobs of `sacct` in any of its layouts, and the rows of `sreport cluster utilization`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from planning.telemetry_formats.values import number

_STATES = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PENDING",
    "PREEMPTED", "RUNNING", "REQUEUED", "RESIZING", "REVOKED", "SUSPENDED", "TIMEOUT", "COMPLETING", "CONFIGURING",
)  # fmt: skip
_DURATION = re.compile(r"^(?:(\d{1,5})-)?(?:(\d{1,4}):)?(\d{1,2}):(\d{2})(?:\.\d{1,6})?$")
_GPU = re.compile(r"\bgres/gpu(?::[\w.-]{1,60})?=(\d{1,6})\b")
_GPU_UNTYPED = re.compile(r"\bgres/gpu=(\d{1,6})\b")
_OLD_GRES = re.compile(r"\bgpu(?::[A-Za-z][\w.-]{0,60})?:(\d{1,6})")
_JOB_ID = re.compile(
    r"^\d{1,12}(?:_(?:\d{1,9}|\[[^\]]{1,200}\]))?(?:\+\d{1,6})?(\.[\w+-]{1,60})?\+?$"
)
_DASHES = re.compile(r"^-{2,}(?: +-{2,})+ *$")
_MAX_JOINED = 50  # physical lines of one record: a job name may hold line feeds
_MAX_CELL = 100_000


@dataclass(frozen=True, slots=True)
class Job:
    """One row of sacct. Times are local, without zone; None where Slurm wrote Unknown, None or nothing."""

    job_id: str
    step: bool
    state: str
    submit: datetime | None
    eligible: datetime | None
    start: datetime | None
    end: datetime | None
    elapsed_s: float | None
    planned_s: float | None
    gpus: (
        int | None
    )  # 0 for a job that asked for none; None when the list of resources is missing or cut off
    number: int
    name: str = ""
    account: str = ""

    @property
    def wait_s(self) -> float | None:
        """Start - max(submit, eligible) [s]; None before the start, or without the times."""
        asked = [moment for moment in (self.submit, self.eligible) if moment]
        return (self.start - max(asked)).total_seconds() if self.start and asked else None


@dataclass(slots=True)
class SacctFacts:
    """The layout of the file and what in it could not be read."""

    columns: tuple[str, ...] = ()
    layout: str = ""
    rows: int = 0
    bad_rows: list[int] = field(default_factory=list)
    repaired: int = 0
    cut: bool = False  # the last row is not whole
    cancelled_with_id: bool = False
    typed_and_untyped: bool = False


def sacct(lines: Iterable[tuple[int, str]], facts: SacctFacts) -> Iterator[Job]:
    """Jobs and steps of (number, text) lines. `facts` is filled on the way."""
    header: tuple[str, ...] = ()
    delimiter = ""
    widths: tuple[tuple[int, int], ...] = ()
    pending: list[str] = []
    pending_number = 0
    for number_, text in lines:
        if not header:
            found = _header(text)
            if found:
                header, delimiter = found
                facts.columns, facts.layout = header, "delimited" if delimiter else "fixed width"
            continue
        if not delimiter:
            if _DASHES.match(text):
                widths = tuple((m.start(), m.end()) for m in re.finditer(r"-+", text))
                continue
            if text.strip():
                yield from _job(header, _fixed(text, widths), number_, facts)
            continue
        if not text.strip() and not pending:
            continue
        if _header(text) == (header, delimiter):
            continue  # sacct output was appended to sacct output
        if not pending:
            pending_number = number_
        pending.append(text)
        cells = "\n".join(pending).split(delimiter)
        expected = len(header) + (cells[-1].strip() == "" and len(cells) == len(header) + 1)
        if (
            len(cells) < expected
            and len(pending) < _MAX_JOINED
            and sum(map(len, pending)) < _MAX_CELL
        ):
            continue
        facts.repaired += len(pending) > 1
        pending = []
        yield from _job(header, _fitted(header, cells, facts), pending_number, facts)
    if pending:
        facts.cut = True
        facts.rows += 1
        facts.bad_rows.append(pending_number)


def _header(text: str) -> tuple[tuple[str, ...], str] | None:
    for delimiter in ("|#", "|", ",", ";", "\t"):
        if delimiter in text:
            names = tuple(
                cell.strip() for cell in text.strip().removesuffix(delimiter).split(delimiter)
            )
            if {"JobID", "JobIDRaw"} & set(names) and "State" in names:
                return names, delimiter
    words = tuple(text.split())
    if words and words[0] in ("JobID", "JobIDRaw") and "State" in words:
        return words, ""
    return None


def _fixed(text: str, widths: tuple[tuple[int, int], ...]) -> list[str]:
    if not widths:
        return text.split()
    return [text[start:end].strip() for start, end in widths]


def _fitted(header: tuple[str, ...], cells: list[str], facts: SacctFacts) -> list[str]:
    """Cells in number with the header. A job name that holds the delimiter is put together again."""
    if len(cells) == len(header) + 1 and not cells[-1].strip():
        return cells[:-1]
    excess = len(cells) - len(header)
    if excess <= 0 or excess > 200:
        return cells
    state = header.index("State")
    for column in ("JobName", "SubmitLine", "Comment", "WorkDir"):
        if column in header:
            at = header.index(column)
            joined = [*cells[:at], "|".join(cells[at : at + excess + 1]), *cells[at + excess + 1 :]]
            if joined[state].split(" ")[0].rstrip("+") in _STATES:
                facts.repaired += 1
                return joined
    return cells


def _job(header: tuple[str, ...], cells: list[str], line: int, facts: SacctFacts) -> Iterator[Job]:
    facts.rows += 1
    row = dict(zip(header, cells, strict=False))
    job_id = (row.get("JobID") or row.get("JobIDRaw") or "").strip()
    state = (row.get("State") or "").strip()
    known = next(
        (
            name
            for name in _STATES
            if state.split(" ")[0].rstrip("+") and name.startswith(state.split(" ")[0].rstrip("+"))
        ),
        "",
    )
    shape = _JOB_ID.match(job_id)
    if len(cells) != len(header) or not shape or not known:
        facts.bad_rows.append(line)
        return
    facts.cancelled_with_id |= state.startswith("CANCELLED by ")
    elapsed = number(row.get("ElapsedRaw"))
    yield Job(
        job_id=job_id, step=shape[1] is not None, state=known,
        submit=_moment(row.get("Submit")), eligible=_moment(row.get("Eligible")),
        start=_moment(row.get("Start")), end=_moment(row.get("End")),
        elapsed_s=elapsed if elapsed is not None else duration_s(row.get("Elapsed")),
        planned_s=duration_s(row.get("Planned") or row.get("Reserved")),
        gpus=_gpus(row, facts), number=line,
        name=(row.get("JobName") or "").strip(), account=(row.get("Account") or "").strip(),
    )  # fmt: skip


def _gpus(row: dict[str, str], facts: SacctFacts) -> int | None:
    """Typed and untyped entries of one TRES list are the same cards: the untyped total counts."""
    for column in ("AllocTRES", "ReqTRES"):
        text = row.get(column) or ""
        total, each = _GPU_UNTYPED.search(text), _GPU.findall(text)
        facts.typed_and_untyped |= bool(total) and len(each) > 1
        if total:
            return int(total[1])
        if each:
            return sum(map(int, each))
    for column in ("AllocGRES", "ReqGRES"):
        counts = _OLD_GRES.findall(row.get(column) or "")
        if counts:
            return sum(map(int, counts)) * int(number(row.get("NNodes")) or 1)
    lists = [row[c] for c in ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES") if row.get(c)]
    return 0 if lists and not any(text.endswith("+") for text in lists) else None


def duration_s(text: str | None) -> float | None:
    """Seconds of [D-]HH:MM:SS or MM:SS; None for anything else."""
    found = _DURATION.match((text or "").strip())
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _moment(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat((text or "").strip()).replace(tzinfo=None)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Utilization:
    """One row of `sreport cluster utilization` in the unit that the report names."""

    cluster: str
    tres: str
    values: dict[
        str, float
    ]  # Allocated, Down, PLND Down, Idle, Planned (older: Reserved), Reported
    percents: dict[str, float]
    number: int


@dataclass(slots=True)
class SreportFacts:
    """The period and unit that the heading states; minutes are sreport's default."""

    period: tuple[str, str] | None = None
    unit: str = ""
    columns: tuple[str, ...] = ()
    bad_rows: int = 0


_PERIOD = re.compile(r"^Cluster Utilization (\S{10,25}) - (\S{10,25})")
_UNIT = re.compile(r"^Usage reported in (?:TRES |CPU )?(\w+)")
_CELL = re.compile(r"^([\d.]{1,20})(?:\(([\d.]{1,8})%\))?$")
_PERCENT = re.compile(r"^([\d.]{1,8})%$")


def sreport(lines: Iterable[tuple[int, str]], facts: SreportFacts) -> Iterator[Utilization]:
    """Rows of (number, text) lines, in fixed width or with bars."""
    header = ""
    for number_, text in lines:
        if period := _PERIOD.match(text.strip()):
            facts.period = (period[1], period[2])
        elif unit := _UNIT.match(text.strip()):
            facts.unit = unit[1]
        elif "TRES Name" in text and "Allocated" in text:
            header = text
            if "|" in text:
                facts.columns = tuple(cell.strip() for cell in text.strip().strip("|").split("|"))
        elif _DASHES.match(text.strip()) and header:
            offset = len(text) - len(text.lstrip())
            spans = [
                (m.start() + offset, m.end() + offset) for m in re.finditer(r"-+", text.strip())
            ]
            facts.columns = tuple(header[a:b].strip() for a, b in spans)
        elif facts.columns and text.strip():
            row = _utilization(text, facts, number_)
            if row:
                yield row
            elif not set(text.strip()) <= {"-"}:
                facts.bad_rows += 1


def _utilization(text: str, facts: SreportFacts, line: int) -> Utilization | None:
    cells = [c.strip() for c in text.strip().strip("|").split("|")] if "|" in text else text.split()
    if len(cells) != len(facts.columns):
        return None
    row = dict(zip(facts.columns, cells, strict=True))
    values: dict[str, float] = {}
    percents: dict[str, float] = {}
    for name, cell in row.items():
        if name in ("Cluster", "TRES Name"):
            continue
        found, percent = _CELL.match(cell), _PERCENT.match(cell)
        if found:
            value = number(found[1])
            if value is not None:
                values[name] = value
            if found[2]:
                percents[name] = float(found[2])
        elif percent:
            percents[name] = float(percent[1])
        else:
            return None
    return Utilization(row.get("Cluster", ""), row.get("TRES Name", ""), values, percents, line)
