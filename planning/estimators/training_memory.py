"""Memory per accelerator while training, by part. [B]

Peak = max(states + activations + logits, optimiser-step peak) + buffers, for each pipeline end.

References
----------
V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models," MLSys, 2023 (activations).
S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models," SC, 2020 (states).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planning.estimators.training_candidates import FRAMEWORK_CODES, Array, Candidates
from planning.estimators.training_constants import TrainingConstants

PART_NAMES = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "communication",
    "overhead",
    "fragmentation",
)


@dataclass(frozen=True, slots=True)
class TrainingMemory:
    """Parts of the peak, each of shape (n,). [B] `total` is their sum."""

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    communication: Array
    overhead: Array
    fragmentation: Array
    total: Array
    step_peak: Array  # the optimiser step alone
    local_parameters: Array  # on one accelerator before sharding


def training_memory(c: Candidates, constants: TrainingConstants) -> TrainingMemory:
    """Peak memory of one accelerator, split into parts. [B]

    Where the optimiser step is the peak, what it needs beyond the pass is counted into `optimizer`, so that the parts
    always add up to `total`.
    """
    split = c.tensor * c.pipeline
    ranks = c.data * c.context
    expert_split = c.tensor * c.pipeline * np.maximum(c.expert, 1.0)
    expert_ranks = np.maximum(ranks / np.maximum(c.expert, 1.0), 1.0)
    dense, experts = c.dense_parameters / split, c.expert_parameters / expert_split
    embeddings = c.embedding_parameters / c.tensor / np.minimum(c.pipeline, 2.0)
    body = np.maximum(dense - c.embedding_parameters / split, 0.0)
    dense = body + embeddings  # the first and the last stage hold a table each

    def spread(bytes_dense: Array, bytes_expert: Array, sharded: Array) -> Array:
        return bytes_dense / np.where(sharded > 0, ranks, 1.0) + bytes_expert / np.where(
            sharded > 0, expert_ranks, 1.0
        )

    on_card = 1.0 - c.offload_weights
    weights = spread(
        body * c.weight_bytes + embeddings * c.embedding_weight_bytes,
        experts * c.weight_bytes,
        c.shard_weights,
    )
    weights = weights * on_card + spread(
        dense * c.reference_bytes, experts * c.reference_bytes, c.shard_weights
    )
    adapters = c.adapter_parameters / split
    weights = weights + adapters * 2.0
    trained_dense, trained_expert = dense * c.trained_share, experts * c.trained_share
    gradients = (
        spread(
            trained_dense * c.gradient_bytes, trained_expert * c.gradient_bytes, c.shard_gradients
        )
        * on_card
        + adapters * 2.0
    )
    optimizer = (
        spread(trained_dense * c.state_bytes, trained_expert * c.state_bytes, c.shard_states)
        + adapters * 12.0
    ) * (1.0 - c.offload_states)
    step_peak = (
        weights
        + gradients
        + optimizer
        + spread(trained_dense * c.step_bytes, trained_expert * c.step_bytes, c.shard_states)
    )
    activations, logits = _activations(c, constants)
    communication = _communication(c, body, experts, ranks)
    steps = np.maximum(c.global_batch / (c.data * c.micro_batch), 1.0)
    held = (c.accumulates > 0) | (steps > 1.0)
    # without accumulation gradients appear as activations go: the larger of both, not the sum
    passing = (
        weights
        + optimizer
        + np.where(
            held, gradients + activations + logits, np.maximum(gradients, activations + logits)
        )
    )
    beyond = np.maximum(activations + logits - gradients, 0.0)
    logits = np.where(held, logits, np.minimum(logits, beyond))
    activations = np.where(held, activations, beyond - logits)
    allocated = np.maximum(passing, step_peak) + communication
    optimizer = optimizer + np.maximum(step_peak - passing, 0.0)
    fragmentation = allocated * constants.value("reserved_share") * c.measure_reserved
    ranks_on = np.where(c.tensor * c.pipeline * ranks > 1, 1.0, 0.0)
    overhead = c.measure_device * (
        constants.value("context_bytes") + ranks_on * constants.value("nccl_bytes")
    ) + np.zeros_like(allocated)
    return TrainingMemory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        logits=logits,
        communication=communication,
        overhead=overhead,
        fragmentation=fragmentation,
        total=allocated + fragmentation + overhead,
        step_peak=step_peak,
        local_parameters=dense + experts,
    )


BUCKET = 5e8  # elements; DeepSpeed's default
BUCKET_BYTES = 2 * 2.0 * 4.5  # gradients and weights, two bytes each, 4.5 buckets in flight [B]
_BUCKETED = tuple(FRAMEWORK_CODES.index(name) for name in ("deepspeed", "huggingface"))

STATES_SPREAD = 0.02  # of weights, gradients and optimiser states: they follow from the recipe


def memory_bounds(memory: TrainingMemory, constants: TrainingConstants) -> tuple[Array, Array]:
    """P10 and P90 of the memory of one accelerator. States are nearly sure; the residuals belong to the rest. [B]"""
    low, high = constants.residuals["memory"]
    states = memory.weights + memory.gradients + memory.optimizer
    rest = np.maximum(memory.total - states, 0.0)
    return (
        (1.0 - STATES_SPREAD) * states + low * rest,
        (1.0 + STATES_SPREAD) * states + high * rest,
    )


def layer_activation_bytes(c: Candidates) -> Array:
    """Activations of one layer and one token on one accelerator, nothing recomputed. [B]

    Two-byte values: 2 [h (7 + 2kv/a) + 2 ffn], gated 2 [h (6 + 2kv/a) + 4 ffn]; 10 h of it is kept by each tensor
    rank unless the sequence is split too. Routed tokens add two copies of h for each expert they visit.
    """
    kv = c.qkv_ratio - 1.0
    plain = 2.0 * (c.hidden * (7.0 + kv) + 2.0 * c.ffn_active)
    gated = 2.0 * (c.hidden * (6.0 + kv) + 4.0 * c.ffn_active)
    total = np.where(c.gated > 0, gated, plain)
    total = total + np.where(c.experts > 0, 4.0 * c.top_k * c.hidden * c.moe_layers / c.layers, 0.0)
    whole = np.minimum(10.0 * c.hidden, total)
    return whole / np.where(c.sequence_parallel > 0, c.tensor, 1.0) + (total - whole) / c.tensor


def _activations(c: Candidates, constants: TrainingConstants) -> tuple[Array, Array]:
    """Peak of activations and of logits over the pipeline's two ends. [B]"""
    tokens = c.micro_batch * c.sequence / c.context
    layer = layer_activation_bytes(c)
    kept = layer * c.activation_share * constants.value("activation_scale")
    scores = c.attention_extra / c.tensor * np.where(c.recompute_attention > 0, 0.0, 1.0)
    checkpoint = 2.0 * c.hidden / np.where(c.sequence_parallel > 0, c.tensor, 1.0)
    per_layer = np.where(c.activation_full > 0, checkpoint, kept + scores)
    working = np.where(c.activation_full > 0, layer * constants.value("working_layers"), 0.0)
    steps = np.maximum(c.global_batch / (c.data * c.micro_batch), 1.0)
    stage_layers = c.layers / c.pipeline
    in_flight = np.minimum(c.pipeline, steps)
    interleaved = np.where(c.virtual > 1, 1.0 + (c.pipeline - 1.0) / (c.pipeline * c.virtual), 1.0)
    first = tokens * (per_layer * stage_layers * in_flight * interleaved + working)
    last = tokens * (per_layer * stage_layers + working)
    logits = tokens * c.vocab / c.tensor * constants.value("logit_bytes") * c.logits_kept
    logits = logits + (1.0 - c.logits_kept) * tokens * c.hidden * 4.0
    single = c.pipeline <= 1
    logits_at_peak = np.where(single | (last + logits > first), logits, 0.0)
    return np.where(logits_at_peak > 0, last, first), logits_at_peak


