"""What parallel shells, launchers and collectors put before each line, one layer upon another.

A layer is taken off only when every line of the sample has it: a tool's own headings never do. Which name is the
host's is told by :func:`host_of`: the innermost that is not a bare number (a rank, a task).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_LAYERS = 4
_FEW = 4  # lines that show a prefix, at least

_CTIME = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}"
_MPI = re.compile(
    # Open MPI 4 and 5, with --timestamp-output and --output tag-detailed.
    rf"^(?:{_CTIME})?\[(?:\d{{1,6}}|[\w.-]{{1,80}}@\d{{1,6}}),\d{{1,7}}\](?:\[([\w.-]{{1,80}}):\d{{1,8}}\])?"
    r"<std(?:out|err|diag)>: ?"
)
_STAMP = re.compile(
    r"^\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)\]?[ \t]"
)
# What stands before every line, with the host or pod in it.
_TAGS = (
    re.compile(r"^\[pod/([\w.-]{1,80})/[\w.-]{1,80}\] ?"),  # kubectl logs --prefix
    re.compile(  # docker compose
        r"^([A-Za-z][\w.-]{0,62}) +\| ?(?!CHANGED|SUCCESS|FAILED|UNREACHABLE)"
    ),
    re.compile(r"^([A-Za-z](?=[\w.-]*[\d.-])[\w.-]{0,62})\t"),  # parallel --tag
    re.compile(r"^\[(\d{1,6})\](?: |$)"),  # MPICH and Intel MPI -prepend-rank
    re.compile(r"^\[[a-z_]{1,20}(\d{1,6})\]:"),  # torchrun --tee
)
_LABEL = re.compile(
    r"^ {0,6}([A-Za-z0-9][\w.-]{0,63}): ?(?=\S|$)|^ {0,6}([A-Za-z0-9][\w.-]{0,63}): "
)
_ANY_LABEL = re.compile(r"^(?:\[\d{1,6},\d{1,7}\]<std\w{3,4}>: ?|[A-Za-z0-9][\w.-]{0,63}: ?|> )")
# journalctl in its short forms and syslog: time, host, process. The kernel's own lines are no prefix but evidence.
_JOURNAL = re.compile(
    r"^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|"
    r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? [A-Z]{2,5}|"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)) "
    r"([\w.-]{1,80}) (?!kernel\b)([^\s:\[\]]{1,60})(?:\[\d{1,8}\])?: ?"
)
_NOT_HOSTS = frozenset("gpu warning error info nvrm kernel note device waived done sum".split())
# The service manager and the shells speak of the run between the tool's lines.
_MANAGERS = {"systemd", "CRON", "sudo"}
_LAUNCHER = re.compile(
    r"^-- (?:Logs begin at|Journal begins at|Boot [0-9a-f]|No entries|Reboot)|"
    r"^(?:pdsh|pdcp|clush|srun|slurmstepd|salloc|mpirun|mpiexec|prterun|prun|parallel|pssh|parallel-ssh)"
    r"(?:@[\w.-]{1,64})?: "
)
_TROUBLE = re.compile(
    r"exited with|exit code|error|timed? ?out|fail|killed|unreachable|refused|no route|aborted|not found|"
    r"-- Reboot|could not|lost connection",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One prefix. `process` names the one whose journal lines are the tool's."""

    pattern: re.Pattern[str]
    kind: str  # "mpi" | "tag" | "label" | "stamp" | "journal"
    process: str = ""

    def take(self, text: str) -> tuple[str | None, str] | None:
        """(name or None, the rest of the line); None when the line does not have the prefix."""
        found = self.pattern.match(text)
        if not found:
            return None
        if self.kind == "stamp":
            return None, text[found.end() :]
        if self.kind == "journal":
            return (found[1], text[found.end() :]) if found[2] == self.process else None
        return found[found.lastindex] if found.lastindex else None, text[found.end() :]


