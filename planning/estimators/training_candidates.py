"""Training candidates as columns: one entry per candidate, so that the same formulas serve one estimate and a million.

Words (method, optimiser, recomputation, precision, framework) become numbers here, once per distinct value. The
formulas in ``training_memory`` and ``training_time`` see numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.messages import msg
from planning.estimators.architecture import (
    active_parameters,
    attention_flops_per_token,
    attention_groups,
    attention_layers,
    count_parameters,
    kv_elements_per_layer,
    mlp_layers,
    moe_layers,
    shared_width,
    total_parameters,
)
from planning.estimators.training_workload import FRAMEWORKS, Cluster, Layout, Recipe
from planning.estimators.types import Accelerator, Architecture, AttentionShape, LatentAttention

Array = NDArray[np.float64]

FAMILIES = ("volta", "ampere", "ada", "hopper", "blackwell", "cdna", "other")
PRECISION_CLASSES = ("32", "16", "fp8", "mxfp8", "fp4")
EFFICIENCY_CLASSES = tuple(f"{family}:{kind}" for family in FAMILIES for kind in PRECISION_CLASSES)
FRAMEWORK_CODES = (
    "", "megatron", "torchtitan", "llm-foundry", "deepspeed", "huggingface", "torchtune", "litgpt",
    "nanogpt", "fms",
)  # fmt: skip
PRECISION_CLASS = {
    "fp32": "32", "tf32": "32", "bf16": "16", "fp16": "16", "fp8": "fp8", "mxfp8": "mxfp8", "nvfp4": "fp4",
}  # fmt: skip
PEAK_OF = {
    "fp32": "fp32", "tf32": "tf32", "bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4",
}  # fmt: skip
OPTIMIZER_BYTES = {
    # master weights and states per trained parameter in mixed precision, and with everything in BF16 [B]
    "adamw": (12.0, 4.0),
    "lamb": (12.0, 4.0),
    "adamw_8bit": (6.0, 2.0),
    "lion": (8.0, 2.0),
    "sgd": (8.0, 2.0),
    "adafactor": (4.1, 0.1),
}
NF4_BYTES = 0.5625  # 4 bits and one FP32 scale for each 64 weights
NF4_DOUBLE_BYTES = 0.5159  # scales quantised in turn
# Activations kept against full training: no weight gradients of frozen matrices, but inputs of the adapters; 4-bit
# weights leave their expanded copies behind.
SELECTIVE_SHARE, SELECTIVE_LINEAR = 0.55, 0.25
ADAPTER_ACTIVATIONS = {"lora": 1.05, "qlora": 1.4}


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of shape (n,) or (1,); a column of one entry holds for all. Units in ``docs/estimators/training.md``."""

    # architecture
    dense_parameters: Array  # all but routed experts
    expert_parameters: Array
    layer_matmul_parameters: Array  # active, in products, without embedding and head
    head_parameters: Array  # V h
    embedding_parameters: Array  # input and output tables together
    layers: Array
    hidden: Array
    qkv_ratio: Array  # (query + key + value width) / h
    kv_ratio: Array  # (key + value width) / h
    ffn_active: Array  # feed-forward width that one token passes, experts together
    ffn_single: Array  # width of the matrices that are multiplied
    gated: Array
    heads: Array
    vocab: Array
    experts: Array  # 0: dense
    top_k: Array
    moe_layers: Array
    attention_flops: Array  # forward, per token at the mean causal context
    attention_extra: Array  # 5 a s per token and layer when scores are kept [B]
    # recipe
    sequence: Array
    passes: Array  # forward equivalents of a step: 3 full, 2 with frozen weights, + reference model
    recompute_linear: Array  # share of the forward pass that is done twice
    recompute_attention: Array
    activation_share: Array  # of a layer's activations that are kept
    activation_full: Array  # 1: full recomputation
    weight_bytes: Array
    reference_bytes: Array  # frozen second model
    gradient_bytes: Array
    state_bytes: Array
    accumulates: Array  # 1: gradient buffers live through the whole step
    step_bytes: Array  # temporaries of the optimiser step, per trained parameter
    trained_share: Array  # 1: all, 0: adapters only
    adapter_parameters: Array
    dequantized: Array  # 1: frozen weights are expanded before each product
    embedding_weight_bytes: Array
    shard_weights: Array
    shard_gradients: Array
    shard_states: Array
    offload_states: Array
    offload_weights: Array
    logits_kept: Array  # 1: the whole logits are held
    sequence_parallel: Array
    unfused: Array
    measure_reserved: Array
    measure_device: Array
    micro_batch: Array
    global_batch: Array
    sample_flops: Array  # > 0: not a language model
    # layout
    tensor: Array
    pipeline: Array
    data: Array
    context: Array
    expert: Array
    virtual: Array
    # hardware
    peak: Array
    peak_16: Array
    efficiency_class: Array
    framework: Array
    family: Array
    half_precision: Array  # 1: FP16 with loss scaling
    visible_bytes: Array
    hbm_bandwidth: Array
    link: Array  # [B/s] one direction
    network: Array  # [B/s] one direction, per accelerator
    pcie: Array
    node: Array  # accelerators per node
    domain: Array  # accelerators that share the fast link
    commodity: Array
    tdp: Array

    @property
    def accelerators(self) -> Array:
        return self.tensor * self.pipeline * self.data * self.context

    def take(self, index: NDArray[np.intp]) -> Candidates:
        """The candidates at `index`."""
        return Candidates(
            **{
                f.name: (c if (c := getattr(self, f.name)).size == 1 else c[index])
                for f in fields(self)
            }
        )

    def with_columns(self, **columns: Array) -> Candidates:
        """The same candidates with some columns replaced."""
        return replace(self, **columns)


