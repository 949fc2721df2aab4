"""A management controller's event log: `ipmitool sel list`, `elist`, `-c`, FreeIPMI's `ipmi-sel`, Redfish entries.

It speaks of a server and of no card. A ring of events cannot show that nothing happened: without a fault it is for a
person to look at, unless entries before and after the burn-in show that it covers it.
Event names are those of the IPMI 2.0 specification, table 42-3, as ipmitool prints them.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from core.messages import msg
from procurement.evidence.bounded import documents, items, mapping, objects
from procurement.evidence.document import Document
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.report import Report, line
from procurement.evidence.types import Severity

SEL, REDFISH = "bmc_sel_text", "bmc_log_redfish"
FORMATS = (SEL, REDFISH)

ZONE_SECONDS = (
    14 * 3600.0
)  # a time without a zone is anywhere within this of the same figures in UTC
_OLDEST = 1_420_070_400.0  # 2015: an earlier time is a clock that was not set
_ROW = re.compile(r"^\s*([0-9a-fA-F]{1,8})\s*[|,]")
_HEADING = re.compile(r"^\s*ID\s*[|,]\s*Date\s*[|,]", re.IGNORECASE)
_EMPTY = re.compile(r"^SEL has no entries\b|^No (?:SEL )?entries", re.IGNORECASE)
_DATES = ("%m/%d/%Y", "%m/%d/%y", "%Y-%m-%d", "%b-%d-%Y")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?: ([AP]M))?(?: ([A-Za-z]{2,5}|[+-]\d\d:?\d\d))?")
_STATES = {
    "asserted": True,
    "deasserted": False,
    "assertion event": True,
    "deassertion event": False,
}

# Fragments of event names.
_CRITICAL = r"(?:upper|lower) (?:critical|non-?recoverable)"
_STATE = r"transition to (?:critical|non-recoverable)"
_PSU = r"(?:\bPSU?\d*\b|power supply|pwr supply|redundan)"
_MEMORY = r"(?:ECC|memory|machine check|error)"
_FAULTS = (
    r"\bfail|\blost\b|out-of-range|inactive|predictive|config(?:uration)? error|not present|removed|"
    r"under-?voltage|over-?voltage|over-?current"
)

# In order; the first that fits names the event. What is blocking is a fault of the server, review is for a person.
_KINDS: tuple[tuple[str, Severity, re.Pattern[str]], ...] = tuple(
    (code, severity, re.compile(pattern, re.IGNORECASE))
    for code, severity, pattern in (
        (
            "log_cleared",
            Severity.INFORMATION,
            r"log area reset|(?:log|sel) (?:was |is |has been )?cleared",
        ),
        ("log_full", Severity.INFORMATION, r"\blog (?:almost )?full"),
        ("clock_set", Severity.INFORMATION, r"time-?\s?stamp clock sync"),
        # Before anything that says "ECC" or "memory" alone.
        (
            "ecc_correctable",
            Severity.REVIEW,
            rf"(?<!un)correctable {_MEMORY}|(?<!un)correctable.{{0,20}}ECC",
        ),
        (
            "ecc_uncorrectable",
            Severity.BLOCKING,
            rf"uncorrectable {_MEMORY}|uncorrectable.{{0,20}}ECC|multi-?bit (?:ECC|error)|memory.{{0,40}}\bparity",
        ),
        (
            "leak",
            Severity.BLOCKING,
            r"\bleak(?:age)?(?: is| was)? detected|\bliquid leak|"
            r"(?:leak|coolant).{0,60}(?:critical|state asserted|detected)",
        ),
        (
            "thermal",
            Severity.BLOCKING,
            r"therm(?:al)?\s?trip|over-?temperature|"
            rf"(?:temp|thermal|inlet|exhaust).{{0,80}}(?:{_CRITICAL}|{_STATE}|threshold exceeded|overheat)",
        ),
        (
            "fan",
            Severity.BLOCKING,
            rf"\bfan.{{0,80}}(?:{_CRITICAL}|{_STATE}|fail|redundancy lost|device (?:absent|removed))",
        ),
        (
            "power_supply",
            Severity.BLOCKING,
            rf"{_PSU}.{{0,80}}(?:{_FAULTS}|{_CRITICAL}|{_STATE})|non-redundant: insufficient",
        ),
        (
            "power_lost",
            Severity.BLOCKING,
            r"\bAC lost|power unit.{0,60}(?:failure|interlock|power (?:off|reset))|240VA|"
            r"soft.?power control fail|power cycle|power off/down",
        ),
        (
            "voltage",
            Severity.BLOCKING,
            rf"(?:volt|\bvcore|\bV(?:DD|BAT|CC)|\d+V\b).{{0,80}}(?:{_CRITICAL}|{_STATE})",
        ),
        (
            "processor",
            Severity.BLOCKING,
            r"\bIERR\b|\bCATERR|processor.{0,60}(?:FRB|configuration error|disabled)|machine check exception|MCERR",
        ),
        (
            "bus",
            Severity.BLOCKING,
            r"bus (?:uncorrectable|fatal|critical)|PCI (?:SERR|PERR)|fatal (?:NMI|error)|"
            r"uncorrectable non-?fatal|completion timeout",
        ),
        (
            "watchdog",
            Severity.BLOCKING,
            r"watchdog.{0,60}(?:hard reset|power down|power cycle|expired)|"
            r"OS (?:critical )?(?:stop|panic)|run-?time (?:critical )?stop",
        ),
        (
            "drive",
            Severity.BLOCKING,
            r"drive (?:slot.{0,40})?(?:fault|failure)|predictive failure|in (?:critical|failed) array",
        ),
        ("ecc_correctable", Severity.REVIEW, r"correctable"),
        ("threshold", Severity.BLOCKING, _CRITICAL),
        (
            "threshold_minor",
            Severity.REVIEW,
            r"(?:upper|lower) non-?critical|redundancy degraded|non-redundant|"
            r"transition to (?:degraded|non-critical)|predictive",
        ),
        (
            "restarted",
            Severity.REVIEW,
            r"system restart|reset button|hard reset|warm reset|power button|initiated by",
        ),
        ("intrusion", Severity.REVIEW, r"intru"),
        (
            "presence",
            Severity.REVIEW,
            r"device (?:removed|absent)|\bremoved\b|slot.{0,40}disconnected",
        ),
    )
)
# What is well while it lasts: its end is a fault.
_WELL = re.compile(
    r"presence detected|device present|device inserted|entity present|fully redundant|device enabled",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"firmware progress|motherboard initialization|memory initialization|cpu initialization|"
    r"system boot|boot completed|pci resource config|os boot|c: boot|base os|presence detected|device present|"
    r"fully redundant|device enabled|device inserted|s0/g0|working|transition to (?:ok|running|active)|informational|"
    r"undetermined system hardware|entity present|session|log(?:ged)? ?(?:in|out)|\blogin\b|"
    r"firmware (?:update|upgrade)|"
    r"monitor(?:ing)? state|state deasserted|limit not exceeded|processor.{0,30}presence|"
    r"cable/interconnect.{0,40}connected|user ",
    re.IGNORECASE,
)
_OVER = re.compile(
    r"\b(?:restored|recovered|returned to normal|back to normal|is normal|cleared|deassert(?:ed)?|regained|ok again)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Event:
    """One entry. `seconds` since 1970, None when the controller's clock was not set; `asserted` None when not told."""

    where: str
    sensor: str
    text: str
    seconds: float | None
    zoned: bool
    asserted: bool | None
    severity: str = ""  # of Redfish: OK, Warning, Critical


