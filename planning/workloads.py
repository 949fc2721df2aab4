"""What each kind of workload asks for: one declaration behind the form, the API and the import.

A workload is stored as a flat JSON object in SI units, one key per field below. :func:`normalise` takes what a person
or a program wrote ("7B", "1.5T", "0.5 %"), fills in defaults and refuses what is out of range by naming the field,
the value and the limit. Nothing is clamped.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.errors import DomainError, InputError
from core.messages import Message, msg


class Kind(models.TextChoices):
    """What is to be run."""

    PRETRAINING = "pretraining", _("Pre-training")
    FINETUNING = "finetuning", _("Full fine-tuning")
    LORA = "lora", _("LoRA or QLoRA")
    ONLINE_INFERENCE = "online_inference", _("Online inference")
    BATCH_INFERENCE = "batch_inference", _("Batch inference")
    GPU_HOURS = "gpu_hours", _("Other GPU hours")


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a workload. `type`: count (whole), number, share (0.2 = 20 %), choice, text, config (JSON)."""

    name: str
    label: Message
    type: str
    unit: str = ""  # SI, or what is counted
    help: Message | None = None
    required: bool = False
    default: float | int | str | None = None
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[tuple[str, Message], ...] = ()


PRECISIONS = tuple((code, msg(label)) for code, label in (
    ("bf16", "BF16"), ("fp16", "FP16"), ("fp8", "FP8"), ("fp32", "FP32")
))  # fmt: skip
WEIGHTS = tuple((code, msg(label)) for code, label in (
    ("bf16", "BF16"), ("fp16", "FP16"), ("fp8", "FP8"), ("int8", "INT8"), ("int4", "INT4")
))  # fmt: skip
OPTIMIZERS = (
    ("adamw", msg("AdamW")),
    ("adamw_8bit", msg("AdamW, 8-bit states")),
    ("adafactor", msg("Adafactor")),
    ("sgd", msg("SGD")),
)
RECOMPUTE = (
    ("none", msg("None")),
    ("selective", msg("Selective")),
    ("full", msg("Full")),
)
METHODS = (("lora", msg("LoRA")), ("qlora", msg("QLoRA (4-bit base model)")))

MODEL = Field(
    "model", msg("Model"), "text",
    help=msg("Short name in the catalogue, for example llama-3.1-8b. Or give its size or its config.json instead."),
)  # fmt: skip
PARAMETERS = Field(
    "parameters", msg("Parameters"), "number", "parameters", minimum=1e6, maximum=1e14,
    help=msg("When the model is in no catalogue: 7B, 70e9."),
)  # fmt: skip
CONFIG = Field(
    "config", msg("Model config.json"), "config", help=msg("Paste the file as published with the weights.")
)  # fmt: skip
TOKENS = Field(
    "tokens", msg("Training tokens"), "number", "tokens", required=True, minimum=1, maximum=1e16,
    help=msg("All epochs together: 1T, 300e9."),
)  # fmt: skip
SEQUENCE = Field(
    "sequence_length", msg("Sequence length"), "count", "tokens", default=4096, minimum=1, maximum=16_777_216
)  # fmt: skip
GLOBAL_BATCH = Field(
    "global_batch", msg("Global batch"), "count", "sequences", minimum=1, maximum=10_000_000,
    help=msg("Sequences per optimiser step. Empty: chosen by the study."),
)  # fmt: skip
PRECISION = Field("precision", msg("Precision"), "choice", default="bf16", choices=PRECISIONS)
OPTIMIZER = Field("optimizer", msg("Optimiser"), "choice", default="adamw", choices=OPTIMIZERS)
RECOMPUTATION = Field(
    "recompute", msg("Activation recomputation"), "choice", default="selective", choices=RECOMPUTE
)  # fmt: skip
WEIGHT_PRECISION = Field(
    "weight_precision", msg("Precision of the weights"), "choice", default="fp16", choices=WEIGHTS,
    help=msg("As served today. Lower ones are tried when an accuracy-loss limit allows them."),
)  # fmt: skip
INPUT_TOKENS = Field(
    "input_tokens", msg("Input tokens per request"), "count", "tokens", required=True, minimum=1, maximum=10_000_000
)  # fmt: skip
OUTPUT_TOKENS = Field(
    "output_tokens", msg("Output tokens per request"), "count", "tokens", required=True, minimum=1, maximum=10_000_000
)  # fmt: skip

