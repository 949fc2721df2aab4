"""How far a figure may stray: P10 and P90 of measured / estimated by class, and the grade of the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planning.estimators.architecture import active_parameters
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_tables import GENERATIONS, generation_index
from planning.estimators.types import Accelerator, Architecture, Band, Grade

REACH = 2.0  # a figure this many times beyond the fitted range still counts as near it
ENOUGH = 10  # measured rows of one kind on one generation, from which on a figure is near them
_MEASURED_AS = {"mxfp4": "fp4"}  # published rows tell no kind of FP4


def measured_over_estimated(
    constants: Constants, kind: str, *, sparse: bool, grade: Grade = Grade.PUBLISHED
) -> tuple[float, float]:
    """(P10, P90) of measured / estimated in the class, out of fold. [1]

    An extrapolated figure takes the residuals of models and cards that were left out of the fit altogether.
    """
    suffix = "moe" if sparse else "dense"
    far = "far." if grade is Grade.EXTRAPOLATED else ""
    for name in (f"{far}{kind}.{suffix}", f"{far}{kind}"):
        if name in constants.residuals:
            spread = constants.residuals[name]
            return spread["p10"], spread["p90"]
    spread = constants.residuals[f"{far}other"]
    return spread["p10"], spread["p90"]


def measured_generation(accelerator: Accelerator) -> str:
    """The generation under which measured rows of `accelerator` are counted: its kernels' generation, or its own where
    the tables keep several together."""
    name = GENERATIONS[generation_index(accelerator)]
    return accelerator.generation.lower() if name in ("older", "cdna", "other") else name


def measured_rows(constants: Constants, accelerator: Accelerator, kind: str) -> int:
    """How many measured rows of `kind` ("dense fp8", "moe int4", "samples diffusion") on this generation the constants
    were fitted on. [1]"""
    counts: Mapping[str, Mapping[str, int]] = constants.fitted_set["measured_rows"]
    return counts.get(measured_generation(accelerator), {}).get(kind, 0)


def sample_grade(constants: Constants, accelerator: Accelerator, network: str) -> Grade:
    """How near the evidence is for a network of this kind on this generation."""
    near = measured_rows(constants, accelerator, f"samples {network}") >= ENOUGH
    return Grade.PUBLISHED if near else Grade.EXTRAPOLATED


def grade_of(
    constants: Constants,
    architecture: Architecture,
    accelerator: Accelerator,
    *,
    weights: str,
    engine: str,
    context: float,
    measured_here: bool = False,
) -> Grade:
    """How near the fitted set a candidate lies: enough rows of its generation, kind of model and precision, and engine,
    size and context within what was measured."""
    if measured_here:
        return Grade.MEASURED
    known: Mapping[str, Any] = constants.fitted_set
    kind = "moe" if architecture.moe is not None else "dense"
    low, high = known["active_parameters"][kind]
    size = active_parameters(architecture)
    near = (
        measured_rows(constants, accelerator, f"{kind} {_MEASURED_AS.get(weights, weights)}")
        >= ENOUGH
        and engine in known["engines"]
        and low / REACH <= size <= high * REACH
        and context <= known["longest_context"] * REACH
        and not architecture.assumed
    )
    return Grade.PUBLISHED if near else Grade.EXTRAPOLATED


def band(
    value: float,
    unit: str,
    constants: Constants,
    kind: str,
    *,
    sparse: bool,
    grade: Grade,
) -> Band:
    """`value` as P50 with the spread of its class."""
    low, high = measured_over_estimated(constants, kind, sparse=sparse, grade=grade)
    return Band(value * low, value, value * high, unit, grade)
