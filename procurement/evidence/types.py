"""What a reader finds in an evidence file: devices, reasons with their place in the file, and the file's verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.messages import Message

READER_VERSION = "1"

Value = str | int | float | None


class Verdict(StrEnum):
    """What a file, or a device in it, proves."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    WARN = "warn"  # a person must look
    NOT_TESTED = "not_tested"  # devices only
    INCONCLUSIVE = "inconclusive"  # the evidence does not show what it should
    RETEST = "retest"  # the tool has a known defect: run again with another version
    FAIL = "fail"
    REJECT = "reject"  # not safe to read, or not evidence at all
    NOT_APPLICABLE = "n/a"  # usage data: see the review verdict


class Severity(StrEnum):
    """How much a finding that belongs to no single device weighs."""

    BLOCKING = "blocking"
    REVIEW = "review"
    SECURITY = "security"
    INFORMATION = "information"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a verdict was given: the rule, what was read, what was allowed, and where in the file."""

    code: str
    message: Message
    verdict: Verdict
    value: Value = None
    threshold: Value = None
    where: str = ""  # "line 12" or a JSON path

    def to_json(self) -> dict[str, Any]:
        return {
            "rule": self.code,
            "verdict": self.verdict.value,
            "value": self.value,
            "threshold": self.threshold,
            "where": self.where,
            "message": self.message.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reason:
        return cls(
            code=data["rule"],
            message=Message.from_json(data["message"]),
            verdict=Verdict(data["verdict"]),
            value=data["value"],
            threshold=data["threshold"],
            where=data["where"],
        )

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not tied to one device of the file."""

    code: str
    severity: Severity
    message: Message
    value: Value = None
    threshold: Value = None
    where: str = ""
    host: str | None = None
    device: str | None = None

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "code": self.code,
            "severity": self.severity.value,
            "detail": str(self.message),
            "message": self.message.to_json(),
            "value": self.value,
            "threshold": self.threshold,
            "where": self.where,
        }
        return data | {k: v for k, v in (("host", self.host), ("device", self.device)) if v}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        return cls(
            code=data["code"],
            severity=Severity(data["severity"]),
            message=Message.from_json(data["message"]),
            value=data["value"],
            threshold=data["threshold"],
            where=data["where"],
            host=data.get("host"),
            device=data.get("device"),
        )


@dataclass(frozen=True, slots=True)
class Caution:
    """What the user must be told about the evidence itself."""

    code: str
    message: Message

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Caution:
        return cls(data["code"], Message.from_json(data["message"]))

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True, slots=True)
class DeviceEvidence:
    """One accelerator as the file names it. Bind by serial, then UUID, then bus and host; never by index."""

    verdict: Verdict
    index: int | None = None
    host: str | None = None
    bus: str | None = None
    uuid: str | None = None
    serial: str | None = None
    model: str | None = None
    reasons: tuple[Reason, ...] = ()
    figures: Mapping[str, Value] = field(default_factory=dict)

    @property
    def identity(self) -> tuple[str, str] | None:
        """The strongest key the file gives: ("serial" | "uuid" | "bus@host", value); None when only an index."""
        if self.serial:
            return "serial", self.serial
        if self.uuid:
            return "uuid", self.uuid.lower()
        if self.bus and self.host:
            return "bus@host", f"{normal_bus(self.bus)}@{self.host}"
        return None

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            name: value
            for name in ("index", "host", "bus", "uuid", "model")
            if (value := getattr(self, name)) is not None
        }
        data |= {
            "serial": self.serial,
            "verdict": self.verdict.value,
            "reasons": [str(reason) for reason in self.reasons],
            "reason_details": [reason.to_json() for reason in self.reasons],
        }
        return data | dict(self.figures)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DeviceEvidence:
        known = {"index", "host", "bus", "uuid", "serial", "model"}
        other = known | {"verdict", "reasons", "reason_details"}
        return cls(
            verdict=Verdict(data["verdict"]),
            reasons=tuple(Reason.from_json(reason) for reason in data["reason_details"]),
            figures={k: v for k, v in data.items() if k not in other},
            **{name: data.get(name) for name in known},
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything one file shows, and the verdict with the version of the policy it was judged by.

    `complete` is None when the file cannot show whether something is missing (a ring buffer). `figures` and
    `counts` hold what was extracted, in GB/s (10^9), C, W, MHz, MiB and seconds as the names say.
    """

    format: str
    verdict: Verdict
    policy_version: str
    complete: bool | None = None
    variant: str = ""
    tool_version: str | None = None
    driver_version: str | None = None
    devices: tuple[DeviceEvidence, ...] = ()
    hosts: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    cautions: tuple[Caution, ...] = ()
    counts: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    comparison: Mapping[str, float] = field(default_factory=dict)
    review: str = ""
    review_verdict: str | None = None
    reader_version: str = READER_VERSION
    run_verdict: Verdict = (
        Verdict.PASS
    )  # of the run as a whole: it holds for each device in the file

    @property
    def reasons(self) -> tuple[Message, ...]:
        """Everything that speaks against a pass, worst first, as messages to show a user."""
        order = [Verdict.FAIL, Verdict.RETEST, Verdict.INCONCLUSIVE, Verdict.WARN]
        against = sorted(
            (r for device in self.devices for r in device.reasons if r.verdict in order),
            key=lambda r: order.index(r.verdict),
        )
        found = [f.message for f in self.findings if f.severity is not Severity.INFORMATION]
        unique = {str(message): message for message in [*found, *(r.message for r in against)]}
        return tuple(unique.values())

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "format": self.format,
            "format_variant": self.variant,
            "tool_version": self.tool_version,
            "driver_version": self.driver_version,
            "complete": self.complete,
            "file_verdict": self.verdict.value,
            "run_verdict": self.run_verdict.value,
            "policy_version": self.policy_version,
            "reader_version": self.reader_version,
            "hosts": list(self.hosts),
            "gpus": [device.to_json() for device in self.devices],
            "counts": dict(self.counts),
            "metrics": dict(self.metrics),
            "findings": [finding.to_json() for finding in self.findings],
            "warnings": [str(caution) for caution in self.cautions],
            "warning_details": [caution.to_json() for caution in self.cautions],
        }
        if self.comparison:
            data["comparison"] = dict(self.comparison)
        if self.review:
            data["review"] = self.review
        if self.review_verdict is not None:
            data["review_verdict"] = self.review_verdict
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        """The inverse of :meth:`to_json`, for evidence that was read in another process or stored."""
        return cls(
            format=data["format"],
            verdict=Verdict(data["file_verdict"]),
            policy_version=data["policy_version"],
            complete=data["complete"],
            variant=data["format_variant"],
            tool_version=data["tool_version"],
            driver_version=data["driver_version"],
            devices=tuple(DeviceEvidence.from_json(device) for device in data["gpus"]),
            hosts=tuple(data["hosts"]),
            findings=tuple(Finding.from_json(finding) for finding in data["findings"]),
            cautions=tuple(Caution.from_json(caution) for caution in data["warning_details"]),
            counts=data["counts"],
            metrics=data["metrics"],
            comparison=data.get("comparison", {}),
            review=data.get("review", ""),
            review_verdict=data.get("review_verdict"),
            reader_version=data["reader_version"],
            run_verdict=Verdict(data.get("run_verdict", Verdict.PASS)),
        )


def normal_bus(bus: str) -> str:
    """A PCI address for comparison: "00000000:1B:00.0", "0000:1b:00" and "1B:00.0" are one device."""
    parts = bus.strip().lower().split(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    return ":".join([parts[0].lstrip("0").rjust(4, "0"), *parts[1:]])
