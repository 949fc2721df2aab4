"""What the layers of a ``config.json`` are: attention over everything or a window, state spaces, feed-forward parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from planning.estimators.config_fields import EXPERTS, HEADS, Fields, missing, not_read
from planning.estimators.types import AttentionShape, StateSpace

_ALTERNATING_WINDOW = {
    "gemma2": 2, "cohere2": 4, "gemma3": 6, "gemma3_text": 6, "gemma3n": 5, "gemma3n_text": 5, "gemma4": 6,
    "gemma4_text": 6, "gpt_oss": 2, "modernbert": 3,
}  # fmt: skip
_FULL = frozenset({"full_attention", "attention", "global_attention", "global"})
_WINDOWED = frozenset({"sliding_attention", "chunked_attention", "local_attention", "local"})
_STATE = frozenset({"linear_attention", "mamba", "mamba2", "conv"})
_MLP = frozenset({"moe", "mlp", "-"})
_PATTERN = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}  # Nemotron-H
_STATE_ONLY = frozenset({"mamba", "mamba2", "falcon_mamba"})
# Without a list of layers these say that some layers keep a state; which ones must then be known.
_STATE_FIELDS = (
    "linear_num_value_heads", "mamba_num_heads", "mamba_n_heads", "mamba_d_state", "ssm_state_size", "conv_L_cache",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layers:
    """How many layers of each kind, and what the constant-state ones are."""

    attention: int
    window: int | None = None  # tokens
    sliding: int = 0  # of the attention layers
    linear: int = 0
    mlp: int | None = None  # None: every layer
    dense_mlp: int | None = None  # of them dense, where the list of layers says so
    shared_cache: tuple[int, int] = (0, 0)  # attention layers that keep no cache: all, windowed
    state: StateSpace | None = None


def read_layers(f: Fields, layers: int, hidden: int) -> Layers:
    """The kinds of `layers` layers. Raises InputError for a kind that is not known."""
    kinds = _kinds(f, layers)
    if f.model_type in _STATE_ONLY:
        return Layers(0, linear=layers, mlp=0, state=_state(f, hidden))
    if kinds is not None:
        return _of_kinds(f, kinds, hidden)
    linear = _linear_layers(f, layers)
    parallel = f.model_type == "falcon_h1"  # attention and Mamba side by side in every layer
    if parallel:
        linear = layers
    if not linear and (key := f.given(*_STATE_FIELDS)) is not None and f.config[key] != 0:
        raise not_read(key, f.config[key])
    attention = layers if parallel else layers - linear
    if f.model_type.startswith("mllama"):  # cross layers stand in the place of others
        attention -= len(f.listed("cross_attention_layers"))
    window, sliding = _window(f, attention)
    state = _state(f, hidden) if linear else None
    return _with_shared(f, Layers(attention, window, sliding, linear, state=state), None)


def _kinds(f: Fields, layers: int) -> list[str] | None:
    """The kind of each layer, where the config lists them."""
    pattern = f.config.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        if set(pattern) - set(_PATTERN):
            raise not_read("hybrid_override_pattern", pattern)
        return [_PATTERN[mark] for mark in pattern]
    pairs = f.listed("attention_types")  # GPT-Neo: [[["global", "local"], 12]]
    if pairs:
        return _repeated(f, pairs, layers)
    for key in ("layer_types", "layers_block_type", "hybrid_layer_pattern"):
        listed = f.per_layer(key, layers)
        if not listed:
            continue
        if key == "hybrid_layer_pattern":  # 1: windowed
            listed = ["sliding_attention" if kind == 1 else "full_attention" for kind in listed]
        kinds = [str(kind) for kind in listed]
        unknown = sorted(set(kinds) - _FULL - _WINDOWED - _STATE - _MLP)
        if unknown:
            raise not_read(key, ", ".join(unknown))
        return kinds
    return None


def _repeated(f: Fields, pairs: list[Any], layers: int) -> list[str]:
    """The kind of each layer from pairs of (kinds, how often they follow each other)."""
    kinds: list[str] = []
    for pair in pairs:
        names, times = pair if isinstance(pair, list) and len(pair) == 2 else ([], 0)
        known = isinstance(names, list) and all(name in ("global", "local") for name in names)
        if not known or type(times) is not int or not 0 < times <= layers:
            raise not_read("attention_types", pairs)
        kinds += names * times
    return Fields({"attention_types": kinds}, f.name).per_layer("attention_types", layers)


def _of_kinds(f: Fields, kinds: list[str], hidden: int) -> Layers:
    window = _told_window(f)
    sliding = sum(kind in _WINDOWED for kind in kinds)
    if sliding and window is None:
        if not _without_window(f):
            raise missing("sliding_window")
        sliding = 0
    linear = sum(kind in _STATE for kind in kinds)
    mlp = sum(kind in _MLP for kind in kinds)
    attention = len(kinds) - linear - mlp
    found = Layers(
        attention,
        window if sliding else None,
        sliding,
        linear,
        mlp=mlp or None,
        dense_mlp=sum(kind != "moe" for kind in kinds if kind in _MLP) if mlp else None,
        state=_state(f, hidden, "conv" in kinds) if linear else None,
    )
    return _with_shared(f, found, kinds)


def _with_shared(f: Fields, layers: Layers, kinds: list[str] | None) -> Layers:
    """Layers that read the keys and values of another: the last ones (Gemma), or all but the first of a group."""
    last = f.optional("num_kv_shared_layers") or 0
    if last and layers.sliding and kinds is None:  # which of them are windowed is not told
        raise not_read("num_kv_shared_layers", last)
    if last:
        of_kinds = (kinds or [])[-last:]
        windowed = sum(kind in _WINDOWED for kind in of_kinds) if layers.sliding else 0
        return replace(layers, shared_cache=(min(last, layers.attention), windowed))
    group = f.optional("cla_share_factor") or 1
    if f.flag("use_cla") and group > 1:
        return replace(
            layers, shared_cache=(layers.attention - math.ceil(layers.attention / group), 0)
        )
    return layers


def _linear_layers(f: Fields, layers: int) -> int:
    """Layers that keep a constant state, from what a config says instead of a list."""
    kda = f.nested("linear_attn_config").get("kda_layers")
    if isinstance(kda, list):
        return min(len(kda), layers)
    flags = f.per_layer("attn_type_list", layers)  # MiniMax-Text: 0 is lightning attention
    if flags:
        return sum(flag == 0 for flag in flags)
    for key in ("attn_layer_indices", "full_attn_idxs"):  # Bamba, LFM2
        if f.config.get(key) is not None:
            return layers - len(f.listed(key))
    group = f.optional("layer_group_size")
    if group and group > 1 and f.model_type.startswith("bailing"):
        # the last layer of each whole group sees everything, and so do those after the last one
        return layers - (layers // group + layers % group)
    period = f.optional("attn_layer_period", "full_attention_interval")
    if period is None and f.model_type.startswith(("qwen3_next", "qwen3_5")):
        period = 4
    if not period:
        return 0
    offset = f.optional("attn_layer_offset")
    if offset is None:
        return layers - layers // period
    return layers - len(range(offset, layers, period))


def _told_window(f: Fields) -> int | None:
    window = f.optional("sliding_window", "attention_window_size", "local_attention")
    window = window or f.optional("attention_chunk_size")
    if f.model_type == "gpt_neo":
        window = f.optional("window_size")
    return None if not window or _without_window(f) else window


def _without_window(f: Fields) -> bool:
    """Whether the config says, or the family takes it for said, that a window told is not used."""
    never = f.model_type.startswith(("qwen2", "qwen3")) and not f.flag("use_sliding_window")
    return never or f.config.get("use_sliding_window") is False


def _of_longformer(f: Fields, layers: int) -> int | None:
    """Longformer's window, one width for all layers; the encoder of LED alone has one, which is not read."""
    if f.config.get("attention_window") is None:
        return None
    widths = f.per_layer("attention_window", layers)
    if f.model_type != "longformer" or len(set(map(str, widths))) > 1:
        raise not_read("attention_window", f.config["attention_window"])
    return f.required("attention_window")


