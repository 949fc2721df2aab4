"""Time of one engine step, elementwise over candidates of shape (n,).

A step carries `decode` sequences that each yield one token at a mean context, and `prefill` input tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planning.estimators.inference_candidates import Candidates
from planning.estimators.inference_constants import Constants
from planning.estimators.inference_memory import expert_ranks, kv_read_bytes, stage_layers
from planning.estimators.inference_tables import COMPUTE_CLASSES, Floats
from planning.estimators.precision import ENGINES


@dataclass(frozen=True, slots=True)
class StepTime:
    """Parts of one step on the slowest accelerator, all stages together. [s]"""

    dense: Floats
    experts: Floats
    cache: Floats  # reading the cache
    prefill_attention: Floats
    communication: Floats
    overhead: Floats
    bytes: Floats  # read from HBM by one accelerator [B]
    flops: Floats  # done by one accelerator [FLOP]

    def row(self, i: int) -> StepTime:
        """One row as arrays of length 1."""
        names = self.__dataclass_fields__
        return StepTime(**{name: getattr(self, name)[i : i + 1] for name in names})

    @property
    def total(self) -> Floats:
        return (
            self.dense
            + self.experts
            + self.cache
            + self.prefill_attention
            + self.communication
            + self.overhead
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """Effective rates of each candidate, gathered once."""

    bandwidth: Floats  # of weights [B/s]
    cache_bandwidth: Floats  # [B/s]
    compute: Floats  # of large products [FLOP/s]
    experts: Floats  # share of the compute rate that grouped expert products reach [1]
    attention: Floats  # of prefill attention [FLOP/s]
    link: Floats  # [B/s]
    hop: Floats  # latency of one all-reduce [s]
    layer: Floats  # overhead of one layer [s]
    expert_layer: Floats  # further overhead of a layer with experts [s]
    step: Floats  # overhead of one step [s]
    sequence: Floats  # overhead of one sequence in a step [s]


def effective_rates(c: Candidates, k: Constants) -> Rates:
    """Spec-sheet rates times fitted efficiencies by generation, precision and engine family."""
    rows = np.arange(c.weights.shape[0])
    generation = c.card.generation
    kind = c.card.rate_class[rows, c.weights]
    peak = c.card.rate[rows, c.weights]
    compute = peak * k.compute_efficiency()[generation, kind]
    pace = k.by_generation("pace")[generation]  # newer servers launch faster
    half = c.card.rate[:, 1]  # attention runs in 16 bits
    fast = c.card.fast_link > 0
    bandwidth = c.card.bandwidth * k.by_generation("bandwidth")[generation]
    kv_quantized = c.kv_element_bytes < 2.0
    cache_efficiency = np.where(kv_quantized, k["cache.8"], k["cache.16"])
    cache_efficiency = cache_efficiency * k.by_generation("cache.generation")[generation]
    return Rates(
        bandwidth=bandwidth,
        cache_bandwidth=c.card.bandwidth * cache_efficiency,
        compute=compute,
        experts=k.per("expert.compute", COMPUTE_CLASSES)[kind]
        * k.by_generation("expert.generation")[generation],
        attention=np.where(np.isnan(half), peak, half) * k.by_generation("attention")[generation],
        link=c.card.link * np.where(fast, k["link.fast"], k["link.pcie"]),
        hop=np.where(fast, k["hop.fast"], k["hop.pcie"]),
        layer=k.per("layer", ENGINES)[c.engine] * pace,
        expert_layer=k.per("expert.layer", ENGINES)[c.engine] * pace,
        step=k.per("step", ENGINES)[c.engine] * pace,
        sequence=k.per("sequence", ENGINES)[c.engine] * pace,
    )


def smooth_max(a: Floats, b: Floats, power: float) -> Floats:
    """Between max(a, b) and a + b: what overlaps, overlaps imperfectly."""
    high, low = np.maximum(a, b), np.minimum(a, b)
    ratio = low / np.maximum(high, 1e-300)
    return high * (1.0 + ratio**power) ** (1.0 / power)


def experts_touched(experts: Floats, top_k: Floats, tokens: Floats) -> Floats:
    """Expected share of the experts that `tokens` independent tokens visit: 1 - (1 - k/E)^n. [1]"""
    miss = np.clip(1.0 - top_k / experts, 0.0, 1.0)
    return 1.0 - miss**tokens


def step_time(
    c: Candidates, k: Constants, r: Rates, *, decode: Floats, context: Floats, prefill: Floats
) -> StepTime:
    """Time of a step with `decode` sequences at `context` tokens and `prefill` input tokens, per replica. [s]

    Both are counts over the whole replica; pipeline stages work on a share of them in turn.
    """
    s = c.shape
    pp, tp, adp = c.pipeline_parallel, c.tensor_parallel, c.attention_data_parallel
    share, ranks = stage_layers(c), expert_ranks(c)
    sequences = decode / pp  # one micro-batch per stage
    tokens = sequences + prefill / pp
    local = tokens / adp  # tokens that one attention rank works on
    power = k["overlap"]

    dense_parameters = (s.mixer + s.dense_mlp) * share / tp
    head_parameters = s.head / tp / pp
    dense_bytes = dense_parameters * c.mixer_bytes_per_parameter
    dense_bytes = dense_bytes + head_parameters * c.table_bytes_per_parameter
    dense_flops = 2.0 * dense_parameters * local + 2.0 * head_parameters * sequences / adp
    dense = smooth_max(dense_bytes / r.bandwidth, dense_flops / r.compute, power)

    touched = experts_touched(s.experts, s.top_k, tokens * k["expert.spread"])
    routed_bytes = s.routed * share * touched * c.weight_bytes_per_parameter / ranks
    per_expert = s.routed * share / s.experts  # parameters of one expert in every layer
    rows = tokens * s.top_k + k["expert.tile"] * touched * s.experts  # tiles are padded
    routed_flops = 2.0 * per_expert * rows / ranks
    experts = smooth_max(
        routed_bytes / (r.bandwidth * k["expert.bandwidth"]),
        routed_flops / (r.compute * r.experts),
        power,
    )
    uneven = 1.0 + k["expert.imbalance"] * (
        1.0 - 1.0 / c.expert_parallel
    )  # the busiest rank waits for none
    experts = np.where(s.routed > 0, experts * uneven, 0.0)

    cache_bytes = kv_read_bytes(c, context) * sequences / adp
    seen = s.attention_full * np.minimum(context, s.picked)
    seen = seen + s.attention_windowed * np.minimum(context, s.window)
    cache_flops = (seen / tp + s.index_flops * context) * share * sequences / adp
    cache = np.maximum(cache_bytes / r.cache_bandwidth, cache_flops / r.attention)

    mean = np.where(s.causal > 0, c.input_tokens / 2.0, c.input_tokens)
    seen = s.attention_prefill * np.minimum(mean, s.picked)
    seen = seen + s.attention_windowed * np.minimum(mean, s.window)
    prefill_flops = (seen / tp + s.index_flops * mean) * share * (prefill / pp) / adp
    prefill_attention = prefill_flops / r.attention

    overhead_layers = s.layers * share * (r.layer + s.latent * k["layer.latent"])
    overhead_layers = overhead_layers + s.sparse_layers * share * r.expert_layer
    overhead_layers = overhead_layers + s.linear_layers * share * k["layer.state"]
    overhead_layers = overhead_layers + s.index_layers * share * k["layer.index"]
    overhead = overhead_layers + r.step / pp + r.sequence * sequences / adp
    return StepTime(
        dense=dense * pp,
        experts=experts * pp,
        cache=cache * pp,
        prefill_attention=prefill_attention * pp,
        communication=_communication(c, k, r, tokens, local) * pp,
        overhead=overhead * pp,
        bytes=(dense_bytes + np.where(s.routed > 0, routed_bytes, 0.0) + cache_bytes) * pp,
        flops=(dense_flops + routed_flops * (s.routed > 0) + cache_flops + prefill_flops) * pp,
    )


def _communication(c: Candidates, k: Constants, r: Rates, tokens: Floats, local: Floats) -> Floats:
    """All-reduces after attention and after the feed-forward part; all-to-all of attention-data-parallel ranks;
    activations passed between pipeline stages. One stage. [s]"""
    s, share = c.shape, stage_layers(c)
    tp, ranks = c.tensor_parallel, expert_ranks(c)
    row = s.hidden * 2.0  # bytes of one token's activations
    after_attention = np.where(tp > 1, r.hop + 2 * (tp - 1) / tp * local * row / r.link, 0.0)
    exchanged = np.where(c.attention_data_parallel > 1, 2 * local * np.minimum(s.top_k, ranks), 0.0)
    reduced = np.where(
        c.attention_data_parallel > 1, exchanged * row, 2 * (ranks - 1) / ranks * tokens * row
    )
    after_mlp = np.where(ranks > 1, r.hop + reduced / r.link, 0.0)
    between = np.where(c.pipeline_parallel > 1, r.hop + local * row / r.link, 0.0)
    total: Floats = s.layers * share * (after_attention + after_mlp) + between
    return total
