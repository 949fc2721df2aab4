"""The command line of the readers, shared by `python -m procurement.evidence` and `manage.py read_evidence`."""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path
from typing import Protocol

from procurement.evidence.policy import EvidenceContext, default_context
from procurement.evidence.read import read_evidence
from procurement.evidence.types import Evidence


class Output(Protocol):
    """Where a report is written to: a file, or Django's wrapper of one."""

    def write(self, text: str, /) -> object: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a summary")
    parser.add_argument(
        "--context",
        type=Path,
        metavar="FILE",
        help="JSON with policy_used, order_context, vendor_promise",
    )


def run(files: list[Path], *, as_json: bool, context_file: Path | None, out: Output) -> None:
    """Read and print each file: an object for one file, an array for several."""
    context = default_context()
    if context_file:
        context = EvidenceContext.from_json(json.loads(context_file.read_text()))
    read = [(path, read_evidence(path, context=context)) for path in files]
    if as_json:
        shown = [{"sample": path.name, **evidence.to_json()} for path, evidence in read]
        value = shown[0] if len(shown) == 1 else shown
        out.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
    else:
        for path, evidence in read:
            out.write(summary(path, evidence))


def summary(path: Path, evidence: Evidence) -> str:
    """A few lines for a person."""
    lines = [
        f"{path}: {evidence.format}: {evidence.verdict.value} (policy {evidence.policy_version})"
    ]
    lines += [
        f"  {finding.severity.value}: {finding.message} {finding.where}".rstrip()
        for finding in evidence.findings
    ]
    for device in evidence.devices:
        name = device.serial or device.uuid or device.bus or str(device.index)
        reasons = "; ".join(
            f"{reason.message} [{reason.where}]" if reason.where else str(reason.message)
            for reason in device.reasons
        )
        lines.append(f"  {name}: {device.verdict.value}{': ' + reasons if reasons else ''}")
    lines += [f"  note: {caution.message}" for caution in evidence.cautions]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m procurement.evidence", description=__doc__)
    add_arguments(parser)
    parser.add_argument("--memory", type=int, metavar="BYTES", help="limit of the address space")
    parser.add_argument("--cpu", type=int, metavar="SECONDS", help="limit of processor time")
    options = parser.parse_args(arguments)
    if options.memory:
        resource.setrlimit(resource.RLIMIT_AS, (options.memory, options.memory))
    if options.cpu:
        resource.setrlimit(resource.RLIMIT_CPU, (options.cpu, options.cpu))
    run(options.files, as_json=options.json, context_file=options.context, out=sys.stdout)
    return 0
