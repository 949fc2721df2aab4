"""From reasons to verdicts. One rule everywhere: any failure fails, and only complete, clean evidence passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from procurement.evidence.types import DeviceEvidence, Evidence, Finding, Reason, Severity, Verdict

# Worst first. A failure that was seen outweighs everything that was not seen.
_ORDER = (
    Verdict.REJECT,
    Verdict.FAIL,
    Verdict.RETEST,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_TESTED,
    Verdict.WARN,
    Verdict.PASS,
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that decides; PASS when there is none to weigh."""
    found = set(verdicts)
    return next((verdict for verdict in _ORDER if verdict in found), Verdict.PASS)


def device_verdict(reasons: Iterable[Reason], *, tested: bool = True) -> Verdict:
    """What the reasons make of a device. A device that was not tested cannot pass."""
    verdict = worst(reason.verdict for reason in reasons)
    if verdict is Verdict.RETEST:  # a retest concerns the run, the device stays unproven
        return Verdict.INCONCLUSIVE
    return Verdict.NOT_TESTED if verdict is Verdict.PASS and not tested else verdict


def file_verdict(
    devices: Sequence[DeviceEvidence],
    findings: Sequence[Finding],
    *,
    complete: bool | None,
    run_verdicts: Iterable[Verdict] = (),
) -> Verdict:
    """The file's verdict from its devices, findings and whether anything is missing.

    `run_verdicts` are those of the run as a whole (a known tool defect: RETEST). A file with a missing part is
    inconclusive at best, and one that names devices passes only if each of them does.
    """
    severities = {finding.severity for finding in findings}
    verdicts = {device.verdict for device in devices} | set(run_verdicts)
    if Severity.SECURITY in severities:
        verdicts.add(Verdict.REJECT)
    if Severity.BLOCKING in severities:
        verdicts.add(Verdict.FAIL)
    if Severity.REVIEW in severities:
        verdicts.add(Verdict.WARN)
    if complete is False:
        verdicts.add(Verdict.INCONCLUSIVE)
    verdict = worst(verdicts)
    return Verdict.INCONCLUSIVE if verdict is Verdict.NOT_TESTED else verdict


def combined(evidence: Iterable[Evidence]) -> Verdict:
    """What several files of one delivery prove together. Usage data neither helps nor harms; nothing is no proof."""
    verdicts = [e.verdict for e in evidence if e.verdict is not Verdict.NOT_APPLICABLE]
    return worst(verdicts) if verdicts else Verdict.INCONCLUSIVE
