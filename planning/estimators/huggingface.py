"""Read a Hugging Face ``config.json`` (as a dict) into an :class:`Architecture`.

Covers decoders with MHA, GQA, MQA and MLA; experts with shared ones, dense first layers and interleaving; sliding,
chunked, linear and Mamba layers; encoders and encoder-decoders. Multimodal configs are read through their text part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import InputError
from core.messages import Message, msg
from planning.estimators.architecture import validate
from planning.estimators.types import Architecture, LatentAttention, MixtureOfExperts, StateSpace

Config = Mapping[str, Any]

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim", "embed_dim")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads")
_KV_HEADS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_head_kv",
    "multi_query_group_num",
    "kv_n_heads",
)
_FFN = (
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "d_ff",
    "ffn_dim",
    "encoder_ffn_dim",
    "inner_hidden_size",
    "hidden_dim",
)
_VOCAB = ("vocab_size", "padded_vocab_size")
_CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "n_ctx",
)
_EXPERTS = (
    "num_local_experts",
    "n_routed_experts",
    "num_experts",
    "moe_num_experts",
    "num_moe_experts",
)
_TOP_K = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_top_k",
    "moe_topk",
    "moe_k",
    "top_k_experts",
    "experts_per_token",
)
_NESTED = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model",
    "thinker_config",
    "decoder",
)

# Two matrices in the feed-forward part (fc in, fc out) instead of three
_UNGATED = frozenset(
    "gpt2 gptj gpt_neo gpt_neox gpt_bigcode opt bloom falcon RefinedWeb RefinedWebModel mpt bert roberta xlm-roberta "
    "distilbert electra deberta deberta-v2 albert camembert phi starcoder2 codegen whisper vit t5 bart nemotron "
    "nemotron_h clip_text_model xglm persimmon".split()
)
_ENCODERS = frozenset(
    "bert roberta xlm-roberta distilbert electra deberta deberta-v2 albert camembert modernbert vit "
    "clip_text_model".split()
)
_TIED_BY_DEFAULT = frozenset(
    "gpt2 gpt_neo gpt_bigcode opt bloom mpt bert roberta xlm-roberta distilbert electra t5 whisper bart gemma gemma2 "
    "gemma3 gemma3_text cohere cohere2 starcoder2 falcon".split()
)
_LEARNED_POSITIONS = frozenset(
    "gpt2 gpt_neo gpt_bigcode opt bert roberta xlm-roberta electra distilbert vit".split()
)
_ALTERNATING_WINDOW = {"gemma2": 2, "cohere2": 4, "gemma3": 6, "gemma3_text": 6, "gpt_oss": 2}


def architecture_from_config(config: Config, *, name: str = "") -> Architecture:
    """The architecture that a published config describes.

    Raises
    ------
    InputError
        If a field that decides memory is missing, is not a whole number, or contradicts another.
    """
    if not isinstance(config, Mapping):
        text = msg("The configuration must be a JSON object with the model's fields")
        raise InputError("config", text, value=type(config).__name__)
    label = name or str(config.get("_name_or_path") or config.get("model_type") or "model")
    return validate(_Reader(_text_part(config), label).architecture())


def _text_part(config: Config) -> Config:
    """The language model inside a multimodal config; the outer fields fill what the inner leaves out."""
    for key in _NESTED:
        inner = config.get(key)
        if isinstance(inner, Mapping) and _has(inner, _LAYERS):
            return {**{k: v for k, v in config.items() if k != key}, **inner}
        if isinstance(inner, Mapping) and any(isinstance(inner.get(k), Mapping) for k in _NESTED):
            return _text_part(inner)
    return config


def _has(config: Config, keys: tuple[str, ...]) -> bool:
    return any(config.get(key) is not None for key in keys)


@dataclass(slots=True)
class _Reader:
    """One config while it is read: looks fields up by any of their names and refuses what cannot be."""

    config: Config
    name: str

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type", ""))

    def optional(self, *keys: str) -> int | None:
        for key in keys:
            value = self.config.get(key)
            if value is None:
                continue
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            if isinstance(value, bool) or not whole:
                text = msg(
                    "%(field)s is %(value)s; it must be a whole number", field=key, value=str(value)
                )
                raise InputError(key, text, value=value, limit="whole number")
            return int(value)
        return None

    def required(self, *keys: str) -> int:
        value = self.optional(*keys)
        if value is None:
            text = msg("The configuration has no %(field)s", field=keys[0])
            raise InputError(keys[0], text)
        if value < 1:
            text = msg(
                "%(field)s is %(value)s; it must be at least %(limit)s",
                field=keys[0],
                value=value,
                limit=1,
            )
            raise InputError(keys[0], text, value=value, limit=1)
        return value

    def listed(self, key: str) -> list[Any]:
        value = self.config.get(key)
        return list(value) if isinstance(value, list | tuple) else []

    def nested(self, key: str) -> Config:
        value = self.config.get(key)
        return value if isinstance(value, Mapping) else {}

    def architecture(self) -> Architecture:
        assumed: list[Message] = []
        if self.nested("attn_config") or self.nested("ffn_config"):  # DBRX, MPT
            inner = {**self.nested("attn_config"), **self.nested("ffn_config")}
            self.config = {**inner, **self.config}
        hidden, layers = self.required(*_HIDDEN), self._layers()
        heads = self.required(*_HEADS)
        head_dim = self.optional("head_dim", "attention_head_dim", "kv_channels", "d_kv")
        if head_dim is None:
            if hidden % heads and not self._latent():
                text = msg(
                    "hidden_size %(hidden)s is not a multiple of %(heads)s heads, and no head_dim is given",
                    hidden=hidden,
                    heads=heads,
                )
                raise InputError("num_attention_heads", text, value=heads, limit=hidden)
            head_dim = max(hidden // heads, 1)
        window, sliding = self._window(layers)
        linear, attention, state = self._linear(layers, hidden)
        if self.optional(*_VOCAB) is None and self.model_type not in _ENCODERS:
            assumed.append(msg("No vocabulary size is given; 32,000 is assumed."))
        return Architecture(
            name=self.name,
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=self._kv_heads(heads),
            head_dim=head_dim,
            ffn=self._ffn(hidden),
            vocab=self.optional(*_VOCAB) or 32_000,
            gated=self._gated(),
            tied_embeddings=self._tied(),
            moe=self._experts(layers),
            mla=self._latent(),
            sliding_window=window,
            sliding_layers=min(sliding, layers - linear),
            linear_layers=linear,
            state_space=state,
            attention_layers=attention,
            mlp_layers=self._mlp_layers(),
            cross_attention_layers=self._cross_layers(),
            position_embeddings=self._positions(),
            attention_gate=bool(self.config.get("attn_output_gate"))
            or self.model_type in {"qwen3_next", "qwen3_5_moe"},
            causal=self.model_type not in _ENCODERS,
            max_context=self.optional(*_CONTEXT),
            assumed=tuple(assumed),
        )

    def _layers(self) -> int:
        encoder, decoder = self.optional("encoder_layers"), self.optional("decoder_layers")
        if encoder and decoder:  # whisper, bart
            return encoder + decoder
        layers = self.required(*_LAYERS)
        if self.model_type in {"t5", "mt5", "umt5"}:
            return layers + (self.optional("num_decoder_layers") or layers)
        return layers

    def _cross_layers(self) -> int:
        if self.model_type in {"t5", "mt5", "umt5"}:
            return self.optional("num_decoder_layers") or self.required(*_LAYERS)
        return (self.optional("decoder_layers") or 0) if self.optional("encoder_layers") else 0

    def _kv_heads(self, heads: int) -> int:
        if self.model_type.lower() in {
            "falcon",
            "refinedweb",
            "refinedwebmodel",
        } and not self.config.get("new_decoder_architecture"):
            return 1 if self.config.get("multi_query", True) else heads
        if self.model_type == "gpt_bigcode" and self.config.get("multi_query", True):
            return 1
        if self._latent() is not None:
            return heads
        value = self.optional(*_KV_HEADS)
        return heads if value is None else value

    def _ffn(self, hidden: int) -> int:
        ffn = self.optional("intermediate_size_mlp") or self.optional(*_FFN)
        if ffn is None and self.optional("expansion_ratio"):
            ffn = hidden * self.required("expansion_ratio")
        return ffn if ffn is not None else 4 * hidden

    def _gated(self) -> bool:
        if "is_gated_act" in self.config:
            return bool(self.config["is_gated_act"])
        if str(self.config.get("feed_forward_proj", "")).startswith("gated"):
            return True
        return self.model_type not in _UNGATED

    def _tied(self) -> bool:
        value = self.config.get("tie_word_embeddings")
        return self.model_type in _TIED_BY_DEFAULT if value is None else bool(value)

    def _positions(self) -> int:
        return (self.optional(*_CONTEXT) or 0) if self.model_type in _LEARNED_POSITIONS else 0

    def _latent(self) -> LatentAttention | None:
        latent = self.optional("kv_lora_rank")
        if latent is None:
            return None
        return LatentAttention(
            kv_latent=latent,
            rope_dim=self.required("qk_rope_head_dim"),
            q_latent=self.optional("q_lora_rank") or 0,
            nope_dim=self.optional("qk_nope_head_dim") or 128,
            v_dim=self.optional("v_head_dim") or 128,
            index_topk=self.optional("index_topk") or 0,
            index_heads=self.optional("index_n_heads") or 0,
            index_dim=self.optional("index_head_dim") or 0,
        )

    def _experts(self, layers: int) -> MixtureOfExperts | None:
        experts = self.optional(*_EXPERTS)
        if experts is None or experts == 1:
            return None
        if experts < 0 or (experts == 0 and (self.optional(*_TOP_K) or 0) > 0):
            field = next(key for key in _EXPERTS if self.config.get(key) is not None)
            text = msg(
                "%(field)s is %(value)s; it must be at least %(limit)s",
                field=field,
                value=experts,
                limit=1,
            )
            raise InputError(field, text, value=experts, limit=1)
        if experts == 0:  # dense, and said so
            return None
        dense, every = self._sparse_layout(layers)
        width = self.optional("moe_intermediate_size", "expert_ffn_hidden_size") or self.required(
            *_FFN
        )
        shared = (
            self.optional(
                "n_shared_experts",
                "num_shared_experts",
                "num_shared_expert",
                "moe_num_shared_experts",
            )
            or 0
        )
        shared_ffn = (
            self.optional(
                "shared_expert_intermediate_size",
                "shared_intermediate_size",
                "moe_shared_expert_intermediate_size",
            )
            or 0
        )
        if self.model_type.startswith("llama4"):
            shared, width = 1, self.required("intermediate_size")
        if shared_ffn and not shared:
            shared = 1
        elif shared_ffn and shared > 1:
            shared_ffn *= shared
        return MixtureOfExperts(
            experts=experts,
            top_k=self.required(*_TOP_K),
            expert_ffn=width,
            shared_experts=shared,
            shared_ffn=shared_ffn,
            dense_layers=dense,
            every=every,
        )

    def _sparse_layout(self, layers: int) -> tuple[int, int]:
        """(dense leading layers, one sparse layer in `every`)."""
        flags = self.listed("moe_layer_freq") or self.listed("mlp_layer_types")
        if flags:
            return layers - sum(flag in (1, "sparse", "moe") for flag in flags), 1
        explicit = self.listed("moe_layers")
        if explicit:
            return _spread(layers, len(explicit))
        every = self.optional(
            "interleave_moe_layer_step",
            "decoder_sparse_step",
            "expert_layer_period",
            "moe_layer_interval",
        )
        if every is None:
            every = self.optional("moe_layer_freq") or 1
        dense = self.optional("first_k_dense_replace", "moe_layer_start_index") or len(
            self.listed("mlp_only_layers")
        )
        return dense, max(every, 1)

    def _window(self, layers: int) -> tuple[int | None, int]:
        """(window, how many layers use it)."""
        kinds = self.listed("layer_types")
        chunk = self.optional("attention_chunk_size")
        window = self.optional("sliding_window", "attention_window_size") or chunk
        if window is not None and window < 0:
            text = msg(
                "%(field)s is %(value)s; it must be at least %(limit)s",
                field="sliding_window",
                value=window,
                limit=0,
            )
            raise InputError("sliding_window", text, value=window, limit=0)
        if not window or self.config.get("use_sliding_window") is False:
            return None, 0
        if kinds:
            sliding = sum("sliding" in str(kind) or "chunked" in str(kind) for kind in kinds)
            return (window, sliding) if sliding else (None, 0)
        if chunk is not None and window == chunk:  # Llama 4: every fourth layer attends to all
            full = sum(flag == 0 for flag in self.listed("no_rope_layers")) or layers // 4
            return window, layers - full
        period = self.optional("sliding_window_pattern") or _ALTERNATING_WINDOW.get(self.model_type)
        if period:
            return window, layers - layers // period
        first = (
            self.optional("max_window_layers") if self.config.get("use_sliding_window") else None
        )
        return window, layers if first is None else max(layers - first, 0)

    def _linear(self, layers: int, hidden: int) -> tuple[int, int | None, StateSpace | None]:
        """(layers without a cache, attention layers when not the rest, what the linear layers are)."""
        pattern = str(self.config.get("hybrid_override_pattern") or "")
        if pattern:  # Nemotron-H: every layer is one of mamba, attention, feed-forward
            return pattern.count("M"), pattern.count("*"), self._state(hidden)
        linear = sum(
            "linear" in str(k) or "mamba" in str(k)
            for k in self.listed("layer_types") or self.listed("layers_block_type")
        )
        kda = self.nested("linear_attn_config").get("kda_layers")
        if not linear and isinstance(kda, list):
            linear = len(kda)
        if not linear and self.listed("attn_type_list"):  # MiniMax-Text: 0 is lightning attention
            linear = sum(flag == 0 for flag in self.listed("attn_type_list"))
        period = self.optional("attn_layer_period", "full_attention_interval")
        if not linear and period:
            linear = layers - layers // period
        return linear, None, self._state(hidden) if linear else None

    def _mlp_layers(self) -> int | None:
        pattern = str(self.config.get("hybrid_override_pattern") or "")
        return sum(pattern.count(mark) for mark in "-E") if pattern else None

    def _state(self, hidden: int) -> StateSpace:
        if self.optional("linear_num_value_heads"):  # gated delta rule: Qwen3-Next, Qwen3.5
            keys = self.required("linear_num_key_heads") * self.required("linear_key_head_dim")
            value_heads, value_dim = (
                self.required("linear_num_value_heads"),
                self.required("linear_value_head_dim"),
            )
            values = value_heads * value_dim
            kernel = self.optional("linear_conv_kernel_dim") or 4
            params = (
                hidden * (2 * keys + 2 * values + 2 * value_heads)
                + values * hidden
                + kernel * (2 * keys + values)
            )
            state = values * self.required("linear_key_head_dim") + kernel * (2 * keys + values)
            return StateSpace("gated-delta", float(params), float(state))
        if self.optional("mamba_num_heads", "mamba_n_heads"):  # Mamba-2: Nemotron-H, Granite 4
            heads = self.required("mamba_num_heads", "mamba_n_heads")
            inner = heads * (self.optional("mamba_head_dim", "mamba_d_head") or 64)
            groups, size = (
                self.optional("n_groups", "mamba_n_groups") or 1,
                self.optional("ssm_state_size", "mamba_d_state") or 128,
            )
            kernel = self.optional("conv_kernel", "mamba_d_conv") or 4
            mixed = inner + 2 * groups * size
            params = hidden * (inner + mixed + heads) + inner * hidden + kernel * mixed
            return StateSpace("mamba2", float(params), float(inner * size + kernel * mixed))
        if self.optional("mamba_d_state"):  # Mamba: Jamba
            size, kernel = self.required("mamba_d_state"), self.optional("mamba_d_conv") or 4
            inner = (self.optional("mamba_expand") or 2) * hidden
            rank = self.optional("mamba_dt_rank") or math.ceil(hidden / 16)
            params = (
                2 * hidden * inner
                + inner * (rank + 2 * size)
                + rank * inner
                + inner * hidden
                + inner * (kernel + size)
            )
            return StateSpace("mamba", float(params), float(inner * (size + kernel)))
        heads = self.required(*_HEADS)
        head_dim = self.optional("head_dim") or max(hidden // heads, 1)
        width = heads * head_dim
        return StateSpace("linear", 5.0 * hidden * width, float(heads * head_dim**2))


def _spread(layers: int, sparse: int) -> tuple[int, int]:
    """Sparse layers as an interleave where they divide the layers evenly, else as dense leading layers."""
    if sparse and layers % sparse == 0:
        return 0, layers // sparse
    return layers - sparse, 1
