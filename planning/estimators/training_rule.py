"""A plain rule for a run of which neither framework nor layout is known: utilisation from what is known.

Log-linear in the generation, the precision, the size, the count and the sequence. It carries to unseen sources better
than guessing a layout would. GPU-hours of production runs add restarts, evaluation and slow days.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planning.estimators.training_candidates import (
    FAMILIES,
    PRECISION_CLASSES,
    Array,
    Candidates,
)
from planning.estimators.training_constants import TrainingConstants

_BLACKWELL = FAMILIES.index("blackwell")
_HOPPER = FAMILIES.index("hopper")


def rule_features(c: Candidates) -> dict[str, Array]:
    """Columns of the rule by name, each of shape (n,). [1]"""
    family = c.family.astype(np.intp)
    kind = c.efficiency_class.astype(np.intp) % len(PRECISION_CLASSES)
    active = c.layer_matmul_parameters + c.head_parameters
    sparse = (c.experts > 0).astype(np.float64)
    samples = (c.sample_flops > 0).astype(np.float64)
    features: dict[str, Array] = {"base": np.ones_like(active)}
    for index, name in enumerate(FAMILIES):
        if name != "ampere":
            features[f"family:{name}"] = (family == index).astype(np.float64)
    for index, name in enumerate(PRECISION_CLASSES):
        if name != "16":
            features[f"precision:{name}"] = (kind == index).astype(np.float64)
    return features | {
        "log_active": np.log(active / 7e9),
        "log_active_large": np.maximum(np.log(active / 2e10), 0.0),
        "log_accelerators": np.log(c.accelerators / 8.0),
        "log_sequence": np.log(c.sequence / 4096.0),
        "log_long": np.maximum(np.log(c.sequence / 8192.0), 0.0),
        "log_hidden": np.log(np.maximum(c.hidden, 256.0) / 4096.0),
        "experts": sparse,
        "experts_blackwell": sparse * (family == _BLACKWELL),
        "adapter": (c.trained_share <= 0).astype(np.float64),
        "quantized": np.broadcast_to(c.dequantized, active.shape).astype(np.float64),
        "samples": samples,
        "samples_32": samples * (kind == 0),
    }


def production_features(c: Candidates) -> dict[str, Array]:
    """What a published whole run costs beyond its benchmark: columns of shape (n,). [1]"""
    family = c.family.astype(np.intp)
    language = (c.sample_flops <= 0).astype(np.float64)
    active = c.layer_matmul_parameters + c.head_parameters
    return {
        "base": np.ones_like(active),
        "new_generation": (family >= _HOPPER).astype(np.float64),
        "half_precision": (c.half_precision > 0) * language,
        "log_active": np.log(active / 7e9) * language,
    }


def unit_work(c: Candidates) -> Array:
    """Model FLOPs of one token (or sample), forward and backward, without recomputation. [FLOP]

    A reference model's forward pass is one more of them. Adapters count as a full step here: what they save is a fitted
    feature of the rule.
    """
    active = c.layer_matmul_parameters + c.head_parameters
    language = (2.0 * active + c.attention_flops) * np.maximum(c.passes, 3.0)
    return np.where(c.sample_flops > 0, c.sample_flops, language)


def rule_rate(c: Candidates, constants: TrainingConstants) -> Array:
    """Tokens (or samples) per second of one accelerator by the plain rule. [1/s]"""
    return np.exp(_sum(rule_features(c), constants.rule)) * c.peak_16 / unit_work(c)


def production_factor(c: Candidates, constants: TrainingConstants) -> Array:
    """Accelerator-hours of a whole production run ÷ what the rule's rate alone would take. [1]"""
    return np.exp(_sum(production_features(c), constants.production))


def _sum(features: Mapping[str, Array], weights: Mapping[str, float]) -> Array:
    total = np.zeros(1)
    for name, column in features.items():
        total = total + weights[name] * column
    return total
