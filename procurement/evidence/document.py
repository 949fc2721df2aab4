"""A source as its hosts' lines: prefixes of parallel shells and banners between hosts are taken off here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from planning.telemetry_formats.source import Source, TooLargeError

MAX_TEXT_BYTES = 32 << 20  # formats that are read whole; the largest real file is under 5 MB
MAX_HOSTS = 5000

_MPI = re.compile(r"^\[(?:\d{1,6}|[\w.-]{1,80}@\d{1,6}),\d{1,7}\]<std(?:out|err|diag)>: ?")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)[ \t]")
# What stands before every line, with the host or pod in it: kubectl logs --prefix, docker compose, parallel --tag.
_TAGS = (
    re.compile(r"^\[pod/([\w.-]{1,80})/[\w.-]{1,80}\] ?"),
    re.compile(r"^([A-Za-z][\w.-]{0,62}) +\| ?(?!CHANGED|SUCCESS|FAILED|UNREACHABLE)"),
    re.compile(r"^([A-Za-z](?=[\w.-]*[\d.-])[\w.-]{0,62})\t"),
)
_LABEL = re.compile(
    r"^ {0,3}([A-Za-z0-9][\w.-]{0,63}): ?(?=\S|$)|^ {0,3}([A-Za-z0-9][\w.-]{0,63}): "
)
_ANY_LABEL = re.compile(r"^(?:\[\d{1,6},\d{1,7}\]<std\w{3,4}>: ?|[A-Za-z0-9][\w.-]{0,63}: ?|> )")
# A host's name has a digit, a hyphen or a point: a bare word between equals signs is a heading of the tool.
_BANNER = re.compile(
    r"^(?:={3,}|#{3,})\s*([A-Za-z](?=[\w.-]*[\d.-])[\w.-]{0,63})\s*(?:={3,}|#{3,})$|^==> (\S{1,200}) <==$|"
    r"^([A-Za-z0-9][\w.-]{0,63}) \| (?:CHANGED|SUCCESS|FAILED!?)(?: \| rc=\d{1,3})? (?:>>|=>)"
)
_RULE = re.compile(r"^-{5,}$")
_NODES = re.compile(r"^[A-Za-z](?=[^ ]*[\d.-])[\w.,\[\]-]{0,200}(?: \(\d+\))?$")
_NOT_HOSTS = {
    "gpu",
    "warning",
    "error",
    "info",
    "nvrm",
    "kernel",
    "note",
    "device",
    "waived",
    "done",
    "sum",
}


@dataclass(frozen=True, slots=True)
class HostLine:
    """A line without its prefix; `host` when a prefix or banner named it."""

    number: int
    text: str
    host: str | None


class Document:
    """Lines of a source. `labelled` says that every line carries its host, `banners` that headings do."""

    def __init__(
        self,
        source: Source,
        *,
        lines: list[HostLine] | None = None,
        host: str | None = None,
        stamped: bool = False,
    ) -> None:
        """`stamped`: a collector put the time before each line, which is no part of what the tool printed."""
        self.source = source
        self.host = host
        self.stamped = stamped
        self._own = lines
        head = source.windows()[0] if lines is None else ""
        sample = [line for line in re.split(r"[\r\n]+", head) if line.strip()][:400]
        if sample and source.size > len(head):
            sample = sample[:-1] or sample
        self.can_be_stamped = len(sample) >= 4 and all(_STAMP.match(each) for each in sample)
        if stamped:
            sample = [stripped for each in sample if (stripped := _STAMP.sub("", each)).strip()]
        self.tagged = lines is None and any(_MPI.match(s) for s in sample)
        self.tag = None if lines is not None or self.tagged else _common_tag(sample)
        self.labelled = (
            lines is None and not self.tagged and (self.tag is not None or _all_labelled(sample))
        )
        self.banners = (lines is None and any(_BANNER.match(s.strip()) for s in sample)) or (
            lines is None and _rule_banners(sample)
        )

    @property
    def plain(self) -> bool:
        """No prefix and no banner: the bytes may be read as they are."""
        return self._own is None and not (
            self.stamped or self.tagged or self.labelled or self.banners
        )

    def strip(self, text: str) -> str:
        """A window of text without line prefixes, for the detector."""
        if self.stamped:
            text = "\n".join(_STAMP.sub("", line) for line in text.splitlines())
        pattern = _MPI if self.tagged else (self.tag or _LABEL) if self.labelled else None
        if pattern is None:
            return text
        return "\n".join(pattern.sub("", line) for line in text.splitlines())

    def unlabelled(self, text: str) -> str:
        """A window without anything that might be a label: shows tools whose output only partly has labels."""
        return "\n".join(_ANY_LABEL.sub("", line) for line in text.splitlines())

    def lines(self) -> Iterator[HostLine]:
        if self._own is not None:
            yield from self._own
            return
        host: str | None = self.host
        previous_rule = False
        for line in self.source.lines():
            text = _STAMP.sub("", line.text) if self.stamped else line.text
            if self.tagged:
                text = _MPI.sub("", text)
            elif self.labelled:
                found = (self.tag or _LABEL).match(text)
                if found:
                    host, text = found[found.lastindex or 1], text[found.end() :]
            if self.banners:
                stripped = text.strip()
                banner = _BANNER.match(stripped)
                if banner:
                    named = banner[2] and banner[2].rsplit("/", 1)[-1].split(".log")[0]
                    host = banner[1] or named or banner[3]
                    continue
                if previous_rule and _NODES.match(stripped):
                    host, previous_rule = stripped.split(" ")[0], False
                    continue
                previous_rule = bool(_RULE.match(stripped))
            yield HostLine(line.number, text, host)

    def text(self) -> str:
        """All of it, without prefixes. Raises :class:`TooLargeError` beyond 32 MB."""
        if self.plain:
            return self.source.text(MAX_TEXT_BYTES)
        self._check_size()
        return "\n".join(line.text for line in self.lines())

    def sections(self) -> list[Document]:
        """One document per host, in the order of first sight; this document itself when there is one host."""
        if not (self.labelled or self.banners):
            return [self]
        self._check_size()
        by_host: dict[str | None, list[HostLine]] = {}
        for line in self.lines():
            if len(by_host) < MAX_HOSTS:
                by_host.setdefault(line.host, []).append(line)
        named = {
            host: lines
            for host, lines in by_host.items()
            if host is not None or any(line.text.strip() for line in lines)
        }
        return [Document(self.source, lines=lines, host=host) for host, lines in named.items()]

    def _check_size(self) -> None:
        if self.source.size > MAX_TEXT_BYTES:
            raise TooLargeError(self.source.size, MAX_TEXT_BYTES)


def _common_tag(sample: list[str]) -> re.Pattern[str] | None:
    """The pattern of :data:`_TAGS` that every line has, with few names; None when there is none."""
    if len(sample) < 4:
        return None
    for pattern in _TAGS:
        found = [pattern.match(line) for line in sample]
        names = {match[1] for match in found if match}
        if all(found) and len(names) <= max(1, len(sample) // 3):
            return pattern
    return None


def _all_labelled(sample: list[str]) -> bool:
    """Whether lines start with "host: ", as pdsh and srun --label print: few names, on every line."""
    if len(sample) < 4:
        return False
    names: Counter[str] = Counter()
    for line in sample:
        found = _LABEL.match(line)
        if not found:
            return False
        names[found[1] or found[2]] += 1
    if any(name.lower() in _NOT_HOSTS for name in names):
        return False
    return len(names) <= max(1, len(sample) // 3)


def _rule_banners(sample: list[str]) -> bool:
    """clush -b: a rule, the node names, a rule."""
    stripped = [line.strip() for line in sample]
    return any(
        _RULE.match(a) and _NODES.match(b) and _RULE.match(c)
        for a, b, c in zip(stripped, stripped[1:], stripped[2:], strict=False)
    )
