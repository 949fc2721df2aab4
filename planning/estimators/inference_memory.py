"""Memory of one accelerator of a replica: weights, cache of one sequence, reserve; and how many sequences fit.

Every function is elementwise over candidates, shape (n,). Each part is that of the fullest accelerator.
"""

from __future__ import annotations

import numpy as np

from planning.estimators.inference_candidates import Candidates
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_tables import Floats
from planning.estimators.precision import ENGINES


def expert_ranks(c: Candidates) -> Floats:
    """Accelerators that share the routed experts of one pipeline stage. [1]"""
    return c.tensor_parallel * c.attention_data_parallel


def stage_layers(c: Candidates) -> Floats:
    """Share of the layers that the longest pipeline stage holds. [1]"""
    return np.ceil(c.shape.layers / c.pipeline_parallel) / c.shape.layers


def weight_bytes(c: Candidates) -> Floats:
    """Weights on one accelerator; attention-data-parallel ranks each hold all of attention. [B]"""
    s, share = c.shape, stage_layers(c)
    dense = (s.mixer + s.dense_mlp) * c.mixer_bytes_per_parameter * share / c.tensor_parallel
    routed = s.routed * c.weight_bytes_per_parameter * share / expert_ranks(c)
    ends = np.where(c.pipeline_parallel > 1, 0.5, 1.0)  # first and last stage hold one table each
    tables = s.tables * c.table_bytes_per_parameter * ends / c.tensor_parallel
    return dense + routed + tables


def kv_split(c: Candidates) -> Floats:
    """Ranks over which one sequence's cache is split: no more than there are key/value heads; a latent is not split."""
    heads = np.minimum(c.tensor_parallel, c.shape.kv_heads)
    return np.where(c.shape.latent > 0, 1.0, heads)


def windowed_split(c: Candidates) -> Floats:
    """The same of windowed layers, whose heads may be others."""
    heads = np.minimum(c.tensor_parallel, c.shape.kv_heads_windowed)
    return np.where(c.shape.latent > 0, 1.0, heads)


def kv_sequence_bytes(c: Candidates, context: Floats) -> Floats:
    """Cache of one sequence at `context` tokens on one accelerator that serves it. [B]"""
    s = c.shape
    elements = s.kv_full * context / kv_split(c)
    elements = elements + s.kv_windowed * np.minimum(context, s.window) / windowed_split(c)
    growing = elements * c.kv_element_bytes + s.index_bytes * context
    constant = s.state * 2.0 / c.tensor_parallel  # recurrent state stays in 16 bits
    return (growing + constant) * stage_layers(c)


def kv_read_bytes(c: Candidates, context: Floats) -> Floats:
    """What a sequence's next token reads of its cache: with an indexer all of its keys and the tokens it picks. [B]"""
    s = c.shape
    unread = s.kv_full * np.maximum(context - s.picked, 0.0)
    return kv_sequence_bytes(c, context) - unread * c.kv_element_bytes / kv_split(c) * stage_layers(
        c
    )


def reserve_bytes(c: Candidates, k: Constants) -> Floats:
    """Activations of the largest step, logits, graphs and engine on one accelerator. [B]

    The engine's part was fitted on cards of 80 GB and more. On smaller ones it is no more than what a driver and its
    context hold and the share of a card that engines leave alone: vLLM takes 0.9 of it by default, TensorRT-LLM 0.9
    of what is free.
    """
    s = c.shape
    tokens = np.minimum(k["max_step_tokens"], np.maximum(c.input_tokens, 1.0))
    activations = tokens * s.hidden * 2.0 * k["activation_copies"]
    most = k["reserve_base"] + k["reserve_share"] * c.card.memory
    return np.minimum(k.per("reserve", ENGINES)[c.engine], most) + activations


def cache_room(c: Candidates, k: Constants) -> Floats:
    """Memory left for the cache on one accelerator; negative when the weights do not fit. [B]"""
    return c.card.memory - reserve_bytes(c, k) - weight_bytes(c)


def sequences_that_fit(c: Candidates, k: Constants) -> Floats:
    """Sequences one replica can hold with input and output reserved in full; may be a fraction below 1. [1]"""
    per_sequence = kv_sequence_bytes(c, c.input_tokens + c.output_tokens)
    room = np.maximum(cache_room(c, k), 0.0)
    fit = room / np.maximum(per_sequence, 1.0) * c.attention_data_parallel
    return np.where(c.shape.causal > 0, fit, np.where(room > 0, k["max_batch"], 0.0))
