"""How far a figure may stray: P10 and P90 of measured / estimated by class, and the grade of the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planning.estimators.architecture import active_parameters
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_tables import GENERATIONS, generation_index
from planning.estimators.types import Accelerator, Architecture, Band, Grade

REACH = 2.0  # a figure this many times beyond the fitted range still counts as near it


def measured_over_estimated(
    constants: Constants, kind: str, *, sparse: bool, grade: Grade = Grade.PUBLISHED
) -> tuple[float, float]:
    """(P10, P90) of measured / estimated in the class, out of fold. [1]

    An extrapolated figure takes the residuals of models and cards that were left out of the fit altogether.
    """
    suffix = "moe" if sparse else "dense"
    far = "far." if grade is Grade.EXTRAPOLATED else ""
    for name in (f"{far}{kind}.{suffix}", f"{far}{kind}", f"{kind}.{suffix}", kind):
        if name in constants.residuals:
            spread = constants.residuals[name]
            return spread["p10"], spread["p90"]
    spread = constants.residuals[f"{far}other"]
    return spread["p10"], spread["p90"]


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
    """How near the fitted set a candidate lies: generation with precision, engine, size and context all within it."""
    if measured_here:
        return Grade.MEASURED
    known: Mapping[str, Any] = constants.fitted_set
    pair = f"{GENERATIONS[generation_index(accelerator)]} {weights}"
    kind = "moe" if architecture.moe is not None else "dense"
    low, high = known["active_parameters"][kind]
    size = active_parameters(architecture)
    near = (
        pair in known["generation_precision"]
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