def family_of(generation: str) -> str:
    """Group of generations whose matrix units behave alike."""
    name = generation.lower()
    if name in ("volta", "turing", "pascal"):
        return "volta"
    for family in ("ampere", "ada", "hopper", "blackwell", "cdna"):
        if family in name:
            return family
    return "other"


def peak_rate(accelerator: Accelerator, precision: str) -> float:
    """Dense rate for a training precision, falling back to the rate the hardware really uses. [FLOP/s]

    Raises
    ------
    InputError
        If the accelerator has no rate for the precision nor for one that stands in for it.
    """
    wanted = PEAK_OF[precision]
    stand_in = {"bf16": ("fp16",), "fp16": ("bf16",), "tf32": ("fp32",), "fp32": ()}
    for dtype in (wanted, *stand_in.get(wanted, ())):
        rate = accelerator.peak_flops.get(dtype)
        if rate:
            return rate
    raise InputError(
        "precision",
        msg(
            "%(accelerator)s has no %(precision)s units; it offers %(options)s",
            accelerator=accelerator.name,
            precision=precision,
            options=", ".join(sorted(accelerator.peak_flops)),
        ),
        value=precision,
        limit=tuple(sorted(accelerator.peak_flops)),
    )


def adapter_parameters(architecture: Architecture, rank: int, targets: Sequence[str]) -> float:
    """Trainable weights of rank-r adapters on the named projections of all layers. [parameters]

    An adapter of one matrix holds rank x (inputs + outputs). "mlp" adapts every expert and the router of a sparse
    layer, as PEFT does for all linear layers: 242 million on Mixtral 8x7B at rank 16. Of latent attention (MLA) "q"
    adapts the matrices down and up of the queries, "k" the one down to the latent, "v" the one up from it.
    """
    a, h = architecture, architecture.hidden
    total = 0.0
    for group in attention_groups(a):
        sizes = _latent_adapters(a, a.mla) if a.mla is not None else _plain_adapters(h, group.shape)
        total += group.layers * sum(sizes.get(target, 0) for target in targets)
    if "mlp" in targets:
        sparse, matrices = moe_layers(a), 3 if a.gated else 2
        total += (mlp_layers(a) - sparse) * matrices * (h + a.ffn)
        if a.moe is not None:
            moe = a.moe
            of_experts = moe.experts * matrices * ((moe.latent or h) + moe.expert_ffn)
            shared = shared_width(moe)
            beside = matrices * (h + shared) if shared else 0
            total += sparse * (of_experts + beside + h + moe.experts)
    return rank * total


