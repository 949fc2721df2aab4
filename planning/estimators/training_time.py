"""Time of one optimiser step: matrix products, attention, element-wise work, communication, pipeline bubble, update.

All in seconds per step on one accelerator, as columns of shape (n,).

References
----------
D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM," SC, 2021.
J. Kaplan et al., "Scaling Laws for Neural Language Models," 2020 (6 N per token).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planning.estimators.training_candidates import Array, Candidates
from planning.estimators.training_constants import TrainingConstants

# Efficiency of 1, 2, 4, 8 and 16 accelerators in a small cluster without a fast link.
COMMODITY_COUNTS = (1.0, 2.0, 4.0, 8.0, 16.0)
COMMODITY_EFFICIENCY = (1.0, 0.9, 0.8, 0.7, 0.53)


@dataclass(frozen=True, slots=True)
class TrainingTime:
    """Parts of a step, each of shape (n,). [s]"""

    matrix: Array
    attention: Array
    elementwise: Array
    tensor_communication: Array
    expert_communication: Array
    context_communication: Array
    bubble: Array
    data_communication: Array  # what overlap does not hide
    update: Array
    other: Array  # launch, stragglers, framework
    total: Array
    tokens: Array  # processed in one step by all accelerators
    model_flops: Array  # per step and accelerator, without recomputation [FLOP]
    hardware_flops: Array  # with it [FLOP]
    hbm_bytes: Array  # moved per step [B]

    @property
    def tokens_per_second(self) -> Array:
        """Of all accelerators together."""
        return self.tokens / self.total


def commodity_efficiency(accelerators: Array) -> Array:
    """Efficiency of a small cluster without a fast link, 1/2/4/8/16: 1.0/0.9/0.8/0.7/0.53. [1]

    Between the points straight in the logarithm of the count; beyond 16 each doubling keeps what the last one kept.
    """
    doublings = np.log2(np.maximum(accelerators, 1.0))
    inside = np.interp(doublings, np.log2(COMMODITY_COUNTS), COMMODITY_EFFICIENCY)
    last = COMMODITY_EFFICIENCY[-1] / COMMODITY_EFFICIENCY[-2]
    beyond = COMMODITY_EFFICIENCY[-1] * last ** np.maximum(doublings - 4.0, 0.0)
    return np.where(doublings > 4.0, beyond, inside)


def training_time(c: Candidates, constants: TrainingConstants) -> TrainingTime:
    """Time of one optimiser step and its parts. [s]"""
    value = constants.value
    ranks = c.data * c.context
    micro_steps = np.maximum(c.global_batch / (c.data * c.micro_batch), 1.0)
    tokens = c.micro_batch * c.sequence / c.context  # of one pass on one accelerator
    split = c.tensor * c.pipeline
    matrix, attention, forward, attention_forward = _products(c, constants, tokens, split)
    elementwise, moved = _elementwise(c, constants, tokens)
    launch = value("launch_seconds") * c.layers / c.pipeline * (c.passes + c.recompute_linear)
    launch = launch * np.where(c.sample_flops > 0, 0.0, 1.0)
    tensor = _tensor_communication(c, constants, tokens)
    expert = _expert_communication(c, constants, tokens)
    context = _context_communication(c, constants, tokens)
    one = matrix + attention + elementwise + launch + tensor + expert + context
    bubble_share = (c.pipeline - 1.0) / (np.maximum(c.virtual, 1.0) * micro_steps)
    busy = one * micro_steps
    bubble = busy * bubble_share * value("bubble_scale")
    local = c.dense_parameters / split + c.expert_parameters / (split * np.maximum(c.expert, 1.0))
    data = _data_communication(c, constants, local, ranks, micro_steps, busy)
    update = _update(c, local, ranks)
    nodes = np.maximum(c.accelerators / c.node, 1.0)
    straggle = value("scale_loss") * np.log2(nodes)
    commodity = np.where(c.commodity > 0, 1.0 / commodity_efficiency(c.accelerators), 1.0)
    data = np.where(c.commodity > 0, 0.0, data)  # the curve already holds it
    base = busy + bubble + data + update
    factor = constants.framework_factor[c.framework.astype(np.intp)]
    total = base * factor * (1.0 + straggle) * commodity
    model = (forward + attention_forward) * c.passes * micro_steps
    again = forward * c.recompute_linear + attention_forward * c.recompute_attention
    return TrainingTime(
        matrix=matrix * micro_steps,
        attention=attention * micro_steps,
        elementwise=elementwise * micro_steps,
        tensor_communication=tensor * micro_steps,
        expert_communication=expert * micro_steps,
        context_communication=context * micro_steps,
        bubble=bubble,
        data_communication=data,
        update=update,
        other=total - base + launch * micro_steps,
        total=total,
        tokens=np.where(c.sample_flops > 0, c.global_batch, c.global_batch * c.sequence)
        + np.zeros_like(total),
        model_flops=model,
        hardware_flops=model + again * micro_steps,
        hbm_bytes=moved * micro_steps + 2.0 * local * (c.passes + c.recompute_linear) * micro_steps,
    )


def _products(
    c: Candidates, constants: TrainingConstants, tokens: Array, split: Array
) -> tuple[Array, Array, Array, Array]:
    """Time of matrix products and attention of one pass, and their forward FLOPs on one accelerator."""
    value = constants.value
    passes = c.passes + c.recompute_linear
    layers = 2.0 * c.layer_matmul_parameters * tokens / split
    # the head sits on the last stage; spread over the stages it costs what a balanced pipeline pays
    head = 2.0 * c.head_parameters * tokens / split
    language = c.sample_flops <= 0
    layers = np.where(language, layers, c.sample_flops / 3.0 * c.micro_batch / split)
    head = np.where(language, head, 0.0)
    kind = c.efficiency_class.astype(np.intp)
    efficiency = constants.matrix_efficiency[kind]
    width = c.ffn_single / c.tensor
    width = 2.0 * c.hidden * width / (c.hidden + width)
    size = width / (width + value("half_width"))
    rows = np.where(
        c.experts > 0,
        tokens * c.top_k * np.maximum(c.expert, 1.0) / np.maximum(c.experts, 1.0),
        tokens,
    )
    size = size * rows / (rows + value("half_rows"))
    sample = np.where(kind % 5 == 0, value("sample_efficiency_32"), value("sample_efficiency_16"))
    efficiency = np.where(language, efficiency, sample)  # convolutions keep no matrix unit busy
    size = np.where(language, size, 1.0)
    sparse = np.where(c.experts > 0, value("expert_efficiency"), 1.0)
    wide = constants.matrix_efficiency[c.family.astype(np.intp) * 5 + 1]
    low = (kind % 5) >= 2  # the head stays in 16 bit
    head_rate = c.peak_16 * np.where(low, wide, efficiency)
    matrix = layers * passes / (c.peak * efficiency * size * sparse) + head * 3.0 / head_rate
    frozen = c.dequantized * value("dequantize_passes") * c.layer_matmul_parameters / split
    matrix = matrix + frozen * 2.5 / c.hbm_bandwidth * (passes - 1.0)
    attention_forward = np.where(language, c.attention_flops * tokens / split, 0.0)
    backward = np.where(c.passes >= 3.5, c.passes - 1.0, 2.5)
    attention_rate = c.peak_16 * constants.attention_efficiency[c.family.astype(np.intp)]
    attention = attention_forward * (1.0 + backward + c.recompute_attention) / attention_rate
    return matrix, attention, layers + head, attention_forward


def _elementwise(c: Candidates, constants: TrainingConstants, tokens: Array) -> tuple[Array, Array]:
    """Norms, activations, residuals, routing and loss: bound by memory. [s], [B]"""
    value = constants.value
    shared = np.where(c.sequence_parallel > 0, c.tensor, 1.0)
    wide = c.ffn_active * (1.0 + c.gated)
    per_layer = 2.0 * (c.hidden * (2.0 + 8.0 / shared) + 3.0 * wide / c.tensor)
    per_layer = per_layer + np.where(
        c.experts > 0, 2.0 * 4.0 * c.top_k * c.hidden * value("routing_passes"), 0.0
    )
    layers = per_layer * c.layers / c.pipeline * (c.passes + c.recompute_linear)
    fusing = 1.0 + value("unfused_share") * c.unfused
    logits = 2.0 * c.vocab / c.tensor / c.pipeline * 6.0
    moved = tokens * (layers * fusing * value("elementwise_passes") + logits)
    moved = np.where(c.sample_flops > 0, 0.0, moved)
    return moved / (0.85 * c.hbm_bandwidth), moved


def _tensor_communication(c: Candidates, constants: TrainingConstants, tokens: Array) -> Array:
    """Two all-reduces a layer and direction over the fast link, what is not hidden. [s]"""
    volume = 2.0 * tokens * c.hidden * 2.0 * (c.tensor - 1.0) / c.tensor
    rounds = 2.0 * (2.0 + c.recompute_linear) * c.layers / c.pipeline
    speed = np.where(c.tensor <= c.domain, c.link, c.network)
    return volume * rounds / (speed * 0.8) * constants.value("tensor_exposed")


def _expert_communication(c: Candidates, constants: TrainingConstants, tokens: Array) -> Array:
    """Dispatch and combine of routed tokens, forward and backward, what is not hidden. [s]"""
    spread = np.maximum(c.expert, 1.0)
    volume = 2.0 * tokens * c.top_k * c.hidden * (spread - 1.0) / spread
    rounds = 2.0 * (2.0 + c.recompute_linear) * c.moe_layers / c.pipeline
    inside = np.minimum(c.domain, spread) / spread
    seconds = volume * rounds * (inside / c.link + (1.0 - inside) / c.network)
    return seconds * constants.value("expert_exposed")


def _context_communication(c: Candidates, constants: TrainingConstants, tokens: Array) -> Array:
    """Keys and values of the other sequence parts, forward and twice backward, what is not hidden. [s]"""
    kv = c.kv_ratio * c.hidden / c.tensor
    volume = 2.0 * tokens * kv * (c.context - 1.0) * 3.0 * c.layers / c.pipeline
    speed = np.where(c.tensor * c.context <= c.domain, c.link, c.network)
    return volume / speed * constants.value("context_exposed")


def _data_communication(
    c: Candidates,
    constants: TrainingConstants,
    local: Array,
    ranks: Array,
    micro_steps: Array,
    busy: Array,
) -> Array:
    """Gradients and, with sharding, weights: traffic that computing does not hide. [s]

    The slower of the two levels decides: inside a node over the link, between nodes over the network, each
    accelerator with its own port.
    """
    share = (ranks - 1.0) / ranks
    trained = local * c.trained_share + c.adapter_parameters / (c.tensor * c.pipeline)
    gradients = 2.0 * 2.0 * trained * share  # reduce-scatter and all-gather
    gathers = 2.0 + np.where(c.trained_share > 0, 1.0, 0.0)
    held = np.where(c.shard_weights > 0, local * np.minimum(c.weight_bytes, 2.0), 0.0)
    sharded = held * gathers * share * micro_steps
    volume = np.where(c.shard_weights > 0, sharded, gradients)
    inside = c.tensor * ranks <= c.domain
    ports = np.maximum(c.node / c.tensor, 1.0)  # members of one group in a node share its ports
    speed = np.where(inside, c.link, np.minimum(c.link, c.network * ports))
    seconds = volume / (speed * 0.8)
    return np.maximum(seconds - constants.value("overlap") * busy, 0.0) + seconds * constants.value(
        "data_exposed"
    )


def _update(c: Candidates, local: Array, ranks: Array) -> Array:
    """Optimiser step: every state read and written once, or carried over PCIe when it is kept in host memory. [s]"""
    trained = local * c.trained_share / np.where(c.shard_states > 0, ranks, 1.0)
    moved = trained * (2.0 * (c.state_bytes + c.weight_bytes) + c.gradient_bytes)
    on_card = moved / (0.8 * c.hbm_bandwidth)
    away = trained * (c.gradient_bytes + c.weight_bytes) / c.pcie
    return np.where(c.offload_states > 0, away, on_card)