def _window(f: Fields, layers: int) -> tuple[int | None, int]:
    """(window, how many layers use it), from what a config says instead of a list."""
    told = _of_longformer(f, layers)
    if told is not None:
        return told, layers
    window = _told_window(f)
    if window is None:
        return None, 0
    if window == f.optional("attention_chunk_size"):  # Llama 4: every fourth layer sees all
        full = sum(flag == 0 for flag in f.per_layer("no_rope_layers", layers)) or layers // 4
        return window, max(layers - full, 0)
    pattern = f.config.get("sliding_window_pattern")
    if isinstance(pattern, str) and pattern and set(pattern) <= {"L", "G"}:  # EXAONE 4
        marks = (pattern * (layers // len(pattern) + 1))[:layers]
        return window, marks.count("L")
    every = f.optional("global_attn_every_n_layers")  # ModernBERT: the first layer of each group
    if every:
        return window, layers - math.ceil(layers / every)
    period = f.optional("sliding_window_pattern", "_sliding_window_pattern")
    period = period or _ALTERNATING_WINDOW.get(f.model_type)
    if period:
        return window, layers - layers // period
    first = f.optional("max_window_layers") if f.flag("use_sliding_window") else None
    return window, layers if first is None else max(layers - first, 0)


def windowed_shape(f: Fields, full: AttentionShape, layers: int) -> AttentionShape | None:
    """Heads of the windowed ones of `layers` layers, where the config gives them others."""
    other = f.nested("attention_other_setting")  # Step 3.5
    if other.get("attention_type") == "sliding_attention":
        o = Fields(other, f.name)
        return AttentionShape(
            o.optional("num_attention_heads") or full.heads,
            o.optional("num_attention_groups") or full.kv_heads,
            o.optional("head_dim") or full.head_dim,
        )
    if f.given("swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim"):  # MiMo-V2
        return AttentionShape(
            f.optional("swa_num_attention_heads") or full.heads,
            f.optional("swa_num_key_value_heads") or full.kv_heads,
            f.optional("swa_head_dim") or full.head_dim,
            f.optional("swa_v_head_dim") or full.value_dim,
        )
    heads = f.per_layer("num_attention_heads_per_layer", layers)  # Laguna
    if not heads:
        return None
    kinds = [str(kind) in _WINDOWED for kind in f.per_layer("layer_types", layers)]
    if not kinds:
        raise not_read("num_attention_heads_per_layer", heads)
    of_windowed = {n for n, windowed in zip(heads, kinds, strict=True) if windowed}
    of_full = {n for n, windowed in zip(heads, kinds, strict=True) if not windowed}
    if len(of_windowed) > 1 or of_full - {full.heads} or not all(type(n) is int for n in heads):
        raise not_read("num_attention_heads_per_layer", heads)
    return replace(full, heads=of_windowed.pop()) if of_windowed else None


def sparse_layers(f: Fields, layers: int) -> int:
    """How many of `layers` layers have routed experts."""
    flags = f.per_layer("moe_layer_freq", layers) or f.per_layer("mlp_layer_types", layers)
    if flags:
        return sum(flag in (1, "sparse", "moe") for flag in flags)
    named = f.config.get("moe_layers_enum")  # Step 3: "4,5,6"
    if isinstance(named, str):
        return len([part for part in named.split(",") if part.strip()])
    if f.listed("moe_layers"):
        return len(f.listed("moe_layers"))
    every = max(
        f.optional(
            "interleave_moe_layer_step", "decoder_sparse_step", "expert_layer_period", "moe_layer_interval",
            "moe_layer_frequency", "moe_layer_freq",
        ) or 1,
        1,
    )  # fmt: skip
    first = f.optional("first_k_dense_replace", "moe_layer_start_index") or 0
    last = f.optional("moe_layer_end_index", least=-1)  # ERNIE; -1: to the end
    end = layers if last is None or last < 0 else min(last + 1, layers)
    dense = [int(one) for one in f.listed("mlp_only_layers") if isinstance(one, int)]
    offset = f.optional("expert_layer_offset")
    if (
        offset is None
    ):  # DeepSeek counts from the first layer, the others end each group with a sparse one
        offset = 0 if f.given("moe_layer_freq") else every - 1
    sparse = [i for i in range(first, end) if i % every == offset % every and i not in dense]
    return len(sparse)


def has_experts(f: Fields) -> int:
    """Routed experts of a sparse layer; 0 where the model is dense."""
    experts = f.optional(*EXPERTS, least=-1)
    return 0 if experts is None or experts == 1 else experts


def _state(f: Fields, hidden: int, convolution: bool = False) -> StateSpace:
    if f.optional("linear_num_value_heads"):
        return _gated_delta(f, hidden)
    if f.given("mamba_num_heads", "mamba_n_heads") or f.model_type == "mamba2":
        return _mamba2(f, hidden)
    if f.given("mamba_d_state") or f.model_type in _STATE_ONLY:
        return _mamba(f, hidden)
    if convolution or f.given("conv_L_cache"):  # LFM2: gated short convolution
        kernel = f.optional("conv_L_cache") or 3
        return StateSpace("convolution", float(4 * hidden**2 + kernel * hidden), float(kernel * hidden))  # fmt: skip
    if f.nested("linear_attn_config"):
        return _kimi_delta(f, hidden)
    heads = f.required(*HEADS)
    head_dim = f.optional("head_dim") or max(hidden // heads, 1)
    width = heads * head_dim
    return StateSpace("linear", 5.0 * hidden * width, float(heads * head_dim**2))


def _gated_delta(f: Fields, hidden: int) -> StateSpace:
    """Qwen3-Next, Qwen3.5."""
    key_dim, value_heads = f.required("linear_key_head_dim"), f.required("linear_num_value_heads")
    keys = f.required("linear_num_key_heads") * key_dim
    values = value_heads * f.required("linear_value_head_dim")
    kernel = f.optional("linear_conv_kernel_dim") or 4
    params = (
        hidden * (2 * keys + 2 * values + 2 * value_heads)
        + values * hidden
        + kernel * (2 * keys + values)
    )
    return StateSpace("gated-delta", float(params), float(values * key_dim + kernel * (2 * keys + values)))  # fmt: skip


def _kimi_delta(f: Fields, hidden: int) -> StateSpace:
    """Kimi delta attention: a decay for every channel, and an output gate, each through a narrow matrix."""
    told = Fields(f.nested("linear_attn_config"), f.name)
    heads, head_dim = told.required("num_heads"), told.required("head_dim")
    kernel = told.optional("short_conv_kernel_size") or 4
    width = heads * head_dim
    gate = hidden * width if told.flag("use_full_rank_gate") else head_dim * (hidden + width)
    decay = head_dim * (hidden + width)
    params = 4 * hidden * width + decay + gate + hidden * heads + 3 * kernel * width
    return StateSpace("gated-delta", float(params), float(heads * head_dim**2 + 3 * kernel * width))


def _mamba2(f: Fields, hidden: int) -> StateSpace:
    """Nemotron-H, Granite 4, Bamba, Falcon-H1, Mamba-2."""
    heads = f.required("mamba_num_heads", "mamba_n_heads", "num_heads")
    head_dim = f.optional("mamba_head_dim")
    if head_dim is None and isinstance(
        f.config.get("mamba_d_head"), int
    ):  # "auto" is a word for it
        head_dim = f.optional("mamba_d_head")
    if f.model_type == "mamba2":
        head_dim = f.optional("head_dim")
    inner = f.optional("mamba_d_ssm") or heads * (head_dim or 64)
    if head_dim is None and not f.given("mamba_d_ssm") and f.given("mamba_expand", "expand"):
        inner = f.required("mamba_expand", "expand") * hidden
    groups = f.optional("n_groups", "mamba_n_groups") or 1
    size = f.optional("ssm_state_size", "mamba_d_state", "state_size") or 128
    kernel = f.optional("conv_kernel", "mamba_d_conv") or 4
    mixed = inner + 2 * groups * size
    params = hidden * (inner + mixed + heads) + inner * hidden + kernel * mixed
    return StateSpace("mamba2", float(params), float(inner * size + kernel * mixed))


def _mamba(f: Fields, hidden: int) -> StateSpace:
    """Mamba, Falcon-Mamba, Jamba."""
    size = f.optional("mamba_d_state", "state_size") or 16
    kernel = f.optional("mamba_d_conv", "conv_kernel") or 4
    inner = (f.optional("mamba_expand") or 2) * hidden
    if f.model_type in _STATE_ONLY:
        inner = f.optional("intermediate_size", "d_inner") or (f.optional("expand") or 2) * hidden
    rank = math.ceil(hidden / 16)
    if isinstance(f.config.get("mamba_dt_rank", f.config.get("time_step_rank")), int):  # or "auto"
        rank = f.optional("mamba_dt_rank", "time_step_rank") or rank
    params = (
        2 * hidden * inner
        + inner * (rank + 2 * size)
        + rank * inner
        + inner * hidden
        + inner * (kernel + size)
    )
    return StateSpace("mamba", float(params), float(inner * (size + kernel)))
