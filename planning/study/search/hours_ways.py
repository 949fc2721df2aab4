"""Bare accelerator-hours: every accelerator with enough memory takes the hours as told."""

from __future__ import annotations

import math
from typing import Any

from core.messages import msg
from planning.estimators.types import Accelerator
from planning.study.request import StudyRequest
from planning.study.search.ways import Exclusion, Found, columns

CHECKPOINT_HOURS = 1 / 60  # of unknown work: a minute to save its state


def hours_ways(request: StudyRequest, accelerators: tuple[Accelerator, ...]) -> Found:
    """Ways to run the hours of `request`: one per accelerator whose memory is enough."""
    hours, count = float(request.workload["gpu_hours"]), int(request.workload["accelerators"])
    needed = request.workload.get("memory_bytes")
    days = request.constraints.duration_days
    limit = math.inf if days is None else days * 86_400.0
    run = hours / count
    rows: list[dict[str, Any]] = []
    refused: list[Exclusion] = []
    for index, accelerator in enumerate(accelerators):
        if needed is not None and needed > accelerator.visible_bytes:
            refused.append(
                Exclusion(
                    "accelerator",
                    accelerator.slug,
                    msg(
                        "Out of memory: %(need)s GB are needed on each accelerator, there are %(have)s GB",
                        need=round(needed / 1e9, 1),
                        have=round(accelerator.visible_bytes / 1e9, 1),
                    ),
                    msg(
                        "Work that takes at most %(have)s GB",
                        have=round(accelerator.visible_bytes / 1e9, 1),
                    ),
                    "memory",
                )
            )
            continue
        rows.append(
            {
                "accelerator": index,
                "cards": count,
                "linked": 1,
                "work_hours": run,
                "hours": run,
                "span_hours": run,
                "starts": 1,
                "seconds": run * 3600.0,
                "time_low": 1.0,
                "time_high": 1.0,
                "accuracy_loss": 0.0,
                "memory_bytes": needed or math.nan,
                "checkpoint_hours": CHECKPOINT_HOURS
                if request.constraints.interruptible
                else math.nan,
                "precision": "",
                "layout": {},
                "within": run * 3600.0 <= limit,
                "limit": limit,
            }
        )
    notes = [
        msg("The hours are taken as told: another accelerator may need more or fewer of them.")
    ]
    if needed is None:
        notes.append(
            msg("No memory need was told; whether it fits is not known and taken as given.")
        )
    return Found(columns(rows), len(accelerators), refused, notes)
