"""The kinds of workload with their labels, and the declarations of ``planning.study.workloads`` beside them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from planning.study.fields import MAX_CONFIG, Field, WorkloadErrors, check_value, parse_number
from planning.study.workloads import (
    ASKS_ACCURACY,
    ASKS_INTERRUPTIBLE,
    ASKS_LATENCY,
    DERIVED,
    FIELDS,
    NEEDS_MODEL,
    VOLUME,
    assumed_part,
    kept_apart,
    normalise,
    problems,
    told_part,
    whole,
)
from planning.study.workloads import Kind as Code

__all__ = [
    "ASKS_ACCURACY",
    "ASKS_INTERRUPTIBLE",
    "ASKS_LATENCY",
    "DERIVED",
    "FIELDS",
    "MAX_CONFIG",
    "NEEDS_MODEL",
    "VOLUME",
    "Field",
    "Kind",
    "WorkloadErrors",
    "assumed_part",
    "check_value",
    "kept_apart",
    "normalise",
    "parse_number",
    "problems",
    "told_part",
    "whole",
]


class Kind(models.TextChoices):
    """What is to be run."""

    PRETRAINING = Code.PRETRAINING.value, _("Pre-training")
    FINETUNING = Code.FINETUNING.value, _("Full fine-tuning")
    LORA = Code.LORA.value, _("LoRA or QLoRA")
    PREFERENCE = Code.PREFERENCE.value, _("Preference tuning (DPO)")
    SAMPLES = Code.SAMPLES.value, _("Training, by FLOP per sample")
    ONLINE_INFERENCE = Code.ONLINE_INFERENCE.value, _("Online inference")
    BATCH_INFERENCE = Code.BATCH_INFERENCE.value, _("Batch inference")
    ONLINE_SAMPLES = (
        Code.ONLINE_SAMPLES.value,
        _("Online inference, by FLOP per sample"),
    )
    BATCH_SAMPLES = (
        Code.BATCH_SAMPLES.value,
        _("Batch inference, by FLOP per sample"),
    )
    GPU_HOURS = Code.GPU_HOURS.value, _("Other GPU hours")
