"""A source as its hosts' lines: prefixes of parallel shells and banners between hosts are taken off here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from planning.telemetry_formats.source import Source, TooLargeError
from procurement.evidence.prefixes import (
    Layer,
    find_layers,
    host_of,
    is_launcher,
    launcher_trouble,
    peel,
    without_any,
)
from procurement.evidence.report import TooManyDevicesError

MAX_TEXT_BYTES = 32 << 20  # formats that are read whole; the largest real file is under 5 MB
MAX_HOSTS = 5000

# A host's name has a digit, a hyphen or a point: a bare word between equals signs is a heading of the tool.
_BANNER = re.compile(
    r"^(?:={3,}|#{3,})\s*([A-Za-z](?=[\w.-]*[\d.-])[\w.-]{0,63})\s*(?:={3,}|#{3,})$|^==> (\S{1,200}) <==$|"
    r"^([A-Za-z0-9][\w.-]{0,63}) \| (?:CHANGED|SUCCESS|FAILED!?|UNREACHABLE!?)(?: \| rc=\d{1,3})? (?:>>|=>)|"
    r"^\[\d{1,6}\] \d\d:\d\d:\d\d \[(?:SUCCESS|FAILURE)\] (?:[\w.-]{1,32}@)?([A-Za-z0-9][\w.-]{0,63})"  # pssh -i
)
# A heading of ansible or pssh that says that the command did not run to its end on the host.
_NO_OUTPUT = re.compile(r"\| (?:UNREACHABLE|FAILED)|\[FAILURE\]")
_RULE = re.compile(r"^-{5,}$")
_NODES = re.compile(r"^[A-Za-z](?=[^ ]*[\d.-])[\w.,\[\]-]{0,200}(?: \(\d+\))?$")


@dataclass(frozen=True, slots=True)
class HostLine:
    """A line without its prefix; `host` when a prefix or banner named it."""

    number: int
    text: str
    host: str | None
    task: str | None = None  # rank or task, where the prefix names one beside the host


class Document:
    """Lines of a source. `layers` are the prefixes of its lines, `banners` says that headings name hosts."""

    def __init__(
        self,
        source: Source,
        *,
        lines: list[HostLine] | None = None,
        host: str | None = None,
        task: str | None = None,
        deep: bool = False,
    ) -> None:
        """`deep`: also what collectors put before each line, the time and the journal's head, is taken off."""
        self.source = source
        self.host = host
        self.task = task
        self._own = lines
        self.layers: tuple[Layer, ...] = ()
        self.banners = False
        self.launcher: list[tuple[int, str]] = []  # lines in which a launcher tells of trouble
        if lines is not None:
            return
        head = source.windows()[0]
        sample = [line for line in re.split(r"[\r\n]+", head) if line.strip()][:400]
        if sample and source.size > len(head):
            sample = sample[:-1] or sample
        self.layers = find_layers(sample, deep=deep)
        if not self.layers:  # a carriage return does not repeat the prefix
            self.layers = find_layers(self._starts(), deep=deep)
        bare = [text for each in sample if (text := peel(self.layers, each)[0].strip())]
        self.banners = any(_banner(text) for text in bare) or _rule_banners(bare)

    def _starts(self) -> list[str]:
        """The beginnings of the first physical lines."""
        starts: list[tuple[int, str]] = []
        for each in self.source.lines():
            if not starts or starts[-1][0] != each.number:
                starts.append((each.number, each.text[:400]))
            if len(starts) > 400:
                starts.pop()
                break
        return [text for _, text in starts if text.strip()]

    @property
    def plain(self) -> bool:
        """No prefix and no banner: the bytes may be read as they are."""
        return self._own is None and not (self.layers or self.banners)

    def strip(self, text: str) -> str:
        """A window of text without line prefixes, for the detector."""
        if not self.layers:
            return text
        return "\n".join(peel(self.layers, line)[0] for line in text.splitlines())

    def unlabelled(self, text: str) -> str:
        """A window without anything that might be a label: shows tools whose output only partly has labels."""
        return "\n".join(without_any(line) for line in text.splitlines())

    def lines(self) -> Iterator[HostLine]:
        if self._own is not None:
            yield from self._own
            return
        self.launcher.clear()
        host, task = self.host, self.task
        previous_rule = False
        names: list[str | None] = []
        number = -1
        for line in self.source.lines():
            text = line.text
            if not self.plain and is_launcher(text, self.layers):
                self._remember(line.number, text)
                continue
            if self.layers:
                same = number == line.number
                text, names = peel(self.layers, text, names if same else None)
                number = line.number
                if any(names):
                    host, task = host_of(names)
            if self.banners:
                stripped = text.strip()
                banner = _banner(stripped)
                if banner:
                    host = banner
                    if _NO_OUTPUT.search(stripped):
                        self._remember(line.number, stripped)
                    continue
                if previous_rule and _NODES.match(stripped):
                    host, previous_rule = stripped.split(" ")[0], False
                    continue
                previous_rule = bool(_RULE.match(stripped))
            yield HostLine(line.number, text, host, task)

    def _remember(self, number: int, text: str) -> None:
        if len(self.launcher) < 100 and launcher_trouble(text):
            self.launcher.append((number, text))

    def text(self) -> str:
        """All of it, without prefixes. Raises :class:`TooLargeError` beyond 32 MB."""
        if self.plain:
            return self.source.text(MAX_TEXT_BYTES)
        self._check_size()
        return "\n".join(line.text for line in self.lines())

    def sections(self) -> list[Document]:
        """One document per host and task, in the order of first sight; this document itself when there is one.

        Raises :class:`TooManyDevicesError` beyond 5,000.
        """
        if not (self.banners or any(layer.kind != "stamp" for layer in self.layers)):
            return [self]
        self._check_size()
        found: dict[tuple[str | None, str | None], list[HostLine]] = {}
        for line in self.lines():
            own = found.setdefault((line.host, line.task), [])
            if not own and len(found) > MAX_HOSTS:
                raise TooManyDevicesError
            own.append(line)
        named = {
            key: lines
            for key, lines in found.items()
            if key[0] is not None or any(line.text.strip() for line in lines)
        }
        if set(named) == {(None, None)}:
            return [self]
        return [
            Document(self.source, lines=lines, host=host, task=task)
            for (host, task), lines in named.items()
        ]

    def _check_size(self) -> None:
        if self.source.size > MAX_TEXT_BYTES:
            raise TooLargeError(self.source.size, MAX_TEXT_BYTES)


def _banner(stripped: str) -> str | None:
    """The host that a heading between hosts names."""
    found = _BANNER.match(stripped)
    if not found:
        return None
    named = found[2] and found[2].rsplit("/", 1)[-1].split(".log")[0]
    return found[1] or named or found[3] or found[4]


def _rule_banners(sample: list[str]) -> bool:
    """clush -b: a rule, the node names, a rule."""
    stripped = [line.strip() for line in sample]
    return any(
        _RULE.match(a) and _NODES.match(b) and _RULE.match(c)
        for a, b, c in zip(stripped, stripped[1:], stripped[2:], strict=False)
    )
