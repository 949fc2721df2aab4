"""Read a Hugging Face ``config.json`` (as a dict) into an :class:`Architecture`.

Covers decoders with MHA, GQA, MQA and MLA; experts with shared ones, dense first layers and interleaving; sliding,
chunked, linear, convolution and Mamba layers; encoders and encoder-decoders. Multimodal configs are read through their
text part. A field that changes the shape and is not read is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.errors import InputError
from core.messages import Message, msg, shown
from planning.estimators.architecture import count_parameters, validate
from planning.estimators.config_blocks import Blocks, read_blocks
from planning.estimators.config_fields import (
    CLASS_DEFAULTS,
    CONTEXT,
    ENCODERS,
    EXPERTS,
    FFN,
    FOUR_TIMES_HIDDEN,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    LEARNED_POSITIONS,
    MODEL_TYPES,
    NESTED,
    SHARED_EXPERTS,
    SHARED_FFN,
    TIED_BY_DEFAULT,
    TOP_K,
    UNGATED,
    VOCAB,
    Config,
    Fields,
    missing,
    not_read,
)
from planning.estimators.config_layers import (
    Layers,
    has_experts,
    read_layers,
    sparse_layers,
    windowed_shape,
)
from planning.estimators.types import (
    Architecture,
    AttentionShape,
    LatentAttention,
    MixtureOfExperts,
)

_FALCON = frozenset({"falcon", "refinedwebmodel"})
_TIES = ("tie_word_embeddings", "tie_embedding")
_T5 = frozenset({"t5", "mt5", "umt5"})


def architecture_from_config(config: Config, *, name: str = "") -> Architecture:
    """The architecture that a published config describes.

    Raises
    ------
    InputError
        If a field that decides memory is missing, is not a whole number, contradicts another, or is not read.
    """
    if not isinstance(config, Mapping):
        text = msg("The configuration must be a JSON object with the model's fields")
        raise InputError("config", text, value=type(config).__name__)
    label = name or str(config.get("_name_or_path") or config.get("model_type") or "model")
    part, assumed = _text_part(config)
    return validate(_Reader(part, label[:120], assumed).architecture())


def _text_part(config: Config) -> tuple[Config, tuple[Message, ...]]:
    """The language model inside a multimodal config; the outer fields fill what the inner leaves out."""
    for key in NESTED:
        inner = config.get(key)
        if not isinstance(inner, Mapping):
            continue
        outer = {k: v for k, v in config.items() if k != key}
        defaults = CLASS_DEFAULTS.get(str(inner.get("model_type")), {})
        left_out = {k: v for k, v in defaults.items() if k not in inner}
        if any(inner.get(k) is not None for k in LAYERS) or defaults:
            return {**outer, **left_out, **inner}, _class_defaults(left_out)
        if any(isinstance(inner.get(k), Mapping) for k in NESTED):
            return _text_part(inner)
    return config, ()


def _class_defaults(left_out: Mapping[str, int]) -> tuple[Message, ...]:
    if not left_out:
        return ()
    fields = ", ".join(f"{key} {value}" for key, value in left_out.items())
    text = msg(
        "The configuration leaves these to the defaults of its model class: %(fields)s",
        fields=fields,
    )
    return (text,)


@dataclass(slots=True)
class _Reader(Fields):
    """One config while it is read into a shape."""

    assumed: tuple[Message, ...] = ()

    def architecture(self) -> Architecture:
        if self.nested("attn_config") or self.nested("ffn_config"):  # DBRX, MPT
            inner = {**self.nested("attn_config"), **self.nested("ffn_config")}
            self.config = {**inner, **self.config}
        self.refuse_unread()
        hidden, layers = self.required(*HIDDEN), self._layers()
        cross = self._cross_layers(layers)
        blocks = read_blocks(self, layers, hidden)
        if blocks is not None:
            self._take(blocks)
        kinds = read_layers(self, layers, hidden) if blocks is None else blocks.layers
        full = self._attention(hidden, kinds)
        windowed = None
        if kinds.sliding:
            windowed = windowed_shape(self, full, layers)
        if self.given("global_head_dim", "num_global_key_value_heads"):
            full, windowed = self._global(full), replace(full, value_dim=0)
        moe = self._experts(layers, kinds)
        shape = Architecture(
            name=self.name,
            layers=layers,
            hidden=hidden,
            heads=full.heads,
            kv_heads=full.kv_heads,
            head_dim=full.head_dim,
            value_dim=full.value_dim or None,
            values_are_keys=full.values_are_keys,
            windowed=windowed,
            ffn=0,
            vocab=self._vocab(),
            gated=self._gated(),
            tied_embeddings=self._tied(),
            moe=moe,
            mla=self._latent(hidden),
            sliding_window=kinds.window,
            sliding_layers=kinds.sliding,
            linear_layers=kinds.linear,
            state_space=kinds.state,
            attention_layers=kinds.attention,
            mlp_layers=kinds.mlp,
            kv_shared_layers=kinds.shared_cache[0],
            kv_shared_windowed=kinds.shared_cache[1],
            cross_attention_layers=cross,
            position_embeddings=self._positions(),
            embedding_dim=self._embedding_dim(hidden),
            per_layer_embedding=self.optional("hidden_size_per_layer_input") or 0,
            attention_gate=self.flag("attn_output_gate")
            or self.model_type.startswith(("qwen3_next", "qwen3_5")),
            causal=self.model_type not in ENCODERS,
            max_context=self._context(),
        )
        shape = replace(shape, ffn=self._ffn(shape, kinds))
        if self.model_type == "longcat_flash":
            shape = self._two_in_one(shape)
        if self.model_type == "longformer":
            shape = self._of_longformer(shape)
        self._say_unknown()
        return replace(shape, assumed=self.assumed)

    def _take(self, blocks: Blocks) -> None:
        """What blocks of a search tell in the place of the fields that they leave out."""
        told = {"num_key_value_heads": blocks.kv_heads, FFN[0]: blocks.ffn}
        self.config = {**self.config, **told}
        if not blocks.even:
            self.assumed = (*self.assumed, _mean_width(blocks.ffn))

    def _layers(self) -> int:
        encoder, decoder = self.optional("encoder_layers"), self.optional("decoder_layers")
        if encoder and decoder:  # whisper, bart
            return encoder + decoder
        layers = self.required(*LAYERS)
        if self.model_type in _T5:
            return layers + (self.optional("num_decoder_layers") or layers)
        return layers

    def _cross_layers(self, layers: int) -> int:
        listed = self.listed("cross_attention_layers")
        if listed:  # Llama 3.2 Vision: by their numbers
            told = all(type(i) is int and 0 <= i < layers for i in listed)
            if (
                not told
                or len(set(listed)) < len(listed)
                or not self.model_type.startswith("mllama")
            ):
                raise not_read("cross_attention_layers", listed)
            text = msg(
                "%(layers)s layers attend to images alone; what they keep of an image is not in the KV cache counted "
                "here",
                layers=len(listed),
            )
            self.assumed = (*self.assumed, text)
            return len(listed)
        if self.model_type in _T5:
            return self.optional("num_decoder_layers") or self.required(*LAYERS)
        return (self.optional("decoder_layers") or 0) if self.optional("encoder_layers") else 0

    def _attention(self, hidden: int, kinds: Layers) -> AttentionShape:
        if not kinds.attention and self.given(*HEADS) is None:  # state-space layers alone
            heads = max(
                hidden // 64, 1
            )  # nothing is kept by them; a replica may be split over them
            return AttentionShape(heads, heads, 64)
        heads = self.required(*HEADS)
        head_dim = self.optional("head_dim", "attention_head_dim", "kv_channels", "d_kv")
        if head_dim is None:
            if hidden % heads and self.given("kv_lora_rank") is None:
                text = msg(
                    "hidden_size %(hidden)s is not a multiple of %(heads)s heads, and no head_dim is given",
                    hidden=hidden,
                    heads=heads,
                )
                raise InputError("num_attention_heads", text, value=heads, limit=hidden)
            head_dim = max(hidden // heads, 1)
        latent = self.given("kv_lora_rank") is not None
        value_dim = 0 if latent else self.optional("v_head_dim") or 0
        return AttentionShape(heads, self._kv_heads(heads), head_dim, value_dim)

    def _global(self, windowed: AttentionShape) -> AttentionShape:
        """Gemma 4: layers that see everything have wider heads, fewer of them for keys, and values equal to keys."""
        return AttentionShape(
            windowed.heads,
            self.optional("num_global_key_value_heads") or windowed.kv_heads,
            self.optional("global_head_dim") or windowed.head_dim,
            values_are_keys=self.flag("attention_k_eq_v"),
        )

    def _kv_heads(self, heads: int) -> int:
        if self.model_type in _FALCON and not self.config.get("new_decoder_architecture"):
            return 1 if self.config.get("multi_query", True) else heads
        if self.model_type == "gpt_bigcode" and self.config.get("multi_query", True):
            return 1
        if self.given("kv_lora_rank") is not None:
            return heads
        if (
            self.config.get("multi_query_attention") is False
        ):  # ChatGLM: the group number then says nothing
            return heads
        value = self.optional(*KV_HEADS)
        return heads if value is None else value

    def _vocab(self) -> int:
        vocab = self.optional(*VOCAB)
        if vocab is None and self.model_type in ENCODERS and self.given("patch_size", "image_size"):
            return 1  # an image encoder: its patches count as positions
        return self.required(*VOCAB) if vocab is None else vocab

    def _ffn(self, shape: Architecture, kinds: Layers) -> int:
        """Width of the dense feed-forward parts; where layers differ, the mean, which keeps every count."""
        moe, layers = shape.moe, shape.mlp_layers if shape.mlp_layers is not None else shape.layers
        if layers == 0 or (moe is not None and moe.every == 1 and moe.dense_layers == 0):
            return self.optional(*FFN) or 0
        if moe is None and self.optional(*EXPERTS) == 0 and self.optional(*SHARED_FFN):
            return self.required(*SHARED_FFN)  # Granite 4: the shared part is all there is
        key = self.given("intermediate_size_mlp", *FFN)
        if key is None:
            return self._ffn_left_out(shape.hidden)
        listed = self.per_layer(key, layers)
        if len(set(map(str, listed))) > 1:
            widths = [Fields({key: one}, self.name).required(key) for one in listed]
            mean = round(sum(widths) / len(widths))
            self.assumed = (*self.assumed, _mean_width(mean))
            return mean
        width = self.optional(key) or 0
        if self.model_type == "qwen":  # the first Qwen counts both halves of the gated part
            return width // 2
        if key == "block_ff_dim" and self.config.get("block_auto_adjust_ff_dim", True):
            return self._adjusted(width)
        if self.flag("use_double_wide_mlp"):  # Gemma 4: twice as wide where the cache is shared
            return round(width * (1 + kinds.shared_cache[0] / layers))
        return width

    def _ffn_left_out(self, hidden: int) -> int:
        if self.optional("expansion_ratio"):
            return hidden * self.required("expansion_ratio")
        if self.model_type not in FOUR_TIMES_HIDDEN:
            raise missing(FFN[0])
        return 4 * hidden

    def _adjusted(self, width: int) -> int:
        """LFM2: two thirds of what is told, rounded up to a multiple."""
        factor = self.config.get("block_ffn_dim_multiplier", 1.0)
        times = factor if isinstance(factor, int | float) and 0 < factor < 100 else 1.0
        multiple = self.optional("block_multiple_of") or 256
        return -(-int(times * (2 * width // 3)) // multiple) * multiple

    def _of_longformer(self, shape: Architecture) -> Architecture:
        """Tokens that see everything have queries, keys and values of their own; the others do not pass these."""
        count = count_parameters(shape).total
        further = 3.0 * shape.layers * shape.hidden**2
        return replace(shape, params_total=count + further, params_active=count)

    def _say_unknown(self) -> None:
        """Say what was taken of a model type that is not known, and that the config does not tell."""
        told = self.given("is_gated_act", "feed_forward_proj", *_TIES)
        if self.model_type in MODEL_TYPES or told is not None:
            return
        text = msg(
            "model_type is %(value)s, which is not known: gated feed-forward parts, an output table of its own and "
            "causal attention are assumed. Compare the number of parameters with the published one.",
            value=shown(self.config.get("model_type") or "null"),
        )
        self.assumed = (*self.assumed, text)

    def _gated(self) -> bool:
        if "is_gated_act" in self.config:
            return bool(self.config["is_gated_act"])
        if str(self.config.get("feed_forward_proj", "")).startswith("gated"):
            return True
        return self.model_type not in UNGATED and not self._first_chatglm()

    def _tied(self) -> bool:
        key = self.given(*_TIES)
        if key is None:
            return self.model_type in TIED_BY_DEFAULT or self._first_chatglm()
        return bool(self.config[key])

    def _first_chatglm(self) -> bool:
        """ChatGLM-6B, whose successors have another shape under the same name."""
        return self.model_type == "chatglm" and self.given("inner_hidden_size") is not None

    def _embedding_dim(self, hidden: int) -> int | None:
        width = self.optional("word_embed_proj_dim", "embedding_size")  # OPT, ELECTRA
        return None if width in (None, hidden) else width

    def _positions(self) -> int:
        if self.model_type in ENCODERS and self.given("patch_size") and self.given(*VOCAB) is None:
            patch, image = self.required("patch_size"), self.required("image_size")
            channels = self.optional("num_channels") or 3
            return (image // patch) ** 2 + 1 + channels * patch**2
        learned = self.model_type in LEARNED_POSITIONS
        rotary = self.config.get("position_embedding_type") == "rotary"  # ESM-2
        return (self.optional(*CONTEXT) or 0) if learned and not rotary else 0

    def _context(self) -> int | None:
        """Tokens that the model takes, with what its rotary scaling adds."""
        told = self.optional(*CONTEXT)
        scaling = Fields(self.nested("rope_scaling") or self.nested("rope_parameters"), self.name)
        factor = scaling.config.get("factor")
        kind = scaling.config.get("rope_type", scaling.config.get("type"))
        if told is None or not isinstance(factor, int | float) or not 1 < factor < 1e4:
            return told
        if kind == "yarn":
            before = scaling.optional("original_max_position_embeddings")
            return max(told, round(before * factor)) if before else told
        return round(told * factor) if kind in ("linear", "dynamic") else told

    def _latent(self, hidden: int) -> LatentAttention | None:
        latent = self.optional("kv_lora_rank")
        if latent is None:
            return None
        usual: int | None = 128 if self.model_type.startswith(("deepseek", "kimi")) else None
        if self.model_type == "minicpm3":
            usual = hidden // self.required(*HEADS)
        nope, value = self.optional("qk_nope_head_dim"), self.optional("v_head_dim")
        for field, told in {"qk_nope_head_dim": nope, "v_head_dim": value}.items():
            if told is None and usual is None:
                raise missing(field)
        return LatentAttention(
            kv_latent=latent,
            rope_dim=self.required("qk_rope_head_dim"),
            q_latent=self.optional("q_lora_rank") or 0,
            nope_dim=nope or usual or 0,
            v_dim=value or usual or 0,
            index_topk=self.optional("index_topk") or 0,
            index_heads=self.optional("index_n_heads") or 0,
            index_dim=self.optional("index_head_dim") or 0,
        )

    def _experts(self, layers: int, kinds: Layers) -> MixtureOfExperts | None:
        experts = has_experts(self)
        if self.config.get("enable_moe_block") is False:
            return None
        if experts < 1:
            self._none_or_wrong()
            return None
        width = self.optional(
            "moe_intermediate_size", "expert_ffn_hidden_size", "expert_intermediate_size"
        ) or self.required(*FFN)
        shared = self.optional(*SHARED_EXPERTS) or 0
        shared_ffn = self.optional(*SHARED_FFN) or 0
        if self.model_type.startswith("llama4"):
            shared, width = 1, self.required("intermediate_size")
        if self.flag("enable_moe_block") or self.flag(
            "residual_moe"
        ):  # a dense part beside the experts
            shared, shared_ffn = 1, self.required(*FFN)
        if self.flag("parallel_attn_mlp_res"):  # Arctic: as wide as the hidden size
            shared, shared_ffn = 1, self.required(*HIDDEN)
        if shared_ffn and not shared:
            shared = 1
        elif shared_ffn and shared > 1:
            shared_ffn *= shared
        if kinds.dense_mlp is not None:  # the list of layers tells dense from sparse
            dense, every = kinds.dense_mlp, 1
        else:
            dense, every = _spread(layers, sparse_layers(self, layers))
        return MixtureOfExperts(
            experts=experts,
            top_k=self.required(*TOP_K),
            expert_ffn=width,
            shared_experts=shared,
            shared_ffn=shared_ffn,
            dense_layers=dense,
            every=every,
            latent=self.optional("moe_latent_size", "routed_expert_hidden_size") or 0,
        )

    def _none_or_wrong(self) -> None:
        """Raise where a number of experts was told that cannot be; none at all is a dense model."""
        field = self.given(*EXPERTS)
        if field is None or self.config[field] == 1:
            return
        if self.config[field] == 0 and not self.optional(*TOP_K):  # dense, and said so
            return
        self.required(field)

    def _two_in_one(self, shape: Architecture) -> Architecture:
        """LongCat: a layer holds attention and a dense part twice, and experts once; some experts do nothing."""
        moe, idle = shape.moe, self.optional("zero_expert_num") or 0
        if moe is None:
            return shape
        working = max(1, round(moe.top_k * moe.experts / (moe.experts + idle)))
        if idle:
            text = msg(
                "%(idle)s of the experts do nothing: of %(top_k)s experts a token, %(working)s work on average",
                idle=idle,
                top_k=moe.top_k,
                working=working,
            )
            self.assumed = (*self.assumed, text)
        experts = replace(
            moe, top_k=working, every=2, dense_layers=0, shared_experts=1, shared_ffn=shape.ffn
        )
        layers = 2 * shape.layers
        return replace(shape, layers=layers, attention_layers=layers, moe=experts)


def _mean_width(mean: int) -> Message:
    return msg(
        "Feed-forward parts differ from layer to layer; their mean width of %(mean)s is used",
        mean=mean,
    )


def _spread(layers: int, sparse: int) -> tuple[int, int]:
    """Sparse layers as an interleave where they divide the layers evenly, else as dense leading layers."""
    if sparse and layers % sparse == 0:
        return 0, layers // sparse
    return layers - sparse, 1