_TRAINING = (MODEL, PARAMETERS, CONFIG, TOKENS, SEQUENCE, GLOBAL_BATCH, PRECISION)
FIELDS: dict[str, tuple[Field, ...]] = {
    Kind.PRETRAINING: (*_TRAINING, OPTIMIZER, RECOMPUTATION),
    Kind.FINETUNING: (*_TRAINING, OPTIMIZER, RECOMPUTATION),
    Kind.LORA: (
        Field("method", msg("Method"), "choice", default="lora", choices=METHODS),
        *_TRAINING,
        Field("lora_rank", msg("Rank of the adapters"), "count", default=16, minimum=1, maximum=4096),
    ),
    Kind.ONLINE_INFERENCE: (
        MODEL, PARAMETERS, CONFIG, WEIGHT_PRECISION,
        Field("requests_per_day", msg("Requests per day"), "number", "requests", required=True, minimum=1,
              maximum=1e12),
        Field("peak_factor", msg("Peak over mean"), "number", default=3.0, minimum=1, maximum=1000,
              help=msg("Requests in the busiest second, divided by the mean over the day.")),
        INPUT_TOKENS, OUTPUT_TOKENS,
        Field("growth_per_month", msg("Growth per month"), "share", default=0.0, minimum=-0.9, maximum=10,
              help=msg("5 % or 0.05.")),
    ),
    Kind.BATCH_INFERENCE: (
        MODEL, PARAMETERS, CONFIG, WEIGHT_PRECISION,
        Field("items", msg("Items per run"), "number", "items", required=True, minimum=1, maximum=1e12),
        INPUT_TOKENS, OUTPUT_TOKENS,
        Field("window_hours", msg("Time for one run"), "number", "h", required=True, minimum=0.01, maximum=8784),
        Field("runs_per_month", msg("Runs per month"), "number", default=1, minimum=0.01, maximum=10_000),
    ),
    Kind.GPU_HOURS: (
        Field("gpu_hours", msg("GPU hours"), "number", "GPU·h", required=True, minimum=0.1, maximum=1e9),
        Field("accelerators", msg("Accelerators at the same time"), "count", default=1, minimum=1, maximum=100_000),
        Field("accelerator", msg("Accelerator"), "text",
              help=msg("Short name in the catalogue, for example h100-sxm-80gb. Empty: chosen by the study.")),
        Field("memory_bytes", msg("Memory needed per accelerator"), "number", "B", minimum=1e9, maximum=1e13,
              help=msg("In bytes: 40e9 or 40G.")),
    ),
}  # fmt: skip
# What the request itself asks beside the workload, by kind: a training run has no latency, a service no checkpoint.
ASKS_INTERRUPTIBLE = frozenset(
    {Kind.PRETRAINING, Kind.FINETUNING, Kind.LORA, Kind.BATCH_INFERENCE, Kind.GPU_HOURS}
)
ASKS_LATENCY = frozenset({Kind.ONLINE_INFERENCE})
ASKS_ACCURACY = frozenset({Kind.ONLINE_INFERENCE, Kind.BATCH_INFERENCE})
NEEDS_MODEL = frozenset(set(Kind) - {Kind.GPU_HOURS})

_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6, "b": 1e9, "B": 1e9, "g": 1e9, "G": 1e9, "t": 1e12,
          "T": 1e12}  # fmt: skip
_NUMBER = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([kKmMbBgGtT%]?)")
MAX_CONFIG = 100_000  # characters


class WorkloadErrors(DomainError):
    """Several values are out of range: one InputError each."""

    status = 422
    code = "invalid_input"

    def __init__(self, errors: list[InputError]) -> None:
        super().__init__(errors[0].message)
        self.errors = errors


def parse_number(field: str, value: object) -> float:
    """`value` as a finite float: a number, or text with a suffix (7B, 1.5T, 40k, 5 %). Raises InputError."""
    refused = InputError(
        field,
        msg("%(field)s: %(value)s is not a number", field=field, value=str(value)),
        value=value,
    )
    if isinstance(value, bool) or value is None:
        raise refused
    if isinstance(value, int | float):
        number = float(value)
    else:
        match = _NUMBER.fullmatch(str(value).strip().replace(",", "").replace("_", ""))
        if match is None:
            raise refused
        digits, suffix = match.groups()
        number = float(digits) / 100 if suffix == "%" else float(digits) * _SCALE[suffix]
    if not math.isfinite(number):
        raise refused
    return number


