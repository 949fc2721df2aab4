"""What readers fill while they walk a file, and turn into frozen :class:`Evidence` at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from core.messages import Message, msg
from procurement.evidence.policy import EvidenceContext
from procurement.evidence.types import (
    Caution,
    DeviceEvidence,
    Evidence,
    Finding,
    Reason,
    Severity,
    Value,
    Verdict,
)
from procurement.evidence.verdict import device_verdict, file_verdict, worst

MAX_REASONS = (
    100  # of one device and verdict: more say nothing new, and a hostile file could hold millions
)
MAX_DEVICES = 20_000


class TooManyDevicesError(ValueError):
    """No delivery has this many devices in one file."""


@dataclass(slots=True)
class DeviceLog:
    """Reasons and figures of one device while its file is read."""

    index: int | None = None
    host: str | None = None
    bus: str | None = None
    uuid: str | None = None
    serial: str | None = None
    model: str | None = None
    tested: bool = True
    reasons: dict[tuple[str, Verdict], Reason] = field(default_factory=dict)
    figures: dict[str, Value] = field(default_factory=dict)

    def note(
        self,
        verdict: Verdict,
        code: str,
        message: Message,
        *,
        value: Value = None,
        threshold: Value = None,
        where: str = "",
    ) -> None:
        """Record a reason once; the first place it was seen at is kept. No lesser reasons crowd out a failure."""
        if sum(reason.verdict is verdict for reason in self.reasons.values()) < MAX_REASONS:
            self.reasons.setdefault(
                (code, verdict), Reason(code, message, verdict, value, threshold, where)
            )

    def freeze(self) -> DeviceEvidence:
        reasons = tuple(self.reasons.values())
        return DeviceEvidence(
            verdict=device_verdict(reasons, tested=self.tested),
            index=self.index,
            host=self.host,
            bus=self.bus,
            uuid=self.uuid,
            serial=self.serial,
            model=self.model,
            reasons=reasons,
            figures=dict(self.figures),
        )


@dataclass(slots=True)
class Report:
    """One file, or one host's part of it, while it is read."""

    format: str
    context: EvidenceContext
    variant: str = ""
    tool_version: str | None = None
    driver_version: str | None = None
    complete: bool | None = True
    devices: dict[Any, DeviceLog] = field(default_factory=dict)
    hosts: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    cautions: dict[str, Caution] = field(default_factory=dict)
    run_verdicts: list[Verdict] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    comparison: dict[str, float] = field(default_factory=dict)
    review: str = ""
    review_verdict: str | None = None
    task: str | None = None  # of the launcher, where one host's output is that of several tasks
    _found: Counter[Severity] = field(default_factory=Counter)
    usage: bool = False  # usage data proves no device: its verdict is n/a

    def device(self, key: Any, **identity: Any) -> DeviceLog:
        """The device under `key`, created with `identity` when it is new."""
        found = self.devices.get(key)
        if found is None:
            if len(self.devices) >= MAX_DEVICES:
                raise TooManyDevicesError
            found = self.devices[key] = DeviceLog(**identity)
        return found

    def finding(
        self,
        code: str,
        severity: Severity,
        message: Message,
        *,
        value: Value = None,
        threshold: Value = None,
        where: str = "",
        host: str | None = None,
        device: str | None = None,
    ) -> None:
        """Record a finding: at most 100 of each severity, so that no remarks crowd out a failure."""
        self._found[severity] += 1
        if self._found[severity] <= MAX_REASONS:
            self.findings.append(
                Finding(code, severity, message, value, threshold, where, host, device)
            )

    def caution(self, code: str, message: Message) -> None:
        """Tell the user something about the evidence itself, once per code."""
        if len(self.cautions) < MAX_REASONS:
            self.cautions.setdefault(code, Caution(code, message))

    def incomplete(self, code: str, message: Message) -> None:
        """A part is missing: the file cannot pass."""
        self.complete = False
        self.caution(code, message)

    def unproven(self, code: str, message: Message) -> None:
        """The file is whole, but does not show what it should."""
        self.run_verdicts.append(Verdict.INCONCLUSIVE)
        self.caution(code, message)

    def review_needed(self, code: str, message: Message) -> None:
        """A person must look at the run as a whole."""
        self.run_verdicts.append(Verdict.WARN)
        self.caution(code, message)

    def note_all(self, verdict: Verdict, code: str, message: Message, where: str = "") -> None:
        for device in self.devices.values():
            device.note(verdict, code, message, where=where)

    def freeze(self) -> Evidence:
        devices = tuple(device.freeze() for device in self.devices.values())
        verdict = file_verdict(
            devices, self.findings, complete=self.complete, run_verdicts=self.run_verdicts
        )
        if self.usage and verdict is not Verdict.REJECT:
            verdict = Verdict.NOT_APPLICABLE
        return Evidence(
            format=self.format,
            verdict=verdict,
            policy_version=self.context.policy.version,
            complete=self.complete,
            variant=self.variant,
            tool_version=self.tool_version,
            driver_version=self.driver_version,
            devices=devices,
            hosts=tuple(dict.fromkeys(self.hosts)),
            findings=tuple(self.findings),
            cautions=tuple(self.cautions.values()),
            counts=self.counts,
            metrics=self.metrics,
            comparison=self.comparison,
            review=self.review,
            review_verdict=self.review_verdict,
            run_verdict=worst(self.run_verdicts),
        )


def line(number: int) -> str:
    """A place in a text file."""
    return f"line {number}"


def merged(parts: Iterable[Report]) -> Report:
    """One report of several hosts' parts of a file. Devices stay apart by host; counts add up."""
    reports = list(parts)
    first = reports[0]
    whole = Report(first.format, first.context, variant=first.variant, usage=first.usage)
    whole.tool_version, whole.driver_version = first.tool_version, first.driver_version
    whole.review = first.review
    for report in reports:
        host = report.hosts[0] if report.hosts else ""
        host += f"/{report.task}" if report.task else ""
        for key, device in report.devices.items():
            whole.devices[(host, key)] = device
        whole.hosts += report.hosts
        whole.findings += report.findings
        for code, caution in report.cautions.items():
            whole.cautions.setdefault(code, caution)
        whole.run_verdicts += report.run_verdicts
        for name, count in report.counts.items():
            known = whole.counts.get(name)
            if isinstance(count, int) and isinstance(known, int):
                whole.counts[name] = known + count
            else:
                whole.counts.setdefault(name, count)
        whole.metrics[host] = report.metrics
        if report.complete is not True:
            whole.complete = False if False in (whole.complete, report.complete) else None
    if len({r.driver_version for r in reports if r.driver_version}) > 1:
        whole.review_needed(
            "driver_versions_differ", msg("The hosts of this file run different driver versions.")
        )
    return whole
