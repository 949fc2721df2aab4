"""How long a stretch of continuous load an evidence file proves for a device. Pure."""

from __future__ import annotations

from procurement.evidence.types import DeviceEvidence, Evidence, Verdict

# Reasons that speak of the length alone: the stretch itself was run.
LENGTH_ONLY = frozenset({"too_short"})
# The clock of such a file proves nothing.
BROKEN_CLOCK = frozenset(
    {"clock_backwards", "stamps_disagree", "no_stamps", "gap_in_log", "duration_unknown"}
)


def covered_seconds(evidence: Evidence, device: DeviceEvidence) -> int:
    """Seconds of continuous load that `evidence` proves for `device`; 0 where it proves none. [s]

    Stretches of several files are not added up: a burn-in is continuous. A file whose clock runs backwards, disagrees
    with its stamps or has holes proves nothing, nor does a device that was not tested or is inconclusive for another
    reason than the length.
    """
    if BROKEN_CLOCK & {caution.code for caution in evidence.cautions}:
        return 0
    if device.verdict in (Verdict.NOT_TESTED, Verdict.REJECT, Verdict.NOT_APPLICABLE):
        return 0
    if device.verdict in (Verdict.INCONCLUSIVE, Verdict.RETEST):
        doubts = {
            reason.code
            for reason in device.reasons
            if reason.verdict in (Verdict.INCONCLUSIVE, Verdict.RETEST, Verdict.NOT_TESTED)
        }
        if not doubts or doubts - LENGTH_ONLY:
            return 0
    planned = _number(evidence.metrics.get("planned_duration_s"))
    if planned is not None:
        share = _number(evidence.metrics.get("last_pct"))
        return 0 if share is None else int(planned * min(share, 100.0) / 100)
    span = _number(evidence.metrics.get("span_hours"))
    if span is not None and evidence.complete:
        return int(span * 3600)
    return 0


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value >= 0 else None
