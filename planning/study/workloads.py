"""What each kind of workload asks for: one declaration behind the form, the API, the commands and the import.

A workload is stored as a flat JSON object in SI units, one key per field below. :func:`normalise` takes what a person
or a program wrote ("7B", "1.5T", "0.5 %"), fills in defaults and refuses what is out of range by naming the field,
the value and the limit. Nothing is clamped.

What a request keeps is what was told; values that nobody told stand apart under ``assumed``, each with where it comes
from (:func:`kept_apart`), so that a default is never read as somebody's word. :func:`whole` puts both together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from core.errors import InputError
from core.messages import msg, shown
from planning.estimators.config_precision import stated_weights_or_stored
from planning.study.fields import Field, WorkloadErrors, check_value, is_empty
from planning.study.load_series import peak_over_mean


class Kind(StrEnum):
    """What is to be run."""

    PRETRAINING = "pretraining"
    FINETUNING = "finetuning"
    LORA = "lora"
    PREFERENCE = "preference"
    SAMPLES = "samples"
    ONLINE_INFERENCE = "online_inference"
    BATCH_INFERENCE = "batch_inference"
    ONLINE_SAMPLES = "online_samples"
    BATCH_SAMPLES = "batch_samples"
    GPU_HOURS = "gpu_hours"


PRECISIONS = (
    ("bf16", msg("BF16")),
    ("fp16", msg("FP16")),
    ("fp8", msg("FP8")),
    ("fp32", msg("FP32")),
)
WEIGHTS = (
    ("bf16", msg("BF16")),
    ("fp16", msg("FP16")),
    ("fp8", msg("FP8")),
    ("int8", msg("INT8")),
    ("int4", msg("INT4")),
    ("fp4", msg("FP4")),
    ("mxfp4", msg("MXFP4")),
)
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
SHAPES = (
    ("office", msg("Office hours, working days")),
    ("evening", msg("Evenings and weekends")),
    ("flat", msg("The same at all hours")),
)
NETWORKS = (
    ("transformer", msg("Transformer")),
    ("convolution", msg("Convolutions")),
    ("detection", msg("Detection, with large images")),
    ("diffusion", msg("Diffusion")),
)
METHODS = (("lora", msg("LoRA")), ("qlora", msg("QLoRA (4-bit base model)")))

MODEL = Field(
    "model", msg("Model"), "text",
    help=msg("A model of the catalogue: its name or short name. Or give its size or its config.json instead."),
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
FRAMEWORKS = (
    ("megatron", msg("Megatron-LM, NeMo")),
    ("torchtitan", msg("torchtitan")),
    ("deepspeed", msg("DeepSpeed")),
    ("huggingface", msg("Hugging Face Trainer, TRL, PEFT")),
    ("torchtune", msg("torchtune")),
    ("llm-foundry", msg("MosaicML LLM Foundry")),
    ("litgpt", msg("LitGPT")),
    ("nanogpt", msg("nanoGPT, llm.c")),
    ("fms", msg("IBM FMS FSDP")),
)
FRAMEWORK = Field(
    "framework", msg("Framework"), "choice", choices=FRAMEWORKS,
    help=msg("Makes the estimate surer. Empty: the rate of published runs in general."),
)  # fmt: skip
RECOMPUTATION = Field(
    "recompute", msg("Activation recomputation"), "choice", choices=RECOMPUTE,
    help=msg("Empty: what the framework does, or what the search finds fastest."),
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
REQUESTS = Field(
    "requests_per_day", msg("Requests per day"), "number", "requests", required=True, minimum=1, maximum=1e12
)  # fmt: skip
PEAK = Field(
    "peak_factor", msg("Peak over mean"), "number", default=3.0, minimum=1, maximum=100,
    help=msg("Requests in the busiest second, divided by the mean over the day."),
)  # fmt: skip
GROWTH = Field(
    "growth_per_month", msg("Growth per month"), "share", default=0.0, minimum=-0.9, maximum=10,
    help=msg("For example 0.05 or 5 %."),
)  # fmt: skip
LOAD_SHAPE = Field(
    "load_shape", msg("Load over the week"), "choice", choices=SHAPES,
    help=msg("For the split into reserved and on demand. Empty: office hours."),
)  # fmt: skip
LOAD_SERIES = Field(
    "load_series", msg("Load by the hour, from a file"), "series",
    help=msg("Measured hours in place of a usual week and its peak, for the split into reserved, on demand and spot."),
)  # fmt: skip
LOAD_MONTHS = Field(
    "load_months", msg("Load of each month of the year"), "months",
    help=msg("Twelve numbers from January on, or a table of month and load; only their proportions count."),
)  # fmt: skip
STOPPABLE = Field(
    "stoppable_share", msg("Share above the base that may be stopped"), "share", minimum=0, maximum=1,
    help=msg("Work on the same cards that may be stopped and sent again (batch jobs): it may go to spot."),
)  # fmt: skip
ITEMS = Field(
    "items", msg("Items per run"), "number", "items", required=True, minimum=1, maximum=1e12
)
WINDOW = Field(
    "window_hours", msg("Time for one run"), "number", "h", required=True, minimum=0.01, maximum=8784
)  # fmt: skip
RUNS = Field(
    "runs_per_month", msg("Runs per month"), "number", default=1, minimum=0.01, maximum=10_000
)
# A model told by the work of one sample: an image, a clip, a pair of sentences, a whole generated picture.
_SAMPLE_MODEL = (
    MODEL, PARAMETERS,
    Field("flops_per_sample", msg("FLOP per sample"), "number", "FLOP", minimum=1e3, maximum=1e18,
          help=msg("The forward pass alone, every step of a diffusion included. Empty: from the catalogue's model.")),
    Field("input_tokens", msg("Tokens per sample"), "count", "tokens", minimum=1, maximum=10_000_000,
          help=msg("Of a text encoder, whose FLOP follow from its shape.")),
    Field("passes", msg("Passes per sample"), "count", "passes", minimum=1, maximum=1_000_000,
          help=msg("That follow each other: diffusion steps, twice with guidance; tokens of a transcript. "
                   "Empty: what such models usually take.")),
    Field("network", msg("Mostly made of"), "choice", choices=NETWORKS,
          help=msg("Decides which share of the peak rate it reaches. Empty: from the catalogue's model.")),
    Field("sample_bytes", msg("Memory of one sample"), "number", "B", minimum=1, maximum=1e13,
          help=msg("Activations and caches at their peak. Empty: by a rule from FLOP, right within a factor of 3.")),
    WEIGHT_PRECISION,
)  # fmt: skip

DATA = (
    Field("dataset_bytes", msg("Data set"), "number", "B", minimum=1, maximum=1e18,
          help=msg("One pass over it: 10T is 10 TB. Empty: from tokens or bytes per sample.")),
    Field("epochs", msg("Passes over the data set"), "number", minimum=0.01, maximum=100_000,
          help=msg("How often it is read. Empty: once.")),
)  # fmt: skip
_TRAINING = (MODEL, PARAMETERS, CONFIG, TOKENS, SEQUENCE, GLOBAL_BATCH, PRECISION)
FIELDS: dict[str, tuple[Field, ...]] = {
    Kind.PRETRAINING: (*_TRAINING, FRAMEWORK, OPTIMIZER, RECOMPUTATION, *DATA),
    Kind.FINETUNING: (*_TRAINING, FRAMEWORK, OPTIMIZER, RECOMPUTATION, *DATA),
    Kind.LORA: (
        Field("method", msg("Method"), "choice", default="lora", choices=METHODS),
        *_TRAINING,
        FRAMEWORK,
        Field("lora_rank", msg("Rank of the adapters"), "count", default=16, minimum=1, maximum=4096),
        *DATA,
    ),
    Kind.PREFERENCE: (*_TRAINING, FRAMEWORK, OPTIMIZER, RECOMPUTATION, *DATA),
    Kind.SAMPLES: (
        MODEL, PARAMETERS,
        Field("samples", msg("Samples"), "number", "samples", required=True, minimum=1, maximum=1e16,
              help=msg("All epochs together: images, clips, documents.")),
        Field("flops_per_sample", msg("FLOP per sample"), "number", "FLOP", minimum=1, maximum=1e18,
              help=msg("Forward and backward: three times the forward pass. Empty: from the catalogue's model.")),
        GLOBAL_BATCH, PRECISION, OPTIMIZER, *DATA,
    ),
    Kind.ONLINE_INFERENCE: (
        MODEL, PARAMETERS, CONFIG, WEIGHT_PRECISION, REQUESTS, PEAK, INPUT_TOKENS, OUTPUT_TOKENS, GROWTH, LOAD_SHAPE,
        LOAD_SERIES, LOAD_MONTHS, STOPPABLE,
    ),
    Kind.BATCH_INFERENCE: (
        MODEL, PARAMETERS, CONFIG, WEIGHT_PRECISION, ITEMS, INPUT_TOKENS, OUTPUT_TOKENS, WINDOW, RUNS,
    ),
    Kind.ONLINE_SAMPLES: (*_SAMPLE_MODEL, REQUESTS, PEAK, GROWTH, LOAD_SHAPE, LOAD_SERIES, LOAD_MONTHS, STOPPABLE),
    Kind.BATCH_SAMPLES: (*_SAMPLE_MODEL, ITEMS, WINDOW, RUNS),
    Kind.GPU_HOURS: (
        Field("gpu_hours", msg("GPU hours"), "number", "GPU·h", required=True, minimum=0.1, maximum=1e9),
        Field("accelerators", msg("Accelerators at the same time"), "count", default=1, minimum=1, maximum=100_000),
        Field("accelerator", msg("Accelerator"), "text",
              help=msg("Short name in the catalogue, for example nvidia-h100-sxm5-80gb. Empty: chosen by the study.")),
        Field("memory_bytes", msg("Memory needed per accelerator"), "number", "B", minimum=1e9, maximum=1e13,
              help=msg("In bytes: 40e9 or 40G.")),
    ),
}  # fmt: skip
TRAINING = frozenset({Kind.PRETRAINING, Kind.FINETUNING, Kind.LORA, Kind.PREFERENCE, Kind.SAMPLES})
SAMPLE_INFERENCE = frozenset({Kind.ONLINE_SAMPLES, Kind.BATCH_SAMPLES})
TOKEN_INFERENCE = frozenset({Kind.ONLINE_INFERENCE, Kind.BATCH_INFERENCE})
INFERENCE = TOKEN_INFERENCE | SAMPLE_INFERENCE
ONLINE = frozenset({Kind.ONLINE_INFERENCE, Kind.ONLINE_SAMPLES})
OFFLINE = INFERENCE - ONLINE
BY_SAMPLE = frozenset(
    {Kind.SAMPLES, *SAMPLE_INFERENCE}
)  # the model may be none that works on tokens
# What the request itself asks beside the workload, by kind: a training run has no latency, a service no checkpoint.
ASKS_INTERRUPTIBLE = frozenset({*TRAINING, *OFFLINE, Kind.GPU_HOURS})
ASKS_LATENCY = ONLINE
ASKS_ACCURACY = INFERENCE
NEEDS_MODEL = frozenset(set(Kind) - {Kind.GPU_HOURS})
# How much is to be done: what a split divides and a merge adds up.
VOLUME: dict[str, str] = {
    **dict.fromkeys(TRAINING, "tokens"),
    Kind.SAMPLES: "samples",
    **dict.fromkeys(ONLINE, "requests_per_day"),
    **dict.fromkeys((Kind.BATCH_INFERENCE, Kind.BATCH_SAMPLES), "items"),
    Kind.GPU_HOURS: "gpu_hours",
}
MODEL_FIELDS = ("model", "parameters", "config")


def problems(
    kind: str, data: Mapping[str, Any], *, model_given: bool = False
) -> tuple[dict[str, Any], list[InputError]]:
    """The workload as far as it is good, and every error. Unknown keys are errors: a typo must not lose a value.

    `model_given`: the model's shape comes from elsewhere, and must not be told here too.
    """
    if not isinstance(data, Mapping):
        raise InputError(
            "workload", msg("The workload is a set of named values"), value=shown(data)
        )
    fields = FIELDS[kind]
    clean: dict[str, Any] = {}
    errors: list[InputError] = []
    for name in sorted(set(data) - {field.name for field in fields}):
        errors.append(
            InputError(name, msg("%(field)s is not asked for this kind of workload", field=name),
                       value=shown(data[name]))
        )  # fmt: skip
    for field in fields:
        value = data.get(field.name)
        if is_empty(value):
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
        errors += _model_problems(data, model_given)
    errors += _load_problems(data, clean)
    errors += _weights_of_config(data, clean)
    return clean, errors


def _weights_of_config(data: Mapping[str, Any], clean: dict[str, Any]) -> list[InputError]:
    """A config says the precision of its weights, unless a person did."""
    if "config" not in clean or "weight_precision" not in clean:
        return []
    if not is_empty(data.get("weight_precision")):
        return []
    try:
        clean["weight_precision"] = (
            stated_weights_or_stored(clean["config"]) or clean["weight_precision"]
        )
    except InputError as error:
        return [error]
    return []


def _load_problems(data: Mapping[str, Any], clean: dict[str, Any]) -> list[InputError]:
    """Hours say how high their peak is. One that is told lower would size the service too small."""
    series = clean.get("load_series")
    if series is None:
        return []
    measured = peak_over_mean(series)
    most = PEAK.maximum or math.inf
    if measured > most:
        return [
            InputError(
                "load_series",
                msg("%(field)s: the busiest hour is %(value)s times the mean; at most %(limit)s",
                    field="load_series", value=round(measured, 1), limit=most),
                value=round(measured, 1), limit=most,
            )
        ]  # fmt: skip
    if is_empty(data.get("peak_factor")):
        clean["peak_factor"] = math.ceil(round(measured * 100, 6)) / 100
    told = clean.get("peak_factor")
    if told is None:
        return []
    if told >= round(measured, 2):
        return []
    return [
        InputError(
            "peak_factor",
            msg("The busiest hour of the file is %(measured)s times its mean; peak over mean says %(told)s",
                measured=round(measured, 2), told=told),
            value=told, limit=round(measured, 2),
        )
    ]  # fmt: skip


def _model_problems(data: Mapping[str, Any], model_given: bool) -> list[InputError]:
    given = [name for name in MODEL_FIELDS if not is_empty(data.get(name))]
    if not given and not model_given:
        return [InputError("model", msg("Name the model, or give its size or its config.json"))]
    if len(given) + model_given > 1:
        return [
            InputError(
                given[-1],
                msg("Give only one of: model, parameters, config.json"),
                value=", ".join(given),
                limit="1",
            )
        ]
    return []


ASSUMED = "assumed"  # in a kept workload: {name: {"value": ..., "origin": ...}} of what nobody told
DEFAULT, DERIVED = "default", "derived"  # a usual value; worked out from what was told
DERIVES = frozenset({PEAK.name})  # from the hours of load, where these are told


def kept_apart(kind: str, told: Mapping[str, Any], clean: Mapping[str, Any]) -> dict[str, Any]:
    """The workload as a request keeps it: of `clean` what `told` names, and the rest as assumed."""
    kept = {name: value for name, value in clean.items() if not is_empty(told.get(name))}
    derived = DERIVES if clean.get("load_series") is not None else frozenset()
    assumed = {
        name: {"value": value, "origin": DERIVED if name in derived else DEFAULT}
        for name, value in clean.items()
        if name not in kept
    }
    return {**kept, ASSUMED: assumed} if assumed else kept


def told_part(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Of a kept workload what was told."""
    return {name: value for name, value in kept.items() if name != ASSUMED}


def assumed_part(kept: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of a kept workload what nobody told: value and origin by name. Workloads kept before did not tell it apart."""
    return dict(kept.get(ASSUMED, {}))


def whole(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A kept workload with what was assumed in its place."""
    return {name: row["value"] for name, row in assumed_part(kept).items()} | told_part(kept)


def normalise(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The workload of `kind` as it is stored. Raises InputError, or WorkloadErrors when several values are wrong."""
    if kind not in FIELDS:
        raise InputError(
            "kind", msg("%(value)s is no kind of workload", value=shown(kind)), value=shown(kind),
            limit=", ".join(FIELDS),
        )  # fmt: skip
    clean, errors = problems(kind, data)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise WorkloadErrors(errors)
    return clean
