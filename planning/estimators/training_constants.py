"""Fitted constants of the training estimator: read once from ``training_constants.json``, written by the fit.

Nothing in the file belongs to one model, source or measurement: constants hold for a generation of accelerators, a
precision, a method or a framework.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np

from planning.estimators.training_candidates import (
    EFFICIENCY_CLASSES,
    FAMILIES,
    FRAMEWORK_CODES,
    Array,
)


@dataclass(frozen=True, slots=True)
class TrainingConstants:
    """Constants with the tables laid out as arrays, ready to index."""

    version: str
    values: Mapping[str, float]
    matrix_efficiency: Array  # by EFFICIENCY_CLASSES [1]
    attention_efficiency: Array  # by FAMILIES [1]
    framework_factor: Array  # by FRAMEWORK_CODES, on the time of a step [1]
    rule: Mapping[str, float]  # the plain rule used when framework and layout are unknown
    production: Mapping[str, float]  # whole runs against the rule
    residuals: Mapping[str, tuple[float, float]]  # class: P10 and P90 of measured ÷ predicted
    sources: Mapping[str, Any]
    measured_rows: Mapping[str, int] = field(default_factory=dict)  # kind: scored rows

    def value(self, name: str) -> float:
        return self.values[name]


def row_kind(efficiency_class: int, *, sparse: bool) -> str:
    """Under which name measured rows are counted: family with precision (EFFICIENCY_CLASSES), kind of model."""
    return f"{EFFICIENCY_CLASSES[efficiency_class]} {'moe' if sparse else 'dense'}"


def constants_from(document: Mapping[str, Any]) -> TrainingConstants:
    """Constants from the layout of ``training_constants.json``."""
    efficiency = document["matrix_efficiency"]
    return TrainingConstants(
        version=document["version"],
        values=document["values"],
        matrix_efficiency=np.array([efficiency[name] for name in EFFICIENCY_CLASSES]),
        attention_efficiency=np.array(
            [document["attention_efficiency"][name] for name in FAMILIES]
        ),
        framework_factor=np.array(
            [document["framework_factor"].get(name, 1.0) for name in FRAMEWORK_CODES]
        ),
        rule=document["rule"],
        production=document["production"],
        residuals={
            name: (float(low), float(high)) for name, (low, high) in document["residuals"].items()
        },
        sources=document["fit"],
        measured_rows=document.get("measured_rows", {}),
    )


@functools.cache
def training_constants() -> TrainingConstants:
    """The constants that come with the product."""
    text = resources.files(__package__).joinpath("training_constants.json").read_text("utf-8")
    return constants_from(json.loads(text))