def peel(
    layers: Sequence[Layer], text: str, carried: Sequence[str | None] | None = None
) -> tuple[str, list[str | None]]:
    """The line without its prefixes, and the names in them, outermost first.

    `carried` are the names of the piece before in the same line: a carriage return does not repeat the prefix.
    """
    names: list[str | None] = []
    for i, layer in enumerate(layers):
        taken = layer.take(text)
        if taken is None:
            names.append(carried[i] if carried is not None else None)
        else:
            names.append(taken[0])
            text = taken[1]
    return text, names


def host_of(names: Iterable[str | None]) -> tuple[str | None, str | None]:
    """(host, task): the innermost name that is no bare number, and the numbers inside it; a lone number is the host."""
    found = [name for name in names if name]
    words = [name for name in found if not name.isdigit()]
    numbers = [name for name in found if name.isdigit()]
    if words:
        return words[-1], "/".join(numbers) or None
    return (numbers[-1], "/".join(numbers[:-1]) or None) if numbers else (None, None)


def find_layers(
    lines: Sequence[str], *, deep: bool, before: Sequence[Layer] = ()
) -> tuple[Layer, ...]:
    """The prefixes that all of `lines` have, outermost first, beyond those `before`.

    `deep` also takes off times and the journal's head, which are a kernel log's own in another file.
    """
    layers = list(before)
    lines = [stripped for text in lines if (stripped := peel(layers, text)[0]).strip()]
    while len(layers) < MAX_LAYERS:
        layer = _next_layer(lines, deep=deep)
        if layer is None:
            break
        layers.append(layer)
        taken = (layer.take(text) for text in lines)
        lines = [rest[1] for rest in taken if rest and rest[1].strip()]
    return tuple(layers)


def _next_layer(lines: Sequence[str], *, deep: bool) -> Layer | None:
    if lines and any(_MPI.match(text) for text in lines):
        return Layer(_MPI, "mpi")
    if len(lines) < _FEW:
        return None
    for pattern in _TAGS:
        if _all_have(lines, pattern):
            return Layer(pattern, "tag")
    if deep:
        if process := _process(lines):
            return Layer(_JOURNAL, "journal", process)
        if all(_STAMP.match(text) for text in lines):
            return Layer(_STAMP, "stamp")
    if _all_have(lines, _LABEL, not_names=_NOT_HOSTS):
        return Layer(_LABEL, "label")
    return None


def _all_have(
    lines: Sequence[str],
    pattern: re.Pattern[str],
    not_names: frozenset[str] = frozenset(),
) -> bool:
    """Whether every line has the prefix, with few names. A launcher's own words may stand between."""
    names: set[str] = set()
    count = 0
    for text in lines:
        found = pattern.match(text)
        if _LAUNCHER.match(text) and not (
            found and (found.lastindex and found[found.lastindex]) in names
        ):
            continue
        if not found:
            return False
        count += 1
        names.add(found[found.lastindex or 1])
    if count < _FEW or any(name.lower() in not_names for name in names):
        return False
    return len(names) <= max(1, count // 3)


def _process(lines: Sequence[str]) -> str:
    """The one process that wrote all lines of a journal, besides the service manager; empty when there is none."""
    processes: Counter[str] = Counter()
    for text in lines:
        found = _JOURNAL.match(text)
        if found:
            processes[found[2]] += 1
        elif not _LAUNCHER.match(text):
            return ""
    tools = [name for name in processes if name not in _MANAGERS]
    return tools[0] if len(tools) == 1 and processes[tools[0]] >= _FEW else ""


def launcher_trouble(text: str) -> bool:
    """Whether a line in which a launcher or the service manager speaks says that something went wrong."""
    return bool(_TROUBLE.search(text))


def is_launcher(text: str, layers: Sequence[Layer] = ()) -> bool:
    """Whether the launcher itself speaks: a line that no tool wrote.

    In a journal of one tool that is its service manager too; elsewhere such lines are the log's own.
    """
    if _LAUNCHER.match(text):
        return True
    found = _JOURNAL.match(text) if any(layer.kind == "journal" for layer in layers) else None
    return bool(found and found[2] in _MANAGERS)


def without_any(text: str) -> str:
    """A line without what might be a label."""
    return _ANY_LABEL.sub("", text)