def check_value(field: Field, value: object) -> Any:
    """`value` as `field` stores it. Raises InputError naming field, value and limit."""
    if field.type == "text":
        text = str(value).strip()
        if len(text) > 120:
            raise InputError(
                field.name,
                msg("%(field)s is longer than %(limit)s characters", field=field.name, limit=120),
                value=text[:140], limit=120,
            )  # fmt: skip
        return text
    if field.type == "choice":
        codes = [code for code, _label in field.choices]
        if value not in codes:
            raise InputError(
                field.name,
                msg("%(field)s: %(value)s is none of %(limit)s", field=field.name, value=str(value),
                    limit=", ".join(codes)),
                value=value, limit=", ".join(codes),
            )  # fmt: skip
        return value
    if field.type == "config":
        return _config(field, value)
    number = parse_number(field.name, value)
    if (field.minimum is not None and number < field.minimum) or (
        field.maximum is not None and number > field.maximum
    ):
        limit = f"{field.minimum:g} … {field.maximum:g}"
        raise InputError(
            field.name,
            msg("%(field)s is %(value)s; it must be within %(limit)s %(unit)s", field=field.name,
                value=str(value), limit=limit, unit=field.unit or "1"),
            value=value, limit=limit,
        )  # fmt: skip
    if field.type == "count":
        if number != int(number):
            raise InputError(
                field.name,
                msg("%(field)s is %(value)s; it must be a whole number", field=field.name, value=str(value)),
                value=value, limit="whole number",
            )  # fmt: skip
        return int(number)
    return number


def _config(field: Field, value: object) -> dict[str, Any]:
    if isinstance(value, str):
        if len(value) > MAX_CONFIG:
            raise InputError(
                field.name,
                msg("%(field)s is longer than %(limit)s characters", field=field.name, limit=MAX_CONFIG),
                value=len(value), limit=MAX_CONFIG,
            )  # fmt: skip
        try:
            value = json.loads(value)
        except ValueError as error:
            raise InputError(
                field.name,
                msg("%(field)s is not valid JSON: %(problem)s", field=field.name, problem=str(error)),
                value="", limit="JSON",
            ) from None  # fmt: skip
    if not isinstance(value, dict) or not value:
        raise InputError(
            field.name,
            msg("%(field)s must be a JSON object", field=field.name),
            limit="JSON object",
        )
    return value


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def problems(kind: str, data: Mapping[str, Any]) -> tuple[dict[str, Any], list[InputError]]:
    """The workload as far as it is good, and every error. Unknown keys are errors: a typo must not lose a value."""
    fields = FIELDS[kind]
    clean: dict[str, Any] = {}
    errors: list[InputError] = []
    for name in sorted(set(data) - {field.name for field in fields}):
        errors.append(
            InputError(name, msg("%(field)s is not asked for this kind of workload", field=name),
                       value=str(data[name])[:100])
        )  # fmt: skip
    for field in fields:
        value = data.get(field.name)
        if _is_empty(value):
            if field.default is not None:
                clean[field.name] = field.default
            elif field.required:
                errors.append(InputError(field.name, msg("%(field)s is missing", field=field.name)))
            continue
        try:
            clean[field.name] = check_value(field, value)
        except InputError as error:
            errors.append(error)
    if kind in NEEDS_MODEL:
        given = [
            name for name in ("model", "parameters", "config") if not _is_empty(data.get(name))
        ]
        if not given:
            errors.append(
                InputError("model", msg("Name the model, or give its size or its config.json"))
            )
        elif len(given) > 1:
            errors.append(
                InputError(given[1], msg("Give only one of: model, parameters, config.json"),
                           value=", ".join(given), limit="1")
            )  # fmt: skip
    return clean, errors


def normalise(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The workload of `kind` as it is stored. Raises InputError, or WorkloadErrors when several values are wrong."""
    if kind not in FIELDS:
        raise InputError(
            "kind", msg("%(value)s is no kind of workload", value=str(kind)), value=kind,
            limit=", ".join(FIELDS),
        )  # fmt: skip
    clean, errors = problems(kind, data)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise WorkloadErrors(errors)
    return clean
