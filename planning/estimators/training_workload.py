"""What a training job is and how it is run: the workload as asked, the recipe with its gaps filled, the layout."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import InputError, require_at_least
from core.messages import msg

METHODS = ("pretrain", "full", "lora", "qlora", "dpo")
PRECISIONS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4", "fp32", "tf32")
OPTIMIZERS = ("adamw", "adamw_8bit", "adafactor", "sgd", "lion", "lamb")
RECOMPUTE = ("none", "selective", "full")
SHARDING = ("none", "zero1", "zero2", "zero3")
OFFLOAD = ("none", "optimizer", "all")
MEASURES = ("allocated", "reserved", "device")
LORA_TARGETS = {
    "qv": ("q", "v"),
    "attention": ("q", "k", "v", "o"),
    "all": ("q", "k", "v", "o", "mlp"),
}
HIGHEST_MFU = 0.65  # [1] nothing published above it survives a look at how it was counted
LARGEST = {"sequence_length": 16_777_216, "micro_batch": 65_536, "global_batch": 10_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorkload:
    """A training job. None means: take the framework's default and say so.

    Give `tokens`, or for other models than transformers on tokens, `samples` with `flops_per_sample`
    (forward and backward, [FLOP]).
    """

    method: str = (
        "pretrain"  # METHODS; "full": full fine-tuning, "dpo": with a frozen reference model
    )
    tokens: float | None = None  # to train on, all epochs together
    samples: float | None = None
    flops_per_sample: float | None = None
    bytes_per_sample: float | None = None  # read from storage for each sample (or sequence)
    sequence_length: int = 4096  # [tokens]
    micro_batch: int | None = None  # sequences per GPU and pass
    global_batch: int | None = None  # sequences per optimiser step
    precision: str = "bf16"
    framework: str = ""
    optimizer: str | None = None
    pure_16bit: bool | None = None  # weights, gradients and optimiser states all in BF16
    gradient_bytes: float | None = None  # 4: gradients are accumulated in FP32
    recompute: str | None = None
    sharding: str | None = None
    chunked_loss: bool | None = None  # fused or chunked cross entropy: logits are never held whole
    flash_attention: bool | None = None
    sequence_parallel: bool | None = None
    fused_kernels: bool | None = None  # compiled or hand-fused element-wise kernels
    offload: str = "none"
    double_quantization: bool = False
    packing: float = 1.0  # share of processed tokens that are not padding
    lora_rank: int | None = None
    lora_targets: str | None = None  # LORA_TARGETS
    mfu: float | None = None  # to use instead of the computed one
    data_bandwidth: float | None = None  # [B/s] of storage, for the whole job
    storage_bandwidth: float = 2e9  # [B/s] for checkpoints
    memory_measure: str = (
        "device"  # MEASURES: what torch allocated, what it reserved, what the driver shows
    )
    mixed_precision: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model is split over accelerators. `data` counts replicas, `context` and `tensor` split a replica."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1  # splits experts over the data and context ranks
    virtual_stages: int = 1  # model chunks per pipeline stage (interleaving)

    @property
    def accelerators(self) -> int:
        return self.tensor * self.pipeline * self.data * self.context


@dataclass(frozen=True, slots=True)
class Cluster:
    """What connects the accelerators. None: from the accelerator's own link."""

    accelerators_per_node: int = 8
    network_bandwidth: float | None = None  # [B/s] per accelerator and direction between nodes
    link_domain: int | None = None  # accelerators that reach one another over the fast link
    commodity: bool | None = None  # no fast link inside and no fast network: the 1/2/4/8/16 curve


@dataclass(frozen=True, slots=True)
class Recipe:
    """A workload with every choice made."""

    method: str
    sequence_length: int
    precision: str
    framework: str
    optimizer: str
    pure_16bit: bool
    gradient_bytes: float
    recompute: str
    sharding: str
    chunked_loss: bool
    flash_attention: bool
    sequence_parallel: bool
    fused_kernels: bool
    offload: str
    double_quantization: bool
    lora_rank: int
    lora_targets: tuple[str, ...]
    measure: str
    defaulted: tuple[str, ...] = ()  # the fields that were not given