def _plain_adapters(h: int, at: AttentionShape) -> dict[str, int]:
    """Inputs + outputs of each projection."""
    value_dim = at.value_dim or at.head_dim
    return {
        "q": h + at.heads * at.head_dim,
        "k": h + at.kv_heads * at.head_dim,
        "v": 0 if at.values_are_keys else h + at.kv_heads * value_dim,
        "o": at.heads * value_dim + h,
    }


def _latent_adapters(a: Architecture, mla: LatentAttention) -> dict[str, int]:
    """Inputs + outputs of each projection, two of the queries where they have a latent of their own."""
    query = a.heads * (mla.nope_dim + mla.rope_dim)
    return {
        "q": a.hidden + 2 * mla.q_latent + query if mla.q_latent else a.hidden + query,
        "k": a.hidden + mla.kv_latent + mla.rope_dim,
        "v": mla.kv_latent + a.heads * (mla.nope_dim + mla.v_dim),
        "o": a.heads * mla.v_dim + a.hidden,
    }


def _widths(a: Architecture, at: AttentionShape) -> tuple[float, float]:
    """(queries, keys and values) of one token and layer while it trains; MLA expands its latent to all heads."""
    if a.mla is not None:
        query = a.heads * (a.mla.nope_dim + a.mla.rope_dim)
        return float(query), float(query + a.heads * a.mla.v_dim)
    return float(at.heads * at.head_dim), kv_elements_per_layer(a, at)


def _architecture_columns(a: Architecture, sequence: int) -> dict[str, float]:
    count = count_parameters(a)
    scale = total_parameters(a) / count.total  # published counts win over computed ones
    sparse = moe_layers(a)
    embedding = count.embedding + count.head
    active = active_parameters(a) if a.params_active else count.active
    body = max(active - embedding, 0.5 * active) if a.moe is None else 0.0
    if a.moe is not None:  # a published active count may leave embeddings out
        body = count.active - embedding
    moe = a.moe
    single = moe.expert_ffn if moe is not None and sparse else a.ffn
    width = float(a.ffn)
    if moe is not None and sparse:
        routed = moe.top_k * moe.expert_ffn + shared_width(moe)
        width = (sparse * routed + (mlp_layers(a) - sparse) * a.ffn) / max(mlp_layers(a), 1)
    groups = [(group.layers, _widths(a, group.shape)) for group in attention_groups(a)]
    query, keys = (
        sum(layers * widths[i] for layers, widths in groups) / max(attention_layers(a), 1)
        for i in (0, 1)
    )
    return {
        "dense_parameters": (count.total - count.experts) * (scale if moe is None else 1.0),
        "expert_parameters": max(total_parameters(a) - (count.total - count.experts), 0.0)
        if moe is not None
        else 0.0,
        "layer_matmul_parameters": body,
        "head_parameters": float(a.vocab * a.hidden),
        "embedding_parameters": embedding,
        "layers": float(a.layers),
        "hidden": float(a.hidden),
        "qkv_ratio": (query + keys) / a.hidden,
        "kv_ratio": keys / a.hidden,
        "ffn_active": width,
        "ffn_single": float(single or a.hidden),
        "gated": 1.0 if a.gated else 0.0,
        "heads": float(a.heads),
        "vocab": float(a.vocab),
        "experts": float(moe.experts) if moe is not None else 0.0,
        "top_k": float(moe.top_k) if moe is not None else 1.0,
        "moe_layers": float(sparse),
        "attention_flops": attention_flops_per_token(a, sequence / 2),
        "attention_extra": 5.0 * a.heads * sequence * attention_layers(a) / max(a.layers, 1),
    }