def read(document: Document, context: EvidenceContext) -> Report:
    text = document.text()
    if '"Members"' in text or '"EntryType"' in text or '"@odata.type"' in text:
        report = Report(REDFISH, context)
        events = list(_entries(report, text))
    else:
        report = Report(SEL, context, complete=None)
        events = list(_rows(report, document))
    _judge(report, events)
    return report


def _rows(report: Report, document: Document) -> Iterator[Event]:
    """The rows of ipmitool and ipmi-sel. Whatever is no row makes the log incomplete: a row may be lost in it."""
    numbers: list[int] = []
    strange = backwards = 0
    free_ipmi = False
    empty = False
    for each in document.lines():
        text = each.text.rstrip()
        if not text.strip():
            continue
        if _HEADING.match(text):
            free_ipmi = True
            continue
        if _EMPTY.match(text.strip()):
            empty = True
            continue
        row = _ROW.match(text)
        event = _row(text, each.number, free_ipmi=free_ipmi) if row else None
        if row is None or event is None:
            strange += 1
            continue
        number = int(row[1], 10 if free_ipmi and row[1].isdigit() else 16)
        backwards += bool(numbers) and number <= numbers[-1]
        numbers.append(number)
        yield event
    if strange:
        report.counts["unreadable_rows"] = strange
        report.incomplete(
            "unreadable_rows",
            msg("%(count)s lines are no entries of the event log.", count=strange),
        )
    if backwards:
        report.unproven("entries_out_of_order", msg("The numbers of the entries run backwards."))
    if any(
        b - a != 1 for a, b in itertools.pairwise(numbers)
    ):  # taken out, or not told apart from it
        report.caution("entries_missing", msg("The numbers of the entries have holes."))
    if empty:
        report.caution("log_empty", msg("The event log holds no entry."))
    elif not numbers:
        report.incomplete("no_entries", msg("No entry of the event log could be read."))


