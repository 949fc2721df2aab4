"""Published training measurements (rows of a truth file) as workloads, so that they can be predicted and compared.

Rows come from many hands: fields may be missing, unknown or extra. What a row leaves out is filled like a user's gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError
from planning.estimators.architecture import (
    architecture_from_count,
    attention_parameters,
    count_from_name,
    count_parameters,
    validate,
)
from planning.estimators.training_candidates import candidate_row, default_batches, peak_rate
from planning.estimators.training_workload import (
    FRAMEWORKS,
    GENERIC,
    Cluster,
    Layout,
    TrainingWorkload,
    resolve,
)
from planning.estimators.types import Accelerator, Architecture, MixtureOfExperts

Row = Mapping[str, Any]
Resolver = Callable[[str], Accelerator | None]

# Which framework the authors of a source trained with.
FRAMEWORK_OF_SOURCE = {
    "mbridge": "megatron", "mbridge_mem": "megatron", "automodel": "torchtitan", "narayanan": "megatron",
    "korthikanti": "megatron", "mtnlg": "megatron", "megatron_readme": "megatron", "megatron_h100": "megatron",
    "bloom": "megatron", "neox": "megatron", "pythia": "megatron", "falcon": "megatron", "starcoder": "megatron",
    "starcoder2": "megatron", "bloomberggpt": "deepspeed", "llama3_paper": "megatron", "deepseek": "megatron",
    "llmfoundry": "llm-foundry", "mpt": "llm-foundry", "torchtitan": "torchtitan", "torchtitan24": "torchtitan",
    "olmocore": "torchtitan", "olmo3": "torchtitan", "olmo_hybrid": "torchtitan", "fmsaccel": "huggingface",
    "h2o": "huggingface", "peft": "huggingface", "torchtune": "torchtune", "litgpt": "litgpt", "tinyllama": "litgpt",
    "fmsfsdp": "fms", "llmc": "nanogpt", "nanogpt": "nanogpt", "flashattn": "nanogpt",
}  # fmt: skip
# What a source's memory figure is: what torch allocated, or reserved.
MEASURE_OF_FRAMEWORK = {name: defaults.measure for name, defaults in FRAMEWORKS.items()}
_PRECISION = {name: name for name in ("bf16", "fp16", "fp32", "tf32", "fp8", "mxfp8")}
_SHARDING = {name: name for name in ("none", "zero1", "zero2", "zero3")}
_SHARDING |= {"fsdp": "zero3", "hsdp": "zero3"}
SAMPLES_PER_EPOCH = 1.281e6  # ImageNet
RESNET50_SAMPLE_FLOPS = (
    3 * 2 * 4.1e9
)  # 4.1 G multiply-adds forward at 224 x 224, and twice that backward


class UnreadableRow(ValueError):
    """A row that cannot be turned into a workload. The argument is the reason."""


@dataclass(frozen=True, slots=True)
class TruthRow:
    """One row, ready to predict."""

    identifier: str
    source: str
    workload: TrainingWorkload
    architecture: Architecture
    accelerator: Accelerator
    accelerators: int
    layout: Layout
    tokens: float | None
    sample_flops: float
    layout_known: bool


def truth_row(row: Row, resolve_accelerator: Resolver) -> TruthRow:
    """A row as workload, architecture, accelerator and layout.

    Raises
    ------
    UnreadableRow
        With the reason, where the accelerator or the size of the model is not known.
    """
    hardware = _mapping(row.get("hardware"))
    accelerator = resolve_accelerator(str(hardware.get("gpu") or ""))
    if accelerator is None:
        raise UnreadableRow("unknown accelerator")
    shape = _mapping(row.get("arch"))
    source = str(row.get("source_family") or "")
    how = _mapping(row.get("parallelism"))
    method = str(how.get("method") or "full")
    precision = _usable(accelerator, _precision(str(how.get("precision") or "bf16")))
    count = _count(hardware.get("count"))
    split = {name: _count(how.get(name)) or 1 for name in ("tp", "pp", "cp", "ep")}
    replica = split["tp"] * split["pp"] * split["cp"]
    data = _count(how.get("dp")) or max((count or 8 * replica) // replica, 1)
    layout = Layout(
        tensor=split["tp"],
        pipeline=split["pp"],
        data=data,
        context=split["cp"],
        expert=min(split["ep"], data * split["cp"]),
    )
    framework = FRAMEWORK_OF_SOURCE.get(source, GENERIC)
    workload = TrainingWorkload(
        method=method if method in ("lora", "qlora", "dpo") else "full",
        tokens=_number(row.get("tokens")),
        sequence_length=_count(shape.get("seq_len")) or 2048,
        micro_batch=_count(how.get("micro_batch")),
        global_batch=_count(how.get("global_batch")),
        precision=precision,
        framework=framework,
        optimizer=_optimizer(str(how.get("optimizer") or "")),
        recompute=_recompute(str(how.get("recompute") or "")),
        sharding=_SHARDING.get(str(how.get("sharding") or "")),
        sequence_parallel=how.get("sequence_parallel"),
        lora_rank=_count(how.get("lora_rank")),
        lora_targets=_targets(how.get("lora_targets")),
        double_quantization="dq" in str(how.get("precision") or ""),
        memory_measure=MEASURE_OF_FRAMEWORK[framework],
    )
    sample_flops = RESNET50_SAMPLE_FLOPS if "resnet50" in str(row.get("model") or "") else 0.0
    return TruthRow(
        identifier=str(row.get("id") or ""),
        source=source,
        workload=workload,
        architecture=truth_architecture(shape, str(row.get("model") or "")),
        accelerator=accelerator,
        accelerators=count or layout.accelerators,
        layout=layout,
        tokens=_number(row.get("tokens")),
        sample_flops=sample_flops,
        layout_known=count is not None,
    )


def _usable(accelerator: Accelerator, precision: str) -> str:
    """The precision as told, or the nearest that the card has units for: that is what ran there."""
    for tried in (precision, "bf16", "fp16", "fp32"):
        try:
            peak_rate(accelerator, tried)
        except InputError:
            continue
        return tried
    return precision


def truth_architecture(shape: Row, name: str) -> Architecture:
    """The architecture a row describes; a typical one for its count where the shape is not given.

    Routed experts follow from the published counts: the active ones from what the shape leaves, the rest from the
    difference between total and active.
    """
    named = count_from_name(name) or (None, None)
    total = _number(shape.get("params_total")) or named[0]
    active = _number(shape.get("params_active")) or named[1] or total
    sizes = {key: _count(shape.get(key)) for key in ("layers", "hidden", "heads", "ffn", "vocab")}
    if not total:
        raise UnreadableRow("unknown model size")
    active = min(active or total, total)
    if any(sizes[key] is None for key in ("layers", "hidden", "heads", "ffn")):
        if total < 1e8:  # a vision model: only its FLOP per sample matters
            return replace(architecture_from_count(1e8), name=name, params_total=total)
        return architecture_from_count(
            total, active=active if active < 0.95 * total else None, name=name
        )
    hidden, heads = sizes["hidden"] or 1, sizes["heads"] or 1
    known = _count(shape.get("head_dim"))
    plain = Architecture(
        name=name,
        layers=sizes["layers"] or 1,
        hidden=hidden,
        heads=heads,
        kv_heads=_count(shape.get("kv_heads")) or heads,
        head_dim=known or (128 if active < 0.9 * total else max(hidden // heads, 1)),
        ffn=sizes["ffn"] or 1,
        vocab=sizes["vocab"] or 32_000,
        gated=bool(shape.get("gated_mlp", True)),
        params_total=total,
        params_active=active,
    )
    if active < 0.9 * total:
        plain = _with_experts(plain, total, active)
    else:
        tied = replace(plain, tied_embeddings=True)
        miss = abs(count_parameters(plain).total - total)
        if abs(count_parameters(tied).total - total) < miss:
            plain = tied
    return validate(plain)


def _with_experts(shape: Architecture, total: float, active: float) -> Architecture:
    expert = (3 if shape.gated else 2) * shape.hidden * shape.ffn * shape.layers
    fixed = shape.layers * attention_parameters(shape) + 2 * shape.vocab * shape.hidden
    top_k = max(round((active - fixed) / expert), 1)
    experts = max(round(top_k + (total - active) / expert), top_k)
    return replace(shape, moe=MixtureOfExperts(experts=experts, top_k=top_k, expert_ffn=shape.ffn))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


def _count(value: object) -> int | None:
    number = _number(value)
    return round(number) if number is not None and number >= 1 else None


def _precision(text: str) -> str:
    if "fp4" in text:
        return "nvfp4"
    if text.startswith("nf4") or "mixed" in text or text.startswith("int"):
        return "bf16"
    return _PRECISION.get(text, "bf16")


def _optimizer(text: str) -> str | None:
    name = text.lower()
    for known in ("adamw_8bit", "adafactor", "lamb", "sgd", "adamw", "lion"):
        if known in name:
            return known
    return None


def _recompute(text: str) -> str | None:
    for known in ("none", "selective", "full"):
        if text.startswith(known):
            return known
    return None


def _targets(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    names = {name.strip() for name in value.split(",")}
    if names <= {"q", "v"}:
        return "qv"
    return "attention" if names <= {"q", "k", "v", "o"} else "all"


def throughput_target(row: Row) -> float | None:
    """Measured tokens (or images) per second of one accelerator. [1/s]"""
    measured, hardware = _mapping(row.get("measured")), _mapping(row.get("hardware"))
    tokens = _number(measured.get("tokens_per_s_per_gpu"))
    images, count = _number(measured.get("images_per_s")), _count(hardware.get("count"))
    if tokens is None and images is not None and count is not None:
        return images / count
    return tokens


def derived_throughput(row: Row) -> float | None:
    """Tokens per second of one accelerator behind a published training time or hardware FLOP rate. [1/s]

    Serves the fit of large layouts only: it is not scored, being computed and not measured.
    """
    measured, hardware = _mapping(row.get("measured")), _mapping(row.get("hardware"))
    days, count = _number(measured.get("days_for_300B_tokens")), _count(hardware.get("count"))
    if days is not None and count is not None:
        return 300e9 / (days * 86_400.0) / count
    rate, shape = _number(measured.get("tflops_per_gpu_hw")), _mapping(row.get("arch"))
    sizes = [_number(shape.get(key)) for key in ("layers", "hidden", "seq_len", "vocab")]
    if rate is None or row.get("kind") != "scaling" or None in sizes:
        return None
    layers, hidden, sequence, vocab = (size or 1.0 for size in sizes)
    # the formula the authors state, with full recomputation (Narayanan et al., 2021, eq. 3)
    work = 96 * layers * hidden**2 * (1 + sequence / 6 / hidden + vocab / 16 / layers / hidden)
    return rate * 1e12 / work


def truth_candidate(truth: TruthRow) -> dict[str, float]:
    """The columns of a row. Where a published run tells no batch, none is chosen for it that fills its pipeline."""
    recipe = resolve(truth.workload)
    micro, whole = default_batches(
        recipe,
        truth.layout,
        truth.workload.micro_batch,
        truth.workload.global_batch,
        filled=False,
    )
    return candidate_row(
        recipe,
        truth.accelerator,
        truth.architecture,
        truth.layout,
        Cluster(),
        micro_batch=micro,
        global_batch=whole,
        sample_flops=truth.sample_flops,
    )


def is_suspect(row: Row) -> bool:
    """Whether the keepers of the truth ask not to score the row."""
    return bool(row.get("suspect"))
