"""The fitted constants: one dated data file, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from planning.estimators.inference_tables import COMPUTE_CLASSES, GENERATIONS, Floats


@dataclass(frozen=True, slots=True)
class Constants:
    """Efficiencies [1], overheads [s] and limits; see docs/estimators/inference.md for each symbol."""

    version: str
    values: Mapping[str, float]
    residuals: Mapping[str, Mapping[str, float]]  # class -> {"p10", "p90"} of measured / estimated
    fitted_set: Mapping[str, Any]  # models, accelerators, engines and precisions measured
    checks: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict
    )  # median errors of the fit [%]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def per(self, prefix: str, keys: tuple[str, ...]) -> Floats:
        """The constants ``prefix.key`` in the order of `keys`; ``prefix`` alone is the default. Shape (keys,)"""
        default = self.values[prefix]
        return np.array([self.values.get(f"{prefix}.{key}", default) for key in keys])

    def by_generation(self, prefix: str) -> Floats:
        return self.per(prefix, GENERATIONS)

    def compute_efficiency(self) -> Floats:
        """Share of the dense peak that large products reach. Shape (generations, compute classes)"""
        base = self.per("compute", COMPUTE_CLASSES)
        table = np.outer(self.by_generation("compute.generation"), base)
        for i, generation in enumerate(GENERATIONS):
            for j, kind in enumerate(COMPUTE_CLASSES):
                table[i, j] *= self.values.get(f"compute.{kind}.{generation}", 1.0)
        return table


def constants_from(data: Mapping[str, Any]) -> Constants:
    """Constants from the content of a constants file (or an organisation's own, after calibration)."""
    return Constants(
        version=str(data["version"]),
        values=dict(data["values"]),
        residuals=dict(data["residuals"]),
        fitted_set=dict(data["fitted_set"]),
        checks=dict(data.get("median_ape", {})),
    )


@cache
def published_constants() -> Constants:
    """The constants fitted on published measurements that this package ships."""
    text = (
        files("planning.estimators")
        .joinpath("inference_constants.json")
        .read_text(encoding="utf-8")
    )
    return constants_from(json.loads(text))