def _row(text: str, number: int, *, free_ipmi: bool) -> Event | None:
    if "|" in text:
        cells = [cell.strip() for cell in text.split("|")]
    else:
        try:
            cells = [cell.strip() for cell in next(csv.reader([text]))]
        except (csv.Error, StopIteration):
            return None
    if len(cells) < 4:
        return None
    if re.match(r"pre-?init", cells[1], re.IGNORECASE):
        seconds, zoned, rest = None, False, cells[3:] if re.match(r"\d+$", cells[2]) else cells[2:]
    else:
        moment = _moment(cells[1], cells[2])
        if moment is None:
            return None
        (seconds, zoned), rest = moment, cells[3:]
    if len(rest) < 2 or not rest[1]:
        return None
    if free_ipmi:  # name, type, (state,) event
        return Event(
            line(number), f"{rest[1]} {rest[0]}", " ".join(rest[2:]) or "?", seconds, zoned, True
        )
    state = rest[2].lower() if len(rest) > 2 else ""
    if state and state not in _STATES:
        return None  # cut off, or something that ipmitool does not print
    extra = " ".join(rest[3:])
    return Event(
        line(number), rest[0], f"{rest[1]} {extra}".strip(), seconds, zoned, _STATES.get(state)
    )


def _moment(day: str, time: str) -> tuple[float | None, bool] | None:
    """(seconds, whether the zone is known); None when it is no time at all."""
    found = _TIME.fullmatch(time)
    if not found:
        return None
    for form in _DATES:
        try:
            moment = datetime.strptime(day, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        hour = int(found[1]) % 12 + 12 * (found[4] == "PM") if found[4] else int(found[1])
        try:
            moment = moment.replace(hour=hour, minute=int(found[2]), second=int(found[3]))
        except ValueError:
            return None
        seconds = moment.timestamp()
        return (seconds if seconds >= _OLDEST else None), found[5] in ("UTC", "GMT")
    return None


def _entries(report: Report, text: str) -> Iterator[Event]:
    """LogEntry resources, in a collection, in a list or one by one."""
    found = documents(text, ("Members", "EntryType", "@odata.type"))
    if not found or not all(each.sound for each in found):
        report.incomplete("truncated", msg("The JSON is cut off or damaged."))
    count = 0
    for n, each in enumerate(found):
        root = f"$[{n}]" if len(found) > 1 else "$"
        value = mapping(each.value)
        if "Members" in value:
            members = items(value["Members"])
            told = value.get("Members@odata.count")
            if value.get("Members@odata.nextLink") or (
                isinstance(told, int) and told != len(members)
            ):
                report.incomplete(
                    "a_page_only",
                    msg("The file holds one page of the log: read the following ones too."),
                )
            root += ".Members"
        else:
            report.caution("entries_missing", msg("The numbers of the entries have holes."))
            members = each.value if isinstance(each.value, list) else [each.value]
        for i, member in enumerate(objects(members)):
            count += 1
            if "Message" not in member and "Severity" not in member:
                report.incomplete(
                    "entries_not_shown", msg("The file names entries and does not show them.")
                )
                continue
            yield _entry(member, f"{root}[{i}]")
        if len(list(objects(members))) != len(members):
            report.incomplete("truncated", msg("The JSON is cut off or damaged."))
    if not count:
        report.caution("log_empty", msg("The event log holds no entry."))


def _entry(member: Mapping[str, Any], where: str) -> Event:
    # EventTimestamp is when it happened, Created when it was written down.
    seconds, zoned = None, False
    for key in ("EventTimestamp", "Created"):
        try:
            moment = datetime.fromisoformat(str(member.get(key)))
        except ValueError:
            continue
        zoned = moment.tzinfo is not None
        seconds = (moment if zoned else moment.replace(tzinfo=UTC)).timestamp()
        if seconds < _OLDEST:
            seconds = None
        break
    code = str(member.get("EntryCode") or "")
    asserted = None if not code else not code.lower().startswith("deassert")
    sensor = str(member.get("SensorType") or "")
    words = " ".join(str(member.get(key) or "") for key in ("Message", "MessageId", "EntryCode"))
    return Event(where, sensor.strip()[:200], words.strip()[:400], seconds, zoned, asserted,
                 str(member.get("Severity") or ""))  # fmt: skip


def _judge(report: Report, events: list[Event]) -> None:
    window = report.context.window
    seen: Counter[str] = Counter()
    before = 0
    known = [event for event in events if event.seconds is not None]
    for event in events:
        code, severity = _kind(event)
        slack = 0.0 if event.zoned else ZONE_SECONDS
        earlier = (
            window is not None and event.seconds is not None and event.seconds + slack < window[0]
        )
        if code in ("log_cleared", "log_full"):
            if not earlier:
                _lost(report, code)
            continue
        if severity is Severity.INFORMATION:
            continue
        if earlier:  # of the factory, or of an earlier try: it is told, and decides nothing here
            before += 1
            continue
        seen[code] += 1
        report.finding(
            f"bmc_{code}",
            severity,
            msg("The management controller reports: %(text)s", text=_words(event)),
            value=_words(event),
            where=event.where,
        )
    report.counts |= {"entries": len(events), "events": dict(sorted(seen.items()))}
    if before:
        report.counts["before_window"] = before
        report.caution(
            "events_before_window",
            msg("%(count)s events are older than the burn-in: see whether they were explained.", count=before),
        )  # fmt: skip
    _times(report, events, known)
    if not seen:
        _covers(report, known, window)
    report.caution(
        "speaks_of_a_server",
        msg("An event log speaks of a server: upload it for the one that it was read from."),
    )


def _kind(event: Event) -> tuple[str, Severity]:
    words = f"{event.sensor} {event.text}"
    found = next(((code, weight) for code, weight, form in _KINDS if form.search(words)), None)
    told = event.severity.lower()
    if found is not None and found[1] is Severity.INFORMATION:
        return found
    if event.asserted is False and _WELL.search(words):
        power = re.search(rf"{_PSU}|power unit|\bfan", words, re.IGNORECASE)
        return ("unit_gone", Severity.BLOCKING) if power else ("presence", Severity.REVIEW)
    over = event.asserted is False or (event.asserted is None and bool(_OVER.search(event.text)))
    if over:
        # The end of a fault shows that there was one: its beginning may stand before, or be lost.
        return (found[0], Severity.REVIEW) if found else ("ended", Severity.INFORMATION)
    if told == "critical":
        return (found[0] if found else "critical"), Severity.BLOCKING
    if found is not None:
        return found[0], (Severity.REVIEW if told == "ok" else found[1])
    if told == "ok" or _HARMLESS.search(words):
        return "informative", Severity.INFORMATION
    return ("warning" if told == "warning" else "unknown_event"), Severity.REVIEW


def _lost(report: Report, code: str) -> None:
    if code == "log_full":
        report.unproven("log_full", msg("The event log was full: later events are not in it."))
    else:
        report.review_needed(
            "log_cleared", msg("The event log was cleared: see when, and by whom.")
        )


def _times(report: Report, events: list[Event], known: list[Event]) -> None:
    if len(known) < len(events):
        report.caution(
            "clock_not_set",
            msg(
                "Some entries have no time: the controller's clock was not set. They count as of the burn-in."
            ),
        )
    if any(not event.zoned for event in known):
        report.caution("no_timezone", msg("The times have no zone: ask for the host's."))
    moments = [event.seconds for event in known if event.seconds is not None]
    if moments:
        report.metrics |= {
            "first": datetime.fromtimestamp(min(moments), UTC).replace(tzinfo=None).isoformat(),
            "last": datetime.fromtimestamp(max(moments), UTC).replace(tzinfo=None).isoformat(),
        }
    # A collection of Redfish may stand newest first; rows of ipmitool never do.
    synced = any(_kind(event)[0] == "clock_set" for event in events)
    if report.format == SEL and not synced:
        if any(later < earlier - 3600 for earlier, later in itertools.pairwise(moments)):
            report.unproven("clock_backwards", msg("The clock of the log runs backwards."))


def _covers(report: Report, known: list[Event], window: tuple[float, float] | None) -> None:
    whole = report.complete is not False and "entries_missing" not in report.cautions
    if window is not None and whole:
        early = any((e.seconds or 0) + (0 if e.zoned else ZONE_SECONDS) <= window[0] for e in known)
        late = any((e.seconds or 0) - (0 if e.zoned else ZONE_SECONDS) >= window[1] for e in known)
        if early and late:
            report.caution(
                "covers_window",
                msg(
                    "Entries before and after the burn-in stand in the log, and no fault between them."
                ),
            )
            return
    report.review_needed(
        "coverage_unknown",
        msg("No fault is in the log, but nothing shows that it covers the whole time."),
    )


def _words(event: Event) -> str:
    over = " (deasserted)" if event.asserted is False else ""
    return f"{event.sensor}: {event.text[:180]}".removeprefix(": ")[:260] + over