@dataclass(frozen=True, slots=True)
class FrameworkDefaults:
    """What a framework does when it is not told otherwise."""

    title: str
    sharding: str
    recompute: str
    chunked_loss: bool
    pure_16bit: bool
    gradient_bytes: float
    sequence_parallel: bool = False
    fused_kernels: bool = True
    measure: str = "reserved"
    optimizer: str = "adamw"
    tokens_per_step: float = 2e6  # 0: the optimiser steps after every pass


GENERIC = ""
FRAMEWORKS: Mapping[str, FrameworkDefaults] = {
    GENERIC: FrameworkDefaults("PyTorch", "zero3", "full", False, False, 2.0),
    "megatron": FrameworkDefaults(
        "Megatron-LM, Megatron-Bridge, NeMo", "zero1", "selective", False, False, 4.0, True
    ),
    "torchtitan": FrameworkDefaults("torchtitan", "zero3", "selective", False, False, 4.0, True),
    "llm-foundry": FrameworkDefaults(
        "MosaicML LLM Foundry", "zero3", "full", False, False, 4.0, fused_kernels=False
    ),
    "deepspeed": FrameworkDefaults(
        "DeepSpeed", "zero3", "full", False, False, 2.0, fused_kernels=False
    ),
    "huggingface": FrameworkDefaults(
        "Hugging Face Trainer, TRL, PEFT",
        "none",
        "full",
        False,
        True,
        2.0,
        fused_kernels=False,
        measure="allocated",
        tokens_per_step=0.0,
    ),
    "torchtune": FrameworkDefaults(
        "torchtune", "zero3", "full", True, True, 2.0, measure="allocated", tokens_per_step=0.0
    ),
    "litgpt": FrameworkDefaults(
        "LitGPT", "none", "none", True, True, 2.0, fused_kernels=False, measure="allocated"
    ),
    "nanogpt": FrameworkDefaults("nanoGPT, llm.c", "none", "none", False, False, 4.0),
    "fms": FrameworkDefaults("IBM FMS FSDP", "zero3", "none", False, False, 4.0),
}


def resolve(workload: TrainingWorkload) -> Recipe:
    """Check a workload and fill in what was not given from the framework's defaults.

    Raises
    ------
    InputError
        Naming the field, the value and what is allowed.
    """
    _check(workload)
    defaults = FRAMEWORKS[workload.framework]
    adapter = workload.method in ("lora", "qlora")
    chosen: dict[str, object] = {
        "optimizer": defaults.optimizer,
        "pure_16bit": defaults.pure_16bit and workload.precision not in ("fp32", "tf32"),
        "gradient_bytes": defaults.gradient_bytes,
        "recompute": defaults.recompute,
        "sharding": defaults.sharding,
        "chunked_loss": defaults.chunked_loss,
        "flash_attention": True,
        "sequence_parallel": defaults.sequence_parallel,
        "fused_kernels": defaults.fused_kernels,
        "lora_rank": 16,
        "lora_targets": "attention" if adapter else "all",
    }
    defaulted = tuple(name for name in chosen if getattr(workload, name) is None)
    for name in chosen:
        given = getattr(workload, name)
        if given is not None:
            chosen[name] = given
    if "gradient_bytes" in defaulted and chosen["pure_16bit"]:
        chosen["gradient_bytes"] = 2.0
    if not adapter:
        defaulted = tuple(name for name in defaulted if not name.startswith("lora_"))
    return Recipe(
        method=workload.method,
        sequence_length=workload.sequence_length,
        precision=workload.precision,
        framework=workload.framework,
        optimizer=str(chosen["optimizer"]),
        pure_16bit=bool(chosen["pure_16bit"]),
        gradient_bytes=float(str(chosen["gradient_bytes"])),
        recompute=str(chosen["recompute"]),
        sharding=str(chosen["sharding"]),
        chunked_loss=bool(chosen["chunked_loss"]),
        flash_attention=bool(chosen["flash_attention"]),
        sequence_parallel=bool(chosen["sequence_parallel"]),
        fused_kernels=bool(chosen["fused_kernels"]),
        offload=workload.offload,
        double_quantization=workload.double_quantization,
        lora_rank=int(str(chosen["lora_rank"])),
        lora_targets=LORA_TARGETS[str(chosen["lora_targets"])],
        measure=workload.memory_measure,
        defaulted=defaulted,
    )


