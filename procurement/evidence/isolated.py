"""Read a file in a process of its own, so that nothing in it can take the caller down.

The readers bound what they hold and refuse what they know to be hostile; the limits here are for what nobody
thought of. A file that breaks them is rejected like any other hostile one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.messages import Message, msg
from procurement.evidence.policy import EvidenceContext, default_context
from procurement.evidence.report import Report
from procurement.evidence.types import Evidence, Severity, Verdict

ROOT = Path(__file__).resolve().parents[2]
CPU_SECONDS = 60
MEMORY_BYTES = 1 << 30
_SLACK_SECONDS = 30  # the clock on the wall runs on while others use the processor


def read_isolated(
    path: Path,
    *,
    context: Mapping[str, Any] | None = None,
    cpu_seconds: int = CPU_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Evidence:
    """As :func:`read_evidence`, in a child with limits of processor time [s] and address space [B].

    `context` is the JSON form of :meth:`EvidenceContext.from_json`. Raises OSError when the file cannot be read.
    """
    with path.open("rb"):  # a missing file is the caller's mistake, not evidence
        pass
    with tempfile.NamedTemporaryFile("w", suffix=".json") as handle:
        json.dump(dict(context or {}), handle)
        handle.flush()
        command = [
            sys.executable, "-m", "procurement.evidence", str(path.resolve()), "--json", "--context", handle.name,
            "--cpu", str(cpu_seconds), "--memory", str(memory_bytes),
        ]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603 - our own module; the path is an argument, never a shell word
                command,
                cwd=ROOT,
                capture_output=True,
                timeout=2 * cpu_seconds + _SLACK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _rejected(context, msg("The file took too long to read."))
    if done.returncode != 0:
        return _rejected(
            context, msg("The reader was stopped by its limits (%(code)s).", code=done.returncode)
        )
    return Evidence.from_json(json.loads(done.stdout))


def _rejected(context: Mapping[str, Any] | None, message: Message) -> Evidence:
    judged = EvidenceContext.from_json(context) if context else default_context()
    report = Report("unknown", judged, complete=None)
    report.finding("reader_limits", Severity.SECURITY, message)
    report.run_verdicts.append(Verdict.REJECT)
    return report.freeze()
