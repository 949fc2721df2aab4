"""Bare accelerator-hours: nothing is known of the work, so only time, energy and memory can be told."""

from __future__ import annotations

from core.messages import msg
from planning.estimators.training import POWER_SHARE
from planning.estimators.types import Accelerator, Band, Estimate, Grade, Part, Saturation, Step
from planning.study.request import StudyRequest

HOUR = 3_600.0


def gpu_hours_estimate(request: StudyRequest, accelerator: Accelerator) -> Estimate:
    """How long the hours take on the accelerators asked for, their energy, and whether the memory is enough."""
    hours, count = float(request.workload["gpu_hours"]), int(request.workload["accelerators"])
    needed = request.workload.get("memory_bytes")
    seconds = hours / count * HOUR

    def told(value: float, unit: str) -> Band:
        return Band(value, value, value, unit, Grade.EXTRAPOLATED)

    figures = {"accelerator_hours": told(hours, "h"), "wall_time": told(seconds, "s")}
    trace = [Step("wall_time", "H / n x 3600", {"H": hours, "n": count}, seconds, "s")]
    if accelerator.tdp is not None:
        energy = hours * accelerator.tdp * POWER_SHARE / 1000.0
        figures["energy"] = told(energy, "kWh")
        inputs = {"H": hours, "TDP": accelerator.tdp, "share": POWER_SHARE}
        trace.append(Step("energy", "H x TDP x share / 1000", inputs, energy, "kWh"))
    capacity = accelerator.visible_bytes
    lacking = 0.0 if needed is None else needed - capacity
    assumptions = [
        msg("The hours are taken as told: another accelerator may need more or fewer of them.")
    ]
    if needed is None:
        assumptions.append(
            msg("No memory need was told; whether it fits is not known and taken as given.")
        )
    return Estimate(
        kind="gpu_hours",
        accelerator=accelerator.slug,
        accelerators=count,
        memory=() if needed is None else (Part("needed", needed),),
        memory_bytes=told(needed or 0.0, "B"),
        capacity_bytes=capacity,
        fits="out_of_memory" if lacking > 0 else "fits",
        figures=figures,
        saturation=Saturation(0.0, min((needed or 0.0) / capacity, 1.0), 0.0),
        layout={},
        assumptions=tuple(assumptions),
        remedies=(
            msg(
                "%(lack)s GB are lacking on each accelerator: %(need)s GB needed, %(have)s GB there.",
                lack=round(lacking / 1e9, 1),
                need=round(needed / 1e9, 1),
                have=round(capacity / 1e9, 1),
            ),
        )
        if needed is not None and lacking > 0
        else (),
        trace=tuple(trace),
    )
