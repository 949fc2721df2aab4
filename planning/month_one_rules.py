"""What four weeks of use say about what was bought. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from planning.trouble import DAY, LOW_USE


class Finding(Enum):
    """Named after what it is, so that a queue beside idle cards is not taken for want of capacity."""

    FITS = "fits"
    OVERSIZED = "oversized"
    INSUFFICIENT = "insufficient"
    SCHEDULING = "scheduling"
    UNKNOWN = "unknown"


SYMPTOM = {  # where the trouble finder begins
    Finding.OVERSIZED: "idle-cards",
    Finding.SCHEDULING: "idle-cards",
    Finding.INSUFFICIENT: "long-queue",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings of the organisation."""

    oversized_below: float = LOW_USE  # mean utilisation
    queue_above: float = DAY  # [s]
    statistic: str = "p90"  # of the queue: mean, p50, p90 or longest


def finding(utilization: float | None, queue: float | None, rules: Rules) -> Finding:
    """The finding; a figure that nobody told decides nothing."""
    low = utilization is not None and utilization < rules.oversized_below
    long = queue is not None and queue > rules.queue_above
    if low and long:
        return Finding.SCHEDULING
    if low:
        return Finding.OVERSIZED
    if long:
        return Finding.INSUFFICIENT
    return Finding.UNKNOWN if utilization is None or queue is None else Finding.FITS