def _check(workload: TrainingWorkload) -> None:
    choices: dict[str, tuple[str, tuple[str, ...]]] = {
        "method": (workload.method, METHODS),
        "precision": (workload.precision, PRECISIONS),
        "framework": (workload.framework, tuple(FRAMEWORKS)),
        "offload": (workload.offload, OFFLOAD),
        "memory_measure": (workload.memory_measure, MEASURES),
    }
    for name, options in {
        "optimizer": OPTIMIZERS,
        "recompute": RECOMPUTE,
        "sharding": SHARDING,
        "lora_targets": tuple(LORA_TARGETS),
    }.items():
        if getattr(workload, name) is not None:
            choices[name] = (getattr(workload, name), options)
    for name, (value, options) in choices.items():
        if value not in options:
            raise InputError(
                name,
                msg(
                    "%(field)s is “%(value)s”; it must be one of: %(options)s",
                    field=name,
                    value=value,
                    options=", ".join(option or "(none)" for option in options),
                ),
                value=value,
                limit=options,
            )
    for name, limit in LARGEST.items():
        size = getattr(workload, name)
        if size is not None:
            require_at_least(name, size, 1)
            require_at_most(name, size, limit)
    for name in ("tokens", "samples", "flops_per_sample", "bytes_per_sample"):
        _positive(name, getattr(workload, name))
    for name in ("gradient_bytes", "data_bandwidth", "storage_bandwidth"):
        _positive(name, getattr(workload, name))
    if workload.lora_rank is not None:
        require_at_least("lora_rank", workload.lora_rank, 1)
    if not 0.0 < workload.packing <= 1.0:
        raise InputError(
            "packing",
            msg("packing is %(value)s; it must be above 0 and at most 1", value=workload.packing),
            value=workload.packing,
            limit=1.0,
        )
    _check_mfu(workload.mfu)
    if (
        workload.micro_batch
        and workload.global_batch
        and workload.global_batch < workload.micro_batch
    ):
        raise InputError(
            "global_batch",
            msg(
                "global_batch is %(value)s; it must be at least the micro batch, %(limit)s",
                value=workload.global_batch,
                limit=workload.micro_batch,
            ),
            value=workload.global_batch,
            limit=workload.micro_batch,
        )


def _check_mfu(mfu: float | None) -> None:
    if mfu is None:
        return
    if not mfu > 0.0:
        raise InputError(
            "mfu", msg("mfu is %(value)s; it must be above 0", value=mfu), value=mfu, limit=0.0
        )
    if mfu > HIGHEST_MFU:
        raise InputError(
            "mfu",
            msg(
                "mfu is %(value)s; at most %(limit)s is accepted. Large published runs reach 0.35 to 0.55; "
                "90 %% is GPU utilisation or share of time spent training, not model FLOPs utilisation.",
                value=mfu,
                limit=HIGHEST_MFU,
            ),
            value=mfu,
            limit=HIGHEST_MFU,
        )


def require_at_most(name: str, value: float, limit: float) -> None:
    """Raise :class:`InputError` unless `value` <= `limit`."""
    if not value <= limit:
        raise InputError(
            name,
            msg(
                "%(field)s is %(value)s; it must be at most %(limit)s",
                field=name,
                value=value,
                limit=limit,
            ),
            value=value,
            limit=limit,
        )


def _positive(name: str, value: float | None) -> None:
    if value is not None and not 0.0 < value < math.inf:
        raise InputError(
            name,
            msg("%(field)s is %(value)s; it must be above 0 and finite", field=name, value=value),
            value=value,
            limit=0.0,
        )