def _communication(c: Candidates, body: Array, experts: Array, ranks: Array) -> Array:
    """Gathered layers of ZeRO-3, expanded 4-bit weights, and exchange buffers. [B]

    DeepSpeed's ZeRO-2 holds buckets of gradients and of gathered weights, 4.5 of each while they overlap with
    computing: 9 GB where a bucket's worth of weights is trained. Adapters are fewer.

    References
    ----------
    Hugging Face, "DeepSpeed," transformers documentation, section ZeRO-2: ``overlap_comm`` with buckets of 5e8.
    """
    layer = (body + experts) / np.maximum(c.layers / c.pipeline, 1.0)
    table = c.head_parameters / c.tensor
    gathered = c.shard_weights * np.where(ranks > 1, 1.0, 0.0) * (4.0 * layer + 2.0 * table)
    expanded = c.dequantized * 2.0 * c.hidden * c.ffn_single / c.tensor
    between = (ranks > 1) & (c.shard_weights == 0)
    pairs = np.where(between, 0.2e9, 0.0) * c.trained_share
    bucketed = between & (c.shard_gradients > 0) & np.isin(c.framework, _BUCKETED)
    trained = (body + table) * c.trained_share
    buckets = np.where(bucketed, BUCKET_BYTES * np.minimum(trained, BUCKET), 0.0)
    return gathered + expanded + np.maximum(pairs, buckets)
