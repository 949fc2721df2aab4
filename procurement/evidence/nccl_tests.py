"""nccl-tests and rccl-tests: correctness first, then bandwidth at the sizes that load the links.

The printed average is over all sizes and is never a gate. A wrong value is silent data corruption whatever the
speed, and a node-level test cannot say which card is to blame.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from core.messages import msg
from planning.telemetry_formats.values import number
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.remarks import judge_crash
from procurement.evidence.report import Report, line
from procurement.evidence.types import Severity, Verdict, normal_bus

FORMATS = ("nccl_tests",)

_HEADER = re.compile(
    r"^#? ?nThread (\d+) nGpus (\d+) minBytes (\d+) maxBytes (\d+) step: (\d+)\((\w+)\).*?validation: (\d)"
)
_VERSION = re.compile(
    r"^# (nccl|rccl)-tests version (\S+)(?:.*?(?:nccl|rccl)-library=(\S+))?", re.IGNORECASE
)
_COLLECTIVE = re.compile(r"^# Collective test (starting|concluded): (\w+?)(?:_perf)?\s*$")
_RANK = re.compile(
    r"^#?\s+Rank\s+(\d+)(?:\s+Group\s+\d+)?(?:\s+Pid\s+(\d+))?\s+on\s+(\S+)\s+device\s+(\d+)\s+\[([0-9a-fA-Fx:.]+)\]\s*(.{0,120})$"
)
_ROW = re.compile(r"^\s*\d{1,15}\s+\d{1,15}\s+[a-z]\w{2,12}\b")
_BOUNDS = re.compile(r"^#?\s*Out of bounds values\s*:\s*(\d+)\s+(OK|FAILED)")
_AVERAGE = re.compile(r"^#?\s*Avg bus bandwidth\s*:\s*([\d.]+)")
_FAILURE = re.compile(r"(?:^|[\s:])(Test (?:NCCL|CUDA) failure\b.{0,200})|Test failure \S+\.cu:\d+")
_PID = re.compile(r"\bpid (\d{1,10}): Test failure")
_NCCL_WARN = re.compile(r"^(\S+?):\d+:\d+ .*?\bNCCL WARN (.{0,200})")
_PORT = re.compile(
    r"NET/IB : (\w+)(?::\d+)? Got (?:non-)?fatal async event: (port error|.{0,60})", re.IGNORECASE
)
_MAX_ROWS = 20_000
_CHECKED_IN_PLACE = frozenset(("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"))


@dataclass(slots=True)
class _Row:
    size: int
    busbw: tuple[float | None, float | None]
    wrong: tuple[str, str]
    where: int


@dataclass(slots=True)
class _Run:
    header: re.Match[str] | None = None
    collective: str = ""
    concluded: bool = False
    ranks: dict[int, tuple[str, int, str, str, str | None]] = field(default_factory=dict)
    rows: list[_Row] = field(default_factory=list)
    bounds: tuple[int, str, int] | None = None
    average: float | None = None
    lines_after_average: int = 0  # the tool always prints one more: its figure is not cut off
    failures: list[tuple[str, str | None, int]] = field(default_factory=list)
    counts_wrong: bool = True  # an old "error" column holds a deviation, not a count


def read(document: Document, context: EvidenceContext) -> Report:
    report = Report("nccl_tests", context)
    runs = [_Run()]
    warns = damaged = 0
    for each in document.lines():
        text = each.text.rstrip()
        run = runs[-1]
        run.lines_after_average += run.average is not None
        if header := _HEADER.match(text):
            if run.header or run.rows:
                runs.append(_Run(collective="" if run.concluded else run.collective))
                run = runs[-1]
            run.header = header
        elif version := _VERSION.match(text):
            if run.rows or run.bounds:
                runs.append(_Run())
            report.variant = f"{version[1].lower()}-tests {version[2]}"
            report.tool_version = version[2]
        elif collective := _COLLECTIVE.match(text):
            if collective[1] == "starting":
                run.collective = collective[2]
            run.concluded = collective[1] == "concluded" and run.collective == collective[2]
        elif rank := _RANK.match(text):
            run.ranks[int(rank[1])] = (
                rank[3],
                int(rank[4]),
                _bus(rank[5]),
                rank[6].strip(),
                rank[2],
            )
        elif bounds := _BOUNDS.match(text):
            run.bounds = (int(bounds[1]), bounds[2], each.number)
        elif average := _AVERAGE.match(text):
            run.average = number(average[1])
        elif failure := _FAILURE.search(text):
            pid = _PID.search(text)
            if len(run.failures) < 200:
                run.failures.append((failure[1] or "", pid[1] if pid else None, each.number))
        elif judge_crash(report, text, each.number):
            continue
        elif warn := _NCCL_WARN.match(text):
            warns += 1
            _warning(report, warn[1], warn[2], each.number)
        elif _ROW.match(text):
            row = _row(text, each.number)
            if row and len(run.rows) < _MAX_ROWS:
                run.rows.append(row)
            else:
                damaged += 1
        elif (
            "#wrong" not in text
            and re.search(r"\berror\b.*\berror\b", text)
            and text.startswith("#")
        ):
            run.counts_wrong = False
    if damaged:
        report.incomplete("damaged_rows", msg("%(count)s rows could not be read.", count=damaged))
    for run in runs:
        _judge(report, run)
    _describe(report, runs, warns)
    return report


def _row(text: str, where: int) -> _Row | None:
    """size, …, then time, algbw, busbw and wrong for out-of-place and in-place."""
    cells = text.split()
    if not 11 <= len(cells) <= 14:
        return None
    out, inside = cells[-8:-4], cells[-4:]
    values = [number(cell) for cell in (*out[:3], *inside[:3])]
    if any(v is None for v in values[:3]) or any(
        v is None and c != "N/A" for v, c in zip(values, (*out[:3], *inside[:3]), strict=True)
    ):
        return None
    return _Row(int(cells[0]), (values[2], values[5]), (out[3], inside[3]), where)


def _bus(text: str) -> str:
    if text.startswith("0x"):
        return normal_bus(f"{text[2:]}:00")
    return normal_bus(text)


def _warning(report: Report, host: str, text: str, where: int) -> None:
    port = _PORT.search(text)
    if port:
        report.finding(
            "ib_async_port_error",
            Severity.REVIEW,
            msg(
                "%(host)s: port %(device)s reported: %(event)s",
                host=host,
                device=port[1],
                event=port[2].strip(),
            ),
            where=line(where),
            host=host,
            device=port[1],
        )
    else:
        report.finding(
            "nccl_warn",
            Severity.REVIEW,
            msg("%(host)s: NCCL warns: %(text)s", host=host, text=text.strip()),
            where=line(where),
            host=host,
        )
    report.caution("nccl_warn_present", msg("NCCL printed warnings during the run."))


def _collective(run: _Run) -> str:
    """The name that was printed, or all_reduce where busbw is algbw times 2(n-1)/n."""
    return run.collective or "all_reduce"


def _judge(report: Report, run: _Run) -> None:
    if not (run.header or run.rows or run.ranks or run.failures):
        return
    report.hosts += [rank[0] for rank in run.ranks.values()]
    for index, (rank, (host, device, bus, model, _)) in enumerate(sorted(run.ranks.items())):
        del index
        log = report.device(
            (host, bus if bus else device), index=device, host=host, bus=bus, model=model or None
        )
        log.figures.setdefault("rank", rank)
    _failures(report, run)
    failed = _correctness(report, run)
    _completeness(report, run)
    failed |= _speed(report, run)
    if failed:
        report.note_all(
            Verdict.INCONCLUSIVE,
            "not_attributable",
            msg("The node failed; this test cannot name the card to blame."),
        )
        report.caution(
            "node_level_test", msg("A node-level test cannot name the bad card: bisect with pairs.")
        )


def _failures(report: Report, run: _Run) -> None:
    by_pid = {pid: (host, bus) for host, _, bus, _, pid in run.ranks.values() if pid}
    pids = {host_bus for _, pid, _ in run.failures if pid and (host_bus := by_pid.get(pid))}
    shared = len(by_pid) < len(
        run.ranks
    )  # one process drives several cards: its pid names none of them
    for text, pid, where in run.failures:
        found = by_pid.get(pid or "")
        if found and not shared and len(pids) == 1:
            report.devices[found].note(
                Verdict.FAIL,
                "test_failure",
                msg("The process on this card failed."),
                where=line(where),
            )
        if text:
            report.finding(
                "test_failure",
                Severity.BLOCKING,
                msg("The test broke off: %(text)s", text=text),
                where=line(where),
            )
    if run.failures:
        if not any(text for text, _, _ in run.failures):
            report.finding(
                "test_failure",
                Severity.BLOCKING,
                msg("The test broke off."),
                where=line(run.failures[0][2]),
            )
        report.note_all(
            Verdict.INCONCLUSIVE, "broke_off", msg("The run broke off before it tested this card.")
        )
        report.incomplete("broke_off", msg("The run broke off with an error."))


def _correctness(report: Report, run: _Run) -> bool:
    wrong, sizes, untested = 0, [], False
    for row in run.rows:
        counted = [number(cell) for cell in row.wrong]
        untested |= all(cell == "N/A" for cell in row.wrong) or (
            # alltoall and sendrecv cannot be checked in place; the others are, unless the check was off
            run.collective in _CHECKED_IN_PLACE and "N/A" in row.wrong and None not in row.busbw
        )
        if run.counts_wrong and any(counted):
            wrong += int(sum(c or 0 for c in counted))
            sizes.append(row)
        if any(cell.lower() in ("nan", "inf", "-nan") for cell in row.wrong):
            sizes.append(row)
    report.counts["wrong_total"] = report.counts.get("wrong_total", 0) + wrong
    report.counts["rows_with_wrong"] = report.counts.get("rows_with_wrong", 0) + len(sizes)
    corrupt = bool(sizes) or bool(run.bounds and (run.bounds[0] or run.bounds[1] == "FAILED"))
    if corrupt:
        where = sizes[0].where if sizes else run.bounds[2] if run.bounds else 0
        names = ", ".join(str(row.size) for row in sizes[:8])
        report.finding(
            "data_corruption",
            Severity.BLOCKING,
            msg("Wrong results at %(sizes)s bytes: silent data corruption.", sizes=names or "?"),
            value=wrong or (run.bounds[0] if run.bounds else None),
            threshold=0,
            where=line(where),
        )
    validated = run.header is None or run.header[7] != "0"
    if untested or not validated:
        report.note_all(
            Verdict.INCONCLUSIVE,
            "not_validated",
            msg("Validation was off: nothing shows that its results are right."),
        )
        report.unproven(
            "not_validated",
            msg("Validation was off: whether the results are right was not tested."),
        )
    return corrupt


def _completeness(report: Report, run: _Run) -> None:
    cut = bool(run.collective) and not run.concluded
    if run.average is None or run.bounds is None or not run.lines_after_average or cut:
        report.incomplete("no_summary", msg("The run has no summary at its end."))
    if run.header is None:
        report.incomplete(
            "no_header", msg("The line with the sizes that were asked for is missing.")
        )
        return
    low, high, step, kind = (
        int(run.header[3]),
        int(run.header[4]),
        int(run.header[5]),
        run.header[6],
    )
    if 0 < low == high:
        wanted = 1
    elif kind == "factor" and step > 1 and 0 < low <= high:
        # Of each alone: the quotient of two damaged sizes is too large for a float.
        wanted = math.floor((math.log(high) - math.log(low)) / math.log(step) + 1e-9) + 1
    elif kind == "bytes" and step > 0 and high >= low:
        wanted = (high - low) // step + 1
    else:
        report.incomplete(
            "sizes_unclear", msg("The sizes that were asked for make no row of sizes.")
        )
        return
    if len(run.rows) < wanted:
        report.incomplete(
            "rows_missing",
            msg("%(shown)s of %(wanted)s sizes were measured.", shown=len(run.rows), wanted=wanted),
        )
    ranks = {int(rank) for rank in run.ranks}
    if not ranks or ranks != set(range(len(ranks))):
        report.incomplete("ranks_missing", msg("The list of devices is not whole."))


def _speed(report: Report, run: _Run) -> bool:
    context = report.context
    least_bytes = context.policy.require("busbw_min_bytes")
    large = [row for row in run.rows if row.size >= least_bytes]
    best = max((b for row in large for b in row.busbw if b is not None), default=None)
    if not run.rows or best is None:
        if run.rows:
            report.unproven(
                "sizes_too_small",
                msg(
                    "No size of at least %(limit)s bytes was run: the links were not loaded.",
                    limit=int(least_bytes),
                ),
            )
        return False
    hosts = {rank[0] for rank in run.ranks.values()}
    model = next((rank[3] for rank in run.ranks.values()), None)
    key = "min_busbw_gbs" if len(hosts) <= 1 else "min_busbw_gbs_multinode"
    limit = number(context.promise.get("busbw_gbs_min")) or context.policy.limit(key, model)
    # A model's own limit holds for all-reduce on eight cards a node; a contract's limit for what it names.
    stated = key in context.policy.overrides or "busbw_gbs_min" in context.promise
    usual = _collective(run) == "all_reduce" and bool(hosts) and len(run.ranks) == 8 * len(hosts)
    if limit is None or not (stated or usual):
        report.review_needed(
            "no_bandwidth_limit",
            msg(
                "No limit is known for this collective, model and number of cards: the speed was not judged."
            ),
        )
        return False
    row = next(row for row in large if best in row.busbw)
    if best < limit:
        report.finding(
            "bandwidth_below_policy",
            Severity.BLOCKING,
            msg(
                "The best bus bandwidth is %(value)s GB/s; at least %(limit)s GB/s is asked for.",
                value=best,
                limit=limit,
            ),
            value=best,
            threshold=limit,
            where=line(row.where),
        )
        return True
    return False


def _describe(report: Report, runs: list[_Run], warns: int) -> None:
    used = [run for run in runs if run.rows or run.header or run.failures]
    if not used:
        report.incomplete("no_run", msg("The file holds no run of the tool."))
        return
    rows = [row for run in used for row in run.rows]
    peak = max((b for row in rows for b in row.busbw if b is not None), default=None)
    largest = max(rows, key=lambda row: row.size, default=None)
    report.counts |= {
        "ranks": max(len(run.ranks) for run in used),
        "rows": len(rows),
        "nccl_warn_lines": warns,
        "runs": len(used),
    }
    report.metrics |= {
        "collective": _collective(used[0]),
        "avg_busbw_reported": used[0].average,
        "peak_busbw": peak,
        "largest_bytes": largest.size if largest else None,
        "busbw_at_largest_oop": largest.busbw[0] if largest else None,
    }
