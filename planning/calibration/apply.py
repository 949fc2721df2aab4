"""An accelerator as it runs here, and estimates that say so."""

from __future__ import annotations

from dataclasses import replace

from core.messages import msg
from planning.calibration.shrinkage import Factor
from planning.estimators.types import Accelerator, Band, Estimate, Grade, Step

# Kind of workload → class of work. Kinds of one class share their efficiencies.
CLASSES = {
    "pretraining": "training", "finetuning": "training", "preference": "training", "lora": "lora",
    "qlora": "lora", "online_inference": "serving", "batch_inference": "batch",
}  # fmt: skip
# Figures that grow with speed, and those that shrink with it; all others are left as they are.
RATES = frozenset(
    {"throughput", "throughput_per_accelerator", "mfu", "output_throughput", "input_throughput", "total_throughput",
     "requests_per_second", "tokens_per_second", "samples_per_second", "capacity"}
)  # fmt: skip
# A card's own rates among the inputs of a trace: in any step, and by the letters of two of them.
CARD_RATES = {"effective bandwidth": ("W",), "effective rate": ("F", "peak")}
TIMES = frozenset(
    {
        "step_time",
        "training_time",
        "accelerator_hours",
        "wall_time",
        "energy",
        "ttft",
        "tpot",
        "end_to_end",
        *(
            f"{name}_{load}"
            for name in ("ttft", "tpot", "end_to_end")
            for load in ("average", "full")
        ),
    }
)


def class_of(kind: str) -> str:
    """The class of work of a kind of workload; the kind itself where it stands alone."""
    return CLASSES.get(kind, kind)


def as_measured(accelerator: Accelerator, factor: Factor) -> Accelerator:
    """The accelerator with its rates multiplied: the same as multiplying the efficiencies that are applied to them."""
    f = factor.factor
    return replace(
        accelerator,
        measured_share=accelerator.measured_share * f,
        peak_flops={name: rate * f for name, rate in accelerator.peak_flops.items()},
        hbm_bandwidth=accelerator.hbm_bandwidth * f,
        link_bandwidth=None
        if accelerator.link_bandwidth is None
        else accelerator.link_bandwidth * f,
    )


def as_told(estimate: Estimate, factor: Factor, version: int) -> Estimate:
    """An estimate made on :func:`as_measured` hardware, with the spread of outcomes here and a line in its trace.

    MFU is told against the published peak. Where the cell has outcomes the grade is "measured here".
    """
    grade = Grade.MEASURED if factor.outcomes else None
    figures = {name: _band(name, band, factor, grade) for name, band in estimate.figures.items()}
    step = Step(
        "calibration",
        "published efficiency x factor",
        {"version": version, "outcomes": factor.outcomes},
        factor.factor,
        "1",
    )
    said = (
        msg(
            "Efficiency × %(factor)s from %(n)s outcomes of your own (calibration %(version)s)",
            factor=round(factor.factor, 3), n=factor.outcomes, version=version,
        )
        if factor.outcomes
        else msg(
            "Efficiency × %(factor)s, which all your outcomes share; none is of this accelerator and work "
            "(calibration %(version)s)",
            factor=round(factor.factor, 3), version=version,
        )
    )  # fmt: skip
    return replace(
        estimate,
        figures=figures,
        trace=(*(_published(one, factor.factor) for one in estimate.trace), step),
        assumptions=(*estimate.assumptions, said),
    )


def _published(step: Step, factor: float) -> Step:
    """A step with the card's published rate in it, and what was measured here as an input of its own."""
    rates = {
        name: value / factor
        for name, value in step.inputs.items()
        if name in CARD_RATES.get(step.name, ("peak",)) and isinstance(value, int | float)
    }
    if not rates:
        return step
    inputs = {**step.inputs, **rates}
    if step.name == "mfu":  # told against the published rate
        return replace(step, inputs=inputs, result=step.result * factor)
    return replace(step, inputs={**inputs, "calibration": factor})


def _band(name: str, band: Band, factor: Factor, grade: Grade | None) -> Band:
    middle = band.p50 * (factor.factor if name == "mfu" else 1.0)
    if grade is None or (name not in RATES and name not in TIMES):
        share = middle / band.p50 if band.p50 else 1.0
        return replace(band, p10=band.p10 * share, p50=middle, p90=band.p90 * share)
    if name in RATES:
        return Band(middle * factor.low, middle, middle * factor.high, band.unit, grade)
    return Band(middle / factor.high, middle, middle / factor.low, band.unit, grade)
