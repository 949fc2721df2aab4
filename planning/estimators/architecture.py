"""Parameter counts, cache elements and FLOPs that follow from a model's shape; typical shapes for a bare count.

Symbols: L layers, h hidden, a heads, k key/value heads, d head_dim, f feed-forward width, V vocabulary.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from core.errors import InputError, out_of_range, require_at_least, require_between
from core.messages import Message, msg
from planning.estimators.types import (
    Architecture,
    AttentionShape,
    LatentAttention,
    MixtureOfExperts,
)

COUNT_TOLERANCE = 0.02  # computed and published parameter counts agree within this


@dataclass(frozen=True, slots=True)
class ParameterCount:
    """Weights of a model by where they sit. All in parameters; `active` is what one token multiplies."""

    embedding: float  # input table, with learned positions
    head: float  # output projection; 0 when tied
    attention: float  # attention, cross attention and state-space mixers of all layers
    dense_mlp: float  # dense feed-forward parts, shared experts and routers
    experts: float  # routed experts of all layers
    experts_active: float  # routed experts that one token visits
    norms: float
    looked_up: float  # of the input tables, what no matrix product reads

    @property
    def total(self) -> float:
        return (
            self.embedding + self.head + self.attention + self.dense_mlp + self.experts + self.norms
        )

    @property
    def active(self) -> float:
        return self.total - self.experts + self.experts_active


def moe_layers(architecture: Architecture) -> int:
    """Number of layers with routed experts."""
    moe = architecture.moe
    if moe is None:
        return 0
    return (mlp_layers(architecture) - moe.dense_layers) // moe.every


def mlp_layers(architecture: Architecture) -> int:
    """Number of layers with a feed-forward part, dense or sparse."""
    if architecture.mlp_layers is not None:
        return architecture.mlp_layers
    return architecture.layers


def attention_layers(architecture: Architecture) -> int:
    """Number of layers with softmax attention, which keep a key/value cache."""
    if architecture.attention_layers is not None:
        return architecture.attention_layers
    return architecture.layers - architecture.linear_layers


def shared_width(moe: MixtureOfExperts) -> int:
    """Width of the feed-forward part that every token visits beside its routed experts."""
    return moe.shared_ffn or moe.shared_experts * moe.expert_ffn


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """Attention layers of one shape."""

    layers: int
    shape: AttentionShape
    window: int | None  # tokens; None: all are seen
    cached: int  # layers that keep a cache of their own


def full_attention(architecture: Architecture) -> AttentionShape:
    """Heads of the layers that see everything, and of all layers where no other shape is given."""
    a = architecture
    return AttentionShape(
        a.heads, a.kv_heads, a.head_dim, a.value_dim or a.head_dim, a.values_are_keys
    )


def attention_groups(architecture: Architecture) -> tuple[AttentionGroup, AttentionGroup]:
    """Layers that see everything, and windowed layers; either may be none."""
    a = architecture
    full, layers = full_attention(a), attention_layers(a)
    sliding = min(a.sliding_layers, layers) if a.sliding_window is not None else 0
    windowed = a.windowed or full
    shared = min(a.kv_shared_windowed, sliding)
    return (
        AttentionGroup(
            layers - sliding, full, None, layers - sliding - (a.kv_shared_layers - shared)
        ),
        AttentionGroup(sliding, windowed, a.sliding_window, sliding - shared),
    )


def attention_parameters(architecture: Architecture, shape: AttentionShape | None = None) -> float:
    """Weights of one softmax-attention layer, by default one that sees everything: projections in and out."""
    h, mla = architecture.hidden, architecture.mla
    if mla is not None:
        return _latent_attention_parameters(architecture, mla)
    at = shape or full_attention(architecture)
    value_dim = at.value_dim or at.head_dim
    query, out = at.heads * at.head_dim, at.heads * value_dim
    kv = at.kv_heads * (at.head_dim + (0 if at.values_are_keys else value_dim))
    gate = h * query if architecture.attention_gate else 0
    return float(h * query + h * kv + out * h + gate)


def _latent_attention_parameters(architecture: Architecture, mla: LatentAttention) -> float:
    h, a = architecture.hidden, architecture.heads
    query_dim = a * (mla.nope_dim + mla.rope_dim)
    query = h * mla.q_latent + mla.q_latent * query_dim if mla.q_latent else h * query_dim
    down = h * (mla.kv_latent + mla.rope_dim)
    up = mla.kv_latent * a * (mla.nope_dim + mla.v_dim)
    return float(query + down + up + a * mla.v_dim * h)


def _mlp_parameters(architecture: Architecture, width: int, hidden: int | None = None) -> float:
    return float((3 if architecture.gated else 2) * (hidden or architecture.hidden) * width)


def _table_parameters(architecture: Architecture) -> tuple[float, float]:
    """(input tables with their projections, what of them is looked up alone)."""
    a = architecture
    table = float(a.vocab * (a.embedding_dim or a.hidden))
    further = float(a.vocab * a.per_layer_embedding * a.layers)
    looked_up = further + (0.0 if a.tied_embeddings else table)
    projections = 2.0 * a.embedding_dim * a.hidden if a.embedding_dim else 0.0
    return table + further + projections + float(a.position_embeddings * a.hidden), looked_up


def count_parameters(architecture: Architecture) -> ParameterCount:
    """Parameters computed from the shape alone, whatever was published. [parameters]"""
    h = architecture.hidden
    sparse = moe_layers(architecture)
    dense = mlp_layers(architecture) - sparse
    mixer = attention_parameters(architecture)
    state = architecture.state_space.params if architecture.state_space else mixer
    attention = architecture.linear_layers * state + sum(
        group.layers * attention_parameters(architecture, group.shape)
        for group in attention_groups(architecture)
    )
    attention += architecture.cross_attention_layers * mixer
    mlp = dense * _mlp_parameters(architecture, architecture.ffn)
    # every layer gates and projects its own part of the further table, and one matrix gives the parts of all
    mlp += 3.0 * architecture.layers * h * architecture.per_layer_embedding
    experts = visited = 0.0
    if architecture.moe is not None:
        moe = architecture.moe
        expert = _mlp_parameters(architecture, moe.expert_ffn, moe.latent)
        experts = sparse * moe.experts * expert
        visited = sparse * moe.top_k * expert
        mlp += sparse * (h * moe.experts + _mlp_parameters(architecture, shared_width(moe)))
        mlp += sparse * 2.0 * h * moe.latent  # down to the experts' width, and up again
    tables, looked_up = _table_parameters(architecture)
    return ParameterCount(
        embedding=tables,
        head=0.0 if architecture.tied_embeddings else float(architecture.vocab * h),
        attention=attention,
        dense_mlp=mlp,
        experts=experts,
        experts_active=visited,
        norms=float((2 * architecture.layers + 1) * h),
        looked_up=looked_up,
    )


def total_parameters(architecture: Architecture) -> float:
    """Published total when known, else computed. [parameters]"""
    return architecture.params_total or count_parameters(architecture).total


def active_parameters(architecture: Architecture) -> float:
    """Parameters that one token multiplies: published when known, else computed. [parameters]

    A published active count may leave the embedding tables out; the computed one counts both.
    """
    return architecture.params_active or count_parameters(architecture).active


def matmul_parameters(architecture: Architecture) -> float:
    """Active parameters that enter a matrix product for each token: the input table is only looked up. [parameters]"""
    count = count_parameters(architecture)
    return active_parameters(architecture) * (1 - count.looked_up / count.active)


def kv_elements_per_token(architecture: Architecture, *, context: float | None = None) -> float:
    """Cache elements that one more token of context costs, over all layers. [elements/token]

    With `context`, the mean per token of a cache at that context, in which windowed layers have stopped growing.
    MLA keeps one latent and the rotary part per layer whatever the number of heads.
    """
    return sum(
        cached * (1.0 if context is None or window is None else min(1.0, window / context))
        for cached, window in kv_groups(architecture)
    )


def kv_groups(architecture: Architecture) -> tuple[tuple[float, int | None], ...]:
    """(elements of one token over the layers that keep a cache, window) of full and of windowed layers."""
    return tuple(
        (group.cached * kv_elements_per_layer(architecture, group.shape), group.window)
        for group in attention_groups(architecture)
    )


def kv_elements_per_layer(architecture: Architecture, shape: AttentionShape | None = None) -> float:
    """Cache elements of one token in one attention layer. [elements/token]"""
    if architecture.mla is not None:
        return float(architecture.mla.kv_latent + architecture.mla.rope_dim)
    at = shape or full_attention(architecture)
    return float(at.kv_heads * (at.head_dim + (at.value_dim or at.head_dim)))


def kv_elements(architecture: Architecture, context: float) -> float:
    """Cache elements of one sequence at `context` tokens, with the constant state of linear layers. [elements]"""
    state = architecture.state_space.state_elements if architecture.state_space else 0.0
    constant = architecture.linear_layers * state
    return context * kv_elements_per_token(architecture, context=context) + constant


def flops_per_token(
    architecture: Architecture, *, context: float = 0.0, backward: bool = False
) -> float:
    """FLOPs of one token that attends to `context` tokens; forward, or forward and backward (x 3). [FLOP]

    2 x active parameters, plus 4 x context x heads x head_dim per attention layer (scores and values). For causal
    training or prefill over s tokens pass the mean context s/2.
    """
    forward = 2 * matmul_parameters(architecture) + attention_flops_per_token(architecture, context)
    return 3 * forward if backward else forward


def attention_flops_per_token(architecture: Architecture, context: float) -> float:
    """FLOPs of the scores and the weighted values of one token over `context` tokens. [FLOP]"""
    return sum(
        2.0
        * group.layers
        * (context if group.window is None else min(context, group.window))
        * attention_width(architecture, group.shape)
        for group in attention_groups(architecture)
    )


def attention_width(architecture: Architecture, shape: AttentionShape) -> float:
    """Products per token and token seen in one layer: queries with keys, and weights with values."""
    mla = architecture.mla
    if mla is not None:
        return float((mla.nope_dim + mla.rope_dim + mla.v_dim) * architecture.heads)
    return float(shape.heads * (shape.head_dim + (shape.value_dim or shape.head_dim)))


def validate(architecture: Architecture) -> Architecture:
    """The same architecture, or :class:`InputError` naming the first field that cannot be."""
    a = architecture
    for field, limit in LARGEST.items():
        require_between(field, getattr(a, field), 1, limit)
    for field in _COUNTS:
        require_between(field, getattr(a, field) or 0, 0, MOST)
    _within_layers(a)
    if a.moe is not None:
        _validate_experts(a, a.moe)
    if dense_mlp_layers(a):
        require_at_least("ffn", a.ffn, 1)
    _heads_divide("", full_attention(a))
    for field in ("sliding_window", "max_context", "value_dim", "embedding_dim"):
        if getattr(a, field) is not None:
            require_at_least(field, getattr(a, field), 1)
    if a.windowed is not None:
        for name in ("heads", "kv_heads", "head_dim"):
            require_between(f"windowed.{name}", getattr(a.windowed, name), 1, LARGEST[name])
        require_between("windowed.value_dim", a.windowed.value_dim, 0, LARGEST["head_dim"])
        _heads_divide("windowed.", a.windowed)
    for field, published in {
        "params_total": a.params_total,
        "params_active": a.params_active,
    }.items():
        if published is not None and not 0 < published <= MOST_PARAMETERS:
            raise out_of_range(field, published, 0, MOST_PARAMETERS)
    if a.mla is not None:
        for field in LatentAttention.__dataclass_fields__:
            least = 1 if field in ("kv_latent", "nope_dim", "v_dim") else 0
            require_between(f"mla.{field}", getattr(a.mla, field), least, MOST)
    if a.state_space is not None:
        for field in ("params", "state_elements"):
            amount = getattr(a.state_space, field)
            if not 0 <= amount <= MOST_PARAMETERS:
                raise out_of_range(f"state_space.{field}", amount, 0, MOST_PARAMETERS)
    count = count_parameters(a).total
    if count > MOST_PARAMETERS:
        text = msg(
            "The shape has %(value)s parameters; at most %(limit)s are estimated",
            value=f"{count:.3g}",
            limit=f"{MOST_PARAMETERS:.0e}",
        )
        raise InputError("layers", text, value=count, limit=MOST_PARAMETERS)
    return a


def _heads_divide(prefix: str, shape: AttentionShape) -> None:
    if shape.heads % shape.kv_heads:
        raise InputError(
            f"{prefix}kv_heads",
            msg(
                "kv_heads is %(value)s; it must divide heads (%(heads)s)",
                value=shape.kv_heads,
                heads=shape.heads,
            ),
            value=shape.kv_heads,
            limit=shape.heads,
        )


def _within_layers(a: Architecture) -> None:
    """Kinds of layers are no more than there are layers; a layer may hold attention and a state space side by side."""
    for field in ("linear_layers", "sliding_layers", "attention_layers", "mlp_layers"):
        count = getattr(a, field)
        if count is not None:
            require_between(field, count, 0, a.layers)
    # neither kind of layers shares more caches than it has layers: what is left is never negative
    require_between("kv_shared_layers", a.kv_shared_layers, 0, attention_layers(a))
    full, windowed = (group.layers for group in attention_groups(a))
    least, most = max(a.kv_shared_layers - full, 0), min(a.kv_shared_layers, windowed)
    require_between("kv_shared_windowed", a.kv_shared_windowed, least, most)


def dense_mlp_layers(architecture: Architecture) -> int:
    """Number of layers with a dense feed-forward part."""
    return mlp_layers(architecture) - moe_layers(architecture)


def _validate_experts(architecture: Architecture, moe: MixtureOfExperts) -> None:
    for field in ("experts", "expert_ffn", "every"):
        require_between(f"moe.{field}", getattr(moe, field), 1, MOST)
    for field in ("shared_ffn", "latent"):
        require_between(f"moe.{field}", getattr(moe, field), 0, MOST)
    require_between("moe.top_k", moe.top_k, 1, moe.experts)
    require_between("moe.dense_layers", moe.dense_layers, 0, mlp_layers(architecture))
    require_between("moe.shared_experts", moe.shared_experts, 0, 1_000)


# Beyond what any published shape reaches by a wide margin: a slip of the keyboard, not a model.
LARGEST = {
    "layers": 10_000, "hidden": 1_000_000, "heads": 100_000, "kv_heads": 100_000, "head_dim": 100_000,
    "vocab": 100_000_000,
}  # fmt: skip
MOST = 1_000_000_000  # of any other whole number of a shape
MOST_PARAMETERS = 1e15
_COUNTS = (
    "ffn", "sliding_window", "cross_attention_layers", "position_embeddings", "max_context", "value_dim",
    "embedding_dim", "per_layer_embedding",
)  # fmt: skip


# A typical decoder of today (Llama 3, Qwen 3): gated, 128-wide heads, 8 key/value heads, ffn 3.5 x hidden.
_TYPICAL_VOCAB = 128_256
_TYPICAL_HEAD_DIM = 128
_TYPICAL_ASPECT = 110.0  # hidden / layers, between 128 at 8 B and 102 at 70 B


_NAMED_SIZE = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)([bm])(?![a-z0-9])", re.IGNORECASE)
_NAMED_ACTIVE = re.compile(r"(?<![a-z0-9])a(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_NAMED_EXPERTS = re.compile(r"(?<![a-z0-9])(\d+)x(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)


def count_from_name(name: str) -> tuple[float, float | None] | None:
    """(total, active) parameters that a model's name states: "Falcon-180B", "Qwen3-30B-A3B", "Mixtral-8x7B"; None where
    it states none. Of "8x7B" the experts share attention: about 0.83 of the product, two of them active."""
    experts = _NAMED_EXPERTS.search(name)
    if experts:
        number, size = int(experts.group(1)), float(experts.group(2)) * 1e9
        return 0.83 * number * size, 0.83 * 2 * size + 0.15 * size
    told = _NAMED_SIZE.search(name)
    if told is None:
        return None
    active = _NAMED_ACTIVE.search(name)
    scale = 1e9 if told.group(2).lower() == "b" else 1e6
    total = float(told.group(1)) * scale
    return total, float(active.group(1)) * 1e9 if active else None


def architecture_from_count(
    params: float, *, active: float | None = None, name: str = ""
) -> Architecture:
    """A typical decoder with `params` parameters, `active` of them used per token; what was assumed is said.

    Raises
    ------
    InputError
        If a count is below 10 million, above 100 trillion, or active exceeds the total.
    """
    for field, value in {"params": params, "active": params if active is None else active}.items():
        require_between(field, value, 1e7, 1e14)
    if active is not None and active > params:
        text = msg(
            "active is %(value)s; it must be at most params (%(limit)s)", value=active, limit=params
        )
        raise InputError("active", text, value=active, limit=params)
    sparse = active is not None and active < 0.95 * params
    base = _typical_dense(active if sparse and active is not None else params)
    if sparse and active is not None:
        base = _typical_sparse(base, params, active)
    label = name or f"{params / 1e9:.3g}B"
    return validate(
        replace(
            base,
            name=label,
            params_total=float(params),
            params_active=float(params if active is None else active),
            assumed=_assumptions(base),
        )
    )


def _typical_dense(params: float) -> Architecture:
    """Hidden size a multiple of 1024 (64 when small) whose count is met with layers ~ hidden / 110."""
    best: tuple[float, Architecture] | None = None
    for hidden in [*range(256, 1024, 64), 1024, 1536, *range(2048, 65_537, 1024)]:
        head_dim = _TYPICAL_HEAD_DIM if hidden >= 2048 else 64
        heads = hidden // head_dim
        kv_heads = next(k for k in (8, 4, 2, 1) if heads % k == 0 and k <= heads)
        tied = params < 4e9
        vocab = _TYPICAL_VOCAB if params > 3e8 else 32_000
        shape = Architecture(
            "", 1, hidden, heads, kv_heads, head_dim, 0, vocab, tied_embeddings=tied
        )
        outside = vocab * hidden * (1 if tied else 2)
        layer = attention_parameters(shape) + 3 * hidden * 3.5 * hidden
        layers = round((params - outside) / layer)
        if layers < 2:
            break
        # the feed-forward width takes what rounding left over
        width = ((params - outside) / layers - attention_parameters(shape)) / (3 * hidden)
        candidate = replace(shape, layers=layers, ffn=max(64, 64 * round(width / 64)))
        miss = abs(math.log(hidden / layers / _TYPICAL_ASPECT))
        if best is None or miss < best[0]:
            best = (miss, candidate)
    if best is None:
        hidden = 256
        return Architecture("", 2, hidden, 4, 4, 64, 4 * hidden, 8_000, tied_embeddings=True)
    return best[1]


def _typical_sparse(base: Architecture, params: float, active: float) -> Architecture:
    """Eight of E experts per token, no shared one; widths so that both counts are met."""
    top_k = 8
    shell = count_parameters(replace(base, mlp_layers=0))
    per_token = max((active - shell.total) / base.layers, 0.2 * active / base.layers)
    width = max(64, 64 * round(per_token / (top_k * 3 * base.hidden) / 64))
    experts = round((params - shell.total) / (base.layers * 3 * base.hidden * width))
    moe = MixtureOfExperts(experts=max(experts, top_k), top_k=top_k, expert_ffn=width)
    return replace(base, moe=moe)


def _assumptions(architecture: Architecture) -> tuple[Message, ...]:
    shape = msg(
        "Only a parameter count was given. A typical shape is assumed: %(layers)s layers, hidden size %(hidden)s, "
        "%(heads)s heads of %(head_dim)s with %(kv_heads)s key/value heads. The KV cache follows from it.",
        layers=architecture.layers,
        hidden=architecture.hidden,
        heads=architecture.heads,
        head_dim=architecture.head_dim,
        kv_heads=architecture.kv_heads,
    )
    if architecture.moe is None:
        return (shape,)
    experts = msg(
        "%(top_k)s of %(experts)s experts of width %(width)s are assumed to work on each token.",
        top_k=architecture.moe.top_k,
        experts=architecture.moe.experts,
        width=architecture.moe.expert_ffn,
    )
    return (shape, experts)