def _recipe_columns(recipe: Recipe, a: Architecture) -> dict[str, float]:
    adapter = recipe.method in ("lora", "qlora")
    mixed, pure = OPTIMIZER_BYTES[recipe.optimizer]
    full_precision = recipe.precision in ("fp32", "tf32")
    states = pure if recipe.pure_16bit else mixed
    if full_precision:  # the weights are their own master copy
        states = mixed - 4.0
    weights = 4.0 if full_precision else 2.0
    frozen = weights
    if recipe.method == "qlora":
        frozen = NF4_DOUBLE_BYTES if recipe.double_quantization else NF4_BYTES
    return {
        "sequence": float(recipe.sequence_length),
        "passes": {"lora": 2.0, "qlora": 2.0, "dpo": 4.0}.get(recipe.method, 3.0),
        "weight_bytes": frozen if adapter else weights,
        "reference_bytes": 2.0 if recipe.method == "dpo" else 0.0,
        "gradient_bytes": 4.0 if full_precision else recipe.gradient_bytes,
        "state_bytes": states,
        "accumulates": 1.0 if recipe.framework == "megatron" else 0.0,
        "step_bytes": 2.0 if recipe.pure_16bit else 0.0,
        "trained_share": 0.0 if adapter else 1.0,
        "adapter_parameters": adapter_parameters(a, recipe.lora_rank, recipe.lora_targets)
        if adapter
        else 0.0,
        "dequantized": 1.0 if recipe.method == "qlora" else 0.0,
        "embedding_weight_bytes": weights,
        "offload_states": 0.0 if recipe.offload == "none" else 1.0,
        "offload_weights": 1.0 if recipe.offload == "all" else 0.0,
        "logits_kept": 0.0 if recipe.chunked_loss else 1.0,
        "sequence_parallel": 1.0 if recipe.sequence_parallel else 0.0,
        "unfused": 0.0 if recipe.fused_kernels else 1.0,
        "measure_reserved": 0.0 if recipe.measure == "allocated" else 1.0,
        "measure_device": 1.0 if recipe.measure == "device" else 0.0,
        "framework": float(FRAMEWORK_CODES.index(recipe.framework)),
        **recompute_columns(recipe),
        **sharding_columns(recipe.sharding),
    }


def recompute_columns(recipe: Recipe) -> dict[str, float]:
    """What a recomputation choice keeps and what it does twice.

    Megatron's selective choice redoes the attention scores, which flash attention never keeps; PyTorch's keeps about
    half of the operations and redoes the others.
    """
    full = recipe.recompute == "full"
    by_operation = recipe.recompute == "selective" and recipe.framework != "megatron"
    share = SELECTIVE_SHARE if by_operation else 1.0
    return {
        "recompute_linear": 1.0 if full else (SELECTIVE_LINEAR if by_operation else 0.0),
        "recompute_attention": 0.0 if recipe.recompute == "none" else 1.0,
        "activation_share": share * ADAPTER_ACTIVATIONS.get(recipe.method, 1.0),
        "activation_full": 1.0 if full else 0.0,
    }


def sharding_columns(sharding: str) -> dict[str, float]:
    """Which states are spread over the data ranks."""
    return {
        "shard_weights": 1.0 if sharding == "zero3" else 0.0,
        "shard_gradients": 1.0 if sharding in ("zero2", "zero3") else 0.0,
        "shard_states": 0.0 if sharding == "none" else 1.0,
    }


