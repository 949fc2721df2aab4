"""Read an evidence file: detect its format, read it in bounded memory, judge it by a policy.

    evidence = read_evidence("burn.log", context=context)

Nothing a file holds can make this raise: what cannot be read is rejected, with the reason in the findings.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from core.messages import Message, msg
from planning.telemetry_formats.source import Source, TooLargeError
from procurement.evidence.bounded import HostileInputError
from procurement.evidence.detect import archive_kind, detect
from procurement.evidence.document import Document
from procurement.evidence.finish import finish
from procurement.evidence.kernel_lines import have_their_own_times
from procurement.evidence.policy import EvidenceContext, default_context
from procurement.evidence.readers import READERS, STREAMING
from procurement.evidence.report import Report, TooManyDevicesError, merged
from procurement.evidence.types import Evidence, Severity, Verdict


def read_evidence(
    file: str | Path | BinaryIO | bytes, *, context: EvidenceContext | None = None
) -> Evidence:
    """What the file proves.

    `file` is a path, the bytes themselves, or a seekable binary stream (left open). Raises OSError when a path
    cannot be read, and nothing else.
    """
    context = context or default_context()
    if isinstance(file, str | Path):
        with Path(file).open("rb") as stream:
            return _read(stream, context)
    return _read(io.BytesIO(file) if isinstance(file, bytes) else file, context)


def _read(stream: BinaryIO, context: EvidenceContext) -> Evidence:
    source = Source(stream)
    if not source.size:
        return _empty(context)
    kind = archive_kind(source.magic)
    if kind:
        message = msg(
            "This is a %(kind)s file, not the text that a tool prints. Unpack it first.", kind=kind
        )
        return _rejected("unknown", context, "not_text", message, Severity.REVIEW)
    windows = source.windows()
    document, formats = _recognised(source, windows)
    hidden = detect(tuple(document.unlabelled(window) for window in windows if window))
    if not formats:
        message = msg("No known tool wrote this file.")
        return _rejected("unknown", context, "unknown_format", message, Severity.REVIEW)
    name = formats[0]
    try:
        report = _report(document, name, context)
    except TooLargeError as error:
        message = msg(
            "The file has %(size)s bytes; this format is read up to %(limit)s.",
            size=error.size,
            limit=error.limit,
        )
        return _rejected(name, context, "too_large", message, Severity.SECURITY)
    except HostileInputError as error:
        return _rejected(name, context, error.code, error.message, Severity.SECURITY)
    except TooManyDevicesError:
        message = msg("The file names more devices than any delivery has.")
        return _rejected(name, context, "too_many_devices", message, Severity.SECURITY)
    for number, text in document.launcher:
        report.unproven(
            "launcher_error",
            msg(
                "The launcher tells of trouble: %(text)s (line %(line)s)",
                text=text.strip()[:160],
                line=number,
            ),
        )
    return finish(report, source, [*formats, *(other for other in hidden if other not in formats)])


def _recognised(source: Source, windows: tuple[str, ...]) -> tuple[Document, list[str]]:
    """The document whose prefixes are taken off, and the formats in it.

    A kernel log's own times and hosts are evidence: those of any other tool's lines are a collector's.
    """
    document = Document(source)
    formats = detect(tuple(document.strip(window) for window in windows if window))
    deeper = Document(source, deep=True)
    if deeper.layers != document.layers:
        stripped = tuple(deeper.strip(window) for window in windows if window)
        found = detect(stripped)
        kernel = "kernel_log_xid" in (*formats, *found)
        if found and (not kernel or have_their_own_times(stripped[0])):
            return deeper, found
    return document, formats


def _report(document: Document, name: str, context: EvidenceContext) -> Report:
    read = READERS[name]
    if name in STREAMING:
        return read(document, context)
    sections = document.sections()
    if len(sections) == 1 and sections[0] is document:
        return read(document, context)
    reports = []
    for section in sections:
        if section.host is None and not detect((section.text()[:65536],)):
            continue  # what a launcher printed before the first host's output
        report = read(section, context)
        report.task = section.task
        if section.host:
            report.hosts = list(dict.fromkeys([section.host, *report.hosts]))
        for device in report.devices.values():
            device.host = device.host or section.host
        report.findings = [
            finding if finding.host else replace(finding, host=section.host)
            for finding in report.findings
        ]
        reports.append(report)
    return merged(reports) if reports else read(document, context)


def _empty(context: EvidenceContext) -> Evidence:
    report = Report("unknown", context)
    report.incomplete("empty_file", msg("The file is empty."))
    return report.freeze()


def _rejected(
    name: str, context: EvidenceContext, code: str, message: Message, severity: Severity
) -> Evidence:
    report = Report(name, context, complete=None)
    report.finding(code, severity, message)
    report.run_verdicts.append(Verdict.REJECT)
    return report.freeze()
