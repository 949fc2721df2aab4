"""Lines of kernel logs in the forms that dmesg, syslog and journald give them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from procurement.evidence.document import Document, HostLine
from procurement.evidence.stamps import locale_stamp

_MONOTONIC = re.compile(r"^(?:<\d{1,3}>)?\[\s*(\d{1,10}\.\d{1,9})\] ?(.*)$")
_DMESG_T = re.compile(r"^\[([A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d{2}:\d{2}:\d{2} \d{4})\] ?(.*)$")
_SYSLOG = re.compile(
    r"^(?:<\d{1,3}>)?([A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}(?:\.\d{1,9})?) (\S{1,200}) (.*)$"
)
_ISO = re.compile(
    r"^(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?) (.*)$"
)
_FULL = re.compile(
    r"^[A-Z][a-z]{2} (\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}) (\S{1,8}) (\S{1,200}) (.*)$"
)
_TAG = re.compile(r"^([A-Za-z][^\s:\[]{0,60})(?:\[\d+\])?: ?(.*)$")
_LEVEL = re.compile(
    r"^(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d|res\d)\s*:"
    r"(?:emerg|alert|crit|err|warn|notice|info|debug)\s*: "
)
_INNER = re.compile(r"^\[\s*\d+\.\d+\] ?")
_REPEATED = re.compile(r"^(?:last message repeated|message repeated) (\d{1,9}) times")
_MAX_JSON = 1 << 20


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message. `kernel` says that the kernel wrote it; `seconds` is comparable within one host and form."""

    number: int
    host: str | None
    text: str
    kernel: bool
    seconds: float | None
    form: str  # monotonic, dmesg -T, syslog, iso, journal
    repeated: int = 0  # times that the line before is said to have come again
    zoned: bool = False  # `seconds` is since 1970 UTC


def kernel_lines(document: Document) -> Iterator[KernelLine]:
    """Every line that has one of the known forms; others are passed on as not from the kernel.

    Journal entries may stand one a line, spread over lines, in an array, or behind "data: " of a server's events.
    """
    pretty: list[str] = []
    for line in document.lines():
        text = line.text.strip()
        if not pretty:
            text = text.removeprefix("data: ").removeprefix("\x1e")
            if text in ("[", "]"):
                continue
            text = text.removeprefix("[") if text.startswith("[{") else text
        if text.startswith("{") or pretty:
            pretty.append(text)
            if text.endswith(("}", "},", "}]")) or sum(map(len, pretty)) > _MAX_JSON:
                yield from _journal(line, "\n".join(pretty).rstrip("],"))
                pretty = []
            continue
        if text:
            yield _plain(line, _LEVEL.sub("", text))
    if pretty:
        yield from _journal(line, "\n".join(pretty))


def have_their_own_times(text: str) -> bool:
    """Whether most lines begin as the kernel's log does: what stood before them was a collector's."""
    lines = [line for line in text.splitlines() if line.strip()]
    timed = sum(
        any(form.match(line) for form in (_DMESG_T, _MONOTONIC, _FULL, _SYSLOG, _ISO))
        for line in lines
    )
    return timed * 2 > len(lines)


def _plain(line: HostLine, text: str) -> KernelLine:
    if found := _DMESG_T.match(text):
        stamp = locale_stamp(found[1])
        seconds = stamp.moment.timestamp() if stamp else None
        return KernelLine(line.number, line.host, found[2], True, seconds, "dmesg -T")
    if found := _MONOTONIC.match(text):
        return KernelLine(line.number, line.host, found[2], True, float(found[1]), "monotonic")
    if found := _FULL.match(text):
        return _tagged(line, found[3], found[4], _moment(found[1]), "syslog")
    if found := _SYSLOG.match(text):
        stamp = locale_stamp(f"{found[1]} 2000")  # a leap year: the form has none of its own
        return _tagged(
            line, found[2], found[3], stamp.moment.timestamp() if stamp else None, "syslog"
        )
    if found := _ISO.match(text):
        zoned = bool(re.search(r"(?:Z|[+-]\d{2}:?\d{2})$", found[1]))
        return replace(_iso(line, found[2], _moment(found[1])), zoned=zoned)
    return KernelLine(
        line.number, line.host, text, text.startswith(("NVRM:", "nvidia-nvswitch")), None, "bare"
    )


def _iso(line: HostLine, rest: str, seconds: float | None) -> KernelLine:
    host, _, message = rest.partition(" ")
    if host.endswith(":") or not message:  # dmesg --time-format iso: no host
        return KernelLine(line.number, line.host, rest, True, seconds, "iso")
    return _tagged(line, host, message, seconds, "iso")


def _tagged(line: HostLine, host: str, rest: str, seconds: float | None, form: str) -> KernelLine:
    repeated = _REPEATED.match(rest)
    tag = _TAG.match(rest)
    if repeated or not tag:
        count = int(repeated[1]) if repeated else 0
        return KernelLine(line.number, host, rest, bool(repeated), seconds, form, repeated=count)
    text = _INNER.sub("", tag[2])
    again = _REPEATED.match(text)
    kernel = tag[1] == "kernel"
    return KernelLine(
        line.number,
        host,
        text,
        kernel,
        seconds,
        form,
        repeated=int(again[1]) if again and kernel else 0,
    )


def _journal(line: HostLine, text: str) -> Iterator[KernelLine]:
    """Entries of journalctl -o json: one, or several with commas between them."""
    try:
        entries: Any = json.loads(f"[{text}]")
    except (ValueError, RecursionError):
        yield KernelLine(line.number, line.host, text[:2000], False, None, "journal cut")
        return
    for entry in entries:
        if isinstance(entry, dict) and "MESSAGE" in entry:
            yield _entry(line, entry)


def _entry(line: HostLine, entry: dict[str, Any]) -> KernelLine:
    """MESSAGE is an array of bytes when it is not clean UTF-8."""
    message = entry["MESSAGE"]
    if isinstance(message, list):
        message = bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode(
            errors="replace"
        )
    micro = str(entry.get("__REALTIME_TIMESTAMP", ""))
    kernel = entry.get("_TRANSPORT") == "kernel" or entry.get("SYSLOG_IDENTIFIER") == "kernel"
    host = entry.get("_HOSTNAME")
    return KernelLine(
        line.number,
        str(host) if host else line.host,
        _INNER.sub("", str(message)),
        kernel,
        int(micro) / 1e6 if micro.isdigit() and len(micro) < 20 else None,
        "journal",
        zoned=True,
    )


def _moment(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