def hardware_columns(
    accelerator: Accelerator, precision: str, cluster: Cluster
) -> dict[str, float]:
    """What the formulas need of the accelerator and of what connects it."""
    family = family_of(accelerator.generation)
    kind = PRECISION_CLASS[precision]
    link = (accelerator.link_bandwidth or 0.0) / 2.0
    bridged = "pcie" in accelerator.form_factor.lower()
    fast = link > 0.0 and not bridged
    node = cluster.accelerators_per_node
    domain = cluster.link_domain or (
        72 if accelerator.slug.startswith(("nvidia-gb200", "nvidia-gb300")) else node
    )
    network = cluster.network_bandwidth
    if (
        network is None
    ):  # one 200 Gb/s port per A100, 400 per H100, 800 later; 100 Gb/s a node without a fast link
        network = {"hopper": 50e9, "blackwell": 50e9, "cdna": 50e9}.get(family, 25e9)
        network = network if fast else 12.5e9 / node
    commodity = not fast if cluster.commodity is None else cluster.commodity
    return {
        "peak": peak_rate(accelerator, precision),
        "peak_16": peak_rate(accelerator, "bf16" if kind != "32" else precision),
        "efficiency_class": float(EFFICIENCY_CLASSES.index(f"{family}:{kind}")),
        "family": float(FAMILIES.index(family)),
        "visible_bytes": accelerator.visible_bytes,
        "hbm_bandwidth": accelerator.hbm_bandwidth,
        "link": link if fast else accelerator.pcie_bandwidth,
        "network": network,
        "pcie": accelerator.pcie_bandwidth,
        "node": float(node),
        "domain": float(domain),
        "commodity": 1.0 if commodity else 0.0,
        "tdp": accelerator.tdp or math.nan,
    }


def layout_columns(layout: Layout) -> dict[str, float]:
    return {
        "tensor": float(layout.tensor),
        "pipeline": float(layout.pipeline),
        "data": float(layout.data),
        "context": float(layout.context),
        "expert": float(layout.expert),
        "virtual": float(layout.virtual_stages),
    }


def candidate_row(
    recipe: Recipe,
    accelerator: Accelerator,
    architecture: Architecture,
    layout: Layout,
    cluster: Cluster,
    *,
    micro_batch: int,
    global_batch: int,
    sample_flops: float = 0.0,
) -> dict[str, float]:
    """All columns of one candidate."""
    row = _architecture_columns(architecture, recipe.sequence_length)
    row |= _recipe_columns(recipe, architecture)
    row |= hardware_columns(accelerator, recipe.precision, cluster)
    row |= layout_columns(layout)
    if recipe.flash_attention:
        row["attention_extra"] = 0.0  # scores are never written out
    row["micro_batch"] = float(micro_batch)
    row["global_batch"] = float(global_batch)
    row["sample_flops"] = sample_flops
    row["half_precision"] = 1.0 if recipe.precision == "fp16" else 0.0
    return row


def filling_steps(stages: int) -> int:
    """Micro-batches with which a pipeline stands idle no more than a fifth of the time, four a stage. [1]

    References
    ----------
    Y. Huang et al., "GPipe," NeurIPS 2019, section 2: the bubble is negligible from four micro-batches a stage.
    """
    return 1 if stages == 1 else 4 * stages


def default_batches(
    recipe: Recipe,
    layout: Layout,
    micro_batch: int | None,
    global_batch: int | None,
    *,
    filled: bool = True,
) -> tuple[int, int]:
    """Micro and global batch where they were not given: about 8,192 tokens a pass, 2 M tokens a step. [sequences]

    Adapters and preference tuning step after every pass. A pipeline gets at least as many micro-batches as fill it,
    unless not to be `filled`.
    """
    if micro_batch is None:
        micro_batch = max(1, round(8192 * layout.context / recipe.sequence_length))
        if global_batch is not None:
            micro_batch = max(1, min(micro_batch, global_batch // layout.data))
    if global_batch is None:
        one = micro_batch * layout.data
        steps = 1
        if recipe.method in ("pretrain", "full"):
            target = FRAMEWORKS[recipe.framework].tokens_per_step
            steps = max(round(target / (one * recipe.sequence_length)), 1)
        global_batch = one * max(steps, filling_steps(layout.pipeline) if filled else 1)
    return micro_batch, global_batch


def stack(rows: Sequence[dict[str, float]]) -> Candidates:
    """Rows as columns."""
    names = [f.name for f in fields(Candidates)]
    table = np.array([[row[name] for name in names] for row in rows], dtype=np.float64)
    return Candidates(**{name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(names)})
