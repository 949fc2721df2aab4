"""Look fields of a Hugging Face ``config.json`` up by any of their names, and refuse what cannot be.

The names are those that published families use. What a family leaves to the defaults of its class is here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import InputError, out_of_range, require_at_least
from core.messages import Message, msg, shown

Config = Mapping[str, Any]

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "dim", "embed_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads")
KV_HEADS = (
    "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "kv_n_heads", "num_attention_groups",
)  # fmt: skip
FFN = (
    "intermediate_size", "ff_intermediate_size", "ffn_hidden_size", "n_inner", "d_ff", "ffn_dim", "encoder_ffn_dim",
    "inner_hidden_size", "hidden_dim", "block_ff_dim",
)  # fmt: skip
VOCAB = ("vocab_size", "padded_vocab_size")
CONTEXT = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx",
)  # fmt: skip
EXPERTS = (
    "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_moe_experts",
)  # fmt: skip
TOP_K = (
    "num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k", "top_k_experts",
    "experts_per_token",
)  # fmt: skip
SHARED_EXPERTS = (
    "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts",
)  # fmt: skip
SHARED_FFN = (
    "shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size",
    "share_expert_dim",
)  # fmt: skip
DRAFTS = (
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers", "num_mtp_layers", "num_mtp_modules",
)  # fmt: skip
NESTED = (
    "text_config",
    "llm_config",
    "language_config",
    "language_model",
    "thinker_config",
    "decoder",
)

# Two matrices in the feed-forward part (fc in, fc out) instead of three
UNGATED = frozenset(
    "gpt2 openai-gpt gptj gpt_neo gpt_neox gpt_bigcode opt bloom falcon refinedweb refinedwebmodel mpt bert roberta "
    "xlm-roberta distilbert electra deberta deberta-v2 albert camembert mpnet phi starcoder2 codegen whisper vit deit "
    "clip_vision_model siglip_vision_model dinov2 t5 bart mbart pegasus marian nemotron nemotron_h clip_text_model "
    "xglm persimmon apertus arcee biogpt ctrl m2m_100 mbart blenderbot esm xlm-roberta-xl longformer megatron-bert "
    "roberta-prelayernorm data2vec-text".split()
)
ENCODERS = frozenset(
    "bert roberta xlm-roberta distilbert electra deberta deberta-v2 albert camembert mpnet modernbert vit deit "
    "clip_text_model clip_vision_model siglip_vision_model dinov2 esm xlm-roberta-xl longformer megatron-bert "
    "roberta-prelayernorm data2vec-text nomic_bert".split()
)
TIED_BY_DEFAULT = frozenset(
    "gpt2 openai-gpt gpt_neo gpt_bigcode opt bloom mpt bert roberta xlm-roberta distilbert electra deberta deberta-v2 "
    "camembert mpnet modernbert t5 whisper bart mbart pegasus marian xglm gemma gemma2 gemma3 gemma3_text gemma3n "
    "gemma3n_text gemma4 gemma4_text cohere cohere2 starcoder2 falcon refinedweb refinedwebmodel minicpm minicpm3 "
    "phi3small smollm3 lfm2 lfm2_moe mamba mamba2 falcon_mamba ernie4_5 biogpt ctrl vit deit clip_text_model "
    "clip_vision_model siglip_vision_model dinov2 m2m_100 mbart blenderbot esm xlm-roberta-xl longformer "
    "megatron-bert roberta-prelayernorm data2vec-text nomic_bert".split()
)
LEARNED_POSITIONS = frozenset(
    "gpt2 openai-gpt gpt_neo gpt_bigcode opt bert roberta xlm-roberta electra distilbert deberta camembert mpnet "
    "biogpt clip_text_model esm xlm-roberta-xl longformer megatron-bert roberta-prelayernorm data2vec-text".split()
)
# Decoders with gated feed-forward parts and an output table of their own: what is taken where nothing else is known.
GATED_UNTIED = frozenset(
    "llama llama4 llama4_text mistral mistral3 ministral mixtral mllama mllama_text_model qwen qwen2 qwen2_moe "
    "qwen2_vl qwen2_5_vl qwen3 qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe qwen3_5 qwen3_5_text qwen3_5_moe "
    "qwen3_5_moe_text deepseek deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_linear glm glm4 glm4_moe "
    "glm4_moe_lite glm_moe_dsa chatglm phi3 phi4mm phimoe olmo olmo2 olmo3 olmoe gpt_oss dbrx jamba bamba falcon_h1 "
    "falcon3 granite granitemoe granitemoehybrid minimax minimax_m2 minimax_text_01 ernie4_5_moe hunyuan "
    "hunyuan_v1_dense hunyuan_v1_moe dots1 longcat_flash seed_oss exaone exaone4 step3p5 step3p7 laguna mimo "
    "mimo_v2_flash internlm internlm2 internlm3 baichuan yi aquila stablelm arctic bailing_moe bailing_moe_v2 "
    "bailing_moe_linear bailing_moe_v2_5 llava git mt5 umt5 nemotron-nas deci".split()
)
MODEL_TYPES = UNGATED | ENCODERS | TIED_BY_DEFAULT | GATED_UNTIED  # whose shape is known
FOUR_TIMES_HIDDEN = frozenset(  # families whose feed-forward part is four times as wide when it is not told
    "gpt2 openai-gpt gptj gpt_neo gpt_bigcode bloom falcon refinedweb refinedwebmodel mpt codegen".split()
)
# What these classes take for a field that a published config leaves out; used for a nested text part alone.
_LLAMA = {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
    "vocab_size": 32_000,
}  # fmt: skip
CLASS_DEFAULTS: dict[str, dict[str, int]] = {
    "llama": _LLAMA,
    "mistral": _LLAMA | {"intermediate_size": 14_336, "num_key_value_heads": 8},
    "gemma3_text": {
        "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208, "sliding_window": 4096,
    },
}  # fmt: skip
# Fields that change the shape in a way that is not read: a silent wrong shape would be worse than none.
NOT_READ = (
    "compress_ratios", "compress_rates", "num_key_value_heads_per_layer", "num_hidden_groups", "hybrid_layer_ids",
    "block_types", "lru_width", "mb_per_layer", "mamba_step", "share_q_dim", "attention_hidden_size",
)  # fmt: skip
MOST = 1_000_000_000_000  # of any number in a config


@dataclass(slots=True)
class Fields:
    """One config while it is read."""

    config: Config
    name: str

    @property
    def model_type(self) -> str:
        return str(self.config.get("model_type") or "").lower()

    def optional(self, *keys: str, least: int = 0) -> int | None:
        """The first of `keys` that is given, as a whole number; a list that says the same for every layer is one."""
        found = self.given(*keys)
        return None if found is None else self._whole(found, self.config[found], least)

    def given(self, *keys: str) -> str | None:
        """Which of `keys` the config tells first."""
        return next((key for key in keys if self.config.get(key) is not None), None)

    def _whole(self, key: str, value: Any, least: int) -> int:
        if isinstance(value, list | tuple) and value and all(one == value[0] for one in value):
            value = value[0]
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not whole:
            text = msg(
                "%(field)s is %(value)s; it must be a whole number", field=key, value=shown(value)
            )
            raise InputError(key, text, value=shown(value), limit="whole number")
        if not least <= value <= MOST:
            raise out_of_range(key, value, least, MOST, shown=shown(value))
        return int(value)

    def required(self, *keys: str) -> int:
        value = self.optional(*keys, least=-MOST)
        if value is None:
            raise missing(keys[0])
        require_at_least(self.given(*keys) or keys[0], value, 1)
        return value

    def flag(self, key: str) -> bool:
        return self.config.get(key) is True

    def listed(self, key: str) -> list[Any]:
        value = self.config.get(key)
        return list(value) if isinstance(value, list | tuple) else []

    def per_layer(self, key: str, layers: int) -> list[Any]:
        """What `key` lists for each of `layers` layers; [] where it is no list or an empty one.

        Layers that draft further tokens may follow, as many as the config tells: what is said of them is left out.

        Raises
        ------
        InputError
            If fewer layers are listed than there are, or more.
        """
        listed = self.listed(key)
        most = layers + (self.optional(*DRAFTS) or 0)
        if listed and not layers <= len(listed) <= most:
            text = msg(
                "%(field)s lists %(value)s layers; the configuration has %(limit)s",
                field=key,
                value=len(listed),
                limit=layers,
            )
            raise InputError(key, text, value=len(listed), limit=layers)
        return listed[:layers]

    def nested(self, key: str) -> Config:
        value = self.config.get(key)
        return value if isinstance(value, Mapping) else {}

    def refuse_unread(self) -> None:
        """Raise for a field that changes the shape and is not read."""
        key = self.given(*NOT_READ)
        if key is None:
            return
        value = self.config[key]
        if isinstance(value, list | tuple) and all(one == 0 for one in value):
            return
        if key == "num_hidden_groups" and self.model_type != "albert":
            return
        raise not_read(key, value)


def missing(key: str) -> InputError:
    return InputError(key, msg("The configuration has no %(field)s", field=key))


def not_read(key: str, value: Any) -> InputError:
    text: Message = msg(
        "%(field)s changes the model's shape in a way that is not read from a configuration. "
        "Spell the shape out under architecture, or give the number of parameters.",
        field=key,
    )
    return InputError(key, text, value=shown(value), limit="architecture, parameters")
